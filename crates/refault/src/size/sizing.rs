//! The result of a search.

use super::grid::Grid;
use super::request::Limit;
use super::search::{Probe, SizeVerdict};
use super::summary::SizeSummary;
use super::target::MetricTarget;
use crate::memory_size::DistinctSizes;
use crate::replay::sample::OneIn;

/// Result at one size.
#[derive(Clone, Debug)]
pub struct Point {
    /// The size in pages.
    pub pages: u64,
    /// Value of the metric; none if nothing was measured.
    pub value: Option<f64>,
    /// Why no target is met, whatever the value is.
    pub failed: Option<&'static str>,
    /// Whether the target is.
    pub met: bool,
    /// The value at the least and at the most, where it is known no better.
    pub bounds: Option<(f64, f64)>,
    /// Figures beside it, by their names in JSON.
    pub beside: Vec<(&'static str, Figure)>,
}

/// A number beside the metric, by how people read it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// A number of things.
    Count(u64),
    /// Any number.
    Number(f64),
    /// 0 to 1.
    Share(f64),
    /// In percent.
    Percent(f64),
    /// A time.
    Nanoseconds(u64),
    /// A size.
    Bytes(u64),
}

impl Probe for Point {
    fn is_met(&self) -> bool {
        self.met
    }
}

/// A search that is over, or a summary.
#[derive(Clone, Debug)]
pub struct Sizing {
    /// Name of the scenario or trace.
    pub name: String,
    /// The path of the group; `/` is all.
    pub group: String,
    /// The limit that was tried.
    pub limit: Limit,
    /// The condition that must hold; of a summary, no misses.
    pub target: MetricTarget,
    /// The policy with its overrides, in words.
    pub policy: String,
    /// The seed of everything random.
    pub seed: u64,
    /// Divisor of the sizes and times of a scenario.
    pub scale: f64,
    /// Bytes a page.
    pub page_size: u64,
    /// The sizes that could be tried.
    pub grid: Grid,
    /// Sizes that were tried, ascending.
    pub points: Vec<Point>,
    /// The conclusion.
    pub verdict: SizeVerdict,
    /// Conclusions without a target; none: there was one.
    pub summary: Option<SizeSummary>,
    /// Figures of the recorded limit; none: it is no recording, or one without a limit.
    pub recorded: Option<Recorded>,
    /// Others bring in what a recorded group reads: no size is certain to do without them.
    pub rests_on_others: bool,
    /// Difference between the lab and the recorded kernel; none: there is no limit, or no kernel.
    pub baseline: Option<Baseline>,
    /// Columns that are marked: the lab is not as the recorded kernel there.
    pub doubted: Vec<&'static str>,
    /// Remarks on what a recording leaves open.
    pub notes: Vec<String>,
    /// Samples behind the estimates; none: all was replayed.
    pub sampled: Option<Sampled>,
}

/// Samples that values were estimated by.
#[derive(Clone, Copy, Debug)]
pub struct Sampled {
    /// Pages that each page of a sample stands for.
    pub one_in: OneIn,
    /// Number of samples.
    pub samples: u32,
}

/// The metric of a target under the recorded limit, beside the recorded kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Baseline {
    /// The recorded limit; `u64::MAX`: there was none.
    pub pages: u64,
    /// Value of the metric in the kernel.
    pub kernel: f64,
    /// Value of the metric in the lab.
    pub lab: f64,
    /// Trust in the lab for this metric.
    pub trust: Confidence,
}

/// Trust in an answer that comes from the lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    /// As it is.
    Whole,
    /// With bounds that are as far apart as lab and kernel.
    Widened,
    /// Not at all.
    Refused,
}

impl Confidence {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Confidence::Whole => "whole",
            Confidence::Widened => "widened",
            Confidence::Refused => "refused",
        }
    }
}

/// Costs of a recorded limit, beside the costs of other limits.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Limit in pages.
    pub pages: u64,
    /// Misses with this limit.
    pub misses: u64,
    /// Bytes read from disks.
    pub read_bytes: u64,
    /// Other sizes.
    pub changes: Vec<Change>,
}

/// Another size in the place of the recorded one.
#[derive(Clone, Debug)]
pub struct Change {
    /// Size in pages.
    pub pages: u64,
    /// Size in words.
    pub words: &'static str,
    /// Misses with this size.
    pub misses: u64,
    /// Bytes read from disks.
    pub read_bytes: u64,
    /// Object that most of the difference is due to.
    pub object: Option<SizedObject>,
    /// Whether it has no room for memory besides files.
    pub is_out_of_memory: bool,
}

