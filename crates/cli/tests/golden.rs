//! Against published miss ratios of textbook policies, on the public traces.

use crate::common::{load, one_list, opt_misses, replay};
use refault_mm::{Config, Policy};
use refault_testing::traces;
use refault_trace::{Trace, Via};
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
    for golden in table(&root) {
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
    for path in paths {
        for via in [Via::Fd, Via::Map] {
            let trace = load(&path, false, via, false);
            for percent in [5, 20, 60] {
                let pages = (u64::from(trace.footprint_pages()) * percent / 100).max(1);
                let least = opt_misses(&trace, pages);
                for policy in Policy::ALL {
                    let cell = replay(&trace, Config::new(policy), pages);
                    let name = format!("{policy} on {} by {via:?} in {pages} pages", trace.name);
                    match cell.oom_at {
                        // What nothing can be reclaimed for is not a replay of the whole trace.
                        Some(at) => println!("{name}: out of memory at access {at}"),
                        None => assert!(cell.misses >= least, "{name}: {} misses, OPT {least}", cell.misses),
                    }
                }
            }
        }
    }
}
