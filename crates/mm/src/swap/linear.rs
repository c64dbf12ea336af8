//! Slots by scanning the map: rotational devices of Linux 6.12, and what came before the cluster
//! lists.
//!
//! Mechanism: `docs/mechanisms.md#rules-of-slots`.

use super::cluster::Flag;
use super::device::{Cursor, Device, DeviceState, SwapHost};
use super::map::HAS_CACHE;
use super::scan::{FoundSlot, find};

impl Device {
    /// One slot of a rotational device: in sequence, and after each run from the lowest place where
    /// a whole run is free.
    pub(super) fn alloc_at_cursor<H: SwapHost>(&mut self, common: &mut DeviceState, host: &mut H) -> Option<u32> {
        let run = self.clusters.pages();
        if self.cursor[0].left == 0 {
            let next = if self.usable - self.inuse < run { None } else { self.free_run(run, common) };
            self.cursor[0] = Cursor { next: next.unwrap_or(self.cursor[0].next), left: run };
        }
        let from = self.cursor[0].next;
        let offset = self.first_usable(from, common, host)?;
        let (c, at) = self.place(offset);
        self.take(c, at, 0, common);
        self.cursor[0] = Cursor { next: offset + 1, left: self.cursor[0].left - 1 };
        Some(offset)
    }

    /// Before the series: large orders take free clusters only, and the CPU's own one; single slots
    /// scan the map when there is none.
    pub(super) fn alloc_free_only<H: SwapHost>(
        &mut self,
        order: u8,
        cpu: usize,
        common: &mut DeviceState,
        host: &mut H,
    ) -> FoundSlot {
        loop {
            let next = match (self.next[cpu][usize::from(order)], self.clusters.first_free()) {
                (0, None) => {
                    if self.discard_all(common, host) {
                        continue;
                    }
                    break;
                }
                (0, Some(c)) => self.first_of(c),
                (next, _) => next,
            };
            let found = self.scan_own(next, order, common);
            self.next[cpu][usize::from(order)] = found.next;
            if found.offset.is_some() {
                return found;
            }
        }
        if order > 0 {
            return FoundSlot::default();
        }
        let Some(offset) = self.first_usable(self.cursor[cpu].next, common, host) else { return FoundSlot::default() };
        let (c, at) = self.place(offset);
        self.take(c, at, 0, common);
        self.cursor[cpu].next = offset + 1;
        FoundSlot { offset: Some(offset), next: 0 }
    }

    /// The rest of the CPU's cluster.
    fn scan_own(&mut self, from: u32, order: u8, common: &mut DeviceState) -> FoundSlot {
        let (c, start) = self.place(from);
        let (nr, pages) = (1usize << order, self.clusters.pages() as usize);
        let free = |at: usize| {
            let slots = &self.clusters.get(c).slots;
            slots.as_ref().is_none_or(|s| s.map[at..at + nr].iter().all(|&b| b == 0))
        };
        common.work.clusters += 1;
        let found = (start..pages).step_by(nr).find(|&at| at + nr <= pages && free(at));
        common.work.probes += found.map_or(pages - start, |at| at - start) as u64 / nr as u64 + 1;
        let Some(at) = found else { return FoundSlot::default() };
        self.take(c, at, order, common);
        let (offset, after) = (self.first_of(c) + at as u32, at + nr);
        FoundSlot { offset: Some(offset), next: if after < pages { self.first_of(c) + after as u32 } else { 0 } }
    }

    /// The first slot from `from` to the end that is free, or cache-only if slots are short and its
    /// folio gives it up; else the first below.
    fn first_usable<H: SwapHost>(&mut self, from: u32, common: &mut DeviceState, host: &mut H) -> Option<u32> {
        let end = self.cfg.pages as u32;
        let from = from.clamp(self.lowest, end);
        for (mut at, end) in [(from, end), (self.lowest, from)] {
            while at < end {
                at = self.next_candidate(at, end, common);
                if at >= end {
                    break;
                }
                if self.byte(at) == 0 {
                    return Some(at);
                }
                if self.reclaim_slot(at, common, host).is_some() && self.byte(at) == 0 {
                    return Some(at);
                }
                at += 1;
            }
        }
        None
    }

    /// The next slot that is free, or cache-only if slots are short; `end` if there is none. Counts
    /// the bytes of the map that are looked at.
    fn next_candidate(&self, from: u32, end: u32, common: &mut DeviceState) -> u32 {
        let reclaim = common.is_full();
        let mut at = from;
        while at < end {
            let (c, place) = self.place(at);
            let Some(slots) = &self.clusters.get(c).slots else { return at };
            let stop = self.clusters.pages() as usize;
            let found = find(&slots.map[place..stop], |b| b == 0 || (reclaim && b == HAS_CACHE));
            match found {
                Some(n) => {
                    common.work.probes += n as u64 + 1;
                    return (at + n as u32).min(end);
                }
                None => {
                    common.work.probes += (stop - place) as u64;
                    at += (stop - place) as u32;
                }
            }
        }
        end
    }

    /// The lowest run of `run` free slots, aligned or not.
    fn free_run(&self, run: u32, common: &mut DeviceState) -> Option<u32> {
        let end = self.cfg.pages as u32;
        let (mut start, mut at) = (self.lowest, self.lowest);
        while at < end {
            let (c, place) = self.place(at);
            let cluster = self.clusters.get(c);
            common.work.probes += 1;
            if cluster.slots.is_none() && cluster.flag != Flag::None {
                at = self.first_of(c) + self.clusters.pages();
            } else if cluster.slots.as_ref().is_some_and(|s| s.map[place] != 0) {
                at += 1;
                start = at;
            } else {
                at += 1;
            }
            if at.min(end) - start >= run {
                return Some(start);
            }
        }
        None
    }
}
