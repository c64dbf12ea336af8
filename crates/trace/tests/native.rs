//! The native format: what is written is what is read, and nothing else appears on disk.

use proptest::prelude::*;
use refault_testing::one_in;
use refault_trace::{
    Collapse, Format, Header, Input, NativeWriter, ObjectInfo, ObjectKind, Op, OpenOptions, Record, RecordKind,
    RecordSource, Recording, TraceError, Via, open, open_input,
};
use std::path::Path;

fn header() -> Header {
    let mut header = Header::new(Format::Native);
    header.objects =
        vec![ObjectInfo::new("a \"quoted\" name", ObjectKind::File), ObjectInfo::new("heap", ObjectKind::Anon)];
    header.tasks = vec!["one".into(), "two".into()];
    header.source = Some("a test".into());
    header.collapse = Some(Collapse { window: 64, dropped: 7 });
    header
}

fn write(path: &Path, records: &[Record]) -> Result<u64, TraceError> {
    let mut writer = NativeWriter::create(path)?;
    for chunk in records.chunks(100) {
        writer.write(chunk)?;
    }
    writer.finish(&header())
}

fn read(path: &Path) -> Result<(Header, Vec<Record>), TraceError> {
    let mut source = open(path, &OpenOptions::default())?;
    let (mut all, mut chunk) = (Vec::new(), Vec::new());
    while source.next_chunk(&mut chunk)? {
        all.extend_from_slice(&chunk);
    }
    Ok((source.header().clone(), all))
}

/// Records as single touches, which is what merging preserves.
fn touches(records: &[Record]) -> Vec<Record> {
    let single = |r: &Record| {
        let record = *r;
        (0..u64::from(r.pages)).map(move |i| Record { page: record.page + i, pages: 1, ..record })
    };
    records.iter().flat_map(single).collect()
}

fn any_record() -> impl Strategy<Value = Record> {
    let via = prop_oneof![Just(None), Just(Some(Via::Fd)), Just(Some(Via::Map))];
    let time = prop_oneof![Just(0), any::<u64>()];
    let page = prop_oneof![0..20u64, 0..u64::MAX - 10];
    (time, 0..3u32, any::<u32>(), 0..2u32, page, 1..9u32, any::<bool>(), via).prop_map(
        |(time_ns, task, memcg, object, page, pages, write, via)| Record {
            time_ns,
            page,
            task,
            memcg: memcg % 2 * memcg,
            object,
            pages,
            op: Op { write, via },
            kind: RecordKind::Touch,
        },
    )
}

proptest! {
    #[test]
    fn round_trip(records in proptest::collection::vec(any_record(), 1..300)) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("t.parquet");
        write(&path, &records).expect("writes");
        let (found, back) = read(&path).expect("reads");
        prop_assert_eq!(touches(&back), touches(&records));
        let mut want = header();
        want.records_hint = Some(back.len() as u64);
        want.has_checksums = true;
        prop_assert_eq!(found, want);
    }
}

#[test]
fn runs_become_one_row() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("t.parquet");
    let records: Vec<_> = (0..50_000).map(|p| Record::touch(p, Op::READ)).collect();
    assert_eq!(write(&path, &records).expect("writes"), 1);
    let (_, back) = read(&path).expect("reads");
    assert_eq!(touches(&back), records);
}

#[test]
fn a_cut_file_is_an_error_at_every_byte() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("t.parquet");
    let records: Vec<_> = (0..50).map(|p| Record::touch(p * 3, Op::READ)).collect();
    write(&path, &records).expect("writes");
    let whole = std::fs::read(&path).expect("there");
    let cut = dir.path().join("cut.parquet");
    for length in 0..whole.len() {
        std::fs::write(&cut, &whole[..length]).expect("writable");
        let error = read(&cut).expect_err("cut");
        assert!(error.to_string().contains("cut.parquet: "), "{error}");
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
    }
}

#[test]
fn a_newer_version_says_so() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("t.parquet");
    write(&path, &[Record::touch(1, Op::READ)]).expect("writes");
    let mut bytes = std::fs::read(&path).expect("there");
    let key = b"refault.version";
    let at = bytes.windows(key.len()).position(|w| w == key).expect("the key");
    let digit = at + bytes[at..].iter().position(|b| *b == b'1').expect("1");
    bytes[digit] = b'9';
    std::fs::write(&path, &bytes).expect("writable");
    let error = read(&path).expect_err("newer");
    assert!(error.to_string().contains("version \"9\""), "{error}");
}

#[test]
fn nothing_is_written_for_nothing() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("t.parquet");
    let error = write(&path, &[]).expect_err("empty");
    assert!(error.to_string().contains("no access"), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).expect("there").count(), 0);
}

/// Every bit of a small file flipped, one after the other: an error or a trace, never a panic.
#[test]
fn a_flipped_bit_is_an_error_or_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.parquet");
    let records: Vec<_> =
        (0..300u64).map(|i| Record { time_ns: i * 7, page: i * i % 1000, ..Record::touch(0, Op::READ) }).collect();
    write(&path, &records).expect("written");
    let bytes = std::fs::read(&path).expect("there");
    let whole = read(&path).expect("whole");
    let mut told = 0;
    for at in (0..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        std::fs::write(&path, &damaged).expect("writable");
        match read(&path) {
            Err(_) => told += 1,
            // Statistics and other words that nobody reads; and the name of the checksums.
            Ok((mut header, records)) => {
                header.has_checksums = true;
                assert_eq!(header, whole.0, "byte {at} of the header");
                assert!(records == whole.1, "byte {at} of the records");
            }
        }
    }
    assert!(told > bytes.len() / 14, "{told} of {}", bytes.len());
}

