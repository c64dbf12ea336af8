//! The folio table: what is resident, in which state, on which list.
//!
//! 24 bytes a folio with 32-bit ids, side by side: a folio that moves touches one cache line of its own. What a hit by
//! descriptor reads and sets lies apart, a byte a page: a hit needs nothing else, and the bytes of a million pages fit a
//! processor's second-level cache.

use crate::ids::{FolioId, LruvecId, PageId, SwapSlot};
use crate::list::{Link, Links, List};

/// The largest order of a folio: 2^9 pages are 2 MiB.
pub const MAX_ORDER: u8 = 9;

/// The flags of a folio, its generation, its refs and its order, in 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct State(pub(crate) u32);

impl State {
    // The low byte is kept by page, where a hit by descriptor finds it without knowing the folio.
    pub(crate) const UPTODATE: u32 = 1 << 0;
    pub(crate) const REFERENCED: u32 = 1 << 1;
    pub(crate) const WORKINGSET: u32 = 1 << 2;
    pub(crate) const REFS_SHIFT: u32 = 3;
    /// 2 bits: accesses by descriptor beyond `REFERENCED` and `WORKINGSET`.
    pub(crate) const REFS_MASK: u32 = 3 << Self::REFS_SHIFT;
    pub(crate) const ACTIVE: u32 = 1 << 5;
    pub(crate) const UNEVICTABLE: u32 = 1 << 6;
    /// The byte of a page of a large folio that is not its first: the flags are in the first one's.
    pub(crate) const TAIL: u32 = 1 << 7;

    pub(crate) const LOCKED: u32 = 1 << 8;
    pub(crate) const DIRTY: u32 = 1 << 9;
    pub(crate) const WRITEBACK: u32 = 1 << 10;
    /// On an LRU list; clearing it claims the folio.
    pub(crate) const LRU: u32 = 1 << 11;
    /// Writeback completion must rotate the folio to the tail.
    pub(crate) const RECLAIM: u32 = 1 << 12;
    pub(crate) const SWAPBACKED: u32 = 1 << 13;
    pub(crate) const SWAPCACHE: u32 = 1 << 14;
    pub(crate) const MAPPED: u32 = 1 << 15;
    /// Mapped executable.
    pub(crate) const EXEC: u32 = 1 << 16;
    /// Belongs to an anonymous mapping, whatever `SWAPBACKED` says.
    pub(crate) const ANON: u32 = 1 << 17;
    /// Waits in an add batch.
    pub(crate) const ADDING: u32 = 1 << 18;
    /// Not a folio: a free entry.
    pub(crate) const FREE: u32 = 1 << 19;
    /// Read from swap ahead of need, and not needed yet.
    pub(crate) const READAHEAD: u32 = 1 << 20;

    const GEN_SHIFT: u32 = 21;
    /// 3 bits: 0 = on no multi-gen list, else generation index + 1.
    pub(crate) const GEN_MASK: u32 = 7 << Self::GEN_SHIFT;
    const ORDER_SHIFT: u32 = 24;
    /// The bits kept by page.
    const HOT: u32 = 0xff;

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

    /// An access by descriptor (4.3). 1st: `referenced`; 2nd: `workingset`; later ones count up to 3 more.
    #[inline]
    pub(crate) fn inc_refs(&mut self) {
        if self.has(Self::UNEVICTABLE) {
            return;
        }
        if !self.has(Self::REFERENCED) {
            self.set(Self::REFERENCED);
        } else if !self.has(Self::WORKINGSET) {
            self.set(Self::WORKINGSET);
        } else if self.0 & Self::REFS_MASK != Self::REFS_MASK {
            self.0 += 1 << Self::REFS_SHIFT;
        }
    }

    /// Claimed by eviction and off its list: without `referenced`, refs count for nothing.
    #[inline(always)]
    pub(crate) fn isolated(mut self) -> State {
        if !self.has(Self::REFERENCED) {
            self.clear(Self::REFS_MASK | Self::WORKINGSET);
        }
        self.clear(Self::LRU | Self::REFERENCED | Self::RECLAIM | Self::GEN_MASK);
        self
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
            (State::READAHEAD, "readahead"),
        ];
        for (bit, name) in NAMES {
            if self.has(bit) {
                write!(f, "{name} ")?;
            }
        }
        write!(f, "gen={:?} refs={} order={}", self.generation(), self.refs(), self.order())
    }
}

/// One entry of the table.
#[derive(Clone, Debug)]
pub(crate) struct Folio {
    /// Flags but the low byte.
    cold: u32,
    /// First page.
    page: PageId,
    pub(crate) link: Link,
    lruvec: LruvecId,
    /// The swap slot of a swap-cache folio.
    swap: SwapSlot,
}

/// All folios.
#[derive(Clone, Debug, Default)]
pub(crate) struct FolioTable {
    pub(crate) links: Links,
    /// The low byte of the flags, by page; 0 where the page is not resident and up to date.
    pub(crate) hot: Vec<u8>,
    free: Vec<FolioId>,
}

