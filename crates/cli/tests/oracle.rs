//! Against real kernels: hit or miss of every access of given traces, on Linux 6.1, 6.12, 6.18 and
//! on 6.12 with the RFC v3 series, beside ours.
//!
//! Where the recordings are not (they are not shipped), the same workloads are generated anew and
//! the hit rates compared with the kernels' figures, which are: `data/kernel-6.12.json`.

use std::fs;
use std::path::Path;

use refault_cli::replay::cell::{Cell, MissBits};
use refault_mm::{AccessAdvice, Config, Kernel, Policy, Recency};
use refault_testing::{one_in, oracle, short_or_long};
use refault_trace::generate::{Interleave, Pattern, Phase, Stream, Workload};
use refault_trace::{LoadOptions, ObjectKind, OpenOptions, Trace, Via, open};
use serde_json::Value;

/// The limit of the group in all of them.
const LIMIT_PAGES: u64 = 16_384;

/// Pages that the measuring process itself has charged: 13 to 18 of its own memory and a few of
/// kernel objects, by the kernels' `memory.stat`. The same for all workloads.
const PROCESS_PAGES: u64 = 20;

/// How far hit rates may be apart, in percentage points. Mapped multi-gen LRU differs from itself
/// from run to run.
fn bar(access: &str, policy: &str) -> f64 {
    match (access, policy.starts_with("mglru")) {
        ("fd", _) => 0.25,
        ("map", true) => 2.0,
        _ => 0.5,
    }
}

pub(crate) fn config(kernel: Kernel, policy: &str, recency: Option<&str>) -> Config {
    let mut cfg = Config::new(policy.parse::<Policy>().expect("a policy"));
    kernel.apply(&mut cfg);
    if recency == Some("literal") {
        cfg.lru.recency = Recency::Literal;
    }
    cfg.memcg.reserved_pages = PROCESS_PAGES;
    cfg
}

pub(crate) fn via(access: &str) -> LoadOptions {
    LoadOptions { default_via: if access == "fd" { Via::Fd } else { Via::Map }, ..LoadOptions::default() }
}

pub(crate) fn replay(trace: &Trace, cfg: Config) -> (Cell, MissBits) {
    let mut cell = Cell::new(trace, cfg, LIMIT_PAGES, u64::MAX).expect("a cell");
    let mut bits = MissBits::new(trace.accesses.len());
    cell.run(&trace.accesses, None, &mut bits);
    cell.engine.validate().expect("a consistent engine");
    (cell, bits)
}

pub(crate) fn hit_rate(cell: &Cell) -> f64 {
    1.0 - cell.misses as f64 / cell.accesses as f64
}

/// The same kernel differs from itself by more than the bar: how far a loop through mapped pages
/// gets depends on what a walk finds young, and when.
fn is_unstable(workload: &str, access: &str, policy: &str) -> bool {
    policy == "mglru" && access == "map" && workload == "loop-1.1x"
}

struct Comparison {
    line: String,
    within: bool,
    /// By how much it is further from the kernel under the kernel's own profile than under that of
    /// 6.12, in percentage points.
    worse: f64,
}

/// The profile of a recording; that of a series is the one of the kernel that it was put on.
fn profile(kernel: &str) -> Kernel {
    kernel.split('+').next().unwrap_or_default().parse().expect("a profile")
}

