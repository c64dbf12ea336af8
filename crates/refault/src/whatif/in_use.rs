//! Mapped pages in use, as far as the recorded kernel does not rule it out.
//!
//! A machine runs once as if nothing was touched after the fault that mapped it, and once as if all
//! of it was in use (`recording/in_use.rs`). Programs are between. Where the two differ on today's
//! machine, its kernel says where.

use super::subject::{Measured, Outcome};

/// Share of the accesses that today's run may be off for other reasons: as far as `size` and
/// `whatif` trust a recording as a whole.
const OFF: f64 = 0.005;

/// Misses of today's machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct TodaysMisses {
    /// Misses without touches of what is mapped.
    pub(super) idle: f64,
    /// Misses with touches of all of it.
    pub(super) in_use: f64,
    /// Misses of the kernel.
    pub(super) kernel: f64,
    /// Accesses.
    pub(super) accesses: f64,
}

impl TodaysMisses {
    /// The largest share of the way from idle to in use that the kernel leaves open, 0 to 1.
    pub(super) fn most_in_use(self) -> f64 {
        let off = OFF * self.accesses;
        let way = self.in_use - self.idle;
        if way.abs() <= off {
            return 1.0;
        }
        ((self.kernel - self.idle + off * way.signum()) / way).clamp(0.0, 1.0)
    }
}

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
    fn the_kernel_says_how_much_may_be_in_use() {
        let of =
            |in_use: f64, kernel: f64| TodaysMisses { idle: 100.0, in_use, kernel, accesses: 2000.0 }.most_in_use();
        // Ten misses of distance are allowed.
        assert_eq!([of(200.0, 100.0), of(200.0, 140.0), of(200.0, 195.0), of(200.0, 50.0)], [0.1, 0.5, 1.0, 0.0]);
        assert_eq!([of(110.0, 100.0), of(92.0, 300.0)], [1.0, 1.0], "today's machine does not tell");
        assert_eq!(of(50.0, 75.0), 0.7, "fewer misses with more in use");
    }

    #[test]
    fn results_are_mixed_metric_by_metric() {
        let of = |value: f64| Outcome { values: vec![Some(Measured::exact(value)), None], ..Outcome::default() };
        let mixed = between(&of(10.0), &of(20.0), 0.25);
        assert_eq!(mixed.values, [Some(Measured::exact(12.5)), None]);
        let failed = Outcome { failed: Some("out of memory"), ..Outcome::default() };
        assert_eq!(between(&of(10.0), &failed, 0.5).failed, Some("out of memory"));
    }
}
