//! Decision on a hint fault on slow memory.
//!
//! Mechanism: `docs/mechanisms.md#promotion`.

use std::fmt;
use std::str::FromStr;

use super::limit::RateLimit;
use super::stamp::{Stamp, StampClock};
use super::sysctl::TieringConfig;
use super::threshold::HotThreshold;

/// Choice of the pages that are promoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PromotionPolicy {
    /// Every page, on its first hint fault: Linux before "hot page selection".
    Mru,
    /// Pages that are touched soon after they were marked ("hot page selection", patch 1).
    Latency,
    /// As [`PromotionPolicy::Latency`], and a limit of pages a second (patch 2).
    LatencyLimit,
    /// As [`PromotionPolicy::LatencyLimit`], and the threshold follows the limit (patch 3): Linux
    /// since 6.1.
    LatencyLimitAuto,
    /// Pages that are active; others become active (Weiner's description).
    TwoTouch,
    /// Pages that are active; others are marked accessed, and become active at the second mark (the
    /// patch as posted).
    TwoTouchLiteral,
    /// Active pages, by the rules of [`PromotionPolicy::LatencyLimitAuto`]; others become active
    /// (Ying).
    Combined,
    /// Pages that the driver knows to be among the hottest. No kernel can know them: an upper
    /// bound.
    Oracle,
}

impl PromotionPolicy {
    /// All policies.
    pub const ALL: [PromotionPolicy; 8] = [
        PromotionPolicy::Mru,
        PromotionPolicy::Latency,
        PromotionPolicy::LatencyLimit,
        PromotionPolicy::LatencyLimitAuto,
        PromotionPolicy::TwoTouch,
        PromotionPolicy::TwoTouchLiteral,
        PromotionPolicy::Combined,
        PromotionPolicy::Oracle,
    ];

    /// The name in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            PromotionPolicy::Mru => "mru",
            PromotionPolicy::Latency => "latency",
            PromotionPolicy::LatencyLimit => "latency+limit",
            PromotionPolicy::LatencyLimitAuto => "latency+limit+auto",
            PromotionPolicy::TwoTouch => "two-touch",
            PromotionPolicy::TwoTouchLiteral => "two-touch-literal",
            PromotionPolicy::Combined => "combined",
            PromotionPolicy::Oracle => "oracle",
        }
    }

    /// Whether pages must be active.
    fn wants_active(self) -> bool {
        matches!(self, PromotionPolicy::TwoTouch | PromotionPolicy::TwoTouchLiteral | PromotionPolicy::Combined)
    }

    /// Whether pages must be touched soon.
    fn wants_latency(self) -> bool {
        use PromotionPolicy::{Combined, Latency, LatencyLimit, LatencyLimitAuto};
        matches!(self, Latency | LatencyLimit | LatencyLimitAuto | Combined)
    }

    fn limits(self) -> bool {
        matches!(self, PromotionPolicy::LatencyLimit | PromotionPolicy::LatencyLimitAuto | PromotionPolicy::Combined)
    }

    fn adjusts(self) -> bool {
        matches!(self, PromotionPolicy::LatencyLimitAuto | PromotionPolicy::Combined)
    }
}

impl fmt::Display for PromotionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PromotionPolicy {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        PromotionPolicy::ALL.into_iter().find(|p| p.name() == s).ok_or_else(|| {
            let names: Vec<_> = PromotionPolicy::ALL.iter().map(|p| p.name()).collect();
            format!("unknown promotion policy {s:?}; known are {}", names.join(", "))
        })
    }
}

/// A hint fault on a folio of a slow node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HintFault {
    /// Time of the fault, in nanoseconds.
    pub now_ns: u64,
    /// When the folio was marked; the answer's caller stores [`StampClock::stamp`] of now in its
    /// place.
    pub stamp: Stamp,
    /// Pages of the folio.
    pub pages: u64,
    /// The folio is on an active list (multi-gen LRU: in one of the two youngest generations).
    pub active: bool,
    /// The page is among the hottest, says the driver; only [`PromotionPolicy::Oracle`] looks.
    pub hottest: bool,
    /// The node of the CPU has free space in plenty ([`free_space_enough`]).
    pub free_space: bool,
}

/// Why a page stays where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The page was touched too long after it was marked, or is not among the hottest.
    Cold,
    /// The limit of promotions in this second is reached.
    Limit,
}

/// Decision on a hint fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintAction {
    /// Move the page to the node of the CPU.
    Promote,
    /// Mark the page accessed, as a read by descriptor does; it stays.
    MarkAccessed,
    /// Put the page on the active list of its node.
    Activate,
    /// Leave the page where it is.
    Reject(Rejection),
}

/// Counts of hint faults on slow memory, on behalf of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PromotionStats {
    /// Hint faults.
    pub hint_faults: u64,
    /// `pgpromote_candidate`: pages that were hot enough to be tried, whether the limit let them
    /// through or not.
    pub candidates: u64,
    /// Pages promoted whatever their latency, because there was free space.
    pub shortcut: u64,
    /// Pages whose promotion was ordered, those of `shortcut` included.
    pub ordered: u64,
    /// `pgpromote_success`: pages that were moved.
    pub success: u64,
    /// Pages that were not hot enough.
    pub cold: u64,
    /// Pages that the limit held back.
    pub limited: u64,
    /// Pages that were marked accessed.
    pub marked_accessed: u64,
    /// Pages that were activated.
    pub activated: u64,
}

