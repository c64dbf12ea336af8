//! Every byte, under heavy eviction: threads that write versioned patterns into the same pages and
//! check them before they write again.
//!
//! Seconds by default; `REFAULT_STRESS_SECONDS` makes each case as long as one likes. Without
//! userfaultfd the tests say that they skip.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use refault_pager::store::Codec;
use refault_pager::{FaultMode, Policy, PoolConfig, Region, RegionConfig, ThpConfig, ThpSize};
use refault_testing::{Rng, stress_seconds};

use crate::common::made;

const PAGE: usize = 4096;
const THREADS: usize = 4;
/// The part of every page that one thread writes.
const PART: usize = PAGE / THREADS;

fn seconds() -> f64 {
    stress_seconds(0.6, 1.5)
}

/// Content of a part of a page at a version; version 0 is untouched memory. Some pages are noise,
/// some compress well, some repeat one word.
fn pattern(page: u64, part: u64, version: u32, out: &mut [u64; PART / 8]) {
    if version == 0 {
        return out.fill(0);
    }
    let mut rng = Rng(page << 34 ^ part << 32 ^ u64::from(version));
    match page % 4 {
        0 => out.fill(u64::from(version)),
        1 => out.iter_mut().for_each(|w| *w = rng.next()),
        _ => {
            let word = rng.next();
            out.iter_mut().enumerate().for_each(|(i, w)| *w = word.wrapping_add(i as u64 / 16));
        }
    }
}

/// A place of the region: a pointer that threads may have.
#[derive(Clone, Copy)]
struct Base(*mut u64);
// SAFETY: each thread reads and writes only its own part of every page.
unsafe impl Send for Base {}

/// One thread: until `stop`, checks a part of a page and writes the next version. Most pages are
/// chosen from a hot set.
fn work(base: Base, pages: u64, thread: u64, seed: u64, stop: &AtomicBool, ops: &AtomicU64) {
    let base = { base }.0;
    let mut versions = vec![0u32; pages as usize];
    let mut expected = [0; PART / 8];
    let mut rng = Rng(seed);
    let mut check = |page: u64, version: u32| {
        pattern(page, thread, version, &mut expected);
        let at = page as usize * PAGE / 8 + thread as usize * PART / 8;
        for (i, &word) in expected.iter().enumerate() {
            // SAFETY: inside the region, in the part of this thread.
            let found = unsafe { std::ptr::read_volatile(base.add(at + i)) };
            assert_eq!(found, word, "page {page}, part {thread}, version {version}, word {i}");
        }
    };
    let mut next = [0; PART / 8];
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..64 {
            let page = match rng.below(4) {
                0 => rng.below(pages as usize),
                1 => rng.below(pages as usize / 4),
                _ => rng.below(pages as usize / 16),
            } as u64;
            let version = &mut versions[page as usize];
            check(page, *version);
            if rng.below(3) > 0 {
                *version += 1;
                pattern(page, thread, *version, &mut next);
                let at = page as usize * PAGE / 8 + thread as usize * PART / 8;
                // SAFETY: as above.
                next.iter().enumerate().for_each(|(i, &w)| unsafe { std::ptr::write_volatile(base.add(at + i), w) });
            }
        }
        ops.fetch_add(64, Ordering::Relaxed);
    }
    (0..pages).for_each(|page| check(page, versions[page as usize]));
}

fn stress(name: &str, config: &RegionConfig) {
    stress_by(THREADS, name, config);
}

