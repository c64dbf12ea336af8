//! Where anonymous memory goes that leaves: the slots of the devices, and what stands in front of
//! them.

use crate::config::Config;
use crate::folio::flags::FolioFlags;
use crate::folio::size_stats::SizeCounter;
use crate::ids::{FolioId, MemcgId, NodeId, PageId, SwapSlot};
use crate::lru::lru_list::{UNEVICTABLE, list_index};
use crate::lru::pages::ResidentPages;
use crate::memcg::groups::Groups;
use crate::node::frames::Frames;
use crate::swap::Swap;
use crate::swap::zeromap::ZeroMap;
use crate::zswap::Zswap;

/// The swap devices with what stands in front of them.
#[derive(Clone, Debug)]
pub(crate) struct SwapStack {
    pub(crate) slots: Swap,
    /// Pages of zeros.
    pub(crate) zeromap: ZeroMap,
    /// Compressed pages.
    pub(crate) zswap: Zswap,
}

impl SwapStack {
    /// The devices of a configuration, with nothing on them.
    pub(crate) fn new(cfg: &Config) -> SwapStack {
        SwapStack { slots: Swap::new(&cfg.swap, cfg.cpus), zeromap: ZeroMap::default(), zswap: Zswap::default() }
    }
}

impl SwapStack {
    /// The folio that holds a page: in its slot, or in the swap cache.
    pub(crate) fn folio_of(&self, pages: &ResidentPages, page: PageId) -> Option<FolioId> {
        pages.folios.slot(page).folio().or_else(|| pages.swap_entry(page).and_then(|s| self.slots.cached(s)))
    }

    /// Whether every page of a folio in the swap cache is in swap for its mapping, and none was
    /// given up.
    pub(crate) fn is_all_swapped(&self, pages: &ResidentPages, f: FolioId) -> bool {
        let (ids, slot) = (pages.pages_of(f), pages.folios.swap(f));
        let dropped = pages.zapping.range(PageId(ids.start)..PageId(ids.end)).next().is_some();
        !dropped && ids.into_iter().all(|p| pages.swap_entry(PageId(p)) == Some(slot.nth(p - f.0)))
    }

    /// Splits a large folio, neither locked nor under writeback, into single pages that keep its
    /// flags and generation. If the folio is on a list, the pages go to the list's head; if reclaim
    /// has isolated it, they are isolated too, and the caller sees to them. The callers of
    /// `Memory::split_folio` see to all else.
    pub(crate) fn split_pages(&mut self, pages: &mut ResidentPages, f: FolioId) {
        let whole = pages.folios.st(f);
        debug_assert!(
            whole.has(FolioFlags::LARGE) && !whole.has(FolioFlags::LOCKED | FolioFlags::WRITEBACK | FolioFlags::ADDING)
        );
        let own = pages.folios.lruvec(f);
        pages.count_size(pages.lruvecs[own.index()].memcg, whole.order(), SizeCounter::Split);
        pages.work.split += whole.nr_pages();
        let list = whole.has(FolioFlags::LRU).then(|| {
            pages.folios.links.del(f);
            let (v, t) = (&pages.lruvecs[own.index()], whole.type_index());
            match whole.generation() {
                _ if whole.has(FolioFlags::UNEVICTABLE) => v.lists[UNEVICTABLE],
                Some(i) => v.r#gen.lists[i][t][pages.folios.zone_list(f)],
                None => v.lists[list_index(t, whole.has(FolioFlags::ACTIVE))],
            }
        });
        let stamp = pages.folios.links.stamp(f);
        let slots = whole.has(FolioFlags::SWAPCACHE).then(|| pages.folios.swap(f));
        for page in pages.pages_of(f).map(PageId) {
            let mut st = whole.of_order(0);
            if !pages.space.is_mapped(page) {
                st.clear(FolioFlags::MAPPED);
            }
            let part = pages.folios.split_off(page, st);
            pages.folios.links.set_stamp(part, stamp);
            if let Some(slot) = slots {
                let slot = slot.nth(page.0 - f.0);
                pages.folios.set_swap(part, slot);
                self.slots.add_to_cache(slot, 0, part);
            }
            if let Some(list) = list {
                pages.folios.put_on(list, part, st, false);
            }
        }
    }

    /// Whether anon of a memcg on a node can go anywhere.
    pub(crate) fn can_reclaim_anon(
        &self,
        cfg: &Config,
        groups: &Groups,
        frames: &Frames,
        memcg: MemcgId,
        nid: NodeId,
    ) -> bool {
        frames.can_demote(nid)
            || groups.memcgs.swap_room(memcg, self.slots.free_pages()) > 0
            || cfg.swap.reclaim_cache && groups.has_swap_cache(memcg)
    }

