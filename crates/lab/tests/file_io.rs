//! I/O that programs do not leave to the page cache: `O_DIRECT`, `fsync`, `sync_file_range`,
//! `POSIX_FADV_DONTNEED`.

use refault_lab::machine::{Machine, RunResult};
use refault_lab::scenario::Scenario;

fn parse(phases: &str) -> Result<Scenario, String> {
    let text = format!(
        r#"
name = "file-io"
machine = {{ cpus = 1, memory = "256M" }}
device.ssd = {{ preset = "sata-ssd" }}
object.file = {{ kind = "file", size = "32M", device = "ssd" }}
object.heap = {{ kind = "anon", size = "4M" }}
[[task]]
name = "work"
phase = [{phases}]
"#
    );
    Scenario::parse("f.toml", &text).map_err(|e| e.to_string())
}

fn run(phases: &str) -> RunResult {
    let s = parse(phases).expect("a scenario");
    Machine::new(&s, &s.policy).expect("a machine").checked().run().expect("runs")
}

fn get(r: &RunResult, name: &str) -> u64 {
    r.metric(name).unwrap_or_else(|| panic!("no {name}")) as u64
}

const ALL: u64 = 32 << 20;

#[test]
fn direct_reads_and_writes_leave_nothing_in_the_page_cache() {
    let r = run(r#"{ read = "file", via = "direct", block = "128K", passes = 2 }"#);
    assert_eq!((get(&r, "device.ssd.read_bytes"), get(&r, "node.inactive_file")), (2 * ALL, 0));
    assert_eq!((r.tasks[0].accesses, r.tasks[0].hits, r.tasks[0].ops), (2 * ALL / 4096, 0, 2 * ALL / (128 << 10)));
    assert!(r.tasks[0].iowait_seconds > 0.5 * r.seconds, "{:?}", r.tasks[0]);
    let r = run(r#"{ write = "file", via = "direct", block = "64K", passes = 1 }"#);
    assert_eq!((get(&r, "device.ssd.write_bytes"), get(&r, "node.file_dirty")), (ALL, 0));
}

/// A direct read waits for what is dirty in the cache, a direct write drops what is there.
#[test]
fn direct_io_and_the_page_cache_agree() {
    let r = run(r#"{ write = "file", passes = 1 }, { read = "file", via = "direct", block = "128K", passes = 1 }"#);
    assert_eq!((get(&r, "device.ssd.write_bytes"), get(&r, "device.ssd.read_bytes")), (ALL, ALL));
    assert_eq!(get(&r, "node.file_dirty"), 0);
    let r = run(r#"{ read = "file", passes = 1 }, { write = "file", via = "direct", block = "128K", passes = 1 }"#);
    assert_eq!(get(&r, "node.inactive_file") + get(&r, "node.active_file"), 0);
}

#[test]
fn fsync_waits_until_the_device_has_it() {
    let phase = |sync: &str| format!(r#"{{ write = "file", block = "1M", passes = 1, sync = "{sync}" }}"#);
    let [none, range, fsync] = ["none", "sync_file_range", "fsync"].map(|sync| run(&phase(sync)));
    assert_eq!(get(&fsync, "node.file_dirty"), 0);
    assert_eq!(get(&fsync, "device.ssd.write_bytes"), ALL);
    assert!(get(&none, "node.file_dirty") > 1000, "the kernel sees no need");
    assert!(
        get(&range, "node.file_dirty") < 256 && range.tasks[0].iowait_seconds < 0.1 * fsync.tasks[0].iowait_seconds
    );
    // An operation is not over before fsync is.
    assert!(fsync.tasks[0].latency.p50_ns() > 2 * none.tasks[0].latency.p50_ns());
    assert_eq!(fsync.tasks[0].ops, 32);
}

#[test]
fn files_are_dropped_from_the_cache() {
    let r = run(r#"{ read = "file", passes = 1 }, { drop = "file", size = "24M", passes = 1 }"#);
    assert_eq!(get(&r, "node.inactive_file") + get(&r, "node.active_file"), 8 << 8);
    assert_eq!(r.tasks[0].accesses, ALL / 4096, "dropping is no access");
    let again = run(r#"{ read = "file", passes = 1 }, { drop = "file", passes = 1 }, { read = "file", passes = 1 }"#);
    assert_eq!(get(&again, "device.ssd.read_bytes"), 2 * ALL);
    assert_eq!(get(&again, "vmstat.workingset_refault_file"), 0, "nothing is remembered of what was dropped");
}

#[test]
fn mistakes_are_named() {
    for (phase, want) in [
        (r#"{ read = "heap", via = "direct", passes = 1 }"#, "only files are accessed past the page cache"),
        (r#"{ read = "file", sync = "fsync", passes = 1 }"#, "is for files that are written by descriptor"),
        (
            r#"{ write = "file", via = "map", sync = "fsync", passes = 1 }"#,
            "is for files that are written by descriptor",
        ),
        (r#"{ write = "file", sync = "fdatasync", passes = 1 }"#, "sync_file_range"),
        (r#"{ page_out = "file", passes = 1 }"#, "only anonymous memory is paged out"),
        (r#"{ drop = "file", via = "fd", passes = 1 }"#, "is of accesses; drop makes none"),
    ] {
        let error = parse(phase).expect_err(phase);
        assert!(error.contains(want), "{phase}: {error}");
    }
}

fn on_device(device: &str) -> String {
    format!(
        r#"
name = "device"
machine = {{ memory = "64M" }}
device.d = {{ {device} }}
object.f = {{ kind = "file", size = "16M", device = "d" }}
[[task]]
name = "reads"
phase = [{{ object = "f", write_share = 0.5, pattern = "uniform", via = "direct", accesses = 1000 }}]
"#
    )
}

/// Latency and bandwidth of devices that answer at once were accepted, and changed nothing.
#[test]
fn regression_latency_and_bandwidth_of_devices_that_answer_at_once_count() {
    let seconds = |device: &str| {
        let s = Scenario::parse("d.toml", &on_device(device)).unwrap_or_else(|e| panic!("{device}: {e}"));
        Machine::new(&s, &s.policy).expect("a machine").checked().run().expect("a run").seconds
    };
    for preset in ["ramdisk", "pmem"] {
        let plain = seconds(&format!("preset = {preset:?}"));
        for key in [
            "read_latency = \"1ms\"",
            "write_latency = \"1ms\"",
            "read_bandwidth = \"10MB/s\"",
            "write_bandwidth = \"10MB/s\"",
        ] {
            let slow = seconds(&format!("preset = {preset:?}, {key}"));
            assert!(slow > plain + 0.1, "{preset}, {key}: {slow} s, {plain} s without");
        }
    }
}

/// Keys that nothing would come of are refused with what to do instead.
#[test]
fn keys_of_queues_are_of_devices_that_have_one() {
    for (device, what) in [
        ("preset = \"ramdisk\", channels = 2", "answers at once"),
        ("preset = \"pmem\", max_request = \"4K\"", "answers at once"),
        ("preset = \"zram\", queue = 2", "answers at once"),
        ("preset = \"zram\", read_bandwidth = \"1MB/s\"", "write decompress instead"),
        ("preset = \"nvme\", queue = 2", "no swap on it"),
    ] {
        let error = Scenario::parse("d.toml", &on_device(device)).expect_err(device).to_string();
        assert!(error.contains(what), "{device}: {error}");
    }
}
