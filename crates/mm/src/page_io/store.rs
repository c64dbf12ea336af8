//! Decides which pages zswap takes: the limits of the pool and of groups, the accept threshold, and
//! whom the memory is charged to.

use crate::ids::{FolioId, MemcgId, PageId, SwapSlot};
use crate::memcg::group::PAGE_BYTES;
use crate::node::page_blocks::MigrateType;
use crate::node::zones::AllocWatermark;
use crate::page_io::PageIo;
use crate::stat::Counter;
use crate::world::{Ack, Content, Effect, World};

/// Compressed size, with the common compressors, of a page of one word over and over: the word, a
/// match that goes on to the end, and the last literals. In the LZ4 block format 1 + 8 + 2 + 16 + 6
/// bytes.
const SAME_FILLED_BYTES: u32 = 33;

/// Where a folio goes that leaves for swap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SwapWriteout {
    /// No write is needed: the folio is all zeros, or zswap stored it.
    Taken,
    /// To the device.
    Device,
    /// Nowhere: the group's pages must not be written to the device.
    Refused,
}

impl<W: World> PageIo<'_, W> {
    /// A store met a full pool.
    fn wake_zswap(&mut self) {
        if self.mem.swap.zswap.worker.awake {
            return;
        }
        let worker = &mut self.mem.swap.zswap.worker;
        (worker.awake, worker.failures, worker.attempts) = (true, 0, 0);
        worker.due = self.world.effect(Effect::WakeZswap) == Ack::Done;
    }

    /// Offers a folio to the stores in front of the device: the zero bitmap, then zswap.
    pub(crate) fn swap_writeout(&mut self, f: FolioId) -> SwapWriteout {
        let (st, page, slot) =
            (self.mem.pages.folios.st(f), self.mem.pages.folios.page(f), self.mem.pages.folios.swap(f));
        let memcg = self.mem.pages.lruvecs[self.mem.pages.folios.lruvec(f).index()].memcg;
        (slot.0..slot.0 + st.nr_pages() as u32)
            .for_each(|s| self.mem.swap_cache(self.world).forget_stored(SwapSlot(s)));
        let content = self.world.content(page);
        if self.mem.swap_cache(self.world).store_zeros(f, content) {
            return SwapWriteout::Taken;
        }
        if self.mem.cfg.zswap.is_none() {
            return SwapWriteout::Device;
        }
        // Large folios go to the device.
        if st.order() == 0 {
            if self.zswap_store(slot, page, memcg, content) {
                self.mem.pages.count(f, Counter::Zswpout, 1);
                return SwapWriteout::Taken;
            }
            if self.mem.swap.zswap.full {
                self.wake_zswap();
            }
        }
        match self.mem.groups.may_write_back(memcg) {
            true => SwapWriteout::Device,
            false => SwapWriteout::Refused,
        }
    }

    /// A limit of zswap is compared with statistics that are added up for it.
    fn flush_for_limit(&mut self, memcg: MemcgId) {
        if let Some(limited) = self.mem.groups.memcgs.limited_in_zswap(memcg).filter(|_| self.mem.groups.stats_lag()) {
            self.mem.pages.flush_stats(&self.mem.groups, limited);
        }
    }

    fn zswap_store(&mut self, slot: SwapSlot, page: PageId, memcg: MemcgId, content: Content) -> bool {
        let Some(cfg) = &self.mem.cfg.zswap else { return false };
        let bytes = match content {
            Content::Zero | Content::SameFilled if cfg.same_filled => 0,
            Content::Zero | Content::SameFilled => SAME_FILLED_BYTES,
            Content::Compressed { bytes } => bytes.max(1),
        };
        self.flush_for_limit(memcg);
        if !self.mem.groups.memcgs.may_zswap(memcg) && !self.make_zswap_room(memcg) {
            return false;
        }
        if self.mem.swap.is_zswap_full(&self.mem.cfg, &self.mem.frames) {
            return false;
        }
        self.mem.pages.work.compressed += u64::from(bytes > 0);
        if u64::from(bytes) >= PAGE_BYTES {
            self.mem.swap.zswap.stats.reject_compress_poor += 1;
            return false;
        }
        if !self.take_pool_frames(bytes) {
            self.mem.swap.zswap.stats.reject_alloc_fail += 1;
            return false;
        }
        if self.world.effect(Effect::ZswapStore { page, slot }) != Ack::Done {
            self.mem.frames.nodes.free_kernel_pages(
                if bytes > 0 { self.mem.swap.zswap.pool.growth(bytes) } else { 0 },
                MigrateType::Movable,
            );
            self.mem.swap.zswap.stats.reject_compress_fail += 1;
            return false;
        }
        self.mem.swap.zswap.insert(slot, page, memcg, bytes);
        self.mem.groups.memcgs.charge_zswap(memcg, u64::from(bytes));
        true
    }

    /// Frames for one object more. Reclaim needs them, so they are taken even below the marks.
    fn take_pool_frames(&mut self, bytes: u32) -> bool {
        let growth = if bytes > 0 { self.mem.swap.zswap.pool.growth(bytes) } else { 0 };
        for taken in 0..if self.mem.frames.nodes.is_limited() { growth } else { 0 } {
            let Some(zone) = self.mem.frames.nodes.take(self.mem.frames.nid, 1, AllocWatermark::None) else {
                self.mem.frames.nodes.free_kernel_pages(taken, MigrateType::Movable);
                return false;
            };
            self.mem.frames.nodes.note_kernel(zone, 1, MigrateType::Movable);
        }
        true
    }
}
