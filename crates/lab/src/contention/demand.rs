//! Needs of a call of the engine for what CPUs share, as steps one after the other.

use super::LockName;

/// Pages that reclaim takes off a list while it holds the lock (`SWAP_CLUSTER_MAX`).
const ISOLATED_AT_ONCE: u64 = 32;
/// Slots that a per-CPU cache takes or gives back at a time.
const SLOTS_AT_ONCE: u64 = 64;

/// Locks that the kernel has, and nanoseconds that each is held for a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LockHolds {
    /// Hold time of the lruvec lock for each page scanned, put on a list or taken off.
    pub(crate) lru_page_ns: u64,
    /// Pages that are put on a list at once (`struct folio_batch`).
    pub(crate) lru_batch: u64,
    /// Slots of swap are taken and given back under a lock of the device.
    pub(crate) swap_device_lock: bool,
    /// CPUs have caches of slots.
    pub(crate) slot_cache: bool,
    /// Hold time of the device lock for a slot that is given back.
    pub(crate) slot_ns: u64,
    /// zsmalloc has a lock for the pool, not one for each size.
    pub(crate) zsmalloc_pool_lock: bool,
    /// Hold time of the pool lock for an object that is made or freed.
    pub(crate) zsmalloc_ns: u64,
    /// Faults take a lock of their area, not of their program.
    pub(crate) lock_per_area: bool,
}

/// Work of a call, as it concerns locks and other CPUs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Demand {
    /// Flushes of TLBs: the programs that had the pages mapped.
    pub(crate) flushes: Vec<Vec<u32>>,
    /// Pages that reclaim looked at.
    pub(crate) scanned: u64,
    /// Pages that were freed, by group.
    pub(crate) freed: Vec<(u32, u64)>,
    /// Requests for slots, the nanoseconds they took together, and the device of the slots.
    pub(crate) slot_calls: u64,
    pub(crate) slot_ns: u64,
    pub(crate) slot_device: u32,
    /// Slots given back, and pages stored in memory, by swap device.
    pub(crate) slots_freed: Vec<(u32, u64)>,
    pub(crate) stored: Vec<(u32, u64)>,
}

impl Demand {
    /// Adds to a list of counts by key.
    pub(crate) fn add(list: &mut Vec<(u32, u64)>, key: u32, count: u64) {
        match list.iter_mut().find(|(k, _)| *k == key) {
            Some((_, n)) => *n += count,
            None => list.push((key, count)),
        }
    }
}

/// One thing that is needed.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ContentionStep<'a> {
    /// A lock, for so long.
    Hold(LockName, u64),
    /// Flush of the TLBs of CPUs that run these programs.
    Flush(&'a [u32]),
}

/// Everything that a call needs, spread evenly over it.
pub(super) fn steps<'a>(demand: &'a Demand, holds: &LockHolds) -> Vec<ContentionStep<'a>> {
    let mut all: Vec<(f64, ContentionStep<'a>)> = Vec::new();
    let mut hold = |name: LockName, times: u64, ns: u64| {
        let place = |i: u64| ((i as f64 + 0.5) / times as f64, ContentionStep::Hold(name, ns));
        all.extend((0..times).filter(|_| ns > 0).map(place));
    };
    let freed: u64 = demand.freed.iter().map(|f| f.1).sum();
    // Pages scanned count for the groups whose pages were freed, in proportion; if none was freed,
    // for the root.
    let none_freed = [(0, 1)];
    let groups = if freed > 0 { &demand.freed[..] } else { &none_freed };
    for &(group, pages) in groups {
        let scanned = demand.scanned * pages / freed.max(1);
        let times = scanned.div_ceil(ISOLATED_AT_ONCE);
        hold(LockName::Lruvec(group), times, scanned * holds.lru_page_ns / times.max(1));
    }
    // A freed page was put on a list once, and is taken off one.
    for &(group, pages) in &demand.freed {
        hold(LockName::Lruvec(group), pages.div_ceil(holds.lru_batch), holds.lru_batch * holds.lru_page_ns);
    }
    let slots_at_once = if holds.slot_cache { SLOTS_AT_ONCE } else { 1 };
    if holds.swap_device_lock {
        let times = demand.slot_calls.div_ceil(slots_at_once);
        hold(LockName::SwapDevice(demand.slot_device), times, demand.slot_ns / times.max(1));
        for &(device, slots) in &demand.slots_freed {
            let at_once = slots_at_once.min(slots.max(1));
            hold(LockName::SwapDevice(device), slots.div_ceil(slots_at_once), at_once * holds.slot_ns);
        }
    }
    if holds.zsmalloc_pool_lock {
        for &(device, pages) in demand.stored.iter().chain(&demand.slots_freed) {
            hold(LockName::Zsmalloc(device), pages, holds.zsmalloc_ns);
        }
    }
    let flushes = demand.flushes.len() as f64;
    let place = |(i, programs): (usize, &'a Vec<u32>)| ((i as f64 + 0.5) / flushes, ContentionStep::Flush(programs));
    all.extend(demand.flushes.iter().enumerate().map(place));
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all.into_iter().map(|(_, step)| step).collect()
}
