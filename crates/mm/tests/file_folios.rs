//! Large folios of files: which ones readahead and writes make, and what becomes of them.

use refault_mm::{
    AccessAdvice, Ack, Config, Effect, Engine, Kernel, MappingKind, MemcgId, MmapMissDecrease, OrderGrowth, Outcome,
    PageId, Policy, Readahead, ReadaheadConfig, Touch,
};
use refault_testing::{AtOnce, Rng, one_in};

const PAGES: u32 = 1000;

fn config(policy: Policy, order_growth: OrderGrowth) -> Config {
    let readahead = ReadaheadConfig { history: true, file_order: 9, order_growth, ..ReadaheadConfig::default() };
    Config { readahead, ..Config::new(policy) }
}

/// A file of 1000 pages in a group.
fn engine(cfg: Config, memory: u64) -> (Engine, MemcgId) {
    let mut engine = Engine::new(cfg).expect("a configuration");
    let group = engine.add_memcg(MemcgId::ROOT, "/file", memory, u64::MAX).expect("a group");
    engine.add_mapping(MappingKind::File, group, 0..u64::from(PAGES)).expect("a file");
    (engine, group)
}

fn lru(memory: u64) -> (Engine, MemcgId) {
    engine(config(Policy::Lru, OrderGrowth::ByFile), memory)
}

/// A world that notes what is read and written.
fn noting() -> AtOnce {
    AtOnce::answering(|_, e| matches!(e, Effect::Read { .. } | Effect::Write { .. }).then_some(Ack::Done))
}

/// Folios read, or written, as first pages and orders.
fn moved(w: &mut AtOnce) -> Vec<(u32, u8)> {
    let all = std::mem::take(&mut w.noted).into_iter();
    all.filter_map(|e| match e {
        Effect::Read { page, order } | Effect::Write { page, order } => Some((page.0, order)),
        _ => None,
    })
    .collect()
}

fn read(engine: &mut Engine, w: &mut AtOnce, ra: &mut Readahead, pages: impl IntoIterator<Item = u32>) {
    for page in pages {
        engine.read_file(w, PageId(page), 1, Touch::Read, ra);
        engine.validate().unwrap_or_else(|e| panic!("page {page}: {e}"));
    }
}

fn gauge(engine: &Engine, group: MemcgId, name: &str) -> u64 {
    engine.memcg_gauges(group).iter().find(|g| g.name == name).expect("a gauge").value
}

fn counter(engine: &Engine, name: &str) -> u64 {
    engine.vmstat().iter().find(|(n, _)| *n == name).expect("a counter").1
}

#[test]
fn windows_of_6_18_grow_by_two_orders_and_end_on_multiples() {
    let ((mut e, _), mut w, mut ra) = (lru(u64::MAX), noting(), Readahead::default());
    read(&mut e, &mut w, &mut ra, 0..64);
    let singles = (0..4).map(|p| (p, 0));
    let large = [(4, 2), (8, 2), (12, 2), (16, 3), (24, 3), (32, 4), (48, 4), (64, 5)];
    assert_eq!(moved(&mut w), singles.chain(large).collect::<Vec<_>>());
}

#[test]
fn regression_readahead_stops_where_the_file_ends_at_present() {
    let ((mut e, group), mut w, mut ra) = (lru(u64::MAX), noting(), Readahead::default());
    let (file, _) = e.add_mapping(MappingKind::File, group, 0..100).expect("a file");
    let at = |page: u32| PAGES + page;
    e.set_i_size(file, PageId(at(6)));
    read(&mut e, &mut w, &mut ra, (0..6).map(at));
    e.will_need(&mut w, PageId(at(4)), 10);
    let singles = |range: std::ops::Range<u32>| range.map(|p| (at(p), 0));
    assert_eq!(moved(&mut w), singles(0..4).chain([(at(4), 1)]).collect::<Vec<_>>());
    // A write makes it longer; what was not there before is read then.
    e.set_i_size(file, PageId(at(8)));
    read(&mut e, &mut w, &mut ra, [at(6)]);
    assert_eq!(moved(&mut w), singles(6..8).collect::<Vec<_>>());
    // Around a fault, too.
    e.fault_file(&mut w, PageId(at(7)), Touch::MapRead, AccessAdvice::Normal, &mut ra);
    assert_eq!(moved(&mut w), []);
    e.set_i_size(file, PageId(at(100)));
    e.fault_file(&mut w, PageId(at(50)), Touch::MapRead, AccessAdvice::Normal, &mut ra);
    assert!(moved(&mut w).len() > 1);
}

