//! The machine-wide cases of the recordings of real kernels: a 512 MiB machine without a memcg
//! limit, kswapd and zram.
//!
//! The recordings are not part of the repository; without them the test says that it skips.

use std::path::Path;

use refault_lab::machine::{Machine, RunResult};
use refault_lab::scenario::{PhaseLimit, PolicySpec, Scenario, TraceSpec};
use refault_mm::{AccessAdvice, Policy};
use refault_testing::{oracle, step};
use serde_json::Value;

/// The bar: hit rates within so many percentage points.
const BAR_POINTS: f64 = 2.0;

/// The machine: 512 MiB, of which the kernel leaves so much that 119,000 pages end on LRU lists, as
/// the recordings say. The pages that were swapped out held a word each, which zram stores in 64
/// bytes. The guest took about 25 us for an access, so the 2 s between two sums of statistics were
/// that much shorter than on a real machine: those of the group were flushed all the time, not
/// those of the root, which reclaim of the machine reads.
const MACHINE: &str = r#"
name = "oracle"
machine = { memory = "120400p", cpus = 2, read_ahead = "0K", costs = { read_hit = "25us" } }
policy = { name = "lru" }
device.disk = { preset = "nvme" }
device.zram = { preset = "zram", compression_ratio = 64.0 }
swap = { device = "zram", size = "256M" }
memcg."/test" = {}
object.none = { kind = "file", size = "4p", device = "disk" }
[[task]]
name = "replay"
memcg = "/test"
phase = [{ read = "none", passes = 1 }]
"#;

/// Counters that are shown beside those of the kernel.
const SHOWN: [&str; 12] = [
    "pgscan_kswapd",
    "pgscan_direct",
    "pgscan_anon",
    "pgscan_file",
    "pgsteal_anon",
    "pgsteal_file",
    "pgrefill",
    "pgactivate",
    "pswpout",
    "pageoutrun",
    "workingset_refault_file",
    "workingset_activate_file",
];

fn policy(case: &Value) -> PolicySpec {
    let name: Policy = case["policy"].as_str().expect("a policy").parse().expect("one of ours");
    let mut spec = PolicySpec::new(name);
    if case["recency"] == "literal" {
        spec.settings.choose_text("recency", "literal").expect("a setting");
    }
    spec
}

fn run(dir: &Path, case: &Value) -> RunResult {
    let mut scenario = Scenario::parse("oracle", MACHINE).expect("a scenario");
    scenario.objects.clear();
    let task = &mut scenario.tasks[0];
    task.phases[0].streams.clear();
    task.phases[0].until = PhaseLimit::End;
    let path = dir.join(case["trace"].as_str().expect("a trace"));
    task.trace = Some(TraceSpec { path, device: Some(0), timed: false, advice: AccessAdvice::Random, mincore: false });
    Machine::new(&scenario, &policy(case)).expect("a machine").checked().run().expect("a run")
}

/// The youngest and the oldest generation of file pages at the end of a recording.
fn their_seqs(dir: &Path, case: &Value) -> Option<(u64, u64)> {
    let packed = std::fs::read(dir.join(case["lists"].as_str()?)).ok()?;
    let text = String::from_utf8(zstd::decode_all(&packed[..]).ok()?).ok()?;
    let (_, last) = text.rsplit_once("lru_gen_full")?;
    // Lines of generations: seq, age, anon, file; sizes of those that are gone end in x.
    let line = |l: &str| {
        let words: Vec<&str> = l.split_whitespace().collect();
        let [seq, age, _, file] = words[..] else { return None };
        age.parse::<u64>().ok()?;
        Some((seq.parse::<u64>().ok()?, !file.ends_with('x')))
    };
    let generations: Vec<(u64, bool)> = last.lines().filter_map(line).collect();
    let oldest = generations.iter().find(|g| g.1)?.0;
    Some((oldest, generations.last()?.0))
}

#[test]
fn the_machine_as_a_whole() {
    let Some(dir) = oracle() else { return };
    let cases = std::fs::read_to_string(dir.join("cases.json")).expect("cases");
    let cases: Vec<Value> = serde_json::from_str(&cases).expect("JSON");
    let whole = |c: &&Value| c["workload"].as_str().is_some_and(|w| w.starts_with("global-"));
    let cases: Vec<&Value> = cases.iter().filter(whole).collect();
    assert_eq!(cases.len(), 10);
    let mut beyond = Vec::new();
    for case in cases.into_iter().step_by(step(10, 3)) {
        let r = run(&dir, case);
        let (theirs, ours) = (case["hit_rate"].as_f64().expect("a rate"), r.tasks[0].hit_rate());
        let name = format!("{} {} {}", case["workload"], case["policy"], case["recency"]).replace('"', "");
        let points = (ours - theirs) * 100.0;
        println!("{name}: hit rate {theirs:.4}, ours {ours:.4} ({points:+.3} points)");
        let counters = &r.memcgs[0].counters;
        for name in SHOWN {
            let theirs = case["vmstat_counters"].get(name).and_then(Value::as_u64).unwrap_or(0);
            println!("    {name:26} {theirs:>10} {:>10}", counters.get(name).copied().unwrap_or(0));
        }
        if let Some(seqs) = their_seqs(&dir, case) {
            println!("    min_seq and max_seq at the end {seqs:?}, ours {:?}", r.memcgs[1].seqs);
        }
        // Swap-out of the same size: none where there was none, else all of the idle memory.
        let swapped = case["vmstat_counters"].get("pswpout").and_then(Value::as_f64).unwrap_or(0.0);
        let ratio = r.metric("vmstat.pswpout").unwrap_or(0.0) / swapped.max(1.0);
        assert!(if swapped > 0.0 { (0.9..1.1).contains(&ratio) } else { ratio == 0.0 }, "{name}: pswpout, {ratio}");
        if points.abs() > BAR_POINTS {
            beyond.push(name);
        }
    }
    assert!(beyond.is_empty(), "beyond {BAR_POINTS} points: {beyond:?}");
}