impl FolioTable {
    /// Bytes that one entry takes.
    pub(crate) const ENTRY_BYTES: usize = size_of::<Folio>();

    fn push(&mut self, state: State) -> FolioId {
        let id = self.links.folios.len() as u32;
        self.links.folios.push(Folio {
            cold: state.0,
            page: PageId(0),
            link: Link::ALONE,
            lruvec: LruvecId(0),
            swap: SwapSlot::NONE,
        });
        FolioId(id)
    }

    #[inline(always)]
    fn at(&self, f: FolioId) -> &Folio {
        &self.links.folios[f.index()]
    }

    #[inline(always)]
    fn at_mut(&mut self, f: FolioId) -> &mut Folio {
        &mut self.links.folios[f.index()]
    }

    /// A new, empty list.
    pub(crate) fn new_list(&mut self) -> List {
        self.links.new_list()
    }

    /// Loads the oldest entries of a list into the processor's caches: their misses overlap instead of following one another. The
    /// sum keeps the loads from being optimised away.
    #[inline]
    pub(crate) fn warm_tail(&self, list: List, nr: usize) -> u64 {
        let bytes = self.links.oldest_first(list).take(nr).map(|f| self.hot[self.page(f).index()]);
        bytes.map(u64::from).sum()
    }

    /// A folio of 2^order pages from `page` on, in no state and on no list.
    #[inline]
    pub(crate) fn alloc(&mut self, page: PageId, order: u8, lruvec: LruvecId) -> FolioId {
        let f = match self.free.pop() {
            Some(f) => f,
            None => self.push(State(State::FREE)),
        };
        let entry = self.at_mut(f);
        (entry.page, entry.lruvec) = (page, lruvec);
        self.put(f, State::new(order));
        f
    }

    /// Gives the entry back. The folio must be on no list.
    #[inline]
    pub(crate) fn release(&mut self, f: FolioId) {
        self.put(f, State(State::FREE));
        self.free.push(f);
    }

    #[inline(always)]
    pub(crate) fn st(&self, f: FolioId) -> State {
        let entry = self.at(f);
        State(entry.cold | u32::from(self.hot[entry.page.index()]))
    }

    /// Replaces all flags.
    #[inline(always)]
    pub(crate) fn put(&mut self, f: FolioId, st: State) {
        let entry = self.at_mut(f);
        entry.cold = st.0 & !State::HOT;
        let page = entry.page;
        self.hot[page.index()] = st.0 as u8;
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, f: FolioId, bits: u32) {
        if bits & !State::HOT != 0 {
            self.at_mut(f).cold |= bits & !State::HOT;
        }
        if bits & State::HOT != 0 {
            let page = self.page(f);
            self.hot[page.index()] |= bits as u8;
        }
    }

    #[inline(always)]
    pub(crate) fn clear(&mut self, f: FolioId, bits: u32) {
        if bits & !State::HOT != 0 {
            self.at_mut(f).cold &= !bits | State::HOT;
        }
        if bits & State::HOT != 0 {
            let page = self.page(f);
            self.hot[page.index()] &= !(bits as u8);
        }
    }

    /// Whether the entry is a folio.
    pub(crate) fn is_used(&self, f: FolioId) -> bool {
        self.at(f).cold & (State::FREE) == 0
    }

    #[inline(always)]
    pub(crate) fn page(&self, f: FolioId) -> PageId {
        self.at(f).page
    }

    #[inline(always)]
    pub(crate) fn lruvec(&self, f: FolioId) -> LruvecId {
        self.at(f).lruvec
    }

    pub(crate) fn swap(&self, f: FolioId) -> SwapSlot {
        self.at(f).swap
    }

    pub(crate) fn set_swap(&mut self, f: FolioId, slot: SwapSlot) {
        self.at_mut(f).swap = slot;
    }

    /// Entries, free ones included.
    pub(crate) fn len(&self) -> usize {
        self.links.folios.len()
    }

    /// Bytes held, with the room that vectors keep in reserve.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.links.memory_bytes() + self.hot.capacity() + self.free.capacity() * 4
    }

    /// Folios in use.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = FolioId> + '_ {
        (0..self.links.folios.len() as u32).map(FolioId).filter(|&f| self.is_used(f))
    }

    /// Every free entry is on the free stack once.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let mut seen = vec![false; self.len()];
        for f in &self.free {
            if self.at(*f).cold & State::FREE == 0 || std::mem::replace(&mut seen[f.index()], true) {
                return Err(format!("{f:?} on the free stack is in use or there twice"));
            }
        }
        let marked = self.links.folios.iter().filter(|e| e.cold & State::FREE != 0).count();
        if marked != self.free.len() {
            return Err(format!("{marked} free entries, {} on the free stack", self.free.len()));
        }
        Ok(())
    }
}
