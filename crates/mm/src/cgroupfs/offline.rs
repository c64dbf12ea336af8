//! Removing memory cgroups: what is charged to them stays until reclaim took it, and their numbers stay until no shadow names them.

use crate::engine::Engine;
use crate::folio::mapping::{Fill, MappingKind};
use crate::ids::{MappingId, MemcgId, PageId};
use crate::memcg::group::{Life, PAGE_BYTES};
use crate::memcg::memcg_lru::Rotation;
use crate::stat::Counter;

/// So many groups may be gone before their numbers are looked for.
const GONE_BEFORE_SCAN: usize = 1024;

impl Engine {
    /// Removes a memcg without children, as `rmdir` does; its tasks are gone. What it has in memory stays charged to it, and is first
    /// in line when its ancestors are reclaimed. Its mappings go to its parent once nothing of them is left.
    pub fn remove_memcg(&mut self, id: MemcgId) -> Result<(), String> {
        self.online_memcg(id)?;
        if id == MemcgId::ROOT {
            return Err("the root cannot be removed".into());
        }
        if self.groups.memcgs.children(id).any(|c| self.groups.memcgs.get(c).is_online()) {
            return Err(format!("memcg {} has children; remove them first", self.groups.memcgs.get(id).name));
        }
        self.drain_all();
        self.groups.memcgs.drain_stock(id);
        let reserved = std::mem::take(&mut self.groups.memcgs.get_mut(id).reserved);
        self.groups.memcgs.uncharge(id, reserved);
        self.reparent_objects(id);
        let m = self.groups.memcgs.get_mut(id);
        m.life = Life::Offline;
        m.protection.setting = [0; 2];
        // Nobody charges it in Linux any more; here, whoever uses its mappings does, and no limit may be in their way.
        (m.high, m.max) = (u64::MAX, u64::MAX);
        self.groups.memcgs.propagate_protection(id);
        self.groups.memcgs.offline.push(id);
        self.groups.memcg_lru.iter_mut().for_each(|lru| lru.rotate(id, Rotation::Old));
        self.reap_memcgs();
        Ok(())
    }

    /// Tree nodes, and the pages they lie on, belong to the parent from now on, and so do those with nothing but shadows.
    fn reparent_objects(&mut self, id: MemcgId) {
        let Some(parent) = self.groups.memcgs.get(id).parent else { return };
        for nid in self.frames.nodes.ids() {
            let lists = [id, parent].map(|m| self.lruvec_of(m, nid).index());
            while let Some(n) = self.pages.lruvecs[lists[0]].shadow_nodes.oldest() {
                self.pages.lruvecs[lists[0]].shadow_nodes.remove(&mut self.pages.space, n);
                self.pages.lruvecs[lists[1]].shadow_nodes.push(&mut self.pages.space, n);
            }
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
        // They are in the usage of the parent already.
        m.usage -= pages;
        self.groups.memcgs.propagate_protection(id);
        let above = self.groups.memcgs.get_mut(parent);
        above.nodes += nodes;
        above.kernel += pages;
        above.obj_bytes += bytes;
    }

    /// Groups that were removed and have nothing charged any more leave the tree. Not from within a charge: it may be to one of
    /// them.
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
        // What it counted stays in the sums of those above.
        let stat = self.groups.memcgs.get(id).stat.clone();
        let above = &mut self.groups.memcgs.get_mut(parent).stat;
        Counter::ALL.iter().for_each(|&c| above.add(c, stat.get(c)));
        for nid in self.frames.nodes.ids() {
            let [own, above] = [id, parent].map(|m| self.lruvec_of(m, nid).index());
            let activated = std::mem::take(&mut self.pages.lruvecs[own].activated);
            (0..2).for_each(|t| self.pages.lruvecs[above].activated[t] += activated[t]);
        }
        self.groups.memcgs.unlink(id);
        self.groups.memcg_lru.iter_mut().for_each(|lru| lru.release(id));
        let m = self.groups.memcgs.get_mut(id);
        m.life = Life::Gone;
        m.stat = Default::default();
        self.groups.memcgs.gone.push(id);
        true
    }

