//! Failures while `refault record` is at work: one line, status 2, and nothing half-written that
//! pretends to be whole.

use crate::common::command::{Sandbox, error, ok};
use crate::record::{info, record, recordable};
use refault_testing::{Need, install, require};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

fn names(dir: &Path) -> Vec<String> {
    let mut all: Vec<_> = std::fs::read_dir(dir)
        .expect("there")
        .flatten()
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    all.sort();
    all
}

#[test]
fn without_rights_the_right_is_named() {
    let Some((dir, _)) = recordable() else { return };
    // A user who may enter the folders above can run it as nobody.
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).expect("ours");
    let copy = dir.path().join("refault");
    install(env!("CARGO_BIN_EXE_refault").as_ref(), &copy);
    let mut command = Command::new("./refault");
    command.args(["record", "-o", "t.parquet", "--", "true"]).current_dir(dir.path()).uid(65534).gid(65534);
    let output = match command.output() {
        Ok(output) => Ok(output),
        Err(e) => Err(format!("nobody cannot run programs here: {e}")),
    };
    let Some(output) = require(Need::Tracefs, output) else { return };
    let told = error(&output);
    assert!(told.contains("recording takes root") && told.contains("sudo refault record"), "{told}");
    assert_eq!(names(dir.path()), ["file", "refault"]);
}

#[test]
fn without_tracefs_or_its_events_that_is_said() {
    let s = Sandbox::new();
    std::fs::create_dir_all(s.path("empty")).expect("ours");
    std::fs::create_dir_all(s.path("bare/events/sched")).expect("ours");
    let run = |folder: &str| error(&s.run(&["record", "-o", "t.parquet", "--tracefs", folder, "--", "true"]));
    assert!(run("empty").contains("empty: is no tracefs"));
    let told = run("bare");
    assert!(told.contains("this kernel has no event filemap/mm_filemap_get_pages"), "{told}");
    assert!(told.contains("Linux 6.12 or later"), "{told}");
    assert_eq!(names(&s.path("")), ["bare", "empty"]);
    // doctor says what follows.
    let text = String::from_utf8(s.run(&["doctor", "--tracefs", "bare"]).stdout).expect("text");
    assert!(text.contains("refault record does not work here: it takes Linux 6.12"), "{text}");
    assert!(text.contains("Without filemap/mm_filemap_get_pages: nothing can be recorded."), "{text}");
    let text = String::from_utf8(s.run(&["doctor", "--tracefs", "empty"]).stdout).expect("text");
    assert!(text.contains("refault record does not work here: empty: is no tracefs"), "{text}");
}

#[test]
fn a_recording_with_losses_is_never_called_exact() {
    let Some((dir, _)) = recordable() else { return };
    let big = dir.path().join("big");
    std::fs::write(&big, vec![1; 64 << 20]).expect("writable");
    // A read of a page takes less than a microsecond: in 20 ms there are more than 64 KiB hold.
    let program = "for i in 1 2 3 4; do dd if=big of=/dev/null bs=4k status=none; done";
    let done = record(dir.path(), &["sh", "-c", program], &["--ring", "64K", "--json"]).output().expect("it runs");
    assert!(done.status.success(), "{done:?}");
    let json: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert!(json["lost"].as_u64() > Some(1000) && json["exact"] == false, "{json}");
    let s = Sandbox::new();
    let path = dir.path().join("t.parquet");
    let path = path.to_str().expect("text");
    let output = s.run(&["verify", path, "--strict"]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(" lost: not exact") && text.contains("so that the recording is not exact"), "{text}");
    assert_eq!(info(Path::new(path))["recording"]["lost"], json["lost"]);
}

