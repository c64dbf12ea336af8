//! Memory cgroups: charges, their limits, and the batches in which charges are taken.

use crate::ids::{LruvecId, MemcgId};
use crate::memcg::protection::Protection;
use crate::memcg::tree::MemcgLinks;
use crate::memcg::zswap_charge::MemcgZswap;

/// Bytes charged for a 64-slot tree node: 576 of the object and 8 of its owner pointer; 7 fit a
/// page.
pub(crate) const NODE_CHARGE_BYTES: u64 = 584;
/// Bytes of a page.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// `memory.events`, and `memory.events.local`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemcgEvents {
    /// Times that the group was reclaimed although it was below its `memory.low`.
    pub low: u64,
    /// Times that the group was reclaimed because it was above its `memory.high`.
    pub high: u64,
    /// Times a charge met the limit.
    pub max: u64,
    /// Times reclaim could not make room.
    pub oom: u64,
    /// Tasks that were killed.
    pub oom_kill: u64,
    /// Times that all its tasks were killed together.
    pub oom_group_kill: u64,
    /// `memory.swap.events`: times one of its tasks went on while it was above its
    /// `memory.swap.high`.
    pub swap_high: u64,
    /// `memory.swap.events`: times a page was kept because of a limit on swap.
    pub swap_max: u64,
    /// Times a page was kept because of a limit on swap, or because no device had a slot for it.
    pub swap_fail: u64,
}

impl MemcgEvents {
    /// Names and values, in the order of the kernel.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("low", self.low),
            ("high", self.high),
            ("max", self.max),
            ("oom", self.oom),
            ("oom_kill", self.oom_kill),
            ("oom_group_kill", self.oom_group_kill),
        ]
        .into_iter()
    }

    /// The events of `memory.swap.events`.
    pub fn swap_iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [("high", self.swap_high), ("max", self.swap_max), ("fail", self.swap_fail)].into_iter()
    }
}

/// Limits that can be set of a group, in pages; `u64::MAX` is `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemcgLimits {
    /// `memory.min`: usage below which nothing is reclaimed.
    pub min: u64,
    /// `memory.low`: usage below which nothing is reclaimed while other groups have something to
    /// give.
    pub low: u64,
    /// `memory.high`: usage above which tasks of the group reclaim, then sleep.
    pub high: u64,
    /// `memory.max`: usage above which nothing is charged.
    pub max: u64,
    /// `memory.swap.high`: swap usage above which tasks of the group sleep.
    pub swap_high: u64,
    /// `memory.swap.max`.
    pub swap_max: u64,
    /// `memory.zswap.max`.
    pub zswap_max: u64,
    /// `memory.zswap.writeback`: without it nothing of the group goes from zswap to the device.
    pub zswap_writeback: bool,
    /// Swappiness of the group; none: that of the machine.
    pub swappiness: Option<u32>,
    /// `memory.oom.group`: its tasks are killed together or not at all.
    pub oom_group: bool,
}

impl Default for MemcgLimits {
    fn default() -> MemcgLimits {
        MemcgLimits {
            min: 0,
            low: 0,
            high: u64::MAX,
            max: u64::MAX,
            swap_high: u64::MAX,
            swap_max: u64::MAX,
            zswap_max: u64::MAX,
            zswap_writeback: true,
            swappiness: None,
            oom_group: false,
        }
    }
}

/// Presence of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemcgState {
    /// The group exists.
    Online,
    /// The group was removed, and something is still charged to it.
    Offline,
    /// The group was removed, and nothing is charged to it; only shadows may name it.
    Gone,
}

