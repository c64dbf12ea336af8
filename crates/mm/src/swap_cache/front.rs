//! What zswap takes: the limits of the pool and of groups, the accept threshold, and whom the memory is charged to.

use crate::engine::Engine;
use crate::folio::table::State;
use crate::ids::{FolioId, MemcgId, PageId, SwapSlot};
use crate::memcg::group::PAGE_BYTES;
use crate::node::node::Mark;
use crate::stat::Counter;
use crate::world::{Ack, Content, Effect, World};
use crate::zswap::{Entry, ZswapStats};

/// What the common compressors make of a page of one word over and over: the word, a match that goes on to the end, and the last
/// literals. In the LZ4 block format 1 + 8 + 2 + 16 + 6 bytes.
const SAME_FILLED_BYTES: u32 = 33;

/// Where a folio goes that leaves for swap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Front {
    /// It needs no write: it is zeros, or zswap has it.
    Taken,
    /// To the device.
    Device,
    /// Nowhere: the group's pages must not be written to the device.
    Refused,
}

impl Engine {
    /// What stands in front of the device: the zero bitmap, then zswap.
    pub(crate) fn store_in_front<W: World>(&mut self, w: &mut W, f: FolioId) -> Front {
        let (st, page, slot) = (self.pages.folios.st(f), self.pages.folios.page(f), self.pages.folios.swap(f));
        let memcg = self.pages.lruvecs[self.pages.folios.lruvec(f).index()].memcg;
        (slot.0..slot.0 + st.nr_pages() as u32).for_each(|s| self.forget_stored(w, SwapSlot(s)));
        let content = w.content(page);
        if self.store_zeros(w, f, content) {
            return Front::Taken;
        }
        if self.cfg.zswap.is_none() {
            return Front::Device;
        }
        // Large folios go to the device.
        if st.order() == 0 {
            if self.zswap_store(w, slot, page, memcg, content) {
                self.count(f, Counter::Zswpout, 1);
                return Front::Taken;
            }
            if self.swap.zswap.full {
                self.wake_zswap(w);
            }
        }
        match self.may_write_back(memcg) {
            true => Front::Device,
            false => Front::Refused,
        }
    }

    /// Fills a folio of the swap cache from what stands in front of the device. False: its data is on the device.
    pub(crate) fn load_from_front<W: World>(&mut self, w: &mut W, f: FolioId) -> bool {
        if self.load_zeros(w, f) {
            return true;
        }
        let (page, slot) = (self.pages.folios.page(f), self.pages.folios.swap(f));
        if self.pages.folios.st(f).order() > 0 || self.swap.zswap.get(slot).is_none() {
            return false;
        }
        self.zswap_load(w, page, slot);
        // The slot holds nothing now, so the folio must be stored again.
        self.pages.folios.set(f, State::UPTODATE | State::DIRTY);
        self.count(f, Counter::Zswpin, 1);
        true
    }

    /// Whether the data of a slot needs no I/O to be read.
    pub(crate) fn is_in_front(&self, slot: SwapSlot) -> bool {
        self.swap.zeromap.has(slot) || self.swap.zswap.get(slot).is_some()
    }

    /// Decompresses a page and drops the compressed copy.
    pub(crate) fn zswap_load<W: World>(&mut self, w: &mut W, page: PageId, slot: SwapSlot) {
        self.pages.work.decompressed += u64::from(self.swap.zswap.get(slot).is_some_and(|e| e.bytes > 0));
        w.effect(Effect::ZswapLoad { page, slot });
        self.forget_stored(w, slot);
    }

    /// The slot is free, or gets other data: no compressed copy of the old is kept.
    pub(crate) fn forget_stored<W: World>(&mut self, w: &mut W, slot: SwapSlot) {
        let pages = self.swap.zswap.pool_pages();
        let Some(Entry { memcg, bytes, .. }) = self.swap.zswap.remove(slot) else { return };
        w.effect(Effect::ZswapDrop { slot });
        self.frames.nodes.free_kernel(pages - self.swap.zswap.pool_pages());
        self.groups.memcgs.uncharge_zswap(memcg, u64::from(bytes));
    }

    /// A slot is charged to another group: so is what is stored under it, which counts as stored now.
    pub(crate) fn move_stored(&mut self, slot: SwapSlot, to: MemcgId) {
        let Some(Entry { page, memcg, bytes, .. }) = self.swap.zswap.remove(slot) else { return };
        self.groups.memcgs.uncharge_zswap(memcg, u64::from(bytes));
        self.swap.zswap.insert(slot, page, to, bytes);
        self.groups.memcgs.charge_zswap(to, u64::from(bytes));
    }

