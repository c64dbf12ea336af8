//! `refault verify`, `size` and `replay` of recordings that are made up.

use crate::common::command::{Sandbox, error, ok};
use crate::report::{document, root};
use refault_testing::short_or_long;
use refault_trace::{
    AdviceKind, Format, Header, NativeWriter, ObjectInfo, ObjectKind, Op, Record, RecordKind, RecordSource as _,
    Recording, Series, Snapshot, Via,
};
use serde_json::Value;
use std::path::Path;

/// A recording of a kernel that reads a file of 100 pages in rounds, each page by itself, in a
/// group of so many pages; `misses` says which accesses it had to read for.
pub fn made_up(path: &Path, memory_pages: u64, misses: impl Fn(u64) -> bool) {
    made_up_of(path, memory_pages, looks(&[(0, 4096, 0)]), misses);
}

/// Looks at what the group is charged for, at times in ns: bytes in all, and for files.
fn looks(at: &[(u64, u64, u64)]) -> Series {
    let look = |&(time_ns, usage, file)| Snapshot { time_ns, values: vec![usage, file] };
    Series { names: vec!["usage".to_owned(), "file".to_owned()], snapshots: at.iter().map(look).collect() }
}

/// The same, with looks at the group.
pub fn made_up_of(path: &Path, memory_pages: u64, series: Series, misses: impl Fn(u64) -> bool) {
    made_up_of_accesses(path, memory_pages, 1000, series, misses);
}

/// The same, of so many accesses.
fn made_up_of_accesses(path: &Path, memory_pages: u64, accesses: u64, series: Series, misses: impl Fn(u64) -> bool) {
    let mut header = Header::new(Format::Native);
    header.objects = vec![ObjectInfo { pages: Some(100), ..ObjectInfo::new("/f", ObjectKind::File) }];
    header.recording = Some(Recording {
        group: Some("/g".to_owned()),
        memory_max: Some(memory_pages * 4096),
        read_ahead_pages: Some(0),
        series,
        ..Recording::default()
    });
    let op = Op { write: false, via: Some(Via::Fd) };
    let mut writer = NativeWriter::create(path).expect("writable");
    for i in 0..accesses {
        // Strides, so that no read goes on from the last.
        let record = Record { time_ns: i * 1000, ..Record::touch(i * 37 % 100, op) };
        if misses(i) {
            writer
                .write(&[Record { kind: RecordKind::Add, ..record }, Record { kind: RecordKind::Miss, ..record }])
                .expect("writable");
        } else {
            writer.write(&[Record { kind: RecordKind::Hit, ..record }]).expect("writable");
        }
    }
    writer.finish(&header).expect("writable");
}

