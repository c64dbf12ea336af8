//! Workloads, and what the engine alone makes of them, as the lab drives it: with accessed bits of
//! every page, and everything done at once.

use refault_mm::{
    Ack, Config, Effect, Engine, MappingKind, MemcgId, NodeConfig, Outcome, PageId, Policy, ThpConfig, Touch,
};

use refault_testing::{AtOnce, Rng};

pub const PAGE: usize = 4096;
pub const PAGES: usize = 8192;
pub const MEMORY_PAGES: usize = 4096;
pub const ACCESSES: usize = 400_000;

/// The pages of a workload, in order.
pub fn accesses(workload: &str) -> Vec<usize> {
    each(workload).collect()
}

/// The same one after the other.
pub fn each(workload: &str) -> impl Iterator<Item = usize> {
    let mut rng = Rng(1);
    let page = move |i: usize| match workload {
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
    (0..ACCESSES).map(page)
}

/// The same, predicted: a machine of that size, with the free memory that its kswapd keeps.
pub fn in_lab(pages: &[usize], thp: &ThpConfig) -> f64 {
    let (hits, _) = hits_in_lab(pages, PAGES, MEMORY_PAGES, thp);
    hits as f64 / pages.len() as f64
}

/// Replays so many pages in so much memory; returns accesses that hit, and those that did not.
pub fn hits_in_lab(pages: &[usize], all: usize, memory_pages: usize, thp: &ThpConfig) -> (u64, u64) {
    let mut config = Config::new(Policy::Mglru);
    (config.total_pages, config.swap.pages) = (memory_pages as u64, all as u64);
    config.node = Some(NodeConfig { low_zones: [0, 0], ..NodeConfig::new(memory_pages as u64) });
    config.thp = thp.clone();
    let mut engine = Engine::new(config).unwrap();
    let group = engine.add_memcg(MemcgId::ROOT, "/lab", u64::MAX, u64::MAX).unwrap();
    engine.add_mapping(MappingKind::Anon, group, 0..all as u64).unwrap();
    // It is woken, and runs after the access.
    let kswapd = |_: &AtOnce, effect| matches!(effect, Effect::WakeKswapd { .. }).then_some(Ack::Pending);
    let mut world = AtOnce::answering(kswapd).dirty().with_accessed_bits();
    let mut hits = 0;
    for &page in pages {
        let page = PageId(page as u32);
        if world.mapped(page).is_some() {
            world.set_young(page);
            hits += 1;
            continue;
        }
        match engine.access(&mut world, page, Touch::MapWrite) {
            Outcome::Fresh | Outcome::Major => {}
            Outcome::Minor | Outcome::Hit => hits += 1,
            other => panic!("{page:?}: {other:?}"),
        }
        if !std::mem::take(&mut world.noted).is_empty() {
            assert!(engine.run_kswapd(&mut world, 1 << 20), "kswapd ends");
        }
    }
    engine.validate().unwrap();
    (hits, pages.len() as u64 - hits)
}
