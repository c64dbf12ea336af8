//! The invariants, checked over the whole state: tests call it after every step.
//!
//! Tests and comments name invariants by these labels:
//!
//! | | must hold |
//! |---|---|
//! | I1.1, I1.2, I1.3 | a folio is on one list or in the add batch, on the list of its flags and zone; sizes are as the lists hold; none is active and unevictable |
//! | I1.4 | usage of a group = folios + stock + kernel pages + reserve, with descendants; none is over `max` unless it was lowered or the charge could not fail; every frame is free, a folio's, the kernel's, or held for a migration |
//! | I1.5 | pages of a folio are an aligned range, each known by its slot or its run of swap slots; none is of two folios |
//! | I2.1, I2.2 | one read never activates; a faulted page is kept once, a read page is not |
//! | I2.3 | equal costs and swappiness 100 give equal shares; none is below a third |
//! | I3.1, I3.5 | two lists: no more activated than refaulted; RFC v3: activations leave the clock alone |
//! | I3.2, I3.3 | a group's clock is not ahead of its parent's, and wraps |
//! | I3.4 | shadow nodes stay within their share |
//! | I4.1, I4.2 | 2 ≤ generations of file ≤ those of anon ≤ 4; `max_seq` and `min_seq` never go back |
//! | I4.3 | sizes of generations are as their lists hold; a promoted file folio waits on an older list |
//! | I4.4, I4.5 | per tier no more refaulted than evicted; with fewer than 64 refaults in each, every tier may be evicted |
//! | I5.1, I5.2, I5.4 | RFC v3: its clock counts evictions; refaulted ≤ total; uneven readers over idle anon cost it fewer file evictions |
//! | I6.2, I6.3, I6.4 | each group is in one bin of the memcg LRU; none is visited twice in a pass (under the memcg LRU twice if it went to a tail); generations of groups move on when all in the old one were tried |
//! | I8.1, I8.2, I8.3, I8.4 | cluster counts = slots in use + unusable; each cluster is once on the list of its flag; `frag_nr` is that list's length; count 0 ⇔ free or discard, 512 ⇔ full |
//! | I8.5, I8.6, I8.7 | 2^order slots are aligned in one cluster; a single page finds any free slot; used bytes = references + unusable |
//! | I9.1 | promotions in a limiter's window are at most the limit and one folio, the shortcut left out |
//! | I9.2, I9.3 | hot threshold / 8 ≤ adjusted ≤ 2 · hot threshold; promoted ≤ candidates + the shortcut's |
//! | I9.4 | no folio of the top tier has a stamp |

use crate::engine::Engine;
use crate::folio::flags::FolioFlags;
use crate::ids::{FolioId, PageId};
use crate::lru::lru_list::list_index;
use crate::lru::policy::LruPolicy;
use crate::memcg::group::{NODE_CHARGE_BYTES, PAGE_BYTES};

impl Engine {
    /// Checks every structure. The error names what is wrong; it is a defect of the engine.
    pub fn validate(&self) -> Result<(), String> {
        self.mem.pages.folios.validate()?;
        self.mem.pages.space.validate(&self.mem.pages.folios)?;
        self.mem.swap.slots.validate()?;
        self.mem.swap.validate_zeromap()?;
        self.mem.swap.validate_zswap(&self.mem.pages, &self.mem.groups)?;
        let mut on_list = vec![0u8; self.mem.pages.folios.len()];
        for v in 0..self.mem.pages.lruvecs.len() {
            self.validate_lruvec(v, &mut on_list)?;
        }
        self.validate_node_sizes()?;
        self.mem.frames.hints.as_ref().map_or(Ok(()), |h| h.validate(&self.mem.pages.folios))?;
        self.validate_folios(&on_list)?;
        self.validate_cache_ext()?;
        self.validate_charges()
    }

    /// The frames alone: every one of every node is free, a folio's, or the kernel's.
    pub fn validate_node(&self) -> Result<(), String> {
        let mut pages = vec![0; self.mem.frames.nodes.all.len()];
        for f in self.mem.pages.folios.in_use() {
            pages[self.mem.pages.folios.nid(f).index()] += self.mem.pages.folios.st(f).nr_pages();
        }
        self.mem.frames.frames_under_way(&self.mem.pages).for_each(|(nid, nr)| pages[nid.index()] += nr);
        self.mem.frames.nodes.validate(&pages)
    }

    /// A policy beside the lists knows the folios of files that are in memory, and no others.
    fn validate_cache_ext(&self) -> Result<(), String> {
        let pages = &self.mem.pages;
        let is_file = |f| pages.folios.is_used(f) && pages.folios.st(f).is_file();
        pages.ext.as_ref().map_or(Ok(()), |ext| ext.validate(pages.folios.len(), is_file))
    }

