//! A store whose pages come back as they were given, or not at all.
//!
//! A checksum is kept of every page, over its content, whose page it is, and which write it was. So
//! what a store mixes up, loses, tears, or keeps from an earlier time is found when it is read.
//! Pages that repeat one word are kept as that word and never reach the store.

mod copies;
mod room;
mod runs;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use twox_hash::XxHash3_64;

use self::copies::Copies;
use self::room::Room;
use super::sparse::{Entry, Sparse};
use super::{Note, Page, Store, StoreError, Usage};
use crate::uffd::PAGE;

/// State of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Kind {
    #[default]
    Empty,
    /// The page repeats the word.
    Filled,
    /// The store has it; the word is its checksum.
    Stored,
}

/// State of a cell: a slot of the store. It holds what was written to a slot of the owner, and
/// lives as long as that slot or a cow_swap of it.
#[derive(Clone, Copy, Debug, Default)]
struct Meta {
    word: u64,
    /// The page of the owner.
    page: u32,
    /// Number of the write.
    turn: u32,
    kind: Kind,
    /// The slot and the loans that it belongs to.
    users: u32,
}

impl Entry for Meta {
    const VACANT: Meta = Meta { word: 0, page: 0, turn: 0, kind: Kind::Empty, users: 0 };

    fn is_vacant(&self) -> bool {
        self.users == 0
    }
}

/// A cell that is about to be written: what it held before, and which write it is.
#[derive(Clone, Copy, Debug)]
struct Claim {
    cell: u32,
    before: Kind,
    turn: u32,
}

/// The content of a slot as it was, whatever becomes of the slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CowSwap {
    cell: u32,
    page: u32,
}

/// Cells, and which slot has which. The cell of slot n is n, unless a cow_swap of it outlived what
/// was in the slot.
#[derive(Debug)]
struct Cells {
    cells: Sparse<Meta>,
    of_slot: Sparse<Option<u32>>,
    /// Writes so far.
    turn: u32,
    /// The first cell that is no slot's own, those that were used, and the next that never was.
    others: u32,
    free: Vec<u32>,
    next: u32,
}

impl Cells {
    /// The cell of a slot.
    fn of(&self, slot: u32) -> Option<u32> {
        self.of_slot.get(slot)
    }

    fn next_turn(&mut self) -> u32 {
        self.turn = self.turn.wrapping_add(1);
        self.turn
    }

    /// A cell that nobody uses, the slot's own if it can be, with one user.
    fn take(&mut self, slot: Option<u32>) -> u32 {
        let own = slot.filter(|&s| self.cells.get(s).users == 0);
        let cell = own.or_else(|| self.free.pop()).unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        self.cells.change(cell, |m| m.users = 1);
        if let Some(slot) = slot {
            self.of_slot.change(slot, |c| *c = Some(cell));
        }
        cell
    }
}

/// Counters of an area.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AreaStats {
    /// Slots in use.
    pub pages: u64,
    /// Pages among them that repeat one word.
    pub same_filled: u64,
    /// Reads whose content was not what had been written.
    pub corrupt: u64,
    /// Reads that failed otherwise.
    pub read_errors: u64,
    /// Writes that failed.
    pub write_errors: u64,
    /// Writes that were not made, because the slot held the very page already.
    pub unchanged: u64,
    /// Content and memory of the store, with the tables of the area.
    pub usage: Usage,
}

/// A store with a memory of what it was given.
pub struct SwapArea {
    store: Box<dyn Store>,
    cells: Mutex<Cells>,
    pages: AtomicU64,
    same_filled: AtomicU64,
    corrupt: AtomicU64,
    read_errors: AtomicU64,
    write_errors: AtomicU64,
    copies: Copies,
    room: Room,
}

impl SwapArea {
    /// Bytes that a page takes in the tables of the area, and in the tables of a file.
    pub const BYTES_PER_PAGE: usize = size_of::<Meta>() + size_of::<Option<u32>>() + 1;

    /// An area over a store, of which nothing is lent.
    pub fn new(store: Box<dyn Store>) -> SwapArea {
        SwapArea::sharing(store, u32::MAX)
    }

