//! Every format on a small file: what is read, what is refused, and where errors say they are.

use refault_trace::{
    ErrorKind, Format, Input, LoadOptions, ObjectKind, Op, OpenOptions, Record, RecordSource, Trace, TraceError, Via,
    open, open_input,
};
use std::io::{Cursor, Write};

fn source(name: &str, bytes: &[u8], opts: &OpenOptions) -> Result<Box<dyn RecordSource>, TraceError> {
    let input = Input::from_reader(name, Box::new(Cursor::new(bytes.to_vec())))?;
    open_input(input, opts)
}

fn read(name: &str, bytes: &[u8], opts: &OpenOptions) -> Result<Vec<Record>, TraceError> {
    let mut source = source(name, bytes, opts)?;
    let (mut all, mut chunk) = (Vec::new(), Vec::new());
    while source.next_chunk(&mut chunk)? {
        all.extend_from_slice(&chunk);
    }
    Ok(all)
}

fn as_format(format: Format) -> OpenOptions {
    OpenOptions { format: Some(format), ..OpenOptions::default() }
}

/// (page, pages, write) of every record.
fn touches(name: &str, bytes: &[u8], opts: &OpenOptions) -> Vec<(u64, u32, bool)> {
    let records = read(name, bytes, opts).expect("reads");
    let touch = |r: &Record| (r.page, r.pages, r.op.write);
    records.iter().map(touch).collect()
}

#[track_caller]
fn fails(name: &str, bytes: &[u8], opts: &OpenOptions, want: &str) {
    let error = read(name, bytes, opts).expect_err(want);
    assert_eq!(error.to_string(), want);
}

fn oracle(time: u32, id: u64, size: u32) -> Vec<u8> {
    let mut bytes = time.to_le_bytes().to_vec();
    bytes.extend(id.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.extend((-1i64).to_le_bytes());
    bytes
}

fn vscsi1(command: u16, sector: u64, length: u32) -> Vec<u8> {
    let mut bytes = 7u32.to_le_bytes().to_vec();
    bytes.extend(length.to_le_bytes());
    bytes.extend(1u32.to_le_bytes());
    bytes.extend(command.to_le_bytes());
    bytes.extend(0x100u16.to_le_bytes());
    bytes.extend(sector.to_le_bytes());
    bytes.extend(5_000u64.to_le_bytes());
    bytes
}

fn vscsi2(command: u16, sector: u64, length: u32) -> Vec<u8> {
    let mut bytes = command.to_le_bytes().to_vec();
    bytes.extend(0x200u16.to_le_bytes());
    bytes.extend(7u32.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend(1u32.to_le_bytes());
    bytes.extend(sector.to_le_bytes());
    bytes.extend(5_000u64.to_le_bytes());
    bytes.extend(9u64.to_le_bytes());
    bytes
}

fn pgtrace(accesses: &[u32]) -> Vec<u8> {
    let mut bytes = b"PGTRACE1".to_vec();
    bytes.extend([0; 32]);
    bytes[8..12].copy_from_slice(b"demo");
    for number in [100, 10, 5, 1, accesses.len() as u32, 1] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend([0; 64]);
    bytes.extend(accesses.iter().flat_map(|a| a.to_le_bytes()));
    bytes
}

fn drmemtrace(entries: &[(u16, u16, u64)]) -> Vec<u8> {
    let entry = |(kind, size, address): &(u16, u16, u64)| {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend(size.to_le_bytes());
        bytes.extend(address.to_le_bytes());
        bytes
    };
    entries.iter().flat_map(entry).collect()
}

/// A zip of members, stored or deflated, sizes before or behind the data.
fn zip(members: &[&[u8]], deflate: bool, descriptor: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for bytes in members {
        let mut crc = flate2::Crc::new();
        crc.update(bytes);
        let mut data = bytes.to_vec();
        if deflate {
            let level = flate2::Compression::fast();
            let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), level);
            encoder.write_all(bytes).expect("memory");
            data = encoder.finish().expect("memory");
        }
        let sums = [crc.sum(), data.len() as u32, bytes.len() as u32];
        let sums: Vec<u8> = sums.iter().flat_map(|n| n.to_le_bytes()).collect();
        out.extend(b"PK\x03\x04\x14\x00");
        out.extend([if descriptor { 8 } else { 0 }, 0]);
        out.extend([if deflate { 8 } else { 0 }, 0, 0, 0, 0, 0]);
        out.extend(if descriptor { &[0; 12][..] } else { &sums });
        out.extend([1, 0, 0, 0, b'm']);
        out.extend(data);
        if descriptor {
            out.extend(b"PK\x07\x08");
            out.extend(sums);
        }
    }
    out.extend(b"PK\x01\x02");
    out
}

