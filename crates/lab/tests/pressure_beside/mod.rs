//! Pressure, latency and run time beside a real kernel.
//!
//! The recordings are `data/pressure/recordings.json`; how they were made is in the page beside it.
//! The table is `docs/measurements/pressure-beside-linux.md`, which
//! `REFAULT_WRITE_TABLES=1 cargo test -p refault-lab --test all pressure_beside` writes anew.

mod guest;

use std::fmt::Write as _;

use guest::{CASES, Case};
use refault_lab::machine::{Machine, RunResult};
use serde_json::Value;

/// Figures of a run, in the order of [`COMPARED`], all in microseconds.
type Figures = [f64; 6];

/// Names in the recordings, and how far they may be apart as a share of the kernel's.
const COMPARED: [(&str, f64); 6] = [
    ("memory_some_us", 0.2),
    ("memory_full_us", 0.2),
    ("io_some_us", 0.2),
    ("io_full_us", 0.2),
    ("p99_ns", 0.3),
    ("run_us", 0.1),
];

fn run(case: &Case, policy: &str, is_measured: bool) -> RunResult {
    let scenario = case.scenario(policy, is_measured);
    Machine::new(&scenario, &scenario.policy).expect("a machine").run().expect("a run")
}

fn ours(case: &Case, policy: &str) -> Figures {
    let (before, after) = (run(case, policy, false), run(case, policy, true));
    let psi = |name: &str| {
        let of = |run: &RunResult| run.memcgs[1].metric(name).expect("a metric");
        of(&after) - of(&before)
    };
    let task = &after.tasks[1];
    let p99 = task.latency.p99_ns().saturating_sub(case.own_ns()) as f64;
    let show = std::env::var_os("SHOW").is_some();
    if show {
        let c = |n: &str| after.memcgs[1].counter(n) - before.memcgs[1].counter(n);
        println!("{} {policy}: hits {:.4} p50 {} p999 {} scan {} steal {} refault {}/{} restore {}/{} swpin {}", case.name, task.hit_rate(), task.latency.p50_ns(), task.latency.p999_ns(), c("pgscan_direct"), c("pgsteal_direct"), c("workingset_refault_file"), c("workingset_refault_anon"), c("workingset_restore_file"), c("workingset_restore_anon"), c("pswpin"));
    }
    [psi("psi_some_us"), psi("psi_full_us"), psi("psi_io_some_us"), psi("psi_io_full_us"), p99, task.seconds * 1e6]
}

#[test]
fn beside_a_real_kernel() {
    let rows: Vec<Value> = serde_json::from_str(include_str!("../data/pressure/recordings.json")).expect("JSON");
    let mut table = String::new();
    for case in CASES {
        for policy in ["lru", "mglru"] {
            let of: Vec<&Value> = rows.iter().filter(|r| r["case"] == case.name && r["policy"] == policy).collect();
            if of.is_empty() || std::env::var("ONLY").is_ok_and(|o| !case.name.starts_with(&o)) {
                continue;
            }
            let ours = ours(&case, policy);
            write!(table, "| {} {policy} | {} |", case.name, of.len()).unwrap();
            for ((name, bar), ours) in COMPARED.into_iter().zip(ours) {
                let theirs = of.iter().map(|r| r[name].as_f64().unwrap()).sum::<f64>() / of.len() as f64;
                let bad = if (ours - theirs).abs() > bar * theirs { "*" } else { "" };
                write!(table, " {:.1} / {:.1}{bad} |", theirs / 1e3, ours / 1e3).unwrap();
            }
            table.push('\n');
        }
    }
    println!("{table}");
}
