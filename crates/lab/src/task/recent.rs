//! Latencies since the last sample of the time series, in few bytes: each thread has one of these.

/// Bins of each power of two: a bin is an eighth wide.
const BINS: u64 = 8;
/// Bins in all, up to the longest time that there is.
const ALL: usize = (64 * BINS) as usize;

/// How many operations took how long, to an eighth.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecentLatency {
    /// Empty until something is recorded.
    bins: Vec<u32>,
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
    pub(crate) fn record(&mut self, ns: u64, count: u64) {
        if self.bins.is_empty() {
            self.bins = vec![0; ALL];
        }
        let one = &mut self.bins[bin(ns)];
        *one = one.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// Adds what another has, which is empty then.
    pub(crate) fn take(&mut self, other: &mut RecentLatency) {
        if other.bins.is_empty() {
            return;
        }
        if self.bins.is_empty() {
            self.bins = vec![0; ALL];
        }
        for (mine, theirs) in self.bins.iter_mut().zip(&mut other.bins) {
            *mine = mine.saturating_add(std::mem::take(theirs));
        }
    }

    /// Time that this share of the operations does not exceed, in nanoseconds, rounded up to a bin;
    /// none: there was no operation.
    pub(crate) fn quantile_ns(&self, share: f64) -> Option<f64> {
        let all: u64 = self.bins.iter().map(|&n| u64::from(n)).sum();
        let wanted = ((all as f64 * share).ceil() as u64).max(1);
        let mut so_far = 0;
        let at = self.bins.iter().position(|&n| {
            so_far += u64::from(n);
            so_far >= wanted
        })?;
        Some(longest(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_an_eighth() {
        let mut all = RecentLatency::default();
        assert_eq!(all.quantile_ns(0.5), None);
        let mut other = RecentLatency::default();
        (1..=1000u64).for_each(|n| if n % 2 == 0 { all.record(n * 1000, 1) } else { other.record(n * 1000, 1) });
        all.take(&mut other);
        assert_eq!(other.quantile_ns(0.5), None);
        for (share, right) in [(0.5, 500_000.0), (0.99, 990_000.0), (0.001, 1000.0), (1.0, 1_000_000.0)] {
            let said = all.quantile_ns(share).unwrap_or(0.0);
            assert!(said >= right && said <= right * 1.125 + 1.0, "{share}: {said}");
        }
        [0, 1, 3, u64::MAX].iter().for_each(|&ns| all.record(ns, u64::MAX));
    }
}
