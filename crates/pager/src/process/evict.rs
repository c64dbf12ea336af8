//! The evictor: background reclaim, and what it leads to.

use std::time::Duration;

use refault_mm::PageId;

use super::Shared;
use super::abi;
use super::agent::{Agent, Answer};
use super::core::Core;
use crate::core::{Claim, EvictorCore, State, WINDOW};
use crate::evict::{self, EvictorDriver, LockedCore, SwapEvictor};
use crate::staging;
use crate::store::{StoreError, SwapArea};
use crate::sync::MutexGuard;

/// Processes whose agents may keep the pages of their last window, 256 KiB each, until the next
/// order. With more processes than these, each window is emptied after its order.
const FILLED_WINDOWS: usize = 16;

/// Pause before another try: room comes from other threads at work, or not at all.
const PAUSE: Duration = Duration::from_micros(50);

impl EvictorDriver for Shared {
    type Core = Core;

    fn area(&self) -> Option<&SwapArea> {
        Some(&self.area)
    }

    fn reclaim<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        self.tick(&mut core);
        let before = core.memory.counts.moved_out;
        core.kswapd_step();
        core.mark_the_rest();
        core = self.yield_lock(core);
        core = self.evict_round(core);
        core.retry_waiting();
        core.charge_overhead();
        core.reclaim_missing();
        core = self.finish(core);
        if !core.draining.is_empty() {
            core.free_drained();
        }
        core.was_fruitless = core.memory.counts.moved_out == before;
        core
    }

    fn write<'a>(&'a self, core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        self.reclaim(core)
    }

    fn pause(&self) {
        std::thread::sleep(PAUSE);
    }
}

impl SwapEvictor for Shared {
    fn staging_start(core: &Core) -> usize {
        core.memory.staging.start()
    }

    fn claim_writes(core: &mut Core, most: usize) -> Vec<Claim> {
        core.claim_writes(most)
    }

    fn settle_writes(core: &mut Core, claimed: &[Claim], results: &[Result<(), StoreError>]) {
        core.settle_writes(claimed, results);
        core.memory.free_slots();
    }

    fn has_discards(core: &Core) -> bool {
        core.memory.has_discards()
    }

    fn take_discards(core: &mut Core) -> Vec<u32> {
        let kept = core.memory.kept_places;
        core.memory.take_discards(kept)
    }

    fn settle_discards(core: &mut Core, places: &[u32]) {
        core.memory.settle_discards(places);
    }

    /// With the lock: few places are emptied at all, and however many threads there are, no more
    /// are on their way than one has.
    fn discard<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        let mut places = Shared::take_discards(&mut core);
        // SAFETY: the places are taken, and no page refers to them any more.
        unsafe { staging::empty(core.memory.staging.start(), &mut places) };
        Shared::settle_discards(&mut core, &places);
        core
    }
}

impl LockedCore for Core {
    type EvictorCore = Self;

    fn set_now(&mut self, now_ns: u64) {
        Core::set_now(self, now_ns);
    }

    fn evictor_core(&mut self) -> &mut Self {
        self
    }

    fn charge_overhead(&mut self) {
        Core::charge_overhead(self);
    }
}

impl EvictorCore for Core {
    fn wake_sleepers(&mut self) -> Option<u64> {
        Core::wake_sleepers(self)
    }

    fn has_work(&self, _alone: bool) -> bool {
        Core::has_work(self)
    }

    fn reclaims(&self) -> bool {
        true
    }

    fn is_waiting_for_frame(&self) -> bool {
        !self.waiting_for_frame.is_empty()
    }

    fn yields(&self) -> bool {
        !self.waiting_for_frame.is_empty() || !self.unsettled.is_empty() || !self.asked.is_empty() || self.was_fruitless
    }

    fn wants_tending(&self) -> bool {
        self.memory.area.wants_tending()
    }

    fn is_asked_for_room(&self) -> bool {
        self.memory.area.is_asked_for_room()
    }

    fn sleeps(&mut self) {
        self.evictor_waits = true;
    }

    fn woke(&mut self) -> bool {
        self.evictor_waits = false;
        true
    }
}

impl Shared {
    /// The evictor's thread.
    pub(super) fn evict(&self) {
        evict::run(self);
    }

