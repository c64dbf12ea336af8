//! Advice and limits of a region that is in use. Without userfaultfd the tests say that they skip.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use refault_pager::store::{Codec, Fault, Faulty};
use refault_pager::uffd::{Call, CallFault, CallPlan};
use refault_pager::{Error, FaultMode, Limits, Policy, PoolConfig, Region, RegionConfig};

use crate::common::made;

const PAGE: usize = 4096;
const MIB: usize = 1 << 20;

fn region(config: &RegionConfig) -> Option<Region> {
    made(Region::new(config))
}

fn directory() -> Option<std::path::PathBuf> {
    Some(env!("CARGO_MANIFEST_DIR").into())
}

/// Every policy is asked: what is inactive, what is active and what is a generation differs. And
/// faults that their own threads serve.
fn configs(bytes: usize, memory_max: usize) -> [RegionConfig; 3] {
    let modes =
        [(Policy::Lru, FaultMode::Threads), (Policy::Mglru, FaultMode::Threads), (Policy::Mglru, FaultMode::Signal)];
    modes.map(|(policy, fault_mode)| RegionConfig { policy, fault_mode, ..RegionConfig::new(bytes, memory_max) })
}

/// Writes the content of page `i`; noise does not get smaller.
fn fill(region: &mut Region, pages: Range<usize>, seed: u64) {
    for i in pages {
        let page = &mut region.as_mut_slice()[i * PAGE..][..PAGE];
        page.iter_mut().enumerate().for_each(|(at, b)| *b = byte(i, at, seed));
    }
}

