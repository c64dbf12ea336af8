//! When kswapd is content with a node: the zones that serve an allocation, their marks and boosts.
//!
//! Mechanism: `docs/mechanisms.md#kswapd`,
//! `docs/mechanisms.md#page-blocks-and-the-watermark-boost`.

use crate::config::lru::KswapdRevival;
use crate::ids::MAX_NR_ZONES;
use crate::node::zones::{LOWMEM_RESERVE_RATIO, Node, Zone};

impl Node {
    /// Zones that may serve an allocation whose highest zone is `highest`, each with the pages that
    /// it keeps from that allocation (`lowmem_reserve`).
    fn zones_up_to(&self, highest: usize) -> impl Iterator<Item = (&Zone, u64)> {
        let highest = highest.min(self.zones.len().saturating_sub(1));
        let zones = self.zones.iter().take(highest + 1).enumerate();
        zones.map(move |(i, z)| {
            let above = &self.zones[i + 1..=highest];
            (z, above.iter().map(Zone::counted).sum::<u64>() / LOWMEM_RESERVE_RATIO)
        })
    }

    /// Whether a zone is above its high watermark, boost and reserve included (`pgdat_balanced`).
    pub(crate) fn is_balanced(&self, highest: usize) -> bool {
        self.zones_up_to(highest).any(|(z, reserve)| z.seen_free() > self.balance_mark(z) + z.boost.pages + reserve)
    }

    /// Reclaim has freed something: kswapd works again, if it gave up.
    pub(crate) fn revive_kswapd(&mut self, revival: KswapdRevival, highest: usize) {
        if revival == KswapdRevival::OnProgress || self.is_balanced(highest) {
            self.kswapd.failures = 0;
        }
    }

    /// Whether every zone has `beyond` free pages more than kswapd aims at (Multi-gen eviction).
    pub(crate) fn is_safe(&self, beyond: u64, highest: usize) -> bool {
        self.zones_up_to(highest)
            .all(|(z, reserve)| z.seen_free() > self.balance_mark(z) + z.boost.pages + beyond + reserve)
    }

    /// Whether there are zones above this one.
    #[inline(always)]
    pub(crate) fn is_below_top(&self, highest: usize) -> bool {
        highest + 1 < self.zones.len()
    }

    /// Pages of watermark boost by zone, of zones up to `highest`.
    pub(crate) fn boosts(&self, highest: usize) -> [u64; MAX_NR_ZONES] {
        let mut boosts = [0; MAX_NR_ZONES];
        boosts.iter_mut().zip(self.zones_up_to(highest)).for_each(|(b, (z, _))| *b = z.boost.pages);
        boosts
    }

    #[cfg(test)]
    pub(crate) fn boost(&mut self, zone: usize) {
        let z = &mut self.zones[zone];
        z.boost.raise(z.managed, z.marks.high, z.boost_factor);
    }

    /// kswapd is done with boosts of that size.
    pub(crate) fn lower_boosts(&mut self, by: [u64; MAX_NR_ZONES]) {
        self.zones.iter_mut().zip(by).for_each(|(z, by)| z.boost.lower(by));
    }

    /// Whether the zone was boosted and kswapd does not know yet; from now on it does.
    pub(crate) fn take_boost_news(&mut self, zone: usize) -> bool {
        self.zones.get_mut(zone).is_some_and(|z| std::mem::take(&mut z.boost.is_news))
    }

    /// Free pages that its zones keep: up to the high mark, and what lower ones reserve.
    pub(crate) fn totalreserve_pages(&self) -> u64 {
        self.zones.iter().map(|z| (z.marks.high + z.reserve).min(z.managed)).sum()
    }

    /// Free pages that a kswapd run aims at (kswapd).
    pub(crate) fn kswapd_target(&self, cluster: u64, highest: usize) -> u64 {
        self.zones_up_to(highest).map(|(z, _)| (z.marks.high + z.boost.pages).max(cluster)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::node::{MachineMarks, NodeConfig};

    /// Linux 6.18 with 24 GiB: `/proc/zoneinfo` has these pages, marks and reserves, and
    /// `nr_dirty_threshold` is what its cache and free pages beyond 54,128 come to.
    #[test]
    fn regression_zones_keep_what_linux_has_them_keep() {
        let pages = [3840, 772_915, 5_394_266];
        let cfg =
            NodeConfig { low_zones: [pages[0], pages[1]], khugepaged: true, ..NodeConfig::new(pages.iter().sum()) };
        let node = Node::new(&cfg, &MachineMarks::new(std::slice::from_ref(&cfg)), false, 1);
        let marks: Vec<_> = node.zones.iter().map(|z| (z.marks.min, z.marks.low, z.marks.high, z.reserve)).collect();
        assert_eq!(marks, [(10, 13, 16, 24_090), (2116, 2888, 3660, 21_071), (14_769, 20_163, 25_557, 0)]);
        assert_eq!(node.totalreserve_pages(), 3840 + 24_731 + 25_557);
    }
}
