//! Files with a bit that is not what it was, that were cut or added to: an error, or what the file
//! held before.

use refault_testing::short_or_long;
use refault_trace::{
    Format, Header, NativeWriter, ObjectInfo, ObjectKind, Op, OpenOptions, Record, RecordSource, Recording, TraceError,
    open,
};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// Bits that are turned in a large file, evenly over it; as many at its end, where what the file
/// says of itself is. In a small file each seventh is turned in `native`.
fn spread() -> usize {
    short_or_long(12, 60)
}

/// A digest of all that is read, but for whether there are checksums: a turned bit may take these
/// and nothing else.
fn read(path: &Path) -> Result<u64, TraceError> {
    let mut source = open(path, &OpenOptions::default())?;
    let (mut digest, mut chunk) = (DefaultHasher::new(), Vec::new());
    while source.next_chunk(&mut chunk)? {
        for Record { time_ns, page, task, memcg, object, pages, op, kind } in &chunk {
            (time_ns, page, task, memcg, object, pages, op, kind).hash(&mut digest);
        }
    }
    let mut header = source.header().clone();
    header.has_checksums = false;
    format!("{header:?}").hash(&mut digest);
    Ok(digest.finish())
}

/// Whether a file says that it is of a recording that was cut.
fn is_cut(path: &Path) -> bool {
    let source = open(path, &OpenOptions::default()).expect("it was read");
    source.header().recording.as_ref().is_some_and(|recording| recording.cut)
}

/// Turns bits of a file one by one; none may give another result without an error.
fn turn(path: &Path, bits: impl Iterator<Item = usize>) {
    let dir = tempfile::tempdir().expect("a folder");
    let turned = dir.path().join(path.file_name().expect("a name"));
    let whole = fs::read(path).expect("there");
    let want = read(path).expect("it is whole");
    for bit in bits {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&turned, &bytes).expect("writable");
        match read(&turned) {
            Err(e) => assert_eq!(e.to_string().lines().count(), 1, "{e}"),
            // Metadata before a broken end are read, and say that the recording was cut.
            Ok(_) if is_cut(&turned) => {}
            Ok(found) => assert_eq!(found, want, "{}: bit {bit} gives other results in silence", path.display()),
        }
    }
}

/// The traces of the native format that come with the source, those that are broken by intention
/// left out.
fn shipped() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data");
    let all = fs::read_dir(folder).expect("there").map(|entry| entry.expect("readable").path());
    all.filter(|path| path.extension().is_some_and(|end| end == "parquet")).collect()
}

#[test]
fn regression_every_trace_that_is_shipped_carries_checksums_and_shows_damage() {
    let all = shipped();
    assert!(all.len() >= 2, "{all:?}");
    for path in all {
        let source = open(&path, &OpenOptions::default()).expect("a trace");
        assert!(source.header().has_checksums, "{}: refault trace convert writes them", path.display());
        let bits = fs::metadata(&path).expect("there").len() as usize * 8;
        let last = bits.min(16 * 1024);
        let n = spread();
        let all = (0..n).map(|i| i * (bits / n) + i % 8);
        turn(&path, all.chain((0..n).map(|i| bits - last + i * (last / n) + i % 8)));
    }
}

/// Cuts a file to many lengths, and adds to it: an error, or a recording that says that it was cut.
fn cut_and_add(path: &Path) {
    let dir = tempfile::tempdir().expect("a folder");
    let other = dir.path().join(path.file_name().expect("a name"));
    let whole = fs::read(path).expect("there");
    let n = spread();
    let cuts = (0..n).map(|i| whole[..i * (whole.len() / n)].to_vec());
    let last = (1..20).map(|i| whole[..whole.len() - i].to_vec());
    let added = [&b"x"[..], b"\0", b"PAR1", b"\n"].map(|more| [&whole[..], more].concat());
    for bytes in cuts.chain(last).chain(added) {
        fs::write(&other, &bytes).expect("writable");
        let (name, length) = (path.display(), bytes.len());
        match read(&other) {
            Err(e) => assert_eq!(e.to_string().lines().count(), 1, "{e}"),
            Ok(_) => {
                let said = is_cut(&other) && length < whole.len();
                assert!(said, "{name}: {length} of {} bytes, in silence", whole.len());
            }
        }
    }
}

/// A recording with metadata on the way, as recorders write them, that came to its end.
fn recording(folder: &Path) -> PathBuf {
    let path = folder.join("recording.parquet");
    let mut header = Header::new(Format::Native);
    header.objects = vec![ObjectInfo::new("f", ObjectKind::File)];
    header.recording = Some(Recording { cut: true, ..Recording::default() });
    let mut writer = NativeWriter::create_part(&path).expect("writable");
    for i in 0..4u64 {
        let records: Vec<_> = (0..50).map(|n| Record::touch(100 * i + 3 * n, Op::READ)).collect();
        writer.write(&records).expect("writable");
        writer.checkpoint(&header).expect("writable");
    }
    header.recording = Some(Recording::default());
    writer.finish(&header).expect("writable");
    path
}

/// A byte after the end of a recording was taken for the rest of one that was cut, without a word.
#[test]
fn regression_files_that_were_cut_or_added_to_say_so() {
    let dir = tempfile::tempdir().expect("a folder");
    let own = recording(dir.path());
    let bits = fs::metadata(&own).expect("there").len() as usize * 8;
    turn(&own, (0..bits).step_by(61));
    shipped().iter().chain([&own]).for_each(|path| cut_and_add(path));
}

/// A file with something behind its end was called cut.
#[test]
fn regression_bytes_behind_the_end_are_not_called_a_cut() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("t.parquet");
    let whole = fs::read(&shipped()[0]).expect("there");
    for bytes in [[&whole[..], b"garbage\n"].concat(), whole[..whole.len() - 9].to_vec()] {
        fs::write(&path, &bytes).expect("writable");
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("PAR1: the file is cut, or something follows its end"), "{error}");
    }
}
