//! One swap device: its clusters, its cursors, its used slots.
//!
//! Mechanism: `docs/mechanisms.md#swap-devices`.

use super::cluster::{Clusters, NR_ORDERS};
use super::map::{self, BAD};
use crate::config::swap::{SwapDeviceConfig, SwapPolicy, SwapRotational};
use crate::ids::{FolioId, MemcgId, SwapSlot};
use crate::world::Ack;

/// Calls of allocation into the rest of the engine.
pub(crate) trait SwapHost {
    /// The first slot and the order of a folio in the swap cache, if it can leave the cache now: it
    /// is neither locked nor under writeback.
    fn droppable(&self, f: FolioId) -> Option<(SwapSlot, u8)>;

    /// The folio was taken out of the swap cache; its data exists only in memory now.
    fn dropped(&mut self, f: FolioId);

    /// The pages of a cluster are of no use any more.
    fn discard(&mut self, first: SwapSlot, pages: u32) -> Ack;
}

/// Slots that were freed, and the memcgs that were charged for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FreedSlots {
    pub(crate) slot: SwapSlot,
    /// Number of slots from `slot` on.
    pub(crate) nr: u32,
    pub(crate) memcg: MemcgId,
}

/// State that all devices have in common.
#[derive(Clone, Debug, Default)]
pub(super) struct DeviceState {
    pub(super) policy: SwapPolicy,
    /// Usable slots of all devices, except those being removed.
    pub(super) total: u64,
    /// Slots in use.
    pub(super) used: u64,
    /// Slots in use on devices being removed; not part of `total` and `used`.
    pub(super) removing: u64,
    /// Slots freed since the engine last asked.
    pub(super) freed: Vec<FreedSlots>,
    /// Numbers of devices that were 100 % used and are not any more.
    pub(super) relist: Vec<u8>,
    /// Work done so far.
    pub(super) work: SwapWork,
}

impl DeviceState {
    /// The half rule: less than half of all slots is free.
    pub(super) fn is_full(&self) -> bool {
        (self.total - self.used) * 2 < self.total
    }
}

/// Work of the swap allocator: the figures that cost it time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwapWork {
    /// Requests for slots.
    pub calls: u64,
    /// Clusters looked into.
    pub clusters: u64,
    /// Places tested for 2^order free slots.
    pub probes: u64,
    /// Slots given back to their devices, from the caches of the CPUs, too.
    pub freed: u64,
    /// Slots that were taken from folios in the swap cache.
    pub reclaimed: u64,
    /// Clusters discarded.
    pub discarded: u64,
}

/// Where an access goes on that scans the map in sequence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    /// The next slot.
    pub(super) next: u32,
    /// Slots that are left of the run.
    pub(super) left: u32,
}

/// One device.
#[derive(Clone, Debug)]
pub(super) struct Device {
    pub(super) number: u8,
    pub(super) cfg: SwapDeviceConfig,
    pub(super) priority: i32,
    pub(super) clusters: Clusters,
    /// Slots that can be used.
    pub(super) usable: u32,
    /// Slots in use.
    pub(super) inuse: u32,
    /// Most slots that were in use at once.
    pub(super) peak: u32,
    /// Slots in use, and usable slots, of devices of higher priority when this device first handed
    /// out slots.
    pub(super) first_use: Option<(u64, u64)>,
    /// By CPU and order, where allocation goes on; 0: nowhere. One for all CPUs on a rotational
    /// device.
    pub(super) next: Vec<[u32; NR_ORDERS]>,
    /// By CPU: where its scan of the map goes on. One for all CPUs on a rotational device.
    pub(super) cursor: Vec<Cursor>,
    /// Slot below which none is free.
    pub(super) lowest: u32,
    /// The device may be asked for slots.
    pub(super) listed: bool,
    /// The device takes new pages: not while it is being removed.
    pub(super) writable: bool,
    /// Slots in use when a page of the device last found no room in memory, and how often in a row
    /// that was so while no slot was freed.
    pub(super) inuse_at_removal: u32,
    pub(super) fruitless_removals: u32,
    /// The device became 100 % used: cache-only slots of full clusters are to be reclaimed.
    pub(super) wants_reclaim: bool,
    /// Clusters that are being discarded: on no list.
    pub(super) discarding: Vec<u32>,
    /// References beyond what a byte counts.
    pub(super) continued: std::collections::BTreeMap<u32, u32>,
}

