//! Against published miss ratios of textbook policies, on the public traces.

use crate::common::{load, one_list, opt_misses, replay};
use refault_cli::replay::cell::{Cell, CountOnly};
use refault_mm::{CacheExtPolicy, Config, Policy};
use refault_testing::{is_long, is_whole, short_or_long, step, traces};
use refault_trace::{PackedAccess, Trace, Via};
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};

/// One line of the table: a trace, a size, and the miss ratio of every policy.
struct Golden {
    trace: String,
    pages: u64,
    ratios: HashMap<String, f64>,
}

fn table(root: &Path) -> Vec<Golden> {
    let text = std::fs::read_to_string(root.join("golden_miss_ratios.csv")).expect("the table");
    let mut lines = text.lines();
    let heads: Vec<_> = lines.next().expect("a heading").split(',').collect();
    lines
        .map(|line| {
            let cells: Vec<_> = line.split(',').collect();
            let ratio = |i: usize| (heads[i].to_owned(), cells[i].parse().expect("a ratio"));
            Golden {
                trace: cells[0].to_owned(),
                pages: cells[3].parse().expect("a size"),
                ratios: (4..cells.len()).map(ratio).collect(),
            }
        })
        .collect()
}

/// All lines, or those of small traces.
fn compared(root: &Path) -> impl Iterator<Item = Golden> {
    let is_large = |golden: &Golden| ["loop", "gcc", "mcf", "OLTP"].contains(&&*golden.trace);
    table(root).into_iter().filter(move |golden| is_long() || !is_large(golden))
}

fn file(root: &Path, trace: &str) -> PathBuf {
    root.join(match trace {
        "OLTP" => "arc/OLTP.lis.zst".to_owned(),
        "cphy" => "block/cloudPhysicsIO.oracleGeneral.bin".to_owned(),
        "gcc" | "mcf" => format!("address/{trace}.trace.gz"),
        _ => format!("lirs/{trace}.trace.gz"),
    })
}

fn ratio(misses: u64, trace: &Trace) -> f64 {
    misses as f64 / trace.accesses.len() as f64
}

/// Equal to the digits that the table has.
fn to_4_digits(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.000_051
}

#[test]
fn opt_is_belady_and_one_list_is_fifo() {
    let Some(root) = traces() else { return };
    println!("trace      pages   opt     Belady  one list  FIFO    by mapping  Clock");
    for golden in compared(&root).step_by(step(1, 2)) {
        let path = file(&root, &golden.trace);
        let by = |via| load(&path, golden.trace == "cphy", via, true);
        let (fd, map) = (by(Via::Fd), by(Via::Map));
        let opt = ratio(opt_misses(&fd, golden.pages), &fd);
        let list = ratio(replay(&fd, one_list(), golden.pages).misses, &fd);
        let mapped = replay(&map, one_list(), golden.pages).misses;
        println!(
            "{:8} {:7}   {opt:.4}  {:.4}  {list:.4}    {:.4}  {:.4}      {:.4}",
            golden.trace,
            golden.pages,
            golden.ratios["Belady"],
            golden.ratios["FIFO"],
            ratio(mapped, &map),
            golden.ratios["Clock"]
        );
        let name = format!("{} in {} pages", golden.trace, golden.pages);
        assert!(to_4_digits(opt, golden.ratios["Belady"]), "{name}: OPT");
        assert!(to_4_digits(list, golden.ratios["FIFO"]), "{name}: FIFO");
        let clock = ratio(second_chance(&fd, golden.pages, false), &fd);
        assert!(to_4_digits(clock, golden.ratios["Clock"]), "{name}: Clock");
        assert_eq!(mapped, second_chance(&map, golden.pages, true), "{name}: second chance");
    }
}

/// The misses of a queue with a reference bit a page. The textbook's Clock brings pages in with the
/// bit clear; a page fault brings them in with the bit set, because the access that faulted sets
/// it.
fn second_chance(trace: &Trace, pages: u64, start_young: bool) -> u64 {
    let mut young: Vec<Option<bool>> = vec![None; trace.footprint_pages() as usize];
    let (mut queue, mut misses) = (VecDeque::new(), 0);
    for access in &trace.accesses {
        let page = access.page() as usize;
        if let Some(bit) = &mut young[page] {
            *bit = true;
            continue;
        }
        misses += 1;
        while queue.len() as u64 >= pages {
            let victim: usize = queue.pop_front().expect("not empty");
            if young[victim] == Some(true) {
                young[victim] = Some(false);
                queue.push_back(victim);
            } else {
                young[victim] = None;
            }
        }
        young[page] = Some(start_young);
        queue.push_back(page);
    }
    misses
}

