//! The flags of a folio.

/// The flags of a folio, its generation, its refs and its order, in 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FolioFlags(pub(crate) u32);

impl FolioFlags {
    // The low byte is kept by page, where a hit by descriptor finds it without knowing the folio.
    pub(crate) const UPTODATE: u32 = 1 << 0;
    pub(crate) const REFERENCED: u32 = 1 << 1;
    pub(crate) const WORKINGSET: u32 = 1 << 2;
    pub(crate) const REFS_SHIFT: u32 = 3;
    /// 2 bits: accesses by descriptor beyond `REFERENCED` and `WORKINGSET`.
    pub(crate) const REFS_MASK: u32 = 3 << Self::REFS_SHIFT;
    pub(crate) const ACTIVE: u32 = 1 << 5;
    pub(crate) const UNEVICTABLE: u32 = 1 << 6;
    /// Byte of a page of a large folio that is not the first: the byte of the first page has the
    /// flags.
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
    /// On its way to another node: locked, unmapped, on no list.
    pub(crate) const MIGRATING: u32 = 1 << 19;
    /// Read from swap ahead of need, and not needed yet.
    pub(crate) const READAHEAD: u32 = 1 << 20;

    const GEN_SHIFT: u32 = 21;
    /// 3 bits: 0 = on no multi-gen list, else generation index + 1.
    pub(crate) const GEN_MASK: u32 = 7 << Self::GEN_SHIFT;
    const ORDER_SHIFT: u32 = 24;
    /// More than one page.
    pub(crate) const LARGE: u32 = 15 << Self::ORDER_SHIFT;
    /// The bits kept by page.
    pub(crate) const HOT: u32 = 0xff;

    pub(crate) fn new(order: u8) -> Self {
        FolioFlags(u32::from(order) << Self::ORDER_SHIFT)
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

    /// The same in another order.
    pub(crate) fn of_order(self, order: u8) -> FolioFlags {
        FolioFlags(self.0 & !Self::LARGE | Self::new(order).0)
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

    /// An access by descriptor (tiers of a generation). 1st: `referenced`; 2nd: `workingset`; later
    /// ones count up to 3 more.
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

    /// A page of a file, neither anonymous nor of memory that goes to swap.
    pub(crate) fn is_file(self) -> bool {
        !self.has(Self::ANON | Self::SWAPBACKED)
    }

    /// Accesses by descriptor beyond the first, 0 to 4.
    #[inline(always)]
    pub(crate) fn refs(self) -> u32 {
        ((self.0 & Self::REFS_MASK) >> Self::REFS_SHIFT) + u32::from(self.has(Self::WORKINGSET))
    }
}

impl std::fmt::Debug for FolioFlags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const NAMES: [(u32, &str); 18] = [
            (FolioFlags::LOCKED, "locked"),
            (FolioFlags::UPTODATE, "uptodate"),
            (FolioFlags::DIRTY, "dirty"),
            (FolioFlags::WRITEBACK, "writeback"),
            (FolioFlags::LRU, "lru"),
            (FolioFlags::REFERENCED, "referenced"),
            (FolioFlags::ACTIVE, "active"),
            (FolioFlags::WORKINGSET, "workingset"),
            (FolioFlags::RECLAIM, "reclaim"),
            (FolioFlags::SWAPBACKED, "swapbacked"),
            (FolioFlags::SWAPCACHE, "swapcache"),
            (FolioFlags::UNEVICTABLE, "unevictable"),
            (FolioFlags::MAPPED, "mapped"),
            (FolioFlags::EXEC, "exec"),
            (FolioFlags::ANON, "anon"),
            (FolioFlags::ADDING, "adding"),
            (FolioFlags::READAHEAD, "readahead"),
            (FolioFlags::MIGRATING, "migrating"),
        ];
        for (bit, name) in NAMES {
            if self.has(bit) {
                write!(f, "{name} ")?;
            }
        }
        write!(f, "gen={:?} refs={} order={}", self.generation(), self.refs(), self.order())
    }
}
