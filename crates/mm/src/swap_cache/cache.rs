//! Anonymous folios and the swap cache: taking slots, giving them back (8.2).

use crate::engine::Engine;
use crate::folio::table::{FolioTable, State};
use crate::ids::{FolioId, MemcgId, NodeId, SwapSlot};
use crate::lru::lruvec::Lruvec;
use crate::memcg::group::Memcgs;
use crate::swap::SwapHost;
use crate::world::{Ack, Effect, World};

/// The parts of the engine that the swap allocator may touch.
struct Host<'a, W> {
    folios: &'a mut FolioTable,
    memcgs: &'a mut Memcgs,
    lruvecs: &'a [Lruvec],
    w: &'a mut W,
}

impl<W: World> SwapHost for Host<'_, W> {
    fn droppable(&self, f: FolioId) -> Option<(SwapSlot, u8)> {
        let st = self.folios.st(f);
        let busy = st.has(State::LOCKED | State::WRITEBACK) || !st.has(State::UPTODATE);
        (st.has(State::SWAPCACHE) && !busy).then(|| (self.folios.swap(f), st.order()))
    }

    fn dropped(&mut self, f: FolioId) {
        leave_swap_cache(self.folios, self.memcgs, self.lruvecs, f);
    }

    fn discard(&mut self, first: SwapSlot, pages: u32) -> Ack {
        self.w.effect(Effect::Discard { first, pages })
    }
}

/// The data of the folio exists only in memory now: it is dirty.
fn leave_swap_cache(folios: &mut FolioTable, memcgs: &mut Memcgs, lruvecs: &[Lruvec], f: FolioId) {
    note_swap_cache(folios, memcgs, lruvecs, f, -1);
    folios.clear(f, State::SWAPCACHE);
    folios.set(f, State::DIRTY);
    folios.set_swap(f, SwapSlot::NONE);
}

/// Pages in the swap cache, by memcg.
fn note_swap_cache(folios: &FolioTable, memcgs: &mut Memcgs, lruvecs: &[Lruvec], f: FolioId, sign: i64) {
    let nr = folios.st(f).nr_pages() as i64 * sign;
    let m = memcgs.get_mut(lruvecs[folios.lruvec(f).index()].memcg);
    m.swap_cached = m.swap_cached.checked_add_signed(nr).expect("the swap cache never holds less than nothing");
}

impl Engine {
    /// Whether anon of a memcg on a node can go anywhere.
    pub(crate) fn can_reclaim_anon(&self, memcg: MemcgId, nid: NodeId) -> bool {
        self.can_demote(nid)
            || self.groups.memcgs.swap_room(memcg, self.swap.slots.free_pages()) > 0
            || self.cfg.reclaim_swap_cache && self.has_swap_cache(memcg)
    }

    /// Whether a page of the group, or of one below it, is in the swap cache.
    fn has_swap_cache(&self, memcg: MemcgId) -> bool {
        self.groups.memcgs.subtree(memcg).any(|m| self.groups.memcgs.get(m).swap_cached > 0)
    }

    /// The half rule (8.2), for the machine and the memcg.
    pub(crate) fn is_swap_full(&self, f: FolioId) -> bool {
        let memcg = self.pages.lruvecs[self.pages.folios.lruvec(f).index()].memcg;
        self.swap.slots.is_full() || self.groups.memcgs.swap_is_half_used(memcg)
    }

    /// Gives an anonymous folio slots and puts it into the swap cache. It will be written, so it is dirty. False: there are none.
    pub(crate) fn add_to_swap<W: World>(&mut self, w: &mut W, f: FolioId) -> bool {
        let memcg = self.pages.lruvecs[self.pages.folios.lruvec(f).index()].memcg;
        let (order, nr) = (self.pages.folios.st(f).order(), self.pages.folios.st(f).nr_pages());
        if self.groups.memcgs.swap_room(memcg, u64::MAX) < nr {
            self.groups.memcgs.note_swap_failed(memcg, true);
            return false;
        }
        let mut host =
            Host { folios: &mut self.pages.folios, memcgs: &mut self.groups.memcgs, lruvecs: &self.pages.lruvecs, w };
        let slot = self.swap.slots.alloc(order, memcg, self.pages.cpu, &mut host);
        self.settle_swap(w);
        let Some(slot) = slot else {
            self.groups.memcgs.note_swap_failed(memcg, false);
            return false;
        };
        self.groups.memcgs.add_swap(memcg, nr as i64);
        self.swap.slots.add_to_cache(slot, order, f);
        self.pages.folios.set_swap(f, slot);
        self.note_swap_cache(f, 1);
        self.pages.folios.set(f, State::SWAPCACHE | State::DIRTY);
        true
    }

    /// Pages in the swap cache, by memcg.
    pub(crate) fn note_swap_cache(&mut self, f: FolioId, sign: i64) {
        note_swap_cache(&self.pages.folios, &mut self.groups.memcgs, &self.pages.lruvecs, f, sign);
    }

    /// Takes a folio out of the swap cache if no page table needs a slot of it. Its data exists only here then: dirty.
    pub(crate) fn release_swap_cache<W: World>(&mut self, w: &mut W, f: FolioId) {
        let (slot, order) = (self.pages.folios.swap(f), self.pages.folios.st(f).order());
        if self.swap.slots.is_referenced(slot, order) {
            return;
        }
        leave_swap_cache(&mut self.pages.folios, &mut self.groups.memcgs, &self.pages.lruvecs, f);
        self.swap.slots.drop_cache(slot, order, None);
        self.settle_swap(w);
    }

    /// What follows from taking and freeing slots: those that were freed are uncharged, and the driver is told; background work of the
    /// devices is done.
    pub(crate) fn settle_swap<W: World>(&mut self, w: &mut W) {
        loop {
            while let Some(freed) = self.swap.slots.pop_freed() {
                self.groups.memcgs.add_swap(freed.memcg, -i64::from(freed.nr));
                for slot in (0..freed.nr).map(|i| freed.slot.nth(i)) {
                    self.swap.zeromap.clear(slot, 1);
                    self.forget_stored(w, slot);
                    w.effect(Effect::FreeSlot { slot });
                }
            }
            if !self.swap.slots.has_background_work() {
                return;
            }
            let mut host = Host {
                folios: &mut self.pages.folios,
                memcgs: &mut self.groups.memcgs,
                lruvecs: &self.pages.lruvecs,
                w,
            };
            self.swap.slots.background_work(&mut host);
        }
    }

    /// A discard that was pending ended, well or not: the cluster that starts with this slot can be used again.
    pub fn discard_done<W: World>(&mut self, w: &mut W, first: SwapSlot) {
        self.swap.slots.discard_done(first);
        self.settle_swap(w);
    }
}
