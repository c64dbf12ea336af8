//! I/O that a program does not leave to the page cache: `O_DIRECT`, `fsync`, `sync_file_range`.

use refault_mm::{Ack, PageId};

use super::context::{AccessEnd, OnCpu};
use crate::scenario::{PhaseSpec, Sync};
use crate::sched::{PsiState, Stop};
use crate::task::{Direct, SyncStep, Task};

impl OnCpu<'_> {
    /// A block is read or written past the page cache. Dirty pages of it in the cache are written
    /// first; pages that are written leave the cache.
    pub(super) fn direct(
        &mut self,
        t: usize,
        task: &mut Task,
        phase: &PhaseSpec,
        (clock, d): (u64, Direct),
    ) -> AccessEnd {
        if task.is_direct_sent {
            let ok = !std::mem::take(&mut self.threads[t].read_failed);
            return self.end_direct(task, phase, clock, d, (ok, 0));
        }
        self.kernel.set_now_ns(clock);
        let kernel = &mut *self.kernel;
        for page in (d.first.0..d.first.0 + d.pages).map(PageId) {
            kernel.engine.write_page(&mut kernel.hw, page);
        }
        if let Some(page) = kernel.engine.next_written(d.first, d.pages) {
            return self.wait_for_write(t, task, phase, (clock, page));
        }
        if d.write {
            kernel.engine.invalidate_range(&mut kernel.hw, d.first, d.pages);
        }
        let ack = kernel.hw.direct(d.first, d.pages, d.write, t);
        let bill = self.settle(clock);
        let ns = self.kernel.costs.read_miss_ns + bill.io_ns + bill.reclaim_ns;
        if ack != Ack::Pending {
            return self.end_direct(task, phase, clock, d, (ack == Ack::Done, ns));
        }
        task.spend(phase, 0, ns);
        task.is_direct_sent = true;
        self.threads.wait_for_device(t);
        AccessEnd::Stop(ns, Stop::Blocked(PsiState::Idle))
    }

    fn end_direct(
        &mut self,
        task: &mut Task,
        phase: &PhaseSpec,
        clock: u64,
        d: Direct,
        (ok, kernel_ns): (bool, u64),
    ) -> AccessEnd {
        let user_ns = phase.cpu_ns * u64::from(d.pages);
        let ns = (user_ns + kernel_ns).max(1);
        task.spend(phase, user_ns, ns - user_ns);
        task.finish_direct(phase, d.pages, clock + ns, ok);
        AccessEnd::Go(ns)
    }

    /// A file is written as far as the program asked for it.
    pub(super) fn sync(
        &mut self,
        t: usize,
        task: &mut Task,
        phase: &PhaseSpec,
        (clock, s): (u64, SyncStep),
    ) -> AccessEnd {
        self.kernel.set_now_ns(clock);
        let stream = &task.streams[s.stream];
        let (extent, kind) = (stream.extent, stream.sync);
        let kernel = &mut *self.kernel;
        if kind == Sync::Fsync {
            let e = &kernel.hw.tables.extents[extent];
            let end = e.first.0 + e.pages;
            let from = s.waits_from.unwrap_or(e.first);
            if s.waits_from.is_none() {
                kernel.engine.fsync(&mut kernel.hw, self.programs.instances[extent].mapping);
            }
            if let Some(page) = kernel.engine.next_written(from, end - from.0) {
                task.syncing = Some(SyncStep { waits_from: Some(page), ..s });
                return self.wait_for_write(t, task, phase, (clock, page));
            }
        } else {
            for page in (s.first.0..s.first.0 + s.pages).map(PageId) {
                kernel.engine.write_page(&mut kernel.hw, page);
            }
        }
        let bill = self.settle(clock);
        let ns = (self.kernel.costs.madvise_ns + bill.io_ns + bill.reclaim_ns).max(1);
        task.spend(phase, 0, ns);
        task.finish_sync(phase, clock + ns);
        AccessEnd::Go(ns)
    }

    /// Until a page has been written.
    fn wait_for_write(
        &mut self,
        t: usize,
        task: &mut Task,
        phase: &PhaseSpec,
        (clock, page): (u64, PageId),
    ) -> AccessEnd {
        let bill = self.settle(clock);
        let ns = (self.kernel.costs.madvise_ns + bill.io_ns + bill.reclaim_ns).max(1);
        task.spend(phase, 0, ns);
        self.threads.wait_for_page(t, page);
        AccessEnd::Stop(ns, Stop::Blocked(PsiState::Idle))
    }
}