    /// An area over a store. Slots are below `slots`; what is lent and has no slot any more takes
    /// more of the store.
    pub fn sharing(store: Box<dyn Store>, slots: u32) -> SwapArea {
        let cells = Cells {
            cells: Sparse::new(),
            of_slot: Sparse::new(),
            turn: 0,
            others: slots,
            free: Vec::new(),
            next: slots,
        };
        SwapArea {
            store,
            cells: Mutex::new(cells),
            pages: AtomicU64::default(),
            same_filled: AtomicU64::default(),
            corrupt: AtomicU64::default(),
            read_errors: AtomicU64::default(),
            write_errors: AtomicU64::default(),
            copies: Copies::new(),
            room: Room::default(),
        }
    }

    fn cells(&self) -> std::sync::MutexGuard<'_, Cells> {
        self.cells.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Changes what is known of a cell; what was known.
    fn note(&self, cells: &mut Cells, cell: u32, change: impl FnOnce(&mut Meta)) -> Meta {
        let before = cells.cells.change(cell, change);
        let after = cells.cells.get(cell);
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
        match self.holds(slot, page, content) {
            true => Ok(()),
            false => self.write_cell(self.claim(slot), page, content),
        }
    }

    /// The cell that a slot is written to. It holds nothing until it is written.
    fn claim(&self, slot: u32) -> Claim {
        let mut cells = self.cells();
        let cell = match cells.of(slot) {
            Some(cell) if cells.cells.get(cell).users == 1 => cell,
            Some(cell) => {
                // Lent content stays where it is.
                self.leave(&mut cells, cell);
                cells.take(Some(slot))
            }
            None => cells.take(Some(slot)),
        };
        let before = self.note(&mut cells, cell, |m| m.kind = Kind::Empty).kind;
        Claim { cell, before, turn: cells.next_turn() }
    }

    fn write_cell(&self, claim: Claim, page: u32, content: &Page) -> Result<(), StoreError> {
        if let Some(word) = repeated_word(content) {
            self.note_filled(claim, page, word);
            return Ok(());
        }
        let word = checksum(page, claim.turn, content);
        let result = self.store.write(claim.cell, content);
        self.note_written(claim, page, word, result)
    }

    fn set(&self, claim: Claim, page: u32, word: u64, kind: Kind) {
        let new = |m: &mut Meta| *m = Meta { word, page, turn: claim.turn, kind, users: m.users };
        self.note(&mut self.cells(), claim.cell, new);
    }

    /// The page repeats a word: the store does not see it.
    fn note_filled(&self, claim: Claim, page: u32, word: u64) {
        if claim.before == Kind::Stored {
            self.store.free(claim.cell);
        }
        self.set(claim, page, word, Kind::Filled);
        self.store.note(Note::LeftUnwritten(None));
    }

    fn note_written(
        &self,
        claim: Claim,
        page: u32,
        word: u64,
        result: Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        match result {
            Ok(()) => {
                self.set(claim, page, word, Kind::Stored);
                self.room.may_be_there();
            }
            Err(_) => _ = self.write_errors.fetch_add(1, Ordering::Relaxed),
        }
        result
    }

    /// Whether a read waits for a device.
    pub fn reads_wait(&self) -> bool {
        self.store.reads_wait()
    }

    /// Whether most writes wait for a device.
    pub fn writes_wait(&self) -> bool {
        self.store.writes_wait()
    }

    /// Reads page `page` of the owner. The content that was written last comes back, or an error;
    /// then `content` is anything.
    pub fn read(&self, slot: u32, page: u32, content: &mut Page) -> Result<(), StoreError> {
        let known = {
            let cells = self.cells();
            cells.of(slot).map(|cell| (cell, cells.cells.get(cell)))
        };
        self.read_counted(known, page, content)
    }

    fn read_counted(&self, known: Option<(u32, Meta)>, page: u32, content: &mut Page) -> Result<(), StoreError> {
        let result =
            known.ok_or(StoreError::Absent).and_then(|(cell, meta)| self.read_checked(cell, meta, page, content));
        match &result {
            Err(StoreError::Corrupt(_)) => self.corrupt.fetch_add(1, Ordering::Relaxed),
            Err(_) => self.read_errors.fetch_add(1, Ordering::Relaxed),
            Ok(()) => 0,
        };
        result
    }

    fn read_checked(&self, cell: u32, meta: Meta, page: u32, content: &mut Page) -> Result<(), StoreError> {
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
        self.store.read(cell, content)?;
        match checksum(page, meta.turn, content) == meta.word {
            true => Ok(()),
            false => Err(StoreError::Corrupt("its checksum differs")),
        }
    }

