//! Shadow entries: what stays in the slot of an evicted page, packed into 63 bits.
//!
//! From low to high: workingset (1), node (`nodes_shift`), memcg (16), eviction time (the rest).
//! Multi-gen LRU keeps its generation and refs in the place of the time, and under RFC v3 a shorter
//! time below them.

use crate::config::shadow::ShadowConfig;
use crate::ids::{MemcgId, NodeId};

/// Width of a memcg id.
const MEMCG_BITS: u32 = 16;
/// Width of refs in a multi-gen token.
pub(crate) const REFS_BITS: u32 = 2;
/// Width of the generation that RFC v3 leaves in a token.
pub(crate) const GEN_BITS: u32 = 3;

/// A shadow, unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shadow {
    pub(crate) workingset: bool,
    pub(crate) nid: NodeId,
    pub(crate) memcg: MemcgId,
    /// Bucketed clock of the two lists, or the token of multi-gen LRU.
    pub(crate) eviction: u64,
}

/// Widths of the fields, and the granularity that makes the clock fit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    nodes_shift: u32,
    nodes_mask: u64,
    /// Where the time is, and which of its bits are kept.
    eviction_shift: u32,
    eviction_mask: u64,
    pub(crate) eviction_bits: u32,
    pub(crate) bucket_order: u32,
    /// Width of the clock below an RFC v3 token.
    pub(crate) gen_eviction_bits: u32,
    pub(crate) gen_bucket_order: u32,
}

/// Index of the highest set bit, counting from 1; 0 for 0.
pub(crate) fn fls(x: u64) -> u32 {
    64 - x.leading_zeros()
}

impl Layout {
    pub(crate) fn new(cfg: &ShadowConfig, total_pages: u64) -> Layout {
        // One bit says workingset, one tells a value from a folio.
        let eviction_bits = (64 - 1 - 1 - cfg.nodes_shift - MEMCG_BITS).min(cfg.eviction_bits_max);
        let gen_eviction_bits = eviction_bits - REFS_BITS - GEN_BITS;
        let max_order = fls(total_pages.saturating_sub(1));
        Layout {
            nodes_shift: cfg.nodes_shift,
            nodes_mask: mask(cfg.nodes_shift),
            eviction_shift: MEMCG_BITS + cfg.nodes_shift + 1,
            eviction_mask: mask(eviction_bits),
            eviction_bits,
            bucket_order: max_order.saturating_sub(eviction_bits),
            gen_eviction_bits,
            gen_bucket_order: max_order.saturating_sub(gen_eviction_bits),
        }
    }

    /// The part of a shadow that is the same for all folios of a batch.
    #[inline]
    pub(crate) fn pack_owner(&self, nid: NodeId, memcg: MemcgId) -> u64 {
        (u64::from(memcg.0) << self.nodes_shift | u64::from(nid.0)) << 1
    }

    /// A whole shadow: `owner` from [`Layout::pack_owner`], and the parts that differ by folio.
    #[inline(always)]
    pub(crate) fn pack_with(&self, owner: u64, eviction: u64, workingset: bool) -> u64 {
        (eviction & self.eviction_mask) << self.eviction_shift | owner | u64::from(workingset)
    }

    #[inline(always)]
    pub(crate) fn unpack(&self, v: u64) -> Shadow {
        Shadow {
            workingset: v & 1 == 1,
            nid: NodeId((v >> 1 & self.nodes_mask) as u8),
            memcg: MemcgId((v >> 1 >> self.nodes_shift) as u16),
            eviction: v >> self.eviction_shift,
        }
    }

    /// The stamp for a clock: coarsened to buckets, cut to `bits`.
    #[inline]
    pub(crate) fn stamp(age: u64, bits: u32, bucket_order: u32) -> u64 {
        (age >> bucket_order) & mask(bits)
    }

    /// Bits of a generation's number that a token keeps.
    #[inline(always)]
    pub(crate) fn seq_mask(&self) -> u64 {
        self.eviction_mask >> REFS_BITS
    }

    /// How far the clock of two lists went since a stamp, see [`Layout::distance`].
    #[inline(always)]
    pub(crate) fn list_distance(&self, age: u64, stamp: u64) -> u64 {
        ((age >> self.bucket_order).wrapping_sub(stamp) & self.eviction_mask) << self.bucket_order
    }

    /// How far the clock went since a stamp, modulo its width.
    #[inline]
    pub(crate) fn distance(age: u64, stamp: u64, bits: u32, bucket_order: u32) -> u64 {
        ((age >> bucket_order).wrapping_sub(stamp) & mask(bits)) << bucket_order
    }
}

/// The low `bits` bits.
#[inline]
pub(crate) fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(total_pages: u64, eviction_bits_max: u32) -> Layout {
        Layout::new(&ShadowConfig { eviction_bits_max, ..ShadowConfig::default() }, total_pages)
    }

    #[test]
    fn widths_are_those_of_a_64_bit_kernel() {
        let l = layout(1 << 22, 64);
        assert_eq!((l.eviction_bits, l.bucket_order), (36, 0));
        assert_eq!((l.gen_eviction_bits, l.gen_bucket_order), (31, 0));
        // 2^40 pages do not fit 36 bits: buckets of 16.
        assert_eq!(layout(1 << 40, 64).bucket_order, 4);
    }

    #[test]
    fn packs_and_unpacks_every_field() {
        for bits in [8, 12, 36] {
            let l = layout(1 << 22, bits);
            for (workingset, node, memcg, eviction) in
                [(true, 0, 0xffff, 0), (false, 255, 0, mask(bits)), (true, 5, 77, 0xa5 & mask(bits))]
            {
                let s = Shadow { workingset, nid: NodeId(node), memcg: MemcgId(memcg), eviction };
                let packed = l.pack_with(l.pack_owner(s.nid, s.memcg), eviction, workingset);
                assert!(packed < 1 << 63);
                assert_eq!(l.unpack(packed), s);
            }
        }
    }

    /// I3.3: with stamp s and age s + 2^bits + k the measured distance is k.
    #[test]
    fn distance_wraps() {
        let l = layout(1 << 22, 12);
        assert_eq!(l.bucket_order, 10);
        for age in [0u64, 4096 << 10, 123_456 << 10] {
            let stamp = Layout::stamp(age, l.eviction_bits, l.bucket_order);
            for k in [0u64, 1, 4095] {
                let later = age + ((4096 + k) << 10);
                assert_eq!(Layout::distance(later, stamp, 12, 10), k << 10);
                assert_eq!(l.list_distance(later, stamp), k << 10);
            }
        }
    }

    #[test]
    fn buckets_round_the_distance_down_to_their_size() {
        let l = layout(1 << 22, 12);
        let stamp = Layout::stamp(5 << 10, l.eviction_bits, l.bucket_order);
        assert_eq!(Layout::distance((7 << 10) + 1023, stamp, 12, l.bucket_order), 2 << 10);
    }
}
