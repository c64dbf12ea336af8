//! Taking a device away, as far as its slots are concerned.

use super::Swap;
use crate::ids::FolioId;

impl Swap {
    /// Starts to remove the device: nothing is put on it any more. False: there is no such device.
    pub(crate) fn start_removal(&mut self, number: u8) -> bool {
        let device = self.devices.get(usize::from(number)).and_then(Option::as_ref);
        let Some(writable) = device.map(|d| d.writable) else { return false };
        if !writable {
            return true;
        }
        self.drain_caches();
        self.relist();
        self.caches.disabled = true;
        self.avail.retain(|&d| d != number);
        if let Some(d) = &mut self.devices[usize::from(number)] {
            (d.writable, d.listed, d.wants_reclaim) = (false, false, false);
            (d.inuse_at_removal, d.fruitless_removals) = (d.inuse, 0);
            self.common.total -= u64::from(d.usable);
            self.common.used -= u64::from(d.inuse);
            self.common.removing += u64::from(d.inuse);
        }
        true
    }

    /// The device stays.
    pub(crate) fn cancel_removal(&mut self, number: u8) {
        let Some(d) = self.devices[usize::from(number)].as_mut().filter(|d| !d.writable) else { return };
        (d.writable, d.listed) = (true, !d.is_exhausted());
        self.common.total += u64::from(d.usable);
        self.common.used += u64::from(d.inuse);
        self.common.removing -= u64::from(d.inuse);
        if d.listed {
            self.list(number);
        }
        self.enable_caches();
    }

    /// Notes that a page of the device found no room in memory. Returns how often in a row that was
    /// so while no slot was freed.
    pub(crate) fn note_fruitless_removal(&mut self, number: u8) -> u32 {
        let Some(d) = &mut self.devices[usize::from(number)] else { return 0 };
        d.fruitless_removals = if d.inuse < d.inuse_at_removal { 0 } else { d.fruitless_removals + 1 };
        d.inuse_at_removal = d.inuse;
        d.fruitless_removals
    }

    /// Forgets an empty device. False: some slots are in use, or a cluster is being discarded.
    pub(crate) fn finish_removal(&mut self, number: u8) -> bool {
        let at = usize::from(number);
        let empty = |d: &super::device::Device| d.inuse == 0 && d.discarding.is_empty();
        if !self.devices[at].as_ref().is_some_and(empty) {
            return false;
        }
        self.devices[at] = None;
        self.enable_caches();
        true
    }

    fn enable_caches(&mut self) {
        let removing = self.devices.iter().flatten().any(|d| !d.writable);
        self.caches.disabled = removing || !self.common.policy.slot_cache;
    }

    /// Folios that the swap cache holds for slots of a device.
    pub(crate) fn cached_on(&self, number: u8) -> Vec<FolioId> {
        let Some(d) = &self.devices[usize::from(number)] else { return Vec::new() };
        let slots = (0..d.clusters.touched()).filter_map(|c| d.clusters.get(c).slots.as_ref());
        let mut folios: Vec<FolioId> = slots.flat_map(|s| s.cache.iter().filter_map(|c| c.folio())).collect();
        // The slots of a large folio follow one another.
        folios.dedup();
        folios
    }
}
