//! Moving a mapping to another memory cgroup with all that is charged for it, as
//! `memory.move_charge_at_immigrate` of cgroup v1 does.

use crate::cgroupfs::Cgroupfs;
use crate::folio::flags::FolioFlags;
use crate::ids::{FolioId, MappingId, MemcgId, PageId, SwapSlot};
use crate::world::World;

impl<W: World> Cgroupfs<'_, W> {
    /// Charges a mapping to another group from now on, as its tasks move there: pages, swap and
    /// page tables. Tree nodes stay charged as they were. If a `max` does not allow that, the group
    /// is reclaimed; an excess that stays is tolerated.
    pub(crate) fn move_mapping(&mut self, mapping: MappingId, to: MemcgId) -> Result<(), String> {
        self.mem.groups.online_memcg(to)?;
        let from = match self.mem.pages.space.mappings.get(mapping.index()) {
            Some(m) => m.memcg,
            None => return Err(format!("there is no mapping {}", mapping.0)),
        };
        if from == to {
            return Ok(());
        }
        self.mem.pages.drain_all();
        let lists: Vec<_> = self.mem.pages.lruvecs_of(from).collect();
        let folios: Vec<FolioId> = lists.into_iter().flat_map(|v| self.mem.pages.take_listed(mapping, v)).collect();
        self.move_swap(mapping, to);
        self.move_tables(mapping, from, to);
        let v = self.mem.groups.memcgs.get(to).lruvec;
        self.mem.pages.space.mappings[mapping.index()].memcg = to;
        for page in self.mem.pages.mapping_pages(mapping).map(PageId) {
            let node = self.mem.pages.folios.node_of(page).index();
            self.mem.pages.folios.links.owners[node] = v;
        }
        folios.iter().for_each(|&f| self.mem.pages.lruvec_add(f, false));
        let pages = self.mem.pages.mapping_pages(mapping);
        // A folio on its way to another node is on no list.
        let under_way: Vec<FolioId> =
            self.mem.frames.migrating.keys().copied().filter(|f| pages.contains(&f.0)).collect();
        self.move_charges(folios.into_iter().chain(under_way), from, to);
        self.mem.groups.memcgs.tolerate(to);
        let over: Vec<MemcgId> = self
            .mem
            .groups
            .memcgs
            .chain(to)
            .filter(|&m| self.mem.groups.memcgs.get(m).usage > self.mem.groups.memcgs.get(m).max)
            .collect();
        for m in over {
            let max = self.mem.groups.memcgs.get(m).max;
            self.alloc().shrink_to(m, max);
        }
        self.mem.memcontrol().reap_memcgs();
        Ok(())
    }

    /// Moves the charges of folios from one group to another.
    fn move_charges(&mut self, folios: impl Iterator<Item = FolioId>, from: MemcgId, to: MemcgId) {
        let (mut pages, mut dirty, mut writeback, mut cached) = (0, 0, 0, 0);
        for f in folios {
            let st = self.mem.pages.folios.st(f);
            let nr = st.nr_pages();
            pages += nr;
            dirty += nr * u64::from(st.has(FolioFlags::DIRTY) && !st.has(FolioFlags::ANON));
            writeback += nr * u64::from(st.has(FolioFlags::WRITEBACK));
            cached += nr * u64::from(st.has(FolioFlags::SWAPCACHE));
        }
        let m = self.mem.groups.memcgs.get_mut(from);
        (m.dirty, m.writeback, m.swap_cached) = (m.dirty - dirty, m.writeback - writeback, m.swap_cached - cached);
        let m = self.mem.groups.memcgs.get_mut(to);
        (m.dirty, m.writeback, m.swap_cached) = (m.dirty + dirty, m.writeback + writeback, m.swap_cached + cached);
        self.mem.groups.memcgs.uncharge(from, pages);
        self.mem.groups.memcgs.force_charge(to, pages);
    }

    /// Moves the charges of swap slot by slot: of a folio in the swap cache, some pages may be back
    /// in page tables while others are still swap entries. The slot of a dropped page stays with
    /// the first page of its folio.
    fn move_swap(&mut self, mapping: MappingId, to: MemcgId) {
        for page in self.mem.pages.mapping_pages(mapping).map(PageId) {
            let Some((first, nr)) = self.slots_known_by(page) else { continue };
            for slot in (0..nr).map(|i| first.nth(i)) {
                let from = self.mem.swap.slots.charge(slot, to);
                if from == to {
                    continue;
                }
                self.mem.swap_cache(self.world).move_stored(slot, to);
                self.mem.groups.memcgs.add_swap(from, -1);
                self.mem.groups.memcgs.add_swap(to, 1);
            }
        }
    }

    /// The slots to which a page leads: its own slot; or all slots of its folio, if the page is the
    /// first of a folio in the swap cache.
    fn slots_known_by(&self, page: PageId) -> Option<(SwapSlot, u32)> {
        let of_folio = |f: FolioId| {
            let nr = page.0 - self.mem.pages.folios.page(f).0;
            let cached = self.mem.pages.folios.st(f).has(FolioFlags::SWAPCACHE);
            cached.then(|| match nr {
                0 => (self.mem.pages.folios.swap(f), 1 << self.mem.pages.folios.st(f).order()),
                n => (self.mem.pages.folios.swap(f).nth(n), 1),
            })
        };
        match self.mem.pages.folios.slot(page).folio() {
            Some(f) => of_folio(f),
            None => self.mem.pages.swap_entry(page).map(|slot| (slot, 1)),
        }
    }

    fn move_tables(&mut self, mapping: MappingId, from: MemcgId, to: MemcgId) {
        if !self.mem.cfg.memcg.charge_kernel {
            return;
        }
        let tables = self.mem.pages.space.mappings[mapping.index()].tables.clone();
        let present = tables.filter(|&t| self.mem.pages.space.tables[t as usize].present).count() as u64;
        let m = self.mem.groups.memcgs.get_mut(from);
        (m.kernel, m.page_tables) = (m.kernel - present, m.page_tables - present);
        self.mem.groups.memcgs.uncharge(from, present);
        let m = self.mem.groups.memcgs.get_mut(to);
        (m.kernel, m.page_tables) = (m.kernel + present, m.page_tables + present);
        self.mem.groups.memcgs.force_charge(to, present);
    }
}
