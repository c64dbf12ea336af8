//! From zswap to the device: the oldest entries, each spared once, to make room in the pool or in a group.

use crate::engine::Engine;
use crate::folio::table::State;
use crate::ids::{FolioId, MemcgId, PageId, SwapSlot};
use crate::node::node::Mark;
use crate::node::nodes::ZoneId;
use crate::stat::Counter;
use crate::world::{Ack, Effect, World};

/// So many fruitless tries, and the worker gives up.
const MAX_FAILURES: u32 = 16;
/// Groups that the worker visits in one step.
const VISITS: u32 = 32;

/// What the worker says after a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZswapStep {
    /// It goes on.
    Again,
    /// It has done what it can, and sleeps until [`crate::Effect::WakeZswap`].
    Sleep,
}

/// What a visit of one group came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Visit {
    /// There is nothing that may be written back.
    Nothing,
    /// An entry was spared, or could not be written.
    Fruitless,
    /// An entry is on its way to the device.
    Written,
}

/// Who needs the room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Caller {
    /// Reclaim, which must not reclaim in turn: it may use the last frames, and exceed limits for a moment.
    Reclaim,
    /// The worker.
    Worker,
}

impl Engine {
    /// A store met a full pool.
    pub(crate) fn wake_zswap<W: World>(&mut self, w: &mut W) {
        if self.swap.zswap.worker.awake {
            return;
        }
        let worker = &mut self.swap.zswap.worker;
        (worker.awake, worker.failures, worker.attempts) = (true, 0, 0);
        worker.due = w.effect(Effect::WakeZswap) == Ack::Done;
    }

    /// A step of the worker that writes entries back: from [`Effect::WakeZswap`] on until it says `Sleep`.
    pub fn zswap_step<W: World>(&mut self, w: &mut W) -> ZswapStep {
        for _ in 0..VISITS {
            if !self.swap.zswap.worker.awake
                || self.swap.zswap.pool_pages() <= self.zswap_accept_pages()
                || self.visit_next(w)
            {
                self.swap.zswap.worker.awake = false;
                return ZswapStep::Sleep;
            }
        }
        ZswapStep::Again
    }

    /// The worker from beginning to end, for drivers without a thread for it.
    pub(crate) fn run_zswap<W: World>(&mut self, w: &mut W) {
        self.swap.zswap.worker.due = false;
        while self.zswap_step(w) == ZswapStep::Again {}
    }

    /// The next group in turn. True: it is time to give up.
    fn visit_next<W: World>(&mut self, w: &mut W) -> bool {
        let worker = &mut self.swap.zswap.worker;
        let fruitless = if worker.next >= self.groups.memcgs.all.len() {
            worker.next = 0;
            // A round over all groups in which there was nothing to do.
            std::mem::take(&mut worker.attempts) == 0
        } else {
            let memcg = MemcgId(worker.next as u16);
            worker.next += 1;
            let visit = self.write_back_oldest(w, memcg, Caller::Worker);
            self.swap.zswap.worker.attempts += u32::from(visit != Visit::Nothing);
            visit == Visit::Fruitless
        };
        self.swap.zswap.worker.failures += u32::from(fruitless);
        self.swap.zswap.worker.failures >= MAX_FAILURES
    }

    /// A group is at its `zswap.max`: its own oldest entry makes room for the next.
    pub(crate) fn make_zswap_room<W: World>(&mut self, w: &mut W, memcg: MemcgId) -> bool {
        self.write_back_oldest(w, memcg, Caller::Reclaim) == Visit::Written
    }

    fn write_back_oldest<W: World>(&mut self, w: &mut W, memcg: MemcgId, caller: Caller) -> Visit {
        let Some(slot) = self.swap.zswap.oldest(memcg).filter(|_| self.may_write_back(memcg)) else {
            return Visit::Nothing;
        };
        let spared = self.swap.zswap.get(slot).is_some_and(|e| e.referenced);
        self.swap.zswap.rotate(slot);
        // A device on which everything fails would give reclaim a page back for each that it takes, for ever.
        if spared || self.writeback.writes_failed >= u64::from(MAX_FAILURES) {
            return Visit::Fruitless;
        }
        if self.write_back(w, slot, caller) {
            self.swap.zswap.stats.written_back_pages += 1;
            return Visit::Written;
        }
        self.swap.zswap.stats.reject_reclaim_fail += 1;
        Visit::Fruitless
    }

    /// Decompresses an entry into a folio of the swap cache and writes that.
    fn write_back<W: World>(&mut self, w: &mut W, slot: SwapSlot, caller: Caller) -> bool {
        let Some((page, memcg)) = self.swap.zswap.get(slot).map(|e| (e.page, e.memcg)) else { return false };
        if self.swap.slots.count(slot) == 0 {
            // Nobody needs it; the slot only waits to be freed.
            self.forget_stored(w, slot);
            return true;
        }
        let Some(zone) = self.charge_for_write_back(w, memcg, caller) else { return false };
        // Reclaim for that page may have written this very entry.
        if self.swap.zswap.get(slot).is_none_or(|e| e.page != page) {
            self.cancel_charge(memcg, zone, 1);
            return false;
        }
        let f = self.add_charged_swap_folio(page, slot, memcg, zone, false);
        self.fill_and_write(w, f, page, slot);
        // What could not be written makes no room.
        self.pages.folios.st(f).has(State::WRITEBACK) || !self.pages.folios.st(f).has(State::DIRTY)
    }

    fn fill_and_write<W: World>(&mut self, w: &mut W, f: FolioId, page: PageId, slot: SwapSlot) {
        self.zswap_load(w, page, slot);
        self.count(f, Counter::Zswpwb, 1);
        // Reclaim wants it gone as soon as it is written.
        self.pages.folios.set(f, State::UPTODATE | State::RECLAIM);
        self.start_write(w, f, true);
    }

    fn charge_for_write_back<W: World>(&mut self, w: &mut W, memcg: MemcgId, caller: Caller) -> Option<ZoneId> {
        if caller == Caller::Reclaim {
            let zone = self.take_write_back_frame(Mark::None)?;
            self.groups.memcgs.force_charge(memcg, 1);
            return Some(zone);
        }
        let zone = match self.take_write_back_frame(Mark::Min) {
            Some(zone) => zone,
            None => {
                self.reclaim_memcg(w, MemcgId::ROOT, 1);
                self.take_write_back_frame(Mark::Min)?
            }
        };
        let charged = self.groups.memcgs.try_charge(memcg, 1, false).or_else(|over| {
            self.reclaim_memcg(w, over, 1);
            self.groups.memcgs.try_charge(memcg, 1, false)
        });
        if charged.is_err() {
            self.frames.nodes.give_back(zone, 1);
            return None;
        }
        Some(zone)
    }

    fn take_write_back_frame(&mut self, mark: Mark) -> Option<ZoneId> {
        if self.frames.nodes.is_limited() {
            self.frames.nodes.take(self.frames.nid, 1, mark)
        } else {
            Some(ZoneId::default())
        }
    }
}
