//! A store that fails as it is told: for tests of its users.
//!
//! Calls that fail by plan ([`crate::calls`]) are not enough for that. A store can give back an
//! older content of a slot, or half of a page, which no single call can; that is told by the number
//! of its operation, of a pool (which makes no call) as of a file, and without a file on any
//! medium.

use std::sync::Mutex;
use std::time::Duration;

use super::{Page, Store, StoreError, Usage};
use crate::uffd::PAGE;

/// Fault of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The read fails (`EIO`).
    ReadFails,
    /// The read says that it went well, with one bit flipped.
    ReadFlipsABit,
    /// The read delivers what was in the slot before.
    ReadIsStale,
    /// The write fails (`EIO`).
    WriteFails,
    /// There is no room.
    WriteIsFull,
    /// The write says that it went well, but only half of the page was written.
    WriteIsTorn,
    /// The write says that it went well, but nothing was written.
    WriteIsLost,
    /// The operation takes this many milliseconds, and then goes well.
    Stalls(u64),
}

impl Fault {
    fn is_of_write(self) -> bool {
        matches!(self, Fault::WriteFails | Fault::WriteIsFull | Fault::WriteIsTorn | Fault::WriteIsLost)
    }
}

/// When: asked with the number of the operation (reads and writes count together, from 0) and
/// whether it is a write.
type Plan = Box<dyn FnMut(u64, bool) -> Option<Fault> + Send>;

struct State {
    plan: Plan,
    operations: u64,
    /// Content of each slot before the one that it has now.
    before: Vec<Option<Box<Page>>>,
    now: Vec<Option<Box<Page>>>,
}

/// A store with faults by plan. It says that it is a file, and is none. It keeps what slots held
/// before, freed or not: a stale page is at hand.
pub struct Faulty {
    state: Mutex<State>,
    takes_no_memory: bool,
}

impl Faulty {
    /// With a plan. A fault of reading that is given for a write, or the reverse, is none.
    pub fn new(plan: impl FnMut(u64, bool) -> Option<Fault> + Send + 'static) -> Faulty {
        let state = State { plan: Box::new(plan), operations: 0, before: Vec::new(), now: Vec::new() };
        Faulty { state: Mutex::new(state), takes_no_memory: false }
    }

    /// Whether pages that were read keep their slots, as in a file.
    #[must_use]
    pub fn with_copies(self, keeps_copies: bool) -> Faulty {
        Faulty { takes_no_memory: keeps_copies, ..self }
    }

    fn begin(&self, slot: u32, write: bool) -> (std::sync::MutexGuard<'_, State>, Option<Fault>) {
        let mut state = self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let n = state.operations;
        state.operations += 1;
        let fault = (state.plan)(n, write).filter(|f| matches!(f, Fault::Stalls(_)) || f.is_of_write() == write);
        if let Some(Fault::Stalls(ms)) = fault {
            drop(state);
            std::thread::sleep(Duration::from_millis(ms));
            state = self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        if state.now.len() <= slot as usize {
            state.now.resize(slot as usize + 1, None);
            state.before.resize(slot as usize + 1, None);
        }
        (state, fault)
    }
}

fn eio() -> StoreError {
    StoreError::Io(std::io::Error::from_raw_os_error(libc::EIO))
}

impl Store for Faulty {
    fn write(&self, slot: u32, page: &Page) -> Result<(), StoreError> {
        let (mut state, fault) = self.begin(slot, true);
        let mut content = Box::new(*page);
        let old = state.now[slot as usize].clone();
        match fault {
            Some(Fault::WriteFails) => return Err(eio()),
            Some(Fault::WriteIsFull) => return Err(StoreError::Full),
            Some(Fault::WriteIsLost) => return Ok(()),
            Some(Fault::WriteIsTorn) => {
                let rest = old.as_ref().map_or([0; PAGE], |p| **p);
                content[PAGE / 2..].copy_from_slice(&rest[PAGE / 2..]);
            }
            _ => {}
        }
        state.before[slot as usize] = old;
        state.now[slot as usize] = Some(content);
        Ok(())
    }

    fn read(&self, slot: u32, page: &mut Page) -> Result<(), StoreError> {
        let (state, fault) = self.begin(slot, false);
        if fault == Some(Fault::ReadFails) {
            return Err(eio());
        }
        let held = match fault {
            Some(Fault::ReadIsStale) => state.before[slot as usize].as_ref(),
            _ => state.now[slot as usize].as_ref(),
        };
        page.copy_from_slice(&**held.ok_or(StoreError::Absent)?);
        if fault == Some(Fault::ReadFlipsABit) {
            page[slot as usize % PAGE] ^= 1 << (slot % 8);
        }
        Ok(())
    }

    fn free(&self, _slot: u32) {}

    fn takes_no_memory(&self, _slot: u32) -> bool {
        self.takes_no_memory
    }

    fn usage(&self) -> Usage {
        let state = self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let pages = state.now.iter().filter(|p| p.is_some()).count() as u64;
        Usage { file_pages: pages, ..Usage::default() }
    }
}