fn stress_by(threads: usize, name: &str, config: &RegionConfig) {
    let Some(region) = made(Region::new(config)) else { return };
    let pages = (config.bytes / PAGE) as u64;
    let (stop, ops) = (AtomicBool::new(false), AtomicU64::new(0));
    let base = Base(region.as_ptr().cast());
    let end = Instant::now() + Duration::from_secs_f64(seconds());
    let mut most = 0;
    std::thread::scope(|s| {
        for t in 0..threads as u64 {
            let (stop, ops) = (&stop, &ops);
            s.spawn(move || work(base, pages, t, t + 1, stop, ops));
        }
        while Instant::now() < end {
            std::thread::sleep(Duration::from_millis(50));
            most = most.max(region.pages_in_use().unwrap());
            if let Err(e) = region.validate() {
                eprintln!("{name}: {e}");
                std::process::abort();
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    let s = region.stats();
    assert!(threads > 1 || s.counts.frames_reused > 100, "{name}: {:?}", s.counts);
    eprintln!(
        "{name}: {} operations, {} evictions, peak {} of {} pages (seen {most}), {:?} {:?} {:?}",
        ops.load(Ordering::Relaxed),
        s.counts.swapped_out,
        s.peak_pages,
        s.max_pages,
        s.counts,
        s.area,
        s.sizes
    );
    assert!(s.counts.swapped_out > 1000, "{name}: there was eviction");
    assert_eq!((s.counts.poisoned, s.area.corrupt, s.counts.inconsistent), (0, 0, 0), "{name}");
    assert!(s.peak_pages <= s.max_pages, "{name}: {} of {} pages", s.peak_pages, s.max_pages);
    let bound = s.max_pages + seen_twice(threads, config);
    assert!(most <= bound, "{name}: {most} of {} pages were in use, at most {bound}", s.max_pages);
}

/// Pages that a look may count twice.
///
/// One thread at a time moves pages out, a window of them without the lock: they are seen where
/// they were and where they go. And the frames of places whose content is of no use are counted as
/// the pager's own, at most a batch and a window of each thread that serves, and are seen in the
/// staging places until they are discarded. Discarding is done without the lock: a thread that lost
/// its processor before the call keeps them there, and each thread that evicts can be such a
/// thread. Beside other work 68 were seen; with 5 ms of sleep before that call, 110.
fn seen_twice(threads: usize, config: &RegionConfig) -> u64 {
    const WINDOW: usize = 64;
    const DISCARD_BATCH: usize = 32;
    let evict = 1 + if config.fault_mode == FaultMode::Signal { threads } else { config.fault_threads };
    (WINDOW + evict * (WINDOW + DISCARD_BATCH)) as u64
}

fn config(policy: Policy) -> RegionConfig {
    RegionConfig { policy, fault_threads: 2, ..RegionConfig::new(48 << 20, 16 << 20) }
}

/// A thread that faults serves its fault.
fn by_signal(config: RegionConfig) -> RegionConfig {
    RegionConfig { fault_mode: FaultMode::Signal, ..config }
}

fn directory() -> Option<std::path::PathBuf> {
    Some(env!("CARGO_MANIFEST_DIR").into())
}

#[test]
fn pool_of_lz4() {
    let mut c = config(Policy::Mglru);
    // A quarter is noise, which takes all its size.
    c.bytes = 28 << 20;
    stress("pool of lz4", &c);
}

#[test]
fn pool_of_zstd_and_two_lists() {
    let mut c = config(Policy::Lru);
    c.bytes = 28 << 20;
    c.pool = Some(PoolConfig { codec: Codec::Zstd, max_bytes: 10 << 20 });
    stress("pool of zstd, two lists", &c);
}

#[test]
fn file_alone() {
    let c = RegionConfig { pool: None, swap_directory: directory(), ..config(Policy::Mglru) };
    stress("file", &c);
}

#[test]
fn pool_before_file() {
    let pool = Some(PoolConfig { codec: Codec::Lz4, max_bytes: 2 << 20 });
    let c = RegionConfig { pool, swap_directory: directory(), ..config(Policy::Mglru) };
    stress("pool before file", &c);
}

#[test]
fn standby() {
    let pool = Some(PoolConfig { codec: Codec::Lz4, max_bytes: 2 << 20 });
    let c = RegionConfig { pool, swap_directory: directory(), standby_percent: 6, ..config(Policy::Lru) };
    stress("standby, two lists", &c);
}

#[test]
fn by_signal_pool_of_lz4() {
    let mut c = by_signal(config(Policy::Mglru));
    c.bytes = 28 << 20;
    stress("by signal, pool of lz4", &c);
}

#[test]
fn by_signal_file_alone_and_two_lists() {
    let c = RegionConfig { pool: None, swap_directory: directory(), ..by_signal(config(Policy::Lru)) };
    stress("by signal, file, two lists", &c);
}

#[test]
fn by_signal_pool_before_file_and_standby() {
    let pool = Some(PoolConfig { codec: Codec::Zstd, max_bytes: 2 << 20 });
    let c = RegionConfig { pool, swap_directory: directory(), standby_percent: 6, ..by_signal(config(Policy::Mglru)) };
    stress("by signal, pool before file, standby", &c);
}

/// A thread that faults alone reads pages into the frames of others.
#[test]
fn by_signal_alone_pool_of_lz4() {
    stress_by(
        1,
        "by signal, one thread, pool of lz4",
        &RegionConfig { bytes: 28 << 20, ..by_signal(config(Policy::Mglru)) },
    );
}

#[test]
fn by_signal_alone_pool_before_file() {
    let pool = Some(PoolConfig { codec: Codec::Lz4, max_bytes: 2 << 20 });
    let c = RegionConfig { pool, swap_directory: directory(), ..by_signal(config(Policy::Lru)) };
    stress_by(1, "by signal, one thread, pool before file", &c);
}

/// In 4 MiB, threads wait for room and for pages that are on their way.
#[test]
fn by_signal_with_next_to_no_memory() {
    let pool = Some(PoolConfig { codec: Codec::Lz4, max_bytes: 1 << 20 });
    let c = RegionConfig {
        pool,
        bytes: 24 << 20,
        memory_max: 5 << 20,
        swap_directory: directory(),
        ..by_signal(config(Policy::Mglru))
    };
    stress("by signal, 5 MiB", &c);
}

/// Folios of these orders, which come back page by page or whole.
fn folios(orders: &[usize], swap_in: bool, config: RegionConfig) -> RegionConfig {
    let mut thp = ThpConfig { swap_in, ..config.thp };
    orders.iter().for_each(|&order| thp.sizes[order] = ThpSize::Always);
    RegionConfig { thp, ..config }
}

#[test]
fn folios_in_the_pool() {
    let c = folios(&[2, 4], true, RegionConfig { bytes: 28 << 20, ..config(Policy::Mglru) });
    stress("folios in the pool", &c);
}

#[test]
fn folios_in_the_file() {
    let c = RegionConfig { pool: None, swap_directory: directory(), ..config(Policy::Mglru) };
    stress("folios in the file", &folios(&[4], true, c));
}

#[test]
fn folios_whose_pages_come_back_by_themselves() {
    let pool = Some(PoolConfig { codec: Codec::Lz4, max_bytes: 2 << 20 });
    let c = RegionConfig { pool, swap_directory: directory(), ..config(Policy::Lru) };
    stress("folios, page by page, two lists", &folios(&[3, 6], false, c));
}

#[test]
fn folios_on_standby() {
    let pool = Some(PoolConfig { codec: Codec::Lz4, max_bytes: 2 << 20 });
    let c = RegionConfig { pool, swap_directory: directory(), standby_percent: 6, ..config(Policy::Mglru) };
    stress("folios on standby", &folios(&[2], true, c));
}

#[test]
fn samples() {
    let pool = Some(PoolConfig { codec: Codec::Lz4, max_bytes: 2 << 20 });
    let c = RegionConfig { pool, swap_directory: directory(), sample_cpu_percent: 5, ..config(Policy::Mglru) };
    stress("samples", &c);
}