#[test]
fn a_flipped_bit_is_never_a_panic() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("t.parquet");
    let records: Vec<_> = (0..40).map(|p| Record::touch(p * p % 23, Op::READ)).collect();
    write(&path, &records).expect("writes");
    let mut bytes = std::fs::read(&path).expect("there");
    for bit in 0..bytes.len() * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        let input = Input::from_reader("t", Box::new(std::io::Cursor::new(bytes.clone())));
        let opts = OpenOptions { format: Some(Format::Native), ..OpenOptions::default() };
        let mut source = input.and_then(|input| open_input(input, &opts));
        let mut chunk = Vec::new();
        while let Ok(Ok(true)) = source.as_mut().map(|source| source.next_chunk(&mut chunk)) {}
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

/// Found by fuzzing: small files through which the library counted for minutes.
#[test]
fn files_that_never_end() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    // The header of a page names a list of two thousand million elements.
    let error = read(&data.join("endless-page-header.parquet")).expect_err("broken");
    assert!(error.to_string().contains("the Parquet data is broken"), "{error}");
    // So do the metadata, but only when fields are taken for what they should be and not for what
    // they are.
    let error = read(&data.join("fields-of-other-types.parquet")).expect_err("broken");
    assert!(error.to_string().contains("the Parquet metadata are broken"), "{error}");
}

/// Inputs that the fuzzer starts from: some are whole, of refault and of other writers, some are
/// finds.
#[test]
fn seeds_of_the_fuzzer() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/native");
    let rows = |name: &str| read(&seeds.join(name)).map(|(_, records)| records.len()).ok();
    // The first three are of pyarrow.
    for name in ["nullable-snappy", "second-page-version", "nested", "duckdb", "fastparquet", "polars"] {
        assert_eq!(rows(&format!("{name}.parquet")), Some(20), "{name}");
    }
    assert_eq!(rows("two-objects.parquet"), Some(35));
    assert_eq!(rows("delta-without-values.parquet"), None);
}

/// A recorder writes footers on the way: what it had written can be read wherever the file is cut.
#[test]
fn a_recording_that_was_cut_is_read_up_to_its_last_footer() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("t.parquet");
    let part = dir.path().join("t.parquet.part");
    let mut header = Header::new(Format::Native);
    header.objects = vec![ObjectInfo::new("f", ObjectKind::File)];
    header.recording = Some(Recording { cut: true, lost: 3, ..Recording::default() });
    let mut writer = NativeWriter::create_part(&path).expect("writable");
    assert!(NativeWriter::create_part(&path).is_err(), "another recorder");
    let (op, mut ends) = (Op { write: false, via: Some(Via::Fd) }, vec![]);
    for i in 0..4u64 {
        let acts =
            [RecordKind::Hit, RecordKind::Miss, RecordKind::Add, RecordKind::Evict, RecordKind::Drop].into_iter();
        let records = acts.zip(0..).map(|(kind, n)| Record { kind, ..Record::touch(100 * i + 3 * n, op) });
        writer.write(&records.collect::<Vec<_>>()).expect("writable");
        writer.checkpoint(&header).expect("writable");
        ends.push((std::fs::metadata(&part).expect("there").len() as usize, 5 * (i as usize + 1)));
    }
    let bytes = std::fs::read(&part).expect("there");
    let cut = dir.path().join("cut.parquet");
    for length in (0..=bytes.len()).step_by(one_in(4)) {
        std::fs::write(&cut, &bytes[..length]).expect("writable");
        let whole = ends.iter().rev().find(|(end, _)| *end <= length).map(|(_, rows)| *rows);
        let found =
            read(&cut).map(|(header, records)| (header.recording.expect("a recording").cut, records.len())).ok();
        assert_eq!(found, whole.map(|rows| (true, rows)), "cut to {length} bytes");
    }
    header.recording = Some(Recording { lost: 3, ..Recording::default() });
    assert_eq!(writer.finish(&header).expect("writable"), 20);
    assert!(!part.exists());
    let (header, records) = read(&path).expect("whole");
    assert_eq!(header.recording, Some(Recording { lost: 3, ..Recording::default() }));
    assert_eq!(records.len(), 20);
    assert_eq!(records[1].kind, RecordKind::Miss);
}

/// Doubts of a converted trace are said again, and are one line whatever its writer put there.
#[test]
fn doubts_come_back_in_one_line_and_end_once() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (first, second) = (dir.path().join("a.parquet"), dir.path().join("b.parquet"));
    let convert = |path: &Path, header: &Header| {
        let mut writer = NativeWriter::create(path).expect("writable");
        writer.write(&[Record::touch(1, Op::READ)]).expect("writable");
        writer.finish(header).expect("writable");
    };
    let mut doubted = Header::with_object(Format::Plain, "f", ObjectKind::File);
    doubted.doubts = vec!["as of\n\x1b[31m sectors\u{202e}".into()];
    convert(&first, &doubted);
    let (header, _) = read(&first).expect("reads");
    assert!(header.doubts[0].starts_with("as of??[31m sectors? (so it was when this was converted"), "{header:?}");
    convert(&second, &header);
    assert_eq!(read(&second).expect("reads").0.doubts, header.doubts);
}
