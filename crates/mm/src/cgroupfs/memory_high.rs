//! `memory.high` and `memory.swap.high`: who charges beyond them reclaims on the way out, and sleeps (6.4).

use crate::cgroupfs::Cgroupfs;
use crate::ids::MemcgId;
use crate::memcg::group::{Memcg, Memcgs};
use crate::scan::MAX_RECLAIM_RETRIES;
use crate::world::{ThrottleReason, World};

/// Ticks a second that delays are counted in.
const HZ: u64 = 1000;
/// The longest delay, and the longest that is not worth it, in ticks.
const MAX_DELAY: u64 = 2 * HZ;
const IGNORED_DELAY: u64 = HZ / 100;
/// An overage is in units of 2^-20 of the bound; its square loses 14 bits more.
const PRECISION_SHIFT: u32 = 20;
const SCALING_SHIFT: u32 = 14;
/// A delay is for so many pages.
const DELAY_BATCH: u64 = 64;

/// How far usage is beyond a bound, relative to it.
fn overage(usage: u64, high: u64) -> u64 {
    if usage <= high {
        return 0;
    }
    let of = u128::from(high.max(1));
    (((u128::from(usage) - u128::from(high)) << PRECISION_SHIFT) / of).min(u128::from(u64::MAX)) as u64
}

/// Ticks for having charged `nr` pages with such an overage: they grow with its square.
fn delay_ticks(overage: u64, nr: u64) -> u64 {
    let square = u128::from(overage) * u128::from(overage);
    let per_batch = square.saturating_mul(u128::from(HZ)) >> (PRECISION_SHIFT + SCALING_SHIFT);
    (per_batch.saturating_mul(u128::from(nr)) / u128::from(DELAY_BATCH)).min(u128::from(u64::MAX)) as u64
}

impl Memcgs {
    /// `nr` pages were charged: if that is beyond the `high` of the group or of one above, the call under way will answer for it.
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

    /// How long who charged `nr` pages to a group sleeps, in nanoseconds: by the largest overage among it and those above, of memory
    /// and of swap.
    fn high_delay_ns(&self, id: MemcgId, nr: u64) -> u64 {
        let largest = |of: fn(&Memcg) -> u64| self.chain(id).map(|m| of(self.get(m))).max().unwrap_or(0);
        let memory = delay_ticks(largest(|m| overage(m.usage, m.high)), nr);
        let swap = delay_ticks(largest(|m| overage(m.swap_usage, m.swap_high)), nr);
        let ticks = memory.saturating_add(swap).min(MAX_DELAY);
        if ticks <= IGNORED_DELAY { 0 } else { ticks * (1_000_000_000 / HZ) }
    }
}

impl<W: World> Cgroupfs<'_, W> {
    /// The task on whose behalf the last calls were made is done with what it accessed, and goes on. If it charged beyond a `high`
    /// it reclaims now, while that gets on, and then is told to sleep ([`ThrottleReason::High`]). A driver that never calls this
    /// has no `memory.high`.
    pub(crate) fn return_to_user(&mut self) {
        let Some((id, nr)) = self.groups.memcgs.over_high.take() else { return };
        let mut retries = MAX_RECLAIM_RETRIES;
        let mut wanted = nr;
        loop {
            let reclaimed = self.reclaim_high(id, wanted);
            let delay_ns = self.groups.memcgs.high_delay_ns(id, nr);
            self.groups.count_swap_high(id);
            if delay_ns == 0 {
                break;
            }
            if reclaimed == 0 && retries == 0 {
                self.frames.throttle(self.world, ThrottleReason::High, delay_ns);
                break;
            }
            if reclaimed == 0 {
                retries -= 1;
            }
            wanted = self.cfg.swap_cluster_max;
        }
        // What reclaim itself charged is not held against anyone.
        self.groups.memcgs.over_high = None;
    }

    /// Reclaims what the calls since the last [`Engine::return_to_user`] charged beyond a `high`, and says nothing of sleep. For drivers
    /// whose writes take a while: pages that are on their way out would count as used.
    pub(crate) fn reclaim_over_high(&mut self) {
        let Some((id, nr)) = self.groups.memcgs.over_high else { return };
        self.reclaim_high(id, nr);
        self.groups.memcgs.over_high = Some((id, nr));
    }

    fn reclaim_high(&mut self, id: MemcgId, nr: u64) -> u64 {
        let mut reclaimed = 0;
        let mut at = Some(id);
        while let Some(m) = at.filter(|&m| m != MemcgId::ROOT) {
            let memcg = self.groups.memcgs.get(m);
            at = memcg.parent;
            if memcg.usage > memcg.high {
                self.groups.memcgs.event(m, |e| &mut e.high);
                reclaimed += self.alloc().reclaim_memcg(m, nr);
            }
        }
        reclaimed
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
