//! The limit of a mapped file, changed while it is in use.

use std::time::Duration;

use refault_mm::MemcgLimits;

use super::{Core, MappedFile, Shared};
use crate::core::ProgressGuard;
use crate::error::Error;
use crate::uffd::PAGE;

impl MappedFile {
    /// `memory.max`, in bytes.
    pub fn memory_max(&self) -> usize {
        self.shared.lock().budget.max_pages as usize * PAGE
    }

    /// Sets `memory.max`, in bytes, while the file is in use. A lower one drops pages, after
    /// writing those that were changed, before this returns; if that cannot be done (writes fail)
    /// the error says so, and the limit is as it was.
    pub fn set_memory_max(&self, bytes: usize) -> Result<(), Error> {
        super::check_memory(bytes)?;
        let _one = self.shared.resizing.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let before = self.shared.lock().budget.max_pages;
        let result = self.shared.resize((bytes / PAGE) as u64);
        if result.is_err() {
            // Back to what holds already: there is nothing to make room for.
            self.shared.lock().resize(before)?;
        }
        result
    }
}

impl Shared {
    fn resize(&self, pages: u64) -> Result<(), Error> {
        let mut core = self.lock();
        let need = core.own_bytes() * 2;
        if need > pages as usize * PAGE {
            let what = format!("half of memory_max would go to the tables of so large a file; leave it {need} bytes");
            return Err(Error::Limit(what));
        }
        self.tick(&mut core);
        let mut guard = ProgressGuard::new(core.stall_limit_ns, core.now_ns);
        loop {
            self.tick(&mut core);
            let left = core.resize(pages)?;
            if left == 0 {
                return Ok(());
            }
            if !guard.goes_on(left, !core.memory.writing.is_empty(), core.now_ns) {
                return Err(Error::Limit(format!(
                    "memory_max {}: {} bytes cannot leave memory (see flush for errors of writing)",
                    pages as usize * PAGE,
                    left as usize * PAGE
                )));
            }
            core.shrink(left)?;
            core = self.write_round(core);
            core.retry_waiting();
            core = self.finish(core);
            drop(core);
            std::thread::sleep(Duration::from_nanos(guard.pause_ns()));
            core = self.lock();
        }
    }
}

impl Core {
    /// Makes the machine so large. Pages that are still too many.
    fn resize(&mut self, pages: u64) -> Result<u64, Error> {
        let left = self.engine.resize_node(pages).map_err(Error::Config)?;
        let pages = self.engine.managed_pages();
        self.budget.set_max(&self.engine, pages);
        Ok(left)
    }

    /// Has the engine reclaim `pages` pages: the group's limit is lowered by as many for a moment.
    fn shrink(&mut self, pages: u64) -> Result<(), Error> {
        let usage = self.engine.memcg_usage_pages(self.group);
        self.memory.lowering = true;
        let mut result = Ok(());
        for max in [usage.saturating_sub(pages), u64::MAX] {
            let limits = MemcgLimits { max, swap_max: 0, ..MemcgLimits::default() };
            let set = self.engine.set_memcg_limits(&mut self.memory, self.group, &limits);
            result = result.and(set.map_err(Error::Config));
        }
        self.memory.lowering = false;
        result
    }
}
