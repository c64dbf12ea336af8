//! Access sampling under a budget of processor time.
//!
//! A driver without accessed bits learns which old pages are in use by taking pages away and seeing
//! which are touched before they are given up for good: a *sample* is a page that is away. A sample
//! costs a fault if it is touched. A token bucket decides how many may be away. Tokens are
//! nanoseconds of processor time, a percentage of the time that passes. A page taken away is
//! charged the most that a sample costs, and its actual cost is settled when it is back.
//!
//! Pages are those that reclaim would take next. The driver has them, since reclaim has ordered
//! them out.

/// Nanoseconds that a sample is charged before any was measured: a fault without a read, on the
/// machine of the prototype.
const FIRST_COST_NS: u64 = 5_000;
/// Samples that tokens are saved for at most: a window of pages that one call moves.
const BURST_PAGES: u64 = 64;
/// Share by which the charge falls with each sample that cost less, one part in this many.
const DECAY: u64 = 16;

/// Budget of pages that may be away as samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleBudget {
    percent: u32,
    max_pages: u64,
    /// In hundredths of a nanosecond, so that nothing is lost by rounding. Below 0: samples cost
    /// more than they were charged.
    tokens: i128,
    now_ns: u64,
    /// Nanoseconds that a sample is charged.
    charge_ns: u64,
    /// Pages that are away, and what they were charged.
    away_pages: u64,
    charged_ns: u64,
    stats: SampleStats,
}

/// Counts and costs of sampling so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleStats {
    /// Pages taken away.
    pub taken: u64,
    /// Pages that came back because they were touched.
    pub seen: u64,
    /// Cost of samples that came back, in nanoseconds of processor time.
    pub cost_ns: u64,
    /// The part of `cost_ns` beyond what had been charged.
    pub overrun_ns: u64,
}

impl SampleBudget {
    /// At most `percent` of a processor, and `max_pages` pages at a time; 0 percent: no samples.
    pub fn new(percent: u32, max_pages: u64) -> SampleBudget {
        SampleBudget {
            percent: percent.min(100),
            max_pages,
            tokens: 0,
            now_ns: 0,
            charge_ns: FIRST_COST_NS,
            away_pages: 0,
            charged_ns: 0,
            stats: SampleStats::default(),
        }
    }

    /// Another limit of pages. Pages that are away beyond it come back as they are touched.
    pub fn set_max_pages(&mut self, max_pages: u64) {
        self.max_pages = max_pages;
    }

    /// Returns how many more pages to take away at `now_ns`, a time that never goes back, and
    /// charges them.
    pub fn take(&mut self, now_ns: u64) -> u64 {
        let passed = now_ns.saturating_sub(self.now_ns);
        self.now_ns = self.now_ns.max(now_ns);
        self.tokens = (self.tokens + i128::from(passed) * i128::from(self.percent)).min(self.burst());
        let affordable = self.tokens.max(0) / (i128::from(self.charge_ns) * 100);
        let n = (affordable as u64).min(self.max_pages.saturating_sub(self.away_pages));
        let charge = n * self.charge_ns;
        self.tokens -= i128::from(charge) * 100;
        self.charged_ns += charge;
        self.away_pages += n;
        self.stats.taken += n;
        n
    }

    /// Settles `pages` pages that are away no longer: `seen` of them were touched, at a cost of
    /// `cost_ns` together. Pages that were not touched cost nothing: they were to leave anyway.
    pub fn sample_done(&mut self, cost_ns: u64, pages: u64, seen: u64) {
        let pages = pages.min(self.away_pages);
        if pages == 0 {
            return;
        }
        let charged = (u128::from(self.charged_ns) * u128::from(pages) / u128::from(self.away_pages)) as u64;
        self.away_pages -= pages;
        self.charged_ns -= charged;
        self.tokens += (i128::from(charged) - i128::from(cost_ns)) * 100;
        self.stats.seen += seen.min(pages);
        self.stats.cost_ns += cost_ns;
        self.stats.overrun_ns += cost_ns.saturating_sub(charged);
        if let Some(each) = cost_ns.checked_div(seen) {
            self.charge_ns = each.max(self.charge_ns - self.charge_ns / DECAY).max(1);
        }
        self.tokens = self.tokens.min(self.burst());
    }

    /// Pages that are away now, as far as it knows.
    pub fn away_pages(&self) -> u64 {
        self.away_pages
    }