const MSR: &[u8] = b"128166372003061629,hm,1,Read,8191,2,413\n\
128166372003061639,hm,0,Write,4096,4096,1\r\n";
const LACKEY: &[u8] = b"==7== Lackey\nI  04001090,3\n L 1ffe,4\n S 3000,8\n M 4000,1\n";

/// A small file of every format, all recognised without being told.
fn samples() -> Vec<(Format, Vec<u8>)> {
    let two = |a: Vec<u8>, b: Vec<u8>| [a, b].concat();
    vec![
        (Format::OracleGeneral, two(oracle(5, 7, 1024), oracle(6, 16, 512))),
        (Format::Vscsi, two(vscsi1(0x28, 7, 1024), vscsi1(0x2a, 16, 512))),
        (Format::Vscsi, two(vscsi2(0x28, 7, 1024), vscsi2(0x2a, 16, 512))),
        (Format::Msr, MSR.to_vec()),
        (Format::Plain, b"# by hand\n12\n\n0x1f w\n".to_vec()),
        (Format::Arc, b"5 3 0 0\n100 1 0 1\n".to_vec()),
        (Format::Lirs, b"*\n5\n*\n6\n".to_vec()),
        (Format::PgTrace, pgtrace(&[9, 1 << 31])),
        (Format::Lackey, LACKEY.to_vec()),
        (Format::Address, b"l 0x1fff 1\ns 0x2000 6\n".to_vec()),
        (Format::Drmemtrace, drmemtrace(&[(25, 0, 4), (22, 4, 77), (0, 8, 0x1ffc), (26, 0, 0)])),
    ]
}

#[test]
fn formats_are_seen_by_content() {
    for (format, bytes) in samples() {
        for name in ["t", "t.vscsi", "t.txt", "t.csv.gz"] {
            let source = source(name, &bytes, &OpenOptions::default()).expect("opens");
            assert_eq!(source.header().format, format, "{name}");
        }
    }
}

/// Records without a next access, as parts of traces have them, are known by their content.
#[test]
fn regression_oracle_general_without_a_next_access_is_recognised() {
    for next in [-1i64, -2, i64::MAX] {
        let record = |time: u32, id| [&oracle(time, id, 4096)[..16], &next.to_le_bytes()].concat();
        let bytes: Vec<u8> = (0..20).flat_map(|n| record(n, 8 * u64::from(n))).collect();
        let input = Input::from_reader("part", Box::new(Cursor::new(bytes))).expect("an input");
        let source = open_input(input, &OpenOptions::default()).unwrap_or_else(|e| panic!("{next}: {e}"));
        assert_eq!(source.header().format, Format::OracleGeneral);
    }
}

#[test]
fn oracle_general() {
    let bytes = [oracle(5, 7, 1024), oracle(7, 16, 512)].concat();
    let records = read("t", &bytes, &OpenOptions::default()).expect("reads");
    let touch = |page, pages, time_ns| Record { time_ns, pages, ..Record::touch(page, Op::READ) };
    assert_eq!(records, [touch(0, 2, 0), touch(2, 1, 2_000_000_000)]);
    let raw = OpenOptions { raw_ids: true, ..OpenOptions::default() };
    assert_eq!(touches("t", &bytes, &raw), [(7, 1, false), (16, 1, false)]);
    let far = as_format(Format::OracleGeneral);
    fails(
        "t",
        &oracle(0, u64::MAX, 1),
        &far,
        "t: byte 0: id 18446744073709551615 is no sector address; is --raw-ids meant?",
    );
}

