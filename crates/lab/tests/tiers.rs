//! Tiers of memory: nodes that cost what they say, pages that are marked, promoted and demoted, and
//! what must hold meanwhile.

use refault_lab::machine::{Machine, RunResult, TiersResult};
use refault_lab::scenario::Scenario;

/// A machine of 32 MiB of DRAM and 128 MiB of something slower; 64 MiB are filled, then touched,
/// mostly in the middle: half of what is touched most lies beyond DRAM at first.
fn text(slow: &str, policy: &str, touch: &str) -> String {
    format!(
        r#"
name = "tiers"
node.dram = {{ preset = "dram", size = "32M", cpus = 4 }}
node.slow = {{ preset = "{slow}", size = "128M" }}
machine = {{ dma = 0, dma32 = 0 }}
object.heap = {{ kind = "anon", size = "64M" }}
{policy}
[[task]]
name = "t"
count = 4
[[task.phase]]
write = "heap"
share = "split"
passes = 1
measured = false
[[task.phase]]
{touch}
"#
    )
}

/// Times and sizes of a machine of which this one is the 1024th part.
const TOUCH: &str = r#"object = "heap"
write_share = 0.2
pattern = "normal"
sigma = 0.1
duration = "60ms""#;

/// Periods that fit a run of 60 ms.
fn tiering(promotion: &str, more: &str) -> String {
    format!(
        "[policy]\nname = \"lru\"\nnuma_balancing = 2\ndemotion_enabled = true\npromotion = \"{promotion}\"\n\
         scan_delay_ms = 1\nscan_period_min_ms = 1\nscan_period_max_ms = 60\nscan_size_mb = 4\nnuma_balancing_hot_threshold_ms = 8\n{more}"
    )
}

fn run(text: &str) -> RunResult {
    let s = Scenario::parse("f.toml", text).unwrap_or_else(|e| panic!("{e}"));
    Machine::new(&s, &s.policy).expect("a machine").checked().run().expect("a run")
}

fn tiers(r: &RunResult) -> &TiersResult {
    r.tiers.as_ref().expect("tiers")
}

#[test]
fn accesses_cost_what_their_node_costs() {
    for (slow, read_ns) in [("cxl", 181.0), ("remote-numa", 184.0)] {
        let read = TOUCH.replace("write_share = 0.2", "write_share = 0.0");
        let r = run(&text(slow, "policy = { name = \"lru\" }", &read));
        let t = tiers(&r);
        assert!((t.nodes[0].mean_access_ns - 101.0).abs() < 1.0, "{:?}", t.nodes[0]);
        assert!((t.nodes[1].mean_access_ns - read_ns).abs() < 2.0, "{:?}", t.nodes[1]);
        assert_eq!((t.promoted, t.demoted), (0, 0), "nothing is on by default");
        let sum: f64 = t.nodes.iter().map(|n| n.accesses()).sum();
        // Some copies fill while the first one touches already.
        let counted = r.tasks[0].accesses as f64;
        assert!(sum >= counted && sum < counted * 1.02, "{sum} {counted}");
        assert!(t.nodes[0].share > 0.4 && t.nodes[0].share < 0.6, "{}", t.nodes[0].share);
    }
}

#[test]
fn promotion_brings_what_is_touched_most_into_fast_memory() {
    for promotion in ["mru", "latency", "two-touch", "oracle"] {
        let r = run(&text("pmem", &tiering(promotion, ""), TOUCH));
        let t = tiers(&r);
        assert!(t.promoted > 1000 && t.demoted > 1000, "{promotion}: {t:?}");
        assert!(t.nodes[0].share > 0.6, "{promotion}: {}", t.nodes[0].share);
        assert_eq!(t.nodes[0].pages_in, t.nodes[1].pages_out);
        assert_eq!(t.nodes[0].pages_out, t.nodes[1].pages_in);
        let best = t.best_share.expect("normal pages have weights");
        // 32 of 64 MiB around the middle are 2.5 standard deviations each way.
        assert!((best - 0.987).abs() < 0.01, "{best}");
        assert!(t.nodes[0].share <= best);
    }
}

#[test]
fn the_limit_limits() {
    let r = run(&text("pmem", &tiering("latency+limit", "numa_balancing_promote_rate_limit_MBps = 64\n"), TOUCH));
    let t = tiers(&r);
    // A window is a second, the run shorter: 64 MiB at most.
    assert!(t.promoted > 0 && t.promoted <= 64 * 256, "{}", t.promoted);
    let r = run(&text("pmem", &tiering("latency+limit", "numa_balancing_promote_rate_limit_MBps = 1\n"), TOUCH));
    assert!(tiers(&r).promoted <= 256, "{}", tiers(&r).promoted);
}

#[test]
fn two_runs_are_the_same() {
    let text = text("pmem", &tiering("latency+limit+auto", ""), TOUCH);
    let (a, b) = (run(&text), run(&text));
    assert_eq!(format!("{:?}", a.tiers), format!("{:?}", b.tiers));
    assert_eq!(a.series.csv(), b.series.csv());
    assert_eq!(a.memcgs[0].counters, b.memcgs[0].counters);
}

