//! `memory.reclaim`: a group is asked to give something back before anybody needs it.
//!
//! Mechanism: `docs/mechanisms.md#limits-and-commands`.

use crate::cgroupfs::Cgroupfs;
use crate::ids::MemcgId;
use crate::scan::{MAX_RECLAIM_RETRIES, ScanControl};
use crate::world::World;

/// The error of `memory.reclaim` (`EAGAIN`): less than was asked for could be freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReclaimAgain {
    /// Pages that were freed.
    pub reclaimed: u64,
}

impl std::fmt::Display for ReclaimAgain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "try again: {} pages were reclaimed", self.reclaimed)
    }
}

impl std::error::Error for ReclaimAgain {}

/// A write to `memory.reclaim` under way, for drivers whose time goes on meanwhile: they carry it
/// out a round at a time.
#[derive(Clone, Debug)]
pub struct ReclaimRequest {
    memcg: MemcgId,
    pages: u64,
    swappiness: Option<u32>,
    /// Waits for a swap device that takes no more writes, instead of queueing more.
    waits: bool,
    reclaimed: u64,
    retries: u32,
}

impl ReclaimRequest {
    /// A request for `pages` pages of a memcg and its descendants, with another swappiness if one
    /// is given.
    pub fn new(memcg: MemcgId, pages: u64, swappiness: Option<u32>) -> ReclaimRequest {
        let swappiness = swappiness.map(|s| s.min(200));
        ReclaimRequest { memcg, pages, swappiness, waits: true, reclaimed: 0, retries: MAX_RECLAIM_RETRIES }
    }

    /// Pages that were freed.
    pub fn reclaimed(&self) -> u64 {
        self.reclaimed
    }
}

/// How a request goes on after a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReclaimRound {
    /// As much was freed as was asked for.
    Done,
    /// The next round may follow at once.
    More,
    /// Nothing was freed, and writes are under way: the next round should wait for some of them.
    Wait,
    /// There is nothing more to free ([`ReclaimAgain`]).
    Again,
}

impl<W: World> Cgroupfs<'_, W> {
    /// `memory.reclaim`: frees `pages` pages of a memcg and its descendants, with another
    /// swappiness if one is given. No time passes, so writes still under way when all else is gone
    /// are not waited for.
    pub(crate) fn reclaim(&mut self, id: MemcgId, pages: u64, swappiness: Option<u32>) -> Result<u64, ReclaimAgain> {
        let mut request = ReclaimRequest { waits: false, ..ReclaimRequest::new(id, pages, swappiness) };
        loop {
            match self.reclaim_batch(&mut request) {
                ReclaimRound::More | ReclaimRound::Wait => {}
                ReclaimRound::Done => break,
                ReclaimRound::Again => {
                    self.mem.memcontrol().reap_memcgs();
                    return Err(ReclaimAgain { reclaimed: request.reclaimed });
                }
            }
        }
        self.mem.memcontrol().reap_memcgs();
        Ok(request.reclaimed)
    }

    /// One round of `memory.reclaim`: a quarter of the pages still to free, and a batch at least.
    /// The error: the group is gone.
    pub(crate) fn reclaim_round(&mut self, request: &mut ReclaimRequest) -> Result<ReclaimRound, String> {
        self.mem.groups.online_memcg(request.memcg)?;
        let round = self.reclaim_batch(request);
        self.mem.memcontrol().reap_memcgs();
        Ok(round)
    }

    fn reclaim_batch(&mut self, request: &mut ReclaimRequest) -> ReclaimRound {
        if request.reclaimed >= request.pages {
            return ReclaimRound::Done;
        }
        // The last attempt also finds folios that wait in batches.
        if request.retries == 0 {
            self.mem.pages.drain_all();
        }
        let batch = ((request.pages - request.reclaimed) / 4).max(self.mem.cfg.lru.swap_cluster_max);
        let mut sc = ScanControl::for_memcg(request.memcg, batch, request.swappiness);
        (sc.proactive, sc.waits_for_queue) = (true, request.waits);
        let mut run = self.reclaim_with(sc);
        let now = run.try_to_free();
        let blocked = run.sc.blocked;
        request.reclaimed += now;
        if now > 0 {
            let done = request.reclaimed >= request.pages;
            return if done { ReclaimRound::Done } else { ReclaimRound::More };
        }
        if request.waits && (blocked || self.mem.writeback.is_write_pending(&self.mem.groups, request.memcg)) {
            return ReclaimRound::Wait;
        }
        if request.retries == 0 {
            return ReclaimRound::Again;
        }
        request.retries -= 1;
        ReclaimRound::More
    }
}
