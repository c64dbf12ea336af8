//! Facts that the engine needs to decide how large the pool is ([`PoolBalance`]): when each page
//! left memory, and what loads and stores take.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::control::{PoolBalance, PoolBalanceStats, PoolExtent, PoolTier};

use super::sparse::{Entry, Sparse};
use crate::threads::nanoseconds;
use crate::uffd::PAGE;

/// When the page of a slot left memory, in pages that had left by then. 0: there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stamp(u32);

impl Entry for Stamp {
    const VACANT: Stamp = Stamp(0);

    fn is_vacant(&self) -> bool {
        *self == Stamp::VACANT
    }
}

#[derive(Debug)]
struct State {
    balance: PoolBalance,
    stamps: Sparse<Stamp>,
    clock: u32,
}

impl State {
    fn distance(&self, slot: u32) -> Option<u64> {
        let Stamp(at) = self.stamps.get(slot);
        (at != 0).then(|| u64::from(self.clock.wrapping_sub(at)))
    }
}

/// Where a page is to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Destination {
    /// To the pool, if it shrinks.
    Pool,
    /// To the device.
    Device,
    /// To the device, but what the pool would make of it is to be found out.
    Trial,
}

/// A pool whose size the engine decides.
#[derive(Debug)]
pub(super) struct Tuner {
    state: Mutex<State>,
    /// There is something to decide, or the pool is beyond its target.
    due: AtomicBool,
}

fn ns_since(begun: Instant) -> u64 {
    begun.elapsed().as_nanos() as u64
}

impl Tuner {
    pub(super) fn new(max_bytes: usize) -> Tuner {
        let balance = PoolBalance::new((max_bytes / PAGE) as u64);
        let state = State { balance, stamps: Sparse::new(), clock: 0 };
        Tuner { state: Mutex::new(state), due: AtomicBool::new(false) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A page left memory: to this slot, or to none.
    pub(super) fn left(&self, slot: Option<u32>) {
        let mut s = self.lock();
        s.clock = s.clock.wrapping_add(1).max(1);
        let now = Stamp(s.clock);
        if let Some(slot) = slot {
            s.stamps.change(slot, |stamp| *stamp = now);
        }
    }

    /// A page whose slot holds it already left memory.
    pub(super) fn left_unwritten(&self, slot: u32) {
        self.left(Some(slot));
        self.lock().balance.stored(PoolTier::Device, 1, 0);
    }

    /// The slot holds nothing any more.
    pub(super) fn forget(&self, slot: u32) {
        self.lock().stamps.change(slot, |stamp| *stamp = Stamp::VACANT);
    }

    /// The way of the next page.
    pub(super) fn way(&self) -> Destination {
        let mut s = self.lock();
        match (s.balance.tries_other(), s.balance.is_off()) {
            (false, false) => Destination::Pool,
            (true, true) => Destination::Trial,
            _ => Destination::Device,
        }
    }

    /// Pages came back, of slots that follow one another.
    pub(super) fn loaded(&self, tier: PoolTier, first: u32, pages: usize, begun: Instant) {
        let each = ns_since(begun) / pages.max(1) as u64;
        let mut s = self.lock();
        for slot in first..first + pages as u32 {
            if let Some(distance) = s.distance(slot) {
                s.balance.loaded(tier, distance, each);
            }
        }
        if s.balance.is_due() {
            self.due.store(true, Ordering::Relaxed);
        }
    }

    /// Pages were stored on the device, in `took` of processor time. No program waits for these
    /// writes, so by the clock the device would seem dearer than it is.
    pub(super) fn stored_below(&self, pages: usize, took: Duration) {
        self.lock().balance.stored(PoolTier::Device, pages as u64, nanoseconds(took));
    }

    /// A page was compressed, and is as long now, or not worth it.
    pub(super) fn packed(&self, bytes: Option<usize>, begun: Instant) {
        let ns = ns_since(begun);
        let mut s = self.lock();
        s.balance.packed(bytes.map(|b| b as u64));
        s.balance.stored(PoolTier::Pool, 1, ns);
    }

    /// A fault on a page that was away was served.
    pub(super) fn fault_served(&self, ns: u64) {
        self.lock().balance.fault_served(ns);
    }

    /// Bytes that the pool may take now.
    pub(super) fn target_bytes(&self) -> usize {
        self.lock().balance.target_pages() as usize * PAGE
    }

    /// Another limit.
    pub(super) fn set_max(&self, bytes: usize) {
        self.lock().balance.set_max_pages((bytes / PAGE) as u64);
    }

    /// The device takes no more pages: the pool gets all that it may have. Whether that is more
    /// than it had.
    pub(super) fn device_is_full(&self) -> bool {
        let mut s = self.lock();
        let before = s.balance.target_pages();
        s.balance.device_is_full();
        s.balance.target_pages() > before
    }

    /// Decides, if it is time. The coldest page of the pool is in that slot.
    pub(super) fn decide(&self, pool_bytes: usize, coldest: Option<u32>) {
        let mut s = self.lock();
        let reach = coldest.and_then(|slot| s.distance(slot)).unwrap_or(0);
        s.balance.decide(PoolExtent { pages: pool_bytes.div_ceil(PAGE) as u64, reach });
    }

    /// Whether there is something to do.
    pub(super) fn is_due(&self) -> bool {
        self.due.load(Ordering::Relaxed)
    }

    /// Whether there will be something to do, but for a window that is full.
    pub(super) fn set_due(&self, due: bool) {
        self.due.store(due, Ordering::Relaxed);
    }

    pub(super) fn stats(&self) -> PoolBalanceStats {
        self.lock().balance.stats()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let s = self.lock();
        s.stamps.memory_bytes() + s.balance.memory_bytes()
    }

    #[cfg(test)]
    pub(super) fn validate(&self) {
        self.lock().balance.validate().unwrap();
    }
}