    fn zswap_store<W: World>(
        &mut self,
        w: &mut W,
        slot: SwapSlot,
        page: PageId,
        memcg: MemcgId,
        content: Content,
    ) -> bool {
        let Some(cfg) = &self.cfg.zswap else { return false };
        let bytes = match content {
            Content::Zero | Content::SameFilled if cfg.same_filled => 0,
            Content::Zero | Content::SameFilled => SAME_FILLED_BYTES,
            Content::Compressed { bytes } => bytes.max(1),
        };
        if !self.groups.memcgs.may_zswap(memcg) && !self.make_zswap_room(w, memcg) {
            return false;
        }
        if self.is_zswap_full() {
            return false;
        }
        self.pages.work.compressed += u64::from(bytes > 0);
        if u64::from(bytes) >= PAGE_BYTES {
            self.swap.zswap.stats.reject_compress_poor += 1;
            return false;
        }
        if !self.take_pool_frames(bytes) {
            self.swap.zswap.stats.reject_alloc_fail += 1;
            return false;
        }
        if w.effect(Effect::ZswapStore { page, slot }) != Ack::Done {
            self.frames.nodes.free_kernel(if bytes > 0 { self.swap.zswap.pool.growth(bytes) } else { 0 });
            self.swap.zswap.stats.reject_compress_fail += 1;
            return false;
        }
        self.swap.zswap.insert(slot, page, memcg, bytes);
        self.groups.memcgs.charge_zswap(memcg, u64::from(bytes));
        true
    }

    /// Frames for one object more. Reclaim needs them, so they are taken even below the marks.
    fn take_pool_frames(&mut self, bytes: u32) -> bool {
        let growth = if bytes > 0 { self.swap.zswap.pool.growth(bytes) } else { 0 };
        for taken in 0..if self.frames.nodes.is_limited() { growth } else { 0 } {
            let Some(zone) = self.frames.nodes.take(self.frames.nid, 1, Mark::None) else {
                self.frames.nodes.free_kernel(taken);
                return false;
            };
            self.frames.nodes.note_kernel(zone, 1);
        }
        true
    }

    /// Pages that the pool may take.
    fn zswap_max_pages(&self) -> u64 {
        let percent = self.cfg.zswap.as_ref().map_or(0, |z| z.max_pool_percent);
        (if self.frames.nodes.is_limited() { self.frames.nodes.managed_pages() } else { self.cfg.total_pages })
            * percent
            / 100
    }

    /// Pages of the pool from which down it accepts again.
    pub(crate) fn zswap_accept_pages(&self) -> u64 {
        self.zswap_max_pages() * self.cfg.zswap.as_ref().map_or(0, |z| z.accept_threshold_percent) / 100
    }

    /// Hysteresis: once the limit was hit, nothing is taken until the pool is below the threshold.
    fn is_zswap_full(&mut self) -> bool {
        let pages = self.swap.zswap.pool_pages();
        if pages >= self.zswap_max_pages() {
            self.swap.zswap.stats.pool_limit_hit += 1;
            self.swap.zswap.full = true;
        } else if self.swap.zswap.full && pages <= self.zswap_accept_pages() {
            self.swap.zswap.full = false;
        }
        self.swap.zswap.full
    }

    /// `memory.zswap.writeback` of a group and those above it.
    pub(crate) fn may_write_back(&self, memcg: MemcgId) -> bool {
        self.groups.memcgs.chain(memcg).all(|m| self.groups.memcgs.get(m).zswap.writeback)
    }

    /// The figures of zswap, as debugfs shows them; none: it is off.
    pub fn zswap_stats(&self) -> Option<ZswapStats> {
        self.cfg.zswap.as_ref().map(|_| self.swap.zswap.stats())
    }

    /// Every entry belongs to a slot in use that nothing else holds the data of; charges are what the entries add up to.
    pub(crate) fn validate_zswap(&self) -> Result<(), String> {
        self.swap.zswap.validate()?;
        let mut own = vec![(0u64, 0u64); self.groups.memcgs.all.len()];
        for e in self.swap.zswap.all() {
            let found = (self.swap_entry(e.page), self.swap.slots.cached(e.slot), self.swap.zeromap.has(e.slot));
            // A slot that nobody refers to may wait in a slot cache to be freed.
            let right = if self.swap.slots.count(e.slot) > 0 {
                found.0 == Some(e.slot)
            } else {
                self.swap.slots.is_taken(e.slot)
            };
            if !right || (found.1, found.2) != (None, false) {
                return Err(format!("zswap: {e:?} has no slot of its own: {found:?}"));
            }
            let place = &mut own[e.memcg.index()];
            *place = (place.0 + 1, place.1 + u64::from(e.bytes));
        }
        for (i, m) in self.groups.memcgs.all.iter().enumerate() {
            let below = |&j: &usize| self.groups.memcgs.chain(MemcgId(j as u16)).any(|a| a.index() == i);
            let tree: u64 = (0..own.len()).filter(below).map(|j| own[j].1).sum();
            let z = &m.zswap;
            if (z.stored, z.own_bytes, z.bytes) != (own[i].0, own[i].1, tree) {
                return Err(format!("{}: {z:?}, found {:?}, with descendants {tree} bytes", m.name, own[i]));
            }
        }
        Ok(())
    }
}
