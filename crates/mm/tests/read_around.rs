//! Reading around faults on mapped files: when it ends.

use refault_mm::{
    AccessAdvice, Config, Engine, Kernel, MappingKind, MemcgId, MmapMissDecrease, OrderGrowth, PageId, Policy,
    Readahead, ReadaheadConfig, Touch,
};
use refault_testing::{AtOnce, Rng};

const PAGES: u32 = 8000;

fn config(policy: Policy, mmap_hits: MmapMissDecrease) -> Config {
    let readahead =
        ReadaheadConfig { history: true, order_growth: OrderGrowth::ByFile, mmap_hits, ..ReadaheadConfig::default() };
    Config { readahead, ..Config::new(policy) }
}

/// A file in a group of so many pages.
fn engine(cfg: Config, memory: u64) -> Engine {
    let mut engine = Engine::new(cfg).expect("a configuration");
    let group = engine.add_memcg(MemcgId::ROOT, "/file", memory, u64::MAX).expect("a group");
    engine.add_mapping(MappingKind::File, group, 0..u64::from(PAGES)).expect("a file");
    engine
}

fn counter(engine: &Engine, name: &str) -> u64 {
    engine.vmstat().iter().find(|(n, _)| *n == name).expect("a counter").1
}

/// Pages read for each fault that missed, of 4,000 touches at random.
fn pages_a_miss(cfg: Config, touch: Touch) -> f64 {
    let mut e = engine(cfg, 2000);
    let (mut w, mut rng, mut ra) = (AtOnce::default().with_accessed_bits(), Rng(7), Readahead::default());
    let mut misses = 0;
    for _ in 0..4000 {
        let page = PageId(rng.below(PAGES as usize) as u32);
        if w.mapped(page).is_none() {
            misses += u64::from(!e.fault_file(&mut w, page, touch, AccessAdvice::Normal, &mut ra).is_hit());
        }
    }
    e.validate().expect("a consistent engine");
    counter(&e, "pgalloc") as f64 / misses as f64
}

/// The lab read one page for each miss after the first hundred: of a Python program that touches a
/// mapping of 480 MiB at random, in 128 MiB, the kernel evicted 837,859 pages, and the lab none.
#[test]
fn regression_touches_at_random_are_read_around_as_long_as_fault_around_finds_what_was_read() {
    for hits in [MmapMissDecrease::All, MmapMissDecrease::NotWorkingset] {
        let pages = pages_a_miss(config(Policy::Lru, hits), Touch::MapRead);
        assert!(pages > 25.0, "{hits:?}: {pages} pages a miss");
    }
    // Pages that a fault has read itself are no hits: it ends, since 7.2.
    let pages = pages_a_miss(config(Policy::Lru, MmapMissDecrease::FaultedPage), Touch::MapRead);
    assert!(pages < 6.0, "{pages} pages a miss");
}

#[test]
fn writes_and_faults_that_map_no_other_page_lower_nothing() {
    let cfg = config(Policy::Lru, MmapMissDecrease::NotWorkingset);
    let mut alone = cfg.clone();
    alone.fault_around.pages = 1;
    for (cfg, touch) in [(cfg, Touch::MapWrite), (alone, Touch::MapRead)] {
        let pages = pages_a_miss(cfg, touch);
        assert!(pages < 6.0, "{touch:?}: {pages} pages a miss");
    }
}

#[test]
fn what_was_evicted_from_the_working_set_is_no_hit_since_6_10() {
    let read = |hits: MmapMissDecrease| {
        let mut cfg = config(Policy::Lru, hits);
        cfg.readahead.file_pages = 8;
        let (mut e, mut w, mut ra) = (engine(cfg, 6000), AtOnce::default(), Readahead::default());
        // All is active, and a part of it is evicted as such.
        for touch in [Touch::Read, Touch::Read, Touch::MapRead] {
            (0..4000).for_each(|page| _ = e.access(&mut w, PageId(page), touch));
        }
        e.page_out(&mut w, PageId(0), 960);
        let before = counter(&e, "pgalloc");
        for page in (4..960).step_by(8).map(PageId) {
            e.fault_file(&mut w, page, Touch::MapRead, AccessAdvice::Normal, &mut ra);
        }
        assert_eq!(counter(&e, "workingset_restore_file"), counter(&e, "workingset_refault_file"));
        counter(&e, "pgalloc") - before
    };
    assert_eq!((read(MmapMissDecrease::All), read(MmapMissDecrease::NotWorkingset)), (120 * 8, 100 * 8 + 20));
}

