//! `refault run` as a user meets it: what it refuses, what it passes through, what it says. Without
//! userfaultfd the tests say that they skip.

use crate::common::command::Sandbox;
use refault::memory_size::Size;
use refault::replay::{Replay, Row};
use refault_testing::{Need, Program, absent, only_long, require, role, test_name};
use refault_trace::{OpenOptions, RecordSource, open};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Output;

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a shell under `refault run`; `None`: it was said why this machine cannot.
fn run(sandbox: &Sandbox, flags: &[&str], script: &str) -> Option<Output> {
    let output = sandbox.run(&[flags, &["--", "sh", "-c", script]].concat());
    let said = stderr(&output);
    let skip =
        output.status.code() == Some(2) && ["userfaultfd", "kernel has not", "forks"].iter().any(|w| said.contains(w));
    if skip {
        absent(Need::Uffd, said.trim());
        return None;
    }
    Some(output)
}

const SMALL: [&str; 4] = ["--memory-max", "32M", "--swap-max", "256M"];

#[test]
fn output_and_exit_status_pass_through() {
    let s = Sandbox::new();
    let Some(o) = run(&s, &SMALL, "echo out; echo err >&2; exit 7") else { return };
    assert_eq!(o.status.code(), Some(7));
    assert_eq!(o.stdout, b"out\n");
    let said = stderr(&o);
    assert!(said.starts_with("err\n") && said.lines().count() == 2, "{said}");
    assert!(said.contains("refault: ") && said.contains("of 32 MiB"), "{said}");
    let quiet = run(&s, &[&SMALL[..], &["--quiet"]].concat(), "exit 0").expect("as before");
    assert_eq!((quiet.status.code(), stderr(&quiet).as_str()), (Some(0), ""));
}

/// The limit alone says enough: there is swap of four times that.
#[test]
fn a_limit_is_all_that_is_needed() {
    let s = Sandbox::new();
    let Some(o) = run(&s, &["--memory-max", "24M"], "head -c 40000000 /dev/zero | tr '\\0' x | sort | wc -c") else {
        return;
    };
    assert_eq!((o.status.code(), o.stdout.trim_ascii()), (Some(0), b"40000001".as_slice()), "{}", stderr(&o));
}

/// The agent's thread kept the process for ever.
#[test]
fn a_program_whose_threads_end_by_themselves_ends_with_their_status() {
    const PROGRAM: &str = "import ctypes; ctypes.CDLL(None).syscall(60, 3)";
    let s = Sandbox::new();
    let Some(o) = run(&s, &SMALL, &format!("python3 -c '{PROGRAM}'")) else { return };
    match o.status.code() {
        Some(127) => absent(Need::Python, "there is no python3"),
        status => assert_eq!(status, Some(3), "{}", stderr(&o)),
    }
}

#[test]
fn a_signal_ends_both() {
    let s = Sandbox::new();
    let Some(o) = run(&s, &SMALL, "kill -TERM $$; sleep 10") else { return };
    assert_eq!(o.status.signal(), Some(15), "{}", stderr(&o));
}

/// Not every program sets its own: memcached could not be ended by a signal.
#[test]
fn the_program_has_the_signal_mask_of_its_caller() {
    let s = Sandbox::new();
    let script = "exec sed -n /SigBlk/p /proc/self/status";
    let Some(o) = run(&s, &[&SMALL[..], &["--quiet"]].concat(), script) else { return };
    let without = std::process::Command::new("sh").args(["-c", script]).output().expect("there is a shell");
    assert_eq!(String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&without.stdout));
}

#[test]
fn figures_for_machines() {
    let s = Sandbox::new();
    let flags = [&SMALL[..], &["--json", "run.json"]].concat();
    let script = "head -c 100000000 /dev/zero | tail -c 75000000 | cksum";
    let Some(o) = run(&s, &flags, script) else { return };
    assert!(o.status.success(), "{}", stderr(&o));
    let without = std::process::Command::new("sh").args(["-c", script]).output().expect("there is a shell");
    assert_eq!(o.stdout, without.stdout);
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(s.path("run.json")).unwrap()).unwrap();
    let number = |key: &str| json[key].as_f64().unwrap_or_else(|| panic!("{key} in {json}"));
    assert_eq!((number("memory_max_bytes"), number("exit_status")), (f64::from(32 << 20), 0.0));
    assert!(number("peak_swap_bytes") > 16e6, "tail keeps 75 MB: {json}");
    assert!(number("processes") >= 3.0 && number("faults") > 0.0 && number("wall_s") > 0.0);
    assert_eq!((number("lost_pages"), number("read_errors")), (0.0, 0.0));
    assert!((0.0..=number("wall_s")).contains(&number("awake_s")), "{json}");
}

