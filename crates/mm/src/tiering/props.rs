//! Random machines and loads: I9.1 to I9.3, whatever the policy (tests only).

use proptest::prelude::*;

use super::{HintAction, HintFault, Promoter, PromotionPolicy, Stamp, TieringConfig};

#[derive(Clone, Debug)]
struct Fault {
    wait_ms: u64,
    latency_ms: u64,
    order: u8,
    active: bool,
    hottest: bool,
    free_space: bool,
    moves: bool,
}

fn fault() -> impl Strategy<Value = Fault> {
    // Mostly bursts; now and then a second, or a period, goes by.
    let wait = prop_oneof![8 => 0u64..3, 2 => 0u64..1500, 1 => 50_000u64..130_000];
    let flags = (any::<bool>(), any::<bool>(), prop::bool::weighted(0.05), prop::bool::weighted(0.9));
    (wait, 0u64..4000, 0u8..10, flags).prop_map(|(wait_ms, latency_ms, order, (active, hottest, free_space, moves))| {
        Fault { wait_ms, latency_ms, order, active, hottest, free_space, moves }
    })
}

fn config() -> impl Strategy<Value = TieringConfig> {
    let policy = prop::sample::select(PromotionPolicy::ALL.to_vec());
    (policy, 1u64..3000, 8u64..5000, 12u32..=32, 1000u64..60_000).prop_map(
        |(policy, limit, threshold, stamp_bits, period)| TieringConfig {
            policy,
            promote_rate_limit_pages_per_s: limit,
            hot_threshold_ms: threshold,
            stamp_bits,
            scan_period_max_ms: period,
            ..TieringConfig::default()
        },
    )
}

/// Promotions outside the shortcut, as I9.1 counts them. The algorithm opens a window with a
/// candidate, for more than a second.
#[derive(Default)]
struct Windows {
    start_ms: u64,
    /// In the window under way: pages, and the largest folio.
    pages: u64,
    largest: u64,
    /// In the whole run.
    nr: u64,
    total: u64,
    largest_ever: u64,
}

impl Windows {
    /// A candidate came: a window is over, or goes on.
    fn candidate(&mut self, now_ms: u64) {
        if now_ms - self.start_ms > 1000 {
            *self = Windows { start_ms: now_ms, pages: 0, largest: 0, nr: self.nr + 1, ..*self };
        }
    }

    fn promoted(&mut self, pages: u64) {
        (self.pages, self.total) = (self.pages + pages, self.total + pages);
        self.largest = self.largest.max(pages);
        self.largest_ever = self.largest_ever.max(pages);
    }

    /// I9.1: a window lets through no more pages than the limit and one folio (faults come one
    /// after the other here). So n seconds have at most n + 1 times that: a window was under way
    /// when they began.
    fn check(&self, limit: u64, since_first_ms: u64) -> Result<(), String> {
        let seconds = since_first_ms / 1001 + 1;
        if self.pages >= limit + self.largest.max(1) {
            return Err(format!("I9.1: {} pages in a second", self.pages));
        }
        if self.nr > seconds || self.total > seconds * (limit + self.largest_ever) {
            return Err(format!("I9.1: {} pages in {seconds} s, {} windows", self.total, self.nr));
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn promotion_keeps_its_limits(cfg in config(), faults in prop::collection::vec(fault(), 1..300)) {
        let mut p = Promoter::new(&cfg).unwrap();
        let limited = matches!(
            cfg.policy,
            PromotionPolicy::LatencyLimit | PromotionPolicy::LatencyLimitAuto | PromotionPolicy::Combined
        );
        let mut now_ms = 5000;
        let mut candidates = 0;
        let mut w = Windows::default();
        let mut first_ms = None;
        for f in &faults {
            now_ms += f.wait_ms;
            let now_ns = now_ms * 1_000_000;
            let stamp = if f.latency_ms < now_ms { p.clock().stamp((now_ms - f.latency_ms) * 1_000_000) } else { Stamp(0) };
            let pages = 1 << f.order;
            let fault = HintFault { now_ns, stamp, pages, active: f.active, hottest: f.hottest, free_space: f.free_space };
            let shortcut = p.stats().shortcut;
            let action = p.hint_fault(&fault);
            let by_shortcut = p.stats().shortcut > shortcut;
            if p.stats().candidates > candidates {
                w.candidate(now_ms);
            }
            candidates = p.stats().candidates;
            if action == HintAction::Promote {
                if !by_shortcut {
                    w.promoted(pages);
                }
                if f.moves {
                    p.promoted(pages);
                }
            }
            if limited && w.nr > 0 {
                let since = now_ms - *first_ms.get_or_insert(now_ms);
                if let Err(what) = w.check(cfg.promote_rate_limit_pages_per_s, since) {
                    prop_assert!(false, "{what}");
                }
            }
            if let Err(what) = p.validate() {
                prop_assert!(false, "{}: {what}", cfg.policy);
            }
            prop_assert!(p.stats().success <= p.stats().candidates + p.stats().shortcut);
        }
    }

    /// I9.1 with single pages is exact: over the whole run, the limit for each window that there
    /// was time for.
    #[test]
    fn single_pages_never_exceed_the_rate(limit in 1u64..200, waits in prop::collection::vec(0u64..40, 1..2000)) {
        let cfg = TieringConfig {
            policy: PromotionPolicy::LatencyLimit,
            promote_rate_limit_pages_per_s: limit,
            ..TieringConfig::default()
        };
        let mut p = Promoter::new(&cfg).unwrap();
        let (mut now_ms, mut promoted) = (10_000, 0);
        for wait in waits {
            now_ms += wait;
            let stamp = p.clock().stamp(now_ms * 1_000_000);
            let fault =
                HintFault { now_ns: now_ms * 1_000_000, stamp, pages: 1, active: false, hottest: false, free_space: false };
            promoted += u64::from(p.hint_fault(&fault) == HintAction::Promote);
            prop_assert!(promoted <= limit * ((now_ms - 10_000) / 1001 + 1));
        }
    }
}
