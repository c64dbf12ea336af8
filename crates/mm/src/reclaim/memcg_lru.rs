//! Reclaim of the whole machine under multi-gen LRU: a pass over the old generation of groups.
//!
//! Mechanism: `docs/mechanisms.md#the-memcg-lru`.

use crate::config::lru::ScanBudget;
use crate::ids::MemcgId;
use crate::memcg::memcg_lru::{MEMCG_NR_BINS, Rotation, Segment};
use crate::memcg::protection::BelowProtection;
use crate::reclaim::Reclaim;
use crate::world::World;

impl<W: World> Reclaim<'_, W> {
    /// One pass over the old generation, from a bin by chance on, until reclaim has what it wants.
    pub(crate) fn shrink_many(&mut self) {
        let n = self.sc.nid.index();
        let lru = &mut self.mem.groups.memcg_lru[n];
        let resumed = self.sc.at.as_mut().and_then(|at| Some((at.bins.take()?, at.memcg)));
        let (generation, first_bin, done) = match resumed {
            Some((bins, _)) => bins,
            None => (lru.old(), lru.random_bin(), 0),
        };
        let mut resumed = resumed.map(|r| r.1);
        if resumed.is_some_and(|id| !lru.is_in(id, generation, (first_bin + done) % MEMCG_NR_BINS)) {
            // The group was moved, or is gone: the next pass sees the groups that are there.
            return;
        }
        for i in done..MEMCG_NR_BINS {
            let bin = (first_bin + i) % MEMCG_NR_BINS;
            let mut at = resumed.or(self.mem.groups.memcg_lru[n].bins[generation][bin].0);
            while let Some(id) = at {
                let rotation = match resumed.take() {
                    Some(_) => self.shrink_lists_rotating(id),
                    None => self.shrink_rotating(id),
                };
                if self.sc.interrupted {
                    let pass = self.sc.interrupt();
                    (pass.memcg, pass.bins) = (id, Some((generation, first_bin, i)));
                    return;
                }
                // The group that comes next is known before this one moves: it may come back into
                // this bin.
                at = self.mem.groups.memcg_lru[n].places[id.index()].next;
                if let Some(to) = rotation {
                    self.mem.groups.memcg_lru[n].rotate(id, to);
                }
                if self.should_abort_scan() {
                    return;
                }
            }
        }
    }

    /// Shrinks a group. Returns where the group goes then; none: it stays, because there is more to
    /// take.
    fn shrink_rotating(&mut self, id: MemcgId) -> Option<Rotation> {
        let was_tail = self.mem.groups.memcg_lru[self.sc.nid.index()].places[id.index()].segment == Segment::Tail;
        match self.mem.groups.memcgs.below_protection(MemcgId::ROOT, id) {
            BelowProtection::Min => return Some(Rotation::Young),
            // Others first. A group that is met again is not spared.
            BelowProtection::Low if !was_tail => return Some(Rotation::Tail),
            BelowProtection::Low => self.mem.groups.memcgs.event(id, |e| &mut e.low),
            BelowProtection::None => {}
        }
        self.note_visit(id);
        if self.mem.pages.drain_batches() {
            self.sc.empty_since = 0;
        }
        if self.known_empty(id).is_some() {
            return Some(self.one_more_try(id));
        }
        self.shrink_lists_rotating(id)
    }

    /// Where a group goes that was removed, or is too small.
    fn one_more_try(&self, id: MemcgId) -> Rotation {
        match self.mem.groups.memcg_lru[self.sc.nid.index()].places[id.index()].segment {
            Segment::Tail => Rotation::Young,
            Segment::Default => Rotation::Tail,
        }
    }

    fn shrink_lists_rotating(&mut self, id: MemcgId) -> Option<Rotation> {
        let (v, online) = (self.mem.pages.lruvec_of(id, self.sc.nid), self.mem.groups.memcgs.get(id).is_online());
        let aged = self.shrink_lruvec_gen(v);
        if self.sc.interrupted {
            return None;
        }
        let priority = self.sc.priority;
        self.mem.memcontrol().shrink_slab(v, priority);
        if aged && online {
            return Some(Rotation::Young);
        }
        if !aged {
            let swappiness = self.effective_swappiness(v);
            let total = match self.mem.cfg.lru.scan_budget {
                ScanBudget::PerBatch => self.mem.pages.should_run_aging(v, swappiness).total,
                ScanBudget::Once => self.mem.pages.evictable_size(v, swappiness),
            };
            if total >> if online { self.sc.priority } else { 0 } > 0 {
                return None;
            }
        }
        Some(self.one_more_try(id))
    }
}