#[test]
fn vscsi() {
    for make in [vscsi1, vscsi2] {
        let bytes = [make(0x28, 7, 1024), make(0x2a, 16, 0)].concat();
        let want = [(0, 2, false), (2, 1, true)];
        assert_eq!(touches("t", &bytes, &OpenOptions::default()), want);
    }
    let bytes = [vscsi1(0x28, 7, 1024), vscsi1(0x35, 0, 0)].concat();
    fails(
        "t",
        &bytes,
        &OpenOptions::default(),
        "t: byte 32: command 0x35 is neither READ nor WRITE; others are not known here",
    );
}

#[test]
fn msr() {
    let source_records = read("t.csv", MSR, &OpenOptions::default()).expect("reads");
    let (a, b) = (source_records[0], source_records[1]);
    assert_eq!((a.object, a.page, a.pages, a.time_ns), (0, 1, 2, 0));
    assert_eq!((b.object, b.page, b.pages, b.time_ns), (1, 1, 1, 1000));
    assert!(b.op.write && b.op.via.is_none());
    let mut source = source("t.csv", MSR, &OpenOptions::default()).expect("opens");
    let trace = Trace::load(&mut source, &LoadOptions::default()).expect("loads");
    let names: Vec<_> = trace.objects.iter().map(|o| o.name.as_str()).collect();
    assert_eq!(names, ["hm.1", "hm.0"]);
    let msr = as_format(Format::Msr);
    fails("t.csv", b"1,hm,1,Read,x1,2,3\n", &msr, "t.csv:1: offset \"x1\" is not a number");
    fails("t.csv", b"1,hm\n", &msr, "t.csv:1: 2 fields instead of 7");
}

#[test]
fn plain() {
    let text = b"# by hand\n12\n\n0x1f w\n 7\tR \n*\n";
    let want = [(12, 1, false), (31, 1, true), (7, 1, false)];
    assert_eq!(touches("t", text, &OpenOptions::default()), want);
    let folded = OpenOptions { block_bytes: Some(512), ..OpenOptions::default() };
    assert_eq!(touches("t", b"7\n8\n", &folded), [(0, 1, false), (1, 1, false)]);
    let opts = as_format(Format::Plain);
    fails("t", b"1\n2 q\n", &opts, "t:2: \"q\" is neither r nor w");
    fails("t", b"1\n-2\n", &opts, "t:2: page \"-2\" is not a number");
    fails("t", b"1 r 2\n", &opts, "t:1: \"2\" is one field too many");
}

#[test]
fn arc() {
    let text = b"5 3 0 0\n100 1 0 1\n";
    assert_eq!(touches("t", text, &OpenOptions::default()), [(5, 3, false), (100, 1, false)]);
    let folded = OpenOptions { block_bytes: Some(512), ..OpenOptions::default() };
    assert_eq!(touches("t", text, &folded), [(0, 1, false), (12, 1, false)]);
    let opts = as_format(Format::Arc);
    let error = "t:1: request number is missing; a line has four numbers";
    fails("t", b"5 3 0\n", &opts, error);
    fails("t", b"5 0 0 0\n", &opts, "t:1: a request of 0 blocks");
    let error = "t:1: one access to 99999999 pages is more than the 16777216 that are believable";
    fails("t", b"5 99999999 0 0\n", &opts, error);
}

#[test]
fn lirs() {
    let text = b"*\n5\r\n\n*\n6";
    assert_eq!(touches("t", text, &OpenOptions::default()), [(5, 1, false), (6, 1, false)]);
    let opts = as_format(Format::Lirs);
    fails("t", b"5\n6 w\n", &opts, "t:2: block \"6 w\" is not a number");
}

