//! Large folios of anonymous memory, one rule a test, under two lists and many generations.

mod model;

use model::{Device, Driver, Op};
use refault_mm::{Advice, Config, HugeAdvice, PageId, Policy, SizeCounter, ThpConfig, Touch};

/// File pages before the anonymous ones.
const FILES: u32 = 8;

fn thp(settings: &[&str]) -> ThpConfig {
    let mut thp = ThpConfig::default();
    settings.iter().for_each(|s| thp.set(s).expect("a setting"));
    thp
}

fn driver_with(cfg: Config, anons: u32, memory: u64) -> Driver {
    Driver::new(cfg, Device::Instant, FILES, anons, memory, u64::MAX)
}

fn config(policy: Policy, settings: &[&str]) -> Config {
    let thp = thp(settings);
    Config { batch_folios: 0, charge_batch: 1, charge_kernel: false, thp, ..Config::new(policy) }
}

fn driver(policy: Policy, settings: &[&str], anons: u32, memory: u64) -> Driver {
    driver_with(config(policy, settings), anons, memory)
}

/// The n-th anonymous page.
fn anon(n: u32) -> PageId {
    PageId(FILES + n)
}

fn write(d: &mut Driver, pages: impl IntoIterator<Item = u32>) {
    pages.into_iter().for_each(|n| d.step(Op::Access(anon(n).0, Touch::MapWrite)).unwrap());
}

fn order(d: &Driver, n: u32) -> Option<u8> {
    d.engine.folio_order(anon(n))
}

fn size(d: &Driver, order: u8, c: SizeCounter) -> u64 {
    d.engine.size_stats().get(order, c)
}

fn counter(d: &Driver, name: &str) -> u64 {
    d.engine.memcg_stats(d.group).iter().find(|(n, _)| *n == name).expect("a counter").1
}

fn gauge(d: &Driver, name: &str) -> u64 {
    d.engine.memcg_gauges(d.group).iter().find(|g| g.name == name).expect("a gauge").value
}

fn anon_pages(d: &Driver) -> u64 {
    gauge(d, "inactive_anon") + gauge(d, "active_anon")
}

const BOTH: [Policy; 2] = [Policy::Lru, Policy::Mglru];

#[test]
fn a_first_touch_makes_the_largest_folio_that_is_allowed_and_fits() {
    for policy in BOTH {
        let mut d = driver(policy, &["64k=always", "16k=always"], 100, 1000);
        write(&mut d, [5]);
        assert_eq!((order(&d, 0), order(&d, 15), order(&d, 16)), (Some(4), Some(4), None), "{policy}");
        assert_eq!((anon_pages(&d), gauge(&d, "memory.current")), (16, 16), "{policy}");
        assert_eq!((size(&d, 4, SizeCounter::AnonFaultAlloc), counter(&d, "pgfault")), (1, 1), "{policy}");
        // The other pages are mapped and need no fault.
        write(&mut d, 0..16);
        assert_eq!(counter(&d, "pgfault"), 1, "{policy}");
        // 64 KiB from page 96 on would reach beyond the end.
        write(&mut d, [98]);
        assert_eq!((order(&d, 96), order(&d, 99), anon_pages(&d)), (Some(2), Some(2), 20), "{policy}");
        assert_eq!(size(&d, 4, SizeCounter::AnonFaultFallback), 0, "{policy}: no room was wanting");
    }
}

#[test]
fn a_range_that_is_not_empty_gets_smaller_folios() {
    for policy in BOTH {
        let mut d = driver(policy, &["64k=always", "16k=always"], 64, 1000);
        d.step(Op::Huge(HugeAdvice::NoHuge)).unwrap();
        write(&mut d, [20]);
        assert_eq!(order(&d, 20), Some(0), "{policy}: advised against");
        d.step(Op::Huge(HugeAdvice::None)).unwrap();
        write(&mut d, [17]);
        assert_eq!((order(&d, 16), order(&d, 19), order(&d, 24)), (Some(2), Some(2), None), "{policy}");
        write(&mut d, [21]);
        assert_eq!(order(&d, 21), Some(0), "{policy}: its 16 KiB hold page 20");
    }
}

#[test]
fn holes_make_smaller_folios() {
    // A page that nobody registered does not exist.
    let mut engine = refault_mm::Engine::new(config(Policy::Lru, &["64k=always", "16k=always"])).unwrap();
    let indices = (0..64).filter(|i| i % 16 != 3);
    let root = refault_mm::MemcgId::ROOT;
    let (_, first) = engine.add_mapping(refault_mm::MappingKind::Anon, root, indices).unwrap();
    struct Instant;
    impl refault_mm::World for Instant {
        fn effect(&mut self, _: refault_mm::Effect) -> refault_mm::Ack {
            refault_mm::Ack::Done
        }
        fn test_and_clear_young(&mut self, _: PageId) -> bool {
            false
        }
        fn test_and_clear_dirty(&mut self, _: PageId) -> bool {
            false
        }
    }
    // The page with index 0, the one with 5, and the one with 2.
    for (at, order) in [(0, 0), (4, 2), (2, 0)] {
        engine.access(&mut Instant, PageId(first.0 + at), Touch::MapWrite);
        assert_eq!(engine.folio_order(PageId(first.0 + at)), Some(order), "page {at}");
        engine.validate().unwrap();
    }
}

