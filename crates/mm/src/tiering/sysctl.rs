//! Settings of tiering, under the names of Linux.

use super::promotion::PromotionPolicy;
use super::stamp::StampClock;

/// The bit of `numa_balancing` for balancing among equals.
pub const NUMA_BALANCING_NORMAL: u32 = 1;
/// The bit of `numa_balancing` for promotion.
pub const NUMA_BALANCING_MEMORY_TIERING: u32 = 2;

/// Pages of a MiB.
const MIB_PAGES: u64 = 256;

/// Settings of hint faults, promotion and demotion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TieringConfig {
    /// `kernel.numa_balancing`: bits 1 (normal) and 2 (tiering); 0: off.
    pub numa_balancing: u32,
    /// `kernel.numa_balancing_promote_rate_limit_MBps`, in pages a second. The default, 65536 MB/s,
    /// is as good as none.
    pub promote_rate_limit_pages_per_s: u64,
    /// `numa_balancing/hot_threshold_ms`.
    pub hot_threshold_ms: u64,
    /// `numa_balancing/scan_size_mb`, in pages.
    pub scan_size_pages: u64,
    /// `numa_balancing/scan_delay_ms`.
    pub scan_delay_ms: u64,
    /// `numa_balancing/scan_period_min_ms`.
    pub scan_period_min_ms: u64,
    /// `numa_balancing/scan_period_max_ms`; how often the threshold is adjusted, too.
    pub scan_period_max_ms: u64,
    /// `/sys/kernel/mm/numa/demotion_enabled`.
    pub demotion_enabled: bool,
    /// Policy of promotion for hint faults on slow memory.
    pub policy: PromotionPolicy,
    /// Bits of the time stamp in a folio.
    pub stamp_bits: u32,
    /// Pages that must be free beyond the marks for promotion without a question: 1 GiB.
    pub free_space_pages: u64,
    /// Factor by which sizes and times of the machine were divided. The sizes in pages above are
    /// divided already; times are not: the clock goes faster by this factor.
    pub scale: u64,
}

impl Default for TieringConfig {
    fn default() -> Self {
        TieringConfig {
            numa_balancing: 0,
            promote_rate_limit_pages_per_s: 65_536 * MIB_PAGES,
            hot_threshold_ms: 1000,
            scan_size_pages: 256 * MIB_PAGES,
            scan_delay_ms: 1000,
            scan_period_min_ms: 1000,
            scan_period_max_ms: 60_000,
            demotion_enabled: false,
            policy: PromotionPolicy::LatencyLimitAuto,
            stamp_bits: StampClock::DEFAULT_BITS,
            free_space_pages: 1024 * MIB_PAGES,
            scale: 1,
        }
    }
}

impl TieringConfig {
    /// Whether hint faults promote.
    pub fn promotes(&self) -> bool {
        self.numa_balancing & NUMA_BALANCING_MEMORY_TIERING != 0
    }

    /// Whether pages of the top tier have hint faults, too.
    pub fn marks_toptier(&self) -> bool {
        self.numa_balancing & NUMA_BALANCING_NORMAL != 0
    }

    /// A time of these settings in nanoseconds of the machine.
    pub fn time_ns(&self, ms: u64) -> u64 {
        ms * 1_000_000 / self.scale
    }

    /// The settings for a machine whose sizes and times were divided by `by`: pages a scan, a
    /// second and of free space are divided; periods are divided by the clock.
    #[must_use]
    pub fn scaled(&self, by: u64) -> TieringConfig {
        let by = by.max(1);
        TieringConfig {
            promote_rate_limit_pages_per_s: (self.promote_rate_limit_pages_per_s / by).max(1),
            scan_size_pages: (self.scan_size_pages / by).max(1),
            free_space_pages: self.free_space_pages / by,
            scale: self.scale * by,
            ..self.clone()
        }
    }

    /// Whether it is possible.
    ///
    /// # Errors
    /// Names the setting that is impossible.
    pub fn check(&self) -> Result<(), String> {
        StampClock::new(self.stamp_bits, self.scale)?;
        match () {
            _ if self.numa_balancing > 3 => Err(format!("numa_balancing is 0 to 3, not {}", self.numa_balancing)),
            _ if self.numa_balancing == NUMA_BALANCING_NORMAL => Err("numa_balancing = 1 balances among equal nodes, \
                which is not modelled; write 2 for promotion, or 3 for hint faults of the top tier, too"
                .into()),
            _ if self.hot_threshold_ms < 8 => {
                Err("numa_balancing_hot_threshold_ms is at least 8: 16 steps make twice that".into())
            }
            _ if self.scan_size_pages == 0 || self.scale == 0 => Err("scan_size_mb is at least a page".into()),
            _ if self.scan_period_min_ms > self.scan_period_max_ms => {
                Err("scan_period_min_ms is more than scan_period_max_ms".into())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::{TIERING, Value};

    #[test]
    fn the_defaults_are_those_of_linux() {
        let cfg = TieringConfig::default();
        cfg.check().unwrap();
        assert!(!cfg.promotes() && !cfg.demotion_enabled);
        assert_eq!((cfg.hot_threshold_ms, cfg.scan_size_pages), (1000, 65_536));
        assert_eq!(cfg.promote_rate_limit_pages_per_s, 64 * 1024 * 1024 * 1024 / 4096);
    }

    #[test]
    fn settings_are_in_their_units_and_scale_with_the_machine() {
        let mut cfg = TieringConfig::default();
        for (name, value) in
            [("scan_size_mb", 512), ("numa_balancing_promote_rate_limit_MBps", 200), ("numa_balancing", 2)]
        {
            let setting = TIERING.iter().find(|setting| setting.name == name).unwrap();
            assert!(setting.set(&mut cfg, Value::Number(value)));
            assert_eq!(setting.value(&cfg), Value::Number(value));
        }
        let mut cfg = cfg.scaled(64);
        assert_eq!((cfg.scan_size_pages, cfg.promote_rate_limit_pages_per_s, cfg.free_space_pages), (2048, 800, 4096));
        assert!(cfg.promotes() && !cfg.marks_toptier());
        cfg.scan_period_min_ms = 70_000;
        assert!(cfg.check().is_err());
    }
}
