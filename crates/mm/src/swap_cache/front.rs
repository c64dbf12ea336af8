//! What zswap takes: the limits of the pool and of groups, the accept threshold, and whom the
//! memory is charged to.

use crate::folio::state::State;
use crate::ids::{FolioId, MemcgId, PageId, SwapSlot};
use crate::memcg::group::PAGE_BYTES;
use crate::node::zones::Mark;
use crate::stat::Counter;
use crate::swap_cache::{SwapCache, SwapFront};
use crate::world::{Ack, Content, Effect, World};

/// What the common compressors make of a page of one word over and over: the word, a match that
/// goes on to the end, and the last literals. In the LZ4 block format 1 + 8 + 2 + 16 + 6 bytes.
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

impl<W: World> SwapFront<'_, W> {
    /// A store met a full pool.
    fn wake_zswap(&mut self) {
        if self.swap.zswap.worker.awake {
            return;
        }
        let worker = &mut self.swap.zswap.worker;
        (worker.awake, worker.failures, worker.attempts) = (true, 0, 0);
        worker.due = self.world.effect(Effect::WakeZswap) == Ack::Done;
    }

    /// What stands in front of the device: the zero bitmap, then zswap.
    pub(crate) fn store_in_front(&mut self, f: FolioId) -> Front {
        let (st, page, slot) = (self.pages.folios.st(f), self.pages.folios.page(f), self.pages.folios.swap(f));
        let memcg = self.pages.lruvecs[self.pages.folios.lruvec(f).index()].memcg;
        (slot.0..slot.0 + st.nr_pages() as u32).for_each(|s| self.swap_cache().forget_stored(SwapSlot(s)));
        let content = self.world.content(page);
        if self.swap_cache().store_zeros(f, content) {
            return Front::Taken;
        }
        if self.cfg.zswap.is_none() {
            return Front::Device;
        }
        // Large folios go to the device.
        if st.order() == 0 {
            if self.zswap_store(slot, page, memcg, content) {
                self.pages.count(f, Counter::Zswpout, 1);
                return Front::Taken;
            }
            if self.swap.zswap.full {
                self.wake_zswap();
            }
        }
        match self.groups.may_write_back(memcg) {
            true => Front::Device,
            false => Front::Refused,
        }
    }

    fn zswap_store(&mut self, slot: SwapSlot, page: PageId, memcg: MemcgId, content: Content) -> bool {
        let Some(cfg) = &self.cfg.zswap else { return false };
        let bytes = match content {
            Content::Zero | Content::SameFilled if cfg.same_filled => 0,
            Content::Zero | Content::SameFilled => SAME_FILLED_BYTES,
            Content::Compressed { bytes } => bytes.max(1),
        };
        if !self.groups.memcgs.may_zswap(memcg) && !self.make_zswap_room(memcg) {
            return false;
        }
        if self.swap.is_zswap_full(self.cfg, self.frames) {
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
        if self.world.effect(Effect::ZswapStore { page, slot }) != Ack::Done {
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
}

impl<W: World> SwapCache<'_, W> {
    /// Fills a folio of the swap cache from what stands in front of the device. False: its data is
    /// on the device.
    pub(crate) fn load_from_front(&mut self, f: FolioId) -> bool {
        if self.load_zeros(f) {
            return true;
        }
        let (page, slot) = (self.pages.folios.page(f), self.pages.folios.swap(f));
        if self.pages.folios.st(f).order() > 0 || self.swap.zswap.get(slot).is_none() {
            return false;
        }
        self.zswap_load(page, slot);
        // The slot holds nothing now, so the folio must be stored again.
        self.pages.folios.set(f, State::UPTODATE | State::DIRTY);
        self.pages.count(f, Counter::Zswpin, 1);
        true
    }

    /// Decompresses a page and drops the compressed copy.
    pub(crate) fn zswap_load(&mut self, page: PageId, slot: SwapSlot) {
        self.pages.work.decompressed += u64::from(self.swap.zswap.get(slot).is_some_and(|e| e.bytes > 0));
        self.world.effect(Effect::ZswapLoad { page, slot });
        self.forget_stored(slot);
    }

    /// Takes note of whether a folio that is to be written is all zeros, in all of its pages. Then
    /// nothing is written.
    fn store_zeros(&mut self, f: FolioId, first: Content) -> bool {
        let (page, slot, nr) =
            (self.pages.folios.page(f).0, self.pages.folios.swap(f), self.pages.folios.st(f).nr_pages() as u32);
        let kept = self.cfg.swap.policy.zeromap && first == Content::Zero;
        if kept && (page + 1..page + nr).all(|p| self.world.content(PageId(p)) == Content::Zero) {
            self.swap.zeromap.set(slot, nr);
            self.pages.count(f, Counter::SwpoutZero, u64::from(nr));
            return true;
        }
        self.swap.zeromap.clear(slot, nr);
        false
    }

    /// Fills a folio whose slots are marked as zeros. False: they are not.
    fn load_zeros(&mut self, f: FolioId) -> bool {
        let (st, slot) = (self.pages.folios.st(f), self.pages.folios.swap(f));
        if self.swap.zeromap.run(slot, st.nr_pages() as u32) != Some(true) {
            return false;
        }
        self.world.effect(Effect::ZeroFill { page: self.pages.folios.page(f), order: st.order() });
        self.pages.folios.set(f, State::UPTODATE);
        self.pages.count(f, Counter::SwpinZero, st.nr_pages());
        true
    }
}
