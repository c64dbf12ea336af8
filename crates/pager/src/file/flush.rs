//! Writing back: in the background, and all of it on demand.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use refault_mm::PageId;

use super::{Core, MappedFile, Shared};
use crate::error::Error;
use crate::evict::{self, EvictorDriver};
use crate::store::SwapArea;
use crate::sync::MutexGuard;
use crate::threads;
use crate::uffd::PAGE;

/// Pages of one write: a thread that writes to one of them waits for all.
const RUN: usize = 64;

impl MappedFile {
    /// `msync(MS_SYNC)` and `fdatasync`: if this returns `Ok`, everything written to the memory
    /// before the call is in the file, on its medium. Else some of it may not be. The error is the
    /// first since a flush last returned one, errors of writes in the background included, and is
    /// returned once. Pages whose write failed are dirty as before, so the next flush tries again.
    ///
    /// If `fdatasync` fails, what was written since the last one that went well may never reach the
    /// medium, for the kernel takes it for written. Pages that are still in memory are dirty again,
    /// and the next flush writes them again. If any had left memory, every later flush fails:
    /// whether the medium has them can be found out only by opening the file again and reading it.
    pub fn flush(&self) -> Result<(), Error> {
        let _one = self.shared.flushing.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let written = self.shared.write_back();
        // Pages that are written while the call is under way may come too late for it.
        let before = self.shared.lock().take_unsynced();
        let synced = self.shared.io.sync();
        let mut core = self.shared.lock();
        if synced.is_err() {
            self.shared.tick(&mut core);
            core.sync_failed(&before);
        }
        written.and(synced.map_err(Error::io("syncing the file")))?;
        if core.uncertain > 0 {
            let what = format!(
                "{} pages left memory before an earlier fdatasync failed, and may not be on the medium; open the file again and check it",
                core.uncertain
            );
            return Err(Error::Io { what: "syncing the file".into(), source: io::Error::other(what) });
        }
        core.memory.counts.flushes += 1;
        Ok(())
    }

    /// [`MappedFile::flush`], and the file is mapped no more.
    pub fn close(self) -> Result<(), Error> {
        self.flush()
    }
}

impl EvictorDriver for Shared {
    type Core = Core;

    fn area(&self) -> Option<&SwapArea> {
        None
    }

    fn reclaim<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        self.tick(&mut core);
        core.step();
        core = self.write_round(core);
        core.retry_waiting();
        core.charge_overhead();
        self.finish(core)
    }

    fn write<'a>(&'a self, core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        self.reclaim(core)
    }
}

impl Shared {
    /// The writer's thread: background reclaim, the flusher, and what they write.
    pub(super) fn run_writer(&self) {
        evict::run(self);
    }

    /// Writes what is to be written.
    pub(super) fn write_round<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        core.memory.settle_drops();
        loop {
            let pages = core.claim_writes(RUN);
            let (Some(&first), Some(&last)) = (pages.first(), pages.last()) else { return core };
            drop(core);
            let result = self.write(first, last);
            core = self.lock();
            self.tick(&mut core);
            core.settle_writes(&pages, result);
            core.memory.settle_drops();
            self.written.notify_all();
        }
    }

    /// Writes pages side by side, in place, as far as they are of the file.
    fn write(&self, first: u32, last: u32) -> io::Result<()> {
        let at = u64::from(first) * PAGE as u64;
        let end = ((u64::from(last) + 1) * PAGE as u64).min(self.bytes);
        // The rest of a page goes by itself: direct I/O takes whole ones.
        let whole = at + (end - at) / PAGE as u64 * PAGE as u64;
        for (from, to) in [(at, whole), (whole, end)] {
            if from < to {
                let (address, len) = (self.start + from as usize, (to - from) as usize);
                // SAFETY: the pages are in state Writing: they are in place, protected from writes,
                // and stay so until this is settled.
                let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, len) };
                super::io::write_all(&*self.io, bytes, from)?;
            }
        }
        Ok(())
    }

    /// Writes all pages that are dirty now; an error is the first since the last one that was told.
    pub(super) fn write_back(&self) -> Result<(), Error> {
        let mut core = self.lock();
        // Pages that are being written were dirty before, and dirty pages are to be written.
        let mut todo: BTreeSet<u32> = core.memory.writing.clone();
        self.tick(&mut core);
        for page in core.memory.dirty.clone() {
            let Core { engine, memory, .. } = &mut *core;
            engine.write_page(memory, PageId(page));
            match core.memory.dirty.contains(&page) {
                false => _ = todo.insert(page),
                true => _ = core.write_error.get_or_insert(io::Error::other("a page cannot be protected from writes")),
            }
        }
        loop {
            core = self.write_round(core);
            core = self.finish(core);
            todo.retain(|page| core.memory.writing.contains(page));
            if todo.is_empty() {
                break;
            }
            // The writer has the rest.
            core = threads::wait(&self.written, core, Duration::from_millis(10));
        }
        match core.write_error.take() {
            Some(source) => Err(Error::Io { what: "writing to the file".into(), source }),
            None => Ok(()),
        }
    }
}
