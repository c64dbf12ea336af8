//! How fast each format is decoded, and what a replay of a stream reads of it.
//!
//! `cargo bench -p refault-trace --bench decode`: the same accesses (zipf(1.0), 4 million over a
//! million pages) in every format, read from the page cache by one thread. *decode* reads records;
//! *load* also gives pages their dense ids and keeps the accesses, as a replay does; *stream* is
//! the second reading of a stream, when the ids are known. `-- --accesses N` for others.

use std::hint::black_box;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use refault_trace::generate::{Pattern, Stream, Workload};
use refault_trace::{LoadOptions, NativeWriter, OpenOptions, PageNumbers, Piece, RecordSource, Trace, open};

const RUNS: usize = 3;

/// Encoder of page number `page`, access number `n`.
type Encode = fn(u64, u64, &mut Vec<u8>);

/// A format: what it is called, the end of its file names, what stands before and behind the
/// accesses, and an access.
struct Encoding {
    name: &'static str,
    suffix: &'static str,
    head: &'static [u8],
    tail: &'static [u8],
    access: Encode,
}

const DRMEMTRACE_HEADER: &[u8] = &[25, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
const DRMEMTRACE_FOOTER: &[u8] = &[26, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

const ENCODINGS: [Encoding; 8] = [
    Encoding { name: "oracleGeneral", suffix: "oracleGeneral", head: b"", tail: b"", access: oracle_general },
    Encoding { name: "vscsi", suffix: "vscsi", head: b"", tail: b"", access: vscsi },
    Encoding {
        name: "drmemtrace",
        suffix: "bin",
        head: DRMEMTRACE_HEADER,
        tail: DRMEMTRACE_FOOTER,
        access: drmemtrace,
    },
    Encoding { name: "plain", suffix: "txt", head: b"", tail: b"", access: |page, _, out| line(out, page) },
    Encoding { name: "arc", suffix: "lis", head: b"", tail: b"", access: arc },
    Encoding { name: "msr", suffix: "csv", head: b"", tail: b"", access: msr },
    Encoding { name: "lackey", suffix: "lackey", head: b"", tail: b"", access: lackey },
    Encoding { name: "address", suffix: "trace", head: b"", tail: b"", access: address },
];

fn line(out: &mut Vec<u8>, text: impl std::fmt::Display) {
    writeln!(out, "{text}").expect("room");
}

fn oracle_general(page: u64, n: u64, out: &mut Vec<u8>) {
    out.extend((n as u32 / 1000).to_le_bytes());
    out.extend((page * 8).to_le_bytes());
    out.extend(4096u32.to_le_bytes());
    out.extend((n + 1).to_le_bytes());
}

fn vscsi(page: u64, n: u64, out: &mut Vec<u8>) {
    let mut record = [0; 32];
    record[4..8].copy_from_slice(&4096u32.to_le_bytes());
    record[12..14].copy_from_slice(&0x28u16.to_le_bytes());
    record[14..16].copy_from_slice(&(1u16 << 8).to_le_bytes());
    record[16..24].copy_from_slice(&(page * 8).to_le_bytes());
    record[24..32].copy_from_slice(&n.to_le_bytes());
    out.extend(record);
}

fn drmemtrace(page: u64, _: u64, out: &mut Vec<u8>) {
    out.extend([0, 0, 8, 0]);
    out.extend((page << 12).to_le_bytes());
}

fn arc(page: u64, n: u64, out: &mut Vec<u8>) {
    line(out, format_args!("{page} 1 0 {n}"));
}

fn msr(page: u64, n: u64, out: &mut Vec<u8>) {
    line(out, format_args!("{},hm,1,Read,{},4096,413", 128_166_372_003_061_629 + n, page << 12));
}

fn lackey(page: u64, _: u64, out: &mut Vec<u8>) {
    line(out, format_args!(" L {:08x},8", page << 12));
}

fn address(page: u64, _: u64, out: &mut Vec<u8>) {
    line(out, format_args!("l {:#010x} 3", page << 12));
}

fn accesses() -> u64 {
    let args: Vec<String> = std::env::args().collect();
    let given = args.iter().position(|a| a == "--accesses").and_then(|i| args.get(i + 1));
    given.map_or(4_000_000, |n| n.parse().expect("a number"))
}

fn workload() -> impl RecordSource {
    let stream = Stream::new("set", Pattern::Zipf { skew: 1.0, permute: true }, 1_000_000);
    Workload::single(stream, accesses(), 1).generator("zipf").expect("a workload")
}

/// The pages of all accesses.
fn pages() -> Vec<u64> {
    let (mut source, mut chunk, mut pages) = (workload(), Vec::new(), Vec::new());
    while source.next_chunk(&mut chunk).expect("records") {
        pages.extend(chunk.iter().flat_map(|record| record.page..record.page + u64::from(record.pages)));
    }
    pages
}

fn write_native(path: &Path) {
    let (mut source, mut chunk) = (workload(), Vec::new());
    let mut writer = NativeWriter::create(path).expect("a file");
    while source.next_chunk(&mut chunk).expect("records") {
        writer.write(&chunk).expect("room");
    }
    writer.finish(source.header()).expect("room");
}

/// Best of some runs, in million accesses a second.
fn best(mut run: impl FnMut()) -> f64 {
    best_after(|| (), |()| run())
}

/// Best of some runs, each after something that is not measured.
fn best_after<T>(mut prepare: impl FnMut() -> T, mut run: impl FnMut(T)) -> f64 {
    let seconds = (0..RUNS).map(|_| {
        let prepared = prepare();
        let start = Instant::now();
        run(prepared);
        start.elapsed().as_secs_f64()
    });
    accesses() as f64 / seconds.fold(f64::MAX, f64::min) / 1e6
}

fn row(name: &str, path: &Path) {
    let source = || open(path, &OpenOptions::default()).expect("a trace");
    let decode = best(|| {
        let (mut source, mut chunk) = (source(), Vec::new());
        while source.next_chunk(&mut chunk).expect("records") {
            black_box(&chunk);
        }
    });
    let load = best(|| {
        let trace = Trace::load(source().as_mut(), &LoadOptions::default()).expect("a trace");
        assert_eq!(trace.accesses.len() as u64, accesses());
    });
    let stream = best_after(
        || PageNumbers::read(source().as_mut(), &LoadOptions::default()).expect("a trace"),
        |numbers| {
            let (_, mut pieces) = numbers.pieces(source());
            let mut piece = Piece::default();
            while pieces.next(&mut piece, 1 << 20).map(|()| !piece.accesses.is_empty()).expect("the same trace") {
                black_box(&piece);
            }
        },
    );
    let bytes = std::fs::metadata(path).expect("a file").len() as f64 / accesses() as f64;
    println!("  {name:<22} {bytes:>6.2} {decode:>8.1} {load:>8.1} {stream:>8.1}");
}

fn compressed(path: &Path, suffix: &str, bytes: &[u8]) -> PathBuf {
    let path = PathBuf::from(format!("{}.{suffix}", path.display()));
    let file = std::fs::File::create(&path).expect("a file");
    match suffix {
        "zst" => zstd::stream::copy_encode(bytes, file, 3).expect("room"),
        "gz" => {
            let mut gzip = flate2::write::GzEncoder::new(file, flate2::Compression::default());
            gzip.write_all(bytes).and_then(|()| gzip.finish().map(drop)).expect("room");
        }
        _ => {
            let mut xz = liblzma::write::XzEncoder::new(file, 6);
            xz.write_all(bytes).and_then(|()| xz.finish().map(drop)).expect("room");
        }
    }
    path
}

fn main() {
    let dir = tempfile::tempdir().expect("a directory");
    println!("zipf(1.0), {} accesses, one thread; million accesses a second, best of {RUNS}", accesses());
    println!("  format                 bytes   decode     load   stream");
    let native = dir.path().join("t.parquet");
    write_native(&native);
    row("native", &native);
    let pages = pages();
    for encoding in ENCODINGS {
        let mut bytes = encoding.head.to_vec();
        (0..).zip(&pages).for_each(|(n, &page)| (encoding.access)(page, n, &mut bytes));
        bytes.extend(encoding.tail);
        let path = dir.path().join(format!("t.{}", encoding.suffix));
        std::fs::write(&path, &bytes).expect("room");
        row(encoding.name, &path);
        let also: &[&str] = match encoding.name {
            "plain" => &["zst", "gz", "xz"],
            "oracleGeneral" => &["zst"],
            _ => &[],
        };
        for suffix in also {
            row(&format!("{}, {suffix}", encoding.name), &compressed(&path, suffix, &bytes));
        }
    }
}
