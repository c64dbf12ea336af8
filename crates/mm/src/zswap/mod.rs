//! zswap: compressed pages in memory, in front of the swap device.
//!
//! Here is what it holds: an entry for each stored page, in the order in which each group stored
//! them, and their pool. Rules of taking and refusing are in `store`, writing on to the device is
//! in `writeback`.
//!
//! Mechanism: `docs/mechanisms.md#zswap`.

mod worker;
pub(crate) mod zspool;

pub(crate) use worker::Worker;
pub use worker::ZswapStep;

use std::collections::HashMap;

use crate::ids::{MemcgId, PageId, SwapSlot};
use crate::zswap::zspool::ZsPool;

/// No entry.
const NONE: u32 = u32::MAX;

/// One stored page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ZswapEntry {
    pub(crate) slot: SwapSlot,
    pub(crate) page: PageId,
    pub(crate) memcg: MemcgId,
    /// Compressed; 0: one word says all, and there is nothing in the pool.
    pub(crate) bytes: u32,
    /// Spared once by writeback.
    pub(crate) referenced: bool,
    older: u32,
    newer: u32,
}

/// The entries of a group that can be written back, oldest first.
#[derive(Clone, Copy, Debug)]
struct Lru {
    oldest: u32,
    newest: u32,
}

/// Counters of zswap, as debugfs shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZswapStats {
    /// Pages stored now.
    pub stored_pages: u64,
    /// Pages among them of one word over and over.
    pub same_filled_pages: u64,
    /// Bytes of memory that the pool takes.
    pub pool_total_size: u64,
    /// The most that these were; debugfs does not show it.
    pub pool_peak_size: u64,
    /// Stores that met a full pool.
    pub pool_limit_hit: u64,
    /// Pages written back to the device.
    pub written_back_pages: u64,
    /// Write-backs that found no room for the page.
    pub reject_reclaim_fail: u64,
    /// Pages refused because the compressor failed.
    pub reject_compress_fail: u64,
    /// Pages refused because they could not be compressed.
    pub reject_compress_poor: u64,
    /// Pages refused because the pool could not grow.
    pub reject_alloc_fail: u64,
}

impl ZswapStats {
    /// The figures under the names that debugfs has for them.
    pub fn named(&self) -> [(&'static str, u64); 9] {
        [
            ("stored_pages", self.stored_pages),
            ("same_filled_pages", self.same_filled_pages),
            ("pool_total_size", self.pool_total_size),
            ("pool_limit_hit", self.pool_limit_hit),
            ("written_back_pages", self.written_back_pages),
            ("reject_reclaim_fail", self.reject_reclaim_fail),
            ("reject_compress_fail", self.reject_compress_fail),
            ("reject_compress_poor", self.reject_compress_poor),
            ("reject_alloc_fail", self.reject_alloc_fail),
        ]
    }
}

/// Everything that is stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Zswap {
    entries: Vec<ZswapEntry>,
    unused: Vec<u32>,
    /// Only looked up, never walked: its order would not be repeatable.
    by_slot: HashMap<SwapSlot, u32>,
    /// By memcg: the oldest and the newest entry.
    lrus: Vec<Lru>,
    pub(crate) pool: ZsPool,
    /// The limit was hit: nothing is taken until there is room again.
    pub(crate) full: bool,
    pub(crate) worker: Worker,
    /// The most pages that the pool took.
    peak_pages: u64,
    pub(crate) stats: ZswapStats,
}

impl Zswap {
    pub(crate) fn get(&self, slot: SwapSlot) -> Option<&ZswapEntry> {
        self.by_slot.get(&slot).map(|&i| &self.entries[i as usize])
    }

    /// Pages of memory that it takes.
    pub(crate) fn pool_pages(&self) -> u64 {
        self.pool.pages()
    }

    /// Has the worker run at the next good moment, where the driver has no thread for it.
    pub(crate) fn is_due(&self) -> bool {
        self.worker.due
    }

    pub(crate) fn stats(&self) -> ZswapStats {
        let [now, peak] = [self.pool.pages(), self.peak_pages].map(|pages| pages * 4096);
        ZswapStats { pool_total_size: now, pool_peak_size: peak, ..self.stats }
    }

