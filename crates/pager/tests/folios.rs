//! Folios of a region: what comes, goes and fails as one, and that bytes of neighbours are never
//! mixed up. Without userfaultfd the tests say that they skip.

use std::io::Read;
use std::os::fd::AsRawFd;

use refault_pager::store::{Fault, Faulty};
use refault_pager::uffd::{Call, CallFault, CallPlan};
use refault_pager::{Policy, PoolConfig, Region, RegionConfig, ThpDefrag, ThpSize};
use refault_testing::Rng;

use crate::common::made_for_system_calls;

const PAGE: usize = 4096;
const WORDS: usize = PAGE / 8;

/// A region whose folios have 16 pages, in memory for a third of it.
fn config() -> RegionConfig {
    let mut config = RegionConfig { policy: Policy::Lru, fault_threads: 1, ..RegionConfig::new(12 << 20, 4 << 20) };
    config.thp.sizes[4] = ThpSize::Always;
    config.thp.swap_in = true;
    config
}

/// Word of a page at a version. Version 0 is memory that was never touched.
fn word(page: usize, version: u64, i: usize) -> u64 {
    if version == 0 { 0 } else { (page as u64) << 40 | version << 16 | (i as u64 / 16) }
}

fn write(r: &mut Region, page: usize, version: u64) {
    let bytes = &mut r.as_mut_slice()[page * PAGE..][..PAGE];
    bytes.as_chunks_mut::<8>().0.iter_mut().enumerate().for_each(|(i, w)| *w = word(page, version, i).to_ne_bytes());
}

fn is(r: &Region, page: usize, version: u64) -> bool {
    let bytes = &r.as_slice()[page * PAGE..][..PAGE];
    bytes.as_chunks::<8>().0.iter().enumerate().all(|(i, w)| u64::from_ne_bytes(*w) == word(page, version, i))
}

fn bytes(pages: std::ops::Range<usize>) -> std::ops::Range<usize> {
    pages.start * PAGE..pages.end * PAGE
}

/// The page as a system call finds it, which reports a lost page as an error where a load would
/// raise a signal.
fn get(r: &Region, page: usize) -> Option<Vec<u64>> {
    let (mut from, to) = std::io::pipe().unwrap();
    // SAFETY: the kernel reads a page of the region, and says so if it cannot.
    let n = unsafe { libc::write(to.as_raw_fd(), r.as_ptr().add(page * PAGE).cast(), PAGE) };
    if n < 0 {
        return None;
    }
    let mut content = [0; PAGE];
    from.read_exact(&mut content).unwrap();
    Some(content.as_chunks::<8>().0.iter().map(|w| u64::from_ne_bytes(*w)).collect())
}

fn expected(page: usize, version: u64) -> Vec<u64> {
    (0..WORDS).map(|i| word(page, version, i)).collect()
}

#[test]
fn a_first_touch_fills_a_folio_and_one_call_moves_it_out() {
    let Some(mut r) = made_for_system_calls(Region::new(&config())) else { return };
    (32..48).for_each(|page| write(&mut r, page, 1));
    let s = r.stats();
    assert_eq!((s.counts.faults, s.counts.first_touches, r.pages_in_memory().unwrap()), (1, 1, 16));
    assert_eq!(r.page_out(bytes(32..48)).unwrap(), 16);
    r.validate().unwrap();
    let c = r.stats().counts;
    assert_eq!((c.moves, c.moved_out, c.swapped_out), (1, 16, 16));
    // Its frames are still there: all of it comes back by one touch.
    assert!((32..48).all(|page| is(&r, page, 1)));
    let c = r.stats().counts;
    assert_eq!((c.faults, c.rescued, c.swapped_in), (2, 1, 0));
    r.validate().unwrap();
}

#[test]
fn folios_come_back_whole_or_page_by_page_as_the_engine_orders() {
    for swap_in in [true, false] {
        let mut config = config();
        config.thp.swap_in = swap_in;
        config.policy = Policy::Mglru;
        let Some(mut r) = made_for_system_calls(Region::new(&config)) else { return };
        let pages = r.len() / PAGE;
        (0..pages).for_each(|page| write(&mut r, page, 1));
        r.validate().unwrap();
        let before = r.stats();
        assert!((0..pages).step_by(16).all(|page| is(&r, page, 1)));
        let (s, order) = (r.stats(), 4);
        let read = s.counts.swapped_in - before.counts.swapped_in;
        let whole = s.sizes.get(order, refault_pager::SizeCounter::Swpin);
        assert!(if swap_in { whole > 20 && read > 16 * whole / 2 } else { whole == 0 }, "{swap_in} {whole} {read}");
        assert!((0..pages).all(|page| is(&r, page, 1)));
        r.validate().unwrap();
    }
}

