//! How soon after it was marked a page must be touched to be hot, and how that is adjusted.
//!
//! Mechanism: `docs/mechanisms.md#promotion`.

/// Steps of adjustment from 0 to twice the threshold that was set.
const STEPS: u64 = 16;

/// The threshold of a node that pages are promoted to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotThreshold {
    hot_threshold_ms: u64,
    /// Least time between two adjustments: `scan_period_max`.
    period_ms: u64,
    /// The adjusted threshold; 0: not adjusted yet, or not since there was free space.
    adjusted_ms: u64,
    period_start_ms: u64,
    /// Candidate pages so far when the period began.
    period_base: u64,
}

impl HotThreshold {
    /// A threshold of `hot_threshold_ms`, adjusted at most once in `period_ms`.
    pub fn new(hot_threshold_ms: u64, period_ms: u64) -> HotThreshold {
        HotThreshold { hot_threshold_ms, period_ms, adjusted_ms: 0, period_start_ms: 0, period_base: 0 }
    }

    /// Milliseconds of one step of adjustment.
    pub fn unit_ms(&self) -> u64 {
        self.hot_threshold_ms * 2 / STEPS
    }

    /// The threshold that counts now.
    pub fn ms(&self) -> u64 {
        if self.adjusted_ms == 0 { self.hot_threshold_ms } else { self.adjusted_ms }
    }

    /// The threshold that was set.
    pub fn set_ms(&self) -> u64 {
        self.hot_threshold_ms
    }

    /// The threshold as adjusted, in milliseconds; 0: not adjusted yet.
    pub fn adjusted_ms(&self) -> u64 {
        self.adjusted_ms
    }

    /// There is free space: the adjusted threshold does not count any more.
    pub fn forget(&mut self) {
        self.adjusted_ms = 0;
    }

    /// Brings the candidates of a period near what the limit lets through.
    pub fn adjust(&mut self, now_ms: u64, candidates: u64, limit_pages_per_s: u64) {
        if now_ms.saturating_sub(self.period_start_ms) <= self.period_ms {
            return;
        }
        let wanted = u128::from(limit_pages_per_s) * u128::from(self.period_ms) / 1000;
        let found = u128::from(candidates - self.period_base);
        let (now, unit) = (self.ms(), self.unit_ms());
        if found > wanted * 11 / 10 {
            self.adjusted_ms = now.saturating_sub(unit).max(unit);
        } else if found < wanted * 9 / 10 {
            self.adjusted_ms = (now + unit).min(self.hot_threshold_ms * 2);
        } else {
            self.adjusted_ms = now;
        }
        (self.period_start_ms, self.period_base) = (now_ms, candidates);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_falls_step_by_step_while_there_are_too_many_and_rises_while_there_are_too_few() {
        let mut th = HotThreshold::new(1000, 60_000);
        assert_eq!((th.ms(), th.unit_ms(), th.adjusted_ms()), (1000, 125, 0));
        // 100 pages a second are 6000 in a period.
        let mut candidates = 0;
        let mut at = 60_001;
        for want in [875, 750, 625, 500, 375, 250, 125, 125] {
            candidates += 6601;
            th.adjust(at, candidates, 100);
            assert_eq!(th.ms(), want);
            at += 60_001;
        }
        for want in (1..=15).map(|n| 125 + n * 125).chain([2000]) {
            candidates += 5399;
            th.adjust(at, candidates, 100);
            assert_eq!(th.ms(), want);
            at += 60_001;
        }
    }

    #[test]
    fn near_the_limit_and_within_a_period_it_stays() {
        let mut th = HotThreshold::new(1000, 60_000);
        th.adjust(60_001, 6000, 100);
        assert_eq!(th.adjusted_ms(), 1000);
        th.adjust(120_001, 600_000, 100);
        assert_eq!(th.ms(), 1000, "the period is not over before it is longer than 60 s");
        th.adjust(120_002, 600_000, 100);
        assert_eq!(th.ms(), 875);
        th.forget();
        assert_eq!((th.ms(), th.adjusted_ms()), (1000, 0));
    }
}
