//! Units of files that a group uses: a bounded number, of which the one used longest ago gives way.

use refault_record::Inode;
use refault_trace::Via;
use rustc_hash::FxHashMap;

/// Units that are looked at to find one that was used long ago.
const LOOKED_AT: usize = 16;

/// A unit: a file, and the number of the unit in it.
pub(crate) type UnitKey = (Inode, u64);

/// State of a unit's pages in the kernel, a bit a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KernelPages {
    /// The page was seen in some event.
    pub(crate) seen: u64,
    /// It was added, and not touched since.
    pub(crate) fresh: u64,
    /// It was touched by a fault, and may be added for that.
    pub(crate) faulted: u64,
    /// It was written by descriptor, and may be added for that.
    pub(crate) written: u64,
    /// It was touched for reading.
    pub(crate) touched: u64,
}

impl KernelPages {
    /// A page is touched: what it was touched for before is over.
    pub(crate) fn note_touch(&mut self, bit: u64, via: Via, write: bool) {
        self.faulted &= !bit;
        self.written &= !bit;
        match (via, write) {
            (Via::Map, _) => self.faulted |= bit,
            (Via::Fd, true) => self.written |= bit,
            (Via::Fd, false) => {}
        }
        if !write {
            self.touched |= bit;
        }
    }
}

/// A place for a unit.
#[derive(Clone, Debug)]
struct Slot {
    key: UnitKey,
    /// Number of its last use; 0: it is free.
    used: u64,
    pages: KernelPages,
}

/// The units of a group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Units {
    by_key: FxHashMap<UnitKey, u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    most: usize,
    uses: u64,
    hand: usize,
    /// Units that gave way to others.
    pub(crate) given_up: u64,
}

/// A place that was found for a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It had it.
    Known(u32),
    /// It is a new one.
    New(u32),
    /// It was that of another unit, or is one that was left.
    Taken(u32),
}

impl Units {
    pub(crate) fn new(most: usize) -> Units {
        Units { most: most.max(1), ..Units::default() }
    }

    /// Another bound: it holds for new ones.
    pub(crate) fn set_most(&mut self, most: usize) {
        self.most = most.max(1);
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The place of a unit, if it has one.
    pub(crate) fn find(&self, key: UnitKey) -> Option<u32> {
        self.by_key.get(&key).copied()
    }

    /// The place of a unit that is used now.
    pub(crate) fn place(&mut self, key: UnitKey) -> Place {
        self.uses += 1;
        if let Some(&slot) = self.by_key.get(&key) {
            self.slots[slot as usize].used = self.uses;
            return Place::Known(slot);
        }
        let new = Slot { key, used: self.uses, pages: KernelPages::default() };
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = new;
            self.by_key.insert(key, slot);
            return Place::Taken(slot);
        }
        if self.slots.len() < self.most {
            let slot = self.slots.len() as u32;
            self.slots.push(new);
            self.by_key.insert(key, slot);
            return Place::New(slot);
        }
        let slot = self.oldest();
        self.by_key.remove(&self.slots[slot].key);
        self.slots[slot] = new;
        self.by_key.insert(key, slot as u32);
        self.given_up += 1;
        Place::Taken(slot as u32)
    }

    /// Leaves the units that are none of a sample any more: their places.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&UnitKey) -> bool) -> Vec<u32> {
        let mut left = Vec::new();
        self.by_key.retain(|key, slot| {
            let stays = is_kept(key);
            left.extend((!stays).then_some(*slot));
            stays
        });
        left.sort_unstable();
        for &slot in &left {
            (self.slots[slot as usize].used, self.slots[slot as usize].pages) = (0, KernelPages::default());
        }
        self.free.extend(&left);
        left
    }

    /// One that was used long ago: the oldest of some in turn.
    fn oldest(&mut self) -> usize {
        let all = self.slots.len();
        let looked = (0..LOOKED_AT.min(all)).map(|i| (self.hand + i * 7919) % all);
        let oldest = looked.min_by_key(|&slot| self.slots[slot].used).unwrap_or(0);
        self.hand = (self.hand + 1) % all;
        oldest
    }

    pub(crate) fn pages(&mut self, slot: u32) -> &mut KernelPages {
        &mut self.slots[slot as usize].pages
    }

    /// Places of all units of a file.
    pub(crate) fn of_file(&self, inode: Inode) -> Vec<u32> {
        let slots = self.slots.iter().enumerate().filter(|(_, slot)| slot.used > 0 && slot.key.0 == inode);
        slots.map(|(at, _)| at as u32).collect()
    }

    /// Pages that were touched, by unit.
    pub(crate) fn touched(&self) -> impl Iterator<Item = (UnitKey, u32)> + '_ {
        let used = self.slots.iter().filter(|slot| slot.used > 0);
        used.map(|slot| (slot.key, slot.pages.touched.count_ones()))
    }

    /// Bytes that it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>() + self.by_key.capacity() * (size_of::<(UnitKey, u32)>() + 1)
    }

    /// Checks the invariants.
    pub(crate) fn validate(&self) -> Result<(), String> {
        if self.by_key.len() + self.free.len() != self.slots.len() {
            return Err(format!("{} units at {} places", self.by_key.len(), self.slots.len()));
        }
        match self.by_key.iter().find(|(key, slot)| self.slots[**slot as usize].key != **key) {
            Some((key, slot)) => Err(format!("unit {key:?} is not at its place {slot}")),
            None => Ok(()),
        }
    }
}