#[test]
fn a_part_of_a_folio_is_given_up_and_the_rest_stays_what_it_was() {
    for standby_percent in [0, 20] {
        let Some(mut r) = made_for_system_calls(Region::new(&RegionConfig { standby_percent, ..config() })) else {
            return;
        };
        for out in [false, true] {
            (0..32).for_each(|page| write(&mut r, page, 3));
            if out {
                r.page_out(bytes(0..32)).unwrap();
            }
            r.dont_need(bytes(5..9)).unwrap();
            r.dont_need(bytes(30..34)).unwrap();
            r.validate().unwrap();
            for page in 0..34 {
                let version = if (5..9).contains(&page) || page >= 30 { 0 } else { 3 };
                assert!(is(&r, page, version), "page {page}, out {out}, standby {standby_percent}");
            }
            r.cold(bytes(10..12)).unwrap();
            r.page_out(bytes(14..17)).unwrap();
            r.validate().unwrap();
            assert!((10..30).all(|page| is(&r, page, 3)), "out {out}, standby {standby_percent}");
        }
    }
}

#[test]
fn a_folio_of_which_a_page_is_held_stays_and_is_split() {
    let plan = CallPlan::new(|call, n| (call == Call::Move && n == 0).then_some(CallFault::Fails(libc::EBUSY)));
    let config = config();
    let store = Box::new(Faulty::new(|_, _| None));
    // For what the test itself moves out, too.
    let _entered = plan.enter();
    let Some(mut r) = made_for_system_calls(Region::with_store(&config, store)) else { return };
    (0..16).for_each(|page| write(&mut r, page, 1));
    assert_eq!(r.page_out(bytes(0..16)).unwrap(), 0, "one page is held, so all of them stay");
    let c = r.stats().counts;
    assert_eq!((c.busy, c.moved_out, c.swapped_out), (1, 15, 0));
    assert_eq!(r.stats().sizes.get(4, refault_pager::SizeCounter::Split), 1);
    assert!((0..16).all(|page| is(&r, page, 1)));
    r.validate().unwrap();
    // By now they are single pages.
    r.page_out(bytes(3..5)).unwrap();
    assert_eq!(r.stats().counts.swapped_out, 2);
    assert!((0..16).all(|page| is(&r, page, 1)));
    r.validate().unwrap();
}

#[test]
fn a_write_that_fails_in_the_middle_of_a_folio_loses_nothing() {
    let store = Box::new(Faulty::new(|n, write| (write && n == 7).then_some(Fault::WriteFails)));
    let Some(mut r) = made_for_system_calls(Region::with_store(&config(), store)) else { return };
    (0..16).for_each(|page| write(&mut r, page, 1));
    r.page_out(bytes(0..16)).unwrap();
    let c = r.stats().counts;
    assert_eq!((c.write_errors, c.swapped_out, c.poisoned), (1, 0, 0));
    r.validate().unwrap();
    assert!((0..16).all(|page| is(&r, page, 1)));
    assert_eq!(r.page_out(bytes(0..16)).unwrap(), 16, "the next write goes well");
    r.validate().unwrap();
    assert!((0..16).all(|page| is(&r, page, 1)));
}

