//! A pool before a store of which the speed changes: the engine gives the pool more memory where
//! that pays, and takes it away where it does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use refault_pager::store::{Codec, Page, Pool, Store, StoreError, TieredStore, Usage};
use refault_pager::{FaultMode, PoolConfig, Region, RegionConfig};
use refault_testing::only_long;

use crate::common::made;

const MIB: usize = 1 << 20;
const PAGE: usize = 4096;
const MAX: usize = 4 * MIB;
/// Rounds of the whole region after which a change must have come. A few are enough; how long one
/// takes does not matter.
const ROUNDS: usize = 400;

/// Memory that says that it is a file, and takes as long to read as it is told to. It keeps what
/// slots held, freed or not.
struct Slow {
    pages: std::sync::Mutex<Vec<Option<Box<Page>>>>,
    read_us: Arc<AtomicU64>,
}

impl Store for Slow {
    fn write(&self, slot: u32, page: &Page) -> Result<(), StoreError> {
        let mut pages = self.pages.lock().unwrap();
        if pages.len() <= slot as usize {
            pages.resize(slot as usize + 1, None);
        }
        pages[slot as usize] = Some(Box::new(*page));
        Ok(())
    }

    fn read(&self, slot: u32, page: &mut Page) -> Result<(), StoreError> {
        match self.read_us.load(Ordering::Relaxed) {
            0 => {}
            us => std::thread::sleep(Duration::from_micros(us)),
        }
        let pages = self.pages.lock().unwrap();
        page.copy_from_slice(&**pages.get(slot as usize).and_then(|p| p.as_ref()).ok_or(StoreError::Absent)?);
        Ok(())
    }

    fn free(&self, _slot: u32) {}

    fn usage(&self) -> Usage {
        Usage { file_pages: self.pages.lock().unwrap().iter().flatten().count() as u64, ..Usage::default() }
    }
}

/// A region of 16 MiB in 8, with a pool of up to 4, before such a store. `None`: there are no
/// regions here.
fn region(adapts: bool) -> Option<(Region, Arc<AtomicU64>)> {
    let config = RegionConfig {
        // Zstandard: compressing a page takes far longer than copying one.
        pool: Some(PoolConfig { codec: Codec::Zstd, max_bytes: MAX }),
        fault_mode: FaultMode::Threads,
        ..RegionConfig::new(16 * MIB, 8 * MIB)
    };
    let read_us = Arc::new(AtomicU64::new(0));
    let slow = Slow { pages: Default::default(), read_us: read_us.clone() };
    let pool = Pool::new(Codec::Zstd, MAX).unwrap();
    let store: Box<dyn Store> =
        if adapts { Box::new(TieredStore::adapting(pool, slow)) } else { Box::new(TieredStore::new(pool, slow)) };
    Some((made(Region::with_store(&config, store))?, read_us))
}

/// Word of a page: half of it compresses to nothing, the other half not at all.
fn word(page: usize, version: u64, i: usize) -> u64 {
    if i.is_multiple_of(2) {
        (page as u64) << 32 | version
    } else {
        (page as u64 ^ version << 40 ^ i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

/// Goes over the first pages of the region, in an order without runs, and reads and writes each
/// whole.
fn round(region: &mut Region, versions: &mut [u64], at: u64) {
    let pages = versions.len();
    for i in 0..pages {
        // A step that has no factor in common with the number of pages, a power of two.
        let page = (i * 1237 + at as usize * 77) % pages;
        let words = region.as_mut_slice()[page * PAGE..][..PAGE].as_chunks_mut::<8>().0;
        for (i, w) in words.iter().enumerate() {
            assert_eq!(u64::from_ne_bytes(*w), word(page, versions[page], i), "page {page}");
        }
        versions[page] = at;
        for (i, w) in words.iter_mut().enumerate() {
            *w = word(page, at, i).to_ne_bytes();
        }
    }
}

fn limit(region: &Region) -> usize {
    region.stats().area.usage.pool_limit_bytes as usize
}

#[test]
fn the_pool_goes_before_a_fast_store_and_comes_back_before_a_slow_one() {
    if !only_long("the_pool_goes_before_a_fast_store_and_comes_back_before_a_slow_one") {
        return;
    }
    let Some((mut region, read_us)) = region(true) else { return };
    let mut versions = vec![0; 4096];
    for (page, words) in region.as_mut_slice().as_chunks_mut::<PAGE>().0.iter_mut().enumerate() {
        words.as_chunks_mut::<8>().0.iter_mut().enumerate().for_each(|(i, w)| *w = word(page, 0, i).to_ne_bytes());
    }
    assert_eq!(limit(&region), MAX / 4);
    let mut at = 0;
    for turn in 0..2 {
        read_us.store(0, Ordering::Relaxed);
        let mut rounds = 0;
        while limit(&region) > MAX / 8 {
            (at, rounds) = (at + 1, rounds + 1);
            round(&mut region, &mut versions, at);
            assert!(rounds < ROUNDS, "turn {turn}: {:?}", region.stats().area.usage);
        }
        let small = limit(&region);
        // A hundred times what the pool takes.
        read_us.store(2000, Ordering::Relaxed);
        rounds = 0;
        while limit(&region) <= small + MAX / 8 {
            (at, rounds) = (at + 1, rounds + 1);
            // Less than all, for it is slow.
            round(&mut region, &mut versions[..2048], at);
            assert!(rounds < ROUNDS, "turn {turn}: {:?}", region.stats().area.usage);
        }
    }
    region.validate().unwrap();
    let s = region.stats();
    assert!(s.area.usage.pool_moves.0 >= 2 && s.area.usage.pool_moves.1 >= 2, "{:?}", s.area.usage);
    assert_eq!((s.area.corrupt, s.area.read_errors, s.counts.poisoned), (0, 0, 0));
}

#[test]
fn a_pool_that_is_held_fixed_stays_as_it_is() {
    let Some((mut region, _)) = region(false) else { return };
    let mut versions = vec![0; 4096];
    for (page, words) in region.as_mut_slice().as_chunks_mut::<PAGE>().0.iter_mut().enumerate() {
        words.as_chunks_mut::<8>().0.iter_mut().enumerate().for_each(|(i, w)| *w = word(page, 0, i).to_ne_bytes());
    }
    (1..6).for_each(|at| round(&mut region, &mut versions, at));
    assert_eq!((limit(&region), region.stats().area.usage.pool_moves), (MAX, (0, 0)));
}
