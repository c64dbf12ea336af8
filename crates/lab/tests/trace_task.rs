//! Tasks that replay traces, and devices that fail.

use refault_lab::machine::{Ending, Machine, RunResult};
use refault_lab::scenario::Scenario;
use refault_trace::generate::Workload;
use refault_trace::{NativeWriter, RecordSource};

fn write(dir: &tempfile::TempDir, name: &str, text: &str) -> std::path::PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, text).expect("a file");
    path
}

fn run(path: &std::path::Path) -> RunResult {
    let scenario = Scenario::load(path).expect("a scenario");
    Machine::new(&scenario, &scenario.policy).expect("a machine").checked().run().expect("a run")
}

const HEAD: &str = "name = \"t\"\nmachine = { memory = \"8M\", cpus = 1 }\ndevice.disk = { preset = \"nvme\" }\n";

#[test]
fn a_trace_drives_a_task() {
    let dir = tempfile::tempdir().expect("a directory");
    let accesses: Vec<String> = (0..1000).map(|i| (i % 100).to_string()).collect();
    write(&dir, "accesses.txt", &accesses.join("\n"));
    let task = "memcg.\"/g\" = {}\n[[task]]\nname = \"replay\"\nmemcg = \"/g\"\ntrace = { file = \"accesses.txt\", device = \"disk\", advice = \"random\" }\n";
    let r = run(&write(&dir, "s.toml", &format!("{HEAD}{task}")));
    assert_eq!((r.ending, r.tasks[0].accesses, r.tasks[0].hits), (Ending::TasksDone, 1000, 900));
    assert_eq!(r.devices[0].stats.reads, 100);
    assert_eq!(r.metric("memcg./g.task_accesses"), Some(1000.0));
    assert_eq!(r.metric("vmstat.task_hits"), Some(900.0));
}

#[test]
fn a_trace_that_is_not_there_or_has_no_device() {
    let dir = tempfile::tempdir().expect("a directory");
    write(&dir, "accesses.txt", "1\n2\n");
    for (trace, wanted) in [
        ("{ file = \"gone.txt\", device = \"disk\" }", "gone.txt"),
        ("{ file = \"accesses.txt\" }", "say where they are"),
    ] {
        let path = write(&dir, "s.toml", &format!("{HEAD}[[task]]\nname = \"r\"\ntrace = {trace}\n"));
        let scenario = Scenario::load(&path).expect("a scenario");
        let error = Machine::new(&scenario, &scenario.policy).err().expect("an error");
        assert!(error.contains(wanted), "{error}");
    }
}

/// Every read fails: each access ends in an error, and is counted once.
#[test]
fn reads_that_fail_reach_the_task() {
    let dir = tempfile::tempdir().expect("a directory");
    let head = HEAD.replace("\"nvme\"", "\"nvme\", READ_ERRORS").replace("READ_ERRORS", ERRORS_READ);
    let text = format!(
        "{head}object.f = {{ kind = \"file\", size = \"1M\", device = \"disk\" }}\n\
         [[task]]\nname = \"r\"\nphase = [{{ read = \"f\", accesses = 50, advice = \"random\" }}]\n"
    );
    let r = run(&write(&dir, "s.toml", &text));
    assert_eq!((r.tasks[0].accesses, r.tasks[0].hits), (50, 0));
    assert_eq!(r.metric("vmstat.read_errors"), Some(r.devices[0].stats.read_errors as f64));
    assert!(r.tasks[0].errors > 0);
}

/// Every write fails: what was written stays dirty and in memory, nothing counts as written.
#[test]
fn writes_that_fail_keep_their_pages() {
    let dir = tempfile::tempdir().expect("a directory");
    let head = HEAD.replace("\"nvme\"", &format!("\"nvme\", {ERRORS_WRITE}"));
    let text = format!(
        "{head}end = \"30s\"\nobject.f = {{ kind = \"file\", size = \"2M\", device = \"disk\" }}\n\
         [[task]]\nname = \"w\"\nphase = [{{ write = \"f\", accesses = 400, advice = \"random\" }}]\n"
    );
    let text = text.replacen("end = \"30s\"\n", "", 1).replacen("name = \"t\"", "name = \"t\"\nend = \"30s\"", 1);
    let r = run(&write(&dir, "s.toml", &text));
    assert_eq!(r.devices[0].stats.write_bytes, 0);
    assert_eq!(r.metric("vmstat.nr_written"), Some(0.0));
    let dirty = r.metric("node.file_dirty").unwrap_or(0.0) + r.metric("node.file_writeback").unwrap_or(0.0);
    assert_eq!(dirty, 400.0);
}