    /// Takes one user from a cell; without any users the cell holds nothing.
    fn leave(&self, cells: &mut Cells, cell: u32) {
        if cells.cells.get(cell).users > 1 {
            cells.cells.change(cell, |m| m.users -= 1);
            return;
        }
        if cell >= cells.others {
            cells.free.push(cell);
        }
        // Under the lock: the cell may be taken again right after it.
        if self.note(cells, cell, |m| *m = Meta::VACANT).kind == Kind::Stored {
            self.store.free(cell);
        }
    }

    /// The slot holds nothing from now on.
    pub fn free(&self, slot: u32) {
        let mut cells = self.cells();
        if let Some(cell) = cells.of(slot) {
            cells.of_slot.change(slot, |c| *c = None);
            self.leave(&mut cells, cell);
        }
    }

    /// The page that a slot holds; `None`: nothing is in it.
    #[cfg(test)]
    pub(crate) fn page_in(&self, slot: u32) -> Option<u32> {
        let cells = self.cells();
        let meta = cells.cells.get(cells.of(slot)?);
        (meta.kind != Kind::Empty).then_some(meta.page)
    }

    /// Lends the content of a slot to someone else, until [`SwapArea::end_cow_swap`]. `None`:
    /// nothing is in it.
    pub fn share(&self, slot: u32) -> Option<CowSwap> {
        let mut cells = self.cells();
        let cell = cells.of(slot)?;
        let meta = cells.cells.change(cell, |m| m.users += 1);
        Some(CowSwap { cell, page: meta.page })
    }

    /// One more of a cow_swap.
    pub fn share_again(&self, cow_swap: CowSwap) {
        self.cells().cells.change(cow_swap.cell, |m| m.users += 1);
    }

    /// Keeps a page that has no slot.
    pub fn keep(&self, page: u32, content: &Page) -> Result<CowSwap, StoreError> {
        let mut cells = self.cells();
        let cell = cells.take(None);
        let claim = Claim { cell, before: Kind::Empty, turn: cells.next_turn() };
        drop(cells);
        let written = self.write_cell(claim, page, content);
        if written.is_err() {
            self.leave(&mut self.cells(), cell);
        }
        written.map(|()| CowSwap { cell, page })
    }

    /// Reads what was lent.
    pub fn read_cow_swap(&self, cow_swap: CowSwap, content: &mut Page) -> Result<(), StoreError> {
        let meta = self.cells().cells.get(cow_swap.cell);
        self.read_counted(Some((cow_swap.cell, meta)), cow_swap.page, content)
    }

    /// Ends a loan: the content is needed no more.
    pub fn end_cow_swap(&self, cow_swap: CowSwap) {
        self.leave(&mut self.cells(), cow_swap.cell);
    }

    /// The store's limit of memory for pages, not above the first one.
    pub fn set_pool_limit(&self, bytes: usize) {
        self.store.set_pool_limit(bytes);
    }

    /// Writes some of what is beyond that limit to disk, if there is one. Whether there is more.
    pub fn shrink_pool(&self) -> Result<bool, StoreError> {
        self.store.shrink_pool()
    }

    /// A fault on a page that was out of memory was served, in `ns` nanoseconds.
    pub fn fault_served(&self, ns: u64) {
        self.store.note(Note::FaultServed { ns });
    }

    /// Whether [`SwapArea::tend`] has something to do.
    pub fn wants_tending(&self) -> bool {
        self.store.wants_tending()
    }

    /// Does some of what can wait: for a thread for which nobody waits.
    pub fn tend(&self) {
        self.store.tend();
    }

    /// Counters, content and memory of the area.
    pub fn stats(&self) -> AreaStats {
        let mut usage = self.store.usage();
        let cells = self.cells();
        let tables = cells.cells.memory_bytes() + cells.of_slot.memory_bytes();
        usage.memory_bytes += (tables + cells.free.capacity() * size_of::<u32>()) as u64;
        drop(cells);
        let get = |c: &AtomicU64| c.load(Ordering::Relaxed);
        AreaStats {
            pages: get(&self.pages),
            same_filled: get(&self.same_filled),
            corrupt: get(&self.corrupt),
            read_errors: get(&self.read_errors),
            write_errors: get(&self.write_errors),
            unchanged: self.copies.unchanged(),
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