/// An object and its share of a difference, 0 to 1.
#[derive(Clone, Debug)]
pub struct SizedObject {
    /// Its name.
    pub name: String,
    /// Its share.
    pub share: f64,
}

impl Change {
    /// Increase in misses, as a share of the misses with the recorded limit; none: there were no
    /// misses.
    pub fn more(&self, recorded: &Recorded) -> Option<f64> {
        (recorded.misses > 0).then(|| self.misses as f64 / recorded.misses as f64 - 1.0)
    }
}

/// The name of the standard error of an estimate among the figures of a point.
pub(super) const STANDARD_ERROR: &str = "standard_error";

/// Standard errors between an estimate and a bound, from which on they differ for certain.
const ERRORS: f64 = 2.0;

/// A value counts as worse than one at a smaller size only if it is so by this part of the span of
/// all values.
const NOISE: f64 = 0.1;

impl Sizing {
    /// The smallest size that meets the target, as far as is known.
    pub fn answer(&self) -> Option<u64> {
        match self.verdict {
            SizeVerdict::Found(pages) | SizeVerdict::MetAtSmallest(pages) => Some(pages),
            SizeVerdict::NotMet | SizeVerdict::NotTrusted => None,
        }
    }

    /// Smallest size from which on every size that was tried meets the target even at its worse
    /// bound.
    pub fn certain(&self) -> Option<u64> {
        let meets = |point: &Point| point.failed.is_none() && self.worst(point).is_some_and(|v| self.target.is_met(v));
        self.smallest(meets).filter(|_| !self.rests_on_others)
    }

    /// The same at its better bound.
    pub fn hopeful(&self) -> Option<u64> {
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
    pub fn verdict_name(&self) -> &'static str {
        match self.verdict {
            SizeVerdict::Found(_) => "found",
            SizeVerdict::MetAtSmallest(_) => "met-at-smallest",
            SizeVerdict::NotMet => "not-met",
            SizeVerdict::NotTrusted => "not-trusted",
        }
    }

    /// Two sizes: the smaller one meets the target, and the larger one does not.
    pub fn contradiction(&self) -> Option<(&Point, &Point)> {
        let fails = self.points.iter().rposition(|p| !p.met)?;
        let meets = self.points[..fails].iter().find(|p| p.met)?;
        Some((meets, &self.points[fails]))
    }

    /// Two sizes between which the value gets worst although memory grows, if by more than the
    /// noise of runs.
    pub fn reversal(&self) -> Option<(&Point, &Point)> {
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

    /// The answer, or else the size below it, if its estimate cannot be told from the target's
    /// bound.
    pub fn uncertain(&self) -> Option<&Point> {
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
    pub fn is_monotone(&self) -> bool {
        self.contradiction().is_none() && self.reversal().is_none()
    }

    /// A size as people read it, exact enough to tell the sizes tried apart.
    pub fn size_in_words(&self, pages: u64) -> String {
        let of_points = self.points.iter().map(|point| point.pages * self.page_size);
        DistinctSizes::of(&of_points.collect::<Vec<_>>()).human(pages.saturating_mul(self.page_size))
    }

    /// The value of a point as people read it.
    pub fn value_in_words(&self, point: &Point) -> String {
        point.value.map_or_else(|| "-".to_owned(), |value| self.target.metric().show(value))
    }

    /// Reasons why the answer is less than certain.
    pub fn warnings(&self) -> Vec<String> {
        let at = |p: &Point| {
            let value = p.failed.map_or_else(|| self.value_in_words(p), str::to_owned);
            format!("{value} at {}", self.size_in_words(p.pages))
        };
        let mut all = Vec::new();
        if let Some((smaller, larger)) = self.contradiction() {
            all.push(format!(
                "the curve is not monotone: the target is met with {} and not with {}; other sizes below the answer may \
                 meet it",
                at(smaller),
                at(larger)
            ));
        } else if let Some((smaller, larger)) = self.reversal() {
            all.push(format!("the curve is not monotone: {}, but {}", at(smaller), at(larger)));
        }
        if let Some(point) = self.uncertain() {
            all.push(format!(
                "{} is within two standard errors of the target; larger samples (--sample), or more of them (--salts), \
                 tell",
                at(point)
            ));
        }
        let metric = self.target.metric();
        if self.scale != 1.0 && metric.needs_machine() && metric.name().contains(".avg") {
            all.push(format!(
                "times are divided by {}, but the averages of pressure are not; the figure is that of a shorter run",
                self.scale
            ));
        }
        all
    }
}