/// As in a cgroup with zram: the limit is for pages in place alone.
#[test]
fn the_pool_and_the_pager_may_come_beside_the_limit() {
    if !only_long("the_pool_and_the_pager_may_come_beside_the_limit") {
        return;
    }
    let s = Sandbox::new();
    // 52 MB of text that shrinks to less than two thirds.
    let script = "seq 8000000 | tail -c 52000000 | cksum";
    let of = |beside: &[&str]| {
        let flags = [&["--memory-max", "32M", "--swap-file", "none", "--json", "run.json"], beside].concat();
        let o = run(&s, &flags, script)?;
        let json: serde_json::Value = serde_json::from_slice(&std::fs::read(s.path("run.json")).unwrap()).unwrap();
        assert_eq!(json["overhead_beside"], !beside.is_empty());
        Some((json, o))
    };
    let Some((json, o)) = of(&[]) else { return };
    let number = |json: &serde_json::Value, key: &str| json[key].as_f64().unwrap_or_else(|| panic!("{key} in {json}"));
    assert_eq!(number(&json, "pool_limit_bytes"), f64::from(16 << 20), "half of the limit without a file");
    assert!(stderr(&o).contains("out of memory: process"), "more than fits: {}", stderr(&o));
    let (json, o) = of(&["--overhead-beside"]).expect("it runs here");
    let without = std::process::Command::new("sh").args(["-c", script]).output().expect("there is a shell");
    assert_eq!(o.stdout, without.stdout, "{}", stderr(&o));
    let [limit, pool, resident, taken] =
        ["memory_max_bytes", "pool_limit_bytes", "peak_resident_bytes", "peak_taken_bytes"].map(|k| number(&json, k));
    assert_eq!(pool, limit, "as much as the limit");
    assert!(resident < 1.05 * limit && taken > 1.2 * limit, "{resident} in place, {taken} in all, of {limit}");
    assert!(stderr(&o).contains("with what is beside it"), "{}", stderr(&o));
}

/// The last line said "stalled 133.0 % of the time": two processes waited at once.
#[test]
fn regression_time_that_is_lost_is_at_most_all_of_it() {
    if !only_long("regression_time_that_is_lost_is_at_most_all_of_it") {
        return;
    }
    const PAGES: &str =
        "b = bytearray(b'ab' * 9000000)\nfor i in range(8):\n for at in range(i, len(b), 4096): b[at] = i\n";
    let s = Sandbox::new();
    let flags = ["--memory-max", "20M", "--swap-max", "128M", "--json", "run.json"];
    s.write("pages.py", PAGES.as_bytes());
    let Some(o) = run(&s, &flags, "python3 pages.py & python3 pages.py; wait $!") else { return };
    match o.status.code() {
        Some(127) => return eprintln!("skipped: there is no python3"),
        status => assert_eq!(status, Some(0), "{}", stderr(&o)),
    }
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(s.path("run.json")).unwrap()).unwrap();
    let of = |key: &str| json[key].as_f64().unwrap_or_else(|| panic!("{key} in {json}"));
    let (wall, some, full) = (of("wall_s"), of("stall_some_s"), of("stall_full_s"));
    assert!(of("swapped_in") > 1000.0, "there was nothing to wait for: {json}");
    assert!(0.0 < some && some <= wall && full <= some && some <= of("stall_s") + 0.5 * wall, "{json}");
    assert!(of("stall_some_share") <= 1.0 && (of("stall_some_share") - some / wall).abs() < 0.001, "{json}");
    let line = stderr(&o);
    let said = format!("stalled: some {:.1} %, full {:.1} % of the time", 100.0 * some / wall, 100.0 * full / wall);
    assert!(line.contains(&said), "{said} in {line}");
}

#[test]
fn processors_may_halt_if_it_is_said() {
    if !only_long("processors_may_halt_if_it_is_said") {
        return;
    }
    let s = Sandbox::new();
    let flags = [&SMALL[..], &["--awake-cpus", "0", "--json", "run.json"]].concat();
    let Some(o) = run(&s, &flags, "head -c 200000000 /dev/zero | tail -c 150000000 | cksum") else { return };
    assert!(o.status.success(), "{}", stderr(&o));
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(s.path("run.json")).unwrap()).unwrap();
    assert_eq!(json["awake_s"].as_f64(), Some(0.0), "{json}");
}

