//! Moving a mapping to another memory cgroup with all that is charged for it, as
//! `memory.move_charge_at_immigrate` of cgroup v1 does.

use crate::cgroupfs::Cgroupfs;
use crate::folio::state::State;
use crate::ids::{FolioId, MappingId, MemcgId, PageId, SwapSlot};
use crate::world::World;

impl<W: World> Cgroupfs<'_, W> {
    /// The tasks that use a mapping move to another group: its pages, its swap and its page tables
    /// are charged there from now on. Tree nodes stay charged to whom they were. If that is more
    /// than a `max` allows, the group is reclaimed; what cannot be is tolerated.
    pub(crate) fn move_mapping(&mut self, mapping: MappingId, to: MemcgId) -> Result<(), String> {
        self.groups.online_memcg(to)?;
        let from = match self.pages.space.mappings.get(mapping.index()) {
            Some(m) => m.memcg,
            None => return Err(format!("there is no mapping {}", mapping.0)),
        };
        if from == to {
            return Ok(());
        }
        self.pages.drain_all();
        let lists: Vec<_> = self.pages.lruvecs_of(from).collect();
        let folios: Vec<FolioId> = lists.into_iter().flat_map(|v| self.pages.take_listed(mapping, v)).collect();
        self.move_swap(mapping, to);
        self.move_tables(mapping, from, to);
        let v = self.groups.memcgs.get(to).lruvec;
        self.pages.space.mappings[mapping.index()].memcg = to;
        for page in self.pages.mapping_pages(mapping).map(PageId) {
            let node = self.pages.folios.node_of(page).index();
            self.pages.folios.links.owners[node] = v;
        }
        folios.iter().for_each(|&f| self.pages.lruvec_add(f, false));
        let pages = self.pages.mapping_pages(mapping);
        // What is on its way to another node is on no list.
        let under_way: Vec<FolioId> = self.frames.migrating.keys().copied().filter(|f| pages.contains(&f.0)).collect();
        self.move_charges(folios.into_iter().chain(under_way), from, to);
        self.groups.memcgs.tolerate(to);
        let over: Vec<MemcgId> = self
            .groups
            .memcgs
            .chain(to)
            .filter(|&m| self.groups.memcgs.get(m).usage > self.groups.memcgs.get(m).max)
            .collect();
        for m in over {
            let max = self.groups.memcgs.get(m).max;
            self.alloc().shrink_to(m, max);
        }
        self.charged().reap_memcgs();
        Ok(())
    }

    /// Folios are charged to another group.
    fn move_charges(&mut self, folios: impl Iterator<Item = FolioId>, from: MemcgId, to: MemcgId) {
        let (mut pages, mut dirty, mut writeback, mut cached) = (0, 0, 0, 0);
        for f in folios {
            let st = self.pages.folios.st(f);
            let nr = st.nr_pages();
            pages += nr;
            dirty += nr * u64::from(st.has(State::DIRTY) && !st.has(State::ANON));
            writeback += nr * u64::from(st.has(State::WRITEBACK));
            cached += nr * u64::from(st.has(State::SWAPCACHE));
        }
        let m = self.groups.memcgs.get_mut(from);
        (m.dirty, m.writeback, m.swap_cached) = (m.dirty - dirty, m.writeback - writeback, m.swap_cached - cached);
        let m = self.groups.memcgs.get_mut(to);
        (m.dirty, m.writeback, m.swap_cached) = (m.dirty + dirty, m.writeback + writeback, m.swap_cached + cached);
        self.groups.memcgs.uncharge(from, pages);
        self.groups.memcgs.force_charge(to, pages);
    }

    /// Slot by slot, for of a folio in the swap cache some pages may be back in page tables while
    /// others are still swap entries. A slot whose page was dropped stays with its folio's first
    /// one.
    fn move_swap(&mut self, mapping: MappingId, to: MemcgId) {
        for page in self.pages.mapping_pages(mapping).map(PageId) {
            let Some((first, nr)) = self.slots_known_by(page) else { continue };
            for slot in (0..nr).map(|i| first.nth(i)) {
                let from = self.swap.slots.charge(slot, to);
                if from == to {
                    continue;
                }
                self.swap_cache().move_stored(slot, to);
                self.groups.memcgs.add_swap(from, -1);
                self.groups.memcgs.add_swap(to, 1);
            }
        }
    }

    /// The slots to which a page leads: its own, or all those of its folio if it is the first page
    /// of one in the swap cache.
    fn slots_known_by(&self, page: PageId) -> Option<(SwapSlot, u32)> {
        let of_folio = |f: FolioId| {
            let nr = page.0 - self.pages.folios.page(f).0;
            let cached = self.pages.folios.st(f).has(State::SWAPCACHE);
            cached.then(|| match nr {
                0 => (self.pages.folios.swap(f), 1 << self.pages.folios.st(f).order()),
                n => (self.pages.folios.swap(f).nth(n), 1),
            })
        };
        match self.pages.folios.slot(page).folio() {
            Some(f) => of_folio(f),
            None => self.pages.swap_entry(page).map(|slot| (slot, 1)),
        }
    }

    fn move_tables(&mut self, mapping: MappingId, from: MemcgId, to: MemcgId) {
        if !self.cfg.memcg.charge_kernel {
            return;
        }
        let tables = self.pages.space.mappings[mapping.index()].tables.clone();
        let present = tables.filter(|&t| self.pages.space.tables[t as usize].present).count() as u64;
        let m = self.groups.memcgs.get_mut(from);
        (m.kernel, m.page_tables) = (m.kernel - present, m.page_tables - present);
        self.groups.memcgs.uncharge(from, present);
        let m = self.groups.memcgs.get_mut(to);
        (m.kernel, m.page_tables) = (m.kernel + present, m.page_tables + present);
        self.groups.memcgs.force_charge(to, present);
    }
}
