//! Freeing slots, and discarding the clusters that became empty.
//!
//! Mechanism: `docs/mechanisms.md#rules-of-slots`.

use super::Swap;
use super::cluster::Flag;
use super::device::{Device, DeviceState, FreedSlots, SwapHost};
use super::map::BAD;
use crate::folio::slot::Slot;
use crate::ids::{MemcgId, SwapSlot};
use crate::world::Ack;

impl Swap {
    /// Frees a slot to which one page table refers, if its only consequence is to uncharge its
    /// group. Returns the group.
    #[inline]
    pub(crate) fn free_sole(&mut self, slot: SwapSlot) -> Option<MemcgId> {
        if self.caches.are_enabled() {
            return None;
        }
        let (d, common) = self.device_mut(slot);
        if !d.listed || !d.writable {
            return None;
        }
        let (c, at) = d.place(slot.offset());
        let memcg = d.clusters.free_slot(c, at)?;
        d.inuse -= 1;
        common.used -= 1;
        d.lowest = d.lowest.min(slot.offset());
        Some(memcg)
    }
}

impl Device {
    /// Frees slots of one cluster, no matter what held them.
    pub(super) fn free_range(&mut self, offset: u32, nr: u32, common: &mut DeviceState) {
        let (c, at) = self.place(offset);
        let (first, range) = (self.slot(offset).0, at..at + nr as usize);
        let slots = self.clusters.slots_mut(c);
        if nr == 1 {
            common.freed.push(FreedSlots { slot: SwapSlot(first), nr, memcg: slots.memcg[at] });
            (slots.map[at], slots.cache[at]) = (0, Slot::EMPTY);
        } else {
            let mut before = 0;
            for same in slots.memcg[range.clone()].chunk_by(|a, b| a == b) {
                let slot = SwapSlot(first + before);
                common.freed.push(FreedSlots { slot, nr: same.len() as u32, memcg: same[0] });
                before += same.len() as u32;
            }
            slots.map[range.clone()].fill(0);
            slots.cache[range].fill(Slot::EMPTY);
        }
        if !self.listed && self.writable {
            self.listed = true;
            common.relist.push(self.number);
        }
        common.work.freed += u64::from(nr);
        self.inuse -= nr;
        match self.writable {
            true => common.used -= u64::from(nr),
            false => common.removing -= u64::from(nr),
        }
        self.lowest = self.lowest.min(offset);
        self.note_freed(c, nr, common);
    }

    /// The lists on which a cluster stands after slots of it were freed.
    fn note_freed(&mut self, c: u32, nr: u32, common: &DeviceState) {
        let cluster = self.clusters.get_mut(c);
        cluster.count -= nr as u16;
        let (count, flag) = (cluster.count, cluster.flag);
        if !self.has_clusters(&common.policy) {
            if count == 0 {
                self.clusters.drop_slots(c);
            }
        } else if count > 0 {
            if flag != Flag::Nonfull {
                self.clusters.move_tail(c, Flag::Nonfull);
            }
        } else if self.cfg.discard {
            self.clusters.slots_mut(c).map.fill(BAD);
            self.clusters.move_tail(c, Flag::None);
        } else {
            self.clusters.set_free(c);
        }
    }

    /// Takes the next cluster to discard off its list, where nobody finds it until
    /// [`Device::discarded`].
    pub(super) fn start_discard<H: SwapHost>(&mut self, host: &mut H) -> Option<Ack> {
        let c = self.clusters.pop_discard()?;
        self.discarding.push(c);
        Some(host.discard(self.slot(self.first_of(c)), self.clusters.pages()))
    }

    /// Frees a cluster that was discarded. False: the cluster was not being discarded.
    pub(super) fn discarded(&mut self, offset: u32, common: &mut DeviceState) -> bool {
        let (c, at) = self.place(offset);
        let Some(i) = self.discarding.iter().position(|&d| d == c && at == 0) else { return false };
        self.discarding.swap_remove(i);
        common.work.discarded += 1;
        self.clusters.slots_mut(c).map.fill(0);
        self.clusters.set_free(c);
        true
    }

    /// Runs the worker: one cluster after the other, as long as the device answers at once.
    pub(super) fn discard_work<H: SwapHost>(&mut self, common: &mut DeviceState, host: &mut H) {
        while self.discarding.is_empty() {
            match self.start_discard(host) {
                None | Some(Ack::Pending) => return,
                // A failure is of no consequence: the slots may be used again.
                Some(Ack::Done | Ack::Failed) => _ = self.discarded(self.first_of(self.discarding[0]), common),
            }
        }
    }

    /// Discards all that waits, because there is nothing else to hand out. Whether any of it can be
    /// used now.
    pub(super) fn discard_all<H: SwapHost>(&mut self, common: &mut DeviceState, host: &mut H) -> bool {
        let mut any = false;
        while let Some(ack) = self.start_discard(host) {
            if ack != Ack::Pending {
                let c = *self.discarding.last().expect("it was started just now");
                any |= self.discarded(self.first_of(c), common);
            }
        }
        any
    }
}
