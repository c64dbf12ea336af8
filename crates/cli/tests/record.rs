//! `refault record` and `refault verify`: on the kernel of this machine where it allows it, and on
//! recordings that are made up.

use crate::common::command::{Sandbox, error, ok};
use refault_testing::{Need, require};
use refault_trace::{
    Act, Advised, Format, Header, NativeWriter, ObjectInfo, ObjectKind, Op, Record, RecordSource as _, Recording,
    Series, Snapshot, TouchMethod, Via,
};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const PAGES: usize = 40;

/// A folder on a file system with a page cache, with a file of some pages in it; none: this machine
/// does not let us record.
pub fn recordable() -> Option<(tempfile::TempDir, PathBuf)> {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let file = dir.path().join("file");
    std::fs::write(&file, vec![7; PAGES * 4096]).expect("writable");
    let tried = record(dir.path(), &["cat", "file"], &[]).output().expect("it runs");
    let _ = std::fs::remove_file(dir.path().join("t.parquet"));
    let done = match tried.status.success() {
        true => Ok((dir, file)),
        false => Err(String::from_utf8_lossy(&tried.stderr).into_owned()),
    };
    require(Need::Tracefs, done)
}

#[test]
fn a_recording_in_progress_is_found_by_top_and_gone_after_it() {
    let Some((dir, _)) = recordable() else { return };
    let runtime = dir.path().join("runtime");
    let mut command = record(dir.path(), &["sh", "-c", "cat file >/dev/null; sleep 2"], &[]);
    let child = command.env("XDG_RUNTIME_DIR", &runtime).spawn().expect("it runs");
    let live = runtime.join("refault").join(format!("{}.prom", child.id()));
    let begun = std::time::Instant::now();
    while !live.exists() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let text = std::fs::read_to_string(&live).expect("a recording that lasts seconds is found");
    let mut top = Command::new(env!("CARGO_BIN_EXE_refault"));
    let told = error(&top.arg("top").env("XDG_RUNTIME_DIR", &runtime).output().expect("it runs"));
    assert!(told.contains("standard output is no terminal"), "{told}");
    assert!(text.contains("refault_record_info{command=\"sh -c cat file"), "{text}");
    assert!(text.contains("\nrefault_record_accesses_total ") && text.ends_with("# EOF\n"), "{text}");
    assert!(child.wait_with_output().expect("it ends").status.success());
    assert!(!live.exists(), "it is gone with the recorder");
}

