//! A table by slot of which only the parts in use take memory. The engine goes through all clusters
//! of a swap device before it uses one again, so a table in one piece would soon take what a full
//! device takes.

use std::fmt::Debug;

/// Entries of a part: as many as a cluster has slots.
const PART: usize = 512;

/// Entry that a table can forget.
pub(super) trait Entry: Copy + Debug {
    /// State of a slot that nothing is known of.
    const VACANT: Self;

    /// Whether it is as good as [`Entry::VACANT`].
    fn is_vacant(&self) -> bool;
}

impl Entry for Option<u32> {
    const VACANT: Self = None;

    fn is_vacant(&self) -> bool {
        self.is_none()
    }
}

#[derive(Debug)]
struct SparseBlock<T> {
    used: usize,
    entries: [T; PART],
}

/// Entries by slot, vacant where nothing was put.
#[derive(Debug)]
pub(super) struct Sparse<T> {
    parts: Vec<Option<Box<SparseBlock<T>>>>,
    in_memory: usize,
}

impl<T: Entry> Sparse<T> {
    pub(super) const fn new() -> Sparse<T> {
        Sparse { parts: Vec::new(), in_memory: 0 }
    }

    /// The entry of a slot.
    pub(super) fn get(&self, slot: u32) -> T {
        let part = self.parts.get(slot as usize / PART).and_then(|p| p.as_ref());
        part.map_or(T::VACANT, |p| p.entries[slot as usize % PART])
    }

    /// Changes the entry of a slot; what it was.
    pub(super) fn change(&mut self, slot: u32, change: impl FnOnce(&mut T)) -> T {
        let at = slot as usize / PART;
        if self.parts.len() <= at {
            self.parts.resize_with(at + 1, || None);
        }
        let part = self.parts[at].get_or_insert_with(|| {
            self.in_memory += 1;
            Box::new(SparseBlock { used: 0, entries: [T::VACANT; PART] })
        });
        let entry = &mut part.entries[slot as usize % PART];
        let before = *entry;
        change(entry);
        part.used = part.used + usize::from(!entry.is_vacant()) - usize::from(!before.is_vacant());
        if part.used == 0 {
            self.parts[at] = None;
            self.in_memory -= 1;
        }
        before
    }

    /// Bytes that it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.in_memory * size_of::<SparseBlock<T>>() + self.parts.capacity() * size_of::<usize>()
    }

    /// How many slots are not vacant.
    #[cfg(test)]
    pub(super) fn used(&self) -> usize {
        let counted = |p: &SparseBlock<T>| p.entries.iter().filter(|e| !e.is_vacant()).count();
        let parts = self.parts.iter().flatten();
        parts
            .inspect(|p| assert!(p.used > 0 && p.used == counted(p), "a part knows what it holds"))
            .map(|p| p.used)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Against a map, on slots that are far apart.
    #[test]
    fn it_holds_what_a_map_holds_and_takes_memory_for_that_alone() {
        let (mut table, mut map, mut x) = (Sparse::<Option<u32>>::new(), BTreeMap::new(), 7u32);
        for i in 0..50_000u32 {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let slot = (x >> 8) % 4 * 100_000 + (x >> 16) % 600;
            let value = (x & 64 != 0).then_some(i);
            let before = match value {
                Some(v) => map.insert(slot, v),
                None => map.remove(&slot),
            };
            assert_eq!(table.change(slot, |e| *e = value), before);
            assert_eq!(table.get(slot), value);
        }
        assert_eq!(table.used(), map.len());
        assert!(map.iter().all(|(&slot, &v)| table.get(slot) == Some(v)));
        map.keys().for_each(|&slot| _ = table.change(slot, |e| *e = None));
        assert!(table.used() == 0 && table.memory_bytes() < 8192, "{} bytes for nothing", table.memory_bytes());
    }
}