fn byte(page: usize, at: usize, seed: u64) -> u8 {
    match seed.is_multiple_of(2) {
        true => (page as u64 * 7 + at as u64 / 64 + seed) as u8 | 1,
        false => {
            let x = (page as u64) << 32 | at as u64 ^ seed << 13;
            (x.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as u8 | 1
        }
    }
}

/// How many of these pages the page tables have.
fn in_place(region: &Region, pages: Range<usize>) -> usize {
    let map = refault_pager::mem::Pagemap::open().unwrap();
    let there = map.populated(region.as_ptr() as usize + pages.start * PAGE, pages.len()).unwrap();
    there.iter().filter(|&&there| there).count()
}

fn check(region: &Region, pages: Range<usize>, seed: u64) {
    for i in pages {
        let page = &region.as_slice()[i * PAGE..][..PAGE];
        for (at, &b) in page.iter().enumerate() {
            assert_eq!(b, byte(i, at, seed), "page {i}, byte {at}");
        }
    }
}

fn is_zero(region: &Region, pages: Range<usize>) -> bool {
    region.as_slice()[pages.start * PAGE..pages.end * PAGE].iter().all(|&b| b == 0)
}

#[test]
fn what_is_not_needed_reads_as_zeros_and_takes_nothing() {
    for config in configs(24 * MIB, 8 * MIB) {
        let Some(mut r) = region(&config) else { return };
        let pages = r.len() / PAGE;
        fill(&mut r, 0..pages, 2);
        // Most are out of memory by now, the last are in place.
        r.dont_need(PAGE..r.len()).unwrap();
        r.validate().unwrap();
        let s = r.stats();
        assert!(s.swap_pages <= 1 && s.area.pages <= 1, "{s:?}");
        assert!(r.pages_in_memory().unwrap() <= 40, "{}", r.pages_in_memory().unwrap());
        assert!(is_zero(&r, 1..pages));
        check(&r, 0..1, 2);
        fill(&mut r, 1..pages, 4);
        check(&r, 1..pages, 4);
        r.free(0..r.len()).unwrap();
        assert!(is_zero(&r, 0..pages));
        r.validate().unwrap();
    }
}

/// Pages are given up while others of the region, and the same ones, go out and come back.
#[test]
fn pages_are_given_up_while_they_move() {
    for config in configs(24 * MIB, 8 * MIB) {
        let config = RegionConfig { swap_directory: directory(), standby_percent: 6, ..config };
        let Some(r) = region(&config) else { return };
        let (half, stop) = (r.len() / 2, AtomicBool::new(false));
        let base = r.as_ptr() as usize;
        std::thread::scope(|s| {
            let stop = &stop;
            s.spawn(move || {
                // The upper half is written and checked; nobody gives it up.
                let mut version = 0u64;
                while !stop.load(Ordering::Relaxed) {
                    for at in (half..2 * half).step_by(PAGE) {
                        let word = (base + at) as *mut u64;
                        // SAFETY: inside the region, which lives longer than this thread; nobody
                        // else writes here.
                        unsafe {
                            assert_eq!(word.read_volatile(), if version == 0 { 0 } else { version + at as u64 });
                            word.write_volatile(version + 1 + at as u64);
                        }
                    }
                    version += 1;
                }
            });
            s.spawn(move || {
                // The lower half holds what it held, or zeros.
                while !stop.load(Ordering::Relaxed) {
                    for at in (0..half).step_by(PAGE) {
                        let word = (base + at) as *mut u64;
                        // SAFETY: as above.
                        unsafe {
                            let found = word.read_volatile();
                            assert!(found == 0 || found == at as u64 + 1, "page {}: {found}", at / PAGE);
                            word.write_volatile(at as u64 + 1);
                        }
                    }
                }
            });
            let end = Instant::now() + Duration::from_millis(1500);
            let mut n = 0;
            while Instant::now() < end {
                n += 1;
                let first = (n * 37) % (half / PAGE - 100) * PAGE;
                // SAFETY: nobody refers to the lower half, and who reads it expects zeros.
                unsafe { r.dont_need_shared(first..first + n % 100 * PAGE) }.unwrap();
                if n % 64 == 0 {
                    r.validate().unwrap();
                }
            }
            stop.store(true, Ordering::Relaxed);
            eprintln!("{n} ranges, {} pages given up", r.stats().counts.given_up);
        });
        let s = r.stats();
        assert!(s.counts.given_up > 100 && s.counts.poisoned == 0, "{s:?}");
        r.validate().unwrap();
    }
}

#[test]
fn a_page_that_was_lost_can_be_given_up_and_used_again() {
    let plan = CallPlan::new(|call, n| (call == Call::Move && n == 3).then_some(CallFault::Loses(libc::EIO)));
    let config = RegionConfig { fault_threads: 1, ..RegionConfig::new(16 * MIB, 4 * MIB) };
    let Some(mut r) = made(Region::with_faults(&config, Box::new(Faulty::new(|_, _| None)), Some(plan))) else {
        return;
    };
    let pages = r.len() / PAGE;
    fill(&mut r, 0..pages, 2);
    assert!(r.stats().counts.poisoned > 0);
    r.dont_need(0..r.len()).unwrap();
    assert!(is_zero(&r, 0..pages));
    fill(&mut r, 0..pages, 4);
    check(&r, 0..pages, 4);
    r.validate().unwrap();
}

#[test]
fn what_is_needed_soon_comes_in_without_a_fault() {
    for config in configs(24 * MIB, 12 * MIB) {
        let Some(mut r) = region(&config) else { return };
        let pages = r.len() / PAGE;
        fill(&mut r, 0..pages, 2);
        let before = r.stats().counts;
        // As far as there is room: writes of the evictor may still hold some.
        let came = r.will_need(0..2 * MIB).unwrap();
        assert!(came > 384, "{came}");
        assert!(r.stats().counts.swapped_in > before.swapped_in);
        let faults = r.stats().counts.faults;
        check(&r, 0..512, 2);
        let faults = r.stats().counts.faults - faults;
        assert!(faults <= 2 * (512 - came), "{faults} after {came} came");
        // Never more than half of what fits, and nothing is lost for it.
        let came = r.will_need(0..r.len()).unwrap();
        assert!(came < 3072, "{came}");
        check(&r, 0..pages, 2);
        r.validate().unwrap();
    }
}

/// A page that is being written comes in when that is done, however long it takes.
#[test]
fn what_is_needed_soon_waits_for_pages_on_their_way_out() {
    let (slow, writing) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (slow_too, writing_too) = (slow.clone(), writing.clone());
    let store = Faulty::new(move |_, write| {
        (write && slow_too.load(Ordering::Relaxed)).then(|| {
            writing_too.store(true, Ordering::Relaxed);
            Fault::Stalls(20)
        })
    });
    let config = RegionConfig::new(16 * MIB, 12 * MIB);
    let Some(mut r) = made(Region::with_store(&config, Box::new(store))) else { return };
    fill(&mut r, 0..1000, 2);
    slow.store(true, Ordering::Relaxed);
    std::thread::scope(|s| {
        s.spawn(|| r.page_out(0..8 * PAGE).unwrap());
        while !writing.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        assert_eq!(r.will_need(0..8 * PAGE).unwrap(), 8);
    });
    slow.store(false, Ordering::Relaxed);
    check(&r, 0..1000, 2);
    r.validate().unwrap();
}

#[test]
fn pages_that_were_never_touched_come_if_asked_for() {
    let Some(r) = region(&RegionConfig::new(8 * MIB, 8 * MIB)) else { return };
    assert_eq!((r.will_need(0..MIB).unwrap(), r.populate(0..MIB).unwrap()), (0, 256));
    assert!(is_zero(&r, 0..256));
    assert_eq!(r.stats().counts.faults, 0);
    assert_eq!(r.populate(10..10).unwrap(), 0);
}

#[test]
fn pages_go_out_when_they_are_told_to_and_come_back() {
    for config in configs(16 * MIB, 16 * MIB) {
        let Some(mut r) = region(&config) else { return };
        fill(&mut r, 0..2048, 2);
        let out = r.page_out(0..4 * MIB).unwrap();
        assert!(out > 1000, "{out}");
        // The evictor may still be writing some of them.
        assert!(in_place(&r, 0..1024) as u64 <= 1024 - out);
        check(&r, 0..2048, 2);
        r.validate().unwrap();
    }
}

/// The half that was called cold goes first of two that were used alike.
#[test]
fn what_is_cold_goes_first() {
    // With two lists it is the active ones that are made inactive, and nothing of this is active.
    let config = RegionConfig { policy: Policy::Mglru, ..RegionConfig::new(24 * MIB, 12 * MIB) };
    let Some(mut r) = region(&config) else { return };
    fill(&mut r, 0..1800, 2);
    r.cold(900 * PAGE..1800 * PAGE).unwrap();
    fill(&mut r, 1800..2800, 2);
    let (warm, cold) = (in_place(&r, 0..900), in_place(&r, 900..1800));
    assert!(warm > cold + 100, "{warm} warm, {cold} cold pages are in place");
    check(&r, 0..2800, 2);
}

#[test]
fn a_lower_limit_evicts_and_a_higher_one_gives_room() {
    for config in configs(24 * MIB, 20 * MIB) {
        let config = RegionConfig { swap_directory: directory(), ..config };
        let Some(mut r) = region(&config) else { return };
        fill(&mut r, 0..4500, 3);
        let first = r.limits();
        assert_eq!((first.memory_max, first.zswap_max), (20 * MIB, 10 * MIB));
        let lower = Limits { memory_max: 8 * MIB, zswap_max: 2 * MIB, ..first };
        r.set_limits(&lower).unwrap();
        assert_eq!(r.limits(), lower);
        let s = r.stats();
        let seen = r.pages_in_memory().unwrap() + s.overhead_pages;
        assert!(s.memory_pages <= 2048 && seen <= 2048 && s.max_pages == 2048, "{seen} pages: {s:?}");
        r.validate().unwrap();
        check(&r, 0..4500, 3);
        assert!(r.stats().memory_pages <= 2048);
        r.set_limits(&first).unwrap();
        check(&r, 0..4500, 3);
        let in_memory = r.pages_in_memory().unwrap();
        assert!(in_memory > 2500, "there is room again: {in_memory}");
        r.validate().unwrap();
    }
}

/// Noise, for which there is no room but memory: the limit cannot be lowered, says so, and is as it
/// was.
#[test]
fn a_limit_that_cannot_be_met_is_an_error_and_nothing_is_lost() {
    for config in configs(16 * MIB, 24 * MIB) {
        let pool = Some(PoolConfig { codec: Codec::Lz4, max_bytes: MIB });
        let Some(mut r) = region(&RegionConfig { pool, ..config }) else { return };
        fill(&mut r, 0..4000, 3);
        let first = r.limits();
        let begin = Instant::now();
        let result = r.set_limits(&Limits { memory_max: 8 * MIB, ..first });
        assert!(matches!(&result, Err(Error::Limit(why)) if why.contains("cannot leave memory")), "{result:?}");
        assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
        assert_eq!(r.limits(), first);
        check(&r, 0..4000, 3);
        assert_eq!((r.stats().counts.poisoned, r.stats().counts.oom), (0, 0));
        r.validate().unwrap();
    }
}

#[test]
fn limits_that_make_no_sense_are_errors() {
    let Some(mut r) = region(&RegionConfig::new(16 * MIB, 16 * MIB)) else { return };
    let first = r.limits();
    for wrong in [
        Limits { memory_max: 1, ..first },
        Limits { swap_max: first.swap_max + PAGE, ..first },
        Limits { zswap_max: first.zswap_max + 1, ..first },
        Limits { zswap_max: 0, ..first },
        Limits { memory_max: 8 * MIB, ..first },
        Limits { memory_max: usize::MAX, ..first },
    ] {
        assert!(matches!(r.set_limits(&wrong), Err(Error::Config(_))), "{wrong:?}");
        assert_eq!(r.limits(), first);
    }
    for wrong in [0..r.len() + 1, usize::MAX - 1..usize::MAX] {
        assert!(matches!(r.will_need(wrong.clone()), Err(Error::Range(_))), "{wrong:?}");
        assert!(matches!(r.dont_need(wrong.clone()), Err(Error::Range(_))), "{wrong:?}");
    }
    assert!(matches!(r.dont_need(0..100), Err(Error::Range(_))));
}

/// A limit of swap that is lowered: nothing more goes out, what is out stays.
#[test]
fn swap_that_is_taken_away_holds_what_it_has() {
    let Some(mut r) = region(&RegionConfig::new(24 * MIB, 16 * MIB)) else { return };
    // All of it fits.
    fill(&mut r, 0..2500, 2);
    let out = r.page_out(0..2 * MIB).unwrap();
    let swap = r.stats().swap_pages;
    assert!(out > 400 && swap > 400);
    r.set_limits(&Limits { swap_max: 0, ..r.limits() }).unwrap();
    r.page_out(4 * MIB..6 * MIB).unwrap();
    assert!(r.stats().swap_pages <= swap);
    check(&r, 1000..1500, 2);
    check(&r, 0..500, 2);
}

/// Beyond `memory.high` memory is reclaimed although there is room up to `memory.max`.
#[test]
fn high_keeps_memory_low_where_pages_can_go() {
    for config in configs(24 * MIB, 20 * MIB) {
        let config = RegionConfig { memory_high: 10 * MIB, ..config };
        let Some(mut r) = region(&config) else { return };
        let begin = Instant::now();
        fill(&mut r, 0..5000, 2);
        check(&r, 0..5000, 2);
        let s = r.stats();
        eprintln!(
            "{:?}: peak {} pages, {} throttled for {} ms, {:?}",
            begin.elapsed(),
            s.peak_pages,
            s.counts.throttled,
            s.counts.throttled_ns / 1_000_000,
            s.events
        );
        assert!(s.events.high > 0);
        assert!((2000..3500).contains(&s.peak_pages), "high is 2560 pages, the peak {}", s.peak_pages);
        r.validate().unwrap();
        // Without it the rest of the memory is used.
        r.set_limits(&Limits { memory_high: usize::MAX, ..r.limits() }).unwrap();
        check(&r, 0..5000, 2);
        assert!(r.stats().peak_pages > 3500, "{}", r.stats().peak_pages);
        // A charge beyond the old limit is held against nobody: pages come in, with a limit and
        // without.
        assert!(r.will_need(0..MIB).unwrap() > 200);
        r.set_limits(&Limits { memory_high: 10 * MIB, ..r.limits() }).unwrap();
        // The region is being made smaller at that time, so some may be gone again.
        let came = r.will_need(8 * MIB..9 * MIB).unwrap();
        assert!(came >= 64, "{came}");
    }
}

/// Where nothing can go, who faults sleeps, the longer the further it is beyond; nobody else does.
#[test]
fn who_goes_beyond_high_sleeps_and_others_do_not() {
    [FaultMode::Threads, FaultMode::Signal].into_iter().for_each(beyond_high);
}

fn beyond_high(fault_mode: FaultMode) {
    let pool = Some(PoolConfig { codec: Codec::Lz4, max_bytes: MIB });
    let config = RegionConfig { pool, memory_high: 8 * MIB, fault_mode, ..RegionConfig::new(16 * MIB, 24 * MIB) };
    let Some(r) = region(&config) else { return };
    let base = r.as_ptr() as usize;
    let ended = AtomicBool::new(false);
    std::thread::scope(|s| {
        let (r, ended) = (&r, &ended);
        s.spawn(move || {
            for at in (0..2300 * PAGE).step_by(8) {
                // SAFETY: inside the region; nobody else writes it.
                unsafe {
                    ((base + at) as *mut u64).write_volatile((at as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
                };
            }
            ended.store(true, Ordering::Relaxed);
        });
        while r.stats().counts.throttled == 0 {
            assert!(!ended.load(Ordering::Relaxed), "it was not held up: {:?}", r.stats());
            std::thread::sleep(Duration::from_millis(1));
        }
        // Another thread reads what is in place, meanwhile.
        let map = refault_pager::mem::Pagemap::open().unwrap();
        let there = map.populated(base, 1500).unwrap().iter().rposition(|&there| there).unwrap();
        let begin = Instant::now();
        // SAFETY: as above.
        let found = unsafe { ((base + there * PAGE) as *const u64).read_volatile() };
        let waited = begin.elapsed();
        assert_eq!(found, ((there * PAGE) as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let (before, begin) = (r.stats().counts.throttled_ns, Instant::now());
        std::thread::sleep(Duration::from_millis(300));
        let slept = r.stats().counts.throttled_ns - before;
        eprintln!("in {:?} ordered to sleep for {} ms", begin.elapsed(), slept / 1_000_000);
        // A limit that is taken away lets all go on at once.
        r.set_limits(&Limits { memory_high: usize::MAX, ..r.limits() }).unwrap();
        assert!(waited < Duration::from_millis(300), "it waited for {waited:?}");
        let begin = Instant::now();
        while !ended.load(Ordering::Relaxed) {
            assert!(begin.elapsed() < Duration::from_secs(20), "it sleeps on: {:?}", r.stats());
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let s = r.stats();
    assert!(s.counts.throttled > 0 && s.counts.poisoned == 0, "{s:?}");
    r.validate().unwrap();
}
