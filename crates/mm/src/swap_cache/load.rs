//! Loads pages from in front of a swap device, instead of from it: zeros, and pages that zswap has.

use crate::folio::flags::FolioFlags;
use crate::ids::{FolioId, PageId, SwapSlot};
use crate::stat::Counter;
use crate::swap_cache::SwapCache;
use crate::world::{Content, Effect, World};

impl<W: World> SwapCache<'_, W> {
    /// Fills a folio of the swap cache from what stands in front of the device. False: its data is
    /// on the device.
    pub(crate) fn load_without_read(&mut self, f: FolioId) -> bool {
        if self.load_zeros(f) {
            return true;
        }
        let (page, slot) = (self.pages.folios.page(f), self.pages.folios.swap(f));
        if self.pages.folios.st(f).order() > 0 || self.swap.zswap.get(slot).is_none() {
            return false;
        }
        self.zswap_load(page, slot);
        // The slot holds nothing now, so the folio must be stored again.
        self.pages.folios.set(f, FolioFlags::UPTODATE | FolioFlags::DIRTY);
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
    pub(crate) fn store_zeros(&mut self, f: FolioId, first: Content) -> bool {
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

    /// Fills a folio whose slots are marked as zeros. False: the slots are not marked.
    fn load_zeros(&mut self, f: FolioId) -> bool {
        let (st, slot) = (self.pages.folios.st(f), self.pages.folios.swap(f));
        if self.swap.zeromap.run(slot, st.nr_pages() as u32) != Some(true) {
            return false;
        }
        self.world.effect(Effect::ZeroFill { page: self.pages.folios.page(f), order: st.order() });
        self.pages.folios.set(f, FolioFlags::UPTODATE);
        self.pages.count(f, Counter::SwpinZero, st.nr_pages());
        true
    }
}
