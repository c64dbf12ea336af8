//! Answers of a curve: how much memory is enough, and whether more of it helps.

use super::lines::{CurveLine, Curves};
use crate::document::trace::{TraceDetail, TraceDocument};

/// Misses in percent that most services are content with.
pub const TARGET_MISSES_PERCENT: f64 = 5.0;
/// Misses in points that more memory must save to be said to help.
const POINT: f64 = 1.0;

/// Memory that is enough for [`TARGET_MISSES_PERCENT`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EnoughMemory {
    /// From this size on the target is met.
    From {
        /// The smallest size that was tried and from which on no larger one misses it.
        bytes: f64,
        /// It is the smallest size that was tried at all: less may be enough.
        is_smallest: bool,
    },
    /// No size that was tried meets it.
    Never {
        /// The fewest misses of all sizes.
        misses_percent: f64,
        /// From this size on misses are within a point of these.
        near_from_bytes: Option<f64>,
    },
}

/// Effect of more memory than some size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MoreMemory {
    /// No larger size was tried.
    Untried,
    /// It saves less than a point, or less than a tenth of the misses.
    SavesLittle,
    /// It saves more.
    Helps {
        /// The size that saves nine tenths of what can be saved.
        bytes: f64,
        /// Misses with that size.
        misses_percent: f64,
    },
}

/// Answer of the curve of the policy that pages tell most of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurveAnswer {
    /// Memory that is enough.
    pub enough: EnoughMemory,
    /// The limit of today and its misses in percent, if its size was tried.
    pub limit: Option<(f64, Option<f64>)>,
    /// The size beyond which memory is not worth its price, and its misses in percent.
    pub knee: Option<(f64, f64)>,
    /// Effect of more memory than the limit, or without one than the knee; none: neither is known.
    pub more: Option<MoreMemory>,
}

/// The best other policy of Linux, beside the one that a report tells most of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OtherPolicy<'a> {
    /// Its name.
    pub policy: &'a str,
    /// The one that it stands beside.
    pub than: &'a str,
    /// Its misses.
    pub misses_percent: f64,
    /// Whether it is better by more than both move with 2 % less or more memory.
    pub is_better: bool,
}

impl CurveLine {
    /// The smallest size from which on misses are at most `most`, and its number.
    fn at_most(&self, most: f64) -> Option<(usize, f64)> {
        let from = self.points.iter().rposition(|&(_, misses)| misses > most).map_or(0, |at| at + 1);
        Some((from, self.points.get(from)?.0))
    }

    /// Memory that is enough for [`TARGET_MISSES_PERCENT`].
    pub fn enough(&self) -> EnoughMemory {
        if let Some((number, bytes)) = self.at_most(TARGET_MISSES_PERCENT) {
            return EnoughMemory::From { bytes, is_smallest: number == 0 };
        }
        let misses_percent = self.points.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
        let near_from_bytes = self.at_most(misses_percent + POINT).map(|(_, bytes)| bytes);
        EnoughMemory::Never { misses_percent, near_from_bytes }
    }

    /// Effect of more memory than that.
    pub fn more_than(&self, bytes: f64) -> MoreMemory {
        let Some(now) = self.at(bytes) else { return MoreMemory::Untried };
        let above: Vec<_> = self.points.iter().copied().filter(|&(size, _)| size > bytes).collect();
        let best = above.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
        if above.is_empty() {
            return MoreMemory::Untried;
        }
        if now - best <= POINT || best >= 0.9 * now {
            return MoreMemory::SavesLittle;
        }
        let most = above.into_iter().find(|&(_, misses)| misses <= best + 0.1 * (now - best));
        most.map_or(MoreMemory::SavesLittle, |(bytes, misses_percent)| MoreMemory::Helps { bytes, misses_percent })
    }
}

