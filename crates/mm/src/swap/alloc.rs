//! From which cluster a device hands out slots: the place where the CPU went on, free clusters,
//! partly used ones of the same order, fragmented ones; single slots at last from clusters of other
//! orders.
//!
//! Mechanism: `docs/mechanisms.md#allocation-of-swap-slots`.

use super::cluster::{Cluster, ClusterListId, Flag, NR_ORDERS};
use super::device::{Device, DeviceState, SwapHost};
use super::scan::FoundSlot;
use crate::config::swap::SwapAllocator;
use crate::ids::MemcgId;

impl Device {
    /// Whether it takes folios of that order at all.
    pub(super) fn takes_order(&self, order: u8, common: &DeviceState) -> bool {
        order == 0
            || self.cfg.block_device && self.has_clusters(&common.policy) && u32::from(order) <= self.clusters.shift()
    }

    /// Allocates 2^order slots. Returns the first one.
    pub(super) fn alloc<H: SwapHost>(
        &mut self,
        order: u8,
        cpu: usize,
        common: &mut DeviceState,
        host: &mut H,
    ) -> Option<u32> {
        common.work.calls += 1;
        if !self.takes_order(order, common) || self.usable - self.inuse < 1 << order {
            return None;
        }
        let cpu = cpu.min(self.next.len() - 1);
        if !self.has_clusters(&common.policy) {
            return self.alloc_at_cursor(common, host);
        }
        let found = match common.policy.allocator {
            SwapAllocator::FreeOnly => self.alloc_free_only(order, cpu, common, host),
            _ => self.alloc_cluster(order, cpu, common, host),
        };
        self.next[cpu][usize::from(order)] = found.next;
        found.offset
    }

    /// Takes the next free slot of the cluster in which the CPU got its last slot, if that has no
    /// consequence: neither the cluster nor the device becomes full, and no slot is reclaimed.
    #[inline]
    pub(super) fn alloc_behind_last(&mut self, cpu: usize, memcg: MemcgId, common: &mut DeviceState) -> Option<u32> {
        let by_cluster = self.has_clusters(&common.policy) && common.policy.allocator != SwapAllocator::FreeOnly;
        if !by_cluster || self.usable - self.inuse < 2 || common.is_full() {
            return None;
        }
        let cpu = cpu.min(self.next.len() - 1);
        let next = self.next[cpu][0];
        if next == 0 {
            return None;
        }
        let ((c, start), pages) = (self.place(next), self.clusters.pages() as usize);
        let is_scanned = common.policy.allocator == SwapAllocator::OneFrag;
        let at = start + self.clusters.take_free_slot(c, start, memcg, is_scanned)?;
        let offset = self.first_of(c) + at as u32;
        common.work.calls += 1;
        common.work.clusters += 1;
        common.work.probes += (at - start + 1) as u64;
        self.note_taken_slots(offset, 1, common);
        self.next[cpu][0] = if at + 1 >= pages { 0 } else { offset + 1 };
        Some(offset)
    }

    fn alloc_cluster<H: SwapHost>(
        &mut self,
        order: u8,
        cpu: usize,
        common: &mut DeviceState,
        host: &mut H,
    ) -> FoundSlot {
        loop {
            let found = self.alloc_in_order(order, cpu, common, host);
            if found.offset.is_some() {
                return found;
            }
            if self.discard_all(common, host) {
                continue;
            }
            return if order == 0 { self.steal(common, host) } else { FoundSlot::default() };
        }
    }

    /// Everything but stealing and discarding.
    fn alloc_in_order<H: SwapHost>(
        &mut self,
        order: u8,
        cpu: usize,
        common: &mut DeviceState,
        host: &mut H,
    ) -> FoundSlot {
        let nonfull_first = match common.policy.allocator {
            SwapAllocator::NonfullFirst => true,
            // Where clusters are discarded, writes are spread over all of them.
            SwapAllocator::OneFrag => !self.cfg.discard,
            SwapAllocator::FreeFirst | SwapAllocator::FreeOnly => false,
        };
        let one_frag = common.policy.allocator == SwapAllocator::OneFrag;
        let mut found = match self.next[cpu][usize::from(order)] {
            0 => FoundSlot::default(),
            next => self.scan_next(next, order, common, host),
        };
        let mut tried = 0;
        if found.offset.is_none() && nonfull_first {
            found = self.scan_nonfull(order, &mut tried, common, host);
        }
        if found.offset.is_none()
            && let Some(c) = self.clusters.first_free()
        {
            found = self.scan(self.first_of(c), order, common, host);
            self.relocate(c, common);
        }
        if found.offset.is_some() {
            return found;
        }
        if common.is_full() {
            self.reclaim_full_clusters(false, common, host);
        }
        if !nonfull_first {
            found = self.scan_nonfull(order, &mut tried, common, host);
        }
        if found.offset.is_none() {
            found = self.scan_frag(order, tried, one_frag, common, host);
        }
        found
    }