    /// Counts and costs of its samples.
    pub fn stats(&self) -> SampleStats {
        self.stats
    }

    fn burst(&self) -> i128 {
        i128::from(BURST_PAGES * self.charge_ns) * 100
    }

    /// The invariants: no more tokens than a burst, nothing charged that is not away, and what was
    /// spent and is charged is no more than the budget of all the time so far and what samples cost
    /// beyond their charge.
    pub fn validate(&self) -> Result<(), String> {
        if self.tokens > self.burst() {
            return Err(format!("{} tokens are more than a burst", self.tokens));
        }
        if self.away_pages == 0 && self.charged_ns > 0 {
            return Err(format!("{} ns are charged, and nothing is away", self.charged_ns));
        }
        let budget = i128::from(self.now_ns) * i128::from(self.percent);
        let spent = i128::from(self.stats.cost_ns - self.stats.overrun_ns + self.charged_ns) * 100;
        if spent > budget {
            return Err(format!("{spent} of {budget} hundredths of a nanosecond were spent"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn without_a_budget_or_without_time_nothing_is_taken() {
        assert_eq!(SampleBudget::new(0, 1000).take(1 << 40), 0);
        let mut b = SampleBudget::new(5, 1000);
        assert_eq!(b.take(0), 0);
        // A second of 5 percent would pay for 10 000; tokens are not kept for longer than a burst.
        assert_eq!((b.take(1_000_000_000), b.take(1_000_000_000)), (BURST_PAGES, 0));
        b.validate().unwrap();
    }

    #[test]
    fn what_samples_cost_decides_how_many_there_are() {
        let run = |percent, cost_ns: u64| {
            let mut b = SampleBudget::new(percent, 1 << 30);
            for ms in 1..1000 {
                let n = b.take(ms * 1_000_000);
                b.sample_done(n * cost_ns, n, n);
                b.validate().unwrap();
            }
            b.stats()
        };
        for percent in [1, 2, 5] {
            for cost_ns in [3_000, 10_000, 40_000] {
                let share = run(percent, cost_ns).cost_ns as f64 / 1e9 * 100.0;
                assert!((share / f64::from(percent) - 1.0).abs() < 0.05, "{percent} percent at {cost_ns}: {share}");
            }
        }
    }

    #[test]
    fn what_was_not_touched_is_given_back_at_once() {
        let mut b = SampleBudget::new(1, 1000);
        let n = b.take(1_000_000_000);
        b.sample_done(0, n, 0);
        assert_eq!((b.take(1_000_000_000), b.stats().cost_ns), (n, 0));
        b.validate().unwrap();
    }

    proptest! {
        /// In any window, what samples cost that were begun in it is no more than its budget, a
        /// burst, and what they cost beyond their charge.
        #[test]
        fn no_window_is_beyond_its_budget(
            percent in 1u32..20,
            steps in prop::collection::vec((0u64..5_000_000, 0u64..20_000, 0u64..100), 1..200),
        ) {
            let mut b = SampleBudget::new(percent, 5000);
            let (mut now, mut log) = (0, Vec::new());
            for (passed, cost_ns, share) in steps {
                now += passed;
                let before = b.stats();
                let n = b.take(now);
                let done = b.away_pages() * share / 100;
                b.sample_done(done * cost_ns, done, done);
                b.validate().map_err(TestCaseError::fail)?;
                prop_assert!(b.away_pages() <= 5000);
                prop_assert_eq!(b.stats().taken - before.taken, n);
                let (cost, over) = (b.stats().cost_ns - before.cost_ns, b.stats().overrun_ns - before.overrun_ns);
                log.push((now, cost - over, b.charged_ns, BURST_PAGES * b.charge_ns));
            }
            // Spent and charged at the end of a window less what was charged at its beginning.
            for i in 0..log.len() {
                let mut spent = 0;
                let mut burst = log[i].3;
                for j in i + 1..log.len() {
                    spent += log[j].1;
                    burst = burst.max(log[j].3);
                    let net = (spent + log[j].2).saturating_sub(log[i].2);
                    let budget = (log[j].0 - log[i].0) * u64::from(percent) / 100;
                    prop_assert!(net <= budget + burst + 1, "{} in {}, burst {}", net, budget, burst);
                }
            }
        }
    }
}