#[test]
fn bare_numbers() {
    let bytes = [0, 0, 0, 1, 0, 0, 0, 2];
    for (format, want) in [
        (Format::U32Be, vec![1, 2]),
        (Format::U32Le, vec![1 << 24, 2 << 24]),
        (Format::U64Be, vec![(1 << 32) + 2]),
        (Format::U64Le, vec![(2 << 56) + (1 << 24)]),
    ] {
        let found = touches("t", &bytes, &as_format(format));
        let pages: Vec<_> = found.iter().map(|(page, ..)| *page).collect();
        assert_eq!(pages, want, "{format}");
    }
    let error = "t: byte 4: record is cut short (3 of 4 bytes); the file is truncated";
    fails("t", &bytes[..7], &as_format(Format::U32Le), error);
}

#[test]
fn pgtrace_regions() {
    let bytes = pgtrace(&[9, 1 << 31]);
    let mut source = source("t", &bytes, &OpenOptions::default()).expect("opens");
    assert_eq!(source.header().source.as_deref(), Some("demo"));
    let trace = Trace::load(&mut source, &LoadOptions::default()).expect("loads");
    assert_eq!(trace.objects[0].kind, ObjectKind::File);
    assert_eq!(trace.objects[0].indices, [9]);
    assert_eq!(trace.objects[1].kind, ObjectKind::Anon);
    assert!(!trace.accesses[0].is_map() && !trace.accesses[0].is_write());
    assert!(trace.accesses[1].is_map() && trace.accesses[1].is_write());
    let opts = OpenOptions::default();
    let error = "t: byte 128: page 10 is beyond the 10 pages of file";
    fails("t", &pgtrace(&[10]), &opts, error);
    let error = "t: byte 132: the header promises 2 accesses, the file holds 1";
    fails("t", &bytes[..bytes.len() - 4], &opts, error);
}

#[test]
fn lackey() {
    let found = read("t", LACKEY, &OpenOptions::default()).expect("reads");
    let all: Vec<_> = found.iter().map(|r| (r.page, r.pages, r.op.write)).collect();
    assert_eq!(all, [(1, 2, false), (3, 1, true), (4, 1, true)]);
    assert!(found.iter().all(|r| r.op.via == Some(Via::Map)));
    let opts = OpenOptions { instructions: true, ..OpenOptions::default() };
    assert_eq!(touches("t", LACKEY, &opts)[0], (0x4001, 1, false));
    let error = "t:6: \"hello\" is not a line of lackey; if the program prints there too, use --log-file";
    let mixed = [LACKEY, b"hello\n"].concat();
    fails("t", &mixed, &OpenOptions::default(), error);
}

#[test]
fn addresses() {
    let text = b"l 0x1fff 1\ns 0x2000 6\n";
    let want = [(1, 1, false), (2, 1, true)];
    assert_eq!(touches("t", text, &OpenOptions::default()), want);
    let opts = as_format(Format::Address);
    fails("t", b"l 1fff 1\n", &opts, "t:1: \"1fff\" is not an address 0x...");
    fails("t", b"x 0x1 1\n", &opts, "t:1: \"x\" is neither l nor s");
}

#[test]
fn drmemtrace_entries() {
    let bytes = drmemtrace(&[
        (25, 0, 4),
        (22, 4, 77),
        (10, 3, 0x9000),
        (0, 8, 0x1ffc),
        (22, 4, 78),
        (1, 8, 0x3000),
        (26, 0, 0),
    ]);
    let found = read("t", &bytes, &OpenOptions::default()).expect("reads");
    let all: Vec<_> = found.iter().map(|r| (r.page, r.pages, r.task)).collect();
    assert_eq!(all, [(1, 2, 0), (3, 1, 1)]);
    assert!(!found[0].op.write && found[1].op.write);
    let opts = OpenOptions { instructions: true, ..OpenOptions::default() };
    assert_eq!(touches("t", &bytes, &opts)[0], (9, 1, false));
    let error = "t: byte 72: ends without a footer; the file is truncated";
    fails("t", &bytes[..72], &OpenOptions::default(), error);
    let opts = as_format(Format::Drmemtrace);
    let error = "t: byte 0: entry of type 0 where a header was expected";
    fails("t", &[0; 12], &opts, error);
}

