//! The lab predicts whole programs, too: the same accesses hit as often under `refault run` as in
//! the engine alone, and so do those of a record.
//!
//! This test starts itself as the program. All accesses write: writes to pages in place are seen,
//! reads are not. Without userfaultfd the tests say that they skip.

use std::collections::HashMap;

use refault_pager::store::{Codec, nameless_file};
use refault_pager::tree::{ProcessTouch, RunEnd, TreeConfig, run};
use refault_pager::{Policy, PoolConfig, RegionConfig, ThpConfig};
use refault_testing::{Program, role, short_or_long, test_name};

use crate::common::lab::{MEMORY_PAGES, PAGE, PAGES, accesses, each, hits_in_lab};
use crate::common::made;

/// The program is recorded.
const RECORDED: &str = "REFAULT_TEST_RECORDED";

/// Not a test of its own: what the others start as the program. It maps its memory and touches
/// pages in the order of the workload.
#[test]
fn the_program() {
    let Some(role) = role() else { return };
    let (workload, report) = role.split_once(' ').expect("two words");
    let (rw, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping where the kernel chooses.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), PAGES * PAGE, rw, flags, -1, 0) };
    assert_ne!(at, libc::MAP_FAILED);
    let mut counts = vec![0u8; PAGES];
    for page in each(workload) {
        // SAFETY: a byte of the mapping.
        unsafe {
            let byte = at.cast::<u8>().add(page * PAGE);
            byte.write_volatile(byte.read_volatile().wrapping_add(1));
        }
        counts[page] = counts[page].wrapping_add(1);
    }
    // Memory that is something else: the stack, what it changed of its files, what is left of its
    // heap.
    let status = std::fs::read_to_string("/proc/self/status").expect("it is there");
    let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:")).expect("a line");
    let all: usize = line.trim().trim_end_matches(" kB").parse().expect("a number");
    let mut there = vec![0u8; PAGES];
    // SAFETY: a byte for each page of the mapping.
    assert_eq!(unsafe { libc::mincore(at, PAGES * PAGE, there.as_mut_ptr()) }, 0);
    let there = there.iter().filter(|&&t| t & 1 != 0).count();
    std::fs::write(report, (all / 4).saturating_sub(there).to_string()).expect("it can be written");
    if std::env::var_os(RECORDED).is_some() {
        // Reads of what is in place are not seen, so the record would have half of them.
        return;
    }
    // SAFETY: as above.
    let wrong = (0..PAGES).filter(|&p| counts[p] != unsafe { at.cast::<u8>().add(p * PAGE).read_volatile() }).count();
    assert_eq!(wrong, 0);
}

/// Runs it; `None`: it was said why not. Also says how many pages there were for the workload.
fn run_self(workload: &str, record: bool) -> Option<(RunEnd, usize)> {
    let report = std::env::temp_dir().join(format!("refault-{workload}-{record}-{}", std::process::id()));
    let mut program = Program::new(test_name!(the_program), &format!("{workload} {}", report.display()));
    if record {
        program = program.with(RECORDED, "1");
    }
    let words = program.words();
    let memory = RegionConfig {
        policy: Policy::Mglru,
        pool: Some(PoolConfig { codec: Codec::Lz4, max_bytes: PAGES * PAGE }),
        // The lab counts pages alone.
        overhead_beside: true,
        swap_max: 256 << 20,
        ..RegionConfig::new(256 << 20, MEMORY_PAGES * PAGE)
    };
    let record = record.then(|| nameless_file(&std::env::temp_dir()).expect("a file without a name"));
    let outcome = made(run(TreeConfig { memory, record }, words[0].as_ref(), &words))?;
    assert!(outcome.status.success(), "{workload}: {}", outcome.status);
    let others = std::fs::read_to_string(&report).expect("it was reported");
    _ = std::fs::remove_file(&report);
    let others: usize = others.parse().expect("a number");
    eprintln!("{workload}: {others} pages are no part of it");
    Some((outcome, MEMORY_PAGES - others))
}

#[test]
fn the_lab_predicts_the_hit_rate_of_a_program() {
    for &workload in short_or_long(&["phases"][..], &["uniform", "zipf", "scan", "phases"]) {
        let Some((outcome, room)) = run_self(workload, false) else { return };
        let pages = accesses(workload);
        // It checks its memory in the end: a scan, of which it is not told how much was in place.
        let checked = accesses("scan")[..PAGES].to_vec();
        let both = [pages.clone(), checked].concat();
        let touched: std::collections::HashSet<_> = both.iter().collect();
        let c = outcome.stats.counts;
        let missed = c.swapped_in as f64 + touched.len() as f64;
        let in_run = 1.0 - missed / both.len() as f64;
        let (hits, _) = hits_in_lab(&both, PAGES, room, &ThpConfig::default());
        let lab = hits as f64 / both.len() as f64;
        let (a, b) = (in_run * 100.0, lab * 100.0);
        eprintln!("{workload}: {a:.2} % of accesses hit in the program, {b:.2} % in the lab; {c:?}");
        // Uniform accesses and scans only measure how much memory there is, and pages that are on
        // their way out take some of it.
        let most = if matches!(workload, "uniform" | "scan") { 0.04 } else { 0.02 };
        assert!((in_run - lab).abs() < most, "{workload}: {in_run:.4} in the program, {lab:.4} in the lab");
    }
}

/// Accesses that were seen of a run (faults, and pages found written between two walks) hit as
/// often when they are replayed.
#[test]
fn a_record_hits_as_often_when_it_is_replayed() {
    for &workload in short_or_long(&["zipf"][..], &["zipf", "phases"]) {
        let Some((outcome, room)) = run_self(workload, true) else { return };
        let touches: Vec<ProcessTouch> =
            outcome.recording.expect("it was asked for").expect("written").touches().map(Result::unwrap).collect();
        assert!(touches.is_sorted_by_key(|t| t.time_ns));
        let mut numbers = HashMap::new();
        let pages: Vec<usize> = touches
            .iter()
            .map(|t| {
                let next = numbers.len();
                *numbers.entry((t.process, t.page)).or_insert(next)
            })
            .collect();
        let c = outcome.stats.counts;
        // A page that came in and was not seen in another way was a miss.
        let missed = c.swapped_in + numbers.len() as u64;
        let in_run = 1.0 - missed as f64 / pages.len() as f64;
        let (hits, misses) = hits_in_lab(&pages, numbers.len(), room, &ThpConfig::default());
        let replayed = hits as f64 / pages.len() as f64;
        eprintln!(
            "{workload}: of {} touches that were seen {:.2} % hit in the run ({missed} missed), {:.2} % when they are replayed ({misses} missed)",
            pages.len(),
            in_run * 100.0,
            replayed * 100.0,
        );
        // Where in between two looks a page was written is a guess.
        assert!((in_run - replayed).abs() < 0.02, "{workload}: {in_run:.4} in the run, {replayed:.4} replayed");
    }
}
