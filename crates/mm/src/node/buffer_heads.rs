//! Buffer heads: records of a file system for a page that was written, until the page is gone. They
//! lie in slabs, and a slab that holds one is not free.
//!
//! Mechanism: `docs/mechanisms.md#buffer-heads`.

use std::collections::{BTreeMap, VecDeque};

use crate::ids::{PageId, ZoneId};

/// Buffer heads of 104 bytes in a page.
const OBJECTS_PER_SLAB: u32 = 39;
/// `min_partial`: slabs with free objects that are kept, even if they are empty.
const MIN_PARTIAL: usize = 5;

/// A slab: one page of buffer heads.
#[derive(Clone, Copy, Debug)]
struct Slab {
    zone: ZoneId,
    used: u32,
}

/// All buffer heads of a machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct BufferHeads {
    slabs: BTreeMap<u32, Slab>,
    next_slab: u32,
    of_page: BTreeMap<u32, u32>,
    /// The slab from which buffer heads are taken, and the other slabs with room, in the order of
    /// use.
    active: Option<u32>,
    partial: VecDeque<u32>,
}

impl BufferHeads {
    /// Whether a page has one.
    pub(crate) fn has(&self, page: PageId) -> bool {
        self.of_page.contains_key(&page.0)
    }

    /// Whether the next one needs another slab.
    pub(crate) fn is_full(&self) -> bool {
        self.partial.is_empty() && self.active.is_none_or(|id| self.slabs[&id].used == OBJECTS_PER_SLAB)
    }

    /// A page more for slabs.
    pub(crate) fn add_slab(&mut self, zone: ZoneId) {
        self.slabs.insert(self.next_slab, Slab { zone, used: 0 });
        self.partial.push_back(self.next_slab);
        self.next_slab = self.next_slab.wrapping_add(1);
    }

    /// Gives a page a buffer head; there must be room.
    pub(crate) fn attach(&mut self, page: PageId) {
        let has_room = |id: &u32| self.slabs[id].used < OBJECTS_PER_SLAB;
        let Some(id) = self.active.filter(has_room).or_else(|| self.partial.pop_front()) else { return };
        self.active = Some(id);
        if let Some(slab) = self.slabs.get_mut(&id) {
            slab.used += 1;
            self.of_page.insert(page.0, id);
        }
    }

    /// Frees the buffer heads of a page. Returns the zone of the slab that is freed with them, if
    /// any.
    pub(crate) fn detach(&mut self, page: PageId) -> Option<ZoneId> {
        let id = self.of_page.remove(&page.0)?;
        let slab = self.slabs.get_mut(&id)?;
        let was_full = slab.used == OBJECTS_PER_SLAB;
        slab.used -= 1;
        let Slab { zone, used } = *slab;
        if self.active == Some(id) {
            return None;
        }
        if was_full {
            self.partial.push_back(id);
        }
        if used > 0 || self.partial.len() < MIN_PARTIAL {
            return None;
        }
        self.partial.retain(|&other| other != id);
        self.slabs.remove(&id);
        Some(zone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attach(b: &mut BufferHeads, page: u32) {
        if b.is_full() {
            b.add_slab(ZoneId::default());
        }
        b.attach(PageId(page));
    }

    /// One of each slab keeps it; the last five that are empty stay, too.
    #[test]
    fn a_slab_is_free_when_its_last_object_is() {
        let mut b = BufferHeads::default();
        (0..10 * OBJECTS_PER_SLAB).for_each(|p| attach(&mut b, p));
        assert_eq!(b.slabs.len(), 10);
        let mut free = |pages: &mut dyn Iterator<Item = u32>| pages.filter(|&p| b.detach(PageId(p)).is_some()).count();
        assert_eq!(free(&mut (0..390).filter(|p| p % OBJECTS_PER_SLAB > 0)), 0);
        assert_eq!(free(&mut (0..390).filter(|p| p % OBJECTS_PER_SLAB == 0)), 5);
        assert_eq!((b.slabs.len(), b.of_page.len(), b.partial.len()), (5, 0, 4));
    }

    /// An object that is freed here and there is used again before another slab is made.
    #[test]
    fn holes_are_filled_first() {
        let mut b = BufferHeads::default();
        (0..10 * OBJECTS_PER_SLAB).for_each(|p| attach(&mut b, p));
        (0..390).step_by(3).for_each(|p| _ = b.detach(PageId(p)));
        (0..390).step_by(3).for_each(|p| attach(&mut b, p));
        assert_eq!(b.slabs.len(), 10);
        assert!(b.is_full() && (0..390).all(|p| b.has(PageId(p))));
        assert_eq!(b.detach(PageId(1000)), None);
    }
}