#[test]
fn nothing_beats_opt_on_public_traces() {
    let Some(root) = traces() else { return };
    let mut paths = Vec::new();
    for folder in ["address", "arc", "block", "drmemtrace", "lirs"] {
        let entries = std::fs::read_dir(root.join(folder)).expect("a folder");
        paths.extend(entries.map(|e| e.expect("an entry").path()));
    }
    paths.sort();
    assert!(!paths.is_empty());
    for (n, path) in paths.into_iter().step_by(step(5, 3)).enumerate() {
        for via in [Via::Fd, Via::Map] {
            let trace = load(&path, false, via, false);
            for percent in if is_whole() { 0..3 } else { n % 3..n % 3 + 1 }.map(|i| [20, 5, 60][i]) {
                let pages = (u64::from(trace.footprint_pages()) * percent / 100).max(1);
                let least = opt_misses(&trace, pages);
                for policy in Policy::ALL {
                    let cell = replay(&trace, Config::new(policy), pages);
                    let name = format!("{policy} on {} by {via:?} in {pages} pages", trace.name);
                    match cell.oom_at {
                        // Memory ran out: this is no replay of the whole trace.
                        Some(at) => println!("{name}: out of memory at access {at}"),
                        None => assert!(cell.misses >= least, "{name}: {} misses, OPT {least}", cell.misses),
                    }
                }
            }
        }
    }
}

/// As `one_list`, for a policy in the form of cache_ext: batches are off, and nothing is charged
/// but the pages.
fn textbook(policy: CacheExtPolicy) -> Config {
    Config { cache_ext: Some(policy), ..one_list() }
}