#[test]
fn zips_are_read_member_by_member() {
    let opts = as_format(Format::Plain);
    for (deflate, descriptor) in [(false, false), (true, false), (true, true)] {
        let packed = zip(&[b"1\n2", b"", b"3\n"], deflate, descriptor);
        assert_eq!(touches("t", &packed, &opts), [(1, 1, false), (23, 1, false)]);
        for length in 1..packed.len() {
            let cut = read("t", &packed[..length], &opts);
            assert!(cut.is_err(), "cut at {length} of {}", packed.len());
        }
    }
    let mut packed = zip(&[b"1\n"], false, false);
    packed[14] ^= 1;
    let error = "t: decompressed byte 2: the zip data is broken: a checksum is wrong";
    fails("t", &packed, &opts, error);
}

fn compressed(bytes: &[u8]) -> [(&'static str, Vec<u8>); 3] {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    gzip.write_all(bytes).expect("memory");
    xz.write_all(bytes).expect("memory");
    [
        ("zstd", zstd::encode_all(bytes, 1).expect("memory")),
        ("gzip", gzip.finish().expect("memory")),
        ("xz", xz.finish().expect("memory")),
    ]
}

#[test]
fn compression_is_seen_by_content() {
    for (format, bytes) in samples() {
        let plain = read("t", &bytes, &OpenOptions::default()).expect("reads");
        for (kind, packed) in compressed(&bytes) {
            let found = read("t.txt", &packed, &OpenOptions::default());
            assert_eq!(found.as_ref(), Ok(&plain), "{format} in {kind}");
        }
    }
}

#[test]
fn places_are_behind_the_decompressor() {
    let bytes = [oracle(5, 7, 512), oracle(5, 8, 512)].concat();
    for (kind, packed) in compressed(&bytes[..40]) {
        let error = read("t", &packed, &OpenOptions::default()).expect_err(kind);
        assert_eq!(
            error.to_string(),
            "t: decompressed byte 24: record is cut short (16 of 24 bytes); the file is truncated"
        );
    }
}

/// Compressed files are never accepted when cut: each compression knows its end.
#[test]
fn cut_compression_is_an_error_at_every_byte() {
    for (kind, packed) in compressed(b"1\n2\n3\n") {
        for length in 0..packed.len() {
            let opts = as_format(Format::Plain);
            match read("t", &packed[..length], &opts) {
                Err(_) => {}
                // Nothing at all is an empty file, which the thread that reads it refuses.
                Ok(records) => assert!(length == 0 && records.is_empty(), "{kind} at {length}"),
            }
        }
    }
}

/// Binary formats know a cut inside a record; text formats know it unless what is left is well
/// formed.
#[test]
fn cut_files_are_errors_or_prefixes() {
    for (format, bytes) in samples() {
        let opts = as_format(format);
        let whole = read("t", &bytes, &opts).expect("reads");
        for length in 0..bytes.len() {
            match read("t", &bytes[..length], &opts) {
                Err(error) => assert!(error.to_string().starts_with("t:"), "{error}"),
                Ok(part) => {
                    let last = part.len().saturating_sub(1);
                    assert!(part.len() <= whole.len(), "{format} at {length}");
                    // In text, the last number itself may have lost digits.
                    assert_eq!(part[..last], whole[..last], "{format} at {length}");
                }
            }
        }
    }
}

#[test]
fn nothing_is_refused_by_whoever_loads_it() {
    for (name, bytes) in [("t.csv", &b""[..]), ("t", b""), ("t.txt", b"# only this\n")] {
        let loaded = source(name, bytes, &OpenOptions::default())
            .and_then(|mut source| Trace::load(&mut source, &LoadOptions::default()));
        let error = loaded.expect_err("empty");
        assert_eq!(error.kind(), ErrorKind::Empty);
        assert_eq!(error.to_string(), format!("{name}: holds no access"));
    }
}

#[test]
fn unknown_content_says_what_is_nearest() {
    let error = |name, bytes| read(name, bytes, &OpenOptions::default()).expect_err("unknown").to_string();
    let text = error("t", b"12 write\n");
    assert!(
        text.starts_with("t: format not recognised; nearest is plain, but line 1 is not of that (\"12 write\": "),
        "{text}"
    );
    let text = error("t", b"hello world\n");
    assert!(text.starts_with("t: format not recognised: line 1 (\"hello world\") is of no format"), "{text}");
    let text = error("t", &[0; 999]);
    assert!(text.starts_with("t: format not recognised; bare numbers have no mark"), "{text}");
    assert!(text.contains("oracle-general") && text.contains("u64be"), "{text}");
}

#[test]
fn regression_units_that_are_in_doubt_are_said_or_refused() {
    let bytes: Vec<u8> = (0..100).flat_map(|i| format!("{} r\n", i * 4096).into_bytes()).collect();
    let doubts = |opts: &OpenOptions| {
        let mut source = source("t.txt", &bytes, opts).expect("it is read");
        while source.next_chunk(&mut Vec::new()).expect("numbers") {}
        source.header().doubts.clone()
    };
    let [doubt] = &doubts(&OpenOptions::default())[..] else { panic!("addresses") };
    assert!(doubt.contains("--block-bytes 1 ") && doubt.ends_with("--block-bytes 4096"), "{doubt}");
    let strict = OpenOptions { strict: true, ..OpenOptions::default() };
    let error = source("t.txt", &bytes, &strict).map(drop).expect_err("in doubt").to_string();
    assert_eq!(error, format!("t.txt: --strict: {doubt}"));
    for block in [1, 512, 4096] {
        let said = OpenOptions { block_bytes: Some(block), ..strict.clone() };
        assert_eq!(doubts(&said), [""; 0]);
    }
}

#[test]
fn a_line_without_end_is_bounded() {
    let bytes = vec![b'1'; 1 << 20];
    let error = read("t", &bytes, &as_format(Format::Plain)).expect_err("too long");
    assert!(error.to_string().contains("line 1 is longer"), "{error}");
}

#[test]
fn records_before_an_error_come_first() {
    let mut source = source("t", b"1\n2\nx\n", &as_format(Format::Plain)).expect("opens");
    let mut chunk = Vec::new();
    assert_eq!(source.next_chunk(&mut chunk), Ok(true));
    assert_eq!(chunk.len(), 2);
    let first = source.next_chunk(&mut chunk).expect_err("x");
    assert_eq!(source.next_chunk(&mut chunk), Err(first));
}

/// Options that a format has no use for were accepted and did nothing.
#[test]
fn regression_options_that_a_format_has_no_use_for_are_refused() {
    let plain = OpenOptions::default();
    let cases: [(&str, OpenOptions, &str); 5] = [
        ("1\n2\n", OpenOptions { raw_ids: true, ..plain.clone() }, "--raw-ids: changes nothing in a trace of plain"),
        ("1\n2\n", OpenOptions { instructions: true, ..plain.clone() }, "--instructions: changes nothing"),
        ("1\n2\n", OpenOptions { tick_ns: Some(5), ..plain.clone() }, "--tick-ns: changes nothing"),
        (
            "1 1 0 0\n",
            OpenOptions { tick_ns: Some(5), ..plain.clone() },
            "--tick-ns: changes nothing in a trace of arc",
        ),
        (" L 1ffe,8\n", OpenOptions { raw_ids: true, ..plain }, "--raw-ids: changes nothing in a trace of lackey"),
    ];
    for (text, opts, what) in cases {
        let input =
            Input::from_reader("t", Box::new(std::io::Cursor::new(text.as_bytes().to_vec()))).expect("an input");
        let error = open_input(input, &opts).map(drop).unwrap_err();
        assert!(error.to_string().contains(what), "{text:?}: {error}");
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/sqlite.parquet");
    let error = open(&path, &OpenOptions { page_size: 16_384, ..OpenOptions::default() }).map(drop).unwrap_err();
    assert!(error.to_string().contains("--page-size: changes nothing in a trace of native"), "{error}");
}
