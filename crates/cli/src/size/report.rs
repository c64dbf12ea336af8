//! Findings of a search.

use super::grid::Grid;
use super::search::{Probe, Verdict};
use super::target::Target;
use crate::replay::sample::OneIn;

/// Result at one size.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub(super) pages: u64,
    /// Value of the metric; none if nothing was measured.
    pub(super) value: Option<f64>,
    /// Why no target is met, whatever the value is.
    pub(super) failed: Option<&'static str>,
    pub(super) met: bool,
    /// The value at the least and at the most, where it is known no better.
    pub(super) bounds: Option<(f64, f64)>,
    /// Figures beside it, by their names in JSON.
    pub(super) beside: Vec<(&'static str, Figure)>,
}

/// A number beside the metric, by how people read it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Figure {
    Count(u64),
    Number(f64),
    /// 0 to 1.
    Share(f64),
    /// In percent.
    Percent(f64),
    Nanoseconds(u64),
    Bytes(u64),
}

impl Probe for Point {
    fn is_met(&self) -> bool {
        self.met
    }
}

/// A search that is over.
#[derive(Debug)]
pub(super) struct Report {
    /// Name of the scenario or trace.
    pub(super) name: String,
    pub(super) group: String,
    /// The name of the file of the limit in cgroupfs.
    pub(super) limit: &'static str,
    pub(super) target: Target,
    /// With its overrides.
    pub(super) policy: String,
    pub(super) seed: u64,
    pub(super) scale: f64,
    pub(super) page_size: u64,
    pub(super) grid: Grid,
    /// By size.
    pub(super) points: Vec<Point>,
    pub(super) verdict: Verdict,
    /// Figures of the recorded limit; none: it is no recording, or one without a limit.
    pub(super) recorded: Option<Recorded>,
    /// Others bring in what a recorded group reads: no size is certain to do without them.
    pub(super) rests_on_others: bool,
    /// How near the lab is to the recorded kernel; none: there is no limit, or no kernel.
    pub(super) baseline: Option<Baseline>,
    /// Columns that are marked: the lab is not as the recorded kernel there.
    pub(super) doubted: Vec<&'static str>,
    /// Remarks on what a recording leaves open.
    pub(super) notes: Vec<String>,
    /// Samples behind the estimates; none: all was replayed.
    pub(super) sampled: Option<Sampled>,
}

/// Samples that values were estimated by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampled {
    pub(super) one_in: OneIn,
    pub(super) samples: u32,
}

/// The metric of a target under the recorded limit, beside the recorded kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Baseline {
    pub(super) pages: u64,
    pub(super) kernel: f64,
    pub(super) lab: f64,
    pub(super) trust: Trust,
}

/// How far an answer is to be trusted that comes from the lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// As it is.
    Whole,
    /// With bounds that are as far apart as lab and kernel.
    Widened,
    /// Not at all.
    Refused,
}

impl Trust {
    /// Its name in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Trust::Whole => "whole",
            Trust::Widened => "widened",
            Trust::Refused => "refused",
        }
    }
}

/// Costs of a recorded limit, beside those of others.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    pub(super) pages: u64,
    pub(super) misses: u64,
    pub(super) read_bytes: u64,
    pub(super) changes: Vec<Change>,
}

/// Another size in the place of the recorded one.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) pages: u64,
    /// How much it is, for people.
    pub(super) words: &'static str,
    pub(super) misses: u64,
    pub(super) read_bytes: u64,
    /// Object that most of the difference is due to.
    pub(super) object: Option<Object>,
    pub(super) is_out_of_memory: bool,
}

/// An object and its share of a difference, 0 to 1.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) name: String,
    pub(super) share: f64,
}

impl Change {
    /// How many more misses it has, as a part of those with the recorded limit; none: there were
    /// none.
    pub(super) fn more(&self, recorded: &Recorded) -> Option<f64> {
        (recorded.misses > 0).then(|| self.misses as f64 / recorded.misses as f64 - 1.0)
    }
}

/// The name of the standard error of an estimate among the figures of a point.
pub(super) const STANDARD_ERROR: &str = "standard_error";

/// Estimates are told apart from a bound that is further away than so many standard errors.
const ERRORS: f64 = 2.0;

