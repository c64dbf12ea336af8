//! Groups that are made and removed: what is charged to a removed group stays until reclaim took
//! it, or goes to its parent at once, and its number stays until no shadow names it.
//!
//! Mechanism: `docs/mechanisms.md#removing-a-memcg`.

use crate::folio::mapping::{Fill, MappingKind};
use crate::ids::{LruvecId, MappingId, MemcgId, PageId};
use crate::lru::lruvec::Lruvec;
use crate::memcg::group::{Memcg, MemcgState};
use crate::memcg::memcg_lru::Rotation;
use crate::memcontrol::Memcontrol;
use crate::swap::Swap;

/// So many groups may be gone before their numbers are looked for.
const GONE_BEFORE_SCAN: usize = 1024;

impl Memcontrol<'_> {
    /// Removes a memcg without children, as `rmdir` does; its tasks are gone. Its pages in memory
    /// go to its parent (`lru_reparent`), or stay charged to it, and are first in line when its
    /// ancestors are reclaimed. Its mappings go to its parent once nothing of them is left.
    pub(crate) fn remove_memcg(&mut self, now_ns: u64, id: MemcgId) -> Result<(), String> {
        self.groups.online_memcg(id)?;
        if id == MemcgId::ROOT {
            return Err("the root cannot be removed".into());
        }
        if self.groups.memcgs.children(id).any(|c| self.groups.memcgs.get(c).is_online()) {
            return Err(format!("memcg {} has children; remove them first", self.groups.memcgs.get(id).name));
        }
        self.pages.drain_all();
        self.groups.memcgs.drain_stock(id);
        let reserved = std::mem::take(&mut self.groups.memcgs.get_mut(id).reserved);
        self.groups.memcgs.uncharge(id, reserved);
        self.reparent_objects(id);
        if self.cfg.memcg.lru_reparent {
            self.reparent_folios(now_ns, id);
        }
        let m = self.groups.memcgs.get_mut(id);
        m.state = MemcgState::Offline;
        m.protection.setting = [0; 2];
        // Nobody charges it in Linux any more; here, the user of its mappings does, and no limit
        // may be in their way.
        (m.high, m.max) = (u64::MAX, u64::MAX);
        self.groups.memcgs.propagate_protection(id);
        self.groups.memcgs.offline.push(id);
        self.groups.memcg_lru.iter_mut().for_each(|lru| lru.rotate(id, Rotation::Old));
        self.reap_memcgs();
        Ok(())
    }

    /// Gives tree nodes, those with nothing but shadows too, and the slab pages they lie on to the
    /// parent.
    fn reparent_objects(&mut self, id: MemcgId) {
        let Some(parent) = self.groups.memcgs.get(id).parent else { return };
        for nid in self.frames.nodes.ids() {
            let lists = [id, parent].map(|m| self.pages.lruvec_of(m, nid).index());
            while let Some(n) = self.pages.lruvecs[lists[0]].shadow_nodes.oldest() {
                self.pages.lruvecs[lists[0]].shadow_nodes.remove(&mut self.pages.space, n);
                self.pages.lruvecs[lists[1]].shadow_nodes.push(&mut self.pages.space, n);
            }
            let files = std::mem::take(&mut self.pages.lruvecs[lists[0]].inodes);
            self.pages.lruvecs[lists[1]].inodes.append(files);
            self.pages.lruvecs[lists[0]].external = 0;
            self.pages.lruvecs[lists[1]].xa_nodes += std::mem::take(&mut self.pages.lruvecs[lists[0]].xa_nodes);
        }
        for (node, fill) in self.pages.space.nodes.iter_mut().zip(&self.pages.space.fill) {
            if node.memcg == id && fill.count > 0 && *fill != Fill::ANON {
                node.memcg = parent;
            }
        }
        let m = self.groups.memcgs.get_mut(id);
        let (nodes, bytes) = (std::mem::take(&mut m.nodes), std::mem::take(&mut m.obj_bytes));
        let pages = m.kernel - m.page_tables;
        m.kernel = m.page_tables;
        // The usage of the parent includes these pages already.
        m.usage -= pages;
        self.groups.memcgs.propagate_protection(id);
        let above = self.groups.memcgs.get_mut(parent);
        above.nodes += nodes;
        above.kernel += pages;
        above.obj_bytes += bytes;
    }

    /// Groups that were removed and have nothing charged any more leave the tree. Not from within a
    /// charge: it may be to one of them.
    pub(crate) fn reap_memcgs(&mut self) {
        let mut offline = std::mem::take(&mut self.groups.memcgs.offline);
        // Children first: they were removed before their parents.
        offline.retain(|&id| !self.try_to_reap(id));
        self.groups.memcgs.offline = offline;
    }

    fn try_to_reap(&mut self, id: MemcgId) -> bool {
        self.groups.memcgs.drain_stock(id);
        let m = self.groups.memcgs.get(id);
        let pages = m.usage - m.kernel;
        if self.groups.memcgs.has_children(id) || pages > 0 || m.swap_own > 0 || m.writeback > 0 {
            return false;
        }
        self.release_tables(id);
        self.release_objects(id);
        let m = self.groups.memcgs.get(id);
        if m.usage > 0 || m.nodes > 0 {
            return false;
        }
        let parent = m.parent.unwrap_or(MemcgId::ROOT);
        self.hand_over_mappings(id, parent);
        // Its counts stay in the sums of those above.
        for nid in self.frames.nodes.ids() {
            let [own, above] = [id, parent].map(|m| self.pages.lruvec_of(m, nid).index());
            let stat = std::mem::take(&mut self.pages.lruvecs[own].stat);
            self.pages.lruvecs[above].stat.merge(&stat);
            let activated = std::mem::take(&mut self.pages.lruvecs[own].activated);
            (0..2).for_each(|t| self.pages.lruvecs[above].activated[t] += activated[t]);
        }
        self.groups.memcgs.unlink(id);
        self.groups.memcg_lru.iter_mut().for_each(|lru| lru.release(id));
        let m = self.groups.memcgs.get_mut(id);
        m.state = MemcgState::Gone;
        self.groups.memcgs.gone.push(id);
        true
    }

    /// Mappings change their owner: the group that uses them next is charged above. Nothing of them
    /// is on a list.
    pub(super) fn hand_over_mappings(&mut self, from: MemcgId, to: MemcgId) {
        let v = self.groups.memcgs.get(to).lruvec;
        for m in self.pages.space.mappings.iter_mut().filter(|m| m.memcg == from) {
            m.memcg = to;
        }
        let own = self.groups.memcgs.get(from).lruvec;
        self.pages.folios.links.owners.iter_mut().filter(|owner| **owner == own).for_each(|owner| *owner = v);
    }

    /// The number of a group that is gone and that no shadow names, for a new one. Looked for when
    /// many are gone.
    fn take_gone_memcg(&mut self, swap: &Swap) -> Option<MemcgId> {
        self.reap_memcgs();
        let gone = self.groups.memcgs.gone.len();
        let full = self.groups.memcgs.all.len() > usize::from(u16::MAX);
        if self.groups.memcgs.unused.is_empty()
            && gone > 0
            && (full || gone > GONE_BEFORE_SCAN.max(self.groups.memcgs.all.len() / 2))
        {
            let named = self.named_by_shadows(swap);
            // A group that no shadow names will not be named again: no eviction stamps a shadow for
            // a group that is gone.
            let (gone, unused) = self.groups.memcgs.gone.iter().partition(|id| named[id.index()]);
            (self.groups.memcgs.gone, self.groups.memcgs.unused) = (gone, unused);
        }
        let id = self.groups.memcgs.unused.pop()?;
        for v in self.pages.lruvecs_of(id) {
            self.pages.lruvecs[v.index()].start_over();
            if let Some(ext) = &mut self.pages.ext {
                ext.forget(v);
            }
        }
        Some(id)
    }

    /// By number: whether a shadow names the group.
    fn named_by_shadows(&self, swap: &Swap) -> Vec<bool> {
        let mut named = vec![false; self.groups.memcgs.all.len()];
        for m in self.pages.space.mappings.iter().enumerate() {
            for page in self.pages.mapping_pages(MappingId(m.0 as u32)).map(PageId) {
                if let Some(shadow) = self.shadow_of_page(swap, m.1.kind, page) {
                    named[self.pages.layout.unpack(shadow).memcg.index()] = true;
                }
            }
        }
        named
    }

    fn shadow_of_page(&self, swap: &Swap, kind: MappingKind, page: PageId) -> Option<u64> {
        match kind {
            MappingKind::File => self.pages.folios.slot(page).as_value(),
            MappingKind::Anon => self.pages.swap_entry(page).and_then(|slot| swap.shadow(slot)),
        }
    }

    /// A new memcg under `parent`, with `memory.max` and `memory.swap.max` in pages (`u64::MAX`:
    /// none).
    pub(crate) fn add_memcg(
        &mut self,
        swap: &Swap,
        parent: MemcgId,
        name: &str,
        max_pages: u64,
        swap_max_pages: u64,
    ) -> Result<MemcgId, String> {
        self.groups.online_memcg(parent)?;
        let id = match self.take_gone_memcg(swap) {
            Some(id) => id,
            None => {
                if self.groups.memcgs.all.len() > usize::from(u16::MAX) {
                    return Err("more than 65535 memory cgroups".into());
                }
                let id = MemcgId(self.groups.memcgs.all.len() as u16);
                let v = LruvecId(self.pages.lruvecs.len() as u32);
                for nid in self.frames.nodes.ids() {
                    self.pages.lruvecs.push(Lruvec::new(&mut self.pages.folios, id, nid, self.cfg.seed));
                }
                self.groups.memcgs.all.push(Memcg::new(None, name, v, max_pages, swap_max_pages));
                id
            }
        };
        let v = self.groups.memcgs.get(id).lruvec;
        for nid in self.frames.nodes.ids() {
            self.pages.lruvecs[v.on(nid).index()].parent = Some(self.pages.lruvec_of(parent, nid));
        }
        *self.groups.memcgs.get_mut(id) = Memcg::new(None, name, v, max_pages, swap_max_pages);
        self.groups.memcgs.link(id, parent);
        self.groups.memcg_lru.iter_mut().for_each(|lru| lru.online(id));
        self.groups.memcgs.get_mut(id).reserved = self.cfg.memcg.reserved_pages;
        self.groups.memcgs.force_charge(id, self.cfg.memcg.reserved_pages);
        self.groups.memcgs.tolerate(id);
        Ok(id)
    }
}