#[test]
fn a_recording_without_a_group_says_that_its_sizes_are_of_files() {
    let s = Sandbox::new();
    let path = s.path("r.parquet");
    made_up(&path, 200, |i| i < 100);
    let recording = path.to_str().expect("text");
    let said = |words: &[&str]| String::from_utf8(s.run(words).stderr).expect("text");
    let size = ["size", recording, "--target", "hit_rate>50%"];
    assert!(!said(&size).contains("without a memory cgroup"));
    // More than is touched is cut down page by page, and that is said.
    assert!(!said(&["replay", recording]).contains("the recorded limit"));
    let told = said(&["replay", recording, "--page-by-page"]);
    assert!(told.contains("the recorded limit of 800.0K is more than all that the trace touches (400.0K)"), "{told}");
    let mut source = refault_trace::open(&path, &refault_trace::OpenOptions::default()).expect("ours");
    let (mut records, mut chunk) = (Vec::new(), Vec::new());
    while source.next_chunk(&mut chunk).expect("ours") {
        records.extend_from_slice(&chunk);
    }
    let mut header = source.header().clone();
    if let Some(recording) = &mut header.recording {
        recording.group = None;
    }
    let mut writer = NativeWriter::create(&path).expect("writable");
    writer.write(&records).expect("writable");
    writer.finish(&header).expect("writable");
    let told = said(&size);
    assert!(told.contains("was recorded without a memory cgroup, so that sizes are of pages of files only"), "{told}");
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

/// Another limit or policy than was recorded is said beside it, and gives no verdict on trust.
#[test]
fn regression_another_limit_says_nothing_about_trust() {
    let s = Sandbox::new();
    let path = s.path("r.parquet");
    made_up(&path, 200, |i| i < 100);
    let path = path.to_str().expect("text");
    for (flags, said, settings) in [
        (["--memory", "400p"], "limit           1.6M (--memory; recorded 800.0K)", "memory"),
        (["--policy", "mglru"], "mglru (--policy; recorded lru)", "policy"),
    ] {
        let words = [&["verify", path], &flags[..]].concat();
        let text = ok(&s.run(&words));
        let line = format!("settings: {}\n", flags.join(" "));
        assert!(text.contains(said) && text.contains(&line), "{text}");
        assert!(text.contains("says nothing about trust") && !text.contains("trust it"), "{text}");
        let json: Value = serde_json::from_str(&ok(&s.run(&[&words[..], &["--json"]].concat()))).expect("JSON");
        assert_eq!((&json["settings"][settings], &json["verdict"]["is_within"]), (&flags[1].into(), &false.into()));
    }
    // As recorded, it is.
    let text = ok(&s.run(&["verify", path, "--memory", "200p"]));
    assert!(text.contains("trust it for") && !text.contains("; recorded"), "{text}");
}

#[test]
fn regression_a_hit_rate_near_100_percent_hides_no_misses() {
    let s = Sandbox::new();
    let path = s.path("r.parquet");
    // The lab misses each page once; the kernel missed 400 of 100,000 times and more.
    made_up_of_accesses(&path, 200, 100_000, looks(&[(0, 4096, 0)]), |i| i < 100 || i % 333 == 0);
    let path = path.to_str().expect("text");
    let json: Value = serde_json::from_str(&ok(&s.run(&["verify", path, "--json"]))).expect("JSON");
    let verdict = &json["verdict"];
    assert_eq!((&verdict["is_within"], &verdict["not_for"][0]["metric"]), (&false.into(), &"misses".into()));
    assert_eq!(verdict["not_for"][0]["why"], "the lab has 100, the kernel 400");
    assert_eq!(verdict["trust_for"], serde_json::json!(["hit_rate", "single_accesses"]));
    assert_eq!(s.run(&["verify", path, "--strict"]).status.code(), Some(1));
    assert_eq!(json["refaults"]["kernel"], Value::Null, "no counter");
}

#[test]
fn regression_a_program_that_grows_after_its_files_are_read_needs_its_memory() {
    let s = Sandbox::new();
    let path = s.path("r.parquet");
    // All files are in memory at the start; 700 pages of the program come later, without a file.
    let series = looks(&[(0, 110 * 4096, 400_000), (2_000_000, 800 * 4096, 400_000)]);
    made_up_of(&path, 1000, series, |_| false);
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
    assert!(answer.contains("memory.max = 2.75M"), "{answer}");
}

#[test]
fn regression_shared_memory_takes_room_from_files() {
    // The limit of 150 pages has 60 of shared memory, which the kernel counts as files, too.
    let shmem = ["file", "shmem"].map(str::to_owned).to_vec();
    let lists = ["file", "anon", "inactive_anon", "active_anon"].map(str::to_owned).to_vec();
    for (names, values) in [(shmem, vec![100, 60]), (lists, vec![100, 10, 70, 0])] {
        let s = Sandbox::new();
        let path = s.path("r.parquet");
        let values: Vec<u64> = [110].into_iter().chain(values).map(|pages| pages * 4096).collect();
        let names = ["usage".to_owned()].into_iter().chain(names).collect();
        made_up_of(&path, 150, Series { names, snapshots: vec![Snapshot { time_ns: 0, values }] }, |_| true);
        let said = ok(&s.run(&["verify", path.to_str().expect("text"), "--json"]));
        let json: Value = serde_json::from_str(&said).expect("JSON");
        // 80 pages are left for a file of 100 that is read round and round.
        assert!(json["lab_hit_rate"].as_f64().expect("a number") < 0.1, "{json}");
    }
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
    let want = "the lab has 200.0K, the recording 1.6M: a comparison in another limit, policy or kernel says nothing";
    assert!(text.contains(want) && !text.contains("this kernel"), "{text}");
    let other = s.path("other.parquet");
    made_up(&other, 50, |i| i < 100);
    let text = ok(&s.run(&["verify", other.to_str().expect("text")]));
    assert!(text.contains("points less than this kernel") && text.contains("the largest difference is /f"), "{text}");
    // Replay has the recorded limit; page by page no more than the footprint.
    for (flags, pages) in [(&[][..], 400), (&["--page-by-page"], 100)] {
        let rows = ok(&s.run(&[&["replay", path, "--policy", "lru", "--json"], flags].concat()));
        assert!(rows.contains(&format!("\"memory_pages\":{pages},")), "{rows}");
    }
}

/// Lab misses of reads in order of a file of 100 pages, which a program may have announced.
fn misses_in_order(path: &Path, s: &Sandbox, advised: Option<AdviceKind>) -> u64 {
    let mut header = Header::new(Format::Native);
    header.objects = vec![ObjectInfo { pages: Some(100), ..ObjectInfo::new("/f", ObjectKind::File) }];
    header.recording = Some(Recording { read_ahead_pages: Some(32), ..Recording::default() });
    let op = Op { write: false, via: Some(Via::Fd) };
    let mut writer = NativeWriter::create(path).expect("writable");
    if let Some(advised) = advised {
        writer.write(&[Record { kind: RecordKind::Advise(advised), ..Record::touch(0, Op::READ) }]).expect("writable");
    }
    for i in 0..100 {
        writer.write(&[Record { kind: RecordKind::Miss, time_ns: i, ..Record::touch(i, op) }]).expect("writable");
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
    assert_eq!(misses_in_order(&path, &s, Some(AdviceKind::Random)), 100);
    assert_eq!(misses_in_order(&path, &s, Some(AdviceKind::Normal)), plain);
}

#[test]
fn regression_the_lab_does_not_read_ahead_what_is_written_later() {
    let s = Sandbox::new();
    let path = s.path("r.parquet");
    // Ten pages are read to their end; then the file grows by ten, which are new to the kernel.
    let misses = |first_pages: Option<u64>| {
        let mut header = Header::new(Format::Native);
        let file = ObjectInfo { pages: Some(10), first_pages, ..ObjectInfo::new("/f", ObjectKind::File) };
        header.objects = vec![file];
        header.recording = Some(Recording { read_ahead_pages: Some(32), ..Recording::default() });
        let mut writer = NativeWriter::create(&path).expect("writable");
        writer.write(&[Record { kind: RecordKind::Add, pages: 10, ..Record::touch(0, Op::READ) }]).expect("writable");
        for page in 0..20 {
            let op = Op { write: page >= 10, via: Some(Via::Fd) };
            let kind = if page == 0 || page >= 10 { RecordKind::Miss } else { RecordKind::Hit };
            writer.write(&[Record { kind, time_ns: page, ..Record::touch(page, op) }]).expect("writable");
        }
        writer.finish(&header).expect("writable");
        let output = ok(&s.run(&["verify", path.to_str().expect("text"), "--json"]));
        let json: Value = serde_json::from_str(&output).expect("JSON");
        json["by_descriptor"]["lab_misses"].as_u64().expect("a number")
    };
    let known = misses(Some(10));
    assert_eq!(known, 11, "of the ten that are written each, and the first that is read");
    // Recordings that do not say it are replayed as before.
    let old = misses(None);
    assert!(old < 10, "{old}");
}

/// Misses of the lab on a file of 100 pages in memory for 60. A row is an act of the kernel: its
/// time, the act, first page and pages.
fn lab_misses(path: &Path, s: &Sandbox, rows: &[(u64, RecordKind, u64, u32)], via: Via) -> u64 {
    let mut header = Header::new(Format::Native);
    header.objects = vec![ObjectInfo { pages: Some(100), ..ObjectInfo::new("/f", ObjectKind::File) }];
    header.recording =
        Some(Recording { memory_max: Some(60 * 4096), read_ahead_pages: Some(0), ..Recording::default() });
    let mut writer = NativeWriter::create(path).expect("writable");
    let op = Op { write: false, via: Some(via) };
    for &(time_ns, kind, page, pages) in rows {
        writer.write(&[Record { kind, pages, time_ns, ..Record::touch(page, op) }]).expect("writable");
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
    let mut rows: Vec<_> = (0..40).map(|page| (page, RecordKind::Miss, page, 1)).collect();
    rows.extend((0..40).filter(|page| page % 10 != 0).map(|page| (100, RecordKind::Evict, page, 1)));
    let again = (0..30).map(|page| (5000, RecordKind::Miss, page, 1));
    let mut dropped = rows.clone();
    dropped.extend((0..40).step_by(10).map(|page| (200, RecordKind::Drop, page, 1)));
    dropped.extend(again.clone());
    // Up to the last one that was dropped the lab reads all pages again.
    assert_eq!(lab_misses(&path, &s, &dropped, Via::Fd), 70);
    rows.extend(again.clone());
    assert_eq!(lab_misses(&path, &s, &rows, Via::Fd), 40, "without a drop it has them");
    // Far apart in time they are drops of their own, and nothing is said of what is between.
    let mut apart: Vec<_> = (0..40).map(|page| (page, RecordKind::Miss, page, 1)).collect();
    apart.extend((0..40).step_by(10).map(|page| (10_000_000 * (page + 1), RecordKind::Drop, page, 1)));
    apart.extend(again.map(|(_, kind, page, n)| (1_000_000_000, kind, page, n)));
    assert_eq!(lab_misses(&path, &s, &apart, Via::Fd), 43);
}

#[test]
fn regression_a_page_that_is_mapped_anew_was_touched_twice() {
    let s = Sandbox::new();
    let path = s.path("r.parquet");
    let touch = |kind| move |page| (page, kind, page, 1);
    let code = (0, RecordKind::Advise(AdviceKind::MapExecutable), 0, 10);
    // Ten pages, then 400 touches of the 90 others in turn, then the ten again.
    let with = |again: &[(u64, RecordKind, u64, u32)]| {
        let mut rows: Vec<_> = (0..10).map(touch(RecordKind::Miss)).collect();
        rows.extend_from_slice(again);
        rows.extend((0..400).map(|i| (1000 + i, RecordKind::Miss, 10 + i % 90, 1)));
        let others = lab_misses(&path, &s, &rows, Via::Map);
        rows.extend((0..10).map(|page| (2000, RecordKind::Hit, page, 1)));
        lab_misses(&path, &s, &rows, Via::Map) - others
    };
    assert_eq!(with(&[]), 10, "they are gone");
    let again: Vec<_> = (0..10).map(touch(RecordKind::Hit)).collect();
    assert_eq!(with(&again), 0);
    assert_eq!(with(&[&[code], &again[..]].concat()), 0, "a loader maps code over what it mapped before");
}

#[test]
fn what_programs_want_and_do_not_want_is_done() {
    let s = Sandbox::new();
    let path = s.path("r.parquet");
    let advise = |advised, page, pages| (1000, RecordKind::Advise(advised), page, pages);
    let touch = |page| (2000, RecordKind::Hit, page, 1);
    let read: Vec<_> = (0..20).map(|page| (page, RecordKind::Miss, page, 1)).collect();
    let with = |rows: &[(u64, RecordKind, u64, u32)], via| {
        let rows: Vec<_> = read.iter().chain(rows).copied().collect();
        lab_misses(&path, &s, &rows, via)
    };
    assert_eq!(with(&[touch(0)], Via::Fd), 20);
    // The kernel had none of them any more, and says nothing of dropping them.
    let gone = (500, RecordKind::Evict, 0, 20);
    assert_eq!(with(&[gone, advise(AdviceKind::DontNeed, 0, 20), touch(0), touch(19)], Via::Fd), 22);
    // Wanted pages come in as far as the kernel brings them in, and those it had before are there.
    let wanted =
        [advise(AdviceKind::WillNeed, 20, 40), (1100, RecordKind::Add, 20, 8), touch(20), touch(27), touch(28)];
    // Page 28 was there before the recording, which does not count.
    assert_eq!(with(&wanted, Via::Fd), 28);
    let unasked = [(1100, RecordKind::Add, 20, 8), touch(20), touch(28)];
    assert_eq!(with(&unasked, Via::Fd), 21, "without being asked it is the lab that reads ahead, or does not");
    // Mapped pages that are paged out are read anew.
    let out = [advise(AdviceKind::PageOut, 5, 10), touch(4), touch(5)];
    assert_eq!(with(&out, Via::Map), 21);
    assert_eq!(with(&[advise(AdviceKind::Cold, 5, 10), touch(4), touch(5)], Via::Map), 20);
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
        text.contains("\nwith half of it (240.0K) ") && text.contains(" more misses, of these 100 % of /f; "),
        "{text}"
    );
    // A recording has its own limit.
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
fn two_recordings_of_one_program_are_compared() {
    let s = Sandbox::new();
    let paths = ["a.parquet", "b.parquet"].map(|name| s.path(name));
    made_up(&paths[0], 200, |i| i < 100);
    made_up(&paths[1], 200, |i| i < 100 || i == 500);
    let [first, second] = [&paths[0], &paths[1]].map(|path| path.to_str().expect("text"));
    let words = ["verify", first, "--beside", second];
    let json: Value = serde_json::from_str(&ok(&s.run(&[&words[..], &["--json", "--strict"]].concat()))).expect("JSON");
    assert_eq!((&json["first_misses"], &json["second_misses"]), (&100.into(), &101.into()));
    assert_eq!((&json["agreement"], &json["files"], &json["accesses"]), (&0.999.into(), &1.into(), &1000.into()));
    assert_eq!((&json["first"]["left_out"], &json["objects"][0]["name"]), (&0.into(), &"/f".into()));
    assert_eq!(json["windows"].as_array().map(Vec::len), Some(64));
    let text = ok(&s.run(&words));
    assert!(text.contains("the second time the kernel hits 0.10 points less than the first time"), "{text}");
    // The same program in half the memory is not within.
    made_up(&paths[1], 100, |_| true);
    let output = s.run(&[&words[..], &["--strict"]].concat());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    // Another program, or one that ends earlier.
    let op = Op { write: false, via: Some(Via::Fd) };
    for (pages, where_) in [
        (vec![0, 37, 5], "then page 74 is read in the first, and page 5 is read in the second"),
        (vec![0, 37], "and the second ends"),
    ] {
        let mut header = Header::new(Format::Native);
        header.objects = vec![ObjectInfo::new("/f", ObjectKind::File)];
        header.recording = Some(Recording::default());
        let mut writer = NativeWriter::create(&paths[1]).expect("writable");
        writer
            .write(
                &pages
                    .iter()
                    .map(|&page| Record { kind: RecordKind::Hit, ..Record::touch(page, op) })
                    .collect::<Vec<_>>(),
            )
            .expect("writable");
        writer.finish(&header).expect("writable");
        let said = error(&s.run(&words));
        assert!(said.contains("of 1000 to /f 2 agree") && said.contains(where_), "{said}");
    }
    let said = error(&s.run(&[&words[..], &["-o", second]].concat()));
    assert!(said.contains("give --output another name"), "{said}");
}

/// One recording, one limit, one question: the same figures, whoever is asked.
#[test]
fn every_command_has_the_same_figures_of_a_recording() {
    let s = Sandbox::new();
    let made = s.path("r.parquet");
    // More than fits, beside 20 pages that are not of files.
    made_up_of(&made, 90, looks(&[(0, 30 * 4096, 10 * 4096)]), |i| i % 3 == 0);
    let real = root().join("data/orders.parquet");
    for path in [made, real].into_iter().take(short_or_long(1, 2)) {
        let path = path.to_str().expect("text");
        let parsed = |words: &[&str]| -> Value {
            serde_json::from_str(&ok(&s.run(&[words, &["--json"]].concat()))).expect("JSON")
        };
        let verified = parsed(&["verify", path]);
        let rows = parsed(&["replay", path]);
        let row = &rows["rows"][0];
        let limit = verified["memory_pages"].clone();
        assert_eq!(rows["rows"].as_array().map(Vec::len), Some(1));
        assert_eq!((&row["memory_pages"], &row["accesses"]), (&limit, &verified["accesses"]), "{path}");
        assert_eq!(row["hit_rate"], verified["lab_hit_rate"], "{path}");
        let lab = &verified["disk_reads"]["lab"];
        assert_eq!((&row["read_pages"], &row["reads"]), (&lab["read_pages"], &lab["reads"]), "{path}");
        assert_eq!(row["counters"], verified["lab_counters"]);
        // The recorded limit is among the sizes that are tried.
        // A made-up kernel misses otherwise than the lab, so that there may be no answer.
        let sized = s.run(&["size", path, "--target", "hit_rate>1%", "--json"]).stdout;
        let sized: Value = serde_json::from_slice(&sized).expect("JSON");
        let recorded = &sized["recorded"];
        assert_eq!((&recorded["pages"], &recorded["misses"]), (&limit, &row["misses"]), "{path}");
        assert_eq!(recorded["read_bytes"].as_u64(), row["read_pages"].as_u64().map(|pages| 4096 * pages));
        // The page has it, too, in its curve and in its details.
        let page = s.path("page.html");
        let page_text = page.to_str().expect("text");
        ok(&s.run(&["report", path, "-o", page_text, "--policy", "lru", "--memory", "60p"]));
        let document = document(&page);
        let (curve, detail) = (&document["curves"][0], &document["details"][0]);
        let at =
            curve["pages"].as_array().and_then(|all| all.iter().position(|pages| *pages == limit)).expect("a point");
        assert_eq!((&curve["read_pages"][at], &document["limit_pages"]), (&row["read_pages"], &limit), "{path}");
        assert_eq!((&detail["misses"], &detail["accesses"]), (&row["misses"], &row["accesses"]), "{path}");
        let sum = |key: &str| detail[key].as_array().into_iter().flatten().filter_map(Value::as_u64).sum::<u64>();
        assert_eq!(
            (Some(sum("window_misses")), Some(sum("object_misses"))),
            (row["misses"].as_u64(), row["misses"].as_u64())
        );
        // As text and as CSV.
        let csv = ok(&s.run(&["replay", path, "--csv"]));
        let field = |name: &str| {
            let at = csv.lines().next().and_then(|head| head.split(',').position(|field| field == name));
            csv.lines().nth(1).expect("a row").split(',').nth(at.expect("a column")).expect("a field").to_owned()
        };
        for name in ["accesses", "hits", "misses", "read_pages", "reads"] {
            assert_eq!(field(name), row[name].to_string(), "{name} of {path}");
        }
        let percent = format!("{:.2}%", 100.0 * row["hit_rate"].as_f64().expect("a number"));
        let misses = grouped(row["misses"].as_u64().expect("a number"));
        for words in [&["replay", path][..], &["verify", path]] {
            let text = ok(&s.run(words));
            assert!(text.contains(&percent) && text.contains(&misses), "{percent}, {misses}: {text}");
        }
        assert!(ok(&s.run(&["replay", path])).contains("as recorded, with readahead: a miss is a wait for a page"));
        // Page by page it is another question, and says so.
        let pages = ok(&s.run(&["replay", path, "--page-by-page"]));
        assert!(pages.contains("page by page, without readahead: a miss is a page that was not in memory"), "{pages}");
        let refused = error(&s.run(&["replay", path, "--sample", "10%"]));
        assert!(refused.contains("--sample: ") && refused.contains("add --page-by-page"), "{refused}");
    }
}

fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(|part| String::from_utf8_lossy(part)).collect();
    groups.join(",")
}

/// Page cache events of a machine that reads a file of 400 pages in rounds and keeps all of it, and
/// of one that lost the pages before each round.
#[test]
fn hits_and_misses_of_io_tracer_are_compared() {
    let s = Sandbox::new();
    let events = |name: &str, misses: &dyn Fn(u64) -> bool| {
        let line = |i: u64, event: &str| {
            let page = i * 37 % 400;
            format!("2024-01-15 10:30:{:02}.{:06},7,a,{event},9,{page},400,0,2049,1\n", i / 100, i % 100 * 10_000)
        };
        let both = |i| if misses(i) { line(i, "MISS") + &line(i, "HIT") } else { line(i, "HIT") };
        s.write(name, (0..4000).map(both).collect::<String>().as_bytes());
    };
    events("kept.csv", &|i| i < 400);
    events("lost.csv", &|i| i % 400 < 200 || i < 400);
    let verify =
        |name: &str, flags: &[&str]| s.run(&[&["verify", name, "--read-ahead", "0", "--json"], flags].concat());
    let kept: Value = serde_json::from_str(&ok(&verify("kept.csv", &["--memory", "4M", "--strict"]))).expect("JSON");
    assert_eq!((&kept["kernel_hit_rate"], &kept["lab_hit_rate"]), (&0.9.into(), &0.9.into()));
    assert_eq!((&kept["accesses"], &kept["kernel_pages"]["added"]), (&4000.into(), &400.into()));
    let lost = verify("lost.csv", &["--memory", "4M", "--policy", "lru", "--strict"]);
    assert_eq!(lost.status.code(), Some(1));
    let lost: Value = serde_json::from_slice(&lost.stdout).expect("JSON");
    assert_eq!((&lost["kernel_hit_rate"], &lost["lab_hit_rate"]), (&0.45.into(), &0.9.into()));
    assert_eq!(lost["policy"], "lru");
    for flags in [&[][..], &["--memory", "50%"], &["--memory", "max"]] {
        assert!(error(&verify("kept.csv", flags)).contains("give --memory SIZE"), "{flags:?}");
    }
}
