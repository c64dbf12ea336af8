//! Limits of a region, changed while it is in use.

use std::time::Duration;

use super::core::Core;
use super::{Region, Shared};
use crate::config::RegionConfig;
use crate::core::{Limits, ProgressGuard};
use crate::error::Error;
use crate::store::Pool;
use crate::sync::MutexGuard;
use crate::threads::nanoseconds;
use crate::uffd::PAGE;

impl Limits {
    pub(super) fn of(config: &RegionConfig) -> Limits {
        Limits {
            memory_max: config.memory_max,
            memory_high: config.memory_high,
            swap_max: config.swap_max,
            zswap_max: config.pool.as_ref().map_or(0, |p| p.max_bytes),
        }
    }

    /// Checks that they are possible for a region that was made with `made`.
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

    /// Sets the limits, while the region is in use. A lower `memory_max` evicts down to it before
    /// this returns; if that cannot be done (there is no room where pages could go) the error says
    /// so, and the limits are as they were. `swap_max` and `zswap_max` can be what they were at
    /// first, and less; what is beyond them stays where it is, but what is beyond `zswap_max` goes
    /// to the swap file if there is one.
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
    fn apply(&self, limits: &Limits, standby_pages: u64, stall_limit: Duration) -> Result<(), Error> {
        self.area.set_pool_limit(limits.zswap_max);
        while self.area.shrink_pool().map_err(|e| Error::Limit(format!("emptying the pool: {e}")))? {}
        let mut core = self.lock();
        let own_bytes = core.own_bytes().max(if core.budget.overhead_beside { 0 } else { core.most_own_bytes });
        if own_bytes > limits.memory_max / 2 {
            let need = own_bytes * 2;
            let what = format!("half of memory_max would go to the tables of so large a region; leave it {need} bytes");
            return Err(Error::Limit(what));
        }
        core.standby_pages = standby_pages;
        core.set_memory((limits.memory_max / PAGE) as u64);
        core.set_group(limits, u64::MAX)?;
        let mut core = self.resize(core, (limits.memory_max / PAGE) as u64, stall_limit)?;
        core.limits_are_set(limits);
        drop(self.finish(core));
        self.work.notify_one();
        Ok(())
    }

    /// Gives the region `pages` pages. Pages beyond that are evicted; no progress for `stall_limit`
    /// is an error.
    fn resize<'a>(
        &'a self,
        mut core: MutexGuard<'a, Core>,
        pages: u64,
        stall_limit: Duration,
    ) -> Result<MutexGuard<'a, Core>, Error> {
        self.tick(&mut core);
        let mut guard = ProgressGuard::new(nanoseconds(stall_limit), core.now_ns);
        loop {
            self.tick(&mut core);
            let left = core.set_max(pages, &mut guard)?;
            core.set_most_frames();
            if left.is_none() {
                return Ok(core);
            }
            core = self.evict_round(core);
            core.retry();
            core = self.finish(core);
            drop(core);
            std::thread::sleep(Duration::from_nanos(guard.pause_ns()));
            core = self.lock();
        }
    }
}