#[test]
fn a_page_with_a_mark_opens_the_next_window_and_is_mapped() {
    let mut e = engine(config(Policy::Lru, MmapMissDecrease::NotWorkingset), 4000);
    let (mut w, mut ra) = (AtOnce::default().with_accessed_bits(), Readahead::default());
    let mut fault = |e: &mut Engine, page: u32| {
        e.fault_file(&mut w, PageId(page), Touch::MapRead, AccessAdvice::Normal, &mut ra).is_hit()
    };
    assert!(!fault(&mut e, 1000) && e.is_resident(PageId(984)) && e.is_resident(PageId(1015)));
    assert!(!e.is_resident(PageId(1016)));
    // The last quarter of 32 pages begins there.
    assert!(fault(&mut e, 1007) && !e.is_resident(PageId(1016)));
    assert!(fault(&mut e, 1008) && e.is_resident(PageId(1016)) && e.is_resident(PageId(1047)));
    e.validate().expect("a consistent engine");
}

#[test]
fn kernels_choose_what_is_a_hit() {
    let of = [Kernel::V6_1, Kernel::V6_6, Kernel::V6_12, Kernel::V6_18, Kernel::V7_2].map(Kernel::mmap_hits);
    let since = MmapMissDecrease::NotWorkingset;
    assert_eq!(of, [MmapMissDecrease::All, MmapMissDecrease::All, since, since, MmapMissDecrease::FaultedPage]);
}

/// Faults of all kinds at random, among truncation, reclaim, writes and reads.
#[test]
fn structures_hold_together() {
    for policy in [Policy::Lru, Policy::Mglru] {
        for hits in [MmapMissDecrease::All, MmapMissDecrease::NotWorkingset, MmapMissDecrease::FaultedPage] {
            (0..8).for_each(|seed| at_random(policy, hits, seed));
        }
    }
}

fn at_random(policy: Policy, hits: MmapMissDecrease, seed: u64) {
    let mut cfg = config(policy, hits);
    cfg.readahead.file_order = if seed.is_multiple_of(2) { 9 } else { 0 };
    cfg.fault_around.pages = [1, 16, 128][seed as usize % 3];
    let mut e = engine(cfg, 200);
    let (mut w, mut rng) = (AtOnce::default().with_accessed_bits(), Rng(seed));
    let mut ra = [Readahead::default(); 2];
    let advice = [AccessAdvice::Normal, AccessAdvice::Random, AccessAdvice::Sequential];
    for step in 0..1000 {
        let (page, nr) = (PageId(rng.below(1500) as u32), 1 + rng.below(60) as u32);
        let (stream, said) = (&mut ra[rng.below(2)], advice[rng.below(3)]);
        match rng.below(12) {
            0 => e.truncate_range(&mut w, page, nr),
            1 => e.unmap_range(&mut w, page, nr),
            2 => e.flush(&mut w),
            3 => _ = e.reclaim(&mut w, MemcgId::ROOT, u64::from(nr), None),
            4 => _ = e.read_file(&mut w, page, nr, Touch::Read, stream),
            5 => _ = e.write_file(&mut w, page, nr),
            6 | 7 => _ = e.fault_file(&mut w, page, Touch::MapWrite, said, stream),
            _ => _ = e.fault_file(&mut w, page, Touch::MapRead, said, stream),
        }
        if rng.one_in(4) {
            e.validate().unwrap_or_else(|error| panic!("{policy:?} {hits:?} seed {seed} step {step}: {error}"));
        }
    }
}
