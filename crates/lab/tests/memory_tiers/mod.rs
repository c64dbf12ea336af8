//! Machines with two memory tiers beside a real kernel: marks, hint faults, promotions, demotions.
//!
//! The recordings are `data/tiers/recordings.json`; how they were made is in the page beside it.
//! The table is `docs/measurements/tiers-beside-linux.md`, which
//! `REFAULT_WRITE_TABLES=1 cargo test -p refault-lab memory_tiers` writes anew.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::tables::write_or_compare;
use refault_lab::machine::{Machine, RunResult};
use refault_lab::scenario::Scenario;
use serde_json::Value;

/// Counters that are compared, their names in the table, and how far they may be apart as a share
/// of the kernel's.
const COMPARED: [(&str, &str, f64); 8] = [
    ("numa_pte_updates", "marked", 0.2),
    ("numa_hint_faults", "hint faults", 0.2),
    ("pgpromote_candidate", "candidates", 0.25),
    ("pgpromote_success", "promoted", 0.25),
    ("pgdemote_kswapd", "demoted", 0.25),
    ("pgscan_kswapd", "scanned", 0.25),
    ("pswpin", "swapped in", 0.25),
    ("pswpout", "swapped out", 0.25),
];

/// Figures that are further apart: the page says why, or that it is not known. One that is met
/// again fails, too.
const MISSES: [&str; 23] = [
    "half lru: pgpromote_success",
    "hot lru, 2 threads, 2 CPUs: pgpromote_success",
    "hot lru, a file: pgpromote_success",
    "hot lru, a file: pgdemote_kswapd",
    "hot lru, a file: pgscan_kswapd",
    "hot lru, swap: numa_hint_faults",
    "hot lru, swap: pgpromote_candidate",
    "hot lru, swap: pgpromote_success",
    "hot lru, swap: pgscan_kswapd",
    "hot mglru, 1 MB/s: pgpromote_success",
    "hot mglru, 1 MB/s: pgscan_kswapd",
    "hot mglru, 10 MB/s: pgpromote_success",
    "hot mglru, 10 MB/s: pgscan_kswapd",
    "hot mglru, a file: pgdemote_kswapd",
    "move lru: pgpromote_success",
    "scan lru: pgpromote_success",
    "scan mglru: pgpromote_success",
    "scan mglru: pgdemote_kswapd",
    "zipf lru: numa_hint_faults",
    "zipf mglru: numa_pte_updates",
    "zipf mglru: numa_hint_faults",
    "zipf mglru, 10 MB/s: pgpromote_success",
    "zipf mglru, 10 MB/s: pgscan_kswapd",
];

/// Phases by shape: reads of a part of the heap, in MiB, with the share of accesses that go there.
fn phases(shape: &str, seconds: u64, cpu_ns: u64, mib: u64) -> String {
    let head = |seconds: u64| format!("[[task.phase]]\nduration = \"{seconds}s\"\ncpu = \"{cpu_ns}ns\"\n");
    let plain = |pattern: &str| format!("{}read = \"heap\"\npattern = \"{pattern}\"\n", head(seconds));
    let hot = |seconds: u64, from_mib: u64, size_mib: u64, share: u64| {
        let rest = 100 - share;
        let stream = "[[task.phase.stream]]\nread = \"heap\"\nvia = \"map\"\npattern = \"uniform\"\n";
        let part = format!("{stream}from = \"{from_mib}M\"\nsize = \"{size_mib}M\"\nweight = {share}\n");
        format!("{}{part}{stream}weight = {rest}\n", head(seconds))
    };
    match shape {
        "hot" => hot(seconds, mib - mib / 10, mib / 10, 90),
        "half" => hot(seconds, 210, 210, 95),
        // Another tenth every 5 s.
        "move" => (0..seconds / 5).map(|i| hot(5, i * 3 % 10 * 42, 42, 90)).collect(),
        "scan" => plain("sequential"),
        _ => plain("zipf"),
    }
}

/// Memory of the program.
struct Memory {
    /// Its object, with the device that it needs.
    object: String,
    /// The first touch of it.
    first_touch: &'static str,
    /// Costs that other machines have not.
    costs: &'static str,
}

/// A file that is mapped, or anonymous memory, with swap where it is larger than both nodes. A page
/// of the file takes 16 us of the disk and 34 of the CPU: the lab does not read around faults.
fn memory(kind: &str, mib: u64) -> Memory {
    let anon = format!("object.heap = {{ kind = \"anon\", size = \"{mib}M\" }}");
    let (object, first_touch, costs) = match kind {
        "file" => (
            format!(
                r#"device.disk = {{ preset = "nvme", read_latency = "2us", read_bandwidth = "300MB/s" }}
object.heap = {{ kind = "file", size = "{mib}M", device = "disk" }}"#
            ),
            "read = \"heap\"\nvia = \"map\"",
            "fill_page = \"26us\", ",
        ),
        "swap" => {
            let ratio = r#"preset = "zram", compression_ratio = 100.0, compress = "48us", decompress = "60us""#;
            let swap = r#"swap = { device = "zram", size = "512M" }"#;
            (format!("device.zram = {{ {ratio} }}\n{swap}\n{anon}"), "write = \"heap\"", "")
        }
        _ => (anon, "write = \"heap\"", ""),
    };
    Memory { object, first_touch, costs }
}

