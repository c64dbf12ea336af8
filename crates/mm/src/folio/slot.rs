//! The slot of a page: what stands in it, and the 12 bytes that hold it.
//!
//! An entry holds a value (a shadow in a file, a swap entry in anonymous memory), nothing, or the
//! page's folio itself: its flags, list and place need no more room than a shadow does.

use crate::folio::flags::FolioFlags;
use crate::ids::{FolioId, PageId, XaNodeId};

/// A slot: empty, a folio, or a value of 63 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Slot(u64);

impl Slot {
    pub(crate) const EMPTY: Slot = Slot(0);

    #[inline(always)]
    pub(crate) fn resident(f: FolioId) -> Slot {
        Slot((u64::from(f.0) + 1) << 1)
    }

    #[inline(always)]
    pub(crate) fn value(v: u64) -> Slot {
        Slot(v << 1 | 1)
    }

    #[inline(always)]
    pub(crate) fn folio(self) -> Option<FolioId> {
        if self.0 & 1 == 0 && self.0 != 0 { Some(FolioId((self.0 >> 1) as u32 - 1)) } else { None }
    }

    #[inline(always)]
    pub(crate) fn as_value(self) -> Option<u64> {
        (self.0 & 1 == 1).then_some(self.0 >> 1)
    }

    #[inline(always)]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

const OFFSET_BITS: u32 = 6;
/// Leaf nodes at most.
pub(crate) const MAX_NODES: usize = 1 << (32 - OFFSET_BITS);

/// Where a page is: leaf node << 6 | offset in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Location(u32);

impl Location {
    pub(crate) fn new(node: usize, offset: u64) -> Location {
        Location((node as u32) << OFFSET_BITS | (offset & 63) as u32)
    }

    #[inline(always)]
    pub(crate) fn node(self) -> XaNodeId {
        XaNodeId(self.0 >> OFFSET_BITS)
    }

    #[inline(always)]
    pub(crate) fn offset(self) -> u64 {
        u64::from(self.0 & 63)
    }
}

/// Position of a folio: the list, by its number among the lists of its lruvec, and the place on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) list: u32,
    /// Position on the list, modulo 2^32, from an arbitrary start.
    pub(crate) place: u32,
}

/// A change of the flags and the list of a folio, ready for [`Entry::change`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    keep_head: u32,
    set_head: u32,
    keep_byte: u8,
    set_byte: u8,
}

impl Change {
    /// Keeps the flags `keep` and adds the flags `set`; the list is that of `link`.
    pub(crate) fn new(keep: u32, set: u32, link: Link) -> Change {
        let list = (link.list & 15) << Entry::LIST_SHIFT | link.list >> 4 << Entry::LIST_HIGH;
        Change {
            keep_head: (keep | Entry::OWN) & !Entry::LIST_MASK,
            set_head: set & !Entry::OWN | list,
            keep_byte: keep as u8,
            set_byte: set as u8,
        }
    }

    /// The low byte of the flags, which lies apart from the entry, after the change.
    #[inline(always)]
    pub(crate) fn of_byte(self, byte: u8) -> u8 {
        byte & self.keep_byte | self.set_byte
    }
}

/// Slot of a page and its tree location: 12 bytes without padding, usually within one cache line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The low half of a value, with bit 0 set; or the flags of a folio, with the bits below in the
    /// place of their low byte.
    head: u32,
    /// The high half of a value; or the place of a folio; or the first page of the folio, in the
    /// other pages of a large one.
    tail: u32,
    pub(crate) location: Location,
}

impl Entry {
    const VALUE: u32 = 1;
    const FOLIO: u32 = 1 << 1;
    const LIST_SHIFT: u32 = 2;
    /// Bits of the number of the list: four, and the highest bit of the flags, which no flag uses.
    const LIST_MASK: u32 = 15 << Self::LIST_SHIFT | 1 << Self::LIST_HIGH;
    const LIST_HIGH: u32 = 31;
    /// Bits of the head that are no flags.
    const OWN: u32 = FolioFlags::HOT | 1 << Self::LIST_HIGH;
    /// Set if the page has a folio but its slot holds a swap entry (with `PART`: nothing).
    const APART: u32 = 1 << 6;
    /// A page of a large folio that is not its first.
    const PART: u32 = 1 << 7;

    pub(crate) fn new(location: Location) -> Entry {
        Entry { head: 0, tail: 0, location }
    }