/// A replay of a record, by multi-gen LRU.
fn replayed(record: &Path, memory: Size) -> Row {
    let (trace, page_size) = refault::load(record).expect("a trace");
    let policies = vec!["mglru".parse().expect("a policy")];
    let mut rows = Replay { policies, memory: vec![memory], ..Replay::default() }.run(&trace, page_size).expect("rows");
    rows.remove(0).0
}

#[test]
fn a_record_is_replayed() {
    let s = Sandbox::new();
    let flags = [&SMALL[..], &["--record", "run.parquet"]].concat();
    let Some(o) = run(&s, &flags, "head -c 20000000 /dev/zero | tail -c 15000000 | cksum") else { return };
    assert!(o.status.success(), "{}", stderr(&o));
    let row = replayed(&s.path("run.parquet"), Size::percent(50.0));
    assert!(row.accesses > 0, "{row:?}");
    let source = open(&s.path("run.parquet"), &OpenOptions::default()).expect("a trace");
    let objects = &source.header().objects;
    assert!(objects.iter().any(|object| object.name.contains("process 0")), "{objects:?}");
}

/// Not a test of its own: fills 40 MB in order, and writes to its pages, some of them much more
/// often than others, as often as it is told.
#[test]
fn the_program_that_writes() {
    let Some(writes) = role() else { return };
    const PAGES: usize = 10_000;
    let (fill, writes) = writes.split_once(' ').expect("two words");
    let mut memory = vec![0u8; PAGES * 4096];
    if fill != "empty" {
        memory.fill(1);
    }
    if fill == "scanned" {
        let scan = |_| memory.iter().step_by(4096).map(|&b| u64::from(b)).sum::<u64>();
        assert_eq!((0..4).map(scan).map(std::hint::black_box).sum::<u64>(), 4 * PAGES as u64);
    }
    let mut seed = 1u64;
    for _ in 0..writes.parse().expect("a number") {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let unit = (seed >> 11) as f64 / (1u64 << 53) as f64;
        // By inversion of the continuous distribution; ranks are scattered.
        let rank = ((PAGES as f64 + 1.0).ln() * unit).exp() as usize - 1;
        let byte = &mut memory[rank.min(PAGES - 1) * 5741 % PAGES * 4096];
        *byte = std::hint::black_box(byte.wrapping_add(1));
    }
    std::hint::black_box(&memory);
}

/// Records that program in 20 MiB and replays it in as much memory: the hit rates, and how many
/// pages the record has. `None`: it was said why not.
fn recorded_and_replayed(writes: &str) -> Option<(f64, f64, u64)> {
    let s = Sandbox::new();
    let flags = ["--memory-max", "20M", "--swap-max", "256M", "--record", "run.parquet", "--json", "run.json"];
    let words = Program::new(test_name!(the_program_that_writes), writes).words();
    let words: Vec<String> = words.iter().map(|w| format!("'{}'", w.to_str().expect("plain text"))).collect();
    let script = format!("exec {}", words.join(" "));
    let o = run(&s, &flags, &script)?;
    assert!(o.status.success(), "{}", stderr(&o));
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(s.path("run.json")).unwrap()).unwrap();
    let number = |of: &serde_json::Value, key: &str| of[key].as_f64().unwrap_or_else(|| panic!("{key} in {of}"));
    let (in_run, memory) = (number(&json["recorded"], "hit_rate"), number(&json["recorded"], "memory_bytes"));
    let row = replayed(&s.path("run.parquet"), Size::absolute(&memory.to_string()).expect("a size"));
    let (replayed, pages) = (row.hit_rate(), row.footprint_pages);
    eprintln!("{writes}: {in_run:.4} hit in the run, {replayed:.4} replayed in {memory} bytes, {pages} pages");
    let line = format!("--policy mglru --memory {}K", memory as u64 >> 10);
    assert!(stderr(&o).contains(&line), "{line}: {}", stderr(&o));
    Some((in_run, replayed, pages))
}

#[test]
fn a_replay_of_a_record_hits_as_often_as_the_run() {
    if !only_long("a_replay_of_a_record_hits_as_often_as_the_run") {
        return;
    }
    let Some((in_run, replayed, _)) = recorded_and_replayed("empty 400000") else { return };
    assert!(in_run > 0.5 && (in_run - replayed).abs() < 0.02, "{in_run:.4} in the run, {replayed:.4} replayed");
}

