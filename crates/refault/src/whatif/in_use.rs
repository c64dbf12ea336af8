//! Mapped pages in use, as far as the recorded kernel does not rule it out: results between those
//! of both readings (`recording/in_use.rs`).

use super::subject::{Measured, Outcome};

/// The result so far on the way from one to the other, 0 to 1.
pub(super) fn between(idle: &Outcome, in_use: &Outcome, share: f64) -> Outcome {
    if idle.failed.is_some() || in_use.failed.is_some() {
        return in_use.clone();
    }
    let mix = |a: f64, b: f64| a + share * (b - a);
    let measured = |(a, b): (&Option<Measured>, &Option<Measured>)| {
        let (a, b) = ((*a)?, (*b)?);
        Some(Measured { low: mix(a.low, b.low), value: mix(a.value, b.value), high: mix(a.high, b.high) })
    };
    Outcome { values: idle.values.iter().zip(&in_use.values).map(measured).collect(), ..in_use.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_mixed_metric_by_metric() {
        let of = |value: f64| Outcome { values: vec![Some(Measured::exact(value)), None], ..Outcome::default() };
        let mixed = between(&of(10.0), &of(20.0), 0.25);
        assert_eq!(mixed.values, [Some(Measured::exact(12.5)), None]);
        let failed = Outcome { failed: Some("out of memory"), ..Outcome::default() };
        assert_eq!(between(&of(10.0), &failed, 0.5).failed, Some("out of memory"));
    }
}
