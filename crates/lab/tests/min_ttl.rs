//! `min_ttl`: kswapd keeps the working set of so long, or a task is killed.

use refault_lab::machine::{Machine, RunResult};
use refault_lab::scenario::Scenario;

/// A board with a swap in memory, something small that works, and 2 s later something that wants
/// more than there is.
fn run(min_ttl: &str, more: &str) -> RunResult {
    let text = format!(
        r#"
name = "min-ttl"
end = "6s"
machine = {{ cpus = 2, memory = "64M", kernel = "8M", page_cluster = 0, min_ttl = {min_ttl} }}
policy = {{ name = "mglru" }}
device.z = {{ preset = "zram" }}
device.sd = {{ preset = "sata-ssd" }}
swap = {{ device = "z", size = "64M" }}
memcg."/idle" = {{}}
object.core = {{ kind = "anon", size = "16M", content = {{ ratio = 3.0 }} }}
object.exe = {{ kind = "file", size = "8M", device = "sd" }}
object.cc = {{ kind = "anon", size = "64M", content = {{ ratio = 3.0 }} }}
[[task]]
name = "core"
phase = [{{ write = "core", passes = 1, measured = false }}, {{ rate = "2000/s", stream = [{{ object = "core", pattern = "uniform", write_share = 0.2 }}, {{ read = "exe", via = "map", pattern = "uniform" }}] }}]
[[task]]
name = "cc"
start = "2s"
phase = [{{ write = "cc", passes = 1 }}, {{ object = "cc", pattern = "uniform", write_share = 0.4, rate = "20000/s" }}]
{more}"#
    );
    let s = Scenario::parse("min-ttl.toml", &text).unwrap_or_else(|e| panic!("{e}"));
    Machine::new(&s, &s.policy).expect("a machine").checked().run().expect("a run")
}

fn kills(r: &RunResult) -> [u64; 2] {
    [0, 1].map(|task| r.tasks[task].oom_kills)
}

/// Found with a report: the setting was read, and kswapd's wish to kill was kept and never heard.
#[test]
fn regression_min_ttl_kills_what_does_not_leave_the_working_set_alone() {
    let (off, on) = (run("0", ""), run("\"1m\"", ""));
    assert_eq!((kills(&off), kills(&on)), ([0, 0], [0, 1]), "the one that wants more is killed");
    let refaults =
        |r: &RunResult| r.memcgs[0].counter("workingset_refault_anon") + r.memcgs[0].counter("workingset_refault_file");
    assert!(refaults(&off) > 5000 && refaults(&on) == 0, "{} {}", refaults(&off), refaults(&on));
    assert!(on.tasks[0].hit_rate() > off.tasks[0].hit_rate() + 0.05);
}

/// A generation that is older than that may go, and nobody is killed: all of the memory is written
/// in some 60 ms.
#[test]
fn what_is_old_enough_goes_without_a_kill() {
    let r = run("\"5ms\"", "");
    assert_eq!(kills(&r), [0, 0]);
}

/// Found with a report: the kill that nobody had carried out met a task when the limit of another,
/// idle group was set.
#[test]
fn regression_a_limit_of_an_idle_group_kills_nobody_elsewhere() {
    for min_ttl in ["0", "\"1m\""] {
        let set = "[[event]]\nat = \"5s\"\nset = \"/idle\"\nmax = \"4M\"";
        assert_eq!(kills(&run(min_ttl, set)), kills(&run(min_ttl, "")), "{min_ttl}");
    }
}

/// The setting is of generations.
#[test]
fn two_lists_have_no_min_ttl() {
    let text = "name = \"t\"\nend = \"1s\"\nmachine = { memory = \"64M\", min_ttl = \"1m\" }\npolicy.name = \"lru\"\ndevice.d = { preset = \"nvme\" }\nobject.f = { kind = \"file\", size = \"96M\", device = \"d\" }\n[[task]]\nname = \"t\"\nphase = [{ read = \"f\" }]\n";
    let s = Scenario::parse("t.toml", text).unwrap_or_else(|e| panic!("{e}"));
    let r = Machine::new(&s, &s.policy).expect("a machine").checked().run().expect("a run");
    assert_eq!(r.oom_kills, 0);
}