#[test]
fn a_full_disk_ends_it_in_one_line() {
    let Some((dir, _)) = recordable() else { return };
    let mounted = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script]).current_dir(dir.path()).output()
    };
    std::fs::create_dir(dir.path().join("small")).expect("ours");
    let small = "mount -t tmpfs -o size=12k none small";
    let can = match mounted(small) {
        Ok(o) if o.status.success() => Ok(()),
        Ok(o) => Err(String::from_utf8_lossy(&o.stderr).into_owned()),
        Err(e) => Err(format!("unshare: {e}")),
    };
    if require(Need::Mount, can).is_none() {
        return;
    }
    // Different pages in no order, so that the file grows.
    let reads = "i=0; while [ $i -lt 600 ]; do echo $i; i=$((i+1)); done | \
                 while read n; do dd if=file of=out bs=4k count=1 skip=$((n * 7 % 40)) status=none; done";
    let refault = env!("CARGO_BIN_EXE_refault");
    let script = format!(
        "{small} && {refault} record -o small/t.parquet -- sh -c '{reads}'; code=$?; ls small >left; \
         {refault} trace info --json small/t.parquet.part >info 2>&1; exit $code"
    );
    let told = error(&mounted(&script).expect("it runs"));
    assert!(told.contains("small/t.parquet: cannot be written: No space left"), "{told}");
    assert!(told.contains("make room, or name a file of another disk with -o"), "{told}");
    // The whole name is not there; what there is, is readable and says that it was cut.
    let left = std::fs::read_to_string(dir.path().join("left")).expect("listed");
    if !left.is_empty() {
        assert!(left == "t.parquet.part\n" && told.contains("is in small/t.parquet.part"), "{left}: {told}");
        let info = std::fs::read_to_string(dir.path().join("info")).expect("asked");
        let info: Value = serde_json::from_str(&info).unwrap_or_else(|e| panic!("{e}: {info}"));
        assert_eq!(info["recording"]["cut"], true);
    }
}

#[test]
fn a_kill_for_want_of_memory_is_told() {
    let Some((dir, _)) = recordable() else { return };
    // It keeps all that it reads, as there is no end of a line.
    let program = "cat file >/dev/null; (ulimit -v 500000; tail /dev/zero); true";
    let flags = ["--memory", "24M", "--json", "--touches", "off"];
    let done = record(dir.path(), &["sh", "-c", program], &flags).output().expect("it runs");
    if String::from_utf8_lossy(&done.stderr).contains("no memory cgroup") {
        return eprintln!("skipped: no memory cgroup");
    }
    assert!(done.status.success(), "{done:?}");
    let json: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    if std::fs::read_to_string("/proc/swaps").is_ok_and(|text| text.lines().count() > 1) {
        return eprintln!("skipped: this machine has swap, so nothing is killed");
    }
    assert_eq!(json["oom_kills"], 1, "{json}");
    let s = Sandbox::new();
    let path = dir.path().join("t.parquet");
    let path = path.to_str().expect("text");
    assert!(ok(&s.run(&["verify", path])).contains("oom kills       1 process of the group"));
    assert_eq!(info(Path::new(path))["recording"]["oom_kills"], 1);
    // The group is told by its name.
    let text = ok(&s.run(&["trace", "info", path]));
    assert!(text.contains("\n/refault-record-") && text.contains("oom kills"), "{text}");
}

/// Where memory cgroups are, of the first version or the second.
fn cgroups() -> PathBuf {
    let first = PathBuf::from("/sys/fs/cgroup/memory");
    if first.exists() { first } else { "/sys/fs/cgroup".into() }
}

/// A memory cgroup of a test.
struct Cgroup(PathBuf);

