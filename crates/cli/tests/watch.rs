//! `refault watch` on this kernel: what is kept over a kill, a stop, and beside another watcher.

use crate::common::command::{error, ok};
use crate::record::recordable;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Pages of the file that is read, a page at a time.
const PAGES: usize = 640;

/// The longest that a watcher may take for something.
const PATIENCE: Duration = Duration::from_secs(60);

/// Path of the memory cgroup of this process.
fn own_group() -> String {
    let text = fs::read_to_string("/proc/self/cgroup").expect("there");
    let line = text.lines().find(|line| line.contains(":memory:")).or(text.lines().last()).expect("a group");
    line.splitn(3, ':').nth(2).expect("a path").to_owned()
}

fn watch(dir: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_refault"));
    command.args(["watch", "--cgroup", &own_group(), "--rate", "1/2", "--every", "200ms"]).args(words);
    command.current_dir(dir).stdout(Stdio::null());
    command
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status().expect("kill runs");
    assert!(sent.success());
}

/// Reads the file over and over until something is so.
fn read_until(dir: &Path, mut is_so: impl FnMut() -> bool) {
    use std::os::unix::fs::FileExt as _;
    let path = dir.join("large");
    fs::write(&path, vec![1; PAGES * 4096]).expect("writable");
    let (file, mut page, started) = (fs::File::open(path).expect("there"), [0; 4096], Instant::now());
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "too long");
        for at in 0..PAGES {
            file.read_exact_at(&mut page, at as u64 * 4096).expect("as long");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("whole lines")).collect()
}

fn is_trusted(line: &Value) -> bool {
    line["advice"]["trust"] != "not-yet"
}

#[test]
fn a_watcher_that_is_killed_leaves_nothing_and_its_curves_go_on() {
    let Some((dir, _)) = recordable() else { return };
    let (state, before) = (dir.path().join("state"), dir.path().join("before"));
    let mut killed = watch(dir.path(), &["--state", "state", "--json", "before"]).spawn().expect("it runs");
    read_until(dir.path(), || state.exists() && lines(&before).last().is_some_and(is_trusted));
    killed.kill().expect("it runs still");
    killed.wait().expect("it ends");
    std::thread::sleep(Duration::from_secs(3));
    for place in ["/sys/kernel/tracing/kprobe_events", "/sys/kernel/debug/tracing/kprobe_events"] {
        let probes = fs::read_to_string(place).unwrap_or_default();
        assert!(!probes.contains(&format!("refault_{}/", killed.id())), "{probes}");
    }
    let pinned = fs::read_dir("/sys/fs/bpf").into_iter().flatten().flatten();
    assert!(pinned.filter(|entry| entry.file_name().to_string_lossy().contains("refault")).count() == 0);
    let next = watch(dir.path(), &["--state", "state", "--json", "after", "--once", "--for", "1s"]);
    ok(&{ next }.output().expect("it runs"));
    let after = lines(&dir.path().join("after"));
    let line = after.last().expect("the group is known by the state");
    // The group is that of all tests: where others read, a new curve may say more than the old one.
    let others_read = line["curve"]["sampled"].as_u64().is_some_and(|sampled| sampled > PAGES as u64);
    assert!(is_trusted(line) && (line["is_old"] == true || others_read), "{line}");
    assert_eq!(line["curve"]["points"].as_array().map(Vec::len), Some(refault_watch::PERCENT.len()));
}

#[test]
fn a_watcher_that_was_stopped_says_what_it_lost() {
    let Some((dir, _)) = recordable() else { return };
    let history = dir.path().join("history");
    let mut stopped = watch(dir.path(), &["--ring", "64K", "--json", "history"]).spawn().expect("it runs");
    read_until(dir.path(), || lines(&history).last().is_some_and(is_trusted));
    signal(&stopped, "-STOP");
    let rounds = std::cell::Cell::new(0);
    // Each round has 320 events of the sample, and the ring of a CPU has room for some 1100.
    read_until(dir.path(), || rounds.replace(rounds.get() + 1) > 60);
    let known = lines(&history).len();
    signal(&stopped, "-CONT");
    read_until(dir.path(), || lines(&history).len() > known + 2);
    signal(&stopped, "-INT");
    assert!(stopped.wait().expect("it ends").success());
    let last = lines(&history).pop().expect("a line");
    assert!(last["curve"]["lost"].as_f64().is_some_and(|lost| lost > 0.0), "{last}");
}

#[test]
fn two_watchers_see_the_same() {
    let Some((dir, _)) = recordable() else { return };
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    let mut both =
        ["one", "two"].map(|name| watch(dir.path(), &["--ring", "16M", "--json", name]).spawn().expect("it runs"));
    read_until(dir.path(), || [&one, &two].iter().all(|path| lines(path).last().is_some_and(is_trusted)));
    for watcher in &mut both {
        signal(watcher, "-INT");
        assert!(watcher.wait().expect("it ends").success());
    }
    for path in [one, two] {
        let last = lines(&path).pop().expect("a line");
        assert_eq!((&last["group"], &last["curve"]["lost"]), (&own_group().into(), &0.0.into()), "{last}");
    }
}

#[test]
fn a_kernel_without_the_events_is_an_error_that_names_them() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::create_dir(dir.path().join("events")).expect("writable");
    let output = watch(dir.path(), &["--tracefs", ".", "--sampler", "filter", "--once", "--for", "1s"])
        .output()
        .expect("it runs");
    let said = error(&output);
    assert!(output.status.code() == Some(2) && said.lines().count() == 1, "{said}");
    assert!(said.contains("filemap") || said.contains("tracefs") || said.contains("Linux"), "{said}");
}
