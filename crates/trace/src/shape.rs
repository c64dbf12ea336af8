//! How close together the pages of a trace lie: how many there are to a tree node, nodes to a page
//! table, and so on. By distinct counts that take little memory whatever the trace.

use crate::record::ObjectKind;
use rustc_hash::FxHashSet;

/// log2 of the pages of what is counted: a page, a tree node, a page table, and the nodes above.
const SHIFTS: [u32; 8] = [0, 6, 9, 12, 18, 24, 30, 36];

/// Hashes that a counter keeps; up to that many distinct hashes it is exact.
const MOST_KEPT: usize = 1 << 16;

/// Pages and nodes that were counted lately, by hash.
const RECENT: usize = 1 << 13;

/// Hash of two numbers; all of its bits are good.
#[inline]
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    let mut h = a.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ b.wrapping_add(0x6a09_e667_f3bc_c909);
    h = (h ^ (h >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    h = (h ^ (h >> 29)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    h ^ (h >> 32)
}

/// Number of distinct hashes. Only hashes up to a bound are kept; the bound is halved when they are
/// too many.
#[derive(Clone, Debug, Default)]
struct Distinct {
    kept: FxHashSet<u64>,
    halvings: u32,
}

impl Distinct {
    #[inline]
    fn note(&mut self, hash: u64) {
        if hash <= u64::MAX >> self.halvings && self.kept.insert(hash) && self.kept.len() > MOST_KEPT {
            self.halvings += 1;
            let bound = u64::MAX >> self.halvings;
            self.kept.retain(|&hash| hash <= bound);
        }
    }

    fn count(&self) -> u64 {
        (self.kept.len() as u64) << self.halvings
    }
}

/// log2 of the bits in which distinct pages are counted.
const PAGE_BITS: u32 = 27;

/// Number of distinct pages, within a hundredth of a percent. Each hash sets a bit, and the share
/// of bits that are set tells how many hashes share one.
#[derive(Clone, Debug)]
struct PageCount {
    words: Vec<u64>,
    set: u64,
}

impl PageCount {
    #[inline]
    fn note(&mut self, hash: u64) {
        let bit = hash >> (64 - PAGE_BITS);
        let (word, mask) = (&mut self.words[(bit >> 6) as usize], 1 << (bit & 63));
        self.set += u64::from(*word & mask == 0);
        *word |= mask;
    }

    fn count(&self) -> u64 {
        let bits = (1u64 << PAGE_BITS) as f64;
        let free = 1.0 - self.set as f64 / bits;
        // All bits are set by more pages than a trace may have.
        (-bits * libm::log(free.max(1.0 / bits))).round() as u64
    }
}

/// The counts of one kind of memory.
#[derive(Clone, Debug, Default)]
struct Counts([Distinct; SHIFTS.len()]);

/// The shape of a trace.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pages: PageCount,
    files: Counts,
    anon: Counts,
    /// The last page, and the last node, of each place: what comes again at once is counted.
    recent: [Vec<u64>; 2],
}

impl Default for Shape {
    fn default() -> Shape {
        let pages = PageCount { words: vec![0; 1 << (PAGE_BITS - 6)], set: 0 };
        let recent = [vec![0; RECENT], vec![0; RECENT]];
        Shape { pages, files: Counts::default(), anon: Counts::default(), recent }
    }
}

impl Shape {
    /// A page was touched.
    #[inline]
    pub(crate) fn note(&mut self, kind: ObjectKind, object: u32, page: u64) {
        let hash = mix(u64::from(object), page);
        let recent = &mut self.recent[0][hash as usize % RECENT];
        if std::mem::replace(recent, hash) != hash {
            self.count(kind, object, page, hash);
        }
    }

    fn count(&mut self, kind: ObjectKind, object: u32, page: u64, hash: u64) {
        let counts = match kind {
            ObjectKind::File => &mut self.files,
            ObjectKind::Anon => &mut self.anon,
        };
        self.pages.note(hash);
        counts.0[0].note(hash);
        let at = |shift: u32| mix(u64::from(object), page >> shift);
        let node = at(SHIFTS[1]);
        let recent = &mut self.recent[1][node as usize % RECENT];
        if std::mem::replace(recent, node) != node {
            counts.0[1].note(node);
            SHIFTS.iter().zip(&mut counts.0).skip(2).for_each(|(&shift, count)| count.note(at(shift)));
        }
    }

    /// Distinct pages.
    pub(crate) fn pages(&self) -> u64 {
        self.pages.count()
    }

    /// Where units of 2^shift pages go that are a sample of a kind of memory.
    pub(crate) fn layout(&self, kind: ObjectKind, shift: u32) -> Layout {
        let counts = match kind {
            ObjectKind::File => &self.files,
            ObjectKind::Anon => &self.anon,
        };
        let levels = SHIFTS.windows(2).zip(counts.0.windows(2)).skip_while(|(shifts, _)| shifts[0] < shift);
        Layout(levels.map(|(shifts, counts)| TreeLevel::new(shifts, counts[0].count(), counts[1].count())).collect())
    }
}

/// Numbers of children and of nodes in a level, on average; a node has room for 2^bits children.
#[derive(Clone, Copy, Debug)]
struct TreeLevel {
    children: u64,
    nodes: u64,
    bits: u32,
}

impl TreeLevel {
    fn new(shifts: &[u32], children: u64, nodes: u64) -> TreeLevel {
        let bits = shifts[1] - shifts[0];
        // Estimates may be off by a little.
        let nodes = nodes.clamp(children.div_ceil(1 << bits).max(1), children.max(1));
        TreeLevel { children: children.max(1), nodes, bits }
    }
}

/// Places of units, level by level: nodes are as full as they are on average.
#[derive(Clone, Debug)]
pub(crate) struct Layout(Vec<TreeLevel>);

impl Layout {
    /// The place of the unit of that rank.
    pub(crate) fn index(&self, rank: u64) -> u64 {
        let (mut n, mut index, mut shift) = (u128::from(rank), 0, 0);
        for level in &self.0 {
            let (children, nodes) = (u128::from(level.children), u128::from(level.nodes));
            let node = n * nodes / children;
            let first = (node * children).div_ceil(nodes);
            index |= ((n - first) as u64) << shift;
            shift += level.bits;
            n = node;
        }
        index | (n as u64) << shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_are_counted_within_a_hundredth() {
        let mut distinct = Distinct::default();
        for n in 0..60_000 {
            distinct.note(mix(1, n));
            distinct.note(mix(1, n / 2));
        }
        assert_eq!(distinct.count(), 60_000);
        (0..3_000_000).for_each(|n| distinct.note(mix(1, n)));
        assert!((2_970_000..3_030_000).contains(&distinct.count()), "{}", distinct.count());
    }

    #[test]
    fn pages_are_counted_nearly_exactly() {
        for n in [1, 1000, 60_000, 3_000_000] {
            let mut shape = Shape::default();
            (0..n).for_each(|page| shape.note(ObjectKind::Anon, 7, page));
            let is = shape.pages();
            assert!(is.abs_diff(n) <= n / 10_000, "{is} for {n}");
        }
    }

    #[test]
    fn places_ascend_and_fill_nodes_as_they_were() {
        for stride in [1u64, 3, 10, 64, 100, 1000] {
            let mut shape = Shape::default();
            (0..20_000).for_each(|n| shape.note(ObjectKind::File, 0, n * stride));
            let layout = shape.layout(ObjectKind::File, 0);
            let places: Vec<_> = (0..20_000).map(|rank| layout.index(rank)).collect();
            assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "stride {stride}");
            for shift in [6, 9, 12] {
                let nodes = |place: &dyn Fn(u64) -> u64| {
                    let mut nodes: Vec<_> = (0..20_000).map(|n| place(n) >> shift).collect();
                    nodes.dedup();
                    nodes.len() as f64
                };
                let (is, was) = (nodes(&|n| places[n as usize]), nodes(&|n| n * stride));
                assert!((is / was - 1.0).abs() < 0.02, "stride {stride}, 2^{shift}: {is} for {was}");
            }
        }
    }
}
