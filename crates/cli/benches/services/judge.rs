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
    /// The command says that it cannot know.
    Refused,
}

/// One figure.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    pub name: &'static str,
    pub promised: Figure,
    pub truth: f64,
    pub verdict: Verdict,
}

impl Cell {
    fn new(name: &'static str, promised: &Figure, truth: f64, near: f64, refused: bool) -> Cell {
        let verdict = match (refused, promised.value, promised.interval) {
            (true, ..) => Verdict::Refused,
            (_, None, None) => Verdict::NotPromised,
            (_, Some(value), _) if (value - truth).abs() <= near => Verdict::Within,
            (_, _, Some((low, high))) if (low..=high).contains(&truth) => Verdict::Inside,
            _ => Verdict::Off,
        };
        Cell { name, promised: promised.clone(), truth, verdict }
    }

    pub fn is_rate(&self) -> bool {
        self.name == "hit_rate"
    }
}

/// All figures of a limit. A count may also be off by a thousandth of the accesses.
pub fn cells(promise: &Promise, truth: &Truth) -> Vec<Cell> {
    let few = truth.accesses as f64 / 1000.0;
    let count = |name, promised: &Figure, truth: u64| {
        let truth = truth as f64;
        Cell::new(name, promised, truth, (truth * PART).max(few), promise.refused.is_some())
    };
    vec![
        Cell::new("hit_rate", &promise.hit_rate, truth.hit_rate(), POINTS / 100.0, promise.refused.is_some()),
        count("misses", &promise.misses, truth.misses),
        count("disk_pages", &promise.disk_pages, truth.disk_pages),
        count("refaults", &promise.refaults, truth.refaults),
    ]
}