/// The guest, with its times: `data/tiers/README.md`. A touch of mapped memory takes 13 ns and the
/// latency of its node, so that less is left for the program.
fn scenario(row: &Value) -> Scenario {
    let (text, number) =
        (|key: &str| row[key].as_str().expect("a text"), |key: &str| row[key].as_u64().expect("a number"));
    let (policy, shape, cpus, threads) = (text("policy"), text("shape"), number("cpus"), number("threads"));
    let cpu_ns = match shape {
        _ if cpus == 2 => 397,
        "scan" => 70,
        "zipf" => 74,
        "move" => 142,
        _ => 153,
    };
    let Memory { object, first_touch, costs } = memory(text("memory"), number("mib"));
    // Two CPUs have half of the speed each.
    let us = |ns: u64| format!("\"{}ns\"", ns * cpus);
    let scan_page = us(if policy == "lru" { 5_400 } else { 1_000 });
    let [walk, fault, migrate, unmap, first] = [1_000, 9_300, 57_000, 24_000, 29_000].map(us);
    let head = format!(
        r#"name = "tiers"
{object}
machine.kernel = "6708p"
machine.costs = {{ {costs}pte_walk = {walk}, hint_fault = {fault}, migrate_page = {migrate}, unmap_page = {unmap}, anon_fault = {first}, context_switch = "8us", scan_page = {scan_page} }}
node.fast = {{ preset = "dram", size = "50846p", cpus = {cpus}, latency = "1ns", bandwidth = "100GB/s" }}
node.slow = {{ preset = "dram", size = "110478p", latency = "10ns", bandwidth = "20GB/s" }}
policy = {{ name = "{policy}", kernel = "6.12", numa_balancing = 2, demotion_enabled = true, numa_balancing_promote_rate_limit_MBps = {} }}
[[task]]
name = "tiers"
count = {threads}
[[task.phase]]
{first_touch}
size = "16M"
passes = 1
[[task.phase]]
read = "heap"
via = "map"
size = "16M"
pattern = "uniform"
accesses = 1000000
cpu = "{cpu_ns}ns"
[[task.phase]]
{first_touch}
from = "16M"
passes = 1
"#,
        number("limit_MBps")
    );
    Scenario::parse("tiers", &(head + &phases(shape, number("seconds"), cpu_ns, number("mib")))).expect("a scenario")
}

fn run(row: &Value) -> RunResult {
    let scenario = scenario(row);
    Machine::new(&scenario, &scenario.policy).expect("a machine").run().expect("a run")
}

/// Recordings of the same run, by name.
fn guests() -> BTreeMap<String, Vec<Value>> {
    let rows: Vec<Value> = serde_json::from_str(include_str!("../data/tiers/recordings.json")).expect("JSON");
    let mut guests: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for row in rows {
        let number = |key: &str| row[key].as_u64().expect("a number");
        let mut name =
            format!("{} {}", row["shape"].as_str().expect("a text"), row["policy"].as_str().expect("a text"));
        let others =
            [("limit_MBps", 65_536, "MB/s"), ("seconds", 20, "s"), ("threads", 1, "threads"), ("cpus", 1, "CPUs")];
        for (key, usual, unit) in others {
            if number(key) != usual {
                write!(name, ", {} {unit}", number(key)).expect("a text");
            }
        }
        match row["memory"].as_str().expect("a text") {
            "anon" => {}
            "file" => name += ", a file",
            _ => name += ", swap",
        }
        guests.entry(name).or_default().push(row);
    }
    guests
}

/// The guests that are compared: one, in long tests one in three, or all.
fn compared() -> Vec<(String, Vec<Value>)> {
    let guests = guests();
    let is_whole = std::env::var_os("REFAULT_WRITE_TABLES").is_some();
    let step = if is_whole { 1 } else { refault_testing::step(guests.len(), 3) };
    guests.into_iter().step_by(step).collect()
}

/// The cases, and which comparisons miss the bars.
fn compare() -> (String, Vec<String>) {
    let heads: Vec<&str> = COMPARED.iter().map(|c| c.1).collect();
    let mut table = format!("| guest | runs | {} |\n|---|---:|{}\n", heads.join(" | "), "---:|".repeat(COMPARED.len()));
    let mut misses = Vec::new();
    for (name, rows) in compared() {
        let run = run(&rows[0]);
        write!(table, "| {name} | {} |", rows.len()).expect("a text");
        for (counter, _, bar) in COMPARED {
            if rows[0]["vmstat"][counter].is_null() {
                table.push_str(" |");
                continue;
            }
            let each = || rows.iter().map(|row| row["vmstat"][counter].as_f64().expect("a counter"));
            let theirs = each().sum::<f64>() / rows.len() as f64;
            let (least, most) = (each().fold(f64::MAX, f64::min), each().fold(0.0, f64::max));
            let ours = run.memcgs[0].counters.get(counter).copied().unwrap_or(0) as f64;
            write!(table, " {:.1} / {:.1} |", theirs / 1e3, ours / 1e3).expect("a text");
            if (ours - theirs).abs() > bar * theirs && !(least..=most).contains(&ours) {
                misses.push(format!("{name}: {counter}"));
            }
        }
        table.push('\n');
    }
    (table, misses)
}

#[test]
fn beside_a_real_kernel() {
    let (table, misses) = compare();
    println!("{table}");
    write_or_compare("tiers-beside-linux.md", &table, guests().len(), "memory_tiers::");
    let names: Vec<String> = compared().into_iter().map(|(name, _)| format!("{name}: ")).collect();
    let known: Vec<&str> = MISSES.into_iter().filter(|m| names.iter().any(|name| m.starts_with(name))).collect();
    assert_eq!(misses, known, "what is beyond the bars");
}
