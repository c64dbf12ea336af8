//! Runs of pages that are in memory, as a walk over the tree of a file counts them.
//!
//! A walk that begins inside a large folio stands on the first slot of the folio, but keeps the
//! index that it was asked for: its slots then lag behind its index by the offset in the folio. At
//! the next tree node it goes by the index again. So a run in front of a miss has the folio next to
//! it as one page, and the first missing page behind a large folio is found too far on, by the
//! offset.

use crate::ids::PageId;
use crate::lru::pages::ResidentPages;

/// Slots of a tree node.
const NODE: u64 = 64;

/// Position of a walk: the slot that it looks at, and the index that it keeps.
#[derive(Clone, Copy)]
struct Cursor {
    slot: u64,
    index: u64,
}

impl Cursor {
    /// One step on.
    fn next(self) -> Cursor {
        let index = self.index + 1;
        let is_last = self.slot % NODE == NODE - 1;
        Cursor { slot: if is_last { index } else { self.slot + 1 }, index }
    }

    /// One step back; none: in front of the file.
    fn previous(self) -> Option<Cursor> {
        let index = self.index.checked_sub(1)?;
        let slot = match self.slot % NODE {
            // The slot is where the index says.
            0 if index % NODE == 0 => self.slot,
            0 => (self.slot / NODE).checked_sub(1)? * NODE + index % NODE,
            _ => self.slot - 1,
        };
        Some(Cursor { slot, index })
    }
}

impl ResidentPages {
    /// Pages in memory in front of a missing page, `max` at most, and whether they reach to the
    /// start of the file.
    pub(crate) fn count_before(&self, page: PageId, max: u32) -> (u32, bool) {
        let index = self.page_index(page);
        let Some(first) = index.checked_sub(1).and_then(|before| self.cursor_at(page, before)) else {
            return (0, false);
        };
        let (mut at, mut before) = (first, 0);
        while before < max {
            if !self.is_in_memory(page, at.slot) {
                return (before, false);
            }
            before += 1;
            match at.previous() {
                Some(previous) => at = previous,
                None => return (before, at.index == 0),
            }
        }
        (before, false)
    }

    /// The first page behind this one that is not in memory, no further than `max` pages.
    pub(crate) fn next_missing(&self, page: PageId, max: u32) -> Option<u32> {
        let index = self.page_index(page);
        let start = Cursor { slot: index + 1, index: index + 1 };
        let mut at = self.cursor_at(page, index + 1).unwrap_or(start);
        for _ in 0..max {
            if !self.is_in_memory(page, at.slot) {
                return Some(page.0.saturating_add((at.index - index) as u32));
            }
            at = at.next();
        }
        None
    }

    /// A walk that begins at an index of the file of `near`; none: no page is in memory there.
    fn cursor_at(&self, near: PageId, index: u64) -> Option<Cursor> {
        let f = self.folios.slot(self.page_near(near, index)?).folio()?;
        Some(Cursor { slot: self.page_index(PageId(f.0)), index })
    }

    fn is_in_memory(&self, near: PageId, index: u64) -> bool {
        self.page_near(near, index).is_some_and(|page| self.folios.slot(page).folio().is_some())
    }

    /// The page at an index of the file of `near`, if between the two pages ids ascend as indices
    /// do.
    fn page_near(&self, near: PageId, index: u64) -> Option<PageId> {
        let id = (u64::from(near.0) + index).checked_sub(self.page_index(near))?;
        let id = PageId(u32::try_from(id).ok()?);
        let pages = self.mapping_pages(self.space.mapping_of(near));
        (pages.contains(&id.0) && self.page_index(id) == index).then_some(id)
    }
}
