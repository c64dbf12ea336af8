//! Moves pages charged to a removed group to its parent at once, with their place on the lists
//! (since Linux 7.1).
//!
//! Mechanism: `docs/mechanisms.md#removing-a-memcg`.

use crate::ids::MemcgId;
use crate::lru::policy::LruPolicy;
use crate::memcontrol::Memcontrol;

impl Memcontrol<'_> {
    /// Folios, page tables and mappings of a group belong to its parent from now on. Its pages in
    /// swap stay charged to it. Nothing waits in a batch.
    pub(crate) fn reparent_folios(&mut self, now_ns: u64, id: MemcgId) {
        let Some(parent) = self.groups.memcgs.get(id).parent else { return };
        let can_swap = self.groups.swappiness(self.cfg, parent, None) > 0;
        let mut moves = Vec::new();
        for nid in self.frames.nodes.ids() {
            let [child, above] = [id, parent].map(|m| self.pages.lruvec_of(m, nid));
            if by_policy!(self.cfg.lru.kind, P => P::LISTS_BY_ZONE) {
                self.pages.open_all_generations(now_ns, above, can_swap);
            }
            moves.append(&mut self.pages.take_for_parent(child, above));
        }
        self.hand_over_mappings(id, parent);
        moves.into_iter().for_each(|(list, f)| self.pages.folios.links.add_tail(list, f));
        self.reparent_charges(id, parent);
    }

    /// The usage of the parent has them already.
    fn reparent_charges(&mut self, id: MemcgId, parent: MemcgId) {
        let m = self.groups.memcgs.get_mut(id);
        m.usage = m.zswap.pages();
        let [dirty, writeback, cached, tables] =
            [&mut m.dirty, &mut m.writeback, &mut m.swap_cached, &mut m.page_tables].map(std::mem::take);
        m.kernel -= tables;
        let above = self.groups.memcgs.get_mut(parent);
        above.dirty += dirty;
        above.writeback += writeback;
        above.swap_cached += cached;
        above.page_tables += tables;
        above.kernel += tables;
        self.groups.memcgs.propagate_protection(id);
    }
}
