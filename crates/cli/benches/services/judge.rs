//! A promise beside the truth.

use crate::promise::{Figure, Promise};
use crate::truth::Truth;
use serde::Serialize;

/// Points of a hit rate, and the part of other figures, by which a promise may be off.
const POINTS: f64 = 1.0;
const PART: f64 = 0.1;

/// How a cell is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Within 1 point, or 10 %.
    Within,
    /// Off by more, and the interval has the truth.
    Inside,
    /// Outside of both.
    Off,
    /// No such figure is given.
    NotPromised,
    /// The command says that it cannot know, or that this figure is not to be trusted.
    Refused,
}

/// One figure.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    pub name: &'static str,
    pub promised: Figure,
    /// The lowest and the highest of the runs.
    pub truth: (f64, f64),
    pub verdict: Verdict,
}

impl Cell {
    fn new(name: &'static str, promised: &Figure, truth: (f64, f64), near: f64, refused: bool) -> Cell {
        // Bounds of counts come from rates.
        let round = if name == "hit_rate" { 1e-9 } else { 0.5 };
        let is_near = |value: f64| (truth.0 - near..=truth.1 + near).contains(&value);
        let verdict = match (refused, promised.value, promised.interval) {
            (true, ..) => Verdict::Refused,
            (_, None, None) => Verdict::NotPromised,
            (_, Some(value), _) if is_near(value) => Verdict::Within,
            (_, _, Some((low, high))) if low <= truth.1 + round && truth.0 - round <= high => Verdict::Inside,
            _ => Verdict::Off,
        };
        Cell { name, promised: promised.clone(), truth, verdict }
    }

    pub fn is_rate(&self) -> bool {
        self.name == "hit_rate"
    }
}

/// All figures of a limit, beside those of one run or several. A count may also be off by a
/// thousandth of the accesses.
pub fn cells(promise: &Promise, runs: &[Truth]) -> Vec<Cell> {
    let few = runs.iter().map(|run| run.accesses).max().unwrap_or(0) as f64 / 1000.0;
    let ends = |of: fn(&Truth) -> f64| {
        let values = runs.iter().map(of);
        (values.clone().fold(f64::INFINITY, f64::min), values.fold(0.0, f64::max))
    };
    let refused = |metric| promise.refused.is_some() || promise.not_for.contains_key(metric);
    let count = |name, metric, promised: &Figure, of: fn(&Truth) -> f64| {
        let truth = ends(of);
        Cell::new(name, promised, truth, (truth.1 * PART).max(few), refused(metric))
    };
    vec![
        Cell::new("hit_rate", &promise.hit_rate, ends(Truth::hit_rate), POINTS / 100.0, refused("hit_rate")),
        count("misses", "misses", &promise.misses, |run| run.misses as f64),
        count("disk_pages", "disk_reads", &promise.disk_pages, |run| run.disk_pages as f64),
        count("refaults", "refaults", &promise.refaults, |run| run.refaults as f64),
    ]
}