    /// Moves out what is to leave, writes what is to be written, discards what is of no use.
    pub(super) fn evict_round<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        while core.move_out() {
            // An agent takes as long for an order as a device for some pages.
            core = self.yield_lock(core);
        }
        self.tick(&mut core);
        core.memory.free_slots();
        core = evict::write_round(self, &self.area, core);
        if Shared::has_discards(&core) { self.discard(core) } else { core }
    }
}

impl Core {
    /// Moves out some of the pages that are to leave, of one process. False: there are none.
    ///
    /// Under the lock: no change of a mapping may be read between the choice of an address and the
    /// move.
    pub(super) fn move_out(&mut self) -> bool {
        let memory = &self.memory;
        // Pages that were given up on their way are still named.
        let first = memory.leaving.iter().position(|&page| memory.state(page) == State::Leaving);
        let Some(first) = first else {
            self.memory.leaving.clear();
            return false;
        };
        self.memory.leaving.drain(..first);
        let owner = self.memory.owner(self.memory.leaving[0]);
        if self.is_unanswered(owner) || self.got_reserve(owner) {
            self.keep_all(owner);
            return true;
        }
        if !self.settle(owner) || self.must_wait_for_child(owner) {
            // The place of its memory is not known, or nothing would be gained. Pages of other
            // processes may be moved meanwhile.
            self.memory.leaving.rotate_left(1);
            return false;
        }
        let mut pages = self.take_leaving(owner);
        if pages.is_empty() {
            // The pages were given up, as was just read.
            return true;
        }
        pages.sort_unstable_by_key(|&p| self.memory.address[p as usize]);
        // A page that was given up and ordered out again is named twice.
        pages.dedup();
        let places = self.memory.take_places(pages.len());
        // No places: they come back when what is in them was written.
        self.memory.leaving.extend(pages.drain(places.len()..));
        // Pages that may be about to be dropped stay where they are. If the store is full, so do
        // the pages that came back last.
        let stays = |&&page: &&u32| self.memory.may_be_discarded[page as usize] || self.recent_swap_ins.keeps(page);
        let (kept, pages): (Vec<u32>, Vec<u32>) = pages.iter().partition(stays);
        for &place in &places[pages.len()..] {
            self.memory.discards.push(place);
        }
        let is_any = !places.is_empty();
        self.order_moves(owner, pages.into_iter().zip(places).collect());
        kept.into_iter().for_each(|page| self.stay(page));
        is_any
    }

    /// Up to a window of pages of a process that are to leave. Pages of others stay in line, so
    /// that each order is about many pages: it wakes the agent, which empties all of its scratch
    /// pages.
    fn take_leaving(&mut self, owner: usize) -> Vec<u32> {
        let mut pages = Vec::new();
        for page in std::mem::take(&mut self.memory.leaving) {
            if self.memory.state(page) != State::Leaving {
                continue;
            }
            if pages.len() < WINDOW && self.memory.owner(page) == owner {
                pages.push(page);
            } else {
                self.memory.leaving.push_back(page);
            }
        }
        pages
    }

    /// Has pages of a process moved to the window, and takes them to their places.
    fn order_moves(&mut self, owner: usize, moves: Vec<(u32, u32)>) {
        self.memory.counts.moves += 1;
        let addresses: Vec<usize> = moves.iter().map(|&(p, _)| self.memory.address[p as usize]).collect();
        let has_agent = !moves.is_empty() && self.space(owner).is_some_and(|s| s.agent.is_some());
        let shared = if has_agent { self.shared_of(owner, &addresses) } else { 0 };
        let Some(agent) = self.space_mut(owner).and_then(|s| s.agent.as_mut()).filter(|_| has_agent) else {
            return self.settle_moves(owner, &moves, None, 0);
        };
        match agent.carry_out(abi::MOVE, &addresses) {
            Ok(Answer::Open { waited_ns }) => self.leave_open(owner, moves, shared, waited_ns),
            Ok(Answer::Outcomes(outcomes)) => self.settle_moves(owner, &moves, Some(outcomes), shared),
            Err(_) => {
                // The process is gone; who waits for its end hears of it.
                if let Some(s) = self.space_mut(owner) {
                    s.agent = None;
                }
                self.settle_moves(owner, &moves, None, 0);
            }
        }
    }