impl Device {
    pub(super) fn new(number: u8, cfg: SwapDeviceConfig, priority: i32, policy: &SwapPolicy, cpus: usize) -> Device {
        let pages = cfg.pages as u32;
        let nr = pages.div_ceil(policy.cluster_pages);
        let cpus = if cfg.rotational { 1 } else { cpus };
        let mut d = Device {
            number,
            priority,
            clusters: Clusters::new(nr, policy.cluster_pages),
            usable: pages,
            inuse: 0,
            peak: 0,
            first_use: None,
            next: vec![[0; NR_ORDERS]; cpus],
            cursor: vec![Cursor { next: 1, left: 0 }; cpus],
            lowest: 1,
            listed: true,
            writable: true,
            inuse_at_removal: 0,
            fruitless_removals: 0,
            wants_reclaim: false,
            discarding: Vec::new(),
            continued: std::collections::BTreeMap::new(),
            cfg,
        };
        d.mark_unusable(policy);
        d
    }

    /// Counts the header, bad pages, and slots past the end as used. A cluster with such a slot is
    /// not free.
    fn mark_unusable(&mut self, policy: &SwapPolicy) {
        let pages = self.cfg.pages as u32;
        let end = self.clusters.len() * policy.cluster_pages;
        let mut bad: Vec<u32> = self.cfg.bad_pages.iter().map(|&p| p as u32).collect();
        bad.push(0);
        bad.sort_unstable();
        bad.dedup();
        self.usable -= bad.len() as u32;
        let mut touched = Vec::new();
        for offset in bad.into_iter().chain(pages..end) {
            let (c, at) = self.place(offset);
            self.clusters.slots_mut(c).map[at] = BAD;
            self.clusters.get_mut(c).count += 1;
            if touched.last() != Some(&c) {
                touched.push(c);
            }
        }
        touched.iter().for_each(|&c| self.clusters.add_unusable(c));
    }

    /// Whether slots come from clusters, or by scanning the map.
    pub(super) fn has_clusters(&self, policy: &SwapPolicy) -> bool {
        !self.cfg.rotational || policy.rotational == SwapRotational::Clusters
    }

    /// Cluster and place in it.
    #[inline]
    pub(super) fn place(&self, offset: u32) -> (u32, usize) {
        (offset >> self.clusters.shift(), (offset & (self.clusters.pages() - 1)) as usize)
    }

    /// The first slot of a cluster.
    pub(super) fn first_of(&self, c: u32) -> u32 {
        c << self.clusters.shift()
    }

    /// The slot of an offset.
    pub(super) fn slot(&self, offset: u32) -> SwapSlot {
        SwapSlot::new(self.number, offset)
    }

    /// The byte of a slot.
    #[inline]
    pub(super) fn byte(&self, offset: u32) -> u8 {
        let (c, at) = self.place(offset);
        self.clusters.get(c).slots.as_ref().map_or(0, |s| s.map[at])
    }

    /// References by page tables.
    pub(super) fn references(&self, offset: u32) -> u32 {
        u32::from(map::count(self.byte(offset))) + self.continued.get(&offset).copied().unwrap_or(0)
    }

    /// Whether a slot is not free.
    pub(super) fn is_taken(&self, offset: u32) -> bool {
        self.byte(offset) != 0
    }

    /// Whether clusters wait to be discarded and nobody is at it.
    pub(super) fn has_discards(&self) -> bool {
        self.discarding.is_empty() && self.clusters.first(super::cluster::ClusterListId::DISCARD).is_some()
    }

    /// Whether every slot is used.
    pub(super) fn is_exhausted(&self) -> bool {
        self.inuse == self.usable
    }
}
