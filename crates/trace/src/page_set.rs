//! Pages of an object that were touched, without a number for each: a range of sixteen million is
//! one record, and takes no more than some kilobytes here.

use rustc_hash::{FxHashMap, FxHashSet};

/// Pages of a word.
const WORD: u64 = 64;

/// Pages of a block.
const BLOCK: u64 = 4096;

/// A set of pages.
#[derive(Debug, Default)]
pub(crate) struct PageSet {
    /// Blocks whose pages are all in the set, by page / [`BLOCK`].
    whole: FxHashSet<u64>,
    /// Bits of the pages of other blocks, by page / [`WORD`].
    words: FxHashMap<u64, u64>,
    len: u64,
}

impl PageSet {
    /// The number of pages.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Adds consecutive pages, which end within 64 bits; returns how many of them are new.
    pub(crate) fn add(&mut self, first: u64, pages: u32) -> u64 {
        let before = self.len;
        let (mut page, mut left) = (first, u64::from(pages));
        while left > 0 {
            let in_block = (BLOCK - page % BLOCK).min(left);
            if in_block == BLOCK {
                self.add_block(page / BLOCK);
            } else if self.whole.is_empty() || !self.whole.contains(&(page / BLOCK)) {
                self.add_part(page, in_block);
            }
            left -= in_block;
            // The last page may be the last that there is.
            page = page.wrapping_add(in_block);
        }
        self.len - before
    }

    fn add_block(&mut self, block: u64) {
        if !self.whole.insert(block) {
            return;
        }
        let start = block * (BLOCK / WORD);
        self.len += BLOCK;
        if !self.words.is_empty() {
            let had = |word| self.words.remove(&word).map_or(0, |bits| u64::from(bits.count_ones()));
            self.len -= (start..start + BLOCK / WORD).map(had).sum::<u64>();
        }
    }

    /// Adds pages of one block.
    fn add_part(&mut self, mut page: u64, mut left: u64) {
        while left > 0 {
            let at = page % WORD;
            let taken = (WORD - at).min(left);
            let bits = (u64::MAX >> (WORD - taken)) << at;
            let word = self.words.entry(page / WORD).or_default();
            self.len += u64::from((bits & !*word).count_ones());
            *word |= bits;
            left -= taken;
            page = page.wrapping_add(taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn agrees_with_a_set_of_numbers() {
        let (mut set, mut model, mut x) = (PageSet::default(), BTreeSet::new(), 1u64);
        for i in 0..2_000u64 {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let pages = if i % 3 == 0 { 1 } else { (x >> 51) as u32 + 1 };
            let first = match i % 5 {
                0 => u64::MAX - u64::from(pages) + 1 - (x >> 20) % 9000,
                1 => (x >> 30) % 40 * BLOCK,
                _ => (x >> 30) % 300_000,
            };
            let before = model.len();
            model.extend((0..u64::from(pages)).map(|page| first + page));
            assert_eq!(set.add(first, pages), (model.len() - before) as u64, "{first} {pages}");
            assert_eq!(set.len(), model.len() as u64);
        }
    }

    /// A few lines of text made gigabytes of tables.
    #[test]
    fn regression_large_ranges_stay_ranges() {
        let mut set = PageSet::default();
        for i in 0..100 {
            assert_eq!(set.add(i << 24, 1 << 24), 1 << 24);
        }
        assert_eq!(set.len(), 100 << 24);
        assert!(set.words.is_empty() && set.whole.len() == 100 << 12);
    }
}