    /// Checks that the list sizes of each node are the sums over its lruvecs.
    fn validate_node_sizes(&self) -> Result<(), String> {
        for nid in self.mem.frames.nodes.ids() {
            let here = self.mem.pages.lruvecs.iter().filter(|v| v.nid == nid).map(|v| v.size);
            let size = here.fold([0; 5], |sum: [u64; 5], v| std::array::from_fn(|l| sum[l] + v[l]));
            if size != self.mem.pages.node_sizes[nid.index()] {
                return Err(format!(
                    "node {}: sizes {:?}, lruvecs have {size:?}",
                    nid.0,
                    self.mem.pages.node_sizes[nid.index()]
                ));
            }
            let here = self.mem.pages.lruvecs.iter().filter(|v| v.nid == nid).map(|v| v.activated);
            let sum = here.fold([0; 2], |sum: [u64; 2], v| [sum[0] + v[0], sum[1] + v[1]]);
            let activations = self.mem.pages.node_activations[nid.index()];
            if sum != activations {
                return Err(format!("node {}: activations {activations:?}, lruvecs have {sum:?}", nid.0));
            }
        }
        Ok(())
    }

    /// I1.2, I4.1, I4.3: sizes are what the lists hold.
    fn validate_lruvec(&self, v: usize, on_list: &mut [u8]) -> Result<(), String> {
        let lruvec = &self.mem.pages.lruvecs[v];
        if let Some(p) =
            lruvec.parent.filter(|p| self.mem.pages.lruvecs[p.index()].nonresident_age < lruvec.nonresident_age)
        {
            return Err(format!("lruvec {v}: its clock is ahead of that of {p:?} (I3.2)"));
        }
        lruvec.validate(&self.mem.pages.space)?;
        let mut size = [0u64; 5];
        for (l, &list) in lruvec.lists.iter().enumerate() {
            self.mem.pages.walk_list(list, on_list, |f, st| {
                size[l] += st.nr_pages();
                let right = if st.has(FolioFlags::UNEVICTABLE) {
                    4
                } else {
                    list_index(st.type_index(), st.has(FolioFlags::ACTIVE))
                };
                (right == l && self.mem.pages.folios.lruvec(f).index() == v).then_some(()).ok_or(format!("on list {l}"))
            })?;
        }
        by_policy!(self.mem.cfg.lru.kind, P => P::validate(&self.mem.pages, self.mem.cfg.thp.swaps_in_large(), v, on_list, &mut size))?;
        if size != lruvec.size {
            return Err(format!("lruvec {v}: sizes {:?}, lists hold {size:?}", lruvec.size));
        }
        Ok(())
    }

    /// I1.1, I1.3, and that every folio stands in the slots of its pages.
    fn validate_folios(&self, on_list: &[u8]) -> Result<(), String> {
        let mut waiting = vec![0u8; self.mem.pages.folios.len()];
        self.mem.pages.batches.iter().flat_map(|b| b.waiting()).for_each(|f| waiting[f.index()] += 1);
        for f in self.mem.pages.folios.in_use() {
            let st = self.mem.pages.folios.st(f);
            let (listed, waits) = (on_list[f.index()], waiting[f.index()]);
            if st.has(FolioFlags::MIGRATING) != self.mem.frames.migrating.contains_key(&f)
                || (st.has(FolioFlags::MIGRATING) && st.has(FolioFlags::MAPPED))
            {
                return Err(format!("{f:?} ({st:?}): whether it is on its way to another node"));
            }
            let expected = if st.has(FolioFlags::MIGRATING) {
                (0, 0)
            } else if st.has(FolioFlags::ADDING) {
                (0, 1)
            } else if st.has(FolioFlags::LRU) {
                (1, 0)
            } else {
                (1, 1)
            };
            let fail = |what: &str| Err(format!("{f:?} ({st:?}): {what}, on {listed} lists and in {waits} batches"));
            if (listed, waits) != expected {
                return fail("lru flag");
            }
            if st.has(FolioFlags::ACTIVE) && st.has(FolioFlags::UNEVICTABLE) {
                return fail("active and unevictable");
            }
            self.validate_pages(f, st).or_else(|what| fail(&what))?;
        }
        let waits = |p: &PageId| {
            self.mem
                .swap
                .folio_of(&self.mem.pages, *p)
                .is_some_and(|f| self.mem.pages.folios.st(f).has(FolioFlags::LOCKED | FolioFlags::WRITEBACK))
        };
        if let Some(p) = self.mem.pages.zapping.iter().find(|p| !waits(p) || self.mem.pages.space.is_mapped(**p)) {
            return Err(format!("{p:?} was dropped and is still there"));
        }
        let resident =
            (0..self.mem.pages.folios.len() as u32).filter_map(|p| self.mem.pages.folios.slot(PageId(p)).folio());
        for f in resident {
            if !self.mem.pages.folios.is_used(f) {
                return Err(format!("{f:?} is in a slot and free"));
            }
        }
        Ok(())
    }