/// `root` has the traces, `recorded` what was recorded of them.
fn compare(root: &Path, recorded: &Path, case: &Value) -> Comparison {
    let text = |key: &str| case[key].as_str().unwrap_or_default();
    let (access, policy, recency) = (text("access"), text("policy"), case["recency"].as_str());
    let mut source = open(&root.join(text("trace")), &OpenOptions::default()).expect("a trace");
    let trace = Trace::load(source.as_mut(), &via(access)).expect("a trace");
    let kernel = profile(text("kernel"));
    let (cell, bits) = replay(&trace, config(kernel, policy, recency));
    let as_6_12 = match kernel {
        Kernel::V6_12 => hit_rate(&cell),
        _ => hit_rate(&replay(&trace, config(Kernel::V6_12, policy, recency)).0),
    };
    let theirs = zstd::decode_all(fs::File::open(recorded.join(text("bits"))).expect("bits")).expect("zstd");
    let apart: u64 = theirs.iter().zip(&bits.0).map(|(a, b)| u64::from((a ^ b).count_ones())).sum();
    let n = trace.accesses.len() as f64;
    let runs: Vec<f64> = case["misses"].as_array().expect("misses").iter().filter_map(Value::as_f64).collect();
    let rate = |misses: f64| 1.0 - misses / n;
    let lowest = rate(runs.iter().copied().fold(0.0, f64::max));
    let highest = rate(runs.iter().copied().fold(n, f64::min));
    let (kernel, ours) = (case["hit_rate"].as_f64().expect("a rate"), hit_rate(&cell));
    let points = (ours - kernel) * 100.0;
    let worse = points.abs() - ((as_6_12 - kernel) * 100.0).abs();
    let inside = (lowest..=highest).contains(&ours);
    let unstable = is_unstable(text("workload"), access, policy);
    let within = points.abs() <= bar(access, policy) || inside || unstable && runs.len() > 1;
    let name = format!("{} {policy}{}", text("kernel"), recency.map_or(String::new(), |r| format!(" {r}")));
    let by_6_12 = if as_6_12 == ours { String::new() } else { format!("{:+8.3}", (as_6_12 - kernel) * 100.0) };
    let line = format!(
        "{name:32} {:20} {access:4} {kernel:8.4} {:>17} {ours:8.4} {points:+7.3} {:9.3}{by_6_12}{}",
        text("workload"),
        format!("{lowest:.4}..{highest:.4}"),
        100.0 - 100.0 * apart as f64 / n,
        if within { "" } else { "  BEYOND THE BAR" },
    );
    snapshot(recorded, case, &cell);
    Comparison { line, within, worse }
}

/// The kernel's last snapshot beside the end of our run: list sizes, counters, tiers of file.
fn snapshot(root: &Path, case: &Value, cell: &Cell) {
    if std::env::var_os("ORACLE_SNAPSHOTS").is_none() {
        return;
    }
    let Some(lists) = case["lists"].as_str() else { return };
    let text = zstd::decode_all(fs::File::open(root.join(lists)).expect("lists")).expect("zstd");
    let text = String::from_utf8_lossy(&text);
    let last = text.rsplit("== access").next().unwrap_or_default();
    println!("\n{lists}");
    let stats = cell.engine.memcg_stats(cell.group);
    let gauges = cell.engine.memcg_gauges(cell.group);
    for line in last.lines() {
        let mut words = line.split_whitespace();
        let (Some(name), Some(value), None) = (words.next(), words.next(), words.next()) else { continue };
        let Ok(value) = value.parse::<u64>() else { continue };
        if let Some(g) = gauges.iter().find(|g| g.name == name) {
            println!("  {name:28} kernel {:>10} ours {:>10}", value / 4096, g.value);
        } else if let Some((_, ours)) = stats.iter().find(|(n, _)| *n == name) {
            println!("  {name:28} kernel {value:>10} ours {ours:>10}");
        }
    }
    if case["policy"].as_str().is_some_and(|p| p.starts_with("mglru")) {
        let theirs = last.split_once("lru_gen_full").map_or("", |(_, t)| t);
        println!("  the kernel's lru_gen_full:{theirs}\n  ours:\n{}", cell.engine.lru_gen_full_text());
    }
}

#[test]
fn every_access_beside_the_kernels() {
    let Some(root) = oracle() else { return };
    beside_the_kernels(&root, &root, 0.01);
}

/// The same traces under multi-gen LRU of Linux 6.18 and 7.2, recorded in emulated machines.
#[test]
fn every_access_beside_newer_kernels() {
    let Some(root) = oracle() else { return };
    beside_the_kernels(&root, &newer_kernels(), 0.05);
}