    /// Page tables of which nothing is mapped: the tasks that had them are gone.
    fn release_tables(&mut self, id: MemcgId) {
        if self.groups.memcgs.get(id).page_tables == 0 {
            return;
        }
        for m in 0..self.pages.space.mappings.len() {
            if self.pages.space.mappings[m].memcg == id {
                self.free_tables(MappingId(m as u32));
            }
        }
    }

    /// Frees the page tables of a mapping that map nothing.
    pub(crate) fn free_tables(&mut self, mapping: MappingId) {
        let (memcg, tables) = {
            let m = &self.pages.space.mappings[mapping.index()];
            (m.memcg, m.tables.clone())
        };
        for t in tables {
            let table = &mut self.pages.space.tables[t as usize];
            if !table.present || table.mapped > 0 {
                continue;
            }
            table.present = false;
            if self.cfg.charge_kernel {
                self.frames.nodes.free_kernel(1);
                self.groups.memcgs.uncharge(memcg, 1);
                let m = self.groups.memcgs.get_mut(memcg);
                m.kernel -= 1;
                m.page_tables -= 1;
            }
        }
    }

    /// Pages of kernel objects that hold none any more.
    fn release_objects(&mut self, id: MemcgId) {
        let m = self.groups.memcgs.get_mut(id);
        if m.nodes > 0 {
            return;
        }
        let pages = m.obj_bytes / PAGE_BYTES;
        m.obj_bytes %= PAGE_BYTES;
        m.kernel -= pages;
        self.groups.memcgs.uncharge(id, pages);
        self.frames.nodes.free_kernel(pages);
    }

    /// Mappings of which nothing is in memory or swap change their owner: whoever uses them next is charged above.
    fn hand_over_mappings(&mut self, from: MemcgId, to: MemcgId) {
        let v = self.groups.memcgs.get(to).lruvec;
        for m in self.pages.space.mappings.iter_mut().filter(|m| m.memcg == from) {
            m.memcg = to;
        }
        let own = self.groups.memcgs.get(from).lruvec;
        self.pages.folios.links.owners.iter_mut().filter(|owner| **owner == own).for_each(|owner| *owner = v);
    }

    /// The number of a group that is gone and that no shadow names, for a new one. Looked for when many are gone.
    pub(crate) fn take_gone_memcg(&mut self) -> Option<MemcgId> {
        self.reap_memcgs();
        let gone = self.groups.memcgs.gone.len();
        let full = self.groups.memcgs.all.len() > usize::from(u16::MAX);
        if self.groups.memcgs.unused.is_empty()
            && gone > 0
            && (full || gone > GONE_BEFORE_SCAN.max(self.groups.memcgs.all.len() / 2))
        {
            let named = self.named_by_shadows();
            // What nobody names now nobody will: nothing is evicted in the name of a group that is gone.
            let (gone, unused) = self.groups.memcgs.gone.iter().partition(|id| named[id.index()]);
            (self.groups.memcgs.gone, self.groups.memcgs.unused) = (gone, unused);
        }
        let id = self.groups.memcgs.unused.pop()?;
        for v in self.lruvecs_of(id) {
            self.pages.lruvecs[v.index()].start_over();
        }
        Some(id)
    }

    /// By number: whether a shadow names the group.
    fn named_by_shadows(&self) -> Vec<bool> {
        let mut named = vec![false; self.groups.memcgs.all.len()];
        for m in self.pages.space.mappings.iter().enumerate() {
            for page in self.mapping_pages(MappingId(m.0 as u32)).map(PageId) {
                if let Some(shadow) = self.shadow_of_page(m.1.kind, page) {
                    named[self.pages.layout.unpack(shadow).memcg.index()] = true;
                }
            }
        }
        named
    }

    fn shadow_of_page(&self, kind: MappingKind, page: PageId) -> Option<u64> {
        match kind {
            MappingKind::File => self.pages.folios.slot(page).as_value(),
            MappingKind::Anon => self.swap_entry(page).and_then(|slot| self.swap.slots.shadow(slot)),
        }
    }
}
