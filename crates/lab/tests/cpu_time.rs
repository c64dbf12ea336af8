//! CPU time: kswapd, direct reclaim, and where the time of tasks goes.

use refault_lab::machine::{Machine, RunResult};
use refault_lab::scenario::{COLUMNS, Scenario, TIER_COLUMNS, series_columns};

/// One CPU, whose task uses twice its memory; swap on the device that is given.
fn run(machine: &str, preset: &str, phase: &str) -> RunResult {
    let text = format!(
        r#"
name = "cpu-time"
machine = {{ memory = "64M", costs = {{ context_switch = 0 }}, {machine} }}
device.swap = {{ preset = "{preset}" }}
swap = {{ device = "swap", size = "256M" }}
object.heap = {{ kind = "anon", size = "96M" }}
[[task]]
name = "work"
phase = [{{ object = "heap", pattern = "uniform", write_share = 0.5, cpu = "2us", {phase} }}]
"#
    );
    let s = Scenario::parse("cpu.toml", &text).expect("a scenario");
    Machine::new(&s, &s.policy).expect("a machine").checked().run().expect("a run")
}

fn get(r: &RunResult, name: &str) -> f64 {
    r.metric(name).unwrap_or_else(|| panic!("no {name}"))
}

/// A task has its CPU for what it did in user mode and in the kernel; the rest it waited.
#[test]
fn the_time_of_a_task_is_used_or_waited() {
    for (machine, preset) in [("cpus = 1, tick = 0", "nvme"), ("cpus = 1", "zram"), ("cpus = 1", "nvme")] {
        let r = run(machine, preset, "accesses = 60000");
        let task = &r.tasks[0];
        let had = get(&r, "cpu.tasks_seconds");
        let spent = task.user_seconds + task.system_seconds;
        assert!((spent - had).abs() < 0.001 * had, "{machine}, {preset}: {spent} s of {had} s");
        let waited = task.run_delay_seconds + task.iowait_seconds + task.throttled_seconds;
        let all = spent + waited;
        assert!((all - task.seconds).abs() < 0.01 * task.seconds, "{machine}, {preset}: {all} s of {task:?}");
        assert!(task.reclaim_seconds <= task.system_seconds);
        let direct = get(&r, "cpu.direct_reclaim_seconds");
        assert!((direct - task.reclaim_seconds).abs() < 1e-9, "{direct}: {task:?}");
    }
}

#[test]
fn kswapd_has_a_cpu_while_it_reclaims() {
    let r = run("cpus = 2", "zram", "accesses = 100000");
    let [seconds, percent, highest] =
        ["seconds", "percent", "highest_percent"].map(|what| get(&r, &format!("cpu.kswapd0.{what}")));
    assert!(seconds > 0.1 * r.seconds && seconds < r.seconds, "{seconds} of {}", r.seconds);
    assert!((percent - 100.0 * seconds / r.seconds).abs() < 1e-6, "{percent}");
    assert!(highest <= 100.0 + 1e-9, "{highest}");
    assert_eq!(get(&r, "series.kswapd_us.max"), (seconds * 1e6).floor());
    assert!(get(&r, "cpu.busy_seconds") <= 2.0 * r.seconds);
}

#[test]
fn kswapd_that_has_nothing_to_do_has_no_cpu_time() {
    let text = r#"
name = "roomy"
machine = { cpus = 1, memory = "64M" }
object.heap = { kind = "anon", size = "8M" }
task = [{ name = "work", phase = [{ write = "heap", passes = 4 }] }]
"#;
    let s = Scenario::parse("roomy.toml", text).expect("a scenario");
    let r = Machine::new(&s, &s.policy).expect("a machine").checked().run().expect("a run");
    assert_eq!((get(&r, "cpu.kswapd0.seconds"), get(&r, "cpu.direct_reclaim_seconds")), (0.0, 0.0));
    assert_eq!((r.tasks[0].iowait_seconds, r.tasks[0].throttled_seconds), (0.0, 0.0));
}

/// A task that waits for a disk has no CPU time for it, and two that share a CPU wait for each
/// other.
#[test]
fn waiting_is_told_apart() {
    let text = r#"
name = "waits"
machine = { cpus = 1, memory = "64M" }
device.disk = { preset = "hdd" }
object.file = { kind = "file", size = "16M", device = "disk" }
object.heap = { kind = "anon", size = "4M" }
[[task]]
name = "reads"
phase = [{ read = "file", pattern = "uniform", advice = "random", accesses = 500 }]
[[task]]
name = "spins"
count = 2
phase = [{ write = "heap", passes = 100, cpu = "5us" }]
"#;
    let s = Scenario::parse("waits.toml", text).expect("a scenario");
    let r = Machine::new(&s, &s.policy).expect("a machine").checked().run().expect("a run");
    let [reads, spins] = [&r.tasks[0], &r.tasks[1]];
    assert!(reads.iowait_seconds > 0.9 * reads.seconds, "{reads:?}");
    assert!(spins.iowait_seconds < 1e-3, "{spins:?}");
    // Each has the CPU half of the time.
    assert!((0.8..1.2).contains(&(spins.run_delay_seconds / spins.seconds)), "{spins:?}");
}

/// A name is one column, whatever the machine has.
#[test]
fn columns_of_the_time_series_do_not_collide() {
    for has_nodes in [false, true] {
        let mut names = series_columns(has_nodes, ["a", "a.b"], ["/a", "/a/b", "/a.pgfault"]);
        names.push("seconds".to_owned());
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(all > COLUMNS.len() + TIER_COLUMNS.len() + 100, "counters are among them");
    }
}

/// A read that hits opens a window of readahead, for which there is no page: the engine asked for
/// a kill that nobody took.
#[test]
fn regression_readahead_kills_nobody() {
    let text = r#"
name = "full"
end = "1s"
seed = 7
machine = { cpus = 2, memory = "64M", kernel = "4M" }
policy = { name = "mglru" }
device.disk = { preset = "hdd" }
device.ssd = { preset = "sata-ssd" }
device.sw = { preset = "nvme" }
memcg."/a" = { max = "4M", min = "8M" }
object.f2 = { kind = "file", size = "24M", device = "ssd", memcg = "/a" }
object.h1 = { kind = "anon", size = "13990p", memcg = "/" }
[[task]]
name = "fill"
phase = [{ write = "h1", passes = 1 }, { until = "end" }]
[[task]]
name = "loop"
memcg = "/a"
start = "500ms"
phase = [{ read = "f2", rate = "10000/s" }]
"#;
    let scenario = Scenario::parse("full.toml", text).unwrap_or_else(|e| panic!("{e}"));
    Machine::new(&scenario, &scenario.policy).expect("a machine").checked().run().expect("a run");
}

/// An operation that ends with reclaim, as the last one may, has a latency like all others.
#[test]
fn every_operation_has_its_latency() {
    for accesses in 30_000..30_040 {
        let task = &run("cpus = 1", "zram", &format!("accesses = {accesses}")).tasks[0];
        assert_eq!(task.latency.count(), task.ops, "{accesses} accesses");
    }
}