    /// Scans the rest of the cluster in which the CPU got its last slots of this order.
    fn scan_next<H: SwapHost>(&mut self, next: u32, order: u8, common: &mut DeviceState, host: &mut H) -> FoundSlot {
        if common.policy.allocator != SwapAllocator::OneFrag {
            return self.scan(next, order, common, host);
        }
        let (c, _) = self.place(next);
        let cluster = self.clusters.get(c);
        // The cluster may have become free since, and have been taken for another order.
        let from = match cluster.flag {
            Flag::Free if order == 0 => self.first_of(c),
            Flag::Nonfull | Flag::Frag if order == 0 || cluster.order == order => next,
            _ => return FoundSlot::default(),
        };
        let found = self.scan(from, order, common, host);
        if self.clusters.get(c).flag == Flag::Nonfull {
            self.clusters.move_tail(c, Flag::Frag);
        }
        found
    }

    /// A cluster that was taken off its list to be scanned goes to the tail of the fragmented ones,
    /// if it is still used in part (`one-frag`).
    fn relocate(&mut self, c: u32, common: &DeviceState) {
        if common.policy.allocator != SwapAllocator::OneFrag {
            return;
        }
        let Cluster { flag, order, .. } = *self.clusters.get(c);
        match flag {
            Flag::Nonfull => self.clusters.move_tail(c, Flag::Frag),
            Flag::Frag => self.clusters.rotate(c, ClusterListId::frag(usize::from(order))),
            Flag::None | Flag::Free | Flag::Full => {}
        }
    }

    /// Scans clusters of the order whose slots were freed since their last scan. A scanned cluster
    /// counts as fragmented.
    fn scan_nonfull<H: SwapHost>(
        &mut self,
        order: u8,
        tried: &mut u32,
        common: &mut DeviceState,
        host: &mut H,
    ) -> FoundSlot {
        if u32::from(order) >= self.clusters.shift() {
            return FoundSlot::default();
        }
        while let Some(c) = self.clusters.first(ClusterListId::nonfull(usize::from(order))) {
            self.clusters.move_tail(c, Flag::Frag);
            let found = self.scan(self.first_of(c), order, common, host);
            self.relocate(c, common);
            *tried += 1;
            if found.offset.is_some() {
                return found;
            }
        }
        FoundSlot::default()
    }

    /// Scans fragmented clusters of the order, each once, including clusters moved there just now.
    /// `one`: only the first.
    fn scan_frag<H: SwapHost>(
        &mut self,
        order: u8,
        mut tried: u32,
        one: bool,
        common: &mut DeviceState,
        host: &mut H,
    ) -> FoundSlot {
        let list = ClusterListId::frag(usize::from(order));
        while one || tried < self.clusters.frag_nr(usize::from(order)) {
            let Some(c) = self.clusters.first(list) else { break };
            self.clusters.rotate(c, list);
            let found = self.scan(self.first_of(c), order, common, host);
            self.relocate(c, common);
            tried += 1;
            if found.offset.is_some() || one {
                return found;
            }
        }
        FoundSlot::default()
    }

    /// Any free slot is good for a page. A cluster on one of these lists has one.
    fn steal<H: SwapHost>(&mut self, common: &mut DeviceState, host: &mut H) -> FoundSlot {
        for order in 1..NR_ORDERS {
            for list in [ClusterListId::frag(order), ClusterListId::nonfull(order)] {
                if let Some(c) = self.clusters.first(list) {
                    let found = self.scan(self.first_of(c), 0, common, host);
                    self.relocate(c, common);
                    debug_assert!(found.offset.is_some(), "{list:?} holds clusters with free slots");
                    return found;
                }
            }
        }
        FoundSlot::default()
    }
}
