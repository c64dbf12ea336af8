//! State of a slot: the byte of the swap map, the swap cache, the memcg that is charged.
//!
//! Byte: the references of page tables (0 to 0x3e), or 0x3f for a slot that cannot be used; 0x40
//! while the swap cache or a slot cache holds it; 0x80 where more references are counted elsewhere.
//! A slot is free if its byte is 0.

use super::cluster::MAX_CLUSTER_PAGES;
use crate::folio::slot::Slot;
use crate::ids::MemcgId;

/// The swap cache holds the slot (`SWAP_HAS_CACHE`).
pub(super) const HAS_CACHE: u8 = 0x40;
/// References that the byte can count.
pub(super) const COUNT_MAX: u8 = 0x3e;
/// The slot cannot be used.
pub(super) const BAD: u8 = 0x3f;
/// More references than the byte can count.
pub(super) const CONTINUED: u8 = 0x80;

/// References in a byte.
pub(super) fn count(byte: u8) -> u8 {
    byte & !(HAS_CACHE | CONTINUED)
}

/// The slots of one cluster that is in use.
#[derive(Clone, Debug)]
pub(super) struct ClusterSlots {
    pub(super) map: [u8; MAX_CLUSTER_PAGES],
    /// The folio in the swap cache, or the shadow of the page.
    pub(super) cache: [Slot; MAX_CLUSTER_PAGES],
    pub(super) memcg: [MemcgId; MAX_CLUSTER_PAGES],
}

impl ClusterSlots {
    /// Bytes per slot.
    pub(super) const BYTES: usize = size_of::<ClusterSlots>();

    /// All free.
    pub(super) fn new() -> Box<ClusterSlots> {
        let (cache, memcg) = ([Slot::EMPTY; MAX_CLUSTER_PAGES], [MemcgId::ROOT; MAX_CLUSTER_PAGES]);
        Box::new(ClusterSlots { map: [0; MAX_CLUSTER_PAGES], cache, memcg })
    }
}