/// `refault record FLAGS -o t.parquet -- WORDS` in a folder.
pub fn record(dir: &Path, words: &[&str], flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_refault"));
    command.args(["record", "-o", "t.parquet"]).args(flags).arg("--").args(words);
    command.current_dir(dir).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub fn info(path: &Path) -> Value {
    let s = Sandbox::new();
    serde_json::from_str(&ok(&s.run(&["trace", "info", "--json", path.to_str().expect("text")]))).expect("JSON")
}

#[test]
fn a_program_is_recorded_exactly() {
    let Some((dir, _)) = recordable() else { return };
    let program = "cat file file >out; cat file >/dev/null; rm out; exit 3";
    let done = record(dir.path(), &["sh", "-c", program], &["--json", "--touches", "off"]).output().expect("it runs");
    assert_eq!(done.status.code(), Some(3), "{}", String::from_utf8_lossy(&done.stderr));
    let json: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!(
        (&json["lost"], &json["exact"], &json["ended_by"]),
        (&0.into(), &true.into(), &"end of the program".into())
    );
    let info = info(&dir.path().join("t.parquet"));
    assert_eq!(info["accesses"], json["accesses"]);
    let objects = info["objects"].as_array().expect("objects");
    let of = |name: &str| objects.iter().find(|o| o["name"].as_str().is_some_and(|n| n.ends_with(name))).cloned();
    let file = of("/file").expect("the file has a name");
    assert_eq!((&file["pages"], &file["accesses"]), (&PAGES.into(), &(3 * PAGES).into()), "each read of a page, once");
    assert!(
        info["writes"].as_u64() >= Some(2 * PAGES as u64) || info["recording"]["sees"][1] == "faults on mapped files"
    );
    // What was written, and deleted.
    assert!(info["kernel"]["dropped"].as_u64() >= Some(2 * PAGES as u64), "{}", info["kernel"]);
    assert!(!dir.path().join("t.parquet.part").exists());
    let s = Sandbox::new();
    let path = dir.path().join("t.parquet");
    let verified = ok(&s.run(&["verify", path.to_str().expect("text")]));
    assert!(verified.contains("this kernel (inside: the bound is 0.5)"), "{verified}");
    ok(&s.replay(&path, &["--policy", "all", "--memory", "50%"]));
}

#[test]
fn a_recording_has_no_names_where_they_are_not_wanted() {
    let Some((dir, _)) = recordable() else { return };
    let done = record(dir.path(), &["cat", "file"], &["--anonymize"]).output().expect("it runs");
    assert!(done.status.success());
    let bytes = std::fs::read(dir.path().join("t.parquet")).expect("there");
    let has = |text: &[u8]| bytes.windows(text.len()).any(|w| w == text);
    assert!(!has(b"/file") && !has(b"cat") && has(b"file 0"));
}

#[test]
fn a_killed_recorder_leaves_what_it_had_and_the_next_one_works() {
    let Some((dir, _)) = recordable() else { return };
    let program = "echo $$ >pid; while :; do cat file >/dev/null; done";
    let mut recorder = record(dir.path(), &["sh", "-c", program], &[]).spawn().expect("it runs");
    let part = dir.path().join("t.parquet.part");
    for _ in 0..200 {
        std::thread::sleep(Duration::from_millis(100));
        let told = Command::new(env!("CARGO_BIN_EXE_refault")).args(["trace", "info"]).arg(&part).output();
        if told.expect("it runs").status.success() {
            break;
        }
    }
    recorder.kill().expect("SIGKILL");
    recorder.wait().expect("ended");
    let pid = std::fs::read_to_string(dir.path().join("pid")).expect("the program began");
    assert!(Command::new("kill").arg(pid.trim()).status().expect("kill").success());
    let info = info(&part);
    assert_eq!(info["recording"]["cut"], true);
    assert!(info["accesses"].as_u64() > Some(PAGES as u64));
    // Nobody writes over it, and nothing of the killed one is in the way.
    let refused = record(dir.path(), &["cat", "file"], &[]).output().expect("it runs");
    assert!(error(&refused).contains("t.parquet.part: is there"), "{refused:?}");
    std::fs::remove_file(&part).expect("there");
    assert!(record(dir.path(), &["cat", "file"], &[]).output().expect("it runs").status.success());
}

/// A program of C that touches so many pages, some of them again and again.
const TOUCHES: &str = r"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) {
    volatile char *all = aligned_alloc(4096, 600 * 4096);
    for (int page = 0; page < 600; page++) all[page * 4096] = 1;
    for (int round = 0; round < 60; round++) {
        usleep(20000);
        for (int page = 100; page < 110; page++) all[page * 4096] = round;
    }
    return 0;
}
";