/// Pages that were put in place ahead of a row of first touches were not in the record until they
/// came back, which counted as two misses.
#[test]
fn regression_a_record_has_the_pages_that_were_filled_ahead() {
    let Some((in_run, replayed, pages)) = recorded_and_replayed("filled 20000") else { return };
    assert!(pages >= 10_000, "{pages} pages are in the record");
    assert!((in_run - replayed).abs() < 0.02, "{in_run:.4} in the run, {replayed:.4} replayed");
}

/// Pages that were read ahead counted as missed and were not in the record: of a scan the run hit 0
/// %, and the replay 24 %.
#[test]
fn regression_a_record_has_the_pages_that_were_read_ahead() {
    let Some((in_run, replayed, _)) = recorded_and_replayed("scanned 0") else { return };
    assert!((in_run - replayed).abs() < 0.02, "{in_run:.4} in the run, {replayed:.4} replayed");
}

/// The programs of the inner run waited for ever: their memory was watched by the outer one.
#[test]
fn regression_a_run_in_a_run_is_refused() {
    let s = Sandbox::new();
    let script = format!("exec {} --memory-max 24M -- true", env!("CARGO_BIN_EXE_refault-run"));
    let Some(o) = run(&s, &SMALL, &script) else { return };
    assert_eq!(o.status.code(), Some(2), "{}", stderr(&o));
    assert!(stderr(&o).contains("in a refault run already"), "{}", stderr(&o));
}

/// A process that ended during the count was counted with all memory that it had shared.
#[test]
fn regression_what_many_forks_share_counts_once() {
    let s = Sandbox::new();
    let script = r#"x=$(head -c 20000000 /dev/zero | tr '\0' x); for i in $(seq 150); do (sleep 0.3; :) & done; wait; echo ${#x}"#;
    let flags = ["--memory-max", "256M", "--swap-max", "256M", "--json", "run.json"];
    let Some(o) = run(&s, &flags, script) else { return };
    assert_eq!(o.stdout, b"20000000\n", "{}", stderr(&o));
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(s.path("run.json")).unwrap()).unwrap();
    let peak = json["peak_resident_bytes"].as_u64().expect("a number");
    assert!(peak < 90 << 20, "20 MB and 150 small processes are {peak} bytes");
}

/// It locks pages of the agent's, too, by which others leave. The line named no cause.
#[test]
fn regression_a_program_that_locks_all_its_memory_ends_with_the_reason() {
    let s = Sandbox::new();
    let program = "import ctypes; c = ctypes.CDLL(None); print('locked' if c.mlockall(1) == 0 else 'not locked', flush=True); x = b'x' * (100 << 20)";
    let Some(o) = run(&s, &SMALL, &format!("exec python3 -c \"{program}\"")) else { return };
    match String::from_utf8_lossy(&o.stdout).trim() {
        "locked" => assert!(stderr(&o).contains("locked all of its memory (mlockall)"), "{}", stderr(&o)),
        "not locked" => absent(Need::Mlock, "memory may not be locked"),
        _ if o.status.code() == Some(127) => absent(Need::Python, "there is no python3"),
        said => panic!("{said}: {}", stderr(&o)),
    }
}

/// A process that was being loaded when the program ended found nobody to serve it: it was killed,
/// or ran without a limit.
#[test]
fn regression_what_the_program_leaves_behind_is_served_to_its_end() {
    let s = Sandbox::new();
    for i in 0..5 {
        let script = "sh -c 'sleep 0.2; echo done >> log' & exit 0";
        let Some(o) = run(&s, &[&SMALL[..], &["--quiet"]].concat(), script) else { return };
        assert_eq!((o.status.code(), stderr(&o).as_str()), (Some(0), ""), "run {i}");
        let log = std::fs::read_to_string(s.path("log")).unwrap_or_default();
        assert_eq!(log, "done\n".repeat(i + 1), "refault waits for it");
    }
}

