//! Charges of groups for compressed pages.

use crate::ids::MemcgId;
use crate::memcg::group::{Memcgs, PAGE_BYTES};

/// Pages and bytes of a memory cgroup in zswap.
#[derive(Clone, Debug)]
pub(crate) struct MemcgZswap {
    /// `memory.zswap.writeback`: its pages may be written to the device.
    pub(crate) writeback: bool,
    /// Pages stored.
    pub(crate) stored: u64,
    /// Compressed bytes of the pages stored.
    pub(crate) own_bytes: u64,
    /// Compressed bytes, those of descendants included.
    pub(crate) bytes: u64,
}

impl Default for MemcgZswap {
    fn default() -> Self {
        MemcgZswap { writeback: true, stored: 0, own_bytes: 0, bytes: 0 }
    }
}

impl MemcgZswap {
    /// Pages charged for its compressed pages.
    pub(crate) fn pages(&self) -> u64 {
        self.own_bytes.div_ceil(PAGE_BYTES)
    }
}

impl Memcgs {
    /// Whether a group may store more in zswap: the group and all its ancestors are below their
    /// limits. Compressed bytes are rounded down to pages.
    pub(crate) fn may_zswap(&self, id: MemcgId) -> bool {
        self.chain(id).map(|m| self.get(m)).all(|m| m.zswap.bytes / PAGE_BYTES < m.zswap_max)
    }

    /// The highest group, from one up, whose limit of zswap is compared with what it stores.
    pub(crate) fn limited_in_zswap(&self, id: MemcgId) -> Option<MemcgId> {
        self.chain(id).filter(|&m| (1..u64::MAX).contains(&self.get(m).zswap_max)).last()
    }

    /// A compressed page is stored, even beyond the limit: the page that it was made of goes in
    /// return.
    pub(crate) fn charge_zswap(&mut self, id: MemcgId, bytes: u64) {
        let z = &mut self.get_mut(id).zswap;
        let before = z.pages();
        z.stored += 1;
        z.own_bytes += bytes;
        let more = z.pages() - before;
        self.add_zswap_bytes(id, bytes as i64);
        if more > 0 {
            self.force_charge(id, more);
        }
    }

    /// A compressed page is gone.
    pub(crate) fn uncharge_zswap(&mut self, id: MemcgId, bytes: u64) {
        let z = &mut self.get_mut(id).zswap;
        let before = z.pages();
        z.stored -= 1;
        z.own_bytes -= bytes;
        let less = before - z.pages();
        self.add_zswap_bytes(id, -(bytes as i64));
        self.uncharge(id, less);
    }

    fn add_zswap_bytes(&mut self, id: MemcgId, bytes: i64) {
        let mut at = Some(id);
        while let Some(m) = at {
            let m = self.get_mut(m);
            m.zswap.bytes = m.zswap.bytes.checked_add_signed(bytes).expect("zswap never holds less than nothing");
            at = m.parent;
        }
    }
}
