//! The region that an address belongs to, for a signal handler: found without a lock.
//!
//! A place of the table is changed under a lock, and has a version that is odd meanwhile. A reader
//! skips a place that changes: it cannot be that of the address in question, since a region
//! is entered before anyone knows its memory, and removed when nobody uses it any more.

use std::ops::Range;
use std::ptr::null_mut;

use super::Shared;
use crate::error::Error;
use crate::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence};
use crate::sync::{Mutex, MutexGuard};

/// Regions of a process that serve faults in a signal handler.
const PLACES: usize = if cfg!(feature = "shuttle") { 3 } else { 256 };

struct Place {
    version: AtomicU32,
    start: AtomicUsize,
    end: AtomicUsize,
    region: AtomicPtr<Shared>,
}

struct Table {
    places: [Place; PLACES],
    /// All places from here on were never used.
    used: AtomicUsize,
    changes: Mutex<()>,
}

static TABLE: Table = Table::new();

impl Place {
    fn set(&self, range: Range<usize>, region: *mut Shared) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        self.start.store(range.start, Ordering::Relaxed);
        self.end.store(range.end, Ordering::Relaxed);
        self.region.store(region, Ordering::Relaxed);
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }

    fn of(&self, address: usize) -> Option<*mut Shared> {
        let version = self.version.load(Ordering::Acquire);
        let range = self.start.load(Ordering::Relaxed)..self.end.load(Ordering::Relaxed);
        let region = self.region.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let is_whole = version.is_multiple_of(2) && version == self.version.load(Ordering::Relaxed);
        (is_whole && range.contains(&address)).then_some(region)
    }
}

impl Table {
    const fn new() -> Table {
        let places = [const {
            Place {
                version: AtomicU32::new(0),
                start: AtomicUsize::new(0),
                end: AtomicUsize::new(0),
                region: AtomicPtr::new(null_mut()),
            }
        }; PLACES];
        Table { places, used: AtomicUsize::new(0), changes: Mutex::new(()) }
    }

    fn changes(&self) -> MutexGuard<'_, ()> {
        self.changes.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes a place that is free; `None`: there is none.
    fn enter(&self, range: Range<usize>, region: *const Shared) -> Option<usize> {
        let _changes = self.changes();
        let at = self.places.iter().position(|p| p.end.load(Ordering::Relaxed) == 0)?;
        self.places[at].set(range, region.cast_mut());
        self.used.fetch_max(at + 1, Ordering::Release);
        Some(at)
    }

    fn leave(&self, at: usize) {
        let _changes = self.changes();
        self.places[at].set(0..0, null_mut());
    }

    fn find(&self, address: usize) -> Option<*const Shared> {
        let used = self.used.load(Ordering::Acquire);
        self.places[..used].iter().find_map(|p| p.of(address)).map(<*mut Shared>::cast_const)
    }
}

/// A place that is taken, given back when dropped.
pub(super) struct RegistryEntry(usize);

impl Drop for RegistryEntry {
    fn drop(&mut self) {
        TABLE.leave(self.0);
    }
}

/// Enters a region, which has to live until the listing is dropped.
pub(super) fn enter(range: Range<usize>, region: *const Shared) -> Result<RegistryEntry, Error> {
    TABLE.enter(range, region).map(RegistryEntry).ok_or_else(|| {
        Error::Limit(format!("{PLACES} regions serve faults by signal already; drop one, or let threads serve them"))
    })
}

/// The region that an address belongs to.
pub(super) fn find(address: usize) -> Option<*const Shared> {
    TABLE.find(address)
}

/// In a child of `fork`, which has none of the regions: whatever is at their addresses is something
/// else.
pub(super) extern "C" fn forget_all() {
    TABLE.places.iter().for_each(|p| p.set(0..0, null_mut()));
}

#[cfg(all(test, feature = "shuttle"))]
#[path = "schedules.rs"]
mod schedules;

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    /// Nobody follows these pointers.
    fn name(n: usize) -> *const Shared {
        std::ptr::without_provenance(n)
    }

    #[test]
    fn an_address_is_found_while_other_places_change() {
        // Far from anything that is mapped.
        let range = |n: usize| n << 20..(n << 20) + 4096;
        let stays = enter(range(3), name(3)).unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|s| {
            for t in 0..2 {
                let stop = &stop;
                s.spawn(move || {
                    for i in 0..20_000 {
                        let n = 10 + (i + t) % 7;
                        drop(enter(range(n), name(n)).unwrap());
                    }
                    stop.store(true, Ordering::Relaxed);
                });
            }
            while !stop.load(Ordering::Relaxed) {
                assert_eq!(find(range(3).end - 1), Some(name(3)));
                assert_eq!(find(range(3).end), None);
                (10..17).for_each(|n| assert!(find(range(n).start).is_none_or(|r| r == name(n))));
            }
        });
        drop(stays);
        assert_eq!(find(range(3).start), None);
    }
}
