//! Looking for free slots in a cluster, and taking cache-only ones from the swap cache.
//!
//! Mechanism: `docs/mechanisms.md#allocation-of-swap-slots`, `docs/mechanisms.md#rules-of-slots`.

use super::cluster::{ClusterListId, Flag};
use super::device::{Device, DeviceState, SwapHost};
use super::map::HAS_CACHE;

/// The slot that a scan found, and where the next one goes on; 0: nowhere.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FoundSlot {
    pub(super) offset: Option<u32>,
    pub(super) next: u32,
}

impl Device {
    /// Takes the first 2^order free slots, aligned, from `from` to the end of its cluster.
    pub(super) fn scan<H: SwapHost>(
        &mut self,
        from: u32,
        order: u8,
        common: &mut DeviceState,
        host: &mut H,
    ) -> FoundSlot {
        let (c, start) = self.place(from);
        let (nr, pages) = (1usize << order, self.clusters.pages() as usize);
        common.work.clusters += 1;
        if usize::from(self.clusters.get(c).count) + nr > pages {
            return FoundSlot::default();
        }
        let reclaim = common.is_full();
        let first = self.first_of(c);
        let mut at = start;
        while let Some(window) = self.next_window(c, at, nr, reclaim, common) {
            at = window + nr;
            let offset = first + window as u32;
            if self.is_free(c, window, nr) || self.reclaim_window(c, window, nr, common, host) {
                self.take(c, window, order, common);
                let full = self.clusters.get(c).count as usize == pages;
                return FoundSlot {
                    offset: Some(offset),
                    next: if full || at >= pages { 0 } else { first + at as u32 },
                };
            }
        }
        FoundSlot::default()
    }

    /// The first window from `at` on that is free, or could be made free if `reclaim`.
    fn next_window(&self, c: u32, at: usize, nr: usize, reclaim: bool, common: &mut DeviceState) -> Option<usize> {
        let pages = self.clusters.pages() as usize;
        let Some(slots) = &self.clusters.get(c).slots else {
            common.work.probes += 1;
            return (at + nr <= pages).then_some(at);
        };
        let rest = &slots.map[at..pages];
        let found = match (reclaim, nr) {
            (false, 1) => find(rest, |b| b == 0),
            (true, 1) => find(rest, |b| b == 0 || b == HAS_CACHE),
            (false, _) => rest.chunks_exact(nr).position(|window| window.iter().all(|&b| b == 0)),
            (true, _) => rest.chunks_exact(nr).position(|window| window.iter().all(|&b| b == 0 || b == HAS_CACHE)),
        };
        common.work.probes += found.map_or((pages - at) / nr, |n| n + 1) as u64;
        found.map(|n| at + n * nr)
    }

    fn is_free(&self, c: u32, at: usize, nr: usize) -> bool {
        let slots = &self.clusters.get(c).slots;
        self.clusters.get(c).flag != Flag::None
            && slots.as_ref().is_none_or(|s| s.map[at..at + nr].iter().all(|&b| b == 0))
    }

    /// Takes the cache-only slots of a window from their folios. False: not all of it is free now.
    fn reclaim_window<H: SwapHost>(
        &mut self,
        c: u32,
        at: usize,
        nr: usize,
        common: &mut DeviceState,
        host: &mut H,
    ) -> bool {
        let mut offset = self.first_of(c) + at as u32;
        let end = offset + nr as u32;
        while offset < end {
            offset = match self.byte(offset) {
                0 => offset + 1,
                HAS_CACHE => match self.reclaim_slot(offset, common, host) {
                    Some(after) => after,
                    None => return false,
                },
                _ => return false,
            };
        }
        // The cluster may have become free, or be waiting to be discarded.
        self.is_free(c, at, nr)
    }

