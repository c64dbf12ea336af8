//! Limits of a region, changed while it is in use.

use std::sync::MutexGuard;
use std::time::Duration;

use refault_mm::{MemcgLimits, NodeConfig};

use super::core::Core;
use super::{Region, RegionConfig, Shared, WINDOW};
use crate::error::Error;
use crate::patience::Patience;
use crate::store::Pool;
use crate::uffd::PAGE;

/// The limits of a region, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// `memory.max`: what its pages, the pool and the pager itself may take together.
    pub memory_max: usize,
    /// `memory.high`: beyond it, counted likewise, whoever faults makes room, and waits the longer the further beyond.
    /// `usize::MAX`: never. A region is not made with less than 4 MiB; later any number will do, and slows down whoever faults.
    pub memory_high: usize,
    /// `memory.swap.max`: what may be out of memory, before compression.
    pub swap_max: usize,
    /// `memory.zswap.max`: what the pool may take of the memory. 0 if there is no pool.
    pub zswap_max: usize,
}

impl Limits {
    pub(super) fn of(config: &RegionConfig) -> Limits {
        Limits {
            memory_max: config.memory_max,
            memory_high: config.memory_high,
            swap_max: config.swap_max,
            zswap_max: config.pool.as_ref().map_or(0, |p| p.max_bytes),
        }
    }

    /// What is impossible in them for a region that was made with `made`.
    fn check(&self, made: &RegionConfig) -> Result<(), Error> {
        let first = Limits::of(made);
        let wrong = if self.memory_max < RegionConfig::MIN_MEMORY {
            format!("memory_max is {} bytes; at least 4 MiB", self.memory_max)
        } else if self.memory_max > RegionConfig::MAX_BYTES {
            format!("memory_max is {} bytes; at most 1 TiB", self.memory_max)
        } else if self.swap_max > first.swap_max {
            format!("swap_max is {} bytes; at most the {} that the region was made with", self.swap_max, first.swap_max)
        } else if self.zswap_max > first.zswap_max {
            let most = first.zswap_max;
            format!("zswap_max is {} bytes; at most the {most} that the region was made with", self.zswap_max)
        } else if first.zswap_max > 0 && self.zswap_max < Pool::MIN_BYTES {
            format!("zswap_max is {} bytes; at least {}", self.zswap_max, Pool::MIN_BYTES)
        } else if !made.overhead_beside && self.zswap_max > self.memory_max / 4 * 3 {
            "zswap_max is more than three quarters of memory_max; give the pool less, or more memory".to_string()
        } else {
            return Ok(());
        };
        Err(Error::Config(wrong))
    }
}

impl Region {
    /// The limits as they are.
    pub fn limits(&self) -> Limits {
        self.shared.lock().limits
    }

    /// Sets the limits, while the region is in use. A lower `memory_max` evicts down to it before this returns; if that cannot be done
    /// (there is no room where pages could go) the error says so, and the limits are as they were. `swap_max` and `zswap_max` can be
    /// what they were at first, and less; what is beyond them stays where it is, but what is beyond `zswap_max` goes to the swap file
    /// if there is one.
    pub fn set_limits(&self, limits: &Limits) -> Result<(), Error> {
        let made = self.config.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // They may be in a region themselves: nothing there is read under the lock.
        let limits = &{ *limits };
        limits.check(&made)?;
        let before = self.limits();
        let standby = |bytes: usize| (bytes / PAGE) as u64 * u64::from(made.standby_percent) / 100;
        let result = self.shared.apply(limits, standby(limits.memory_max), made.stall_limit);
        if let Err(e) = result {
            // Back to what holds already: there is nothing to make room for.
            self.shared.apply(&before, standby(before.memory_max), made.stall_limit)?;
            return Err(e);
        }
        Ok(())
    }
}

