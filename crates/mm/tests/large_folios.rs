//! Large folios of anonymous memory, one rule a test, under two lists and many generations.

use crate::model::{Device, Driver, Op};
use refault_mm::{
    Ack, Advice, Config, Effect, Engine, HugeAdvice, MappingId, MappingKind, MemcgId, NodeConfig, PageId, Policy,
    SizeCounter, ThpConfig, Touch,
};
use refault_mm::{LruConfig, MemcgConfig, SwapConfig};
use refault_testing::AtOnce;

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
    Config {
        thp,
        lru: LruConfig { batch_folios: 0, ..Config::new(policy).lru },
        memcg: MemcgConfig { charge_batch: 1, charge_kernel: false, ..MemcgConfig::default() },
        ..Config::new(policy)
    }
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
    let mut w = AtOnce::default();
    // The page with index 0, the one with 5, and the one with 2.
    for (at, order) in [(0, 0), (4, 2), (2, 0)] {
        engine.access(&mut w, PageId(first.0 + at), Touch::MapWrite);
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
fn with_defer_a_fault_for_a_large_folio_wakes_kswapd() {
    // Memory is below the low mark, and a fault that wants a large folio finds none.
    for (defrag, wakes) in [("defer", true), ("defer+madvise", true), ("madvise", false), ("never", false)] {
        let node = NodeConfig { low_zones: [0, 0], ..NodeConfig::new(4096) };
        let setting = format!("defrag={defrag}");
        let cfg = Config { node: Some(node), ..config(Policy::Mglru, &["256k=always", &setting]) };
        let mut engine = Engine::new(cfg).unwrap();
        let group = engine.add_memcg(MemcgId::ROOT, "/g", u64::MAX, u64::MAX).unwrap();
        let (_, first) = engine.add_mapping(MappingKind::Anon, group, 0..8192).unwrap();
        // kswapd is woken, and does not run.
        let mut w = AtOnce::answering(|_, e| matches!(e, Effect::WakeKswapd { .. }).then_some(Ack::Pending));
        let low: u64 = engine.zones().map(|(.., marks)| marks.low).sum();
        let mut at = 0;
        while engine.free_pages() >= low + 64 {
            engine.access(&mut w, PageId(first.0 + at), Touch::MapWrite);
            at += 64;
        }
        assert_eq!(w.noted, [], "{defrag}");
        engine.access(&mut w, PageId(first.0 + at), Touch::MapWrite);
        assert_eq!(!w.noted.is_empty(), wakes, "{defrag}");
        engine.validate().unwrap();
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
        // Dropped pages read as zeros; the rest kept its content. The range is large enough again
        // where it is empty.
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

#[test]
fn a_large_folio_goes_to_swap_whole_and_comes_back_page_by_page() {
    for policy in BOTH {
        let mut d = driver(policy, &["64k=always", "swap-in=off"], 64, 1000);
        write(&mut d, 0..32);
        d.step(Op::PageOut(anon(0).0, 32)).unwrap();
        assert_eq!((size(&d, 4, SizeCounter::Swpout), counter(&d, "pswpout")), (2, 32), "{policy}");
        assert_eq!((anon_pages(&d), gauge(&d, "swap.current")), (0, 32), "{policy}");
        assert_eq!((size(&d, 4, SizeCounter::Split), size(&d, 4, SizeCounter::SwpoutFallback)), (0, 0), "{policy}");
        // Each page by itself; its slot is free, the others stay.
        write(&mut d, [5, 6, 20]);
        assert_eq!((order(&d, 5), order(&d, 7), anon_pages(&d)), (Some(0), None, 3), "{policy}");
        assert_eq!((gauge(&d, "swap.current"), counter(&d, "pswpin")), (29, 3), "{policy}");
        assert_eq!(counter(&d, "workingset_refault_anon"), 3, "{policy}: every page has the shadow");
    }
}

/// A driver whose writes are pending until it is told.
fn slow(policy: Policy, settings: &[&str]) -> Driver {
    let cfg = Config {
        swap: SwapConfig { synchronous: false, ..config(policy, settings).swap.clone() },
        ..config(policy, settings)
    };
    Driver::new(cfg, Device::Slow, FILES, 64, 1000, u64::MAX)
}

#[test]
fn a_folio_under_writeback_comes_back_whole_or_what_is_touched_of_it() {
    for policy in BOTH {
        let mut d = slow(policy, &["64k=always"]);
        write(&mut d, 0..32);
        d.step(Op::PageOut(anon(0).0, 32)).unwrap();
        assert_eq!(gauge(&d, "swapcached"), 32, "{policy}");
        let faults = counter(&d, "pgfault");
        // All of it is in swap: one fault maps it whole.
        write(&mut d, 0..16);
        assert_eq!((counter(&d, "pgfault") - faults, order(&d, 15)), (1, Some(4)), "{policy}");
        // A part of the other one was given up, which goes when the write has ended: the rest comes
        // page by page.
        d.step(Op::DropRange(anon(16).0, 2)).unwrap();
        write(&mut d, [16, 18, 19]);
        // A touch of page 16 waits, and counts when that is over.
        assert_eq!((counter(&d, "pgfault") - faults, order(&d, 18)), (3, Some(4)), "{policy}");
        assert_eq!(d.engine.folio_order(anon(16)), Some(4), "{policy}: who touches it waits");
        (0..2).for_each(|_| d.step(Op::Complete(0, true)).unwrap());
        assert_eq!((order(&d, 16), order(&d, 18), order(&d, 20)), (None, Some(0), Some(0)), "{policy}");
        // Written, in the cache, and needed by nobody but for pages 20 to 31.
        write(&mut d, 0..32);
        assert_eq!(anon_pages(&d), 32, "{policy}");
    }
}

#[test]
fn a_part_given_up_during_a_write_that_fails_leaves_single_pages() {
    for policy in BOTH {
        let mut d = slow(policy, &["64k=always"]);
        write(&mut d, 0..16);
        d.step(Op::PageOut(anon(0).0, 16)).unwrap();
        // One page at a time: the others stay in swap.
        d.step(Op::DropRange(anon(0).0, 1)).unwrap();
        write(&mut d, [3, 4]);
        // An odd number: it fails, and is not only called off.
        d.step(Op::Complete(1, false)).unwrap();
        assert_eq!((order(&d, 0), order(&d, 3), size(&d, 4, SizeCounter::Split)), (None, Some(0), 1), "{policy}");
        write(&mut d, 1..16);
        assert_eq!((anon_pages(&d), counter(&d, "write_errors")), (15, 16), "{policy}");
    }
}

#[test]
fn without_a_range_in_swap_a_folio_is_split_and_goes_in_pages() {
    for policy in BOTH {
        // No cluster of it is free: the first holds the header, the second ends early.
        let cfg = Config {
            swap: SwapConfig { pages: 40, ..config(policy, &["64k=always"]).swap.clone() },
            ..config(policy, &["64k=always"])
        };
        let mut d = driver_with(cfg, 64, 1000);
        write(&mut d, 0..48);
        d.step(Op::PageOut(anon(0).0, 48)).unwrap();
        assert_eq!((size(&d, 4, SizeCounter::SwpoutFallback), size(&d, 4, SizeCounter::Swpout)), (3, 0), "{policy}");
        assert_eq!((counter(&d, "pswpout"), anon_pages(&d)), (40, 8), "{policy}: what there was room for");
        assert_eq!(gauge(&d, "active_anon"), 8, "{policy}: the rest was activated");
    }
}

#[test]
fn two_mebibytes_in_swap_count_under_their_old_names_too() {
    let cfg = Config {
        swap: SwapConfig { pages: 1100, ..config(Policy::Mglru, &["2m=always"]).swap.clone() },
        ..config(Policy::Mglru, &["2m=always"])
    };
    let mut d = driver_with(cfg, 1024, 2000);
    write(&mut d, [0, 512]);
    d.step(Op::PageOut(anon(0).0, 1024)).unwrap();
    // One free cluster.
    assert_eq!((counter(&d, "thp_swpout"), counter(&d, "thp_swpout_fallback")), (1, 1));
    assert_eq!((counter(&d, "thp_split_page"), counter(&d, "pswpout")), (1, 1024));
}

#[test]
fn a_large_folio_comes_back_whole_where_that_is_wanted() {
    for policy in BOTH {
        let mut d = driver(policy, &["64k=always", "swap-in=on"], 64, 1000);
        write(&mut d, 0..32);
        d.step(Op::PageOut(anon(0).0, 32)).unwrap();
        write(&mut d, [5]);
        assert_eq!((order(&d, 0), order(&d, 15), size(&d, 4, SizeCounter::Swpin)), (Some(4), Some(4), 1), "{policy}");
        assert_eq!((counter(&d, "pswpin"), gauge(&d, "swap.current")), (16, 16), "{policy}: its slots are free");
        // Pages that are gone leave a range that is not whole.
        d.step(Op::DropRange(anon(31).0, 1)).unwrap();
        write(&mut d, [16]);
        assert_eq!((order(&d, 16), order(&d, 17)), (Some(0), None), "{policy}");
        // A device with a queue reads page by page.
        let cfg = Config {
            swap: SwapConfig { synchronous: false, ..config(policy, &["64k=always", "swap-in=on"]).swap.clone() },
            ..config(policy, &["64k=always", "swap-in=on"])
        };
        let mut d = driver_with(cfg, 64, 1000);
        write(&mut d, 0..16);
        d.step(Op::PageOut(anon(0).0, 16)).unwrap();
        write(&mut d, [5]);
        assert_eq!((size(&d, 4, SizeCounter::Swpin), order(&d, 5)), (0, Some(0)), "{policy}");
    }
}

#[test]
fn a_dropped_range_in_swap_frees_its_slots() {
    for policy in BOTH {
        let mut d = driver(policy, &["64k=always"], 64, 1000);
        write(&mut d, 0..64);
        d.step(Op::PageOut(anon(0).0, 64)).unwrap();
        d.step(Op::DropRange(anon(8).0, 20)).unwrap();
        assert_eq!((d.engine.swap_used_pages(), gauge(&d, "swap.current")), (44, 44), "{policy}");
        write(&mut d, 0..64);
        assert_eq!(d.engine.swap_used_pages(), 0, "{policy}: a device that answers at once keeps no copies");
    }
}

/// A page of a large folio is dropped while the folio is written; then a fault maps the rest of it
/// again. The slot of that page was counted twice when the mapping moved to another group: once
/// with its folio, once as a swap entry.
#[test]
fn regression_swap_of_a_folio_that_is_partly_dropped_and_mapped_again_moves_once() {
    for policy in [Policy::Lru, Policy::Mglru] {
        let cfg = Config {
            swap: SwapConfig { pages: 4000, synchronous: false, ..config(policy, &["64k=always"]).swap.clone() },
            ..config(policy, &["64k=always"])
        };
        let mut d = Driver::new(cfg, Device::Slow, FILES, 64, 60, u64::MAX);
        write(&mut d, [0]);
        assert_eq!(order(&d, 0), Some(4), "{policy:?}");
        d.step(Op::Reclaim(0, 1)).unwrap();
        assert_eq!(gauge(&d, "swap.current"), 16, "{policy:?}: its slots are taken, and it is being written");
        d.step(Op::DropRange(anon(3).0, 1)).unwrap();
        write(&mut d, [0]);
        assert_eq!(order(&d, 0), Some(4), "{policy:?}");
        assert_eq!(gauge(&d, "swap.current"), 16, "{policy:?}: nothing is free before the write has ended");
        let new = d.engine.add_memcg(MemcgId::ROOT, "/new", u64::MAX, u64::MAX).expect("a group");
        d.engine.move_mapping(&mut d.world, MappingId(1), new).expect("it moves");
        d.engine.validate().unwrap();
        let of_new = d.engine.memcg_gauges(new);
        let moved = of_new.iter().find(|g| g.name == "swap.current").expect("a gauge").value;
        assert_eq!((gauge(&d, "swap.current"), moved), (0, 16), "{policy:?}");
    }
}
