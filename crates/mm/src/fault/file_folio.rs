//! New folios in the page cache: of one page; or of several, for a window of readahead or a write.
//!
//! Mechanism: `docs/mechanisms.md#large-folios-of-files`.

use crate::fault::FaultContext;
use crate::folio::flags::FolioFlags;
use crate::ids::{FolioId, LruvecId, MemcgId, PageId, XaNodeId, ZoneId};
use crate::stat::Counter;
use crate::touch::{Outcome, Touch};
use crate::world::World;

/// Names of files (`struct dentry`, 192 bytes) that fit on a page.
const NAMES_PER_PAGE: u64 = 21;

/// Why there is no large folio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoFolio {
    /// A page of the folio is in memory already.
    Exists,
    /// There is no room for the folio.
    NoRoom,
}

impl<W: World> FaultContext<'_, W> {
    /// A new folio in the page cache, not read yet. Its shadow decides whether it starts active.
    #[inline]
    pub(crate) fn add_file_folio(&mut self, page: PageId, touch: Touch, memcg: MemcgId) -> Result<FolioId, MemcgId> {
        self.charge_names(memcg);
        let node = self.mem.pages.folios.node_of(page);
        self.add_file_folio_at(page, (node, self.mem.pages.folios.links.owners[node.index()]), touch, memcg)
    }

    /// Adds pages as readahead does: reclaim for them may not shrink the caches of file systems.
    pub(crate) fn as_readahead<R>(&mut self, add: impl FnOnce(&mut Self) -> R) -> R {
        self.mem.frames.nofs = true;
        let added = add(self);
        self.mem.frames.nofs = false;
        added
    }

    /// Charges a page for names once new names fill one. A task may wait for a file system to get a
    /// name, so reclaim may shrink file systems. The charge is given back at once, as the engine
    /// does not count names.
    #[inline]
    fn charge_names(&mut self, memcg: MemcgId) {
        if self.mem.pages.new_names >= NAMES_PER_PAGE {
            self.charge_page_of_names(memcg);
        }
    }

    #[cold]
    fn charge_page_of_names(&mut self, memcg: MemcgId) {
        self.mem.pages.new_names -= NAMES_PER_PAGE;
        let nofs = std::mem::take(&mut self.mem.frames.nofs);
        if let Ok(zone) = self.alloc().charge(memcg, 1) {
            self.mem.memcontrol().cancel_charge(memcg, zone, 1);
        }
        self.mem.frames.nofs = nofs;
    }

    /// As [`Fault::add_file_folio`], for a page of the leaf node `node`. `owner`: the lruvec of its
    /// mapping on the first memory node.
    #[inline(always)]
    pub(crate) fn add_file_folio_at(
        &mut self,
        page: PageId,
        (node, owner): (XaNodeId, LruvecId),
        touch: Touch,
        memcg: MemcgId,
    ) -> Result<FolioId, MemcgId> {
        let zone = self.alloc().charge(memcg, 1)?;
        if let Err(over) = self.alloc().charge_nodes(page, node, memcg) {
            self.mem.memcontrol().cancel_charge(memcg, zone, 1);
            return Err(over);
        }
        let own = self.mem.pages.folios.links.note_frame(page, owner, zone);
        self.mem.pages.count_lruvec(own, Counter::Pgalloc, 1);
        let old = self.mem.pages.folios.slot_of_absent(page);
        self.mem.memcontrol().note_filled(page, node, old);
        let in_fault = touch.is_mapped() && self.mem.pages.is_fault_a_use(page);
        let mut st = FolioFlags::new(0);
        // A page that is added to be overwritten says nothing about the working set.
        if let (Some(shadow), false) = (old.as_value(), touch == Touch::Write) {
            st = self.mem.pages.workingset_refault(
                &self.mem.groups,
                self.mem.swap.slots.free_pages(),
                own,
                st,
                shadow,
                in_fault,
            );
        }
        let f = self.mem.pages.add_folio(page, st, in_fault);
        if self.mem.pages.ext.is_some() {
            self.mem.cache_ext_added(own, f);
        }
        Ok(f)
    }

    /// A new folio of `1 << order` pages from `first` on, not read yet. Its slots are looked at
    /// last, as in Linux: if one is taken, pages reclaimed for the folio stay so.
    pub(crate) fn add_large_file_folio(
        &mut self,
        first: PageId,
        order: u8,
        touch: Touch,
        memcg: MemcgId,
    ) -> Result<FolioId, NoFolio> {
        let nr = 1u32 << order;
        let pages = first.0..first.0 + nr;
        self.charge_names(memcg);
        let zone = self.alloc().charge_file_folio(memcg, u64::from(nr)).ok_or(NoFolio::NoRoom)?;
        let is_there = |p: u32| self.mem.pages.folios.slot(PageId(p)).folio().is_some();
        let refused = if pages.clone().any(is_there) {
            Some(NoFolio::Exists)
        } else {
            self.alloc().charge_range_nodes(pages.clone(), memcg).is_err().then_some(NoFolio::NoRoom)
        };
        if let Some(refused) = refused {
            self.mem.memcontrol().cancel_charge(memcg, zone, u64::from(nr));
            return Err(refused);
        }
        Ok(self.place_large_file_folio(first, order, touch, zone))
    }

    /// Puts a folio into the slots of its pages. The last shadow in these slots decides for the
    /// folio.
    fn place_large_file_folio(&mut self, first: PageId, order: u8, touch: Touch, zone: ZoneId) -> FolioId {
        let nr = 1u32 << order;
        self.mem.pages.folios.note_frames(first, u64::from(nr), zone);
        let own = self.mem.pages.folios.lruvec(FolioId(first.0));
        self.mem.pages.count_lruvec(own, Counter::Pgalloc, u64::from(nr));
        let mut shadow = None;
        for page in (first.0..first.0 + nr).map(PageId) {
            let (node, old) = (self.mem.pages.folios.node_of(page), self.mem.pages.folios.slot(page));
            self.mem.memcontrol().note_filled(page, node, old);
            shadow = old.as_value().or(shadow);
        }
        let in_fault = touch.is_mapped() && self.mem.pages.is_fault_a_use(first);
        let mut st = FolioFlags::new(order);
        if let (Some(shadow), false) = (shadow, touch == Touch::Write) {
            let free_swap = self.mem.swap.slots.free_pages();
            st = self.mem.pages.workingset_refault(&self.mem.groups, free_swap, own, st, shadow, in_fault);
        }
        let f = self.mem.pages.add_folio(first, st, in_fault);
        if self.mem.pages.ext.is_some() {
            self.mem.cache_ext_added(own, f);
        }
        f
    }

    /// The largest order, up to `order`, of a folio that begins at a page of a file: the index of
    /// the page is a multiple of the size, and all pages of the folio exist and lie in front of
    /// `end`.
    pub(crate) fn order_at(&self, first: PageId, end: u32, order: u8) -> u8 {
        let order = order.min(self.mem.pages.page_index(first).trailing_zeros() as u8);
        let fits = |&order: &u8| {
            let range = self.mem.pages.aligned_range(first, order);
            range.is_some_and(|range| range.start == first.0 && range.end <= end)
        };
        (1..=order).rev().find(fits).unwrap_or(0)
    }

    /// A write of a file by descriptor: `asked` pages from `page` on, of which this call takes the
    /// first.
    pub(crate) fn write_file(&mut self, page: PageId, asked: u32) -> Outcome {
        let is_large = asked > 1 && self.mem.pages.folios.slot(page).folio().is_none();
        if is_large && self.mem.pages.max_order(page) > 0 {
            if self.mem.writeback.flush_due {
                self.mem.writeout(self.world).flush();
            }
            if let Some(outcome) = self.write_large(page, asked) {
                return outcome;
            }
        }
        self.access_slow(page, Touch::Write)
    }

    /// Writes into a folio as large as the write, as far as one fits there. None: only a single
    /// page fits.
    fn write_large(&mut self, page: PageId, asked: u32) -> Option<Outcome> {
        let memcg = self.mem.pages.space.mappings[self.mem.pages.space.mapping_of(page).index()].memcg;
        let order = (asked.ilog2() as u8).min(self.mem.pages.max_order(page));
        let order = self.order_at(page, u32::MAX, order);
        let added = (1..=order).rev().find_map(|o| self.add_large_file_folio(page, o, Touch::Write, memcg).ok());
        let f = added?;
        self.mem.pages.folios.set(f, FolioFlags::UPTODATE);
        self.mem.writeout(self.world).set_dirty(f);
        Some(Outcome::Fresh)
    }
}