/// Each process takes some of the manager's descriptors, and the usual limit of 1,024 ended a build
/// of 300 processes.
#[test]
fn regression_more_processes_than_files_that_the_program_may_open() {
    let s = Sandbox::new();
    let script = "ulimit -Sn 64; exec \"$REFAULT\" --memory-max 200M -- \
        sh -c 'for i in $(seq 60); do sleep 2 & done; ulimit -Sn; wait'";
    let o = std::process::Command::new("sh")
        .args(["-c", script])
        .env("REFAULT", env!("CARGO_BIN_EXE_refault-run"))
        .output();
    let o = o.expect("there is a shell");
    if run(&s, &SMALL, "true").is_some() {
        assert_eq!((o.status.code(), String::from_utf8_lossy(&o.stdout).trim()), (Some(0), "64"), "{}", stderr(&o));
    }
    let few = "ulimit -n 50; exec \"$REFAULT\" --memory-max 200M -- true";
    let o =
        std::process::Command::new("sh").args(["-c", few]).env("REFAULT", env!("CARGO_BIN_EXE_refault-run")).output();
    let o = o.expect("there is a shell");
    assert_eq!(o.status.code(), Some(2), "{}", stderr(&o));
    assert!(stderr(&o).contains("50 files may be open here (ulimit -n)"), "{}", stderr(&o));
}

/// Pages that could not be written came back, and that counted as progress for ever.
#[test]
fn regression_a_full_swap_directory_ends_a_program_with_a_line() {
    if !only_long("regression_a_full_swap_directory_ends_a_program_with_a_line") {
        return;
    }
    let s = Sandbox::new();
    let mount = |script: &str| {
        std::process::Command::new("unshare").args(["-m", "sh", "-c", script]).current_dir(s.path("")).output()
    };
    std::fs::create_dir(s.path("small")).expect("ours");
    let small = "mount -t tmpfs -o size=1m none small";
    let mounted = match mount(small) {
        Ok(o) if o.status.success() => Ok(()),
        Ok(o) => Err(stderr(&o).trim().to_owned()),
        Err(e) => Err(format!("unshare: {e}")),
    };
    if require(Need::Mount, mounted).is_none() {
        return;
    }
    if run(&s, &SMALL, "true").is_none() {
        return;
    }
    let flags = "--memory-max 24M --pool none --swap-file small --json run.json";
    let program = "head -c 60000000 /dev/zero | tr '\\0' x | tail -c 59000000 | cksum";
    let o = mount(&format!("{small} && exec {} {flags} -- sh -c \"{program}\"", env!("CARGO_BIN_EXE_refault-run")))
        .unwrap();
    let said = stderr(&o);
    assert!(said.contains("out of memory") && said.contains("on a disk with room"), "{said}");
    assert!(said.contains("could not be written to the swap file (no room)"), "{said}");
}

/// Lack of anything to record made a good run a failed one.
#[test]
fn regression_a_record_without_a_touch_is_no_failure() {
    let s = Sandbox::new();
    s.write("old", b"as it was");
    let Some(o) = run(&s, &["--memory-max", "400M", "--record", "old"], "exit 3") else { return };
    let said = stderr(&o);
    assert_eq!(o.status.code(), Some(3), "{said}");
    assert!(said.contains("nothing was recorded"), "{said}");
    assert_eq!(std::fs::read(s.path("old")).unwrap(), b"as it was");
}

/// Runs `refault run` with these flags behind something that a shell is to do first.
fn after(s: &Sandbox, first: &str, flags: &str, program: &str, redirections: &str) -> Output {
    let refault = env!("CARGO_BIN_EXE_refault-run");
    let script = format!("{first}; exec {refault} --memory-max 32M {flags} -- {program} {redirections}");
    std::process::Command::new("sh").args(["-c", &script]).current_dir(s.path("")).output().expect("there is a shell")
}

/// The runtime opens `/dev/null` in their place, which the program found.
#[test]
fn regression_standard_descriptors_that_are_closed_are_so_for_the_program() {
    let s = Sandbox::new();
    if run(&s, &SMALL, "true").is_none() {
        return;
    }
    let program = "sh -c 'for n in 0 1 2; do [ -e /proc/$$/fd/$n ] || a=$a$n; done; echo $a >closed'";
    for (redirections, closed) in [("", ""), ("<&-", "0"), (">&-", "1"), ("<&- >&-", "01"), ("<&- >&- 2>&-", "012")] {
        let o = after(&s, "true", "--quiet", program, redirections);
        assert_eq!(o.status.code(), Some(0), "{redirections}: {}", stderr(&o));
        assert_eq!(std::fs::read_to_string(s.path("closed")).unwrap().trim(), closed, "{redirections}");
    }
}