#[test]
fn windows_of_6_12_begin_with_four_pages_in_one_folio() {
    let (mut e, _) = engine(config(Policy::Lru, OrderGrowth::ByMark), u64::MAX);
    let (mut w, mut ra) = (noting(), Readahead::default());
    read(&mut e, &mut w, &mut ra, 0..1);
    // The mark is in the folio that was asked for, so that the next window is read at once.
    assert_eq!(moved(&mut w), [(0, 2), (4, 2), (8, 2)]);
    read(&mut e, &mut w, &mut ra, 1..5);
    assert_eq!(moved(&mut w), [(12, 2), (16, 3), (24, 2)]);
    assert_eq!(e.folio_order(PageId(17)), Some(3));
}

#[test]
fn without_large_folios_a_window_of_6_18_ends_on_a_multiple_of_four_pages() {
    let cfg = Config {
        readahead: ReadaheadConfig { file_order: 0, ..config(Policy::Lru, OrderGrowth::ByFile).readahead },
        ..Config::new(Policy::Lru)
    };
    let ((mut e, _), mut w, mut ra) = (engine(cfg, u64::MAX), noting(), Readahead::default());
    e.read_file(&mut w, PageId(101), 3, Touch::Read, &mut ra);
    e.read_file(&mut w, PageId(104), 1, Touch::Read, &mut ra);
    let first = moved(&mut w);
    assert_eq!(first.last(), Some(&(107, 0)));
    read(&mut e, &mut w, &mut ra, 105..108);
    let next = moved(&mut w);
    assert_eq!((next[0], next[next.len() - 1]), ((108, 0), (115, 0)));
}

#[test]
fn kernels_choose_how_orders_grow() {
    assert_eq!(Kernel::V6_12.order_growth(), OrderGrowth::ByMark);
    assert_eq!(Kernel::V6_18.order_growth(), OrderGrowth::ByFile);
}

#[test]
fn a_window_that_meets_a_page_goes_on_in_single_pages() {
    let ((mut e, _), mut w, mut ra) = (lru(u64::MAX), noting(), Readahead::default());
    read(&mut e, &mut w, &mut Readahead::default(), [13]);
    read(&mut e, &mut w, &mut ra, 0..5);
    let singles = |range: std::ops::Range<u32>| range.map(|p| (p, 0)).collect::<Vec<_>>();
    let expected = [singles(13..14), singles(0..4), vec![(4, 2), (8, 2)], vec![(12, 0), (14, 0), (15, 0)]].concat();
    assert_eq!(moved(&mut w), expected);
}

#[test]
fn a_run_of_reads_in_a_folio_is_one_use_and_reads_apart_are_several() {
    let ((mut e, group), mut w, mut ra) = (lru(u64::MAX), noting(), Readahead::default());
    read(&mut e, &mut w, &mut ra, 0..64);
    e.drain_all();
    assert_eq!(gauge(&e, group, "active_file"), 0, "each was read once from beginning to end");
    read(&mut e, &mut w, &mut ra, [40, 8]);
    e.drain_all();
    assert_eq!(gauge(&e, group, "active_file"), 16 + 4, "both had been used before");
}

#[test]
fn a_folio_leaves_as_a_whole_and_each_of_its_pages_is_a_refault() {
    let ((mut e, group), mut w) = (lru(256), noting());
    let mut ra = Readahead::default();
    read(&mut e, &mut w, &mut ra, 0..64);
    assert_eq!(e.folio_order(PageId(40)), Some(4));
    read(&mut e, &mut w, &mut Readahead::default(), (100..780).rev().step_by(2));
    assert!((32..48).all(|p| !e.is_resident(PageId(p))));
    let resident = (0..PAGES).filter(|&p| e.is_resident(PageId(p))).count() as u64;
    e.drain_all();
    assert_eq!(gauge(&e, group, "inactive_file") + gauge(&e, group, "active_file"), resident);
    let before = counter(&e, "workingset_refault_file");
    moved(&mut w);
    assert_eq!(e.read_file(&mut w, PageId(40), 1, Touch::Read, &mut ra), Outcome::Major);
    assert_eq!(moved(&mut w), [(40, 0)], "a read by itself brings a page");
    assert_eq!(counter(&e, "workingset_refault_file") - before, 1);
    e.validate().expect("a consistent engine");
}

#[test]
fn a_large_folio_that_is_back_counts_all_of_its_pages() {
    let ((mut e, _), mut w, mut ra) = (lru(128), noting(), Readahead::default());
    read(&mut e, &mut w, &mut ra, 0..400);
    let before = counter(&e, "workingset_refault_file");
    read(&mut e, &mut w, &mut Readahead::default(), 0..5);
    let first = counter(&e, "workingset_refault_file") - before;
    assert_eq!(first, 4 + 8 + 4, "pages of the windows, not folios");
}

