//! The core of a region: that of all drivers, and what a region has beside it.

use std::ops::{Deref, DerefMut};

use refault_mm::MappingId;

use super::frames::Frames;
use super::operations::RegionMemory;
use super::sample::Sampling;
use super::stats::RegionStats;
use crate::core::{self, used_pages};
use crate::evict::LockedCore;
use crate::uffd::PAGE;

/// Core of a region: that of all drivers, with sampling and reuse of frames.
pub(super) struct Core {
    core: core::Core<RegionMemory>,
    /// Its pages.
    pub(super) mapping: MappingId,
    pub(super) sampling: Sampling,
    pub(super) frames: Frames,
    /// Bytes that the pager itself takes at most: with tables that are as large as they can get.
    pub(super) most_own_bytes: usize,
}

impl Deref for Core {
    type Target = core::Core<RegionMemory>;

    fn deref(&self) -> &core::Core<RegionMemory> {
        &self.core
    }
}

impl DerefMut for Core {
    fn deref_mut(&mut self) -> &mut core::Core<RegionMemory> {
        &mut self.core
    }
}

impl LockedCore for Core {
    type EvictorCore = core::Core<RegionMemory>;

    fn set_now(&mut self, now_ns: u64) {
        self.core.set_now(now_ns);
    }

    fn evictor_core(&mut self) -> &mut core::Core<RegionMemory> {
        &mut self.core
    }

    fn charge_overhead(&mut self) {
        self.core.charge_overhead();
    }
}

impl Core {
    pub(super) fn new(core: core::Core<RegionMemory>, mapping: MappingId, sampling: Sampling) -> Core {
        let mut core = Core { core, mapping, sampling, frames: Frames::default(), most_own_bytes: 0 };
        core.set_most_frames();
        core.keep_samples();
        core
    }

    pub(super) fn stats(&self) -> RegionStats {
        let area = self.memory.area.stats();
        RegionStats {
            counts: self.memory.counts,
            limits: self.limits,
            max_pages: self.budget.max_pages,
            memory_pages: used_pages(&self.engine),
            peak_pages: self.budget.peak_pages,
            overhead_pages: (self.own_bytes() + area.usage.memory_bytes as usize).div_ceil(PAGE) as u64,
            own_bytes: self.own_bytes() as u64,
            store_bytes: area.usage.memory_bytes,
            staged_pages: self.memory.places.in_use(),
            swap_pages: self.engine.swap_used_pages(),
            events: self.engine.memcg_events(self.group),
            area,
            awake: Default::default(),
            sizes: self.engine.size_stats().clone(),
            samples: self.sampling.stats(),
            vmstat: self.engine.vmstat().iter().collect(),
        }
    }

    /// The invariants.
    pub(super) fn validate(&self) -> Result<(), String> {
        self.core.validate()?;
        self.sampling.validate()
    }
}
