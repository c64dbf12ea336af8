//! Public reports: what people saw holds in the lab, on smaller machines than theirs
//! (`docs/measurements/reports.md`).

use std::path::Path;

use refault_lab::machine::{Machine, RunResult};
use refault_lab::scenario::Scenario;

fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../scenarios/reports/{name}.toml"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn run_text(text: &str, scale: f64) -> RunResult {
    let full = Scenario::parse("report.toml", text).unwrap_or_else(|e| panic!("{e}"));
    let s = full.scale(scale).expect("large enough");
    Machine::new(&s, &s.policy).expect("a machine").run().expect("runs")
}

/// With other lines than the file has.
fn run(name: &str, scale: f64, changes: &[(&str, &str)]) -> RunResult {
    let mut text = text(name);
    for (from, to) in changes {
        assert!(text.contains(from), "{name}: {from}");
        text = text.replace(from, to);
    }
    run_text(&text, scale)
}

fn get(r: &RunResult, name: &str) -> f64 {
    r.metric(name).unwrap_or_else(|| panic!("no {name}"))
}

/// When a column was first above 0, in seconds of the smaller machine, and what another one was at
/// that time.
fn first(r: &RunResult, column: &str, other: &str) -> Option<(f64, f64)> {
    let place = |name: &str| r.series.columns().iter().position(|c| c == name).expect("a column");
    let (at, other) = (place(column), place(other));
    r.series.rows().find(|(_, row)| row[at] > 0.0).map(|(ns, row)| (ns as f64 / 1e9, row[other]))
}

#[test]
fn every_report_is_called_like_its_file() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/reports");
    let page = std::fs::read_to_string(dir.join("../../docs/measurements/reports.md")).expect("the page");
    let mut count = 0;
    for entry in std::fs::read_dir(dir).expect("the folder") {
        let path = entry.expect("an entry").path();
        let s = Scenario::load(&path).unwrap_or_else(|e| panic!("{e}"));
        let name = path.file_stem().and_then(|name| name.to_str()).expect("plain");
        assert_eq!(s.name, name);
        assert!(s.source.is_some() && page.contains(&format!("scenarios/reports/{name}.toml")), "{name}");
        count += 1;
    }
    assert!(count >= 8, "{count}");
}

/// Under two lists; multi-gen LRU takes as much from pods at 60.
#[test]
fn swappiness_200_takes_the_programs_of_pods() {
    let refaults = |swappiness: &str| {
        let changes = [("swappiness = 200", swappiness), ("name = \"mglru\"", "name = \"lru\"")];
        get(&run("swappiness-200", 8.0, &changes), "memcg./kubepods.workingset_refault_file")
    };
    let [at_200, at_60] = ["swappiness = 200", "swappiness = 60"].map(refaults);
    assert!(at_200 > 1.5 * at_60, "{at_200} {at_60}");
}

/// Where pods start, kswapd is busy; less so with fewer pages to compress, hardly without swap.
#[test]
fn kswapd_is_busy_where_it_compresses() {
    let highest = |changes: &[(&str, &str)]| get(&run("kswapd-cpu", 4.0, changes), "cpu.kswapd0.highest_percent");
    let with_zram = highest(&[]);
    let without = highest(&[("size = \"1G\"", "size = \"1G\"\nenabled = false")]);
    assert!(with_zram > 3.0 * without && without > 0.0, "{with_zram} {without}");
}

#[test]
fn nobody_is_killed_while_swap_is_free() {
    let r = run("mglru-oom", 16.0, &[]);
    assert_eq!((r.oom_kills, r.tasks[1].oom_kills), (1, 1));
    assert!(get(&r, "swap.zram0.peak_percent") > 99.9);
}

#[test]
fn default_watermarks_let_swapping_begin_late() {
    // In MiB of the machine in full size.
    let free = |changes: &[(&str, &str)]| {
        let r = run("k8s-watermarks", 8.0, changes);
        first(&r, "pswpout", "free_pages").expect("it swaps").1 * 8.0 / 256.0
    };
    let tuned = [
        ("min_free_kbytes = 67584", "min_free_kbytes = 524288"),
        ("watermark_scale_factor = 10", "watermark_scale_factor = 2000"),
    ];
    let (default, tuned) = (free(&[]), free(&tuned));
    assert!(default < 200.0 && tuned > 2000.0, "{default} {tuned}");
}

#[test]
fn memory_high_without_swap_is_a_livelock() {
    let seconds = |high: &str| get(&run("memory-high", 8.0, &[("high = \"3244M\"", high)]), "task.rustc.seconds");
    let (high, max) = (seconds("high = \"3244M\""), seconds("high = \"max\""));
    assert!(high > 10.0 * max, "{high} {max}");
}

#[test]
fn large_folios_are_split_once_swap_is_full() {
    let counted = |size: &str| {
        let r = run("mthp-swap-full", 1.0, &[("size = \"256M\"", &format!("size = \"{size}\""))]);
        ["swpout", "swpout_fallback", "split"].map(|what| get(&r, &format!("mthp.64kB.{what}")))
    };
    let ([out, fallback, split], [roomy, none, never]) = (counted("256M"), counted("1G"));
    assert!(fallback > out && split >= fallback && roomy > out, "{out} {fallback} {split} {roomy}");
    assert_eq!((none, never), (0.0, 0.0));
}

#[test]
fn memory_in_one_tier_is_not_promoted() {
    let promoted = |preset: &str| {
        let changes = [("[node.n1]\npreset = \"dram\"", &*format!("[node.n1]\npreset = \"{preset}\""))];
        get(&run("one-tier", 16.0, &changes), "vmstat.pgpromote_success")
    };
    assert_eq!(promoted("dram"), 0.0);
    assert!(promoted("cxl") > 1000.0);
}

#[test]
fn watermarks_say_when_zswap_begins() {
    let begins = |changes: &[(&str, &str)]| first(&run("zswap-earlier", 4.0, changes), "zswpout", "free_pages");
    let plain = begins(&[]);
    assert_eq!(begins(&[("swappiness = 60", "swappiness = 180")]), plain, "swappiness does not");
    let earlier = begins(&[("watermark_scale_factor = 10", "watermark_scale_factor = 1000")]).expect("it begins");
    assert!(plain.is_none_or(|plain| earlier.0 < plain.0), "{earlier:?} {plain:?}");
}
