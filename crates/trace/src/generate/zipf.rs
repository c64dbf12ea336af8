//! Zipf-distributed ranks by rejection-inversion (Hörmann and Derflinger, 1996): any skew.

use std::sync::{Arc, OnceLock};

use super::guide::{CELLS, Guide};
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
    /// Distance below a rank within which draws are accepted without looking.
    safe: f64,
    /// Draws so far, until there is a guide.
    draws: usize,
    /// Says most ranks without the functions of the curve. Made when it is worth it, once for all
    /// clones.
    guide: Arc<OnceLock<Guide>>,
}

impl Zipf {
    /// A distribution over `n` >= 1 ranks; `skew` >= 0.
    pub fn new(n: u32, skew: f64) -> Self {
        let mut zipf = Self { n: n.max(1), skew, area_n: 0.0, area_1: 0.0, safe: 0.0, draws: 0, guide: Arc::default() };
        zipf.area_n = zipf.integral(f64::from(zipf.n) + 0.5);
        zipf.area_1 = zipf.integral(1.5) - 1.0;
        zipf.safe = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.bar(2.0));
        zipf
    }

    /// A rank for a stream of numbers in [0, 1).
    pub fn rank(&mut self, mut unit: impl FnMut() -> f64) -> u32 {
        if self.guide.get().is_none() {
            self.draws += 1;
            if self.draws >= CELLS {
                let slope = |x| 1.0 / self.bar(x);
                self.guide.get_or_init(|| Guide::of_growing([self.area_1, self.area_n], |a| self.inverse(a), slope));
            }
        }
        loop {
            let area = self.area_n + unit() * (self.area_1 - self.area_n);
            let guided = self.guide.get().and_then(|guide| self.guided(guide, area));
            if let Some(rank) = guided.or_else(|| self.accept(area)) {
                return rank;
            }
        }
    }

    /// The same ranks and skew: a clone draws alike, and shares the table that makes it fast.
    pub fn is_of(&self, n: u32, skew: f64) -> bool {
        self.n == n.max(1) && self.skew == skew
    }

    /// The rank of an area, if the value there is surely one that is rounded to it and so near
    /// below it that the draw is accepted.
    #[inline]
    fn guided(&self, guide: &Guide, area: f64) -> Option<u32> {
        let (x, error) = guide.value(area)?;
        let rank = (x + 0.5) as u32;
        let below = f64::from(rank) - x;
        let is_sure = below - error > -0.5 && below + error < 0.5 && below + error <= self.safe;
        (is_sure && (1..=self.n).contains(&rank)).then_some(rank)
    }

    /// The rank of an area, unless the draw is rejected.
    fn accept(&self, area: f64) -> Option<u32> {
        let x = self.inverse(area);
        // The cast saturates, so that a rounding below 1 or above n stays in range.
        let rank = ((x + 0.5) as u32).clamp(1, self.n);
        let k = f64::from(rank);
        (k - x <= self.safe || area >= self.integral(k + 0.5) - self.bar(k)).then_some(rank)
    }

    pub(super) fn draw(&mut self, rng: &mut Rng) -> u32 {
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
                let mut zipf = Zipf::new(n, skew);
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

    /// With and without a guide the same numbers give the same ranks.
    #[test]
    fn a_guide_changes_no_rank() {
        const DRAWS: u32 = 300_000;
        for skew in [0.0, 0.3, 0.6, 0.99, 1.0, 1.000_000_001, 1.01, 1.2, 1.5, 2.0, 3.0, 8.0] {
            for n in [1u32, 2, 3, 100, 5000, 262_144, 40_000_000, u32::MAX] {
                let mut zipf = Zipf::new(n, skew);
                let (mut rng, mut again) = (Rng::new(3, &[u64::from(n)]), Rng::new(3, &[u64::from(n)]));
                let plain = zipf.clone();
                for i in 0..DRAWS {
                    let expected = loop {
                        let area = plain.area_n + again.unit() * (plain.area_1 - plain.area_n);
                        if let Some(rank) = plain.accept(area) {
                            break rank;
                        }
                    };
                    assert_eq!(zipf.draw(&mut rng), expected, "skew {skew}, n {n}, draw {i}");
                }
                assert!(zipf.guide.get().is_some());
            }
        }
    }

    /// The guide answers nearly all draws of the distributions that workloads use.
    #[test]
    fn a_guide_is_rarely_without_an_answer() {
        for (skew, n, least) in [(0.99, 1_000_000, 0.85), (1.0, 262_144, 0.85), (1.2, 256_000, 0.85)] {
            let mut zipf = Zipf::new(n, skew);
            let mut rng = Rng::new(3, &[]);
            (0..CELLS).for_each(|_| assert!(zipf.draw(&mut rng) <= n));
            let guide = zipf.guide.get().expect("a guide after as many draws as it has cells");
            let area = |unit: f64| zipf.area_n + unit * (zipf.area_1 - zipf.area_n);
            let known = (0..100_000).filter(|_| zipf.guided(guide, area(rng.unit())).is_some()).count();
            assert!(known as f64 / 1e5 > least, "skew {skew}, n {n}: {known} of 100,000");
        }
    }
}
