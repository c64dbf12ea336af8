//! One field of all records: what is kept of it to judge its unit.

use rustc_hash::FxHashSet;

/// Distinct numbers that it takes for a judgement: of as few as these, none is a multiple of 8 by
/// chance.
pub(super) const LEAST: usize = 16;

/// Distinct numbers that are kept.
const KEPT: usize = 1024;

/// Numbers of one field, in the order of the trace.
#[derive(Debug, Default)]
pub(crate) struct Column {
    seen: u64,
    distinct: FxHashSet<u64>,
    /// All numbers, or-ed: a bit that is 0 is 0 in every number.
    bits: u64,
    first: u64,
    last: u64,
    least: u64,
    most: u64,
    goes_down: bool,
    /// Numbers that are no multiples of 512.
    odd: u64,
    /// Numbers that are multiples of 4096.
    whole_pages: u64,
    /// Numbers below 64 KiB.
    low: u64,
    /// Numbers below 8, and multiples of it.
    few: u64,
    eighths: u64,
    /// Numbers other than 0 at even and at odd places.
    by_place: [u64; 2],
}

impl Column {
    pub(super) fn add(&mut self, n: u64) {
        if self.seen == 0 {
            (self.first, self.last, self.least) = (n, n, n);
        }
        // The last one that was seen needs no look into the set.
        if self.distinct.len() < KEPT && (n != self.last || self.seen == 0) {
            self.distinct.insert(n);
        }
        self.bits |= n;
        self.goes_down |= n < self.last;
        self.least = self.least.min(n);
        self.most = self.most.max(n);
        self.odd += u64::from(!n.is_multiple_of(512));
        self.whole_pages += u64::from(n.is_multiple_of(4096));
        self.low += u64::from(n < 1 << 16);
        self.few += u64::from(n < 8);
        self.eighths += u64::from(n.is_multiple_of(8));
        self.by_place[(self.seen % 2) as usize] += u64::from(n != 0);
        self.last = n;
        self.seen += 1;
    }

    pub(super) fn seen(&self) -> u64 {
        self.seen
    }

    pub(super) fn distinct(&self) -> usize {
        self.distinct.len()
    }

    /// Whether there is enough to judge by.
    pub(super) fn is_enough(&self) -> bool {
        self.distinct.len() >= LEAST
    }

    pub(super) fn first(&self) -> u64 {
        self.first
    }

    pub(super) fn least(&self) -> u64 {
        self.least
    }

    pub(super) fn most(&self) -> u64 {
        self.most
    }

    /// Numbers below 8, in percent.
    pub(super) fn few(&self) -> u64 {
        100 * self.few / self.seen.max(1)
    }

    /// Multiples of 8, in percent.
    pub(super) fn eighths(&self) -> u64 {
        100 * self.eighths / self.seen.max(1)
    }

    /// The largest power of two that divides all; 64 bits of zeros have none.
    pub(super) fn multiple_of(&self) -> u64 {
        if self.bits == 0 { 1 } else { 1 << self.bits.trailing_zeros() }
    }

    pub(super) fn goes_down(&self) -> bool {
        self.goes_down
    }

    pub(super) fn is_constant(&self) -> bool {
        self.distinct.len() < 2
    }

    /// In percent.
    pub(super) fn odd(&self) -> u64 {
        100 * self.odd / self.seen.max(1)
    }

    /// In percent.
    pub(super) fn whole_pages(&self) -> u64 {
        100 * self.whole_pages / self.seen.max(1)
    }

    /// In percent.
    pub(super) fn low(&self) -> u64 {
        100 * self.low / self.seen.max(1)
    }

    /// The share of the commonest remainder by 8 among the distinct ones, in percent.
    pub(super) fn aligned(&self) -> usize {
        let mut residues = [0; 8];
        self.distinct.iter().for_each(|n| residues[(n % 8) as usize] += 1);
        100 * residues.into_iter().max().unwrap_or(0) / self.distinct.len().max(1)
    }

    /// Number of different values of the lowest byte, and of the byte at `highest`, among the
    /// distinct numbers.
    pub(super) fn bytes(&self, highest: u32) -> [usize; 2] {
        [0, 8 * highest].map(|shift| self.distinct.iter().map(|n| (n >> shift) as u8).collect::<FxHashSet<_>>().len())
    }

    /// Whether every other number is 0.
    pub(super) fn alternates_with_zero(&self) -> bool {
        let [even, odd] = self.by_place;
        (even == 0) != (odd == 0)
    }
}
