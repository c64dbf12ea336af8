//! The difference that a change makes, and whether it is more than its uncertainty.
//!
//! A machine and a changed one are compared start by start, so that only that part of the spread
//! counts that the change itself has.

use super::subject::Measured;
use crate::size::Metric;
use crate::units::Unit;
use serde::Serialize;

/// Judgement of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectVerdict {
    /// Better by more than its uncertainty.
    Better,
    /// Worse by more than its uncertainty.
    Worse,
    /// None, or so little that it does not matter.
    Same,
    /// None, or much: bounds are far apart, and hold no difference, too.
    Unsure,
    /// Not known.
    Unknown,
}

impl EffectVerdict {
    /// In a table.
    pub fn name(self) -> &'static str {
        match self {
            EffectVerdict::Better => "better",
            EffectVerdict::Worse => "worse",
            EffectVerdict::Same => "same",
            EffectVerdict::Unsure => "unsure",
            EffectVerdict::Unknown => "not known",
        }
    }
}

/// Effect of a change on a metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WhatIfEffect {
    /// The metric.
    #[serde(serialize_with = "name_of")]
    pub metric: Metric,
    /// Its value with the change.
    pub value: f64,
    /// The difference from today's: of counts and times a part of today's, of shares in these.
    pub change: f64,
    /// The least that the difference may be.
    pub low: f64,
    /// The most that it may be.
    pub high: f64,
    /// Judgement.
    pub verdict: EffectVerdict,
}

fn name_of<S: serde::Serializer>(metric: &Metric, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(metric.name())
}

/// How far the lab may be off.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Distance {
    /// Difference, in units of the metric.
    pub(super) amount: f64,
    /// Lab and recorded kernel under today's limit, as a ratio, 1 or more; of shares as a
    /// difference.
    pub(super) baseline: f64,
    /// Differences below this are none.
    pub(super) least: f64,
}

/// Whether differences of a metric are in its unit, and not parts of it.
pub(super) fn is_share(metric: Metric) -> bool {
    matches!(metric, Metric::HitRate | Metric::RefaultsPerAccess | Metric::SwapInsPerAccess | Metric::Pressure(..))
}

impl WhatIfEffect {
    /// Effect by pairs of runs, today's first; the first pair has the likely values. None: nothing
    /// was measured.
    pub(super) fn of(metric: Metric, pairs: &[(Measured, Measured)], distance: Distance) -> Option<WhatIfEffect> {
        let &(today, other) = pairs.first()?;
        let is_share = is_share(metric);
        let difference = |today: f64, other: f64| match is_share {
            true => other - today,
            false => other / today.max(1.0) - 1.0,
        };
        let change = difference(today.value, other.value);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for (today, other) in pairs {
            low = low.min(difference(today.high, other.low));
            high = high.max(difference(today.low, other.high));
        }
        let unit = if is_share { 1.0 } else { today.value.max(1.0) };
        let off = distance.amount / unit;
        (low, high) = match is_share {
            true => (low - distance.baseline - off, high + distance.baseline + off),
            false => {
                let ratio = distance.baseline.max(1.0);
                (((1.0 + low) / ratio - 1.0 - off).max(-1.0), (1.0 + high) * ratio - 1.0 + off)
            }
        };
        let least = distance.least / unit;
        let verdict = match (low > least, high < -least) {
            (true, _) => judged(metric, true),
            (_, true) => judged(metric, false),
            _ if low.abs().max(high.abs()) <= little(metric).max(least) => EffectVerdict::Same,
            _ => EffectVerdict::Unsure,
        };
        Some(WhatIfEffect { metric, value: other.value, change, low, high, verdict })
    }

    /// A difference of this metric in words, with its sign.
    pub fn difference(&self, change: f64) -> String {
        difference(self.metric, change)
    }
}

/// A difference of a metric in words, with its sign.
fn difference(metric: Metric, change: f64) -> String {
    match metric {
        Metric::Pressure(..) => Unit::Percent.difference(change),
        _ if is_share(metric) => Unit::Percent.difference(100.0 * change),
        // Digits do not matter of what is many times as much.
        _ if change >= 10.0 => format!("x{:.0}", change + 1.0),
        _ => format!("{:+.1} %", 100.0 * change),
    }
}

/// The largest difference that does not matter: of shares in these, of others a part.
fn little(metric: Metric) -> f64 {
    match metric {
        Metric::Pressure(..) => 1.0,
        _ if is_share(metric) => 0.01,
        _ => 0.1,
    }
}

fn judged(metric: Metric, is_more: bool) -> EffectVerdict {
    match metric.grows() == is_more {
        true => EffectVerdict::Better,
        false => EffectVerdict::Worse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(metric: Metric, pairs: &[(f64, f64)], distance: Distance) -> WhatIfEffect {
        let pairs: Vec<_> = pairs.iter().map(|&(a, b)| (Measured::exact(a), Measured::exact(b))).collect();
        WhatIfEffect::of(metric, &pairs, distance).unwrap_or_else(|| panic!("pairs"))
    }

    #[test]
    fn a_difference_counts_if_every_start_has_it() {
        let worse = of(Metric::Misses, &[(100.0, 120.0), (200.0, 210.0)], Distance::default());
        assert_eq!((worse.verdict, worse.value), (EffectVerdict::Worse, 120.0));
        assert!((worse.low - 0.05).abs() < 1e-9 && (worse.high - 0.2).abs() < 1e-9);
        let same = of(Metric::Misses, &[(100.0, 105.0), (200.0, 190.0)], Distance::default());
        assert_eq!(same.verdict, EffectVerdict::Same);
        let better = of(Metric::HitRate, &[(0.5, 0.6), (0.5, 0.55)], Distance::default());
        assert_eq!((better.verdict, better.difference(better.change)), (EffectVerdict::Better, "+10.00 points".into()));
    }

    #[test]
    fn regression_a_machine_of_two_states_is_not_called_the_same() {
        // Working sets that switch, 6.12 to 6.18: with 4 % less memory 6.12 is as bad.
        let pairs = [(0.942, 0.636), (0.94, 0.634), (0.944, 0.64), (0.645, 0.6448), (0.945, 0.64)];
        let of = of(Metric::HitRate, &pairs, Distance { amount: 0.002, ..Distance::default() });
        assert_eq!((of.verdict, of.low < -0.3), (EffectVerdict::Unsure, true));
    }

    #[test]
    fn the_distance_of_the_lab_is_uncertainty() {
        let pairs = [(1000.0, 1100.0)];
        let far = Distance { baseline: 1.2, ..Distance::default() };
        assert_eq!(of(Metric::Misses, &pairs, far).verdict, EffectVerdict::Unsure);
        let off = Distance { amount: 90.0, ..Distance::default() };
        assert_eq!(of(Metric::Misses, &pairs, off).verdict, EffectVerdict::Worse);
        let few = Distance { least: 150.0, ..Distance::default() };
        assert_eq!(of(Metric::Misses, &pairs, few).verdict, EffectVerdict::Same);
        let open = (Measured::exact(1000.0), Measured { low: 900.0, value: 1200.0, high: 1300.0 });
        let open = WhatIfEffect::of(Metric::Misses, &[open], Distance::default()).unwrap_or_else(|| panic!("a pair"));
        assert_eq!((open.verdict, open.change > 0.19), (EffectVerdict::Unsure, true));
    }
}
