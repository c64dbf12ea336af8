//! Knowledge of `refault record` besides accesses: pages that were in memory at its start, shared
//! memory, and reads that bypass the page cache.

use crate::common::command::error;
use crate::record::{record, recordable};
use refault_testing::{Need, require};
use refault_trace::{Header, ObjectInfo, Record, RecordKind, RecordSource as _};
use serde_json::Value;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Brings these pages of a file into memory and no others.
fn have_in_memory(path: &Path, pages: &[u64]) {
    let file = File::open(path).expect("there");
    file.sync_all().expect("written");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advised");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random).expect("advised");
    for page in pages {
        file.read_exact_at(&mut [0; 4096], page * 4096).expect("there");
    }
}

fn rows(dir: &Path) -> (Vec<Record>, Header) {
    let mut source = refault_trace::open(&dir.join("t.parquet"), &Default::default()).expect("whole");
    let (mut all, mut chunk) = (Vec::new(), Vec::with_capacity(refault_trace::CHUNK));
    while source.next_chunk(&mut chunk).expect("whole") {
        all.extend_from_slice(&chunk);
    }
    (all, source.header().clone())
}

fn object<'a>(header: &'a Header, name: &str) -> (u32, &'a ObjectInfo) {
    let at = header.objects.iter().position(|o| o.name.ends_with(name));
    let at = at.unwrap_or_else(|| panic!("{name} is not among {:?}", header.objects));
    (at as u32, &header.objects[at])
}

/// The pages of an object that were in memory at the start.
fn resident(rows: &[Record], object: u32) -> Vec<u64> {
    let rows = rows.iter().filter(|r| r.object == object && r.kind == RecordKind::Resident);
    rows.flat_map(|r| r.page..r.page + u64::from(r.pages)).collect()
}

#[test]
fn a_recorder_that_attaches_notes_what_is_in_memory() {
    let Some((dir, file)) = recordable() else { return };
    let beside = dir.path().join("below/beside");
    std::fs::create_dir(dir.path().join("below")).expect("ours");
    std::fs::write(&beside, vec![1; 20 * 4096]).expect("writable");
    have_in_memory(&file, &[3, 4, 17]);
    have_in_memory(&beside, &[0, 9]);
    let script = "exec 3<file; echo >ready; sleep 1.5; dd bs=4096 skip=3 count=4 <&3 >out 2>errors; sleep 0.2";
    // A log of the tests would be an open file of it, whose folder is looked at, too.
    let mut program = Command::new("sh");
    let program = program.args(["-c", script]).current_dir(dir.path()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut program = program.spawn().expect("it runs");
    let begun = Instant::now();
    while !dir.path().join("ready").exists() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_refault"));
    recorder.args(["record", "-o", "t.parquet", "--touches", "off", "--pid", &program.id().to_string()]);
    let done = recorder.current_dir(dir.path()).output().expect("it runs");
    program.wait().expect("it ends");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let (rows, header) = rows(dir.path());
    assert!(rows.is_sorted_by_key(|r| r.time_ns));
    let (number, about) = object(&header, "/file");
    assert!(about.residency_known && !about.shmem);
    assert_eq!(resident(&rows, number), [3, 4, 17]);
    assert_eq!(rows.iter().find(|r| r.object == number).map(|r| r.time_ns), Some(0), "before all else");
    let (number, about) = object(&header, "/below/beside");
    assert!(about.residency_known, "nobody has it open, but it is beside a file that somebody has");
    assert_eq!(resident(&rows, number), [0, 9]);
    let recording = header.recording.expect("a recording");
    assert_eq!(recording.attached, Some(true));
    assert!(recording.swap_max.is_some());
    assert!(recording.sees.iter().any(|what| what == "pages in memory at the start"), "{:?}", recording.sees);
}

#[test]
fn of_a_program_that_starts_it_is_known_what_was_in_memory() {
    let Some((dir, file)) = recordable() else { return };
    have_in_memory(&file, &[3, 4, 17]);
    let done = record(dir.path(), &["cat", "file"], &[]).output().expect("it runs");
    assert!(done.status.success());
    let (rows, header) = rows(dir.path());
    let (number, about) = object(&header, "/file");
    // By the time of the look all of it is there: the events say what came since.
    assert!(about.residency_known);
    assert_eq!(resident(&rows, number), [3, 4, 17]);
    assert_eq!(header.recording.expect("a recording").attached, Some(false));
}

#[test]
fn shared_memory_is_told_from_files() {
    let Some((dir, _)) = recordable() else { return };
    let program = "import mmap\n\
        m = mmap.mmap(-1, 1 << 20)\n\
        print(sum(m[at] for at in range(0, 1 << 20, 4096)))\n\
        print(len(open('file', 'rb').read()))\n";
    let done = record(dir.path(), &["python3", "-c", program], &[]).output().expect("it runs");
    let done = match String::from_utf8_lossy(&done.stderr).contains("python3: cannot be started") {
        true => Err("no python3"),
        false => Ok(done),
    };
    let Some(done) = require(Need::Python, done) else { return };
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let (rows, header) = rows(dir.path());
    assert!(!object(&header, "/file").1.shmem);
    let shared = header.objects.iter().position(|o| o.shmem).expect("shared memory is there");
    assert!(rows.iter().any(|r| r.object == shared as u32), "{:?}", header.objects[shared]);
}

#[test]
fn reads_that_bypass_the_page_cache_are_counted() {
    let Some((dir, _)) = recordable() else { return };
    let program = "dd if=file of=copy bs=16384 iflag=direct oflag=direct 2>/dev/null && cat /proc/self/exe >/dev/null";
    let mut command = record(dir.path(), &["sh", "-c", program], &["--json", "--touches", "off"]);
    let done = command.stdin(Stdio::null()).output().expect("it runs");
    let done = match done.status.success() {
        true => Ok(done),
        false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
    };
    // Not every file system has O_DIRECT.
    let Some(done) = require(Need::Tracefs, done) else { return };
    let json: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let direct = &json["direct"];
    assert_eq!((&direct["reads"], &direct["read_bytes"]), (&10.into(), &(40 * 4096).into()), "{json}");
    assert_eq!((&direct["writes"], &direct["write_bytes"]), (&10.into(), &(40 * 4096).into()), "{json}");
    let (_, header) = rows(dir.path());
    let of = |name: &str| object(&header, name).1.direct.map(|d| (d.reads, d.writes));
    assert_eq!((of("/file"), of("/copy")), (Some((10, 0)), Some((0, 10))));
    // In words, where it is most of what is read.
    std::fs::remove_file(dir.path().join("t.parquet")).expect("there");
    let program = "dd if=file of=/dev/null bs=4096 iflag=direct 2>/dev/null";
    let told = record(dir.path(), &["sh", "-c", program], &["--touches", "off"]).output().expect("it runs");
    let told = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.contains("40 reads") && told.contains("/file) bypass the page cache: memory.max"), "{told}");
}

#[test]
fn names_of_targets_that_are_not_there_name_what_is() {
    let Some((dir, _)) = recordable() else { return };
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_refault"));
    recorder.args(["record", "-o", "t.parquet", "--container", "no-such"]).current_dir(dir.path());
    let told = error(&recorder.output().expect("it runs"));
    assert!(told.contains("--container no-such: "), "{told}");
}