#[test]
fn a_write_makes_a_folio_of_its_size_and_it_is_written_as_a_whole() {
    let ((mut e, group), mut w) = (lru(u64::MAX), noting());
    for (page, asked, order) in [(64, 32, 5), (200, 32, 3), (300, 3, 1), (310, 1, 0)] {
        assert_eq!(e.write_file(&mut w, PageId(page), asked), Outcome::Fresh);
        assert_eq!(e.folio_order(PageId(page)), Some(order), "{asked} pages at {page}");
        e.validate().expect("a consistent engine");
    }
    assert_eq!(e.write_file(&mut w, PageId(65), 31), Outcome::Hit);
    assert_eq!(e.write_file(&mut w, PageId(56), 16), Outcome::Fresh);
    assert_eq!((e.folio_order(PageId(56)), e.folio_order(PageId(64))), (Some(3), Some(5)));
    assert_eq!(gauge(&e, group, "file_dirty"), 32 + 8 + 2 + 1 + 8);
    e.write_page(&mut w, PageId(70));
    assert_eq!(moved(&mut w), [(64, 5)]);
}

#[test]
fn a_truncation_inside_of_a_dirty_folio_leaves_the_rest_dirty() {
    let ((mut e, group), mut w) = (lru(u64::MAX), noting());
    e.write_file(&mut w, PageId(64), 32);
    e.truncate_range(&mut w, PageId(80), 4);
    e.validate().expect("a consistent engine");
    assert_eq!((gauge(&e, group, "file_dirty"), e.folio_order(PageId(64))), (28, Some(0)));
    assert!(!e.is_resident(PageId(80)) && e.is_resident(PageId(84)));
    e.truncate_range(&mut w, PageId(0), PAGES);
    e.validate().expect("a consistent engine");
    assert_eq!(gauge(&e, group, "file_dirty"), 0);
    assert!((0..PAGES).all(|p| e.is_untouched(PageId(p))));
}

#[test]
fn a_fault_maps_its_pages_and_not_the_rest_of_the_folio() {
    let ((mut e, _), mut w) = (lru(u64::MAX), noting());
    e.write_file(&mut w, PageId(64), 64);
    assert_eq!(
        e.fault_file(&mut w, PageId(81), Touch::MapRead, AccessAdvice::Normal, &mut Readahead::default()),
        Outcome::Minor
    );
    e.validate().expect("a consistent engine");
    let mapped: Vec<u32> = (64..128).filter(|&p| w.mapped(PageId(p)).is_some()).collect();
    assert_eq!(mapped, (80..96).collect::<Vec<_>>(), "what fault-around takes");
}

/// Reads, writes, faults, advice, truncation, swap and reclaim at random.
#[test]
fn structures_hold_together() {
    for policy in [Policy::Lru, Policy::Mglru, Policy::MglruShadow] {
        for growth in [OrderGrowth::ByMark, OrderGrowth::ByFile] {
            for seed in (0..12).step_by(one_in(4)) {
                at_random(policy, growth, seed);
            }
        }
    }
}

fn at_random(policy: Policy, growth: OrderGrowth, seed: u64) {
    let mut e = Engine::new(config(policy, growth)).expect("a configuration");
    let group = e.add_memcg(MemcgId::ROOT, "/g", 300, u64::MAX).expect("a group");
    // Some indices have no page.
    e.add_mapping(MappingKind::File, group, (0..u64::from(PAGES)).map(|n| n + n / 230 * 100)).expect("a file");
    e.add_mapping(MappingKind::Anon, group, 0..100).expect("memory");
    let (mut w, mut rng) = (AtOnce::default().with_accessed_bits(), Rng(seed));
    let mut ra = [Readahead::default(); 3];
    for step in 0..1500 {
        let (page, nr) = (PageId(rng.below(PAGES as usize) as u32), 1 + rng.below(70) as u32);
        match rng.below(17) {
            0 => e.truncate_range(&mut w, page, nr),
            16 => e.unmap_range(&mut w, page, nr),
            1 => e.flush(&mut w),
            2 => _ = e.access(&mut w, PageId(PAGES + page.0 % 100), Touch::MapWrite),
            3 => e.advise_range(page, nr.min(PAGES - page.0), refault_mm::Advice::DontNeed),
            4 => _ = e.page_out(&mut w, page, nr.min(PAGES - page.0)),
            5 => _ = e.split(page),
            6 => _ = e.reclaim(&mut w, group, u64::from(nr), None),
            7 | 8 => _ = e.write_file(&mut w, page, nr),
            9 => _ = e.fault_file(&mut w, page, Touch::MapRead, AccessAdvice::Normal, &mut ra[0]),
            10 => _ = e.access(&mut w, page, Touch::MapWrite),
            _ => {
                let stream = &mut ra[rng.below(3)];
                (page.0..(page.0 + nr).min(PAGES))
                    .for_each(|p| _ = e.read_file(&mut w, PageId(p), 1, Touch::Read, stream));
            }
        }
        if rng.one_in(4) {
            e.validate().unwrap_or_else(|error| panic!("{policy:?} {growth:?} seed {seed} step {step}: {error}"));
        }
    }
    e.truncate_range(&mut w, PageId(0), PAGES);
    e.validate().expect("a consistent engine");
    assert!((0..PAGES).all(|p| e.is_untouched(PageId(p))));
}

