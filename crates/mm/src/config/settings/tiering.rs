//! Settings of memory tiers: hint faults, promotion and demotion.

use super::words::{FieldType as _, WordEnum};
use super::{Setting, Value, Values, setting};
use crate::tiering::{PromotionPolicy, TieringConfig};

/// Pages of a MiB.
const MIB_PAGES: u64 = 256;
/// Longest time that a setting takes: a day, in ms.
const MAX_MS: u64 = 86_400_000;
/// Largest size that a setting takes: 4 TiB, in MiB.
const MAX_MB: u64 = 1 << 22;

impl WordEnum for PromotionPolicy {
    const WORDS: &'static [&'static str] = &{
        let mut words = [""; PromotionPolicy::ALL.len()];
        let mut n = 0;
        while n < words.len() {
            words[n] = PromotionPolicy::ALL[n].name();
            n += 1;
        }
        words
    };
    const ALL: &'static [PromotionPolicy] = &PromotionPolicy::ALL;
}

/// Settings of tiering: sysctls, and choices that no kernel offers. Keys of `[policy]` in scenarios
/// of several nodes. Numbers are of the full size: they are set before [`TieringConfig::scaled`].
pub const TIERING: &[Setting<TieringConfig>] = &[
    setting!(
        TieringConfig;
        "numa_balancing",
        numa_balancing,
        "2 is promotion by hint faults; 3 gives pages of the top tier hint faults, too; 1 alone is refused"
    )
    .at("Hint faults")
    .takes(Values::Range(0, 3), "")
    .in_kernels("2 since 5.18"),
    setting!(TieringConfig; "demotion_enabled", demotion_enabled, "reclaim of a faster node moves pages to a slower one")
        .at("Demotion")
        .in_kernels("since 5.15"),
    setting!(TieringConfig; "promotion", policy, "decision on a hint fault on slow memory")
        .at("Promotion")
        .in_kernels("a word for each patch of Linux; `oracle` is a bound"),
    Setting::<TieringConfig>::new(
        "numa_balancing_promote_rate_limit_MBps",
        "memory that is promoted, at most",
        Values::NUMBER,
        |c| Value::Number(c.promote_rate_limit_pages_per_s * c.scale / MIB_PAGES),
        |c, value| {
            c.promote_rate_limit_pages_per_s = u64::of(value)? * MIB_PAGES / c.scale;
            Some(())
        },
    )
    .takes(Values::Range(1, MAX_MB), "MiB/s")
    .at("Promotion")
    .in_kernels("since 6.1"),
    setting!(
        TieringConfig;
        "numa_balancing_hot_threshold_ms",
        hot_threshold_ms,
        "time from mark to touch, below which a page is hot"
    )
    .at("Promotion")
    .takes(Values::Range(8, MAX_MS), "ms")
    .in_kernels("since 6.1"),
    Setting::<TieringConfig>::new(
        "scan_size_mb",
        "address space that a task marks at a time",
        Values::NUMBER,
        |c| Value::Number(c.scan_size_pages * c.scale / MIB_PAGES),
        |c, value| {
            c.scan_size_pages = (u64::of(value)? * MIB_PAGES / c.scale).max(1);
            Some(())
        },
    )
    .takes(Values::Range(1, MAX_MB), "MiB")
    .at("Hint faults"),
    setting!(TieringConfig; "scan_delay_ms", scan_delay_ms, "CPU time of a new task before it marks pages")
        .at("Hint faults")
        .takes(Values::Range(0, MAX_MS), "ms"),
    setting!(TieringConfig; "scan_period_min_ms", scan_period_min_ms, "CPU time between two scans of a task, at least")
        .at("Hint faults")
        .takes(Values::Range(1, MAX_MS), "ms"),
    setting!(
        TieringConfig;
        "scan_period_max_ms",
        scan_period_max_ms,
        "CPU time between two scans of a task, at most; how often the threshold is adjusted, too"
    )
    .at("Hint faults")
    .takes(Values::Range(1, MAX_MS), "ms"),
    setting!(TieringConfig; "stamp_bits", stamp_bits, "length of the time stamp in a folio")
        .at("Hint faults")
        .takes(Values::Range(1, 32), "bits"),
];
