//! The page of the engine at an address of a process.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::uffd::PAGE;

/// Pages of a block: what one page of a page table maps.
pub(super) const BLOCK: usize = 512;
const BLOCK_BYTES: usize = BLOCK * PAGE;

/// The pages of a process: blocks, where anything was ever touched.
#[derive(Debug, Default)]
pub(super) struct PageTable {
    blocks: BTreeMap<usize, Box<[u32; BLOCK]>>,
}

impl PageTable {
    /// The page at an address, if its block is there.
    pub(super) fn get(&self, address: usize) -> Option<u32> {
        self.blocks.get(&(address / BLOCK_BYTES)).map(|b| b[address / PAGE % BLOCK])
    }

    /// Puts a block of pages, numbered from `first` on, around an address where there is none.
    /// Returns the start of the block.
    pub(super) fn insert(&mut self, address: usize, first: u32) -> usize {
        let pages = std::array::from_fn(|i| first + i as u32);
        self.blocks.insert(address / BLOCK_BYTES, Box::new(pages));
        address / BLOCK_BYTES * BLOCK_BYTES
    }

    /// Puts a page at an address whose block is there.
    pub(super) fn set(&mut self, address: usize, page: u32) {
        if let Some(block) = self.blocks.get_mut(&(address / BLOCK_BYTES)) {
            block[address / PAGE % BLOCK] = page;
        }
    }

    /// All pages of a range of addresses that have a block, in order, with their addresses.
    pub(super) fn pages(&self, range: &Range<usize>) -> Vec<(usize, u32)> {
        let mut pages = Vec::new();
        if range.is_empty() {
            return pages;
        }
        for (&b, block) in self.blocks.range(range.start / BLOCK_BYTES..=(range.end - 1) / BLOCK_BYTES) {
            let base = b * BLOCK_BYTES;
            let from = range.start.saturating_sub(base) / PAGE;
            let to = (range.end - base).div_ceil(PAGE).min(BLOCK);
            pages.extend((from..to).map(|i| (base + i * PAGE, block[i])));
        }
        pages
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.blocks.len() * (size_of::<[u32; BLOCK]>() + 32)
    }
}

/// A set of addresses, as ranges that do not touch.
#[derive(Debug, Default)]
pub(super) struct Ranges(BTreeMap<usize, usize>);

impl Ranges {
    pub(super) fn insert(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let (mut start, mut end) = (range.start, range.end);
        // Ranges that overlap or touch become one.
        let near: Vec<usize> = self.0.range(..=end).rev().take_while(|&(_, &e)| e >= start).map(|(&s, _)| s).collect();
        for s in near {
            let e = self.0.remove(&s).expect("it was just seen");
            (start, end) = (start.min(s), end.max(e));
        }
        self.0.insert(start, end);
    }

    pub(super) fn remove(&mut self, range: &Range<usize>) {
        if range.is_empty() {
            return;
        }
        let hit: Vec<_> = self.0.range(..range.end).rev().take_while(|&(_, &e)| e > range.start).collect();
        let hit: Vec<(usize, usize)> = hit.into_iter().map(|(&s, &e)| (s, e)).collect();
        for (s, e) in hit {
            self.0.remove(&s);
            if s < range.start {
                self.0.insert(s, range.start);
            }
            if e > range.end {
                self.0.insert(range.end, e);
            }
        }
    }

    /// Parts of a range that are not in the set.
    pub(super) fn gaps(&self, range: &Range<usize>) -> Vec<Range<usize>> {
        let mut gaps = Vec::new();
        let mut at = range.start;
        let before = self.0.range(..=range.start).next_back().map(|(&s, &e)| (s, e));
        let inside = self.0.range(range.start + 1..range.end.max(range.start + 1)).map(|(&s, &e)| (s, e));
        for (s, e) in before.into_iter().chain(inside) {
            if s > at {
                gaps.push(at..s);
            }
            at = at.max(e);
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
        gaps
    }

    /// Parts of a range that are in the set.
    pub(super) fn parts(&self, range: &Range<usize>) -> Vec<Range<usize>> {
        let mut parts = Vec::new();
        let mut at = range.start;
        for gap in self.gaps(range) {
            if gap.start > at {
                parts.push(at..gap.start);
            }
            at = gap.end;
        }
        if at < range.end {
            parts.push(at..range.end);
        }
        parts
    }

    pub(super) fn contains(&self, address: usize) -> bool {
        self.0.range(..=address).next_back().is_some_and(|(_, &e)| address < e)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.0.iter().map(|(&s, &e)| s..e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pages_of_a_range_end_where_it_ends() {
        let mut t = PageTable::default();
        assert_eq!(t.insert(5 * BLOCK_BYTES + 7 * PAGE, 1000), 5 * BLOCK_BYTES);
        t.insert(6 * BLOCK_BYTES, 3000);
        let last = 6 * BLOCK_BYTES - PAGE;
        assert_eq!(t.pages(&(last..last + 2 * PAGE)), [(last, 1511), (last + PAGE, 3000)]);
        assert_eq!(t.pages(&(0..usize::MAX)).len(), 2 * BLOCK);
        assert_eq!((t.get(last), t.get(0)), (Some(1511), None));
        t.set(last, 7);
        assert_eq!(t.get(last), Some(7));
    }

    proptest! {
        #[test]
        fn ranges_are_the_set_that_was_put_in(ops in proptest::collection::vec((any::<bool>(), 0_usize..64, 0_usize..20), 1..40)) {
            let (mut ranges, mut model) = (Ranges::default(), [false; 100]);
            for (insert, start, len) in ops {
                if insert { ranges.insert(start..start + len) } else { ranges.remove(&(start..start + len)) }
                model[start..start + len].fill(insert);
                let found: Vec<bool> = (0..100).map(|a| ranges.contains(a)).collect();
                prop_assert_eq!(&found[..], &model[..]);
                let mut gaps = [false; 100];
                ranges.gaps(&(10..60)).into_iter().for_each(|g| gaps[g].fill(true));
                (10..60).for_each(|a| assert_eq!(gaps[a], !model[a], "gap at {a}"));
                let mut parts = [false; 100];
                ranges.parts(&(10..60)).into_iter().for_each(|p| parts[p].fill(true));
                (10..60).for_each(|a| assert_eq!(parts[a], model[a], "part at {a}"));
                let all: Vec<_> = ranges.iter().collect();
                prop_assert!(all.windows(2).all(|w| w[0].end < w[1].start));
            }
        }
    }
}
