//! Faults by mapping map what is resident around them, too (2.2, `fault_around_pages`).

use crate::engine::Engine;
use crate::folio::table::State;
use crate::ids::PageId;
use crate::world::World;

impl Engine {
    /// Maps the resident neighbours of a read fault, in the aligned window around it.
    pub(crate) fn fault_around<W: World>(&mut self, w: &mut W, page: PageId) {
        let around = self.cfg.fault_around_pages;
        if around <= 1 {
            return;
        }
        if around > 64 {
            let near = self.pages.space.around(page, self.pages.folios.node_of(page), around as u32);
            let window = self.page_index(page) & !(around - 1);
            for near in near.map(PageId) {
                if self.page_index(near) & !(around - 1) == window {
                    self.map_neighbour(w, page, near);
                }
            }
            return;
        }
        // The window lies within a node of 64 slots: what is there and not mapped is found by bits, before any folio is looked at.
        let ids = self.pages.space.around_in_node(&self.pages.folios, page, around);
        let mut there = self.pages.folios.up_to_date(ids.clone()) & !self.pages.space.mapped_bits(ids.clone());
        while there != 0 {
            self.map_neighbour(w, page, PageId(ids.start + there.trailing_zeros()));
            there &= there - 1;
        }
    }

    /// Maps a page in the window of a read fault on `page`, if it is there to be mapped.
    fn map_neighbour<W: World>(&mut self, w: &mut W, page: PageId, near: PageId) {
        let there = u32::from(self.pages.folios.hot[near.index()]) & State::UPTODATE != 0;
        if near == page || !there || self.pages.space.is_mapped(near) {
            return;
        }
        let Some(f) = self.pages.folios.slot(near).folio() else { return };
        if !self.pages.folios.st(f).has(State::LOCKED) {
            self.map_folio_with(w, f, self.cfg.fault_around_young, false);
        }
    }
}