/// One memory cgroup.
#[derive(Clone, Debug)]
pub(crate) struct Memcg {
    pub(crate) parent: Option<MemcgId>,
    pub(crate) links: MemcgLinks,
    pub(crate) state: MemcgState,
    pub(crate) name: String,
    /// Lruvec of the group on the first node; its lruvecs on the other nodes have the next numbers.
    pub(crate) lruvec: LruvecId,
    /// Pages charged, those in the stock and of descendants included.
    pub(crate) usage: u64,
    pub(crate) max: u64,
    pub(crate) high: u64,
    pub(crate) peak: u64,
    /// Usage in pages that is tolerated above `max`: the usage when the limit was lowered, or after
    /// a charge that could not fail.
    pub(crate) tolerated: u64,
    pub(crate) protection: Protection,
    pub(crate) swappiness: Option<u32>,
    pub(crate) oom_group: bool,
    /// Pages charged ahead and not used yet.
    pub(crate) stock: u64,
    /// Bytes of a charged page that no kernel object uses yet.
    pub(crate) obj_bytes: u64,
    /// Pages charged for kernel objects.
    pub(crate) kernel: u64,
    /// Pages of page tables among `kernel`.
    pub(crate) page_tables: u64,
    /// Pages charged for what the engine does not see.
    pub(crate) reserved: u64,
    /// Tree nodes that exist.
    pub(crate) nodes: u64,
    pub(crate) swap_usage: u64,
    /// Slots of `swap_usage` that are charged to the group itself, not to its descendants.
    pub(crate) swap_own: u64,
    pub(crate) swap_max: u64,
    pub(crate) swap_high: u64,
    pub(crate) zswap_max: u64,
    pub(crate) dirty: u64,
    pub(crate) writeback: u64,
    pub(crate) swap_cached: u64,
    pub(crate) zswap: MemcgZswap,
    /// Events of the group and its descendants, and of the group alone.
    pub(crate) events: MemcgEvents,
    pub(crate) events_local: MemcgEvents,
}

impl Memcg {
    pub(crate) fn new(parent: Option<MemcgId>, name: &str, lruvec: LruvecId, max: u64, swap_max: u64) -> Memcg {
        Memcg {
            parent,
            links: MemcgLinks::default(),
            state: MemcgState::Online,
            name: name.into(),
            lruvec,
            usage: 0,
            max,
            high: u64::MAX,
            peak: 0,
            tolerated: 0,
            protection: Protection::default(),
            swappiness: None,
            oom_group: false,
            stock: 0,
            obj_bytes: 0,
            kernel: 0,
            page_tables: 0,
            reserved: 0,
            nodes: 0,
            swap_usage: 0,
            swap_own: 0,
            swap_max,
            swap_high: u64::MAX,
            zswap_max: u64::MAX,
            dirty: 0,
            writeback: 0,
            swap_cached: 0,
            zswap: MemcgZswap::default(),
            events: MemcgEvents::default(),
            events_local: MemcgEvents::default(),
        }
    }

    pub(crate) fn is_online(&self) -> bool {
        self.state == MemcgState::Online
    }
}

/// The tree. The root is number 0 and has no limit.
#[derive(Clone, Debug)]
pub(crate) struct Memcgs {
    pub(crate) all: Vec<Memcg>,
    pub(crate) charge_batch: u64,
    /// Groups that keep a stock, the one that had it first at the front, and how many may.
    pub(crate) stocked: Vec<MemcgId>,
    pub(crate) max_stocked: usize,
    /// With what the ancestors leave unclaimed (`memory_recursiveprot`).
    pub(crate) recursive_protection: bool,
    /// Whether any group has `min` or `low`, and whether any has `high` or `swap.high`.
    pub(crate) any_protected: bool,
    pub(crate) any_high: bool,
    /// Pages that the call under way charged to groups above their `high`, and to which group.
    pub(crate) over_high: Option<(MemcgId, u64)>,
    /// Groups that were removed and have something charged to them.
    pub(crate) offline: Vec<MemcgId>,
    /// Groups that are gone, whose numbers shadows may still name.
    pub(crate) gone: Vec<MemcgId>,
    /// Numbers of groups that no shadow names: free for new groups.
    pub(crate) unused: Vec<MemcgId>,
}