    /// Whether more than half of swap is used, of the machine or of the memcg.
    pub(crate) fn is_swap_full(&self, pages: &ResidentPages, groups: &Groups, f: FolioId) -> bool {
        let memcg = pages.lruvecs[pages.folios.lruvec(f).index()].memcg;
        self.slots.is_full() || groups.memcgs.swap_is_half_used(memcg)
    }

    /// Whether the data of a slot needs no I/O to be read.
    pub(crate) fn needs_no_read(&self, slot: SwapSlot) -> bool {
        self.zeromap.has(slot) || self.zswap.get(slot).is_some()
    }

    /// Pages that the pool may take.
    fn zswap_max_pages(&self, cfg: &Config, frames: &Frames) -> u64 {
        let (percent, most) = cfg.zswap.as_ref().map_or((0, 0), |z| (z.max_pool_percent, z.max_pool_pages));
        let all = if frames.nodes.is_limited() { frames.nodes.managed_pages() } else { cfg.total_pages };
        most.min(all * percent / 100)
    }

    /// Pages of the pool below which it accepts pages again.
    pub(crate) fn zswap_accept_pages(&self, cfg: &Config, frames: &Frames) -> u64 {
        self.zswap_max_pages(cfg, frames) * cfg.zswap.as_ref().map_or(0, |z| z.accept_threshold_percent) / 100
    }

    /// Hysteresis: once the limit was hit, nothing is taken until the pool is below the threshold.
    pub(crate) fn is_zswap_full(&mut self, cfg: &Config, frames: &Frames) -> bool {
        let pages = self.zswap.pool_pages();
        if pages >= self.zswap_max_pages(cfg, frames) {
            self.zswap.stats.pool_limit_hit += 1;
            self.zswap.full = true;
        } else if self.zswap.full && pages <= self.zswap_accept_pages(cfg, frames) {
            self.zswap.full = false;
        }
        self.zswap.full
    }
}

impl SwapStack {
    /// Moves the entries of a removed group in zswap to its parent, and counts them as stored now.
    /// The slots stay charged to the group.
    pub(crate) fn reparent_stored(&mut self, groups: &mut Groups, from: MemcgId, to: MemcgId) {
        while let Some(entry) = self.zswap.oldest(from).and_then(|slot| self.zswap.remove(slot)) {
            groups.memcgs.uncharge_zswap(from, u64::from(entry.bytes));
            self.zswap.insert(entry.slot, entry.page, to, entry.bytes);
            groups.memcgs.charge_zswap(to, u64::from(entry.bytes));
        }
    }
}

/// Checks, for tests.
impl SwapStack {
    /// Every entry belongs to a slot in use that nothing else holds the data of; charges are what
    /// the entries add up to.
    pub(crate) fn validate_zswap(&self, pages: &ResidentPages, groups: &Groups) -> Result<(), String> {
        self.zswap.validate()?;
        let mut own = vec![(0u64, 0u64); groups.memcgs.all.len()];
        for e in self.zswap.all() {
            let found = (pages.swap_entry(e.page), self.slots.cached(e.slot), self.zeromap.has(e.slot));
            // A slot that nobody refers to may wait in a slot cache to be freed.
            let right =
                if self.slots.count(e.slot) > 0 { found.0 == Some(e.slot) } else { self.slots.is_taken(e.slot) };
            if !right || (found.1, found.2) != (None, false) {
                return Err(format!("zswap: {e:?} has no slot of its own: {found:?}"));
            }
            let place = &mut own[e.memcg.index()];
            *place = (place.0 + 1, place.1 + u64::from(e.bytes));
        }
        for (i, m) in groups.memcgs.all.iter().enumerate() {
            let below = |&j: &usize| groups.memcgs.chain(MemcgId(j as u16)).any(|a| a.index() == i);
            let tree: u64 = (0..own.len()).filter(below).map(|j| own[j].1).sum();
            let z = &m.zswap;
            if (z.stored, z.own_bytes, z.bytes) != (own[i].0, own[i].1, tree) {
                return Err(format!("{}: {z:?}, found {:?}, with descendants {tree} bytes", m.name, own[i]));
            }
        }
        Ok(())
    }

    /// Only slots that are not free are marked.
    pub(crate) fn validate_zeromap(&self) -> Result<(), String> {
        let unused = |s: &SwapSlot| !self.slots.is_taken(*s);
        match self.zeromap.slots().find(unused) {
            Some(s) => Err(format!("{s:?} is free and marked as zeros")),
            None => Ok(()),
        }
    }
}