impl Curves {
    /// Answer of the curve that pages tell most of; none: there is no curve.
    pub fn answer(&self) -> Option<CurveAnswer> {
        let line = self.main()?;
        let knee = line.knee();
        let limit = self.limit_bytes.map(|bytes| (bytes, line.at(bytes)));
        let here = limit.map(|(bytes, _)| bytes).or(knee.map(|(bytes, _)| bytes));
        Some(CurveAnswer { enough: line.enough(), limit, knee, more: here.map(|bytes| line.more_than(bytes)) })
    }
}

impl TraceDocument {
    /// The best other policy of Linux, with the memory of the details; none: there is no other, or
    /// memory ran out.
    pub fn best_other_policy(&self) -> Option<OtherPolicy<'_>> {
        let main = self.main().filter(|x| x.oom_at.is_none())?;
        let others = self.details.iter().filter(|x| x.policy != "opt" && x.policy != main.policy && x.oom_at.is_none());
        let best = others.min_by_key(|x| x.misses)?;
        Some(OtherPolicy {
            policy: &best.policy,
            than: &main.policy,
            misses_percent: best.misses_percent(),
            is_better: best.misses_span().1 < main.misses_span().0,
        })
    }
}

impl TraceDetail {
    /// Misses in percent.
    pub fn misses_percent(&self) -> f64 {
        self.percent(self.misses)
    }

    /// Least and most misses in percent, with sizes near by.
    fn misses_span(&self) -> (f64, f64) {
        let all = self.near.iter().map(|&(_, misses)| misses).chain([self.misses]).map(|misses| self.percent(misses));
        all.fold((f64::INFINITY, 0.0), |(low, high), n| (low.min(n), high.max(n)))
    }

    fn percent(&self, misses: u64) -> f64 {
        100.0 * misses as f64 / self.accesses.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const M: f64 = 1_048_576.0;

    fn answer(points: &[(f64, f64)], limit_bytes: Option<f64>) -> CurveAnswer {
        let line = CurveLine { policy: "lru".into(), points: points.to_vec(), reads: Vec::new() };
        Curves { all: vec![line], limit_bytes, ..Curves::default() }.answer().expect("a curve")
    }

    #[test]
    fn a_curve_says_how_much_is_enough_and_whether_more_helps() {
        let falls = [(M, 60.0), (2.0 * M, 30.0), (4.0 * M, 12.0), (8.0 * M, 4.0), (16.0 * M, 3.9)];
        let at_4 = answer(&falls, Some(4.0 * M));
        assert_eq!(at_4.enough, EnoughMemory::From { bytes: 8.0 * M, is_smallest: false });
        assert_eq!(at_4.limit, Some((4.0 * M, Some(12.0))));
        assert_eq!(at_4.more, Some(MoreMemory::Helps { bytes: 8.0 * M, misses_percent: 4.0 }));
        assert_eq!(answer(&falls, Some(8.0 * M)).more, Some(MoreMemory::SavesLittle));
        assert_eq!(answer(&falls, Some(16.0 * M)).more, Some(MoreMemory::Untried));
        assert_eq!(answer(&falls[3..], None).enough, EnoughMemory::From { bytes: 8.0 * M, is_smallest: true });
        let flat = answer(&[(M, 60.0), (2.0 * M, 59.5)], None);
        assert_eq!(flat.enough, EnoughMemory::Never { misses_percent: 59.5, near_from_bytes: Some(M) });
        assert_eq!(flat.more, None);
    }

    #[test]
    fn another_policy_is_better_only_beyond_the_spread() {
        let detail = |policy: &str, misses: u64, near: u64| TraceDetail {
            policy: policy.into(),
            accesses: 1000,
            misses,
            near: vec![(9, near)],
            ..TraceDetail::default()
        };
        let better = |other: TraceDetail| {
            let details = vec![detail("mglru", 200, 190), other];
            let d = TraceDocument { details, ..TraceDocument::default() };
            d.best_other_policy().map(|other| (other.is_better, other.misses_percent))
        };
        assert_eq!(better(detail("lru", 180, 195)), Some((false, 18.0)));
        assert_eq!(better(detail("lru", 150, 160)), Some((true, 15.0)));
        assert_eq!(better(detail("opt", 150, 160)), None);
    }
}