/// A signal ended the one that serves the memory, and with it the program.
#[test]
fn regression_a_limit_on_the_size_of_files_ends_in_a_line() {
    if !only_long("regression_a_limit_on_the_size_of_files_ends_in_a_line") {
        return;
    }
    let s = Sandbox::new();
    if run(&s, &SMALL, "true").is_none() {
        return;
    }
    let o = after(&s, "ulimit -f 100", "", "true", "");
    let said = stderr(&o);
    assert_eq!((o.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains("more than 51200 bytes here (ulimit -f)"), "{said}");
    // Enough to begin with, and not for what is swapped.
    let o = after(
        &s,
        "ulimit -f 2000",
        "--pool none",
        "sh -c 'head -c 90000000 /dev/zero | tr \\\\0 x | tail -c 89000000 | cksum'",
        "",
    );
    let said = stderr(&o);
    assert!(said.contains("the swap file may have no more than 1024000 bytes (ulimit -f)"), "{said}");
    assert!(o.status.code() != Some(2) && said.contains("refault: out of memory"), "{said}");
}

#[test]
fn a_stack_that_is_too_small_is_refused_in_one_line() {
    let o = after(&Sandbox::new(), "ulimit -s 64", "", "true", "");
    let said = stderr(&o);
    assert_eq!((o.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains("64 KiB here (ulimit -s)"), "{said}");
}

#[test]
fn what_cannot_be_run_is_refused_in_one_line() {
    let s = Sandbox::new();
    let refused = |args: &[&str], why: &str| {
        let o = s.run(args);
        let said = stderr(&o);
        assert_eq!(o.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.lines().count() == 1 && said.starts_with("error: ") && said.contains(why), "{args:?}: {said}");
    };
    let with = |more: &[&'static str]| [&SMALL[..], more].concat();
    refused(&with(&["--", "no-such-program-anywhere"]), "no such program in PATH");
    refused(&with(&["--", "/etc/passwd"]), "not executable");
    refused(&with(&["--pool", "none", "--swap-file", "none", "--", "true"]), "--swap-file");
    refused(&with(&["--swap-file", "/no/such/dir", "--", "true"]), "is no directory");
    refused(&with(&["--policy", "best", "--", "true"]), "mglru");
    refused(&with(&["--json", "/no/such/dir/x", "--", "true"]), "--json");
    refused(&with(&["--record", "/no/such/dir/x", "--", "true"]), "/no/such/dir/x");
    refused(&with(&["--pool-max", "31M", "--", "true"]), "three quarters");
    refused(&with(&["--json", "/dev/full", "--", "true"]), "not a regular file");
    refused(&with(&["--record", "/dev/null", "--", "true"]), "/dev/null");
    refused(&with(&["--json", "same", "--record", "./same", "--", "true"]), "--record is to be there");
    refused(&with(&["--pool-max", "0", "--", "true"]), "--pool-max 0: at least 32K");
    refused(&with(&["--pool", "none", "--pool-max", "4M", "--", "true"]), "no pool");
    refused(&with(&["--memory-high", "0", "--", "true"]), "--memory-high 0: at least 4M");
    refused(&["--memory-max", "1G", "--swap-max", "2T", "--", "true"], "at most 1T");
    refused(&with(&["--", ""]), "name of the program is empty");
    refused(&["--memory-max", "1M", "--swap-max", "1G", "--", "true"], "--memory-max 1M: at least 4M");
    refused(&["--memory-max", "50%", "--swap-max", "1G", "--", "true"], "4096p (pages); --help");
    refused(&with(&["--pool-max", "lots", "--", "true"]), "write 512M, 1.5G or 4096p (pages); --help");
    refused(&with(&["--record", "-", "--", "true"]), "-: a file is written whole");
    refused(&with(&["--swap-file", "/proc", "--", "true"]), "--swap-file /proc: no file can be made there");
    refused(&with(&[]), "PROGRAM");
    std::fs::copy("/bin/true", s.path("setuid")).expect("there is a true");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o4755);
    std::fs::set_permissions(s.path("setuid"), mode).expect("ours");
    refused(&with(&["--", "./setuid"]), "setuid");
}

/// Nothing else has to be given to see what there is.
#[test]
fn kernels_are_listed_and_an_unknown_one_is_answered_with_the_nearest() {
    let s = Sandbox::new();
    let list = s.run(&["--kernel", "list"]);
    let text = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(
        list.status.success() && text.contains("\n  6.18: Linux 6.18\n") && text.contains("memcgs=first"),
        "{text}"
    );
    let said = stderr(&s.run(&["--kernel", "6.13"]));
    let want = "'--kernel <NAME>': unknown kernel \"6.13\"; nearest to it is 6.12; known are 2022-v14, 6.1,";
    assert!(said.contains("invalid value '6.13' for") && said.contains(want), "{said}");
}
