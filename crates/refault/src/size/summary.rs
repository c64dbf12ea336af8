//! Costs of other sizes, where nobody asked for a target: beyond which one memory is not worth its
//! price, and what can be cut.

use super::sizing::{Point, Recorded};
use crate::curve::knee_by_price;

/// Share by which misses may grow where memory is cut.
const CUT: f64 = 0.02;

/// Conclusions from the misses of several sizes, as places among the points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeSummary {
    /// Place of the size beyond which memory is not worth its price; none: the smallest does as
    /// well.
    pub knee: Option<usize>,
    /// Place of the smallest size with at most 2 % more misses; none: nothing can be cut.
    pub cut: Option<usize>,
}

impl SizeSummary {
    pub(super) fn of(points: &[Point], recorded: Option<&Recorded>) -> SizeSummary {
        let curve: Vec<_> = points.iter().filter_map(|p| Some((p.pages as f64, p.value?))).collect();
        let place = |pages: f64| points.iter().position(|p| p.pages as f64 == pages);
        let knee = knee_by_price(&curve).and_then(|at| place(curve[at].0));
        // The start is the memory that a recording had, or all that a trace touches.
        let from = match recorded {
            Some(recorded) => place(recorded.pages as f64),
            None => points.len().checked_sub(1),
        };
        let worst = |p: &Point| p.bounds.map(|of| of.1).or(p.value);
        let enough = from.and_then(|at| Some(points[at].value? * (1.0 + CUT)));
        let cut = enough.zip(from).map(|(enough, from)| {
            let fails = |p: &Point| worst(p).is_none_or(|misses| misses > enough);
            points[..from].iter().rposition(fails).map_or(0, |failed| failed + 1).min(from)
        });
        SizeSummary { knee, cut: cut.filter(|cut| Some(*cut) != from) }
    }
}
