//! The machine-wide cases of the recordings of real kernels: a 512 MiB machine without a memcg limit, kswapd and zram.
//!
//! The recordings are not part of the repository; without them the test says that it skips.

use std::path::{Path, PathBuf};

use refault_mm::{Policy, Recency};
use refault_sim::machine::{Machine, RunResult};
use refault_sim::scenario::{PolicySpec, Scenario, TraceSpec};
use serde_json::Value;

/// The machine: 512 MiB, of which the kernel leaves so much that 119,000 pages end on LRU lists, as the recordings say.
const MACHINE: &str = r#"
name = "oracle"
machine = { memory = "120400p", cpus = 2, read_ahead = "0K" }
sample = "200ms"
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

fn oracle() -> Option<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/oracle");
    dir.join("cases.json").exists().then_some(dir)
}

fn policy(case: &Value) -> PolicySpec {
    let name: Policy = case["policy"].as_str().expect("a policy").parse().expect("one of ours");
    let mut spec = PolicySpec::new(name);
    if case["recency"] == "literal" {
        spec.recency = Some(Recency::Literal);
    }
    spec
}

fn run(dir: &Path, case: &Value) -> RunResult {
    let mut scenario = Scenario::parse("oracle", MACHINE).expect("a scenario");
    if let Ok(m) = std::env::var("MEM") {
        scenario.machine.memory_pages = m.parse().unwrap();
    }
    scenario.objects.clear();
    let task = &mut scenario.tasks[0];
    task.phases[0].streams.clear();
    task.phases[0].until = refault_sim::scenario::Until::End;
    let path = dir.join(case["trace"].as_str().expect("a trace"));
    task.trace = Some(TraceSpec { path, device: Some(0), timed: false, random_advice: true });
    Machine::new(&scenario, &policy(case)).expect("a machine").checked().run().expect("a run")
}

#[test]
fn the_machine_as_a_whole() {
    let Some(dir) = oracle() else {
        eprintln!("skipped: the recordings of real kernels are not here");
        return;
    };
    let cases = std::fs::read_to_string(dir.join("cases.json")).expect("cases");
    let cases: Vec<Value> = serde_json::from_str(&cases).expect("JSON");
    for case in cases.iter().filter(|c| {
        c["workload"].as_str().is_some_and(|w| w.starts_with(&std::env::var("WL").unwrap_or("global-".into())))
    }) {
        let r = run(&dir, case);
        let theirs = case["hit_rate"].as_f64().expect("a rate");
        println!(
            "{} {} {} {}: {:.6} ours {:.6} ({:+.3} points)",
            case["workload"],
            case["kernel"],
            case["policy"],
            case["recency"],
            theirs,
            r.tasks[0].hit_rate(),
            (r.tasks[0].hit_rate() - theirs) * 100.0
        );
        let ours = &r.memcgs[0].counters;
        for (name, value) in case["vmstat_counters"].as_object().expect("counters") {
            let name = name.strip_suffix("_normal").unwrap_or(name);
            println!("    {name:32} {value:>10} {:>10}", ours.get(name).copied().unwrap_or(0));
        }
        println!("{}", r.lru_gen);
        let n = r.tasks[0].accesses / 64;
        let (mut acc, mut miss, mut out) = (0.0, 0.0, vec![]);
        for (_, row) in r.series.rows() {
            acc += row[1];
            miss += row[1] - row[2];
            if acc >= n as f64 {
                out.push(miss / acc);
                acc = 0.0;
                miss = 0.0;
            }
        }
        println!("ours   {:?}", out.iter().map(|x| (x * 1000.0) as u32).collect::<Vec<_>>());
        println!(
            "theirs {:?}",
            case["window_misses"]
                .as_array()
                .unwrap()
                .iter()
                .map(|x| (x.as_f64().unwrap() / n as f64 * 1000.0) as u32)
                .collect::<Vec<_>>()
        );
    }
}