    /// Takes the folio of a cache-only slot out of the swap cache, if no slot of it has other
    /// users. Says where it ended.
    pub(super) fn reclaim_slot<H: SwapHost>(
        &mut self,
        offset: u32,
        common: &mut DeviceState,
        host: &mut H,
    ) -> Option<u32> {
        let (c, at) = self.place(offset);
        let slots = self.clusters.get(c).slots.as_ref()?;
        // A slot cache may hold it.
        let f = slots.cache[at].folio().filter(|_| slots.map[at] == HAS_CACHE)?;
        let (slot, order) = host.droppable(f)?;
        let (first, nr) = (slot.offset(), 1u32 << order);
        let (c, at) = self.place(first);
        let slots = self.clusters.get(c).slots.as_ref()?;
        if slots.map[at..at + nr as usize].iter().any(|&b| b != HAS_CACHE) {
            return None;
        }
        self.free_range(first, nr, common);
        host.dropped(f);
        common.work.reclaimed += u64::from(nr);
        Some(first + nr)
    }

    /// Rotates the list of full clusters and takes what is cache-only from the swap cache: of one
    /// cluster, or, with `force`, of as many as are in use.
    pub(super) fn reclaim_full_clusters<H: SwapHost>(&mut self, force: bool, common: &mut DeviceState, host: &mut H) {
        let mut left = if force { self.inuse / self.clusters.pages() } else { 1 };
        while let Some(c) = self.clusters.first(ClusterListId::FULL) {
            self.clusters.rotate(c, ClusterListId::FULL);
            left = left.saturating_sub(1);
            common.work.clusters += 1;
            self.reclaim_cluster(c, common, host);
            if left == 0 {
                break;
            }
        }
    }

    /// Takes everything that is cache-only in a cluster from the swap cache.
    fn reclaim_cluster<H: SwapHost>(&mut self, c: u32, common: &mut DeviceState, host: &mut H) {
        let (first, pages) = (self.first_of(c), self.clusters.pages() as usize);
        let mut at = 0;
        while at < pages {
            // The cluster may have become free on the way.
            let Some(slots) = &self.clusters.get(c).slots else { return };
            let Some(n) = find(&slots.map[at..pages], |b| b == HAS_CACHE) else { return };
            let offset = first + (at + n) as u32;
            let after = self.reclaim_slot(offset, common, host).unwrap_or(offset + 1);
            at = (after - first) as usize;
        }
    }

    /// Hands out a window of a cluster.
    pub(super) fn take(&mut self, c: u32, at: usize, order: u8, common: &mut DeviceState) {
        let nr = 1usize << order;
        let slots = self.clusters.slots_mut(c);
        match nr {
            1 => slots.map[at] = HAS_CACHE,
            _ => slots.map[at..at + nr].fill(HAS_CACHE),
        }
        self.note_taken_slots(self.first_of(c) + at as u32, nr as u32, common);
        self.note_taken(c, order, nr, common);
        if self.is_exhausted() {
            self.listed = false;
            self.wants_reclaim = self.has_clusters(&common.policy) && common.is_full();
        }
    }

    /// Counts slots that are handed out.
    #[inline]
    pub(super) fn note_taken_slots(&mut self, first: u32, nr: u32, common: &mut DeviceState) {
        self.inuse += nr;
        self.peak = self.peak.max(self.inuse);
        common.used += u64::from(nr);
        if self.lowest == first {
            self.lowest += nr;
        }
    }

    /// The lists on which a cluster stands after slots of it were handed out.
    fn note_taken(&mut self, c: u32, order: u8, nr: usize, common: &DeviceState) {
        let pages = self.clusters.pages();
        let cluster = self.clusters.get_mut(c);
        cluster.count += nr as u16;
        if !self.has_clusters(&common.policy) {
            return;
        }
        let cluster = self.clusters.get(c);
        let (flag, full) = (cluster.flag, u32::from(cluster.count) == pages);
        if flag == Flag::Free {
            self.clusters.set_order(c, order);
            if !full {
                self.clusters.move_tail(c, Flag::Nonfull);
            }
        }
        if full {
            self.clusters.move_tail(c, Flag::Full);
        }
    }
}

/// Index of the first byte for which `is` holds. Looks at 32 bytes at a time, which the processor
/// compares at once.
pub(super) fn find(bytes: &[u8], is: impl Fn(u8) -> bool) -> Option<usize> {
    const STEP: usize = 32;
    let any = |chunk: &[u8]| chunk.iter().fold(false, |found, &b| found | is(b));
    let chunk = bytes.chunks(STEP).position(any)?;
    bytes[chunk * STEP..].iter().position(|&b| is(b)).map(|n| chunk * STEP + n)
}