#[test]
fn policies_as_plug_ins_are_those_of_the_textbook() {
    let Some(root) = traces() else { return };
    // How far a miss ratio may be from the published one. Those that are to the letter are so to
    // all its digits; ARC learns after the eviction, where the paper learns before it; LIRS forgets
    // ghosts of which the paper does not say when to; W-TinyLFU counts where others estimate.
    let published = [
        (CacheExtPolicy::Fifo, "FIFO", 0.000_051),
        (CacheExtPolicy::Clock, "Clock", 0.000_051),
        (CacheExtPolicy::LruExact, "LRU", 0.000_051),
        (CacheExtPolicy::Sieve, "Sieve", 0.000_051),
        (CacheExtPolicy::S3Fifo, "S3FIFO", 0.000_051),
        (CacheExtPolicy::Arc, "ARC", 0.000_6),
        (CacheExtPolicy::TwoQ, "TwoQ", 0.000_051),
        (CacheExtPolicy::Lirs, "LIRS", 0.000_16),
        (CacheExtPolicy::WTinyLfu, "WTinyLFU", 0.06),
    ];
    let mut wrong = Vec::new();
    for golden in compared(&root).step_by(step(3, 3)) {
        let mut trace = load(&file(&root, &golden.trace), golden.trace == "cphy", Via::Fd, true);
        // To the textbook a read that goes on in the page of the last one is an access like others.
        trace.accesses.iter_mut().for_each(|a| *a = PackedAccess::new(a.page(), false, Via::Fd, false));
        for (policy, name, most) in published {
            let ours = ratio(replay(&trace, textbook(policy), golden.pages).misses, &trace);
            let theirs = golden.ratios[name];
            println!("{:8} {:7} {name:8} {ours:.4} {theirs:.4}", golden.trace, golden.pages);
            if is_a_tie(policy, &golden) {
                continue;
            }
            if (ours - theirs).abs() > most {
                wrong.push(format!("{name} on {} in {} pages: {ours:.4} for {theirs:.4}", golden.trace, golden.pages));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where W-TinyLFU is a matter of chance: all folios of a loop are used as often, and which of two
/// equals goes, a sketch says by its collisions; a window of no folio lets nothing in.
fn is_a_tie(policy: CacheExtPolicy, golden: &Golden) -> bool {
    policy == CacheExtPolicy::WTinyLfu
        && (["loop", "zigzag"].contains(&golden.trace.as_str()) || golden.ratios["WTinyLFU"] == 1.0)
}

/// The form costs multi-gen LRU nothing: as a plug-in it misses as often as the engine's own.
#[test]
fn multi_gen_as_a_plug_in_is_the_native_one() {
    let Some(root) = traces() else { return };
    for name in ["OLTP", "cphy", "sprite", "2_pools", "zigzag", "ps", "cpp"] {
        let trace = load(&file(&root, name), false, Via::Fd, true);
        for &percent in short_or_long(&[25][..], &[10, 25, 50, 75]) {
            let pages = u64::from(trace.footprint_pages()) * percent / 100;
            // Without swap: how file refaults compare with those of anonymous memory is not a
            // matter of the policy for files.
            let misses = |policy| {
                let mut cell = Cell::new(&trace, Config::new(policy), pages, 0).expect("a cell");
                cell.run(&trace.accesses, None, &mut CountOnly);
                ratio(cell.misses, &trace)
            };
            let (native, plugin) = (misses(Policy::Mglru), misses(Policy::Ext(CacheExtPolicy::Mglru)));
            let off = plugin / native - 1.0;
            println!("{name:8} {percent:3} % {native:.4} {plugin:.4} {:+.2} %", 100.0 * off);
            // The native one takes 64 pages at a time, the plug-in is asked for 32.
            let most = if pages < 200 { 0.03 } else { 0.01 };
            assert!(off.abs() < most, "{name} in {pages} pages: {plugin:.4} for {native:.4}");
        }
    }
}

/// The policies of the table, in its order. Traces do not say what scans.
fn in_table() -> impl Iterator<Item = Policy> {
    let ext = CacheExtPolicy::ALL.into_iter().filter(|p| *p != CacheExtPolicy::GetScan);
    [Policy::Lru, Policy::Mglru].into_iter().chain(ext.map(Policy::Ext))
}

/// The table of policies on public traces, as Markdown, with what follows from it.
fn measured(root: &Path) -> String {
    let mut heads = String::from("| policy |");
    let mut rows: Vec<(String, Vec<Option<f64>>)> =
        in_table().map(|p| (p.to_string(), Vec::new())).chain([("opt".to_owned(), Vec::new())]).collect();
    for name in ["OLTP", "cphy", "sprite", "2_pools", "loop", "zigzag", "ps", "cpp"] {
        let trace = load(&file(root, name), false, Via::Fd, true);
        for percent in [10, 50] {
            heads += &format!(" {name} {percent} % |");
            let pages = u64::from(trace.footprint_pages()) * percent / 100;
            for (policy, (_, cells)) in in_table().zip(&mut rows) {
                let cell = replay(&trace, Config::new(policy), pages);
                cells.push(cell.oom_at.is_none().then(|| 100.0 * ratio(cell.misses, &trace)));
            }
            rows.last_mut().expect("OPT").1.push(Some(100.0 * ratio(opt_misses(&trace, pages), &trace)));
        }
    }
    let columns = rows[0].1.len();
    let mut text = format!("{heads}\n|---|{}\n", "---:|".repeat(columns));
    for (name, cells) in &rows {
        let cells: Vec<_> = cells.iter().map(|c| c.map_or("–".into(), |n| format!("{n:.2}"))).collect();
        text += &format!("| `{name}` | {} |\n", cells.join(" | "));
    }
    let of = |name: &str| &rows.iter().find(|row| row.0 == name).expect("a row").1;
    let wins = |row: &[Option<f64>]| {
        let least = |n: usize| of("lru")[n].unwrap_or(100.0).min(of("mglru")[n].unwrap_or(100.0));
        (0..columns).filter(|&n| row[n].is_some_and(|ours| ours < least(n) - 0.005)).count()
    };
    text += &format!("\nColumns, of {columns}, in which it misses less than both `lru` and `mglru`:\n\n");
    let ext = rows.iter().filter(|row| !["lru", "mglru", "opt"].contains(&&*row.0));
    let (names, counts): (Vec<_>, Vec<_>) = ext.map(|(name, row)| (format!("`{name}`"), wins(row).to_string())).unzip();
    text += &format!("| {} |\n|{}\n", names.join(" | "), "---:|".repeat(names.len()));
    text + &format!("| {} |\n", counts.join(" | "))
}

#[test]
fn the_table_of_policies_is_what_is_measured() {
    const BEGIN: &str = "<!-- policies: begin -->\n";
    const END: &str = "<!-- policies: end -->";
    let writes = std::env::var_os("REFAULT_WRITE_POLICIES").is_some_and(|v| !v.is_empty() && v != "0");
    if !writes && !is_whole() {
        return println!("the table of policies takes minutes: REFAULT_LONG=all measures it");
    }
    let Some(root) = traces() else { return };
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/measurements/policies.md");
    let text = std::fs::read_to_string(&page).expect("the page");
    let (before, rest) = text.split_once(BEGIN).expect("a begin");
    let (table, after) = rest.split_once(END).expect("an end");
    let measured = measured(&root);
    if writes {
        std::fs::write(&page, format!("{before}{BEGIN}{measured}{END}{after}")).expect("written");
    } else {
        assert!(table == measured, "REFAULT_WRITE_POLICIES=1 writes it anew:\n{measured}");
    }
}
