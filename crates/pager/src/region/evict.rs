//! The evictor: background reclaim, and what it leads to.

use std::time::{Duration, Instant};

use super::Shared;
use super::core::Core;
use crate::core::{Claim, Moves, Operations, WINDOW};
use crate::evict::{self, EvictorDriver, SwapEvictor};
use crate::store::{StoreError, SwapArea};
use crate::sync::MutexGuard;

/// Time for which pages are moved under the lock at most, except for one call: threads that fault
/// meanwhile sleep, and their processor need not be interrupted for each move, which takes ten
/// times as long as the move (see crates/run/docs/pager.md). Until everyone sleeps, some calls do
/// interrupt someone; there has to be time for the others after that: 64 single pages take 50 us if
/// nobody is.
const MOVE_UNDER_LOCK: Duration = Duration::from_micros(150);

impl EvictorDriver for Shared {
    type Core = Core;

    fn area(&self) -> Option<&SwapArea> {
        Some(&self.area)
    }

    fn reclaim<'a>(&'a self, core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        self.evict_alone(core, Shared::evict_step)
    }

    fn write<'a>(&'a self, core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        self.write_step(core)
    }
}

impl SwapEvictor for Shared {
    fn staging_start(core: &Core) -> usize {
        core.memory.ops.staging.start()
    }

    fn claim_writes(core: &mut Core, most: usize) -> Vec<Claim> {
        core.take_samples();
        core.claim_writes(most)
    }

    fn settle_writes(core: &mut Core, claimed: &[Claim], results: &[Result<(), StoreError>]) {
        core.settle_writes(claimed, results);
        core.memory.free_slots();
    }

    fn has_discards(core: &Core) -> bool {
        core.has_discards()
    }

    fn take_discards(core: &mut Core) -> Vec<u32> {
        core.take_discards()
    }

    fn settle_discards(core: &mut Core, places: &[u32]) {
        core.memory.settle_discards(places);
    }
}

impl Shared {
    /// The evictor's thread.
    pub(super) fn evict(&self) {
        evict::run(self);
    }

    /// Background reclaim, one at a time: nothing if someone is at it.
    fn evict_alone<'a>(
        &'a self,
        mut core: MutexGuard<'a, Core>,
        step: fn(&'a Shared, MutexGuard<'a, Core>) -> MutexGuard<'a, Core>,
    ) -> MutexGuard<'a, Core> {
        if std::mem::replace(&mut core.evictor_core, true) {
            return self.write_step(core);
        }
        core = step(self, core);
        core.evictor_core = false;
        core.note_step();
        core
    }

    /// Writes what waits for it; who waits for room tries again.
    fn write_step<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        core = self.write_round(core);
        core.retry();
        core.charge_overhead();
        self.finish(core)
    }

    /// Asks the kernel what the next step of background reclaim will want to know, without the
    /// lock: which of the oldest pages were written.
    fn look_ahead<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        let pages = core.pages_to_ask_about();
        if pages.is_empty() {
            return core;
        }
        drop(core);
        let answers = pages.into_iter().filter_map(|page| Some((page, self.memory.was_written(page)?))).collect();
        let mut core = self.lock();
        core.fill_written_cache(answers);
        core
    }

    /// A step of background reclaim whose writes are the evictor's: what is ordered out is moved
    /// out.
    fn move_step<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        core = self.look_ahead(core);
        self.tick(&mut core);
        core.kswapd_step();
        core = self.move_round(core);
        core.charge_overhead();
        self.finish(core)
    }

    /// A step of background reclaim, and all that follows from it.
    fn evict_step<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        core = self.look_ahead(core);
        self.tick(&mut core);
        core.kswapd_step();
        core = self.evict_round(core);
        core.retry();
        core.charge_overhead();
        self.finish(core)
    }

    /// Whether the thread that served a fault is to evict. Writes that wait for a device are the
    /// evictor's: then the thread evicts when the evictor's writes are nearly done, for memory is
    /// free only after them.
    pub(super) fn is_evicting(&self, core: &Core) -> bool {
        let behind = self.area.writes_wait() && core.pages_to_write() >= WINDOW as u64;
        core.memory.kswapd_awake && !core.evictor_core && !behind
    }

    /// After a fault was served: the thread that served it evicts, one at a time.
    pub(super) fn evict_here<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        if self.is_evicting(&core) {
            let step = if self.area.writes_wait() { Shared::move_step } else { Shared::evict_step };
            core = self.evict_alone(core, step);
        }
        // Writes that take a processor's time and nothing else are made by who evicts.
        let work = match self.area.writes_wait() {
            true => core.has_work(),
            false => core.is_waiting_for_frame() || core.memory.high.new_sleepers || self.area.wants_tending(),
        };
        if work {
            self.tell_evictor(&mut core);
        }
        core
    }

    pub(super) fn tell_evictor(&self, core: &mut Core) {
        if std::mem::take(&mut core.evictor_sleeps) {
            self.work.notify_one();
        }
    }

    /// Moves out what is to leave, writes what is to be written, discards what is of no use.
    pub(super) fn evict_round<'a>(&'a self, core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        let core = self.move_round(core);
        self.write_round(core)
    }

    fn move_round<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        loop {
            let mut moves = Moves::new(core.take_leaving(WINDOW));
            if moves.is_done() {
                break;
            }
            let begun = Instant::now();
            moves.go_on(&*self.memory, || begun.elapsed() < MOVE_UNDER_LOCK);
            if !moves.is_done() {
                // Someone runs all the while, and is interrupted. A thread that faults need not
                // wait for that.
                drop(core);
                moves.go_on(&*self.memory, || true);
                core = self.lock();
            }
            core.sampling.moved(begun, moves.moves.len());
            self.tick(&mut core);
            let settled = Instant::now();
            core.settle_moves(&moves);
            core.note_rescued(|| settled.elapsed());
            core.memory.free_slots();
        }
        core
    }

    fn write_round<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        self.tick(&mut core);
        core = evict::write_round(self, &self.area, core);
        if core.has_any_discards() { self.discard(core) } else { core }
    }
}