const ERRORS_READ: &str = "read_error_per_million = 1000000";
const ERRORS_WRITE: &str = "write_error_per_million = 1000000";

const SMALL: &str = "name = \"t\"\nmachine = { memory = \"64M\", cpus = 2 }\n";

/// Found by a reader of the documentation: heaps of tasks that had ended filled the memory.
#[test]
fn a_task_that_ends_frees_its_heap() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = format!(
        "{SMALL}object.a = {{ kind = \"anon\", size = \"40M\" }}\nobject.b = {{ kind = \"anon\", size = \"40M\" }}\n\
         [[task]]\nname = \"a\"\nphase = [{{ write = \"a\", passes = 1 }}]\n\
         [[task]]\nname = \"b\"\nafter = \"a\"\nphase = [{{ write = \"b\", passes = 1 }}]\n"
    );
    let r = run(&write(&dir, "s.toml", &text));
    assert_eq!((r.oom_kills, r.tasks[1].accesses), (0, 40 << 8));
}

/// A trace that writes 40 MiB of anonymous memory once.
fn heap_trace(dir: &tempfile::TempDir) {
    let workload = Workload::parse(&["10240: heap:seq:10240:kind=anon,op=w,via=map"], 1).expect("a workload");
    let mut source = workload.generator("heap").expect("a generator");
    let mut writer = NativeWriter::create(&dir.path().join("heap.parquet")).expect("a trace");
    let mut chunk = Vec::new();
    while source.next_chunk(&mut chunk).expect("records") {
        writer.write(&chunk).expect("a trace");
    }
    writer.finish(&source.header().clone()).expect("a trace");
}

/// Found beside a real kernel: the heap of a trace stayed after its task had ended.
#[test]
fn a_trace_that_ends_frees_its_heap() {
    let dir = tempfile::tempdir().expect("a directory");
    heap_trace(&dir);
    let text = format!(
        "{SMALL}object.b = {{ kind = \"anon\", size = \"40M\" }}\n\
         [[task]]\nname = \"a\"\ntrace = {{ file = \"heap.parquet\" }}\n\
         [[task]]\nname = \"b\"\nafter = \"a\"\nphase = [{{ write = \"b\", passes = 1 }}]\n"
    );
    let r = run(&write(&dir, "s.toml", &text));
    assert_eq!((r.oom_kills, r.tasks[1].accesses), (0, 40 << 8));
}

/// So did the heap of one that was killed.
#[test]
fn a_trace_that_is_killed_frees_its_heap() {
    let dir = tempfile::tempdir().expect("a directory");
    heap_trace(&dir);
    let text = format!(
        "{SMALL}object.b = {{ kind = \"anon\", size = \"40M\" }}\n\
         [[task]]\nname = \"a\"\noom_score_adj = 1000\ntrace = {{ file = \"heap.parquet\" }}\n\
         [[task]]\nname = \"b\"\nphase = [{{ write = \"b\", passes = 3 }}]\n"
    );
    let r = run(&write(&dir, "s.toml", &text));
    assert_eq!((r.ending, r.oom_kills, r.tasks[1].accesses), (Ending::TasksDone, 1, 3 * (40 << 8)));
}

/// Found by the same reader: it went on for ever.
#[test]
fn out_of_memory_with_nobody_to_kill_is_the_end() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = format!(
        "{SMALL}object.a = {{ kind = \"anon\", size = \"100M\" }}\n\
         [[task]]\nname = \"a\"\noom_score_adj = -1000\nphase = [{{ write = \"a\", passes = 1 }}]\n"
    );
    assert_eq!(run(&write(&dir, "s.toml", &text)).ending, Ending::Stuck);
}

/// And so did this: swap that takes nothing.
#[test]
fn swap_whose_writes_all_fail_ends_in_a_kill() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = format!(
        "{SMALL}device.swap = {{ preset = \"nvme\", {ERRORS_WRITE} }}\nswap = {{ device = \"swap\", size = \"64M\" }}\n\
         object.a = {{ kind = \"anon\", size = \"100M\" }}\n\
         [[task]]\nname = \"a\"\nphase = [{{ write = \"a\", passes = 1 }}]\n"
    );
    let r = run(&write(&dir, "s.toml", &text));
    assert_eq!(r.oom_kills, 1);
    assert_eq!(r.devices[0].stats.write_bytes, 0);
}
