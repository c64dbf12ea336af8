//! Page numbers into ids in the order of first access, fast for dense numbers and bounded for
//! sparse ones.

use rustc_hash::FxHashMap;

const NONE: u32 = u32::MAX;

/// The pages of one object that were accessed.
#[derive(Debug, Default)]
pub(crate) struct PageIds {
    /// Pages in the order of their first access, with their provisional ids.
    pub(crate) by_first_access: Vec<(u64, u32)>,
    /// Ids of low page numbers. Its length stays within a small multiple of what was seen, so that
    /// one access to page 2^40 costs a hash entry, not a table.
    direct: Vec<u32>,
    /// Ids of the other pages, and of pages that were seen before `direct` reached them.
    sparse: FxHashMap<u64, u32>,
}

impl PageIds {
    /// The id of a page, `next` if it is new.
    #[inline]
    pub(crate) fn id(&mut self, page: u64, next: u32) -> u32 {
        match self.direct.get(page as usize) {
            Some(&id) if id != NONE => id,
            _ => self.slow(page, next),
        }
    }

    /// The id of a page that was seen.
    pub(crate) fn known(&self, page: u64) -> Option<u32> {
        let direct = self.direct.get(page as usize).copied().filter(|&id| id != NONE);
        direct.or_else(|| self.sparse.get(&page).copied())
    }

    /// Gives every page the id that stands in the place of its own.
    pub(crate) fn rename(&mut self, renamed: &[u32]) {
        let ids = self.direct.iter_mut().filter(|id| **id != NONE).chain(self.sparse.values_mut());
        ids.for_each(|id| *id = renamed[*id as usize]);
    }

    #[cold]
    #[inline(never)]
    fn insert(&mut self, page: u64, next: u32) {
        self.by_first_access.push((page, next));
        let bound = 1024 + 8 * self.by_first_access.len() as u64;
        if page >= self.direct.len() as u64 && page < bound {
            let length = (page + 1).next_power_of_two().min(bound) as usize;
            self.direct.resize(length, NONE);
        }
        match self.direct.get_mut(page as usize) {
            Some(slot) => *slot = next,
            None => {
                self.sparse.insert(page, next);
            }
        }
    }

    fn slow(&mut self, page: u64, next: u32) -> u32 {
        if let Some(&id) = self.sparse.get(&page) {
            if let Some(slot) = self.direct.get_mut(page as usize) {
                *slot = id;
                self.sparse.remove(&page);
            }
            return id;
        }
        self.insert(page, next);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn ids_agree_with_a_plain_map() {
        let mut pages = PageIds::default();
        let mut model = HashMap::new();
        let mut x = 1u64;
        for i in 0..200_000u64 {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let page = match i % 4 {
                0 => x >> 50,
                1 => i / 8,
                2 => x >> 46,
                _ => (x >> 56) << 40,
            };
            let next = model.len() as u32;
            let want = *model.entry(page).or_insert(next);
            assert_eq!(pages.id(page, next), want);
        }
        assert_eq!(pages.by_first_access.len(), model.len());
    }

    #[test]
    fn a_far_page_costs_no_table() {
        let mut pages = PageIds::default();
        pages.id(1 << 40, 0);
        pages.id(u64::MAX, 1);
        assert!(pages.direct.len() < 4096);
        assert_eq!(pages.id(u64::MAX, 2), 1);
    }
}
