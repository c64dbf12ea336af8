//! The folio table: what is resident, in which state, on which list.
//!
//! A struct of arrays with 32-bit ids. A hit touches the 4 bytes of `state` only; the links, the page and the owner are
//! read when a folio moves. 24 bytes a folio in all, and list heads are entries of the same table.

use crate::ids::{FolioId, LruvecId, PageId, SwapSlot};
use crate::list::{Links, List};

/// The largest order of a folio: 2^9 pages are 2 MiB.
pub const MAX_ORDER: u8 = 9;

/// The flags of a folio, its generation, its refs and its order, in 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct State(pub(crate) u32);

impl State {
    pub(crate) const LOCKED: u32 = 1 << 0;
    pub(crate) const UPTODATE: u32 = 1 << 1;
    pub(crate) const DIRTY: u32 = 1 << 2;
    pub(crate) const WRITEBACK: u32 = 1 << 3;
    /// On an LRU list; clearing it claims the folio.
    pub(crate) const LRU: u32 = 1 << 4;
    pub(crate) const REFERENCED: u32 = 1 << 5;
    pub(crate) const ACTIVE: u32 = 1 << 6;
    pub(crate) const WORKINGSET: u32 = 1 << 7;
    /// Writeback completion must rotate the folio to the tail.
    pub(crate) const RECLAIM: u32 = 1 << 8;
    pub(crate) const SWAPBACKED: u32 = 1 << 9;
    pub(crate) const SWAPCACHE: u32 = 1 << 10;
    pub(crate) const UNEVICTABLE: u32 = 1 << 11;
    pub(crate) const MAPPED: u32 = 1 << 12;
    /// Mapped executable.
    pub(crate) const EXEC: u32 = 1 << 13;
    /// Belongs to an anonymous mapping, whatever `SWAPBACKED` says.
    pub(crate) const ANON: u32 = 1 << 14;
    /// Waits in an add batch.
    pub(crate) const ADDING: u32 = 1 << 15;
    /// Not a folio: a free entry.
    pub(crate) const FREE: u32 = 1 << 25;
    /// Not a folio: the head of a list.
    pub(crate) const HEAD: u32 = 1 << 26;

    const GEN_SHIFT: u32 = 16;
    /// 3 bits: 0 = on no multi-gen list, else generation index + 1.
    pub(crate) const GEN_MASK: u32 = 7 << Self::GEN_SHIFT;
    pub(crate) const REFS_SHIFT: u32 = 19;
    /// 2 bits: accesses by descriptor beyond `REFERENCED` and `WORKINGSET`.
    pub(crate) const REFS_MASK: u32 = 3 << Self::REFS_SHIFT;
    const ORDER_SHIFT: u32 = 21;

    pub(crate) fn new(order: u8) -> Self {
        State(u32::from(order) << Self::ORDER_SHIFT)
    }

    /// Whether any of `bits` is set.
    #[inline(always)]
    pub(crate) fn has(self, bits: u32) -> bool {
        self.0 & bits != 0
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, bits: u32) {
        self.0 |= bits;
    }

    #[inline(always)]
    pub(crate) fn clear(&mut self, bits: u32) {
        self.0 &= !bits;
    }

    #[inline(always)]
    pub(crate) fn order(self) -> u8 {
        ((self.0 >> Self::ORDER_SHIFT) & 15) as u8
    }

    /// Pages of the folio.
    #[inline(always)]
    pub(crate) fn nr_pages(self) -> u64 {
        1 << self.order()
    }

    /// 0 for anon, 1 for file: lazily freed anon counts as file.
    #[inline(always)]
    pub(crate) fn type_index(self) -> usize {
        usize::from(!self.has(Self::SWAPBACKED))
    }

    /// The generation index (seq mod 4), if on a multi-gen list.
    #[inline(always)]
    pub(crate) fn generation(self) -> Option<usize> {
        ((self.0 & Self::GEN_MASK) >> Self::GEN_SHIFT).checked_sub(1).map(|g| g as usize)
    }

    #[inline(always)]
    pub(crate) fn set_generation(&mut self, index: usize) {
        self.0 = (self.0 & !Self::GEN_MASK) | ((index as u32 + 1) << Self::GEN_SHIFT);
    }

