//! A sample of a larger memory: each page stands for a number of pages of the kernel. Numbers of
//! pages are divided by it; ratios, shapes and weights stay as they are.
//!
//! Mechanism: `docs/mechanisms.md#a-sample-of-a-larger-memory`.

use super::Config;
use super::lru::LruConfig;

/// Batches that memory has room for at least: where it has room for fewer, they are divided.
const PARTS_OF_MEMORY: u64 = 200;

impl Config {
    /// The same kernel with a sample of its memory: `memory` pages, each of which stands for
    /// `pages` pages.
    pub fn sampled(mut self, pages: u64, memory: u64) -> Config {
        let lru = &mut self.lru;
        let divisor = (lru.swap_cluster_max * PARTS_OF_MEMORY).div_ceil(memory.max(1)).clamp(1, pages);
        (lru.pages_per_page, lru.batch_divisor) = (pages, divisor);
        lru.gib_pages = (lru.gib_pages / pages).max(1);
        // A batch that comes to less than half a folio is none.
        lru.batch_folios = ((lru.batch_folios as u64 + divisor / 2) / divisor) as usize;
        self.memcg.charge_batch = (self.memcg.charge_batch / divisor).max(1);
        self.memcg.reserved_pages /= pages;
        self.swap.pages = (self.swap.pages / pages).max(2);
        self.total_pages = (self.total_pages / pages).max(1);
        self
    }
}

impl LruConfig {
    /// Divides a batch of the kernel, in pages; one page at least.
    #[inline(always)]
    pub(crate) fn part(&self, pages: u64) -> u64 {
        (pages / self.batch_divisor).max(1)
    }

    /// Pages of the kernel that `pages` pages here stand for.
    #[inline(always)]
    pub(crate) fn whole(&self, pages: u64) -> u64 {
        pages * self.pages_per_page
    }

    /// Pages to scan at a priority, of a list of `pages` pages, in proportion to the batches here.
    /// In a sample: one at least where the kernel would scan any, and never more than the list has.
    #[inline(always)]
    pub(crate) fn share_of_priority(&self, pages: u64, priority: u32) -> u64 {
        let share = self.whole(pages) >> priority;
        if self.pages_per_page == 1 { share } else { share.div_ceil(self.batch_divisor).min(pages) }
    }

    /// `SWAP_CLUSTER_MAX`, in pages here.
    #[inline(always)]
    pub(crate) fn cluster_pages(&self) -> u64 {
        self.part(self.swap_cluster_max)
    }
}

/// Divides the pages to scan of each list. The remainder is carried to the next time, so that lists
/// keep their shares. At least one page is scanned in all, as a kernel would have come to its first
/// batch.
#[inline(never)]
pub(crate) fn divided(carried: &mut [i64; 4], counts: [u64; 4], divisor: u64) -> [u64; 4] {
    let (sum, page) = (counts.iter().sum::<u64>(), divisor as i64);
    if sum == 0 {
        return [0; 4];
    }
    let share = |count: u64| (u128::from(count) * u128::from(sum.max(divisor)) / u128::from(sum)) as i64;
    let mut whole = [0; 4];
    for (l, &count) in counts.iter().enumerate() {
        carried[l] += share(count);
        if count > 0 {
            whole[l] = (carried[l] / page).max(0) as u64;
            carried[l] -= whole[l] as i64 * page;
        }
    }
    if whole == [0; 4]
        && let Some(next) = (0..4).filter(|&l| counts[l] > 0).max_by_key(|&l| carried[l])
    {
        whole[next] = 1;
        carried[next] -= page;
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Policy;

    #[test]
    fn a_page_that_stands_for_itself_changes_nothing() {
        for policy in Policy::every() {
            assert_eq!(Config::new(policy).sampled(1, 10), Config::new(policy));
        }
        assert_eq!(divided(&mut [0; 4], [3, 0, 7, 9], 1), [3, 0, 7, 9]);
    }

    #[test]
    fn batches_are_divided_only_where_they_are_much_of_memory() {
        let batches = |pages, memory| {
            let cfg = Config::new(Policy::Lru).sampled(pages, memory);
            cfg.check().expect("a configuration");
            (cfg.lru.cluster_pages(), cfg.lru.batch_folios, cfg.memcg.charge_batch)
        };
        assert_eq!(batches(100, 6400), (32, 31, 64));
        assert_eq!(batches(100, 3200), (16, 16, 32));
        assert_eq!(batches(100, 64), (1, 0, 1));
        assert_eq!(batches(4, 64), (8, 8, 16), "never more than memory was");
    }

    #[test]
    fn lists_keep_their_shares() {
        for counts in [[1, 2, 3, 4], [100, 0, 900, 50], [7, 7, 7, 7], [0, 1, 0, 999_999]] {
            let (mut carried, mut scanned) = ([0; 4], [0u64; 4]);
            for _ in 0..10_000 {
                let whole = divided(&mut carried, counts, 100);
                assert!(whole.iter().sum::<u64>() >= 1);
                (0..4).for_each(|l| scanned[l] += whole[l]);
            }
            let all = scanned.iter().sum::<u64>() as f64;
            for l in 0..4 {
                let (want, is) = (counts[l] as f64 / counts.iter().sum::<u64>() as f64, scanned[l] as f64 / all);
                assert!((want - is).abs() < 0.01, "{counts:?}: {scanned:?}");
            }
        }
    }
}
