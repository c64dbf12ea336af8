//! Anonymous memory of processes: what has content, in memory or in swap, and what became of it
//! from look to look.

use crate::scan::Memory;
use refault_trace::RecordKind;
use rustc_hash::FxHashMap;

/// A page that has content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Page {
    is_there: bool,
    /// Number of the look that saw it last.
    look: u32,
}

/// Outcome for pages that follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpaceChange {
    pub(super) kind: RecordKind,
    pub(super) first: u64,
    pub(super) pages: u64,
    pub(super) write: bool,
}

/// The memory of a process.
#[derive(Debug, Default)]
pub(super) struct AddressSpace {
    pages: FxHashMap<u64, Page>,
    looks: u32,
}

impl AddressSpace {
    /// A fault on a page: whether its content had to be read from swap.
    pub(super) fn fault(&mut self, page: u64) -> bool {
        let look = self.looks;
        let before = self.pages.insert(page, Page { is_there: true, look });
        before.is_some_and(|page| !page.is_there)
    }

    /// A look at all of it; `writes`: its touches are known to be some.
    ///
    /// | before | now | |
    /// |---|---|---|
    /// | no content | in memory | its first touch, a write |
    /// | in swap | in memory | a miss: it was read |
    /// | in memory | in memory | a touch, if it was touched |
    /// | in memory | in swap | an eviction |
    /// | content | none | a drop |
    pub(super) fn look(&mut self, all: &[Memory], writes: bool) -> Vec<SpaceChange> {
        self.looks = self.looks.wrapping_add(1);
        let mut changes = Vec::new();
        for memory in all {
            for page in memory.first..memory.first.saturating_add(memory.pages) {
                let now = Page { is_there: memory.is_there, look: self.looks };
                let before = self.pages.insert(page, now).map(|page| page.is_there);
                let change = match (before, memory.is_there) {
                    (None, true) => Some((RecordKind::Sampled, true)),
                    (Some(false), true) => Some((RecordKind::Miss, false)),
                    (Some(true), true) if memory.touched => Some((RecordKind::Sampled, writes)),
                    (Some(true), false) => Some((RecordKind::Evict, false)),
                    _ => None,
                };
                if let Some((kind, write)) = change {
                    join(&mut changes, SpaceChange { kind, first: page, pages: 1, write });
                }
            }
        }
        let look = self.looks;
        let mut gone: Vec<u64> = self.pages.iter().filter(|(_, p)| p.look != look).map(|(&page, _)| page).collect();
        gone.sort_unstable();
        for page in gone {
            self.pages.remove(&page);
            join(&mut changes, SpaceChange { kind: RecordKind::Drop, first: page, pages: 1, write: false });
        }
        changes
    }

    /// The process is gone, or has another memory now: all of it is dropped.
    pub(super) fn end(&mut self) -> Vec<SpaceChange> {
        self.look(&[], false)
    }
}

/// Appends a change, to the last one where it goes on. Each miss is one by itself.
fn join(changes: &mut Vec<SpaceChange>, next: SpaceChange) {
    match changes.last_mut() {
        Some(last)
            if (last.kind, last.write) == (next.kind, next.write)
                && next.kind != RecordKind::Miss
                && last.first + last.pages == next.first =>
        {
            last.pages += next.pages;
        }
        _ => changes.push(next),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(first: u64, pages: u64, is_there: bool, touched: bool) -> Memory {
        Memory { first, pages, is_there, touched }
    }

    fn of(changes: Vec<SpaceChange>) -> Vec<(RecordKind, u64, u64, bool)> {
        changes.iter().map(|c| (c.kind, c.first, c.pages, c.write)).collect()
    }

    #[test]
    fn what_became_of_pages_is_told_once() {
        let mut space = AddressSpace::default();
        assert!(!space.fault(7), "its first touch");
        let seen = space.look(&[memory(5, 3, true, false)], true);
        assert_eq!(of(seen), [(RecordKind::Sampled, 5, 2, true)], "page 7 had a fault");
        let seen = space.look(&[memory(5, 1, true, true), memory(6, 2, false, false)], true);
        assert_eq!(of(seen), [(RecordKind::Sampled, 5, 1, true), (RecordKind::Evict, 6, 2, false)]);
        assert!(space.fault(6), "it was in swap");
        let seen = space.look(&[memory(6, 2, true, true)], false);
        let want =
            [(RecordKind::Sampled, 6, 1, false), (RecordKind::Miss, 7, 1, false), (RecordKind::Drop, 5, 1, false)];
        assert_eq!(of(seen), want);
        assert_eq!(of(space.end()), [(RecordKind::Drop, 6, 2, false)]);
        assert_eq!(space.end(), []);
    }
}
