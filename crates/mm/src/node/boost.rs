//! The watermark boost: a zone of which a page block was taken for another kind of pages keeps more
//! free for a while.
//!
//! Mechanism: `docs/mechanisms.md#page-blocks-and-the-watermark-boost`.

use crate::node::page_blocks::PAGEBLOCK_PAGES;

/// `watermark_boost` of a zone.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Boost {
    /// Pages by which all watermarks of the zone are raised.
    pub(crate) pages: u64,
    /// `ZONE_BOOSTED_WATERMARK`: raised since an allocation last told kswapd.
    pub(crate) is_news: bool,
}

impl Boost {
    /// Raises the marks by a block, to a share of the high mark at most. A zone of less than four
    /// blocks, or a factor that gives nothing, has no boost.
    pub(crate) fn raise(&mut self, managed: u64, high: u64, factor: u32) {
        let most = high * u64::from(factor) / 10_000;
        if most == 0 || PAGEBLOCK_PAGES * 4 > managed {
            return;
        }
        self.pages = (self.pages + PAGEBLOCK_PAGES).min(most.max(PAGEBLOCK_PAGES));
        self.is_news = true;
    }

    /// Lowers the boost by the pages that kswapd has made up for.
    pub(crate) fn lower(&mut self, by: u64) {
        self.pages -= by.min(self.pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boost_is_a_block_at_a_time_up_to_its_share_of_the_high_mark() {
        let mut b = Boost::default();
        b.raise(115_094, 1100, 15_000);
        assert_eq!((b.pages, b.is_news), (512, true));
        (0..10).for_each(|_| b.raise(115_094, 1100, 15_000));
        assert_eq!(b.pages, 1650);
        b.lower(512);
        assert_eq!(b.pages, 1138);
        // Zone DMA: its high mark is next to nothing, but a block it is.
        let mut b = Boost::default();
        (0..3).for_each(|_| b.raise(3840, 33, 15_000));
        assert_eq!(b.pages, 512);
    }

    #[test]
    fn small_zones_and_a_factor_of_0_have_none() {
        for (managed, factor) in [(2047, 15_000), (115_094, 0)] {
            let mut b = Boost::default();
            b.raise(managed, 1100, factor);
            assert_eq!((b.pages, b.is_news), (0, false));
        }
    }
}