    /// I1.5: the pages of a folio are an aligned range. Each stands in its slot, or in the swap
    /// cache at its place of the folio's run of swap slots.
    fn validate_pages(&self, f: FolioId, st: FolioFlags) -> Result<(), String> {
        let (pages, nr) = (self.mem.pages.pages_of(f), st.nr_pages());
        let (first, last) =
            (self.mem.pages.page_index(PageId(pages.start)), self.mem.pages.page_index(PageId(pages.end - 1)));
        let possible = st.order() == 0 || st.is_file() || st.order() >= crate::ThpConfig::MIN_ORDER;
        if first % nr != 0 || last - first != nr - 1 || !possible {
            return Err(format!("its pages have the indices {first} to {last}"));
        }
        let mut mapped = false;
        for (i, page) in pages.map(PageId).enumerate() {
            let slot = self.mem.pages.folios.swap(f).nth(i as u32);
            let in_cache = st.has(FolioFlags::SWAPCACHE) && self.mem.swap.slots.cached(slot) == Some(f);
            let in_slot = self.mem.pages.folios.slot(page).folio() == Some(f);
            let swapped = in_cache && self.mem.pages.swap_entry(page) == Some(slot);
            if !(in_slot || swapped) || st.has(FolioFlags::SWAPCACHE) != in_cache {
                return Err(format!("the slot of page {} does not hold it", page.0));
            }
            if self.mem.pages.space.is_mapped(page) && !in_slot {
                return Err(format!("page {} is mapped and in swap", page.0));
            }
            mapped |= self.mem.pages.space.is_mapped(page);
        }
        match mapped == st.has(FolioFlags::MAPPED) {
            true => Ok(()),
            false => Err("whether it is mapped".into()),
        }
    }

    /// I1.4: usage is what is charged, and nobody is over its limit.
    fn validate_charges(&self) -> Result<(), String> {
        let mut own = vec![0u64; self.mem.groups.memcgs.all.len()];
        let (mut dirty, mut writeback) = (own.clone(), own.clone());
        for f in self.mem.pages.folios.in_use() {
            let st = self.mem.pages.folios.st(f);
            let m = self.mem.pages.lruvecs[self.mem.pages.folios.lruvec(f).index()].memcg.index();
            own[m] += st.nr_pages();
            dirty[m] += st.nr_pages() * u64::from(st.has(FolioFlags::DIRTY) && !st.has(FolioFlags::ANON));
            writeback[m] += st.nr_pages() * u64::from(st.has(FolioFlags::WRITEBACK));
        }
        self.validate_node()?;
        let mut usage = vec![0u64; own.len()];
        for (i, m) in self.mem.groups.memcgs.all.iter().enumerate() {
            let total = own[i] + m.stock + m.kernel + m.zswap.pages() + m.reserved;
            self.mem.groups.memcgs.chain(crate::MemcgId(i as u16)).for_each(|a| usage[a.index()] += total);
            let objects = if self.mem.cfg.memcg.charge_kernel { m.nodes * NODE_CHARGE_BYTES } else { 0 };
            let slab = m.kernel - m.page_tables;
            if objects + m.obj_bytes != slab * PAGE_BYTES {
                return Err(format!("{}: {objects} + {} bytes on {slab} slab pages", m.name, m.obj_bytes));
            }
            if (dirty[i], writeback[i]) != (m.dirty, m.writeback) {
                return Err(format!(
                    "{}: dirty {} writeback {}, found {} {}",
                    m.name, m.dirty, m.writeback, dirty[i], writeback[i]
                ));
            }
        }
        for (m, usage) in self.mem.groups.memcgs.all.iter().zip(usage) {
            if m.usage != usage || m.usage > m.max.max(m.tolerated) {
                return Err(format!("{}: usage {} of {}, charged {usage} (I1.4)", m.name, m.usage, m.max));
            }
        }
        let sum = |of: &[u64]| of.iter().sum::<u64>();
        self.mem.writeback.dirty.validate(sum(&dirty), sum(&writeback))?;
        self.mem.writeback.dirty.files.validate(|file| self.mem.pages.mapping_pages(file))?;
        self.mem.groups.memcgs.validate_tree()?;
        self.mem.groups.memcg_lru.iter().try_for_each(|lru| lru.validate(&self.mem.groups.memcgs))?;
        self.mem.groups.memcgs.validate_protection()?;
        let swap: u64 = self.mem.groups.memcgs.get(crate::MemcgId::ROOT).swap_usage;
        let slots = self.mem.swap.slots.used_pages() - self.mem.swap.slots.taken_ahead_pages();
        match swap == slots {
            true => Ok(()),
            false => Err(format!("swap usage {swap}, slots in use {slots}")),
        }
    }
}
