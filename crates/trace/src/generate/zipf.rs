//! Zipf-distributed ranks by rejection-inversion (Hörmann and Derflinger, 1996): any skew, no
//! table.

use super::rng::Rng;

/// Draws ranks 1 to n with probabilities proportional to rank^-skew.
///
/// The curve x^-skew is integrated, inverted, and a draw is rejected where the curve and the
/// histogram differ; fewer than one draw in five is.
#[derive(Clone, Debug)]
pub struct Zipf {
    n: u32,
    skew: f64,
    /// The integral at n + 1/2.
    area_n: f64,
    /// The integral at 3/2, less the whole bar of rank 1.
    area_1: f64,
    /// Draws this close below a rank are accepted without looking.
    safe: f64,
}

impl Zipf {
    /// A distribution over `n` >= 1 ranks; `skew` >= 0.
    pub fn new(n: u32, skew: f64) -> Self {
        let mut zipf = Self { n: n.max(1), skew, area_n: 0.0, area_1: 0.0, safe: 0.0 };
        zipf.area_n = zipf.integral(f64::from(zipf.n) + 0.5);
        zipf.area_1 = zipf.integral(1.5) - 1.0;
        zipf.safe = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.bar(2.0));
        zipf
    }

    /// A rank for a stream of numbers in [0, 1).
    pub fn rank(&self, mut unit: impl FnMut() -> f64) -> u32 {
        loop {
            let area = self.area_n + unit() * (self.area_1 - self.area_n);
            let x = self.inverse(area);
            // The cast saturates, so that a rounding below 1 or above n stays in range.
            let rank = ((x + 0.5) as u32).clamp(1, self.n);
            let k = f64::from(rank);
            if k - x <= self.safe || area >= self.integral(k + 0.5) - self.bar(k) {
                return rank;
            }
        }
    }

    pub(super) fn draw(&self, rng: &mut Rng) -> u32 {
        self.rank(|| rng.unit())
    }

    /// x^-skew.
    fn bar(&self, x: f64) -> f64 {
        libm::exp(-self.skew * libm::log(x))
    }

    /// The integral of x^-skew from 1 to x, also where skew is 1 and the textbook form divides by
    /// zero.
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        expm1_over((1.0 - self.skew) * log) * log
    }

    fn inverse(&self, area: f64) -> f64 {
        // Below -1 there is no such x; only rounding gets there.
        let t = (area * (1.0 - self.skew)).max(-1.0);
        libm::exp(log1p_over(t) * area)
    }
}

/// (e^t - 1) / t, and its series where that cancels.
fn expm1_over(t: f64) -> f64 {
    if t.abs() > 1e-8 { libm::expm1(t) / t } else { 1.0 + t * 0.5 * (1.0 + t / 3.0) }
}

/// ln(1 + t) / t, and its series where that cancels.
fn log1p_over(t: f64) -> f64 {
    if t.abs() > 1e-8 { libm::log1p(t) / t } else { 1.0 - t * (0.5 - t / 3.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every rank's count is within five standard deviations of what the definition says.
    #[test]
    fn frequencies_follow_the_definition() {
        const DRAWS: u32 = 200_000;
        for skew in [0.0, 0.5, 0.99, 1.0, 1.2, 2.5] {
            for n in [1u32, 2, 10, 1000] {
                let zipf = Zipf::new(n, skew);
                let mut rng = Rng::new(7, &[u64::from(n)]);
                let mut counts = vec![0u32; n as usize + 1];
                for _ in 0..DRAWS {
                    counts[zipf.draw(&mut rng) as usize] += 1;
                }
                let total: f64 = (1..=n).map(|k| f64::from(k).powf(-skew)).sum();
                for (k, count) in counts.iter().enumerate().skip(1) {
                    let p = (k as f64).powf(-skew) / total;
                    let mean = p * f64::from(DRAWS);
                    let slack = 5.0 * (mean * (1.0 - p)).sqrt() + 3.0;
                    let off = (f64::from(*count) - mean).abs();
                    assert!(off <= slack, "skew {skew} n {n} rank {k}: {count}, not {mean}");
                }
            }
        }
    }
}