/// Decides about promotion to one node. Each node that pages are promoted to has its own.
#[derive(Clone, Debug)]
pub struct Promoter {
    policy: PromotionPolicy,
    clock: StampClock,
    threshold: HotThreshold,
    limit: RateLimit,
    stats: PromotionStats,
}

impl Promoter {
    /// Makes a promoter with these settings.
    ///
    /// # Errors
    /// The settings are not possible.
    pub fn new(cfg: &TieringConfig) -> Result<Promoter, String> {
        cfg.check()?;
        let limit = if cfg.policy.limits() { cfg.promote_rate_limit_pages_per_s } else { u64::MAX };
        Ok(Promoter {
            policy: cfg.policy,
            clock: StampClock::new(cfg.stamp_bits, cfg.scale)?,
            threshold: HotThreshold::new(cfg.hot_threshold_ms, cfg.scan_period_max_ms),
            limit: RateLimit::new(limit),
            stats: PromotionStats::default(),
        })
    }

    /// The clock of the stamps.
    pub fn clock(&self) -> StampClock {
        self.clock
    }

    /// Its counts so far.
    pub fn stats(&self) -> &PromotionStats {
        &self.stats
    }

    /// The threshold that counts now.
    pub fn threshold_ms(&self) -> u64 {
        self.threshold.ms()
    }

    /// Decides the fate of a folio at a hint fault, and counts it.
    pub fn hint_fault(&mut self, fault: &HintFault) -> HintAction {
        self.stats.hint_faults += 1;
        let action = self.decide(fault);
        let counter = match action {
            HintAction::Promote => &mut self.stats.ordered,
            HintAction::MarkAccessed => &mut self.stats.marked_accessed,
            HintAction::Activate => &mut self.stats.activated,
            HintAction::Reject(Rejection::Cold) => &mut self.stats.cold,
            HintAction::Reject(Rejection::Limit) => &mut self.stats.limited,
        };
        *counter += fault.pages;
        action
    }

    fn decide(&mut self, fault: &HintFault) -> HintAction {
        if self.policy.wants_active() && !fault.active {
            let literal = self.policy == PromotionPolicy::TwoTouchLiteral;
            return if literal { HintAction::MarkAccessed } else { HintAction::Activate };
        }
        if self.policy == PromotionPolicy::Oracle && !fault.hottest {
            return HintAction::Reject(Rejection::Cold);
        }
        if self.policy.wants_latency() {
            if fault.free_space {
                self.threshold.forget();
                self.stats.shortcut += fault.pages;
                return HintAction::Promote;
            }
            let now_ms = self.clock.ms(fault.now_ns);
            if self.policy.adjusts() {
                self.threshold.adjust(now_ms, self.stats.candidates, self.limit.pages_per_s());
            }
            if self.clock.latency_ms(fault.now_ns, fault.stamp) >= self.threshold.ms() {
                return HintAction::Reject(Rejection::Cold);
            }
            self.stats.candidates += fault.pages;
            return match self.limit.admits(now_ms, self.stats.candidates, fault.pages) {
                true => HintAction::Promote,
                false => HintAction::Reject(Rejection::Limit),
            };
        }
        self.stats.candidates += fault.pages;
        HintAction::Promote
    }

    /// A folio has gone.
    pub fn promoted(&mut self, pages: u64) {
        self.stats.success += pages;
    }

    /// I9.1, I9.2, I9.3: what must hold at any time.
    ///
    /// # Errors
    /// Names the invariant that does not hold.
    pub fn validate(&self) -> Result<(), String> {
        self.limit.validate()?;
        let (s, th) = (&self.stats, &self.threshold);
        if th.adjusted_ms() != 0 && !(th.unit_ms()..=2 * th.set_ms()).contains(&th.adjusted_ms()) {
            return Err(format!("I9.2: the threshold is {} ms", th.adjusted_ms()));
        }
        if s.success > s.ordered || s.ordered > s.candidates + s.shortcut {
            return Err(format!("I9.3: {s:?}"));
        }
        if self.policy.wants_latency() && s.ordered + s.limited != s.candidates + s.shortcut {
            return Err(format!("a candidate is promoted or held back: {s:?}"));
        }
        Ok(())
    }
}