#[test]
fn a_smaller_machine_does_the_same_in_less_time() {
    let text = r#"
name = "big"
node.dram = { preset = "dram", size = "2G", cpus = 4 }
node.pmem = { preset = "pmem", size = "8G" }
machine = { dma = 0, dma32 = 0 }
policy = { name = "lru", numa_balancing = 2, demotion_enabled = true, promotion = "latency", scan_size_mb = 256 }
object.heap = { kind = "anon", size = "4G" }
[[task]]
name = "t"
count = 4
phase = [
  { write = "heap", share = "split", passes = 1, measured = false },
  { read = "heap", pattern = "normal", sigma = 0.1, cpu = "1us", duration = "24s", measured = false },
  { read = "heap", pattern = "normal", sigma = 0.1, cpu = "1us", duration = "16s" },
]
"#;
    let full = Scenario::parse("f.toml", text).unwrap_or_else(|e| panic!("{e}"));
    let share = |k: f64| {
        let s = full.scale(k).expect("a scale");
        let r = Machine::new(&s, &s.policy).expect("a machine").checked().run().expect("a run");
        let t = tiers(&r);
        (t.nodes[0].share, t.promoted_bytes_per_s())
    };
    let (big, small) = (share(64.0), share(128.0));
    assert!((big.0 - small.0).abs() < 0.03, "{big:?} {small:?}");
    assert!((0.8..1.25).contains(&(big.1 / small.1)), "{big:?} {small:?}");
    assert!(full.scale(1.5).unwrap_err().contains("whole numbers"));
}

#[test]
fn marking_is_bounded_whatever_the_memory() {
    // 4 MB in a millisecond, and up to eight times as many entries where there is nothing to mark.
    let scan_pages_per_s = 1024.0 * 1000.0;
    let mut faults = Vec::new();
    for mib in [64, 128, 256] {
        // The largest first, so that none is replaced twice.
        let text = text("pmem", &tiering("latency", ""), TOUCH)
            .replace("size = \"128M\"", &format!("size = \"{}M\"", mib * 2))
            .replace("size = \"64M\"", &format!("size = \"{mib}M\""))
            .replace("size = \"32M\"", &format!("size = \"{}M\"", mib / 2));
        let r = run(&text);
        let per_s = |n: u64| n as f64 / r.seconds;
        let (looked, marked) = (per_s(tiers(&r).scanned_ptes), per_s(tiers(&r).marked_pages));
        assert!(marked > 0.0 && marked <= scan_pages_per_s, "{mib}: {marked}");
        assert!(looked <= 8.0 * scan_pages_per_s, "{mib}: {looked}");
        let counters = &r.memcgs[0].counters;
        assert!(counters["numa_hint_faults"] <= counters["numa_pte_updates"], "a mark is a fault once");
        faults.push(per_s(counters["numa_hint_faults"]));
    }
    // Twice and four times the memory: not more faults than memory has grown.
    assert!(faults[1] <= 2.1 * faults[0] && faults[2] <= 4.2 * faults[0], "{faults:?}");
}

#[test]
fn mistakes_are_named() {
    let plain = || text("pmem", "", TOUCH);
    for (from, to, want) in [
        ("preset = \"pmem\"", "preset = \"hbm\"", "node.slow.preset"),
        ("size = \"128M\"", "size = \"128Q\"", "node.slow.size"),
        ("cpus = 4", "cpus = 0", "no node has CPUs"),
        ("machine = { dma = 0,", "machine = { memory = \"1G\", dma = 0,", "the nodes say it"),
        ("machine = { dma = 0,", "machine = { cpus = 2, dma = 0,", "the nodes say it"),
        ("cpus = 4", "cpus = 4, latency = \"90ns\", read_latency = \"80ns\"", "read_latency says it, too"),
        ("cpus = 4", "cpus = 4, latency = \"0\"", "out of range"),
        ("cpus = 4", "cpus = 4, bandwith = \"1GB/s\"", "did you mean bandwidth?"),
        ("pattern = \"normal\"", "pattern = \"uniform\"", "only for pattern = \"normal\""),
        ("sigma = 0.1", "sigma = 0", "out of range"),
        ("sigma = 0.1", "skew = 1.0", "only for pattern = \"zipf\""),
        ("[[task]]", "policy = { promotion = \"lfu\" }\n[[task]]", "policy.promotion"),
        ("[[task]]", "policy = { numa_balancing = 4 }\n[[task]]", "0 to 3"),
        ("[[task]]", "policy = { scan_period_min_ms = 70000 }\n[[task]]", "scan_period_max_ms"),
        ("[[task]]", "policy = { stamp_bits = 33 }\n[[task]]", "out of range"),
    ] {
        let text = plain().replacen(from, to, 1);
        let error = Scenario::parse("f.toml", &text).expect_err(to).to_string();
        assert!(error.contains(want) && error.lines().count() == 1, "{to}: {error}");
    }
    let single = "name = \"x\"\nmachine = { memory = \"64M\" }\npolicy = { numa_balancing = 2 }\nobject.a = { kind = \"anon\", size = \"1M\" }\n\
                  [[task]]\nname = \"t\"\nphase = [{ read = \"a\", passes = 1 }]";
    assert!(Scenario::parse("f.toml", single).unwrap_err().to_string().contains("no tiers"));
}
