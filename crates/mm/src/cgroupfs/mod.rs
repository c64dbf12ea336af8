//! Memory cgroups as an administrator sees them: limits, `memory.reclaim`, `memory.high`, moves,
//! and the choice of a task to kill.
//!
//! | file | what is in it |
//! |---|---|
//! | `limits` | setting limits |
//! | `memory_reclaim` | `memory.reclaim` |
//! | `memory_high` | `memory.high` |
//! | `move_mapping` | moving a mapping to another group |
//! | `oom` | choice of a task to kill |
//!
//! It may call: `alloc` and what is below it. It is called by: the driver.

use crate::alloc::Alloc;
use crate::memory::Memory;
use crate::reclaim::Reclaim;
use crate::scan::ScanControl;

pub(crate) mod limits;
pub(crate) mod memory_high;
pub(crate) mod memory_reclaim;
pub(crate) mod move_mapping;
pub(crate) mod oom;

/// Access to all of the memory for changes of groups: reclaim may change any part of it.
pub(crate) struct Cgroupfs<'a, W> {
    pub(crate) mem: &'a mut Memory,
    pub(crate) world: &'a mut W,
}

impl<W> Cgroupfs<'_, W> {
    /// A reclaim that aims at what `sc` says.
    #[inline(always)]
    pub(crate) fn reclaim_with(&mut self, sc: ScanControl) -> Reclaim<'_, W> {
        Reclaim { mem: self.mem, world: self.world, sc }
    }

    /// See [`Alloc`].
    #[inline(always)]
    pub(crate) fn alloc(&mut self) -> Alloc<'_, W> {
        Alloc { mem: self.mem, world: self.world }
    }
}