/// Whether a node has free space in plenty: some zone beyond its promotion mark (free pages, mark)
/// by a GiB or a sixteenth of the node, whichever is more.
pub fn free_space_enough(cfg: &TieringConfig, node_pages: u64, zones: impl IntoIterator<Item = (u64, u64)>) -> bool {
    let beyond = cfg.free_space_pages.max(node_pages / 16);
    zones.into_iter().any(|(free, promo)| free > promo + beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn promoter(policy: PromotionPolicy) -> Promoter {
        Promoter::new(&TieringConfig { policy, promote_rate_limit_pages_per_s: 10, ..TieringConfig::default() })
            .unwrap()
    }

    /// A page that was marked some milliseconds before it was touched at `now_ns`.
    fn touched(p: &Promoter, now_ns: u64, after_ms: u64) -> HintFault {
        let stamp = p.clock().stamp(now_ns - after_ms * 1_000_000);
        HintFault { now_ns, stamp, pages: 1, active: false, hottest: false, free_space: false }
    }

    #[test]
    fn the_base_promotes_whatever_is_touched() {
        let mut p = promoter(PromotionPolicy::Mru);
        let fault = touched(&p, 100 * S, 59_000);
        assert_eq!(p.hint_fault(&fault), HintAction::Promote);
        assert_eq!((p.stats().candidates, p.stats().ordered), (1, 1));
    }

    #[test]
    fn latency_takes_what_is_touched_within_the_threshold() {
        let mut p = promoter(PromotionPolicy::Latency);
        for (after_ms, want) in
            [(0, HintAction::Promote), (999, HintAction::Promote), (1000, HintAction::Reject(Rejection::Cold))]
        {
            let fault = touched(&p, 100 * S, after_ms);
            assert_eq!(p.hint_fault(&fault), want, "{after_ms}");
        }
        for _ in 0..100 {
            let fault = touched(&p, 100 * S, 1);
            assert_eq!(p.hint_fault(&fault), HintAction::Promote, "it has no limit");
        }
        p.validate().unwrap();
    }

    #[test]
    fn the_limit_holds_back_and_what_it_held_back_is_a_candidate() {
        let mut p = promoter(PromotionPolicy::LatencyLimit);
        let fault = touched(&p, 100 * S, 1);
        let actions: Vec<_> = (0..15).map(|_| p.hint_fault(&fault)).collect();
        assert_eq!(actions.iter().filter(|a| **a == HintAction::Promote).count(), 10);
        assert_eq!(actions[14], HintAction::Reject(Rejection::Limit));
        assert_eq!((p.stats().candidates, p.stats().limited), (15, 5));
        p.validate().unwrap();
    }

    #[test]
    fn with_free_space_there_is_no_question_and_the_threshold_is_forgotten() {
        let mut p = promoter(PromotionPolicy::LatencyLimitAuto);
        let cold = touched(&p, 100 * S, 5000);
        p.hint_fault(&cold);
        assert_eq!(p.threshold_ms(), 1125, "no candidate for 60 s");
        let room = HintFault { free_space: true, ..cold };
        assert_eq!(p.hint_fault(&room), HintAction::Promote);
        assert_eq!((p.threshold_ms(), p.stats().candidates, p.stats().shortcut), (1000, 0, 1));
        p.validate().unwrap();
    }

    #[test]
    fn two_touches_are_two_or_three() {
        let mut p = promoter(PromotionPolicy::TwoTouch);
        let first = touched(&p, 100 * S, 50_000);
        assert_eq!(p.hint_fault(&first), HintAction::Activate);
        assert_eq!(p.hint_fault(&HintFault { active: true, ..first }), HintAction::Promote, "however long it took");
        let mut p = promoter(PromotionPolicy::TwoTouchLiteral);
        assert_eq!(p.hint_fault(&first), HintAction::MarkAccessed);
        assert_eq!(p.hint_fault(&HintFault { active: true, ..first }), HintAction::Promote);
    }

    #[test]
    fn combined_wants_both_and_the_oracle_only_knowledge() {
        let mut p = promoter(PromotionPolicy::Combined);
        let (hot, cold) = (touched(&p, 100 * S, 1), touched(&p, 100 * S, 3000));
        assert_eq!(p.hint_fault(&hot), HintAction::Activate);
        assert_eq!(p.hint_fault(&HintFault { active: true, ..cold }), HintAction::Reject(Rejection::Cold));
        assert_eq!(p.hint_fault(&HintFault { active: true, ..hot }), HintAction::Promote);
        let mut p = promoter(PromotionPolicy::Oracle);
        assert_eq!(p.hint_fault(&hot), HintAction::Reject(Rejection::Cold));
        assert_eq!(p.hint_fault(&HintFault { hottest: true, ..cold }), HintAction::Promote);
    }

    #[test]
    fn free_space_is_a_gib_or_a_sixteenth_beyond_the_mark() {
        let cfg = TieringConfig::default();
        let gib = 1 << 18;
        assert!(!free_space_enough(&cfg, 8 * gib, [(gib + 100, 100)]));
        assert!(free_space_enough(&cfg, 8 * gib, [(10, 0), (gib + 101, 100)]));
        assert!(!free_space_enough(&cfg, 32 * gib, [(gib + 101, 100)]));
        assert!(free_space_enough(&cfg, 32 * gib, [(2 * gib + 101, 100)]));
    }

    #[test]
    fn every_policy_has_a_name() {
        for policy in PromotionPolicy::ALL {
            assert_eq!(policy.name().parse::<PromotionPolicy>().unwrap(), policy);
        }
        assert!("lru".parse::<PromotionPolicy>().unwrap_err().contains("two-touch-literal"));
    }
}
