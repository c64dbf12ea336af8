//! Archives of tar, made by GNU tar: one file in them is the trace.

use refault_trace::{Input, LoadOptions, OpenOptions, Trace, TraceError, open_input};
use std::io::{Cursor, Write};
use std::process::Command;

fn load(bytes: Vec<u8>) -> Result<Trace, TraceError> {
    let input = Input::from_reader("t.tar", Box::new(Cursor::new(bytes)))?;
    Trace::load(&mut open_input(input, &OpenOptions::default())?, &LoadOptions::default())
}

/// A header and its contents, filled up to a block of 512 bytes.
fn member(name: &str, kind: u8, contents: &[u8]) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[124..136].copy_from_slice(format!("{:011o} ", contents.len()).as_bytes());
    block[156] = kind;
    block[257..263].copy_from_slice(b"ustar\0");
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|b| u32::from(*b)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block.extend_from_slice(contents);
    block.resize(block.len().next_multiple_of(512), 0);
    block
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("in memory");
    encoder.finish().expect("in memory")
}

/// Line 1 is page 7, then pages 8 and 7 again: three accesses to two pages.
const TEXT: &[u8] = b"7\n8 w\n7\n";

#[test]
fn one_file_among_folders_and_notes_is_read() {
    let end = vec![0; 1024];
    let folder = member("d/", b'5', b"");
    let note = member("d/._t.txt", b'0', b"\0\x05\x16\x07");
    let archive = [folder.clone(), note, member("d/t.txt", b'0', TEXT), end.clone()].concat();
    let packed = [folder, member("d/t.txt.gz", b'0', &gzip(TEXT)), end].concat();
    for bytes in [archive.clone(), gzip(&archive), packed.clone(), gzip(&packed)] {
        let trace = load(bytes).expect("a trace");
        assert_eq!((trace.accesses.len(), trace.footprint_pages()), (3, 2));
    }
}

#[test]
fn several_files_damage_and_nothing_are_refused() {
    let one = member("a.txt", b'0', TEXT);
    let mut broken = one.clone();
    broken[130] = b'9';
    for (bytes, what) in [
        ([one.clone(), member("b.txt", b'0', TEXT)].concat(), "several files, such as a.txt and b.txt"),
        ([one.clone(), one[..300].to_vec()].concat(), "the tar data ends early"),
        (one[..514].to_vec(), "the tar data ends early"),
        (broken, "a checksum is wrong"),
        ([member("d/", b'5', b""), vec![0; 1024]].concat(), "holds no access"),
    ] {
        let error = load(bytes).expect_err(what).to_string();
        assert!(error.contains(what), "{what}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn archives_of_gnu_tar_are_read() {
    let folder = std::env::temp_dir().join(format!("tar-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("t.txt"), TEXT).expect("a file");
    let made = Command::new("tar").arg("-C").arg(&folder).args(["-cf", "-", "t.txt"]).output();
    std::fs::remove_dir_all(&folder).expect("removed");
    let Ok(made) = made.map(|made| made.stdout) else { return };
    assert_eq!(load(made).expect("a trace").accesses.len(), 3);
}
