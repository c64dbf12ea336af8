//! `memory.high` and `memory.swap.high`: how far usage is beyond them, and how long that makes a
//! task sleep.

use crate::ids::MemcgId;
use crate::memcg::group::{Memcg, Memcgs};

/// Ticks a second that delays are counted in.
const HZ: u64 = 1000;
/// The longest delay, and the longest that is not worth it, in ticks.
const MAX_DELAY: u64 = 2 * HZ;
const IGNORED_DELAY: u64 = HZ / 100;
/// An overage is in units of 2^-20 of the bound; its square loses 14 bits more.
const PRECISION_SHIFT: u32 = 20;
const SCALING_SHIFT: u32 = 14;
/// Pages charged for which a task sleeps one delay; more or fewer pages in proportion.
const DELAY_BATCH: u64 = 64;

/// Excess of usage over the bound `high`, as a share of the bound in units of 2^-20.
fn overage(usage: u64, high: u64) -> u64 {
    if usage <= high {
        return 0;
    }
    let of = u128::from(high.max(1));
    (((u128::from(usage) - u128::from(high)) << PRECISION_SHIFT) / of).min(u128::from(u64::MAX)) as u64
}

/// Ticks that a task sleeps for `nr` pages charged: they grow with the square of the overage.
fn delay_ticks(overage: u64, nr: u64) -> u64 {
    let square = u128::from(overage) * u128::from(overage);
    let per_batch = square.saturating_mul(u128::from(HZ)) >> (PRECISION_SHIFT + SCALING_SHIFT);
    (per_batch.saturating_mul(u128::from(nr)) / u128::from(DELAY_BATCH)).min(u128::from(u64::MAX)) as u64
}

impl Memcgs {
    /// `nr` pages were charged: if that is beyond the `high` of the group or of one above, the call
    /// under way will answer for it.
    #[inline(always)]
    pub(crate) fn note_high(&mut self, id: MemcgId, nr: u64) {
        if self.any_high {
            self.note_high_slow(id, nr);
        }
    }

    #[cold]
    fn note_high_slow(&mut self, id: MemcgId, nr: u64) {
        let over = |m: &Memcg| m.usage > m.high || m.swap_usage > m.swap_high;
        if self.chain(id).any(|m| over(self.get(m))) {
            let before = self.over_high.map_or(0, |(_, nr)| nr);
            self.over_high = Some((id, before + nr));
        }
    }

    /// Nanoseconds that a task sleeps after it charged `nr` pages to a group: by the largest
    /// overage of the group and its ancestors, of memory and of swap.
    pub(crate) fn high_delay_ns(&self, id: MemcgId, nr: u64) -> u64 {
        let largest = |of: fn(&Memcg) -> u64| self.chain(id).map(|m| of(self.get(m))).max().unwrap_or(0);
        let memory = delay_ticks(largest(|m| overage(m.usage, m.high)), nr);
        let swap = delay_ticks(largest(|m| overage(m.swap_usage, m.swap_high)), nr);
        let ticks = memory.saturating_add(swap).min(MAX_DELAY);
        if ticks <= IGNORED_DELAY { 0 } else { ticks * (1_000_000_000 / HZ) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of the formula: high 100 MB, usage 110 MB.
    #[test]
    fn a_tenth_too_much_is_639_ms_a_batch() {
        let pages = |mb: u64| mb * 1_000_000 / 4096;
        assert_eq!(delay_ticks(overage(110, 100), 64), 639);
        assert_eq!(delay_ticks(overage(110 << 20, 100 << 20), 64), 639);
        assert!((638..=640).contains(&delay_ticks(overage(pages(110), pages(100)), 64)));
        // A quarter of a batch is a quarter of the time; twice the overage four times.
        assert_eq!(delay_ticks(overage(110, 100), 16), 159);
        assert_eq!(delay_ticks(overage(120, 100), 64), 2559);
        assert_eq!(delay_ticks(overage(100, 100), 64), 0);
    }

    #[test]
    fn delays_are_capped_and_short_ones_skipped() {
        let mut t = Memcgs::new(64, true);
        t.all.push(Memcg::new(None, "/a", crate::ids::LruvecId(0), u64::MAX, u64::MAX));
        t.link(MemcgId(1), MemcgId::ROOT);
        let a = MemcgId(1);
        (t.get_mut(a).usage, t.get_mut(a).high) = (1010, 1000);
        assert_eq!(t.high_delay_ns(a, 64), 0, "6 ms are not worth it");
        t.get_mut(a).usage = 1100;
        assert_eq!(t.high_delay_ns(a, 64), 639_000_000);
        (t.get_mut(a).swap_usage, t.get_mut(a).swap_high) = (1100, 1000);
        assert_eq!(t.high_delay_ns(a, 64), 1_278_000_000, "memory and swap add up");
        t.get_mut(a).usage = 5000;
        assert_eq!(t.high_delay_ns(a, 64), 2_000_000_000);
        (t.get_mut(a).high, t.get_mut(a).swap_high) = (0, 0);
        assert_eq!(t.high_delay_ns(a, u64::MAX), 2_000_000_000, "nothing overflows");
    }
}
