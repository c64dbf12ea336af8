//! Anonymous folios and the swap cache: taking a slot, giving it back (8.2).

use crate::Engine;
use crate::folio::State;
use crate::ids::{FolioId, MemcgId, SwapSlot};
use crate::world::{Effect, World};

impl Engine {
    /// Whether anon of a memcg can go anywhere.
    pub(crate) fn can_reclaim_anon(&self, memcg: MemcgId) -> bool {
        self.memcgs.swap_room(memcg, self.swap.free_pages()) > 0
    }

    /// The half rule (8.2), for the machine and the memcg.
    pub(crate) fn is_swap_full(&self, f: FolioId) -> bool {
        let memcg = self.lruvecs[self.folios.lruvec(f).index()].memcg;
        self.swap.is_full() || self.memcgs.swap_is_half_used(memcg)
    }

    /// Gives an anonymous folio a slot and puts it into the swap cache. It will be written, so it is dirty.
    pub(crate) fn add_to_swap(&mut self, f: FolioId) -> bool {
        let memcg = self.lruvecs[self.folios.lruvec(f).index()].memcg;
        if self.folios.st(f).has(State::LARGE) || self.memcgs.swap_room(memcg, self.swap.free_pages()) == 0 {
            return false;
        }
        let Some(slot) = self.swap.alloc(f, memcg) else { return false };
        self.memcgs.add_swap(memcg, 1);
        self.folios.set_swap(f, slot);
        self.note_swap_cache(f, 1);
        self.folios.set(f, State::SWAPCACHE | State::DIRTY);
        true
    }

    /// Pages in the swap cache, by memcg.
    pub(crate) fn note_swap_cache(&mut self, f: FolioId, sign: i64) {
        let nr = self.folios.st(f).nr_pages() as i64 * sign;
        let m = self.memcgs.get_mut(self.lruvecs[self.folios.lruvec(f).index()].memcg);
        m.swap_cached = m.swap_cached.checked_add_signed(nr).expect("the swap cache never holds less than nothing");
    }

    /// Takes a folio out of the swap cache if no page table needs its slot. Its data exists only here then: dirty.
    pub(crate) fn release_swap_cache(&mut self, f: FolioId) -> Option<SwapSlot> {
        let slot = self.folios.swap(f);
        if self.swap.count(slot) > 0 {
            return None;
        }
        self.note_swap_cache(f, -1);
        self.folios.clear(f, State::SWAPCACHE);
        self.folios.set(f, State::DIRTY);
        self.folios.set_swap(f, SwapSlot::NONE);
        let freed = self.swap.drop_cache(slot, None)?;
        self.memcgs.add_swap(freed, -1);
        Some(slot)
    }

    /// As [`Engine::release_swap_cache`], telling the driver.
    pub(crate) fn release_swap_cache_of<W: World>(&mut self, w: &mut W, f: FolioId) {
        if let Some(slot) = self.release_swap_cache(f) {
            w.effect(Effect::FreeSlot { slot });
        }
    }

    /// A slot lost its last user: uncharge it and tell the driver.
    pub(crate) fn slot_freed<W: World>(&mut self, w: &mut W, slot: SwapSlot, freed: Option<MemcgId>) {
        if let Some(memcg) = freed {
            self.memcgs.add_swap(memcg, -1);
            w.effect(Effect::FreeSlot { slot });
        }
    }
}