impl Memcgs {
    pub(crate) fn new(charge_batch: u64, recursive_protection: bool) -> Memcgs {
        let root = Memcg::new(None, "/", LruvecId(0), u64::MAX, u64::MAX);
        Memcgs {
            all: vec![root],
            charge_batch,
            stocked: Vec::new(),
            max_stocked: usize::MAX,
            recursive_protection,
            any_protected: false,
            any_high: false,
            over_high: None,
            offline: Vec::new(),
            gone: Vec::new(),
            unused: Vec::new(),
        }
    }

    #[inline(always)]
    pub(crate) fn get(&self, id: MemcgId) -> &Memcg {
        &self.all[id.index()]
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, id: MemcgId) -> &mut Memcg {
        &mut self.all[id.index()]
    }

    /// `id` and its ancestors.
    pub(crate) fn chain(&self, id: MemcgId) -> impl Iterator<Item = MemcgId> + '_ {
        std::iter::successors(Some(id), |&m| self.get(m).parent)
    }

    /// Counts an event of a group, for the group and for all its ancestors but the root.
    pub(crate) fn event(&mut self, id: MemcgId, which: fn(&mut MemcgEvents) -> &mut u64) {
        *which(&mut self.get_mut(id).events_local) += 1;
        let mut at = Some(id);
        while let Some(m) = at.filter(|&m| m == id || m != MemcgId::ROOT) {
            let m = self.get_mut(m);
            *which(&mut m.events) += 1;
            at = m.parent;
        }
    }

    /// Lets usage that is above a limit now stay, here and above.
    pub(crate) fn tolerate(&mut self, id: MemcgId) {
        let mut at = Some(id);
        while let Some(m) = at {
            let m = self.get_mut(m);
            if m.usage > m.max {
                m.tolerated = m.usage;
            }
            at = m.parent;
        }
    }

    /// Takes `nr` pages from the stock, or charges a batch, or just `nr`. On failure names the
    /// memcg over its limit.
    #[inline(always)]
    pub(crate) fn try_charge(&mut self, id: MemcgId, nr: u64, batch: bool) -> Result<(), MemcgId> {
        let m = self.get_mut(id);
        if m.stock >= nr {
            m.stock -= nr;
            return Ok(());
        }
        // A group at its own limit need not ask its ancestors.
        let room = m.max.saturating_sub(m.usage);
        if room < nr {
            return Err(id);
        }
        if batch && self.charge_batch > nr && room >= self.charge_batch {
            return self.charge_ahead(id, nr);
        }
        self.charge_counter(id, nr)?;
        self.note_high(id, nr);
        Ok(())
    }

    /// Charges a batch of pages, `nr` of which are used now; or only `nr`, if an ancestor has no
    /// room for a batch.
    fn charge_ahead(&mut self, id: MemcgId, nr: u64) -> Result<(), MemcgId> {
        if self.charge_counter(id, self.charge_batch).is_err() {
            self.charge_counter(id, nr)?;
            self.note_high(id, nr);
            return Ok(());
        }
        self.refill_stock(id, self.charge_batch - nr);
        self.note_high(id, self.charge_batch);
        Ok(())
    }

    /// Charges `nr` pages, which fit under the limit of the group itself, if they fit under the
    /// limits of its ancestors.
    #[inline(always)]
    fn charge_counter(&mut self, id: MemcgId, nr: u64) -> Result<(), MemcgId> {
        // Its own room is known to be enough, and that of the root has no end.
        let mut at = self.get(id).parent;
        while let Some(above) = at.filter(|&a| a != MemcgId::ROOT) {
            let m = self.get(above);
            if m.max.saturating_sub(m.usage) < nr {
                return Err(above);
            }
            at = m.parent;
        }
        self.force_charge(id, nr);
        debug_assert!(self.get(id).usage <= self.get(id).max, "what was charged fits");
        Ok(())
    }

    /// Charges beyond the limit: for what cannot fail.
    #[inline]
    pub(crate) fn force_charge(&mut self, id: MemcgId, nr: u64) {
        let mut at = Some(id);
        while let Some(id) = at {
            let m = self.get_mut(id);
            m.usage += nr;
            m.peak = m.peak.max(m.usage);
            if m.usage > m.max {
                m.tolerated = m.usage;
            }
            at = m.parent;
        }
        if self.any_protected {
            self.propagate_protections(id);
        }
    }

    #[inline]
    pub(crate) fn uncharge(&mut self, id: MemcgId, nr: u64) {
        let mut at = Some(id);
        while let Some(id) = at {
            let m = self.get_mut(id);
            debug_assert!(m.usage >= nr, "{} of {} pages are uncharged", nr, m.usage);
            m.usage -= nr;
            at = m.parent;
        }
        if self.any_protected {
            self.propagate_protections(id);
        }
    }

    /// Pages that can still be charged before a limit is met.
    pub(crate) fn margin(&self, id: MemcgId) -> u64 {
        let m = self.get(id);
        m.max.saturating_sub(m.usage)
    }

    /// Takes the bytes of a kernel object from the charged remainder of a page.
    pub(crate) fn consume_object(&mut self, id: MemcgId, bytes: u64) -> bool {
        let m = self.get_mut(id);
        let enough = m.obj_bytes >= bytes;
        if enough {
            m.obj_bytes -= bytes;
        }
        enough
    }

    /// Counts a page that was charged for kernel objects, `used` bytes of which are taken.
    pub(crate) fn add_object_page(&mut self, id: MemcgId, used: u64) {
        let m = self.get_mut(id);
        m.kernel += 1;
        m.obj_bytes += PAGE_BYTES - used;
    }

    /// A kernel object is freed. Whole pages go back, by way of the stock; returns how many.
    pub(crate) fn free_object(&mut self, id: MemcgId, bytes: u64) -> u64 {
        let m = self.get_mut(id);
        m.obj_bytes += bytes;
        if m.obj_bytes <= PAGE_BYTES {
            return 0;
        }
        let pages = m.obj_bytes / PAGE_BYTES;
        m.obj_bytes %= PAGE_BYTES;
        m.kernel -= pages;
        self.refill_stock(id, pages);
        pages
    }

    /// Swap that a memcg may still use, given what the device has left.
    pub(crate) fn swap_room(&self, id: MemcgId, device_free: u64) -> u64 {
        let room = |m: MemcgId| self.get(m).swap_max.saturating_sub(self.get(m).swap_usage);
        self.chain(id).map(room).fold(device_free, u64::min)
    }

    /// Adds to (or takes from) the swap usage of a memcg and its ancestors.
    pub(crate) fn add_swap(&mut self, id: MemcgId, nr: i64) {
        let own = &mut self.get_mut(id).swap_own;
        *own = own.checked_add_signed(nr).expect("swap usage never goes below zero");
        let mut at = Some(id);
        while let Some(m) = at {
            let m = self.get_mut(m);
            m.swap_usage = m.swap_usage.checked_add_signed(nr).expect("swap usage never goes below zero");
            at = m.parent;
        }
    }

    /// A page could not be swapped out: because of a limit, or because there was no slot.
    pub(crate) fn note_swap_failed(&mut self, id: MemcgId, limit: bool) {
        let over = |m: &Memcg| m.swap_usage >= m.swap_max;
        let at_limit = if limit { self.chain(id).find(|&m| over(self.get(m))) } else { None };
        if limit {
            self.event(at_limit.unwrap_or(id), |e| &mut e.swap_max);
        }
        self.event(id, |e| &mut e.swap_fail);
    }

    /// The half rule for one memcg: usage·2 ≥ its high or its limit.
    pub(crate) fn swap_is_half_used(&self, id: MemcgId) -> bool {
        let half_used = |m: &Memcg| {
            let bound = m.swap_max.min(m.swap_high);
            bound != u64::MAX && m.swap_usage * 2 >= bound
        };
        self.chain(id).any(|m| half_used(self.get(m)))
    }
}
