//! Limits of anonymous memory that change while it is in use.

use refault_mm::{MemcgLimits, NodeConfig};

use super::budget::{Limits, used_pages};
use super::operations::Operations;
use super::places::WINDOW;
use super::progress_guard::ProgressGuard;
use super::swap_core::Core;
use crate::error::Error;
use crate::uffd::PAGE;

fn pages(bytes: usize) -> u64 {
    if bytes == usize::MAX { u64::MAX } else { (bytes / PAGE) as u64 }
}

impl<O: Operations> Core<O> {
    /// The limits of the group; `max_pages`: that of its pages alone, as long as it is to shrink.
    pub(crate) fn set_group(&mut self, limits: &Limits, max_pages: u64) -> Result<(), Error> {
        let is_ample = limits.swap_max.div_ceil(PAGE) >= self.memory.len();
        let group = MemcgLimits {
            high: pages(limits.memory_high),
            max: max_pages,
            swap_max: if is_ample { u64::MAX } else { pages(limits.swap_max) },
            ..MemcgLimits::default()
        };
        // No more than what is too much, though none of it is free before it is written.
        let usage = self.engine.memcg_usage_pages(self.group);
        let too_much = usage.saturating_sub(group.high.min(group.max));
        self.memory.high.most_leaving = self.memory.leaving.len() + too_much as usize;
        let result = self.engine.set_memcg_limits(&mut self.memory, self.group, &group);
        self.memory.high.most_leaving = usize::MAX;
        result.map_err(Error::Config)
    }

    /// Makes the memory so large. Pages that are still too many were ordered out: what leads to
    /// their leaving is to be done, and then this again. `None`: none are. For want of progress it
    /// is an error.
    pub(crate) fn set_max(&mut self, pages: u64, guard: &mut ProgressGuard) -> Result<Option<u64>, Error> {
        self.charge_overhead();
        let left = self.resize(pages)?;
        self.memory.lowering = left > 0 && guard.goes_on(left, self.is_writing(), self.now_ns);
        if left == 0 {
            return Ok(None);
        }
        if !self.memory.lowering {
            let bytes = left as usize * PAGE;
            return Err(Error::Limit(format!(
                "memory_max {}: {bytes} bytes cannot leave memory; allow more swap, or more memory",
                pages as usize * PAGE
            )));
        }
        self.reclaim(left)?;
        Ok(Some(left))
    }

    /// The limits are as they were asked for: what was charged beyond the old ones is forgotten.
    pub(crate) fn limits_are_set(&mut self, limits: &Limits) {
        self.limits = *limits;
        self.memory.high.holds = limits.memory_high != usize::MAX;
        self.release_held();
        self.wake_all_sleepers();
    }

    /// Orders out `pages` pages: the group's limit is lowered by as many for a moment.
    fn reclaim(&mut self, pages: u64) -> Result<(), Error> {
        let limits = self.limits;
        let usage = self.engine.memcg_usage_pages(self.group);
        self.set_group(&limits, usage.saturating_sub(pages)).and(self.set_group(&limits, u64::MAX))
    }

    /// Pages that are still too many.
    fn resize(&mut self, pages: u64) -> Result<u64, Error> {
        // Pages are never taken from what is below the min mark, so that much of the node may be
        // beyond the limit. Growth of a pool is charged after it was written, and is taken from
        // there; tables grow slowly.
        let min = NodeConfig::new(pages).min_mark_pages();
        let reserve = match (self.budget.overhead_beside, self.limits.zswap_max) {
            (true, _) => min,
            (false, 0) => min.saturating_sub(WINDOW as u64),
            (false, _) => 0,
        };
        let left = self.engine.resize_node(pages + reserve).map_err(Error::Config)?;
        self.budget.set_max(&self.engine, pages);
        Ok(left.max(used_pages(&self.engine).saturating_sub(pages)))
    }

    /// Whether anything is on its way out of memory.
    pub(crate) fn is_writing(&self) -> bool {
        self.engine.memcg_gauges(self.group).iter().any(|g| g.name == "file_writeback" && g.value > 0)
    }
}
