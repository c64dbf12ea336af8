//! Files with a bit that is not what it was: an error, or what the file held before.

use refault_trace::{OpenOptions, Record, RecordSource, TraceError, open};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// Bits that are turned in a large file, evenly over it; as many at its end, where what the file
/// says of itself is. In a small file each seventh is turned in `native`.
const SPREAD: usize = 60;

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
        let spread = (0..SPREAD).map(|i| i * (bits / SPREAD) + i % 8);
        turn(&path, spread.chain((0..SPREAD).map(|i| bits - last + i * (last / SPREAD) + i % 8)));
    }
}