#[test]
fn a_page_that_cannot_be_read_is_lost_and_its_folio_is_not() {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    static READS: AtomicU64 = AtomicU64::new(0);
    static ALL_FAIL: AtomicBool = AtomicBool::new(false);
    // The fourth page of the first folio that is read fails, and again when it is tried once more.
    let store = Box::new(Faulty::new(|_, write| {
        let is_one = !write && matches!(READS.fetch_add(u64::from(!write), Ordering::Relaxed), 3 | 4);
        (is_one || !write && ALL_FAIL.load(Ordering::Relaxed)).then_some(Fault::ReadFails)
    }));
    let Some(mut r) = made_for_system_calls(Region::with_store(&config(), store)) else { return };
    let pages = r.len() / PAGE;
    (0..pages).for_each(|page| write(&mut r, page, 1));
    // Room, so that folios come in whole.
    let most = pages - 200;
    r.dont_need(bytes(most..pages)).unwrap();
    let pages = most;
    let before = r.stats().counts.swapped_in;
    let mut lost = Vec::new();
    for page in 0..pages {
        let was = r.stats().counts.read_errors;
        if get(&r, page).is_none_or(|c| c != expected(page, 1)) {
            lost.push(page);
        }
        if (was, r.stats().counts.read_errors) == (0, 1) {
            // Its folio did not come in. The fourth page is read by itself now, and cannot be.
            ALL_FAIL.store(true, Ordering::Relaxed);
            assert_eq!(get(&r, page / 16 * 16 + 3), None);
            ALL_FAIL.store(false, Ordering::Relaxed);
        }
    }
    let s = r.stats();
    assert!(s.counts.swapped_in > before, "some had to be read");
    assert_eq!((lost.len(), s.counts.poisoned, s.counts.read_errors), (1, 1, 2), "{lost:?}");
    r.validate().unwrap();
    assert_eq!(get(&r, lost[0]), None, "an error, and no zeros");
    // The rest of its folio goes out and comes back without it.
    let first = lost[0] / 16 * 16;
    r.page_out(bytes(first..first + 16)).unwrap();
    (0..pages).filter(|p| *p / 16 != first / 16).for_each(|page| write(&mut r, page, 2));
    r.validate().unwrap();
    for page in (first..first + 16).filter(|&p| p != lost[0]) {
        assert_eq!(get(&r, page), Some(expected(page, 1)), "page {page}");
    }
    assert_eq!(get(&r, lost[0]), None);
    r.dont_need(bytes(lost[0]..lost[0] + 1)).unwrap();
    assert_eq!(get(&r, lost[0]), Some(expected(0, 0)), "given up, it can be used again");
    r.validate().unwrap();
}

/// It was lost whichever page of its folio was touched.
#[test]
fn a_page_that_cannot_be_read_is_not_lost_for_a_touch_of_its_neighbour() {
    // The eighth page of the first folio that comes in cannot be read, and not when it is tried
    // once more; later, by itself, it can.
    let mut n = 0;
    let store = Box::new(Faulty::new(move |_, write| {
        n += u64::from(!write);
        (!write && matches!(n, 8 | 9)).then_some(Fault::ReadFails)
    }));
    let Some(mut r) = made_for_system_calls(Region::with_store(&config(), store)) else { return };
    let pages = r.len() / PAGE;
    (0..pages / 2).for_each(|page| write(&mut r, page, 1));
    r.page_out(bytes(0..pages / 2)).unwrap();
    // Pages that were written give up their memory, and then there is room for a folio.
    (pages / 2..pages / 2 + 300).for_each(|page| write(&mut r, page, 1));
    r.dont_need(bytes(pages / 2..pages)).unwrap();
    assert!(is(&r, 2, 1));
    let counts = r.stats().counts;
    assert_eq!((counts.swapped_in, counts.read_errors, counts.poisoned), (16, 1, 0), "15 of the folio, and one alone");
    r.validate().unwrap();
    let lost = (0..16).find(|&page| get(&r, page).is_none_or(|c| c != expected(page, 1)));
    assert_eq!((lost, r.stats().counts.poisoned), (None, 0), "each can be read by itself");
    r.validate().unwrap();
}

#[test]
fn a_folio_that_vanishes_while_it_is_moved_is_an_error() {
    let plan = CallPlan::new(|call, n| (call == Call::Move && n == 0).then_some(CallFault::Loses(libc::EIO)));
    let store = Box::new(Faulty::new(|_, _| None));
    let _entered = plan.enter();
    let Some(mut r) = made_for_system_calls(Region::with_store(&config(), store)) else { return };
    (0..32).for_each(|page| write(&mut r, page, 1));
    r.page_out(bytes(0..16)).unwrap();
    r.validate().unwrap();
    assert!((0..16).all(|page| get(&r, page).is_none()));
    assert!((16..32).all(|page| get(&r, page) == Some(expected(page, 1))));
    assert_eq!(r.stats().counts.poisoned, 16);
}

/// One operation on the region and on what it should hold.
fn operate(r: &mut Region, versions: &mut [u64], rng: &mut Rng, seed: u64) {
    let first = rng.below(versions.len());
    let some = first..(first + 1 + rng.below(40)).min(versions.len());
    match rng.below(20) {
        0..8 => some.for_each(|page| {
            versions[page] += 1;
            write(r, page, versions[page]);
        }),
        8..15 => some.for_each(|page| assert!(is(r, page, versions[page]), "seed {seed}: page {page}")),
        15 => {
            r.dont_need(bytes(some.clone())).unwrap();
            versions[some].fill(0);
        }
        16 => _ = r.page_out(bytes(some)).unwrap(),
        17 => r.cold(bytes(some)).unwrap(),
        18 => _ = r.will_need(bytes(some)).unwrap(),
        _ => {
            let mut limits = r.limits();
            limits.memory_max = (4 + rng.below(3)) << 20;
            limits.memory_high = if rng.below(4) == 0 { limits.memory_max - (256 << 10) } else { usize::MAX };
            // It may be too much to ask; then nothing has changed.
            _ = r.set_limits(&limits);
        }
    }
}

