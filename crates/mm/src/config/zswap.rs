//! zswap as it is configured.

use super::one_of;
/// zswap, under the names of its module parameters. [`ZswapConfig::default`] is what Linux has.
#[derive(Clone, Debug, PartialEq)]
pub struct ZswapConfig {
    /// Percent of memory that the pool may take.
    pub max_pool_percent: u64,
    /// Pages that the pool may take at most, whatever the percent: a driver may know no machine.
    pub max_pool_pages: u64,
    /// Percent of that limit to which the pool must shrink before it takes pages again.
    pub accept_threshold_percent: u64,
    /// `same_filled_pages_enabled`: a page of one word over and over takes no memory. Linux had it
    /// until 6.11; since then pages of zeros do not get as far as zswap, and others are few.
    pub same_filled: bool,
}

impl Default for ZswapConfig {
    fn default() -> Self {
        ZswapConfig { max_pool_percent: 20, max_pool_pages: u64::MAX, accept_threshold_percent: 90, same_filled: false }
    }
}

impl ZswapConfig {
    pub(super) fn check(&self) -> Result<(), String> {
        one_of(&[(
            self.max_pool_percent <= 100 && self.accept_threshold_percent <= 100,
            "the percentages of zswap are 0 to 100",
        )])
    }
}