impl Shared {
    fn apply(&self, limits: &Limits, standby_pages: u64, patience: Duration) -> Result<(), Error> {
        self.area.set_pool_limit(limits.zswap_max);
        while self.area.shrink_pool().map_err(|e| Error::Limit(format!("emptying the pool: {e}")))? {}
        let mut core = self.lock();
        let own_bytes = core.own_bytes().max(if core.overhead_beside { 0 } else { core.most_own_bytes });
        if own_bytes > limits.memory_max / 2 {
            let need = own_bytes * 2;
            let what = format!("half of memory_max would go to the tables of so large a region; leave it {need} bytes");
            return Err(Error::Limit(what));
        }
        core.standby_pages = standby_pages;
        core.sampling.set_memory((limits.memory_max / PAGE) as u64);
        core.set_group(limits, u64::MAX)?;
        let mut core = self.resize(core, (limits.memory_max / PAGE) as u64, patience)?;
        core.limits = *limits;
        core.memory.high.holds = limits.memory_high != usize::MAX;
        // What was charged beyond the old limit is forgotten.
        core.release_held();
        core.wake_all_sleepers();
        drop(self.finish(core));
        self.work.notify_one();
        Ok(())
    }

    /// Gives the region so many pages. What is too much is evicted; for want of progress in `patience` it is an error.
    fn resize<'a>(
        &'a self,
        mut core: MutexGuard<'a, Core>,
        pages: u64,
        patience: Duration,
    ) -> Result<MutexGuard<'a, Core>, Error> {
        let mut patience = Patience::new(patience);
        loop {
            core.tick();
            core.charge_overhead();
            let left = core.resize(pages)?;
            if left == 0 {
                core.memory.lowering = false;
                return Ok(core);
            }
            if !patience.goes_on(left, core.is_writing()) {
                core.memory.lowering = false;
                let bytes = left as usize * PAGE;
                return Err(Error::Limit(format!(
                    "memory_max {}: {bytes} bytes cannot leave memory; allow more swap, or more memory",
                    pages as usize * PAGE
                )));
            }
            core.memory.lowering = true;
            core.reclaim(left)?;
            core = self.evict_round(core);
            core.retry_starved();
            core = self.finish(core);
            drop(core);
            patience.pause();
            core = self.lock();
        }
    }
}

impl Core {
    fn set_group(&mut self, limits: &Limits, max_pages: u64) -> Result<(), Error> {
        let pages = |bytes: usize| if bytes == usize::MAX { u64::MAX } else { (bytes / PAGE) as u64 };
        let group = MemcgLimits {
            high: pages(limits.memory_high),
            max: max_pages,
            swap_max: if limits.swap_max.div_ceil(PAGE) >= self.memory.state.len() {
                u64::MAX
            } else {
                pages(limits.swap_max)
            },
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

    /// Orders so many pages out: the engine makes its group so much smaller, and then lets it be.
    fn reclaim(&mut self, pages: u64) -> Result<(), Error> {
        let limits = self.limits;
        let usage = self.engine.memcg_usage_pages(self.group);
        self.set_group(&limits, usage.saturating_sub(pages)).and(self.set_group(&limits, u64::MAX))
    }

    /// Pages that are still too many.
    fn resize(&mut self, pages: u64) -> Result<u64, Error> {
        // Pages of the region are never taken from what is below the min mark, so that much of the node may be beyond the limit. What a pool grows
        // by is charged after it was written, and is taken from there; tables grow slowly.
        let min = NodeConfig::new(pages).min_mark_pages();
        let reserve = match (self.overhead_beside, self.limits.zswap_max) {
            (true, _) => min,
            (false, 0) => min.saturating_sub(WINDOW as u64),
            (false, _) => 0,
        };
        let left = self.engine.resize_node(pages + reserve).map_err(Error::Config)?;
        self.max_pages = pages;
        self.min_mark = self.engine.zones().map(|(.., marks)| marks.min).sum();
        Ok(left.max(self.used_pages().saturating_sub(pages)))
    }

    /// Whether anything is on its way out of memory.
    pub(super) fn is_writing(&self) -> bool {
        self.engine.memcg_gauges(self.group).iter().any(|g| g.name == "file_writeback" && g.value > 0)
    }
}
