//! The worker that writes compressed pages back until the pool is below its accept threshold.

use crate::alloc::Alloc;
use crate::ids::{MemcgId, ZoneId};
use crate::node::zones::AllocWatermark;
use crate::page_io::zswap_writeback::{MAX_FAILURES, Visit};
use crate::world::World;
use crate::zswap::ZswapStep;

/// Groups that the worker visits in one step.
const VISITS: u32 = 32;

impl<W: World> Alloc<'_, W> {
    /// One step of the worker that writes entries of zswap back: to be called from
    /// [`Effect::WakeZswap`] on until it says `Sleep`.
    pub(crate) fn zswap_step(&mut self) -> ZswapStep {
        for _ in 0..VISITS {
            if !self.mem.swap.zswap.worker.awake
                || self.mem.swap.zswap.pool_pages() <= self.mem.swap.zswap_accept_pages(&self.mem.cfg, &self.mem.frames)
                || self.visit_next()
            {
                self.mem.swap.zswap.worker.awake = false;
                return ZswapStep::Sleep;
            }
        }
        ZswapStep::Again
    }

    /// The worker from beginning to end, for drivers without a thread for it.
    pub(crate) fn run_zswap(&mut self) {
        self.mem.swap.zswap.worker.due = false;
        while self.zswap_step() == ZswapStep::Again {}
    }

    /// Visits the next group in turn. True: too many visits failed, and the worker gives up.
    fn visit_next(&mut self) -> bool {
        let worker = &mut self.mem.swap.zswap.worker;
        let fruitless = if worker.next >= self.mem.groups.memcgs.all.len() {
            worker.next = 0;
            // Whether a round over all groups found nothing to write back.
            std::mem::take(&mut worker.attempts) == 0
        } else {
            let memcg = MemcgId(worker.next as u16);
            worker.next += 1;
            let visit = self.write_back_oldest(memcg);
            self.mem.swap.zswap.worker.attempts += u32::from(visit != Visit::Nothing);
            visit == Visit::Fruitless
        };
        self.mem.swap.zswap.worker.failures += u32::from(fruitless);
        self.mem.swap.zswap.worker.failures >= MAX_FAILURES
    }

    fn write_back_oldest(&mut self, memcg: MemcgId) -> Visit {
        let victim = match self.page_io().choose_victim(memcg) {
            Ok(victim) => victim,
            Err(visit) => return visit,
        };
        let mut written = self.page_io().drop_unneeded(victim);
        if !written && let Some(zone) = self.charge_for_write_back(victim.memcg) {
            written = self.page_io().write_back_charged(victim, zone);
        }
        self.page_io().note_write_back(written)
    }

    /// A frame for a page that comes out of zswap; reclaims if there is none.
    fn charge_for_write_back(&mut self, memcg: MemcgId) -> Option<ZoneId> {
        let zone = match self.mem.frames.take_write_back_frame(AllocWatermark::Min) {
            Some(zone) => zone,
            None => {
                self.reclaim_memcg(MemcgId::ROOT, 1);
                self.mem.frames.take_write_back_frame(AllocWatermark::Min)?
            }
        };
        let mut charged = self.mem.groups.memcgs.try_charge(memcg, 1, false);
        if let Err(over) = charged {
            self.reclaim_memcg(over, 1);
            charged = self.mem.groups.memcgs.try_charge(memcg, 1, false);
        }
        if charged.is_err() {
            self.mem.frames.nodes.give_back(zone, 1);
            return None;
        }
        Some(zone)
    }
}