    /// Books the outcomes of pages that were ordered out, with their places. `None`: they are where
    /// they were. `shared`: a bit for each that another process has, too.
    pub(super) fn settle_moves(&mut self, owner: usize, moves: &[(u32, u32)], outcomes: Option<Vec<u32>>, shared: u64) {
        let mut copied = 0;
        if let Some(agent) = self.space(owner).and_then(|s| s.agent.as_ref()).filter(|_| outcomes.is_some()) {
            let made_own = agent.unshared();
            // Another process has the original.
            copied = made_own & shared;
            // Nothing becomes free by these.
            self.note_copies(owner, u64::from(made_own.count_ones()), u64::from(copied.count_ones()));
        }
        for (i, &moved) in moves.iter().enumerate() {
            let outcome = outcomes.as_ref().map_or(libc::EBUSY as u32, |o| o[i]);
            self.settle_move(owner, moved, i, outcome);
        }
        if outcomes.is_some() && self.spaces.len() > FILLED_WINDOWS {
            let agent = self.space_mut(owner).and_then(|s| s.agent.as_mut());
            agent.into_iter().for_each(Agent::empty_window);
        }
        moves.iter().for_each(|&(page, _)| self.serve_waiting(page));
        if copied != 0 {
            let is_copied = |&(i, _): &(usize, &(u32, u32))| copied >> i & 1 != 0;
            let address = |(_, &(page, _)): (usize, &(u32, u32))| self.memory.address[page as usize];
            let copied: Vec<usize> = moves.iter().enumerate().filter(is_copied).map(address).collect();
            self.follow(owner, &copied);
        }
    }

    fn settle_move(&mut self, owner: usize, (page, place): (u32, u32), i: usize, outcome: u32) {
        if outcome == 0 || outcome == abi::UNMARKED {
            let to = self.memory.staging_address(place);
            if let Some(agent) = self.space(owner).and_then(|s| s.agent.as_ref()) {
                // SAFETY: the place was just taken, and nobody else knows it.
                unsafe { agent.take_page(i, to) };
            }
            self.memory.counts.moved_out += 1;
            self.memory.unmarked[page as usize] = outcome != 0;
            if outcome != 0 {
                self.memory.to_mark.push(page);
            }
            self.memory.is_discarding[page as usize] = false;
            self.memory.set_staged(page, place);
            return self.memory.queue_staged(page);
        }
        self.memory.discards.push(place);
        if outcome as i32 == libc::ENOENT {
            // Nothing is there: the program gave it up.
            return self.drop_page(page);
        }
        self.memory.counts.busy += 1;
        self.stay(page);
    }

    /// Pages to be written now. They cannot be touched until [`Core::settle_writes`].
    pub(super) fn claim_writes(&mut self, most: usize) -> Vec<Claim> {
        let mut claimed = Vec::new();
        while claimed.len() < most {
            let Some(page) = self.memory.next_staged() else { break };
            self.memory.staged.pop_front();
            claimed.push(self.memory.claim(page));
        }
        claimed
    }

    /// Books the results of writes.
    pub(super) fn settle_writes(&mut self, claimed: &[Claim], results: &[Result<(), StoreError>]) {
        for (&Claim { page, .. }, result) in claimed.iter().zip(results) {
            let id = PageId(page);
            if std::mem::take(&mut self.memory.dropped[page as usize]) {
                self.memory.leave_place(page, State::Empty);
                self.engine.write_done(&mut self.memory, id, true);
                self.serve_waiting(page);
                continue;
            }
            if let Err(why) = result {
                self.memory.counts.write_errors += 1;
                self.note_failed_write(why);
                if !self.holds_unwritten(page) {
                    self.bring_back(page);
                }
                continue;
            }
            self.memory.counts.swapped_out += 1;
            self.memory.set_state(page, State::Written);
            self.engine.write_done(&mut self.memory, id, true);
            self.serve_waiting(page);
        }
    }

    /// A page that could not be written goes back to where it was.
    pub(super) fn bring_back(&mut self, page: u32) {
        let id = PageId(page);
        if std::mem::take(&mut self.memory.dropped[page as usize]) {
            self.memory.leave_place(page, State::Empty);
            self.engine.write_done(&mut self.memory, id, true);
        } else {
            self.memory.set_state(page, State::Staged);
            self.engine.write_done(&mut self.memory, id, false);
            let p = self.unasked(page);
            self.touch(page, p);
        }
        self.serve_waiting(page);
    }
}
