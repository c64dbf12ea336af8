//! Settings of zswap.

use super::{Setting, Values, setting};
use crate::config::zswap::ZswapConfig;

/// Parameters of the module, keys of `[zswap]` in scenarios.
pub const ZSWAP: &[Setting<ZswapConfig>] = &[
    setting!(ZswapConfig; "max_pool_percent", max_pool_percent, "share of memory that the pool may take")
        .at("zswap")
        .takes(Values::Range(0, 100), "percent"),
    setting!(
        ZswapConfig;
        "accept_threshold_percent",
        accept_threshold_percent,
        "share of that limit to which a full pool must shrink before it takes pages again"
    )
    .at("zswap")
    .takes(Values::Range(0, 100), "percent"),
    setting!(ZswapConfig; "same_filled_pages", same_filled, "a page of one word over and over takes no memory")
        .at("zswap")
        .in_kernels("until 6.11"),
];