#[test]
fn without_room_a_fault_falls_back_to_smaller_folios() {
    for policy in BOTH {
        let mut d = driver(policy, &["64k=always", "16k=always", "defrag=never"], 100, 22);
        write(&mut d, [0, 16, 20]);
        // 16 pages, 4 more, and two left.
        assert_eq!((order(&d, 0), order(&d, 16), order(&d, 20)), (Some(4), Some(2), Some(0)), "{policy}");
        assert_eq!(size(&d, 4, SizeCounter::AnonFaultFallback), 1, "{policy}");
        assert_eq!(size(&d, 4, SizeCounter::AnonFaultFallbackCharge), 1, "{policy}");
        assert_eq!(size(&d, 2, SizeCounter::AnonFaultFallbackCharge), 1, "{policy}");
        assert_eq!(d.engine.memcg_events(d.group).max, 0, "{policy}: nobody reclaimed");
    }
}

#[test]
fn with_defrag_a_fault_reclaims_for_a_large_folio() {
    for policy in BOTH {
        let mut d = driver(policy, &["64k=always", "defrag=always"], 400, 100);
        write(&mut d, (0..400).step_by(16));
        assert_eq!(size(&d, 4, SizeCounter::AnonFaultAlloc), 25, "{policy}");
        assert!(d.engine.memcg_events(d.group).max > 0, "{policy}");
    }
}

#[test]
fn two_mebibytes_count_under_their_old_names_too() {
    let mut d = driver(Policy::Mglru, &["enabled=always"], 1024, 700);
    write(&mut d, [600, 10]);
    // The second one has no room, and nobody reclaims for it.
    assert_eq!((counter(&d, "thp_fault_alloc"), counter(&d, "thp_fault_fallback")), (1, 1));
    assert_eq!(counter(&d, "thp_fault_fallback_charge"), 1);
    assert_eq!((order(&d, 512), order(&d, 10), anon_pages(&d)), (Some(9), Some(0), 513));
}

#[test]
fn several_young_pages_of_a_mapping_are_one_reference() {
    // Two lists: each would be one more, and the folio activated at once.
    let mut d = driver_with(Config { swappiness: 200, ..config(Policy::Lru, &["64k=always"]) }, 160, 64);
    write(&mut d, (0..64).step_by(16));
    write(&mut d, 0..64);
    write(&mut d, [64]);
    assert!(counter(&d, "pgscan_anon") >= 64);
    assert_eq!(counter(&d, "pgactivate"), 0);
}

#[test]
fn aging_moves_a_folio_once_for_all_its_young_pages() {
    let mut d = driver(Policy::Mglru, &["64k=always"], 64, 1000);
    let age = |d: &mut Driver, seq: u64| {
        d.engine.lru_gen_command(&mut d.world, &format!("+ 1 0 {seq} 60 1")).unwrap();
        d.engine.validate().unwrap();
    };
    write(&mut d, [0, 16]);
    age(&mut d, 3);
    let young = counter(&d, "lru_gen_leaf_young");
    assert_eq!(young, 32, "every page of both was mapped young");
    assert_eq!(anon_pages(&d), 32);
    write(&mut d, [3, 4, 5]);
    age(&mut d, 4);
    assert_eq!(counter(&d, "lru_gen_leaf_young") - young, 3);
    let anon: Vec<u64> =
        d.engine.lru_gen_text().lines().filter_map(|l| l.split_whitespace().nth(2)?.parse().ok()).collect();
    assert_eq!(anon.iter().sum::<u64>(), 32);
    assert!(anon.iter().filter(|&&n| n == 16).count() == 2, "one folio moved, the other stayed: {anon:?}");
}

#[test]
fn dropping_a_part_splits_and_dropping_the_whole_does_not() {
    for policy in BOTH {
        let mut d = driver(policy, &["64k=always"], 64, 1000);
        write(&mut d, 0..32);
        d.step(Op::DropRange(anon(3).0, 2)).unwrap();
        assert_eq!((order(&d, 0), order(&d, 3), order(&d, 15)), (Some(0), None, Some(0)), "{policy}");
        assert_eq!((anon_pages(&d), size(&d, 4, SizeCounter::Split)), (30, 1), "{policy}");
        d.step(Op::DropRange(anon(16).0, 16)).unwrap();
        assert_eq!((anon_pages(&d), size(&d, 4, SizeCounter::Split)), (14, 1), "{policy}");
        assert_eq!(gauge(&d, "memory.current"), 14, "{policy}");
        // What was dropped reads as zeros; the rest kept its content. The range is large enough again where it is empty.
        write(&mut d, 0..32);
        assert_eq!((order(&d, 3), order(&d, 16)), (Some(0), Some(4)), "{policy}");
    }
}

#[test]
fn advice_on_a_part_splits_and_on_the_whole_does_not() {
    for policy in BOTH {
        let mut d = driver(policy, &["64k=always"], 64, 1000);
        write(&mut d, [0, 16]);
        d.step(Op::AdviseRange(anon(0).0, 16, Advice::Free)).unwrap();
        d.step(Op::Advise(anon(17).0, Advice::Free)).unwrap();
        assert_eq!((order(&d, 0), order(&d, 17)), (Some(4), Some(0)), "{policy}");
        assert_eq!((anon_pages(&d), gauge(&d, "inactive_file")), (15, 17), "{policy}");
        assert_eq!(counter(&d, "pglazyfree"), 17, "{policy}");
        d.step(Op::PageOut(anon(0).0, 16)).unwrap();
        assert_eq!((order(&d, 0), counter(&d, "pglazyfreed")), (None, 16), "{policy}: freed without a write");
        assert_eq!(counter(&d, "pswpout"), 0, "{policy}");
    }
}
