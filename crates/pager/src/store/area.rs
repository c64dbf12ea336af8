//! A store whose pages come back as they were given, or not at all.
//!
//! Of every page a checksum is kept, over its content, whose page it is, and how often its slot was written. So what a store
//! mixes up, loses, tears, or keeps from an earlier time is found when it is read. Pages that repeat one word are kept
//! as that word and never reach the store.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use twox_hash::XxHash3_64;

use super::{Page, Store, StoreError, Usage};
use crate::uffd::PAGE;

/// What is known of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Kind {
    #[default]
    Empty,
    /// The page repeats the word.
    Filled,
    /// The store has it; the word is its checksum.
    Stored,
}

#[derive(Clone, Copy, Debug, Default)]
struct Meta {
    word: u64,
    /// Which page of the owner it is.
    page: u32,
    /// How often the slot was written.
    turn: u32,
    kind: Kind,
}

/// What an area did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AreaStats {
    /// Slots in use.
    pub pages: u64,
    /// Of those, pages that repeat one word.
    pub same_filled: u64,
    /// Reads whose content was not what had been written.
    pub corrupt: u64,
    /// Reads that failed otherwise.
    pub read_errors: u64,
    /// Writes that failed.
    pub write_errors: u64,
    /// What the store holds and takes, with the tables of the area.
    pub usage: Usage,
}

/// A store with a memory of what it was given.
pub struct SwapArea {
    store: Box<dyn Store>,
    slots: Mutex<Vec<Meta>>,
    pages: AtomicU64,
    same_filled: AtomicU64,
    corrupt: AtomicU64,
    read_errors: AtomicU64,
    write_errors: AtomicU64,
}

impl SwapArea {
    /// An area over a store.
    pub fn new(store: Box<dyn Store>) -> SwapArea {
        SwapArea {
            store,
            slots: Mutex::default(),
            pages: AtomicU64::default(),
            same_filled: AtomicU64::default(),
            corrupt: AtomicU64::default(),
            read_errors: AtomicU64::default(),
            write_errors: AtomicU64::default(),
        }
    }

    fn slots(&self) -> std::sync::MutexGuard<'_, Vec<Meta>> {
        self.slots.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Changes what is known of a slot; what was known.
    fn note(&self, slot: u32, change: impl FnOnce(&mut Meta)) -> Meta {
        let mut slots = self.slots();
        if slots.len() <= slot as usize {
            slots.resize(slot as usize + 1, Meta::default());
        }
        let meta = &mut slots[slot as usize];
        let before = *meta;
        change(meta);
        let after = *meta;
        drop(slots);
        let count = |counter: &AtomicU64, is: fn(Kind) -> bool| match (is(before.kind), is(after.kind)) {
            (false, true) => _ = counter.fetch_add(1, Ordering::Relaxed),
            (true, false) => _ = counter.fetch_sub(1, Ordering::Relaxed),
            _ => {}
        };
        count(&self.pages, |k| k != Kind::Empty);
        count(&self.same_filled, |k| k == Kind::Filled);
        before
    }

    /// Writes what is page `page` of the owner. After an error the slot holds nothing.
    pub fn write(&self, slot: u32, page: u32, content: &Page) -> Result<(), StoreError> {
        let before = self.note(slot, |m| m.kind = Kind::Empty);
        let turn = before.turn.wrapping_add(1);
        if let Some(word) = repeated_word(content) {
            if before.kind == Kind::Stored {
                self.store.free(slot);
            }
            self.note(slot, |m| *m = Meta { word, page, turn, kind: Kind::Filled });
            return Ok(());
        }
        let word = checksum(page, turn, content);
        if let Err(e) = self.store.write(slot, content) {
            self.write_errors.fetch_add(1, Ordering::Relaxed);
            return Err(e);
        }
        self.note(slot, |m| *m = Meta { word, page, turn, kind: Kind::Stored });
        Ok(())
    }

    /// Reads page `page` of the owner. What comes back is what was written last, or an error; then `content` is anything.
    pub fn read(&self, slot: u32, page: u32, content: &mut Page) -> Result<(), StoreError> {
        let result = self.read_checked(slot, page, content);
        match &result {
            Err(StoreError::Corrupt(_)) => self.corrupt.fetch_add(1, Ordering::Relaxed),
            Err(_) => self.read_errors.fetch_add(1, Ordering::Relaxed),
            Ok(()) => 0,
        };
        result
    }

    fn read_checked(&self, slot: u32, page: u32, content: &mut Page) -> Result<(), StoreError> {
        let meta = self.slots().get(slot as usize).copied().unwrap_or_default();
        if meta.kind == Kind::Empty {
            return Err(StoreError::Absent);
        }
        if meta.page != page {
            return Err(StoreError::Corrupt("the slot holds another page"));
        }
        if meta.kind == Kind::Filled {
            content.as_chunks_mut::<8>().0.fill(meta.word.to_ne_bytes());
            return Ok(());
        }
        self.store.read(slot, content)?;
        match checksum(page, meta.turn, content) == meta.word {
            true => Ok(()),
            false => Err(StoreError::Corrupt("its checksum differs")),
        }
    }

    /// The slot holds nothing from now on.
    pub fn free(&self, slot: u32) {
        if self.note(slot, |m| m.kind = Kind::Empty).kind == Kind::Stored {
            self.store.free(slot);
        }
    }

    /// What it did, holds and takes.
    pub fn stats(&self) -> AreaStats {
        let mut usage = self.store.usage();
        usage.memory_bytes += (self.slots().capacity() * size_of::<Meta>()) as u64;
        let get = |c: &AtomicU64| c.load(Ordering::Relaxed);
        AreaStats {
            pages: get(&self.pages),
            same_filled: get(&self.same_filled),
            corrupt: get(&self.corrupt),
            read_errors: get(&self.read_errors),
            write_errors: get(&self.write_errors),
            usage,
        }
    }
}

fn checksum(page: u32, turn: u32, content: &Page) -> u64 {
    XxHash3_64::oneshot_with_seed(u64::from(page) << 32 | u64::from(turn), content)
}

/// The word that a page repeats, if it does.
fn repeated_word(content: &Page) -> Option<u64> {
    let first: &[u8; 8] = content.first_chunk().expect("a page is longer than a word");
    // Equal to itself, shifted by a word.
    (content[8..] == content[..PAGE - 8]).then(|| u64::from_ne_bytes(*first))
}
