//! Identifiers. Each is a number of its own type, so that a page cannot be taken for a folio.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $int:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub $int);

        impl $name {
            /// The number as an index.
            #[inline(always)]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// One page of one mapping. Ids are dense: the pages of a mapping are numbered in the order of
    /// their index in it, mapping after mapping, when the mapping is registered.
    PageId, u32
);
id!(
    /// One folio of the folio table: 2^order pages that are resident together.
    FolioId, u32
);
id!(
    /// One address space: a file, or an anonymous region.
    MappingId, u32
);
id!(
    /// One memory cgroup. 0 is the root. 16 bits, as in a shadow entry.
    MemcgId, u16
);
id!(
    /// One memory node, from 0.
    NodeId, u8
);
id!(
    /// One lruvec: the lists of one (memcg, node). The lruvecs of a memcg follow one another, by
    /// node.
    LruvecId, u32
);
id!(
    /// One 64-slot node of a mapping.
    XaNodeId, u32
);
id!(
    /// One slot: the number of the swap device in the high bits, the page on it below. Page 0 is
    /// the header and never handed out, so 0 means none.
    SwapSlot, u32
);

impl MemcgId {
    /// The root of the tree. It has no limit.
    pub const ROOT: MemcgId = MemcgId(0);
}

impl LruvecId {
    /// The memcg's lruvec on a node, where `self` is its first one.
    #[inline(always)]
    pub(crate) fn on(self, nid: NodeId) -> LruvecId {
        LruvecId(self.0 + u32::from(nid.0))
    }
}

impl SwapSlot {
    /// No slot.
    pub const NONE: SwapSlot = SwapSlot(0);

    /// Bits of the page on the device.
    pub const OFFSET_BITS: u32 = 28;

    /// A slot of a device.
    pub fn new(device: u8, offset: u32) -> SwapSlot {
        debug_assert!(offset >> Self::OFFSET_BITS == 0);
        SwapSlot(u32::from(device) << Self::OFFSET_BITS | offset)
    }

    /// The number of the device.
    #[inline(always)]
    pub fn device(self) -> u8 {
        (self.0 >> Self::OFFSET_BITS) as u8
    }

    /// The page on the device.
    #[inline(always)]
    pub fn offset(self) -> u32 {
        self.0 & ((1 << Self::OFFSET_BITS) - 1)
    }

    /// The n-th slot after this one.
    #[inline(always)]
    pub fn nth(self, n: u32) -> SwapSlot {
        SwapSlot(self.0 + n)
    }
}

/// Any zone may serve an allocation.
pub(crate) const ANY_ZONE: usize = MAX_NR_ZONES - 1;

/// Memory nodes at most.
pub(crate) const MAX_NUMNODES: usize = 16;

/// DMA, DMA32, Normal.
pub(crate) const MAX_NR_ZONES: usize = 3;

/// A zone of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ZoneId(u8);

impl ZoneId {
    const ZONE_BITS: u32 = 2;

    /// The zone of a node, by its place from the lowest.
    pub(crate) fn new(node: NodeId, zone: usize) -> ZoneId {
        ZoneId(node.0 << Self::ZONE_BITS | zone as u8)
    }

    /// The node of the zone.
    #[inline(always)]
    pub(crate) fn nid(self) -> NodeId {
        NodeId(self.0 >> Self::ZONE_BITS)
    }

    /// Its place among the zones of the node.
    #[inline(always)]
    pub(crate) fn zone(self) -> usize {
        usize::from(self.0 & ((1 << Self::ZONE_BITS) - 1))
    }
}

/// The largest order of a folio: 2^9 pages are 2 MiB.
pub const MAX_ORDER: u8 = 9;
