//! Latencies since the last sample of the time series, in few bytes: each thread has one of these.

use crate::metric::EqualLatencies;

/// Bins of each power of two: a bin is an eighth wide.
const BINS: u64 = 8;
/// Bins in all, up to the longest time that there is.
const ALL: usize = (64 * BINS) as usize;

/// How many operations took how long, to an eighth.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecentLatency {
    /// Empty until something is recorded.
    bins: Vec<u32>,
    /// Bins from this one to the highest may have operations: a sample looks at no others.
    lowest: usize,
    highest: usize,
    /// Not in the bins yet.
    latest: EqualLatencies,
}

/// Bin of a time, and the longest time in it.
fn bin(ns: u64) -> usize {
    let ns = ns.max(1);
    let power = u64::from(ns.ilog2());
    // The three digits behind the first.
    let part = if power >= 3 { ns >> (power - 3) & (BINS - 1) } else { ns << (3 - power) & (BINS - 1) };
    (power * BINS + part) as usize
}

/// The longest time in a bin.
fn longest(bin: usize) -> f64 {
    let (power, part) = (bin as u64 / BINS, bin as u64 % BINS);
    2f64.powi(power as i32) * (1.0 + (part + 1) as f64 / BINS as f64)
}

impl RecentLatency {
    #[inline]
    pub(crate) fn record(&mut self, ns: u64, count: u64) {
        if let Some((ns, count)) = self.latest.push(ns, count) {
            self.add(bin(ns), u32::try_from(count).unwrap_or(u32::MAX));
        }
    }

    fn add(&mut self, bin: usize, count: u32) {
        if self.bins.is_empty() {
            self.bins = vec![0; ALL];
            self.lowest = bin;
        }
        self.lowest = self.lowest.min(bin);
        self.highest = self.highest.max(bin);
        self.bins[bin] = self.bins[bin].saturating_add(count);
    }

    /// Has all operations in the bins.
    fn settle(&mut self) {
        if let Some((ns, count)) = std::mem::take(&mut self.latest).get() {
            self.add(bin(ns), u32::try_from(count).unwrap_or(u32::MAX));
        }
    }

    /// Adds the operations of another, which has none then.
    pub(crate) fn take(&mut self, other: &mut RecentLatency) {
        other.settle();
        if other.bins.is_empty() {
            return;
        }
        for bin in other.lowest..=other.highest {
            match std::mem::take(&mut other.bins[bin]) {
                0 => {}
                count => self.add(bin, count),
            }
        }
        (other.lowest, other.highest) = (ALL - 1, 0);
    }

    /// Times that these shares of the operations do not exceed, in nanoseconds, rounded up to a
    /// bin; none: there was no operation. No operation is left then.
    pub(crate) fn take_quantiles_ns(&mut self, shares: [f64; 2]) -> Option<[f64; 2]> {
        self.settle();
        if self.bins.is_empty() || self.lowest > self.highest {
            return None;
        }
        let bins = &mut self.bins[self.lowest..=self.highest];
        let all: u64 = bins.iter().map(|&n| u64::from(n)).sum();
        let quantiles = shares.map(|share| {
            let wanted = ((all as f64 * share).ceil() as u64).max(1);
            let mut so_far = 0;
            let at = bins.iter().position(|&n| {
                so_far += u64::from(n);
                so_far >= wanted
            });
            longest(self.lowest + at.unwrap_or(bins.len() - 1))
        });
        bins.fill(0);
        (self.lowest, self.highest) = (ALL - 1, 0);
        Some(quantiles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_an_eighth() {
        let mut all = RecentLatency::default();
        assert_eq!(all.take_quantiles_ns([0.5; 2]), None);
        for shares in [[0.5, 0.99], [0.001, 1.0]] {
            let mut other = RecentLatency::default();
            (1..=1000u64).for_each(|n| if n % 2 == 0 { all.record(n * 1000, 1) } else { other.record(n * 1000, 1) });
            all.take(&mut other);
            assert_eq!(other.take_quantiles_ns([0.5; 2]), None);
            let said = all.take_quantiles_ns(shares).unwrap_or_default();
            for (share, said) in shares.into_iter().zip(said) {
                let right = share * 1_000_000.0;
                assert!(said >= right && said <= right * 1.125 + 1.0, "{share}: {said}");
            }
            assert_eq!(all.take_quantiles_ns(shares), None, "no operation is left");
        }
        [0, 1, 3, u64::MAX].iter().for_each(|&ns| all.record(ns, u64::MAX));
        assert_eq!(all.take_quantiles_ns([0.0, 1.0]), Some([longest(0), longest(ALL - 1)]));
    }
}