    /// A number that depends on both ends of the entry, to load both: it may lie on two cache
    /// lines.
    #[inline(always)]
    pub(crate) fn touch(&self) -> u64 {
        u64::from(self.head) + u64::from(self.location.0)
    }

    /// Whether a folio has the number of this page.
    #[inline(always)]
    pub(crate) fn is_folio(&self) -> bool {
        self.head & (Self::VALUE | Self::FOLIO) == Self::FOLIO && self.head & (Self::APART | Self::PART) != Self::PART
    }

    /// The content of the slot, a value or nothing, if no folio has the number of this page.
    #[inline(always)]
    pub(crate) fn vacant(&self) -> Option<Slot> {
        self.is_vacant().then_some(Slot(u64::from(self.tail) << 32 | u64::from(self.head)))
    }

    /// Whether nothing is in the slot.
    #[inline(always)]
    pub(crate) fn is_vacant(&self) -> bool {
        self.head & Self::VALUE != 0 || self.head == 0
    }

    /// Whether a folio has the number of this page, and the slot holds the folio.
    #[inline(always)]
    pub(crate) fn is_attached(&self) -> bool {
        self.head & (Self::VALUE | Self::FOLIO | Self::APART | Self::PART) == Self::FOLIO
    }

    /// The content of the slot, if that is not the folio of its page; none: its swap entry.
    pub(crate) fn apart(&self) -> Option<Slot> {
        if let Some(slot) = self.vacant() {
            return Some(slot);
        }
        match self.head & (Self::APART | Self::PART) {
            Self::PART => Some(Slot::resident(FolioId(self.tail))),
            Self::APART => None,
            _ => Some(Slot::EMPTY),
        }
    }

    #[inline(always)]
    pub(crate) fn make_folio(&mut self, st: FolioFlags) {
        self.head = st.0 & !Self::OWN | Self::FOLIO | Self::LIST_MASK;
        self.tail = 0;
    }

    /// The flags of a folio, whose low byte is `byte`.
    #[inline(always)]
    pub(crate) fn state(&self, byte: u8) -> FolioFlags {
        FolioFlags(self.cold() | u32::from(byte))
    }

    /// The flags of a folio without the low byte.
    #[inline(always)]
    pub(crate) fn cold(&self) -> u32 {
        self.head & !Self::OWN
    }

    #[inline(always)]
    pub(crate) fn set_cold(&mut self, st: FolioFlags) {
        self.head = st.0 & !Self::OWN | self.head & Self::OWN;
    }

    /// Flags and place at once.
    #[inline(always)]
    pub(crate) fn set_cold_and_link(&mut self, st: FolioFlags, link: Link) {
        self.set_cold(st);
        self.set_link(link);
    }

    #[inline(always)]
    pub(crate) fn link(&self) -> Link {
        let high = self.head >> Self::LIST_HIGH << 4;
        Link { list: (self.head >> Self::LIST_SHIFT & 15) | high, place: self.tail }
    }

    #[inline(always)]
    pub(crate) fn set_link(&mut self, link: Link) {
        let bits = (link.list & 15) << Self::LIST_SHIFT | link.list >> 4 << Self::LIST_HIGH;
        self.head = self.head & !Self::LIST_MASK | bits;
        self.tail = link.place;
    }

    #[inline(always)]
    pub(crate) fn set_place(&mut self, place: u32) {
        self.tail = place;
    }

    /// The flags and the list that `change` says, and a place.
    #[inline(always)]
    pub(crate) fn change(&mut self, change: Change, place: u32) {
        self.head = self.head & change.keep_head | change.set_head;
        self.tail = place;
    }

    /// A value or nothing, whatever was there.
    #[inline(always)]
    pub(crate) fn put(&mut self, new: Slot) {
        (self.head, self.tail) = (new.0 as u32, (new.0 >> 32) as u32);
    }

    /// Stores into the slot of `page`; its folio stays.
    pub(crate) fn store(&mut self, page: PageId, new: Slot) {
        if self.is_folio() {
            self.head &= !(Self::APART | Self::PART);
            self.head |= match (new.folio(), new.is_empty()) {
                (Some(_), _) => 0,
                (None, true) => Self::APART | Self::PART,
                (None, false) => Self::APART,
            };
            return;
        }
        match new.folio() {
            Some(f) if f.0 != page.0 => (self.head, self.tail) = (Self::FOLIO | Self::PART, f.0),
            _ => self.put(new),
        }
    }
}
