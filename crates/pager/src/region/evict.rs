//! The evictor: background reclaim, and what it leads to.

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Shared;
use super::core::{Core, Moved};
use super::staging::{self, WINDOW};
use super::world::staged_content;
use crate::threads::{self, fatal};
use crate::uffd::PAGE;

/// Pages that are claimed for writing at a time: whoever touches one of them waits for all. Where writing them together is faster it is
/// a window.
const CLAIM: usize = 8;
/// A move that the kernel asks to repeat is repeated so often.
const MOVE_ATTEMPTS: u32 = 8;

/// Pages are moved under the lock for so long, at most and but for one call: who faults meanwhile sleeps, and its processor need not be
/// interrupted for each move, which takes ten times as long as the move (see docs/explanation/pager.md). Until everyone sleeps, some calls do interrupt
/// someone; there has to be time for the others after that: 64 single pages take 50 us if nobody is.
const MOVE_UNDER_LOCK: Duration = Duration::from_micros(150);

/// Without anything to do it looks round so often.
const IDLE: Duration = Duration::from_millis(100);

/// What became of moves.
#[derive(Default)]
struct MoveResults {
    /// Of each page that was tried, in order.
    outcomes: Vec<Moved>,
    calls: u64,
    /// Calls that reported what was not true.
    misreported: u64,
}

impl Shared {
    /// The evictor's thread.
    pub(super) fn evict(&self) {
        let mut core = self.lock();
        // Nobody else may be at work on background reclaim: it was not asked for anything, and looks round.
        let mut alone = true;
        loop {
            let mut next = core.wake_sleepers();
            while !(core.has_work() || alone && core.memory.kswapd_awake) {
                if self.stop.load(Ordering::Relaxed) {
                    return;
                }
                core.evictor_sleeps = true;
                core = threads::wait(&self.work, core, next.map_or(IDLE, |next| next.min(IDLE)));
                alone = std::mem::take(&mut core.evictor_sleeps);
                next = core.wake_sleepers();
            }
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            core = match alone || core.is_starved() || core.is_left_behind() {
                true => self.evict_alone(core, Shared::evict_step),
                false => self.write_step(core),
            };
            alone = false;
            if self.area.wants_tending() && !core.is_starved() {
                // Nobody waits for it.
                drop(core);
                self.area.tend();
                core = self.lock();
                core.charge_overhead();
            }
            if self.area.is_asked_for_room() {
                drop(core);
                self.area.give_room();
                core = self.lock();
                core.charge_overhead();
            }
            if core.is_starved() {
                // Room comes from others that are at work, or not at all: either takes a moment.
                drop(core);
                std::thread::yield_now();
                core = self.lock();
            }
        }
    }

