//! The lab predicts the pager: the same accesses hit as often in a region as in the engine alone, as the lab drives it: with accessed
//! bits of every page, and everything done at once.
//!
//! All accesses write: the pager sees writes to pages in place, but not reads. Without userfaultfd the test says that it skips.

mod common;

use refault_mm::{
    Ack, Config, Effect, Engine, MappingKind, MemcgId, NodeConfig, Outcome, PageId, Policy, Touch, World,
};
use refault_pager::store::Codec;
use refault_pager::{PoolConfig, Region, RegionConfig, ThpConfig, ThpDefrag, ThpSize};

use self::common::{Rng, made};

const PAGE: usize = 4096;
const PAGES: usize = 8192;
const MEMORY_PAGES: usize = 4096;
const ACCESSES: usize = 400_000;

/// The pages of a workload, in order.
fn accesses(workload: &str) -> Vec<usize> {
    let mut rng = Rng(1);
    let page = |i: usize| match workload {
        "uniform" => rng.below(PAGES),
        // By inversion of the continuous distribution; ranks are scattered.
        "zipf" => {
            let unit = (rng.next() >> 11) as f64 / (1u64 << 53) as f64;
            let rank = ((PAGES as f64 + 1.0).ln() * unit).exp() as usize - 1;
            rank.min(PAGES - 1) * 5741 % PAGES
        }
        "scan" => i % PAGES,
        // A tenth is hot, and another tenth in each quarter.
        _ if rng.below(16) == 0 => rng.below(PAGES),
        _ => (i * 4 / ACCESSES * PAGES / 10 + rng.below(PAGES / 10)) % PAGES,
    };
    (0..ACCESSES).map(page).collect()
}

/// Accesses that found their page in memory, of all; `None`: this machine has no regions, as was said.
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

/// Page tables of a machine that does everything at once.
struct Tables {
    mapped: Vec<bool>,
    young: Vec<bool>,
    /// It was woken.
    kswapd: bool,
}

impl World for Tables {
    fn effect(&mut self, effect: Effect) -> Ack {
        match effect {
            Effect::Map { page, .. } => (self.mapped[page.index()], self.young[page.index()]) = (true, true),
            Effect::Unmap { page } => (self.mapped[page.index()], self.young[page.index()]) = (false, false),
            Effect::WakeKswapd { .. } => self.kswapd = true,
            _ => {}
        }
        Ack::Done
    }

    fn test_and_clear_young(&mut self, page: PageId) -> bool {
        std::mem::take(&mut self.young[page.index()])
    }

    fn test_and_clear_dirty(&mut self, _: PageId) -> bool {
        true
    }
}

/// The same, predicted: a machine of that size, with the free memory that its kswapd keeps.
fn in_lab(pages: &[usize], thp: &ThpConfig) -> f64 {
    let mut config = Config::new(Policy::Mglru);
    (config.total_pages, config.swap_pages) = (MEMORY_PAGES as u64, PAGES as u64);
    config.node = Some(NodeConfig { low_zones: [0, 0], ..NodeConfig::new(MEMORY_PAGES as u64) });
    config.thp = thp.clone();
    let mut engine = Engine::new(config).unwrap();
    let group = engine.add_memcg(MemcgId::ROOT, "/lab", u64::MAX, u64::MAX).unwrap();
    engine.add_mapping(MappingKind::Anon, group, 0..PAGES as u64).unwrap();
    let mut tables = Tables { mapped: vec![false; PAGES], young: vec![false; PAGES], kswapd: false };
    let mut hits = 0;
    for &page in pages {
        if tables.mapped[page] {
            tables.young[page] = true;
            hits += 1;
            continue;
        }
        match engine.access(&mut tables, PageId(page as u32), Touch::MapWrite) {
            Outcome::Fresh | Outcome::Major => {}
            Outcome::Minor | Outcome::Hit => hits += 1,
            other => panic!("page {page}: {other:?}"),
        }
        if std::mem::take(&mut tables.kswapd) {
            assert!(engine.run_kswapd(&mut tables, 1 << 20), "kswapd ends");
        }
    }
    engine.validate().unwrap();
    f64::from(hits) / pages.len() as f64
}

fn compare(thp: &ThpConfig, name: &str) {
    for workload in ["uniform", "zipf", "scan", "phases"] {
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
    compare(&ThpConfig::default(), "single pages");
}

#[test]
fn the_lab_predicts_the_hit_rate_of_a_region_with_folios() {
    let mut thp = ThpConfig { defrag: ThpDefrag::Defer, swap_in: false, ..ThpConfig::default() };
    thp.sizes[2] = ThpSize::Always;
    compare(&thp, "folios of 16 KiB");
}