#[test]
fn touches_in_place_are_sampled() {
    let Some((dir, _)) = recordable() else { return };
    let works = require(Need::Tracefs, refault_record::touches_possible(TouchMethod::WriteProtect));
    if works.is_none() {
        return;
    }
    std::fs::write(dir.path().join("t.c"), TOUCHES).expect("writable");
    let built = Command::new("cc").args(["-O1", "-o", "touch", "t.c"]).current_dir(dir.path()).status();
    assert!(built.expect("a compiler of C").success());
    let flags = ["--json", "--touches", "100ms", "--touches-by", "write-protect"];
    let done = record(dir.path(), &["sh", "-c", "cat file >/dev/null; ./touch"], &flags).output().expect("it runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let json: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!(json["touches_by"], "write-protect");
    let path = dir.path().join("t.parquet");
    let mut source = refault_trace::open(&path, &refault_trace::OpenOptions::default()).expect("readable");
    let (mut chunk, mut records) = (Vec::new(), Vec::new());
    while source.next_chunk(&mut chunk).expect("whole") {
        records.extend_from_slice(&chunk);
    }
    let objects = &source.header().objects;
    let of_memory = |r: &&Record| objects[r.object as usize].name.starts_with("memory of touch");
    let object = objects.iter().find(|o| o.name.starts_with("memory of touch")).expect("its memory is there");
    assert_eq!((object.kind, object.touches.map(|t| t.by)), (ObjectKind::Anon, Some(TouchMethod::WriteProtect)));
    let pages =
        |act: Act| records.iter().filter(of_memory).filter(|r| r.act == act).map(|r| u64::from(r.pages)).sum::<u64>();
    assert!((600..1200).contains(&pages(Act::Hit)), "first touches are faults: {}", pages(Act::Hit));
    assert!(pages(Act::Drop) >= 600, "all of it is gone at the end: {}", pages(Act::Drop));
    // The ten pages that are written all the time, in most of the twelve intervals.
    let again = pages(Act::Sampled);
    assert!((50..400).contains(&again), "{again} touches");
    let s = Sandbox::new();
    let path = path.to_str().expect("text");
    assert!(ok(&s.run(&["trace", "info", path])).contains("touches of memory in place: writes only, by write-protect"));
    let verified = ok(&s.run(&["verify", path]));
    assert!(verified.contains("(writes only, by write-protect, every 0."), "{verified}");
    let replayed = s.run(&["replay", path, "--memory", "50%"]);
    assert!(
        String::from_utf8_lossy(&replayed.stderr).contains("each is an accessed bit, seen at the end"),
        "{replayed:?}"
    );
}

#[test]
fn a_program_that_cannot_be_recorded_leaves_nothing() {
    let Some((dir, file)) = recordable() else { return };
    let before = std::fs::read_dir(dir.path()).expect("there").count();
    let done = record(dir.path(), &["/no/such/program"], &[]).output().expect("it runs");
    assert!(error(&done).contains("/no/such/program: cannot be started: No such file"), "{done:?}");
    let mut flags = Command::new(env!("CARGO_BIN_EXE_refault"));
    flags.args(["record", "-o", "t.parquet", "--pid", "4194303"]).current_dir(dir.path());
    assert!(error(&flags.output().expect("it runs")).contains("--pid 4194303: there is no such process"));
    let mut flags = Command::new(env!("CARGO_BIN_EXE_refault"));
    flags.args(["record", "-o", "t.parquet", "--cgroup", "/no/such/group"]).current_dir(dir.path());
    assert!(error(&flags.output().expect("it runs")).contains("memory cgroup"));
    assert_eq!(std::fs::read_dir(dir.path()).expect("there").count(), before);
    drop(file);
}

#[test]
fn mistakes_end_in_one_line() {
    let s = Sandbox::new();
    let trace = s.generate("plain.parquet", &["900: A:loop:300"]);
    let trace = trace.to_str().expect("text");
    let cases: &[(&[&str], &str)] = &[
        (&["record", "-o", "x"], "nothing to record; give -- COMMAND"),
        (&["record", "-o", "x", "--for", "5x", "--all"], "\"5x\" is not a time"),
        (&["record", "-o", "x", "--ring", "100K", "--all"], "--ring 100K: is a power of two"),
        (&["record", "-o", "x", "--memory", "1M", "--all", "--for", "1s"], "--memory: makes a group for a program"),
        (&["record", "-o", "x", "--all", "--touches", "1ms"], "10ms is the shortest interval"),
        (&["record", "-o", "x", "--all", "--touches", "1s", "--touches-by", "luck"], "is one of idle, soft-dirty"),
        (&["record", "-o", "x", "--all", "--touches-by", "idle"], "--touches"),
        (&["record", "--all"], "--output"),
        (&["verify", trace], "is no recording of a kernel: refault record makes one"),
        (&["verify"], "were not provided"),
        (&["verify", "--play", trace], "--memory"),
        (&["verify", "--play", trace, "--memory", "4K"], "--memory 4K: a group takes 1M at least"),
        (&["verify", "--play", trace, "x.parquet", "--memory", "4M"], "cannot be used with"),
        (&["verify", "--play", "no.parquet", "--memory", "4M"], "no.parquet: cannot be opened"),
        (&["verify", "--repeats", "2", trace], "--play"),
        (&["verify", "no.parquet"], "no.parquet: cannot be opened"),
    ];
    for (args, want) in cases {
        let complaint = error(&s.run(args));
        assert!(complaint.contains(want), "{args:?}: {complaint}");
    }
    assert_eq!(s.files(), ["plain.parquet"]);
}

/// A recording of a kernel that reads a file of 100 pages in rounds, each page by itself, in a
/// group of so many pages; `misses` says which accesses it had to read for.
pub fn made_up(path: &Path, memory_pages: u64, misses: impl Fn(u64) -> bool) {
    let snapshots = vec![Snapshot { time_ns: 0, values: vec![4096, 0] }];
    made_up_of(path, memory_pages, snapshots, misses);
}

/// The same, with looks at what the group is charged for: in all, and for files.
fn made_up_of(path: &Path, memory_pages: u64, snapshots: Vec<Snapshot>, misses: impl Fn(u64) -> bool) {
    let mut header = Header::new(Format::Native);
    header.objects = vec![ObjectInfo { pages: Some(100), ..ObjectInfo::new("/f", ObjectKind::File) }];
    let names = vec!["usage".to_owned(), "file".to_owned()];
    header.recording = Some(Recording {
        group: Some("/g".to_owned()),
        memory_max: Some(memory_pages * 4096),
        read_ahead_pages: Some(0),
        series: Series { names, snapshots },
        ..Recording::default()
    });
    let op = Op { write: false, via: Some(Via::Fd) };
    let mut writer = NativeWriter::create(path).expect("writable");
    for i in 0..1000 {
        // Strides, so that no read goes on from the last.
        let record = Record { time_ns: i * 1000, ..Record::touch(i * 37 % 100, op) };
        if misses(i) {
            writer.write(&[Record { act: Act::Add, ..record }, Record { act: Act::Miss, ..record }]).expect("writable");
        } else {
            writer.write(&[Record { act: Act::Hit, ..record }]).expect("writable");
        }
    }
    writer.finish(&header).expect("writable");
}

#[test]
fn a_verdict_goes_whole_into_a_file() {
    let s = Sandbox::new();
    let path = s.path("r.parquet");
    made_up(&path, 200, |i| i < 100);
    let recording = path.to_str().expect("text");
    for form in [&["--json"][..], &[]] {
        let printed = ok(&s.run(&[&["verify", recording], form].concat()));
        let file = s.path("verdict");
        let file = file.to_str().expect("text");
        assert_eq!(ok(&s.run(&[&["verify", recording, "-o", file], form].concat())), "");
        assert_eq!(std::fs::read_to_string(file).expect("a file"), printed);
    }
    for (output, words) in [(recording, "give --output another name"), ("no/such/file", "cannot be written")] {
        let said = error(&s.run(&["verify", recording, "--output", output]));
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn regression_a_program_that_grows_after_its_files_are_read_needs_its_memory() {
    let s = Sandbox::new();
    let path = s.path("r.parquet");
    // All files are in memory at the start; 700 pages of the program come later, without a file.
    let look = |time_ns, usage: u64| Snapshot { time_ns, values: vec![usage * 4096, 400_000] };
    made_up_of(&path, 1000, vec![look(0, 110), look(2_000_000, 800)], |_| false);
    let path = path.to_str().expect("text");
    let verdict = |memory: &str| {
        let json: Value = serde_json::from_str(&ok(&s.run(&["verify", path, "--json", "-m", memory]))).expect("JSON");
        json["verdict"].clone()
    };
    assert_eq!(verdict("1000p")["is_within"], true);
    let small = verdict("400p");
    assert_eq!(small["is_within"], false);
    assert!(small["text"].as_str().expect("text").contains("out of memory"), "{small}");
    let said = ok(&s.run(&["size", path, "--target", "hit_rate>1%", "--range", "400K..4M", "--resolution", "64K"]));
    let answer = said.lines().find_map(|line| line.strip_prefix("answer: ")).expect("an answer").to_owned();
    assert!(answer.contains("memory.max = 2.7M") || answer.contains("memory.max = 2.8M"), "{answer}");
}

#[test]
fn what_the_lab_does_otherwise_is_said() {
    let s = Sandbox::new();
    let path = s.path("r.parquet");
    // The file fits: it misses once for each page.
    made_up(&path, 400, |i| i < 100);
    let path = path.to_str().expect("text");
    let json: Value = serde_json::from_str(&ok(&s.run(&["verify", path, "--json", "--strict"]))).expect("JSON");
    assert_eq!((&json["agreement"], &json["kernel_hit_rate"]), (&1.0.into(), &0.9.into()));
    assert_eq!(json["windows"].as_array().map(Vec::len), Some(64));
    // In half the memory it does not: the lab misses nearly always.
    let output = s.run(&["verify", path, "--memory", "200K", "--strict"]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("points less than this kernel") && text.contains("the largest difference is /f"), "{text}");
    // Replay has the recorded limit among its sizes: here all of the footprint.
    let rows = ok(&s.run(&["replay", path, "--policy", "lru", "--json"]));
    assert!(rows.contains("\"memory_pages\":100,"), "{rows}");
}

/// Lab misses of reads in order of a file of 100 pages, which a program may have announced.
fn misses_in_order(path: &Path, s: &Sandbox, advised: Option<Advised>) -> u64 {
    let mut header = Header::new(Format::Native);
    header.objects = vec![ObjectInfo { pages: Some(100), ..ObjectInfo::new("/f", ObjectKind::File) }];
    header.recording = Some(Recording { read_ahead_pages: Some(32), ..Recording::default() });
    let op = Op { write: false, via: Some(Via::Fd) };
    let mut writer = NativeWriter::create(path).expect("writable");
    if let Some(advised) = advised {
        writer.write(&[Record { act: Act::Advise(advised), ..Record::touch(0, Op::READ) }]).expect("writable");
    }
    for i in 0..100 {
        writer.write(&[Record { act: Act::Miss, time_ns: i, ..Record::touch(i, op) }]).expect("writable");
    }
    writer.finish(&header).expect("writable");
    let output = ok(&s.run(&["verify", path.to_str().expect("text"), "--json"]));
    let json: Value = serde_json::from_str(&output).expect("JSON");
    json["by_descriptor"]["lab_misses"].as_u64().expect("a number")
}

#[test]
fn what_programs_announce_holds() {
    let s = Sandbox::new();
    let path = s.path("r.parquet");
    let plain = misses_in_order(&path, &s, None);
    assert!(plain < 10, "{plain} misses with readahead");
    assert_eq!(misses_in_order(&path, &s, Some(Advised::Random)), 100);
    assert_eq!(misses_in_order(&path, &s, Some(Advised::Normal)), plain);
}

/// What the lab misses of a file of 100 pages in memory for 60, by what a kernel did: times, what,
/// first page and pages.
fn lab_misses(path: &Path, s: &Sandbox, rows: &[(u64, Act, u64, u32)], via: Via) -> u64 {
    let mut header = Header::new(Format::Native);
    header.objects = vec![ObjectInfo { pages: Some(100), ..ObjectInfo::new("/f", ObjectKind::File) }];
    header.recording =
        Some(Recording { memory_max: Some(60 * 4096), read_ahead_pages: Some(0), ..Recording::default() });
    let mut writer = NativeWriter::create(path).expect("writable");
    let op = Op { write: false, via: Some(via) };
    for &(time_ns, act, page, pages) in rows {
        writer.write(&[Record { act, pages, time_ns, ..Record::touch(page, op) }]).expect("writable");
    }
    writer.finish(&header).expect("writable");
    let output = ok(&s.run(&["verify", path.to_str().expect("text"), "--json"]));
    let json: Value = serde_json::from_str(&output).expect("JSON");
    assert_eq!(json["by_descriptor"]["accesses"].as_u64() > Some(0), via == Via::Fd);
    json["lab_counters"]["pgalloc"].as_u64().expect("a number")
}

#[test]
fn regression_pages_that_only_the_lab_had_are_dropped_with_those_of_the_kernel() {
    let s = Sandbox::new();
    let path = s.path("r.parquet");
    // The kernel evicts all but every tenth page, and then drops the file; it is read again.
    let mut rows: Vec<_> = (0..40).map(|page| (page, Act::Miss, page, 1)).collect();
    rows.extend((0..40).filter(|page| page % 10 != 0).map(|page| (100, Act::Evict, page, 1)));
    let again = (0..30).map(|page| (5000, Act::Miss, page, 1));
    let mut dropped = rows.clone();
    dropped.extend((0..40).step_by(10).map(|page| (200, Act::Drop, page, 1)));
    dropped.extend(again.clone());
    // Up to the last one that was dropped the lab reads all pages again.
    assert_eq!(lab_misses(&path, &s, &dropped, Via::Fd), 70);
    rows.extend(again.clone());
    assert_eq!(lab_misses(&path, &s, &rows, Via::Fd), 40, "without a drop it has them");
    // Far apart in time they are drops of their own, and nothing is said of what is between.
    let mut apart: Vec<_> = (0..40).map(|page| (page, Act::Miss, page, 1)).collect();
    apart.extend((0..40).step_by(10).map(|page| (10_000_000 * (page + 1), Act::Drop, page, 1)));
    apart.extend(again.map(|(_, act, page, n)| (1_000_000_000, act, page, n)));
    assert_eq!(lab_misses(&path, &s, &apart, Via::Fd), 43);
}

#[test]
fn what_programs_want_and_do_not_want_is_done() {
    let s = Sandbox::new();
    let path = s.path("r.parquet");
    let advise = |advised, page, pages| (1000, Act::Advise(advised), page, pages);
    let touch = |page| (2000, Act::Hit, page, 1);
    let read: Vec<_> = (0..20).map(|page| (page, Act::Miss, page, 1)).collect();
    let with = |rows: &[(u64, Act, u64, u32)], via| {
        let rows: Vec<_> = read.iter().chain(rows).copied().collect();
        lab_misses(&path, &s, &rows, via)
    };
    assert_eq!(with(&[touch(0)], Via::Fd), 20);
    // The kernel had none of them any more, and says nothing of dropping them.
    let gone = (500, Act::Evict, 0, 20);
    assert_eq!(with(&[gone, advise(Advised::DontNeed, 0, 20), touch(0), touch(19)], Via::Fd), 22);
    // What is wanted comes in as far as the kernel brings it in, and what it had before is there.
    let wanted = [advise(Advised::WillNeed, 20, 40), (1100, Act::Add, 20, 8), touch(20), touch(27), touch(28)];
    assert_eq!(with(&wanted, Via::Fd), 29);
    let unasked = [(1100, Act::Add, 20, 8), touch(20), touch(28)];
    assert_eq!(with(&unasked, Via::Fd), 22, "without being asked it is the lab that reads ahead, or does not");
    // Mapped pages that are paged out are read anew.
    let out = [advise(Advised::PageOut, 5, 10), touch(4), touch(5)];
    assert_eq!(with(&out, Via::Map), 21);
    assert_eq!(with(&[advise(Advised::Cold, 5, 10), touch(4), touch(5)], Via::Map), 20);
}

#[test]
fn what_a_program_says_of_its_accesses_is_recorded() {
    let Some((dir, _)) = recordable() else { return };
    let program = "import mmap, os, time\n\
        f = open('file', 'rb'); fd = f.fileno()\n\
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_SEQUENTIAL)\n\
        os.posix_fadvise(fd, 8192, 4096, os.POSIX_FADV_WILLNEED)\n\
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)\n\
        m = mmap.mmap(fd, 0, prot=mmap.PROT_READ)\n\
        m.madvise(mmap.MADV_RANDOM, 4096, 12288)\n\
        m.madvise(mmap.MADV_WILLNEED)\n\
        print(m[0], m[40000])\n\
        time.sleep(0.2)\n";
    let done = record(dir.path(), &["python3", "-c", program], &[]).output();
    let done = match done {
        Ok(done) if String::from_utf8_lossy(&done.stderr).contains("python3: cannot be started") => Err("no python3"),
        Ok(done) => Ok(done),
        Err(_) => Err("it does not run"),
    };
    let Some(done) = require(Need::Python, done.map_err(str::to_owned)) else { return };
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let mut source = refault_trace::open(&dir.path().join("t.parquet"), &Default::default()).expect("whole");
    let (mut all, mut chunk) = (Vec::new(), Vec::with_capacity(refault_trace::CHUNK));
    while source.next_chunk(&mut chunk).expect("whole") {
        all.extend_from_slice(&chunk);
    }
    let file = source.header().objects.iter().position(|o| o.name.ends_with("/file")).expect("it is used") as u32;
    let said = all.iter().filter(|r| r.object == file).filter_map(|r| match r.act {
        Act::Advise(advised) => Some((advised, r.page, r.pages)),
        _ => None,
    });
    let pages = PAGES as u32;
    let want = [
        (Advised::Sequential, 0, 1),
        (Advised::WillNeed, 2, 1),
        (Advised::DontNeed, 0, pages),
        (Advised::MapRandom, 1, 3),
        (Advised::WillNeed, 0, pages),
    ];
    assert_eq!(said.collect::<Vec<_>>(), want);
}

#[test]
fn what_was_in_memory_before_is_no_miss() {
    let s = Sandbox::new();
    let path = s.path("r.parquet");
    made_up(&path, 400, |_| false);
    let json: Value =
        serde_json::from_str(&ok(&s.run(&["verify", path.to_str().expect("text"), "--json"]))).expect("JSON");
    assert_eq!(
        (&json["warm_pages"], &json["agreement"], &json["lab_hit_rate"]),
        (&100.into(), &1.0.into(), &1.0.into())
    );
}

#[test]
fn sizes_of_a_recording_stand_beside_the_recorded_one() {
    let s = Sandbox::new();
    let path = s.path("r.parquet");
    // A loop over 100 pages: all of it fits, or nothing helps.
    made_up(&path, 120, |i| i < 100);
    let path = path.to_str().expect("text");
    let flags = ["size", path, "--target", "hit_rate>80%"];
    let json: Value = serde_json::from_str(&ok(&s.run(&[&flags[..], &["--json"]].concat()))).expect("JSON");
    let recorded = &json["recorded"];
    assert_eq!((&recorded["pages"], &json["policy"]), (&120.into(), &"lru of Linux 6.12, readahead 0".into()));
    let points = json["points"].as_array().expect("points");
    assert!(points.is_sorted_by_key(|p| p["pages"].as_u64()));
    let at = |pages: u64| points.iter().find(|p| p["pages"] == pages).cloned();
    assert_eq!(at(120).expect("the recorded limit is tried")["misses"], recorded["misses"]);
    // As verify has it.
    let verified: Value = serde_json::from_str(&ok(&s.run(&["verify", path, "--json"]))).expect("JSON");
    assert_eq!(at(120).expect("tried")["hit_rate"], verified["lab_hit_rate"]);
    let half = &recorded["changes"][1];
    assert_eq!((&half["pages"], &half["object"]["name"]), (&60.into(), &"/f".into()));
    assert!(half["misses"].as_u64() > recorded["misses"].as_u64() && half["more_misses"].as_f64() > Some(8.0));
    let text = ok(&s.run(&flags));
    assert!(text.contains("\nas recorded, with 480.0K: "), "{text}");
    assert!(
        text.contains("\nwith half of it (240.0K) ") && text.contains(" more misses, of these 100 % of /f\n"),
        "{text}"
    );
    // What the recording says itself.
    let refused = error(&s.run(&[&flags[..], &["--memory", "1M"]].concat()));
    assert!(refused.contains("--memory: is for a trace, and") && refused.contains("a recording"), "{refused}");
}

#[test]
fn a_replay_without_flags_has_the_settings_of_the_recording() {
    let s = Sandbox::new();
    let path = s.path("r.parquet");
    made_up(&path, 80, |i| i % 3 == 0);
    let path = path.to_str().expect("text");
    let row = |flags: &[&str]| ok(&s.run(&[&["replay", path], flags, &["--json"]].concat()));
    let plain: Value = serde_json::from_str(&row(&[])).expect("JSON");
    assert_eq!(plain["rows"].as_array().map(Vec::len), Some(1));
    assert_eq!((&plain["rows"][0]["policy"], &plain["rows"][0]["memory_pages"]), (&"lru".into(), &80.into()));
    let with: Value = serde_json::from_str(&row(&["--policy", "mglru,opt", "--memory", "50p"])).expect("JSON");
    assert_eq!(with["rows"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_trace_is_played_on_this_kernel() {
    let Some((dir, _)) = recordable() else { return };
    let s = Sandbox::new();
    let folder = dir.path().to_str().expect("text");
    let play = |trace: &Path, flags: &[&str]| {
        s.run(&[&["verify", "--play", trace.to_str().expect("text"), "--folder", folder], flags].concat())
    };
    // All of it fits: a miss for each page, whatever the kernel.
    let fits = s.generate("fits.parquet", &["20000: A:zipf:500; B:uniform:100:via=map; C:uniform:100:kind=anon"]);
    let json = ok(&play(&fits, &["--memory", "16M", "--repeats", "2", "--strict", "--json"]));
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let row = &json["rows"][0];
    assert_eq!((&row["agreement"], &row["kernel_agreement"], &json["via"]), (&1.0.into(), &1.0.into(), &"both".into()));
    assert_eq!((&row["spread_points"], &row["memory_pages"]), (&0.0.into(), &4096.into()));
    // A loop that does not fit: the kernel misses nearly always.
    let looped = s.generate("loop.parquet", &["9000: A:loop:3000"]);
    let text = ok(&play(&looped, &["--memory", "4M,8M", "--repeats", "1"]));
    assert!(text.contains("played 1 times on Linux ") && text.contains("| loop | "), "{text}");
    // Anonymous memory needs swap, and files a disk.
    let anon = s.generate("anon.parquet", &["800000: A:seq:800000:kind=anon"]);
    let refused = error(&play(&anon, &["--memory", "1M"]));
    assert!(refused.contains("of free swap") || refused.is_empty(), "{refused}");
    let refused = error(&s.run(&["verify", "--play", "fits.parquet", "--folder", "/dev/shm", "--memory", "16M"]));
    assert!(refused.contains("/dev/shm: ") && refused.contains("--folder"), "{refused}");
    let groups = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"].into_iter().flat_map(std::fs::read_dir);
    assert!(!groups.flatten().flatten().any(|e| e.file_name().to_string_lossy().starts_with("refault-play-")));
}