    /// Background reclaim, one at a time: nothing if someone is at it.
    fn evict_alone<'a>(
        &'a self,
        mut core: MutexGuard<'a, Core>,
        step: fn(&'a Shared, MutexGuard<'a, Core>) -> MutexGuard<'a, Core>,
    ) -> MutexGuard<'a, Core> {
        if std::mem::replace(&mut core.evicting, true) {
            return self.write_step(core);
        }
        core = step(self, core);
        core.evicting = false;
        core.note_step();
        core
    }

    /// Writes what waits for it; who waits for room tries again.
    fn write_step<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        core = self.write_round(core);
        core.retry_starved();
        core.charge_overhead();
        self.finish(core)
    }

    /// Asks the kernel what the next step of background reclaim will want to know, without the lock: which of the oldest pages were written.
    fn look_ahead<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        let pages = core.pages_to_look_up();
        if pages.is_empty() {
            return core;
        }
        drop(core);
        let written = |page: u32| self.pagemap.is_written(self.start + page as usize * PAGE).ok();
        let looked_up = pages.into_iter().filter_map(|page| Some((page, written(page)?))).collect();
        let mut core = self.lock();
        core.set_looked_up(looked_up);
        core
    }

    /// A step of background reclaim whose writes are the evictor's: what is ordered out is moved out.
    fn move_step<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        core = self.look_ahead(core);
        core.tick();
        core.kswapd_step();
        core = self.move_round(core);
        core.charge_overhead();
        self.finish(core)
    }

    /// A step of background reclaim, and all that follows from it.
    fn evict_step<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        core = self.look_ahead(core);
        core.tick();
        core.kswapd_step();
        core = self.evict_round(core);
        core.retry_starved();
        core.charge_overhead();
        self.finish(core)
    }

    /// Whether the thread that served a fault is to evict. If writes wait for a device, they are the evictor's: then it is when those that
    /// were handed to it are nearly done, for memory is free only after them.
    pub(super) fn evicts_now(&self, core: &Core) -> bool {
        let behind = self.area.writes_wait() && core.pages_to_write() >= WINDOW as u64;
        core.memory.kswapd_awake && !core.evicting && !behind
    }

    /// After a fault was served: the thread that served it evicts, one at a time.
    pub(super) fn evict_here<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        if self.evicts_now(&core) {
            let step = if self.area.writes_wait() { Shared::move_step } else { Shared::evict_step };
            core = self.evict_alone(core, step);
        }
        // Writes that take a processor's time and nothing else are made by who evicts.
        let work = match self.area.writes_wait() {
            true => core.has_work(),
            false => core.is_starved() || core.memory.high.new_sleepers || self.area.wants_tending(),
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
            let moves = core.take_leaving(WINDOW);
            if moves.is_empty() {
                break;
            }
            let addresses: Vec<_> = moves
                .iter()
                .map(|&(page, place)| (core.memory.address(page), core.memory.staging.address(place)))
                .collect();
            let begun = Instant::now();
            let mut moved = MoveResults::default();
            self.move_out(&addresses, &mut moved, Some(begun + MOVE_UNDER_LOCK));
            if moved.outcomes.len() < addresses.len() {
                // Someone runs all the while, and is interrupted. Who faults need not wait for that.
                drop(core);
                self.move_out(&addresses, &mut moved, None);
                core = self.lock();
            }
            core.sampling.moved(begun, moves.len());
            core.tick();
            core.memory.counts.moves += moved.calls;
            core.memory.counts.misreported_moves += moved.misreported;
            core.settle_moves(&moves, &moved.outcomes);
            core.free_slots();
        }
        core
    }

    fn write_round<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        core.tick();
        loop {
            core.take_samples();
            let most = if self.area.takes_runs() { WINDOW } else { CLAIM };
            let claimed = core.claim_writes(most, false);
            if claimed.is_empty() {
                break;
            }
            drop(core);
            let content = |&(page, slot, address): &(u32, u32, usize)| {
                // SAFETY: the page was claimed: it stays in its place until the write is settled, and nobody writes to it.
                (slot, page, unsafe { staged_content(address) })
            };
            let pages: Vec<_> = claimed.iter().map(content).collect();
            let results = self.area.write_many(&pages);
            core = self.lock();
            core.tick();
            core.settle_writes(&claimed, &results);
            core.free_slots();
            // What the pool grew by is taken before others get what is free now.
            core.charge_overhead();
            // The engine takes these frames for free: no more of them than is counted as the pager's own.
            if core.has_discards() {
                core = self.discard(core);
            }
        }
        if core.memory.discards.len() <= core.frames_to_keep() { core } else { self.discard(core) }
    }

    /// Moves pages to their places, neighbours in one call, from the first that was not tried yet, until all are or that time comes.
    fn move_out(&self, moves: &[(usize, usize)], moved: &mut MoveResults, until: Option<Instant>) {
        let mut attempts = 0;
        while moved.outcomes.len() < moves.len() && until.is_none_or(|until| Instant::now() < until) {
            let rest = &moves[moved.outcomes.len()..];
            let follows = |w: &&[(usize, usize)]| w[1].0 == w[0].0 + PAGE && w[1].1 == w[0].1 + PAGE;
            let run = 1 + rest.windows(2).take_while(follows).count();
            let (from, to) = rest[0];
            moved.calls += 1;
            // SAFETY: the source pages are of the region, whose faults are served; the places were free and are watched.
            let done = unsafe { self.uffd.move_pages(to, from, run * PAGE) };
            let n = done.bytes / PAGE;
            moved.outcomes.extend(std::iter::repeat_n(Moved::Out, n));
            if n > 0 || done.errno == 0 {
                attempts = 0;
                continue;
            }
            match done.errno {
                libc::EAGAIN if attempts < MOVE_ATTEMPTS => attempts += 1,
                // Held by a device or by another task: another time.
                libc::EBUSY | libc::EAGAIN => moved.outcomes.push(Moved::Busy),
                _ => {
                    // What is where decides, not what the error says.
                    let outcome = self.look(from, to);
                    moved.misreported += u64::from(outcome == Moved::Out);
                    moved.outcomes.push(outcome);
                }
            }
        }
    }

    pub(super) fn look(&self, from: usize, to: usize) -> Moved {
        let there = |address| self.pagemap.populated(address, 1).map(|p| p[0]);
        match (there(from), there(to)) {
            (Ok(true), Ok(false)) => Moved::Busy,
            (Ok(false), Ok(true)) => Moved::Out,
            (Ok(true), Ok(true)) => Moved::PlaceTaken,
            (Ok(false), Ok(false)) => Moved::Lost,
            (Err(e), _) | (_, Err(e)) => fatal(&format!("reading /proc/self/pagemap: {e}")),
        }
    }

    /// Empties the places whose content is of no use, but for those whose frames are kept, and gives them back.
    pub(super) fn discard<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        let kept = core.frames_to_keep().min(core.memory.discards.len());
        let mut places: Vec<u32> = core.memory.discards.drain(kept..).collect();
        let base = core.memory.staging.address(0);
        drop(core);
        // SAFETY: the places are taken, and no page refers to them any more.
        unsafe { staging::empty(base, &mut places) };
        let mut core = self.lock();
        places.iter().for_each(|&p| core.memory.staging.give_back(p));
        core
    }
}
