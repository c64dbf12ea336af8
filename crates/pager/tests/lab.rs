//! The lab predicts the pager: the same accesses hit as often in a region as in the engine alone,
//! as the lab drives it: with accessed bits of every page, and everything done at once.
//!
//! All accesses write: the pager sees writes to pages in place, but not reads. Without userfaultfd
//! the test says that it skips.

use refault_pager::store::Codec;
use refault_pager::{Policy, PoolConfig, Region, RegionConfig, ThpConfig, ThpDefrag, ThpSize};
use refault_testing::by_length;

use crate::common::lab::{MEMORY_PAGES, PAGE, PAGES, accesses, in_lab};
use crate::common::made;

/// Accesses that found their page in memory, of all; `None`: this machine has no regions, as was
/// said.
fn in_region(pages: &[usize], thp: &ThpConfig) -> Option<f64> {
    let config = RegionConfig {
        thp: thp.clone(),
        policy: Policy::Mglru,
        pool: Some(PoolConfig { codec: Codec::Lz4, max_bytes: PAGES * PAGE }),
        // The lab counts pages alone.
        overhead_beside: true,
        ..RegionConfig::new(PAGES * PAGE, MEMORY_PAGES * PAGE)
    };
    let mut region = made(Region::new(&config))?;
    let bytes = region.as_mut_slice();
    for &page in pages {
        let byte = &mut bytes[page * PAGE];
        *byte = byte.wrapping_add(1);
    }
    let stats = region.stats();
    region.validate().unwrap();
    // Without folios every page that is read is one that was missed: the lab reads nothing ahead.
    let major = stats.vmstat.iter().find(|(name, _)| *name == "pgmajfault").expect("a counter").1;
    let missed = if thp.swap_in { major } else { stats.counts.swapped_in };
    Some(1.0 - (missed + stats.counts.first_touches) as f64 / pages.len() as f64)
}

fn compare(thp: &ThpConfig, name: &str) {
    for &workload in by_length(&["zipf"][..], &["zipf", "phases"], &["uniform", "zipf", "scan", "phases"]) {
        let pages = accesses(workload);
        let Some(pager) = in_region(&pages, thp) else { return };
        let lab = in_lab(&pages, thp);
        let (a, b) = (pager * 100.0, lab * 100.0);
        eprintln!("{workload}, {name}: {a:.2} % of accesses hit in the region, {b:.2} % in the lab");
        assert!((pager - lab).abs() < 0.02, "{workload}, {name}: {pager:.4} in the region, {lab:.4} in the lab");
    }
}

#[test]
fn the_lab_predicts_the_hit_rate_of_a_region() {
    compare(&ThpConfig { swap_in: false, ..ThpConfig::default() }, "single pages");
}

#[test]
fn the_lab_predicts_the_hit_rate_of_a_region_with_folios() {
    let mut thp = ThpConfig { defrag: ThpDefrag::Defer, swap_in: false, ..ThpConfig::default() };
    thp.sizes[2] = ThpSize::Always;
    compare(&thp, "folios of 16 KiB");
}
