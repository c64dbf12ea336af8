//! Pages that were read back from a swap file and not written: they leave memory again without
//! being written. Without userfaultfd the tests say that they skip.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use refault_pager::store::Codec;
use refault_pager::{FaultMode, PoolConfig, Region, RegionConfig, ThpSize};
use refault_testing::{Rng, one_in, only_long};

use crate::common::made;

const PAGE: usize = 4096;
const MIB: usize = 1 << 20;

fn configs(bytes: usize, memory_max: usize) -> Vec<RegionConfig> {
    let on_file = |fault_mode| RegionConfig {
        pool: None,
        swap_directory: Some(env!("CARGO_MANIFEST_DIR").into()),
        // Copies are kept while less than half of it is in use.
        swap_max: 4 * bytes,
        fault_mode,
        ..RegionConfig::new(bytes, memory_max)
    };
    let mut folios = on_file(FaultMode::Signal);
    folios.thp.sizes[2] = ThpSize::Always;
    // Pages that do not get smaller are on the file, and the pool before it is not asked.
    let both =
        RegionConfig { pool: Some(PoolConfig { codec: Codec::Lz4, max_bytes: MIB }), ..on_file(FaultMode::Threads) };
    vec![on_file(FaultMode::Threads), on_file(FaultMode::Signal), folios, both]
}

fn words(region: &Region) -> &[AtomicU64] {
    // SAFETY: the memory is that long, aligned to pages, and shared as atomics only.
    unsafe { std::slice::from_raw_parts(region.as_ptr().cast(), region.len() / 8) }
}

/// Noise, so that a pool has no use for it.
fn noise(at: usize) -> u64 {
    Rng(at as u64).next()
}

#[test]
fn what_was_only_read_is_not_written_again() {
    for config in configs(8 * MIB, 64 * MIB) {
        let Some(r) = made(Region::new(&config)) else { return };
        let pages = r.len() / PAGE;
        let all = words(&r);
        all.iter().enumerate().for_each(|(at, w)| w.store(noise(at), Ordering::Relaxed));
        let out = |before: u64| {
            assert_eq!(r.page_out(0..r.len()).unwrap(), pages as u64);
            r.validate().unwrap();
            r.stats().area.unchanged - before
        };
        assert_eq!(out(0), 0);
        let right = |changed: usize| {
            for (at, w) in all.iter().enumerate() {
                let add = u64::from(changed > 0 && at % 512 == 7 && at / 512 % changed == 0);
                assert_eq!(w.load(Ordering::Relaxed), noise(at).wrapping_add(add), "word {at}");
            }
        };
        right(0);
        assert_eq!(r.stats().swap_pages, pages as u64, "their slots are kept");
        assert_eq!(out(0), pages as u64);
        right(0);
        // A third of them is written after it was read.
        for page in (0..pages).step_by(3) {
            all[page * 512 + 7].fetch_add(1, Ordering::Relaxed);
        }
        let unchanged = out(pages as u64);
        assert_eq!(unchanged, (pages - pages.div_ceil(3)) as u64);
        right(3);
        assert_eq!(r.stats().counts.inconsistent, 0);
    }
}

#[test]
fn a_pool_gives_up_the_copy_of_what_is_read() {
    let config = RegionConfig { swap_max: 64 * MIB, ..RegionConfig::new(8 * MIB, 64 * MIB) };
    let Some(r) = made(Region::new(&config)) else { return };
    words(&r).iter().enumerate().for_each(|(at, w)| w.store(at as u64, Ordering::Relaxed));
    r.page_out(0..r.len()).unwrap();
    assert!(words(&r).iter().enumerate().all(|(at, w)| w.load(Ordering::Relaxed) == at as u64));
    let s = r.stats();
    assert_eq!((s.swap_pages, s.area.pages, s.area.usage.pool_pages), (0, 0, 0));
}

/// Copies do not use up what swap there is.
#[test]
fn copies_give_way_when_half_of_the_swap_is_used() {
    if !only_long("copies_give_way_when_half_of_the_swap_is_used") {
        return;
    }
    for config in configs(24 * MIB, 12 * MIB) {
        let Some(r) = made(Region::new(&RegionConfig { swap_max: 24 * MIB, ..config })) else { return };
        let all = words(&r);
        let mut rng = Rng(3);
        for round in 0..3u64 {
            for (at, w) in all.iter().enumerate().step_by(64) {
                assert_eq!(w.load(Ordering::Relaxed), if round == 0 { 0 } else { noise(at) + round - 1 });
                w.store(noise(at) + round, Ordering::Relaxed);
            }
            for _ in 0..4000 {
                let at = rng.below(all.len() / 64) * 64;
                assert_eq!(all[at].load(Ordering::Relaxed), noise(at) + round);
            }
            r.validate().unwrap();
            let s = r.stats();
            assert!(s.swap_pages * 4096 <= 24 * MIB as u64 && s.counts.oom == 0, "{s:?}");
        }
    }
}

/// A page that came in by a read is written when its eviction has begun: between the look at it and
/// the move, or as soon as it is back.
#[test]
fn a_write_just_before_a_clean_page_is_moved_is_not_lost() {
    for config in configs(2 * MIB, 16 * MIB).into_iter().step_by(one_in(2)) {
        let Some(r) = made(Region::new(&config)) else { return };
        let pages = r.len() / PAGE;
        let all = words(&r);
        all.iter().enumerate().for_each(|(at, w)| w.store(noise(at), Ordering::Relaxed));
        let stop = AtomicBool::new(false);
        let mut counts = vec![0u64; pages];
        std::thread::scope(|s| {
            let writers: Vec<_> = (0..2usize)
                .map(|thread| {
                    let (stop, all) = (&stop, &all);
                    s.spawn(move || {
                        let (mut rng, mut counts) = (Rng(thread as u64), vec![0u64; pages]);
                        while !stop.load(Ordering::Relaxed) {
                            let page = rng.below(pages);
                            // Brought in by a read; the other word of the page is never written.
                            let at = page * 512;
                            assert_eq!(all[at + 9].load(Ordering::Relaxed), noise(at + 9));
                            if rng.below(4) == 0 {
                                counts[page] += 1;
                                all[at + 100].fetch_add(1, Ordering::Relaxed);
                            }
                        }
                        counts
                    })
                })
                .collect();
            for _ in 0..100 {
                r.page_out(0..r.len()).unwrap();
            }
            stop.store(true, Ordering::Relaxed);
            for writer in writers {
                counts.iter_mut().zip(writer.join().unwrap()).for_each(|(a, b)| *a += b);
            }
        });
        for (page, &n) in counts.iter().enumerate() {
            let at = page * 512 + 100;
            assert_eq!(all[at].load(Ordering::Relaxed), noise(at).wrapping_add(n), "page {page}");
        }
        r.validate().unwrap();
        assert_eq!(r.stats().area.corrupt, 0);
    }
}
