//! `refault record` and `refault verify`: on the kernel of this machine where it allows it.

use crate::common::command::{Sandbox, error, ok};
use refault_testing::{Need, require};
use refault_trace::{AdviceKind, ObjectKind, Record, RecordKind, RecordSource as _, TouchMethod};
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
    std::fs::create_dir(&runtime).expect("writable");
    let mut command = record(dir.path(), &["sh", "-c", "cat file >/dev/null; sleep 2"], &[]);
    let child = command.env("XDG_RUNTIME_DIR", &runtime).spawn().expect("it runs");
    let live = runtime.join("refault").join(format!("{}.prom", child.id()));
    let begun = std::time::Instant::now();
    while std::fs::metadata(&live).map_or(0, |file| file.len()) == 0 && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let text = std::fs::read_to_string(&live).expect("a recording that lasts seconds is found");
    let mut top = Command::new(env!("CARGO_BIN_EXE_refault"));
    let told = error(&top.arg("top").env("XDG_RUNTIME_DIR", &runtime).output().expect("it runs"));
    match told.contains("refault-run: not found") {
        true => refault_testing::absent(Need::RefaultRun, told.trim()),
        false => assert!(told.contains("standard output is no terminal"), "{told}"),
    }
    assert!(text.contains("refault_record_info{command=\"sh -c cat file"), "{text}");
    assert!(text.contains("\nrefault_record_accesses_total ") && text.ends_with("# EOF\n"), "{text}");
    assert!(child.wait_with_output().expect("it ends").status.success());
    assert!(!live.exists(), "it is gone with the recorder");
}

#[test]
fn regression_a_recording_leaves_no_folder_behind() {
    let Some((dir, _)) = recordable() else { return };
    let temp = dir.path().join("tmp");
    std::fs::create_dir(&temp).expect("writable");
    let mut command = record(dir.path(), &["cat", "file"], &[]);
    ok(&command.env_remove("XDG_RUNTIME_DIR").env("TMPDIR", &temp).output().expect("it runs"));
    let left: Vec<_> = std::fs::read_dir(&temp).expect("a folder").flatten().map(|entry| entry.path()).collect();
    assert_eq!(left, Vec::<PathBuf>::new());
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
    // Pages that were written and deleted.
    assert!(info["kernel"]["dropped"].as_u64() >= Some(2 * PAGES as u64), "{}", info["kernel"]);
    assert!(!dir.path().join("t.parquet.part").exists());
    let s = Sandbox::new();
    let path = dir.path().join("t.parquet");
    let verified = ok(&s.run(&["verify", path.to_str().expect("text")]));
    assert!(verified.contains("\ntrust it for hit rate, misses"), "{verified}");
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
    let pages = |kind: RecordKind| {
        records.iter().filter(of_memory).filter(|r| r.kind == kind).map(|r| u64::from(r.pages)).sum::<u64>()
    };
    assert!((600..1200).contains(&pages(RecordKind::Hit)), "first touches are faults: {}", pages(RecordKind::Hit));
    assert!(pages(RecordKind::Drop) >= 600, "all of it is gone at the end: {}", pages(RecordKind::Drop));
    // The ten pages that are written all the time, in most of the twelve intervals.
    let again = pages(RecordKind::Sampled);
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
    std::fs::write(s.path("notes"), "what was said\n").expect("ours");
    let cases: &[(&[&str], &str)] = &[
        (&["record", "-o", "x"], "nothing to record; give -- COMMAND"),
        (&["record", "x", "sleep", "1"], "the program behind --: refault record -o x -- sleep 1"),
        (&["record", "-o", "x", "sleep", "1"], "the program goes behind --: refault record -o x -- sleep 1"),
        (&["record", "-o", "x", "--unit", "a", "--pod", "b"], "cannot be used with"),
        (&["record", "-o", "x", "--for", "5x", "--all"], "\"5x\" is not a time"),
        (&["record", "-o", "x", "--ring", "100K", "--all"], "--ring 100K: must be a power of two"),
        (&["record", "-o", "x", "--memory", "1M", "--all", "--for", "1s"], "--memory: makes a group for a program"),
        (&["record", "-o", "x", "--all", "--touches", "1ms"], "10ms is the shortest interval"),
        (&["record", "-o", "x", "--all", "--touches", "1s", "--touches-by", "luck"], "is one of idle, soft-dirty"),
        (&["record", "-o", "x", "--all", "--touches-by", "idle"], "--touches"),
        (&["record", "-o", "x", "--all", "--touches", "0"], "give 10ms or more, or off"),
        (&["record", "-o", "x", "--all", "--max-size", "0"], "--max-size 0: no file is that small"),
        (&["record", "--all"], "--output"),
        (&["verify", "notes"], "notes: is no recording of a kernel"),
        (&["verify", trace], "is no recording of a kernel: refault record makes one"),
        (&["verify"], "were not provided"),
        (&["verify", "--play", trace], "--memory"),
        (&["verify", "--play", trace, "--memory", "4K"], "--memory 4K: a group takes 1M at least"),
        (&["verify", "--play", trace, "x.parquet", "--memory", "4M"], "cannot be used with"),
        (&["verify", "--play", "no.parquet", "--memory", "4M"], "no.parquet: cannot be opened"),
        (&["verify", "--repeats", "2", trace], "--repeats: is for --play, and no trace is played"),
        (&["verify", "no.parquet"], "no.parquet: cannot be opened"),
    ];
    for (args, want) in cases {
        let complaint = error(&s.run(args));
        assert!(complaint.contains(want), "{args:?}: {complaint}");
    }
    assert_eq!(s.files(), ["notes", "plain.parquet"]);
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
    let said = all.iter().filter(|r| r.object == file).filter_map(|r| match r.kind {
        RecordKind::Advise(advised) => Some((advised, r.page, r.pages)),
        _ => None,
    });
    let pages = PAGES as u32;
    let want = [
        (AdviceKind::Sequential, 0, 1),
        (AdviceKind::WillNeed, 2, 1),
        (AdviceKind::DontNeed, 0, pages),
        (AdviceKind::MapRandom, 1, 3),
        (AdviceKind::WillNeed, 0, pages),
    ];
    assert_eq!(said.collect::<Vec<_>>(), want);
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
    let of = |key: &str| row[key].as_f64().expect("a number");
    // On a busy machine the kernel may take a page or two before it has to.
    assert!(of("agreement").min(of("kernel_agreement")) > 0.999 && of("spread_points") < 0.1, "{row}");
    assert_eq!((&row["memory_pages"], &json["via"]), (&4096.into(), &"both".into()));
    // A loop that does not fit: the kernel misses nearly always.
    let looped = s.generate("loop.parquet", &["9000: A:loop:3000"]);
    let text = ok(&play(&looped, &["--memory", "4M,8M", "--repeats", "1"]));
    assert!(text.contains("played once on Linux ") && text.contains("| loop | "), "{text}");
    // Anonymous memory needs swap, and files a disk.
    let anon = s.generate("anon.parquet", &["800000: A:seq:800000:kind=anon"]);
    let refused = error(&play(&anon, &["--memory", "1M"]));
    assert!(refused.contains("of free swap") || refused.is_empty(), "{refused}");
    let refused = error(&s.run(&["verify", "--play", "fits.parquet", "--folder", "/dev/shm", "--memory", "16M"]));
    assert!(refused.contains("/dev/shm: ") && refused.contains("--folder"), "{refused}");
    let groups = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"].into_iter().flat_map(std::fs::read_dir);
    assert!(!groups.flatten().flatten().any(|e| e.file_name().to_string_lossy().starts_with("refault-play-")));
}