#[test]
fn regression_pages_read_around_a_fault_are_in_use_to_multi_gen_lru() {
    // Once with large folios, once without; then a stream of another file, three times the memory.
    for order in [9, 0] {
        let mut cfg = config(Policy::Mglru, OrderGrowth::ByFile);
        cfg.readahead.file_order = order;
        let (mut e, group) = engine(cfg, 300);
        let (_, other) = e.add_mapping(MappingKind::File, group, 0..900).expect("a file");
        let (mut w, mut ra) = (noting(), Readahead::default());
        assert!(!e.fault_file(&mut w, PageId(40), Touch::MapRead, AccessAdvice::Normal, &mut ra).is_hit());
        let around: Vec<_> = (0..PAGES).map(PageId).filter(|&page| e.is_resident(page)).collect();
        assert!(around.len() > 16, "{} pages came in", around.len());
        read(&mut e, &mut w, &mut Readahead::default(), other.0..other.0 + 900);
        assert!(around.iter().all(|&page| e.is_resident(page)), "order {order}: what came with a fault stays");
    }
}

/// Pages of the file in memory after a fault on one, with advice on the mapping and on the open
/// file.
fn after_a_fault(page: u32, mapped: AccessAdvice, opened: AccessAdvice) -> Vec<u32> {
    let mut cfg = config(Policy::Lru, OrderGrowth::ByFile);
    (cfg.readahead.file_order, cfg.readahead.file_pages) = (0, 32);
    let (mut e, _) = engine(cfg, 900);
    let (mut w, mut ra) = (noting(), Readahead::advised(opened));
    assert!(!e.fault_file(&mut w, PageId(page), Touch::MapRead, mapped, &mut ra).is_hit());
    (0..PAGES).filter(|&page| e.is_resident(PageId(page))).collect()
}

#[test]
fn faults_read_as_the_mapping_was_advised() {
    use AccessAdvice::{Normal, Random, Sequential};
    let range = |pages: std::ops::Range<u32>| pages.collect::<Vec<_>>();
    assert_eq!(after_a_fault(100, Normal, Normal), range(84..116), "around it");
    assert_eq!(after_a_fault(100, Sequential, Normal), range(100..132), "from it on");
    assert_eq!(after_a_fault(0, Sequential, Normal), range(0..32));
    assert_eq!(after_a_fault(100, Random, Normal), [100]);
    // Advice on the open file: twice as large a window, and random reads by descriptor say nothing
    // of faults.
    assert_eq!(after_a_fault(100, Sequential, Sequential), range(100..164));
    assert_eq!(after_a_fault(100, Normal, Random), range(84..116));
}

#[test]
fn a_mapping_that_is_read_in_sequence_goes_on_without_lots_of_misses() {
    let mut cfg = config(Policy::Lru, OrderGrowth::ByFile);
    (cfg.readahead.file_order, cfg.readahead.file_pages) = (0, 4);
    // Else each fault finds what was just read around it.
    cfg.readahead.mmap_hits = MmapMissDecrease::FaultedPage;
    let misses = |advice: AccessAdvice| {
        let (mut e, _) = engine(cfg.clone(), 900);
        let (mut w, mut ra) = (noting(), Readahead::default());
        // Backwards: nothing that is read ahead is met, so that reading around ends after a while.
        let pages = (0..PAGES).rev().step_by(4);
        pages.filter(|&p| !e.fault_file(&mut w, PageId(p), Touch::MapRead, advice, &mut ra).is_hit()).count();
        (0..PAGES).filter(|&page| e.is_resident(PageId(page))).count()
    };
    let (around, ahead) = (misses(AccessAdvice::Normal), misses(AccessAdvice::Sequential));
    assert!(around < ahead, "{around} pages are in memory, and {ahead}");
}
