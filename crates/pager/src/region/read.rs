//! Reads: what the engine asked for, as far as someone waits for it.

use std::time::Instant;

use super::core::Core;
use super::{READ_AHEAD_ORDER, Shared};
use crate::core::{FolioRead, State};
use crate::evict::SwapEvictor;
use crate::store::{PageBuf, StoreError};
use crate::sync::MutexGuard;

impl Shared {
    /// After the engine was called: what it asked for is done, as far as someone waits for it.
    pub(super) fn finish<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        loop {
            core.memory.free_slots();
            if let &[one] = &core.memory.reads[..] {
                core.memory.reads.clear();
                core = self.read(core, &[one]);
                continue;
            }
            let (reads, folios) = core.take_reads();
            if reads.is_empty() && folios.is_empty() {
                break;
            }
            for several in reads.chunks(1 << READ_AHEAD_ORDER) {
                core = self.read(core, several);
            }
            for &folio in &folios {
                core = self.read_folio(core, folio);
            }
        }
        if core.memory.high.has_held() {
            core = self.resume_faults(core);
        }
        if core.has_discards() { self.discard(core) } else { core }
    }

    /// Reads pages, puts them in place and tells the engine. A page that failed on the way may be
    /// well where it is, so it is tried once more.
    fn read<'a>(&'a self, mut core: MutexGuard<'a, Core>, reads: &[(u32, u32)]) -> MutexGuard<'a, Core> {
        // Where threads of the region serve faults, who faulted would go on before what it led to
        // is counted; and beyond `memory.high` it may have to wait although its page is there.
        let at_once = self.memory.waiters.is_some() && !core.memory.high.holds;
        if let &[(page, slot)] = reads {
            let frame = if at_once { core.take_frame() } else { None };
            let mut core = match frame {
                Some(place) => match self.read_into_frame(core, page, slot, place) {
                    Ok(core) => return core,
                    Err(core) => core,
                },
                None => core,
            };
            let mut content = core.memory.buffer();
            drop(core);
            let begun = Instant::now();
            let result = self.area.read(slot, page, &mut content.0);
            let result = result.or_else(|_| self.area.read(slot, page, &mut content.0));
            let placed = at_once && result.is_ok() && self.memory.put_in_place(page, &content);
            core = self.lock_now();
            self.arrive(&mut core, page, result.map(|()| Some(content)), begun, placed);
            return core;
        }
        let mut contents: Vec<_> = reads.iter().map(|_| core.memory.buffer()).collect();
        drop(core);
        let begun = Instant::now();
        let slots: Vec<_> = reads.iter().map(|&(page, slot)| (slot, page)).collect();
        let results = self.area.read_several(&slots, &mut contents);
        let placed: Vec<bool> = (reads.iter().zip(&results).zip(&contents))
            .map(|((&(page, _), result), content)| at_once && result.is_ok() && self.memory.put_in_place(page, content))
            .collect();
        core = self.lock_now();
        for (((&(page, _), result), content), placed) in reads.iter().zip(results).zip(contents).zip(placed) {
            self.arrive(&mut core, page, result.map(|()| Some(content)), begun, placed);
        }
        core
    }

    /// With `memory.high`: who was served goes on, now or later. Pages that reclaim orders out for
    /// it are out, and then free, before the engine says how long; else all would wait for pages
    /// that go soon.
    #[cold]
    fn resume_faults<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        for _ in 0..2 {
            if !core.engine.is_over_high() {
                break;
            }
            core.reclaim_high();
            core = self.evict_round(core);
            self.tick(&mut core);
        }
        core.release_held();
        core.memory.free_slots();
        core
    }

    /// A page was read, or could not be; its read began then. See [`crate::core::Core::arrive`].
    pub(super) fn arrive(
        &self,
        core: &mut Core,
        page: u32,
        content: Result<Option<Box<PageBuf>>, StoreError>,
        begun: Instant,
        placed: bool,
    ) {
        let is_read = content.is_ok();
        if core.arrive(page, content, placed) && is_read {
            self.area.fault_served(begun.elapsed().as_nanos() as u64);
        }
    }

    /// Reads a folio, and tells the engine. A page that failed on the way may be well where it is,
    /// so it is tried once more.
    fn read_folio<'a>(&'a self, mut core: MutexGuard<'a, Core>, read: FolioRead) -> MutexGuard<'a, Core> {
        let is_read = |p: &u32| core.memory.state(*p) == State::Reading;
        let pages: Vec<u32> = (read.first..read.first + read.pages).filter(is_read).collect();
        let spare = core.memory.folios.take_buffer();
        let most_pages = core.memory.folios.most_pages;
        drop(core);
        let mut buffer = spare.unwrap_or_else(|| vec![PageBuf::default(); most_pages].into());
        let mut errors = Vec::new();
        for run in pages.chunk_by(|a, b| a + 1 == *b) {
            let behind = (run[0] - read.first) as usize;
            let slots: Vec<_> = run.iter().map(|&p| (read.slot + (p - read.first), p)).collect();
            let results = self.area.read_several(&slots, &mut buffer[behind..behind + run.len()]);
            errors.extend(run.iter().zip(results).filter_map(|(&p, result)| Some((p, result.err()?))));
        }
        core = self.lock_now();
        core.folio_arrived(read, buffer, &errors);
        core
    }
}
