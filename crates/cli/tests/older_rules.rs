//! Against kernels into which older rules were put back: hit or miss of every access of generated
//! workloads, beside ours under the profile with those rules, and under 6.12.
//!
//! The changes of each kernel are in `data/older-rules/README.md`. The workloads come from a seed,
//! so that nothing is needed but this repository.

use refault_testing::{is_long, one_in};
use std::fs;
use std::path::{Path, PathBuf};

use refault_cli::replay::cell::{Cell, MissBits};
use refault_mm::Kernel;
use refault_trace::Trace;
use refault_trace::generate::Workload;
use serde_json::Value;

use crate::oracle::{config, hit_rate, replay, via};

/// How far hit rates may be apart, in percentage points.
const BAR: f64 = 0.3;

/// The same for what one kernel does not repeat so nearly.
const WIDE_BAR: f64 = 1.0;

/// Under two lists four readers of uneven speed fall into step or not by a few pages: 44 pages of
/// memory change ours by 0.55 points, up and down, and two repeats of 6.12 are 0.42 points apart.
fn is_unstable(workload: &str, policy: &str) -> bool {
    workload == "idle-readers" && policy == "lru"
}

/// How much further off than under 6.12 a row may be under its own profile, in percentage points.
const WORSE: f64 = 0.05;

/// By how much 6.12 has to be further off, in how many rows: that is how a profile shows that its
/// rules are other ones. Those of 6.6 matter for anonymous memory and mapped files alone.
const TELLS_APART: [(Kernel, f64, usize); 3] =
    [(Kernel::V6_6, 0.2, 1), (Kernel::V6_6Rc, 1.0, 4), (Kernel::V2022V14, 1.0, 3)];

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/older-rules")
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or_else(|| panic!("{key} is no text in {row}"))
}

fn trace(workloads: &Value, name: &str, access: &str) -> Trace {
    let phases: Vec<_> = workloads[name].as_array().expect("phases").iter().filter_map(Value::as_str).collect();
    let workload = Workload::parse(&phases, 1).expect("a workload");
    Trace::load(&mut workload.generator(name).expect("a generator"), &via(access)).expect("a trace")
}

/// A recording and what we make of it; differences in percentage points.
struct Row {
    kernel: Kernel,
    points: f64,
    by_6_12: f64,
    line: String,
}

impl Row {
    /// By how much 6.12 is further off.
    fn gain(&self) -> f64 {
        self.by_6_12.abs() - self.points.abs()
    }
}

fn disagreements(bits: &str, ours: &MissBits) -> u64 {
    let file = fs::File::open(data().join(bits)).expect("bits");
    let theirs = zstd::decode_all(file).expect("zstd");
    assert_eq!(theirs.len(), ours.0.len(), "{bits}");
    theirs.iter().zip(&ours.0).map(|(a, b)| u64::from((a ^ b).count_ones())).sum()
}

/// Both counted by the kernel and by us: refaults that were restored, folios that sorting protected
/// or deactivation took.
fn counted(recording: &Value, cell: &Cell) -> String {
    let stats = cell.engine.memcg_stats(cell.group);
    let sum = |names: &[&str]| {
        let theirs: u64 = names.iter().filter_map(|n| recording["counters"][n].as_u64()).sum();
        let ours: u64 = stats.iter().filter(|(n, _)| names.contains(n)).map(|(_, count)| count).sum();
        format!("{theirs:>7} {ours:>7}")
    };
    format!("{} {}", sum(&["workingset_restore_anon", "workingset_restore_file"]), sum(&["pgrefill"]))
}

fn compare(workloads: &Value, recording: &Value) -> Row {
    let (policy, access, name) = (text(recording, "policy"), text(recording, "access"), text(recording, "workload"));
    let kernel: Kernel = text(recording, "profile").parse().expect("a profile");
    let trace = trace(workloads, name, access);
    let n = trace.accesses.len() as f64;
    let (cell, bits) = replay(&trace, config(kernel, policy, None));
    let (as_6_12, _) = replay(&trace, config(Kernel::V6_12, policy, None));
    let misses: Vec<f64> = recording["misses"].as_array().expect("misses").iter().filter_map(Value::as_f64).collect();
    let theirs = 1.0 - misses.iter().sum::<f64>() / misses.len() as f64 / n;
    let (points, by_6_12) = ((hit_rate(&cell) - theirs) * 100.0, (hit_rate(&as_6_12) - theirs) * 100.0);
    let agree = 100.0 - 100.0 * disagreements(text(recording, "bits"), &bits) as f64 / n;
    let flush = if recording["flush"] == 0 { "no flush" } else { "" };
    let line = format!(
        "{kernel:8} {policy:6} {name:14} {access:3} {theirs:8.4} {:8.4} {points:+7.3} {agree:8.3} {by_6_12:+8.3}  {} {flush}",
        hit_rate(&cell),
        counted(recording, &cell),
    );
    Row { kernel, points, by_6_12, line }
}

#[test]
fn every_access_beside_kernels_with_older_rules() {
    let file = fs::read(data().join("recordings.json")).expect("recordings");
    let file: Value = serde_json::from_slice(&file).expect("JSON");
    println!(
        "profile  policy workload       by    kernel     ours  points  agree %  by 6.12  restores: both; refilled: both"
    );
    let (mut rows, mut beyond, mut worse) = (Vec::new(), Vec::new(), Vec::new());
    for recording in file["recordings"].as_array().expect("a list").iter().step_by(one_in(4)) {
        let row = compare(&file["workloads"], recording);
        println!("{}", row.line);
        let is_unstable = is_unstable(text(recording, "workload"), text(recording, "policy"));
        if row.points.abs() > if is_unstable { WIDE_BAR } else { BAR } {
            beyond.push(row.line.clone());
        }
        if row.gain() < -WORSE && !is_unstable {
            worse.push(row.line.clone());
        }
        rows.push(row);
    }
    assert!(beyond.is_empty(), "beyond the bar: {beyond:#?}");
    assert!(worse.is_empty(), "further off under their profile than under 6.12: {worse:#?}");
    // Few rows where tests are short.
    for (kernel, points, least) in TELLS_APART.into_iter().filter(|_| is_long()) {
        let shown = rows.iter().filter(|r| r.kernel == kernel && r.gain() > points).count();
        assert!(shown >= least, "only {shown} rows tell {kernel} from 6.12");
    }
}