/// A value counts as worse than one at a smaller size only if it is so by this part of the span of
/// all values.
const NOISE: f64 = 0.1;

impl Report {
    /// The smallest size that meets the target, as far as is known.
    pub(super) fn answer(&self) -> Option<u64> {
        match self.verdict {
            Verdict::Found(pages) | Verdict::MetAtSmallest(pages) => Some(pages),
            Verdict::NotMet | Verdict::NotTrusted => None,
        }
    }

    /// The smallest size from which on every one that was tried meets the target also at its worse
    /// bound.
    pub(super) fn certain(&self) -> Option<u64> {
        let meets = |point: &Point| point.failed.is_none() && self.worst(point).is_some_and(|v| self.target.is_met(v));
        self.smallest(meets).filter(|_| !self.rests_on_others)
    }

    /// The same at its better bound.
    pub(super) fn hopeful(&self) -> Option<u64> {
        let meets = |point: &Point| point.failed.is_none() && self.best(point).is_some_and(|v| self.target.is_met(v));
        self.smallest(meets)
    }

    fn smallest(&self, meets: impl Fn(&Point) -> bool) -> Option<u64> {
        let first = self.points.iter().rposition(|point| !meets(point)).map_or(0, |failed| failed + 1);
        self.points.get(first).map(|point| point.pages)
    }

    fn worst(&self, point: &Point) -> Option<f64> {
        let (least, most) = point.bounds.or(point.value.map(|value| (value, value)))?;
        Some(if self.target.metric().grows() { least } else { most })
    }

    fn best(&self, point: &Point) -> Option<f64> {
        let (least, most) = point.bounds.or(point.value.map(|value| (value, value)))?;
        Some(if self.target.metric().grows() { most } else { least })
    }

    /// The verdict as a word.
    pub(super) fn verdict_name(&self) -> &'static str {
        match self.verdict {
            Verdict::Found(_) => "found",
            Verdict::MetAtSmallest(_) => "met-at-smallest",
            Verdict::NotMet => "not-met",
            Verdict::NotTrusted => "not-trusted",
        }
    }

    /// Two sizes of which the smaller meets the target and the larger does not.
    pub(super) fn contradiction(&self) -> Option<(&Point, &Point)> {
        let fails = self.points.iter().rposition(|p| !p.met)?;
        let meets = self.points[..fails].iter().find(|p| p.met)?;
        Some((meets, &self.points[fails]))
    }

    /// The two sizes where the value gets worst although memory grows: by more than runs differ
    /// from each other anyway.
    pub(super) fn reversal(&self) -> Option<(&Point, &Point)> {
        let sign = if self.target.metric().grows() { 1.0 } else { -1.0 };
        let known: Vec<_> = self.points.iter().filter(|p| p.failed.is_none()).collect();
        let good = |p: &Point| p.value.map_or(0.0, |value| sign * value);
        let best = known.iter().map(|p| good(p)).fold(f64::NEG_INFINITY, f64::max);
        let worst = known.iter().map(|p| good(p)).fold(f64::INFINITY, f64::min);
        let mut found: Option<(&Point, &Point, f64)> = None;
        for (n, larger) in known.iter().enumerate() {
            for smaller in &known[..n] {
                let loss = good(smaller) - good(larger);
                if loss > NOISE * (best - worst) && found.is_none_or(|(_, _, most)| loss > most) {
                    found = Some((smaller, larger, loss));
                }
            }
        }
        found.map(|(smaller, larger, _)| (smaller, larger))
    }

    /// First of the answer and the size below it whose estimate cannot be told from the bound.
    pub(super) fn uncertain(&self) -> Option<&Point> {
        let answer = self.answer()?;
        let near = self.points.iter().filter(|p| p.pages <= answer).rev().take(2);
        let is_near = |p: &&Point| {
            let error = p.beside.iter().find_map(|&(name, figure)| match figure {
                Figure::Share(error) if name == STANDARD_ERROR => Some(error),
                _ => None,
            });
            let (Some(error), Some(value)) = (error, p.value) else { return false };
            (value - self.target.bound()).abs() < ERRORS * error
        };
        near.into_iter().find(is_near)
    }

    /// Whether what was seen goes one way.
    pub(super) fn is_monotone(&self) -> bool {
        self.contradiction().is_none() && self.reversal().is_none()
    }
}