    fn lru(&mut self, memcg: MemcgId) -> &mut Lru {
        if self.lrus.len() <= memcg.index() {
            self.lrus.resize(memcg.index() + 1, Lru { oldest: NONE, newest: NONE });
        }
        &mut self.lrus[memcg.index()]
    }

    /// Slot of the oldest entry of a group.
    pub(crate) fn oldest(&self, memcg: MemcgId) -> Option<SwapSlot> {
        let i = self.lrus.get(memcg.index())?.oldest;
        (i != NONE).then(|| self.entries[i as usize].slot)
    }

    pub(crate) fn insert(&mut self, slot: SwapSlot, page: PageId, memcg: MemcgId, bytes: u32) {
        let e = ZswapEntry { slot, page, memcg, bytes, referenced: true, older: NONE, newer: NONE };
        let i = match self.unused.pop() {
            Some(i) => i,
            None => {
                self.entries.push(e);
                self.entries.len() as u32 - 1
            }
        };
        self.entries[i as usize] = e;
        self.by_slot.insert(slot, i);
        self.stats.stored_pages += 1;
        if bytes > 0 {
            self.pool.insert(bytes);
            self.peak_pages = self.peak_pages.max(self.pool.pages());
            self.link_newest(i);
        } else {
            self.stats.same_filled_pages += 1;
        }
    }

    /// Whether no page is stored.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.stats.stored_pages == 0
    }

    pub(crate) fn remove(&mut self, slot: SwapSlot) -> Option<ZswapEntry> {
        let i = self.by_slot.remove(&slot)?;
        let e = self.entries[i as usize];
        if e.bytes > 0 {
            self.unlink(i);
            self.pool.remove(e.bytes);
        } else {
            self.stats.same_filled_pages -= 1;
        }
        self.stats.stored_pages -= 1;
        self.unused.push(i);
        Some(e)
    }

    /// Spares an entry: it counts as the newest, and not again as referenced.
    pub(crate) fn rotate(&mut self, slot: SwapSlot) {
        if let Some(&i) = self.by_slot.get(&slot) {
            self.unlink(i);
            self.link_newest(i);
            self.entries[i as usize].referenced = false;
        }
    }

    fn link_newest(&mut self, i: u32) {
        let memcg = self.entries[i as usize].memcg;
        let before = std::mem::replace(&mut self.lru(memcg).newest, i);
        (self.entries[i as usize].older, self.entries[i as usize].newer) = (before, NONE);
        match before {
            NONE => self.lru(memcg).oldest = i,
            before => self.entries[before as usize].newer = i,
        }
    }

    fn unlink(&mut self, i: u32) {
        let ZswapEntry { memcg, older, newer, .. } = self.entries[i as usize];
        match older {
            NONE => self.lru(memcg).oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
        match newer {
            NONE => self.lru(memcg).newest = older,
            newer => self.entries[newer as usize].older = older,
        }
    }

    /// All entries, group by group in the order of their lists, then the entries on no list.
    pub(crate) fn all(&self) -> Vec<ZswapEntry> {
        let mut all = Vec::new();
        for lru in &self.lrus {
            let mut at = lru.oldest;
            while at != NONE && all.len() <= self.entries.len() {
                all.push(self.entries[at as usize]);
                at = self.entries[at as usize].newer;
            }
        }
        let unlisted = self.by_slot.values().map(|&i| self.entries[i as usize]).filter(|e| e.bytes == 0);
        all.extend(unlisted);
        all
    }

    /// Entries, lists, the pool and the figures agree.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let all = self.all();
        if all.len() != self.by_slot.len() || all.len() as u64 != self.stats.stored_pages {
            return Err(format!(
                "zswap: {} on lists, {} known, {} counted",
                all.len(),
                self.by_slot.len(),
                self.stats.stored_pages
            ));
        }
        let mut pool = ZsPool::new();
        for e in &all {
            if self.get(e.slot).is_none_or(|found| found.page != e.page) {
                return Err(format!("zswap: {:?} of {:?} is listed and not known", e.slot, e.page));
            }
            if e.bytes > 0 {
                pool.insert(e.bytes);
            }
        }
        let same = all.iter().filter(|e| e.bytes == 0).count() as u64;
        match pool == self.pool && same == self.stats.same_filled_pages {
            true => Ok(()),
            false => Err(format!("zswap: the entries make {pool:?}, kept is {:?}", self.pool)),
        }
    }
}