/// `worse_points`: how much further off a row may be under the profile of its kernel than under
/// that of 6.12.
fn beside_the_kernels(root: &Path, recorded: &Path, worse_points: f64) {
    let cases = fs::read(recorded.join("cases.json")).expect("cases");
    let cases: Vec<Value> = serde_json::from_slice(&cases).expect("JSON");
    println!(
        "kernel, policy                   workload             by     kernel           repeats     ours  points  agree %  by 6.12"
    );
    let (mut beyond, mut worse) = (0, Vec::new());
    for case in cases.iter().step_by(one_in(5)) {
        if case["limit_pages"].is_null() {
            let name = |k: &str| case[k].as_str().unwrap_or_default().to_owned();
            println!(
                "{:32} {:20} not replayed: reclaim of a whole machine needs its clock",
                name("policy"),
                name("workload")
            );
            continue;
        }
        let c = compare(root, recorded, case);
        println!("{}", c.line);
        beyond += u32::from(!c.within);
        // Mapped pages under multi-gen LRU differ from run to run.
        let is_stable = case["access"] != "map" || case["policy"] != "mglru";
        if c.worse > worse_points && is_stable {
            worse.push(c.line);
        }
    }
    assert!(worse.is_empty(), "further off under the profile of their kernel than under 6.12: {worse:#?}");
    assert_eq!(beyond, 0, "cases beyond the bar");
}

/// How far apart hit rates of mapped files with advice may be, in percentage points. Multi-gen LRU
/// differs where accessed bits count: mapped files do without advice, and 6.1 takes more in its
/// first run of reclaim, when every page is young, than we do.
fn advice_bar(kernel: Kernel, policy: &str, advice: &str) -> f64 {
    match (kernel, policy, advice) {
        (_, "lru", _) | (Kernel::V6_12, _, "random") => 0.1,
        _ => 1.0,
    }
}

/// A mapped file with `MADV_RANDOM` and without, beside what Linux 6.1 and 6.12 did with the same
/// trace. Without the traces the one that can be generated is, with other random numbers.
#[test]
fn advice_beside_the_kernels() {
    let figures: Vec<Value> = serde_json::from_str(include_str!("data/kernel-advice.json")).expect("JSON");
    let root = oracle();
    println!("kernel policy workload        advice    kernel     ours  points  scanned, stolen: kernel, ours");
    let mut seen = 0;
    for f in &figures {
        let text = |key: &str| f[key].as_str().expect("text");
        let n = f["accesses"].as_u64().expect("a number");
        let trace = match &root {
            Some(root) => {
                let path = root.join(format!("traces/{}.trace.zst", text("workload")));
                let mut source = open(&path, &OpenOptions::default()).expect("a trace");
                let options = LoadOptions { max_accesses: Some(n), ..via("map") };
                Trace::load(source.as_mut(), &options).expect("a trace")
            }
            None if text("workload") == "zipf-1.2" => {
                let mut trace = touched("zipf-1.2", "map");
                trace.accesses.truncate(n as usize);
                trace
            }
            None => continue,
        };
        let (kernel, policy) = (profile(text("kernel")), text("policy"));
        let mut cfg = config(kernel, policy, None);
        cfg.lru.file_advice = if text("advice") == "random" { AccessAdvice::Random } else { AccessAdvice::Normal };
        let (cell, _) = replay(&trace, cfg);
        let theirs = 1.0 - f["misses"].as_f64().expect("a number") / n as f64;
        let points = (hit_rate(&cell) - theirs) * 100.0;
        let counted =
            |name: &str| cell.engine.memcg_stats(cell.group).iter().find(|(c, _)| *c == name).map_or(0, |c| c.1);
        println!(
            "{:6} {policy:6} {:15} {:6} {theirs:8.4} {:8.4} {points:+7.3}  {:>7} {:>7} {:>7} {:>7}",
            kernel.name(),
            text("workload"),
            text("advice"),
            hit_rate(&cell),
            f["pgscan"],
            f["pgsteal"],
            counted("pgscan_direct"),
            counted("pgsteal_direct"),
        );
        let bar = advice_bar(kernel, policy, text("advice")) + if root.is_none() { 0.5 } else { 0.0 };
        assert!(points.abs() <= bar, "{} {policy} {}: {points:+.3} points", kernel.name(), text("workload"));
        seen += 1;
    }
    assert!(seen >= 4);
}

