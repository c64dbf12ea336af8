//! Where pages go that are not in memory: a compressed pool, a swap file, or the pool before the
//! file.
//!
//! [`SwapArea`] is what the pager talks to. It holds a [`Store`] and adds what no store can promise
//! of itself: that what comes back is what was given.

mod area;
mod batches;
mod codec;
mod faulty;
mod file;
mod polled;
mod pool;
mod ring;
mod slab;
mod sparse;
#[cfg(test)]
mod tests;
mod tiers;
mod tuner;

use std::fmt;
use std::io;

pub use area::{AreaStats, CowSwap, SwapArea};
pub use codec::Codec;
pub use faulty::{Fault, Faulty};
pub use file::{FileStore, SwapIo, nameless_file, swap_directory};
pub use pool::Pool;
pub use tiers::TieredStore;

use crate::control::PollingStats;

use crate::uffd::PAGE;

/// The content of a page.
pub type Page = [u8; PAGE];

/// A buffer for a page, aligned as direct I/O wants it.
#[repr(C, align(4096))]
#[derive(Clone)]
pub struct PageBuf(pub Page);

impl PageBuf {
    /// The bytes of pages that lie side by side.
    pub(crate) fn bytes_of(pages: &mut [PageBuf]) -> &mut [u8] {
        // SAFETY: the struct is a page of bytes, as long as it is aligned, so there is nothing
        // between them; the borrow goes over.
        unsafe { std::slice::from_raw_parts_mut(pages.as_mut_ptr().cast(), std::mem::size_of_val(pages)) }
    }
}

impl Default for PageBuf {
    fn default() -> Self {
        PageBuf([0; PAGE])
    }
}

/// Why a store could not do what it was asked.
#[derive(Debug)]
pub enum StoreError {
    /// There is no room.
    Full,
    /// Nothing was ever written to this slot, or it was freed.
    Absent,
    /// The content there is not what was written.
    Corrupt(&'static str),
    /// The system said no.
    Io(io::Error),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Full => f.write_str("no room"),
            StoreError::Absent => f.write_str("the slot is empty"),
            StoreError::Corrupt(what) => write!(f, "corrupt: {what}"),
            StoreError::Io(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for StoreError {}

/// Content and memory of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Pages in memory.
    pub pool_pages: u64,
    /// Bytes that the pool may take for pages now.
    pub pool_limit_bytes: u64,
    /// Times that the pool was made smaller, and larger, since its size adapts.
    pub pool_moves: (u64, u64),
    /// Bytes of memory, with everything the store needs for itself.
    pub memory_bytes: u64,
    /// Pages on disk.
    pub file_pages: u64,
    /// Pages that went from memory to disk since the start.
    pub written_back: u64,
    /// Outcomes of waits for reads from disk, where they are polled for.
    pub polling: PollingStats,
}

/// Events that a store can be told of because it does not see them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Note {
    /// A page left memory and was not written: its slot, that holds it already, or none, for it is
    /// kept elsewhere.
    LeftUnwritten(Option<u32>),
    /// A fault on a page that was out of memory was served, in this many nanoseconds in all.
    FaultServed {
        /// From the fault, as far as that is known, until the page was in place.
        ns: u64,
    },
}

/// A set of slots that hold a page each. The pager never has two operations on one slot at a time;
/// on different slots it has.
pub trait Store: Send + Sync {
    /// Puts a page in a slot, in place of what may be there. After an error the slot holds nothing.
    fn write(&self, slot: u32, page: &Page) -> Result<(), StoreError>;

    /// Writes several pages, each to a slot of its own; returns the result of each.
    fn write_many(&self, pages: &[(u32, &Page)]) -> Vec<Result<(), StoreError>> {
        pages.iter().map(|&(slot, page)| self.write(slot, page)).collect()
    }

    /// Gets it back.
    fn read(&self, slot: u32, page: &mut Page) -> Result<(), StoreError>;

    /// The slot holds nothing from now on.
    fn free(&self, slot: u32);

    /// Pages that it holds and memory that it takes.
    fn usage(&self) -> Usage;

    /// Whether [`Store::write_many`] and [`Store::read_run`] are faster than one page at a time.
    fn takes_runs(&self) -> bool {
        false
    }

    /// Gets back pages of slots that follow one another. After an error `pages` hold anything.
    fn read_run(&self, first: u32, pages: &mut [&mut Page]) -> Result<(), StoreError> {
        pages.iter_mut().zip(first..).try_for_each(|(page, slot)| self.read(slot, page))
    }

    /// Whether a read may wait for a device.
    fn reads_wait(&self) -> bool {
        true
    }

    /// Whether most writes wait for a device.
    fn writes_wait(&self) -> bool {
        self.reads_wait()
    }

    /// Whether the page of a slot takes no memory here, so that it may as well stay when it was
    /// read.
    fn takes_no_memory(&self, _slot: u32) -> bool {
        false
    }

    /// Another limit of what it takes of memory for pages, not above the first one. Pages beyond it
    /// stay where they are.
    fn set_pool_limit(&self, _bytes: usize) {}

    /// Writes some of what is beyond that limit to disk, if it has one. Whether there is more.
    fn shrink_pool(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Something happened that it may want to know of.
    fn note(&self, _note: Note) {}

    /// Whether [`Store::tend`] has something to do.
    fn wants_tending(&self) -> bool {
        false
    }

    /// Does some of what can wait: for a thread for which nobody waits.
    fn tend(&self) {}

    /// There is no room for pages, and nothing to reclaim: gives memory for it, if it can keep what
    /// is there elsewhere. Whether any.
    fn give_room(&self) -> bool {
        false
    }
}

impl<S: Store + ?Sized> Store for Box<S> {
    fn write(&self, slot: u32, page: &Page) -> Result<(), StoreError> {
        (**self).write(slot, page)
    }

    fn write_many(&self, pages: &[(u32, &Page)]) -> Vec<Result<(), StoreError>> {
        (**self).write_many(pages)
    }

    fn read(&self, slot: u32, page: &mut Page) -> Result<(), StoreError> {
        (**self).read(slot, page)
    }

    fn free(&self, slot: u32) {
        (**self).free(slot);
    }

    fn usage(&self) -> Usage {
        (**self).usage()
    }

    fn takes_runs(&self) -> bool {
        (**self).takes_runs()
    }

    fn read_run(&self, first: u32, pages: &mut [&mut Page]) -> Result<(), StoreError> {
        (**self).read_run(first, pages)
    }

    fn reads_wait(&self) -> bool {
        (**self).reads_wait()
    }

    fn writes_wait(&self) -> bool {
        (**self).writes_wait()
    }

    fn takes_no_memory(&self, slot: u32) -> bool {
        (**self).takes_no_memory(slot)
    }

    fn set_pool_limit(&self, bytes: usize) {
        (**self).set_pool_limit(bytes);
    }

    fn shrink_pool(&self) -> Result<bool, StoreError> {
        (**self).shrink_pool()
    }

    fn note(&self, note: Note) {
        (**self).note(note);
    }

    fn wants_tending(&self) -> bool {
        (**self).wants_tending()
    }

    fn tend(&self) {
        (**self).tend();
    }

    fn give_room(&self) -> bool {
        (**self).give_room()
    }
}