    /// Accesses by descriptor beyond the first, 0 to 4.
    #[inline(always)]
    pub(crate) fn refs(self) -> u32 {
        ((self.0 & Self::REFS_MASK) >> Self::REFS_SHIFT) + u32::from(self.has(Self::WORKINGSET))
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const NAMES: [(u32, &str); 18] = [
            (State::LOCKED, "locked"),
            (State::UPTODATE, "uptodate"),
            (State::DIRTY, "dirty"),
            (State::WRITEBACK, "writeback"),
            (State::LRU, "lru"),
            (State::REFERENCED, "referenced"),
            (State::ACTIVE, "active"),
            (State::WORKINGSET, "workingset"),
            (State::RECLAIM, "reclaim"),
            (State::SWAPBACKED, "swapbacked"),
            (State::SWAPCACHE, "swapcache"),
            (State::UNEVICTABLE, "unevictable"),
            (State::MAPPED, "mapped"),
            (State::EXEC, "exec"),
            (State::ANON, "anon"),
            (State::ADDING, "adding"),
            (State::FREE, "free"),
            (State::HEAD, "head"),
        ];
        for (bit, name) in NAMES {
            if self.has(bit) {
                write!(f, "{name} ")?;
            }
        }
        write!(f, "gen={:?} refs={} order={}", self.generation(), self.refs(), self.order())
    }
}

/// All folios.
#[derive(Clone, Debug, Default)]
pub(crate) struct FolioTable {
    pub(crate) state: Vec<State>,
    pub(crate) links: Links,
    /// First page.
    page: Vec<PageId>,
    lruvec: Vec<LruvecId>,
    /// The swap slot of a swap-cache folio.
    swap: Vec<SwapSlot>,
    free: Vec<FolioId>,
}

impl FolioTable {
    /// Bytes that one entry takes.
    pub(crate) const ENTRY_BYTES: usize = 4 + 8 + 4 + 4 + 4;

    fn push(&mut self, state: State) -> FolioId {
        let id = FolioId(self.state.len() as u32);
        self.state.push(state);
        self.links.push();
        self.page.push(PageId(0));
        self.lruvec.push(LruvecId(0));
        self.swap.push(SwapSlot::NONE);
        id
    }

    /// A new, empty list.
    pub(crate) fn new_list(&mut self) -> List {
        List(self.push(State(State::HEAD)))
    }

    /// A folio of 2^order pages from `page` on, in no state and on no list.
    #[inline]
    pub(crate) fn alloc(&mut self, page: PageId, order: u8, lruvec: LruvecId) -> FolioId {
        let f = match self.free.pop() {
            Some(f) => f,
            None => self.push(State(State::FREE)),
        };
        self.state[f.index()] = State::new(order);
        self.page[f.index()] = page;
        self.lruvec[f.index()] = lruvec;
        f
    }

    /// Gives the entry back. The folio must be on no list.
    #[inline]
    pub(crate) fn release(&mut self, f: FolioId) {
        self.state[f.index()] = State(State::FREE);
        self.free.push(f);
    }

    #[inline(always)]
    pub(crate) fn st(&self, f: FolioId) -> State {
        self.state[f.index()]
    }

    #[inline(always)]
    pub(crate) fn st_mut(&mut self, f: FolioId) -> &mut State {
        &mut self.state[f.index()]
    }

    #[inline(always)]
    pub(crate) fn page(&self, f: FolioId) -> PageId {
        self.page[f.index()]
    }

    #[inline(always)]
    pub(crate) fn lruvec(&self, f: FolioId) -> LruvecId {
        self.lruvec[f.index()]
    }

    pub(crate) fn swap(&self, f: FolioId) -> SwapSlot {
        self.swap[f.index()]
    }

    pub(crate) fn set_swap(&mut self, f: FolioId, slot: SwapSlot) {
        self.swap[f.index()] = slot;
    }

    /// Entries, list heads and free ones included.
    pub(crate) fn len(&self) -> usize {
        self.state.len()
    }

    /// Bytes held, with the room that vectors keep in reserve.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.state.capacity() * 4
            + self.links.capacity() * 8
            + self.page.capacity() * 4
            + self.lruvec.capacity() * 4
            + self.swap.capacity() * 4
            + self.free.capacity() * 4
    }

    /// Folios in use.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = FolioId> + '_ {
        let used = |&i: &u32| !self.state[i as usize].has(State::FREE | State::HEAD);
        (0..self.state.len() as u32).filter(used).map(FolioId)
    }

    /// Every free entry is on the free stack once.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let mut seen = vec![false; self.len()];
        for f in &self.free {
            if !self.st(*f).has(State::FREE) || std::mem::replace(&mut seen[f.index()], true) {
                return Err(format!("{f:?} on the free stack is in use or there twice"));
            }
        }
        let marked = self.state.iter().filter(|s| s.has(State::FREE)).count();
        if marked != self.free.len() {
            return Err(format!("{marked} free entries, {} on the free stack", self.free.len()));
        }
        Ok(())
    }
}