/// The workloads of the recordings that a few words describe, generated anew.
fn workload(name: &str) -> Option<Trace> {
    const L: u32 = LIMIT_PAGES as u32;
    let phase = |n: u32, stream: Stream| Phase {
        accesses: u64::from(n),
        interleave: Interleave::Random,
        streams: vec![stream],
    };
    let set = |base: u32, pages: u32, pattern| Stream { base: u64::from(base), ..Stream::new("file", pattern, pages) };
    let zipf = |skew| Pattern::Zipf { skew, permute: true };
    let cycle = |pages: u32, rounds: u32| vec![phase(pages * rounds, set(0, pages, Pattern::Loop))];
    let phases = match name {
        "db-switch" => {
            let half = L / 4 * 3;
            vec![phase(20 * half, set(0, half, Pattern::Uniform)), phase(20 * half, set(half, half, Pattern::Uniform))]
        }
        "uniform-2x" => vec![phase(20 * L, set(0, 2 * L, Pattern::Uniform))],
        "loop-1.1x" => cycle(18_022, 10),
        "loop-1.25x" => cycle(20_480, 20),
        "loop-1.5x" => cycle(24_576, 10),
        "zipf-1.2" => vec![phase(500_000, set(0, 4 * L, zipf(1.2)))],
        "scan" => vec![
            phase(5 * L, set(0, L / 2, Pattern::Uniform)),
            phase(4 * L, set(L / 2, 4 * L, Pattern::Sequential)),
            phase(5 * L, set(0, L / 2, Pattern::Uniform)),
        ],
        "anon-zipf" => {
            let mut s = set(0, 2 * L, zipf(1.0));
            (s.object, s.kind, s.write) = ("heap".into(), ObjectKind::Anon, true);
            vec![phase(300_000, s)]
        }
        _ => return None,
    };
    let mut source = Workload { phases, seed: 1 }.generator(name).expect("a workload");
    Some(Trace::load(&mut source, &LoadOptions::default()).expect("a trace"))
}

/// As [`workload`], touched as asked.
fn touched(name: &str, access: &str) -> Trace {
    let mut trace = workload(name).expect("a known workload");
    if access == "map" {
        let mapped =
            |a: &refault_trace::PackedAccess| refault_trace::PackedAccess::new(a.page(), a.is_write(), Via::Map, false);
        trace.accesses = trace.accesses.iter().map(mapped).collect();
    }
    trace
}

/// Recordings of newer kernels, beside this file.
fn newer_kernels() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/kernels")
}

#[test]
fn hit_rates_of_generated_workloads_beside_the_kernels() {
    let figures: Vec<Value> = serde_json::from_str(include_str!("data/kernel-6.12.json")).expect("JSON");
    let newer: Vec<Value> =
        serde_json::from_slice(&fs::read(newer_kernels().join("cases.json")).expect("cases")).expect("JSON");
    println!(
        "kernel policy   workload             by     kernel     ours  points   (other random numbers, the same distribution)"
    );
    let mut seen = 0;
    for f in figures.iter().chain(&newer).step_by(one_in(3)) {
        let text = |key: &str| f[key].as_str().unwrap_or_default();
        let (kernel, policy, name, access) = (text("kernel"), text("policy"), text("workload"), text("access"));
        if workload(name).is_none() {
            continue;
        }
        let kernel = if kernel.is_empty() { Kernel::V6_12 } else { profile(kernel) };
        let (cell, _) = replay(&touched(name, access), config(kernel, policy, None));
        let (theirs, ours) = (f["hit_rate"].as_f64().expect("a rate"), hit_rate(&cell));
        let points = (ours - theirs) * 100.0;
        println!("{kernel:6} {policy:8} {name:20} {access:4} {theirs:8.4} {ours:8.4} {points:+7.3}");
        // Half a point more for the draw of the random numbers.
        let bar = bar(access, policy) + 0.5;
        let is_known = is_unstable(name, access, policy);
        assert!(points.abs() <= bar || is_known, "{kernel} {policy} {name} {access}: {points:+.3} points");
        seen += 1;
    }
    assert!(seen > short_or_long(10, 30));
}