impl Cgroup {
    fn new(name: &str) -> Result<Cgroup, String> {
        let path = cgroups().join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Cgroup(path))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_group_that_is_removed_ends_it() {
    let Some((dir, _)) = recordable() else { return };
    let Some(group) = require(Need::Tracefs, Cgroup::new("refault-test")) else { return };
    let mut command = Command::new(env!("CARGO_BIN_EXE_refault"));
    command.args(["record", "-o", "t.parquet", "--for", "60s", "--json", "--cgroup"]).arg(&group.0);
    let recorder = command.current_dir(dir.path()).stdout(std::process::Stdio::piped()).spawn().expect("it runs");
    std::thread::sleep(Duration::from_millis(1500));
    let inside = format!("echo 0 >{}/cgroup.procs; for i in 1 2 3; do cat file; sleep 0.2; done", group.0.display());
    let reads = Command::new("sh").args(["-c", &inside]).current_dir(dir.path()).output().expect("it runs");
    assert!(reads.status.success());
    std::thread::sleep(Duration::from_millis(300));
    std::fs::remove_dir(&group.0).expect("empty");
    let done = recorder.wait_with_output().expect("it ends");
    let json: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert!(json["seconds"].as_f64() < Some(50.0) && json["accesses"].as_u64() >= Some(120), "{json}");
    assert_eq!(json["ended_by"], "end of the program");
}

#[test]
fn two_recorders_at_once_do_not_disturb_each_other() {
    let Some((dir, _)) = recordable() else { return };
    let program = "for i in 1 2 3 4 5; do cat file; sleep 0.1; done >/dev/null";
    let other = tempfile::tempdir_in(dir.path()).expect("a folder");
    std::fs::copy(dir.path().join("file"), other.path().join("file")).expect("copied");
    let spawn = |dir: &Path| record(dir, &["sh", "-c", program], &["--json"]).spawn().expect("it runs");
    let both = [spawn(dir.path()), spawn(other.path())];
    // A third one on the file of the first.
    std::thread::sleep(Duration::from_millis(300));
    let refused = record(dir.path(), &["cat", "file"], &[]).output().expect("it runs");
    assert!(error(&refused).contains("t.parquet.part: is there"), "{refused:?}");
    for (recorder, dir) in both.into_iter().zip([dir.path(), other.path()]) {
        let done = recorder.wait_with_output().expect("it ends");
        assert!(done.status.success(), "{done:?}");
        let objects = info(&dir.join("t.parquet"))["objects"].clone();
        let file = objects.as_array().expect("objects").iter().find(|o| {
            o["name"].as_str().is_some_and(|name| name.ends_with("/file") && Path::new(name).parent() == Some(dir))
        });
        assert_eq!(file.expect("its own file")["accesses"], 200);
    }
}

#[test]
fn what_a_killed_recorder_left_is_removed_by_the_next() {
    let Some((dir, _)) = recordable() else { return };
    let program = "echo $$ >pid; while :; do cat file >/dev/null; done";
    let mut recorder = record(dir.path(), &["sh", "-c", program], &["--memory", "16M"]).spawn().expect("it runs");
    let group = cgroups().join(format!("refault-record-{}", recorder.id()));
    let made = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        std::fs::exists(dir.path().join("pid")).unwrap_or(false)
    });
    assert!(made, "the program began");
    let had_group = group.exists();
    let events = "/sys/kernel/tracing/instances";
    let instances = || std::fs::read_dir(events).map_or(0, |all| all.count());
    let before = instances();
    recorder.kill().expect("SIGKILL");
    recorder.wait().expect("ended");
    let pid = std::fs::read_to_string(dir.path().join("pid")).expect("the program began");
    assert!(Command::new("kill").args(["-9", pid.trim()]).status().expect("kill").success());
    let _ = std::fs::remove_file(dir.path().join("t.parquet.part"));
    // Processes leave a group a moment after they ended.
    std::thread::sleep(Duration::from_millis(500));
    let next = record(dir.path(), &["cat", "file"], &["--memory", "16M"]).output().expect("it runs");
    assert!(next.status.success(), "{next:?}");
    assert!(!group.exists(), "the group is left");
    assert!(had_group, "there was none");
    assert_eq!(instances(), before);
}

#[test]
fn the_doctor_names_the_events_that_are_there() {
    let Some(_) = recordable() else { return };
    let s = Sandbox::new();
    let json: Value = serde_json::from_slice(&s.run(&["doctor", "--json"]).stdout).expect("JSON");
    assert_eq!(json["recording"]["works"], true);
    assert_eq!(json["recording_events"]["filemap/mm_filemap_get_pages"], true);
    let text = ok(&s.run(&["doctor"]));
    assert!(text.contains("refault record works here, with the rights of root."), "{text}");
}