#[test]
fn whatever_happens_every_page_is_its_own() {
    for seed in 0..6u64 {
        let mut config = RegionConfig {
            policy: if seed % 2 == 0 { Policy::Lru } else { Policy::Mglru },
            standby_percent: if seed % 3 == 0 { 10 } else { 0 },
            pool: Some(PoolConfig { max_bytes: 2 << 20, ..config().pool.unwrap() }),
            ..config()
        };
        config.bytes = 9 << 20;
        config.thp.swap_in = seed % 3 != 1;
        config.thp.sizes[2] = ThpSize::Always;
        config.thp.sizes[6] = ThpSize::Always;
        // Moves and writes fail now and then, and nothing is lost by that.
        let plan = CallPlan::new(move |call, n| {
            (call == Call::Move && (n + seed).is_multiple_of(23)).then_some(CallFault::Fails(libc::EBUSY))
        });
        let store = Box::new(Faulty::new(move |n, write| (write && n % 97 == seed).then_some(Fault::WriteFails)));
        let _entered = plan.enter();
        let Some(mut r) = made_for_system_calls(Region::with_store(&config, store)) else { return };
        let (mut rng, mut versions) = (Rng(seed), vec![0; r.len() / PAGE]);
        for _ in 0..300 {
            operate(&mut r, &mut versions, &mut rng, seed);
            if let Err(e) = r.validate() {
                panic!("seed {seed}: {e}");
            }
        }
        (0..versions.len()).for_each(|page| assert!(is(&r, page, versions[page]), "seed {seed}: page {page}"));
        let s = r.stats();
        assert_eq!(s.counts.poisoned, 0, "seed {seed}");
        let whole: u64 = [2, 4, 6].map(|o| s.sizes.get(o, refault_pager::SizeCounter::Swpout)).iter().sum();
        assert!(whole > 10, "seed {seed}: {whole} folios went out whole");
        eprintln!("seed {seed}: {:?}", s.counts);
    }
}

/// Nothing that is ordered out is free before it is written, so the reclaim of a single fault went
/// on until nearly all memory was to leave.
#[test]
fn regression_a_fault_does_not_order_all_memory_out() {
    for policy in [Policy::Lru, Policy::Mglru] {
        let mut config = RegionConfig { policy, ..config() };
        // A thread that faults reclaims for its folio.
        config.thp.defrag = ThpDefrag::Always;
        let Some(mut r) = made_for_system_calls(Region::new(&config)) else { return };
        let (pages, mut before, mut in_place) = (r.len() / PAGE, 0, 0);
        let mut moved = Vec::with_capacity(pages);
        for page in 0..pages {
            write(&mut r, page, 1);
            let moved_out = r.stats().counts.moved_out;
            moved.push(moved_out - before);
            before = moved_out;
            in_place = in_place.max(r.pages_in_memory().unwrap());
        }
        // One touch may have waited for a processor, while kswapd went on.
        moved.sort_unstable();
        let most = moved[pages - 2];
        assert!(most < in_place / 2, "{policy:?}: {most} of {in_place} pages left for one touch");
        assert_eq!(r.stats().counts.poisoned, 0, "{policy:?}");
        r.validate().unwrap();
    }
}

/// Multi-gen LRU leaves anonymous memory alone while fewer than 64 slots are free. With fewer pages
/// than that in place, and all else out of memory, a page was lost for lack of room, although what
/// was written took up memory.
#[test]
fn regression_with_all_but_a_few_pages_out_of_memory_there_is_room() {
    let mut config = RegionConfig { policy: Policy::Mglru, ..config() };
    config.thp.defrag = ThpDefrag::Always;
    let Some(mut r) = made_for_system_calls(Region::new(&config)) else { return };
    let pages = r.len() / PAGE;
    (0..pages).for_each(|page| write(&mut r, page, 1));
    let lost = (0..pages).find(|&page| get(&r, page) != Some(expected(page, 1)));
    assert_eq!((lost, r.stats().counts.poisoned), (None, 0));
    r.validate().unwrap();
}

#[test]
fn sizes_that_do_not_fit_a_window_are_refused() {
    let mut config = config();
    config.thp.sizes[7] = ThpSize::Always;
    let error = Region::new(&config).err().map(|e| e.to_string()).expect("128 pages are too many");
    assert!(error.contains("256 KiB"), "{error}");
}
