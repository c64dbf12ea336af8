//! Frames and charges of large folios, of files and of anonymous memory. A first touch of anonymous
//! memory makes the largest folio that is allowed and has room.

use crate::alloc::Alloc;
use crate::config::thp::HugeAdvice;
use crate::ids::{MemcgId, ZoneId};
use crate::node::zones::AllocWatermark;
use crate::world::World;

/// The reason why a large folio was not made.
pub(crate) enum NoRoom {
    NoFrames,
    NoCharge,
}

impl<W: World> Alloc<'_, W> {
    /// Takes frames for a large anonymous folio of `nr` pages, and charges them. A smaller folio
    /// will do as well, so nobody is killed for want of room.
    pub(crate) fn charge_large(&mut self, memcg: MemcgId, nr: u64, huge: HugeAdvice) -> Result<ZoneId, NoRoom> {
        let (reclaim, wakes) = (self.mem.cfg.thp.may_reclaim(huge), self.mem.cfg.thp.wakes_kswapd(huge));
        self.charge_whole(memcg, nr, reclaim, wakes)
    }

    /// The same for a large folio of the page cache, which may reclaim whatever the advice.
    pub(crate) fn charge_file_folio(&mut self, memcg: MemcgId, nr: u64) -> Option<ZoneId> {
        self.charge_whole(memcg, nr, true, true).ok()
    }

    fn charge_whole(&mut self, memcg: MemcgId, nr: u64, reclaim: bool, wakes: bool) -> Result<ZoneId, NoRoom> {
        let zone = self.take_large_frames(nr, reclaim, wakes).ok_or(NoRoom::NoFrames)?;
        let charged = match self.mem.groups.memcgs.try_charge(memcg, nr, true) {
            Ok(()) => true,
            Err(over) => reclaim && self.charge_slow(memcg, nr, over, false).is_ok(),
        };
        if charged {
            return Ok(zone);
        }
        self.mem.frames.nodes.give_back(zone, nr);
        Err(NoRoom::NoCharge)
    }

    /// Takes `nr` frames for a large folio, with one round of reclaim at most.
    fn take_large_frames(&mut self, nr: u64, reclaim: bool, wakes: bool) -> Option<ZoneId> {
        if !self.mem.frames.nodes.is_limited() {
            return Some(ZoneId::default());
        }
        if let Some(zone) = self.mem.frames.nodes.take(self.mem.frames.nid, nr, AllocWatermark::Low) {
            return Some(zone);
        }
        if wakes {
            self.mem.frames.wake_all_kswapds(&mut self.mem.pages, self.mem.now_ns, self.world);
        }
        if let Some(zone) = self.mem.frames.nodes.take(self.mem.frames.nid, nr, AllocWatermark::Min) {
            return Some(zone);
        }
        if !reclaim || self.mem.frames.nodes.get(self.mem.frames.nid).is_exhausted() {
            return None;
        }
        self.reclaim_memcg(MemcgId::ROOT, nr);
        [AllocWatermark::Low, AllocWatermark::Min]
            .into_iter()
            .find_map(|mark| self.mem.frames.nodes.take(self.mem.frames.nid, nr, mark))
    }
}
