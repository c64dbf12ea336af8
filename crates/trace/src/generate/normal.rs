//! Normally distributed places (Box and Muller, 1958).

use std::f64::consts::TAU;
use std::sync::LazyLock;

use super::guide::Guide;
use super::rng::{Fraction, Rng};

/// Guides that places are drawn from: a radius and the cosine of an angle, each by a number in [0,
/// 1).
static GUIDES: LazyLock<[Guide; 2]> = LazyLock::new(|| {
    // Where the radius is x its derivative is e^(x^2 / 2) / x.
    [Guide::of_growing([0.0, 1.0], radius, |x: f64| (x * x / 2.0).exp() / x), Guide::of_cosine()]
});

fn radius(unit: f64) -> f64 {
    (-2.0 * (1.0 - unit).ln()).sqrt()
}

/// Draws places in 0 .. n, normally distributed around the middle.
#[derive(Clone, Copy, Debug)]
pub struct Normal {
    n: u64,
    sigma: f64,
    by_table: ByTable,
}

/// The tables, and what a place by them is made of.
#[derive(Clone, Copy, Debug)]
struct ByTable {
    guides: &'static [Guide; 2],
    /// Half of all places, and the places of a standard deviation; 0 where 32 bits are not enough.
    middle: f64,
    spread: f64,
    /// Largest error of a place: for each unit of the radius's error, for each unit of the radius,
    /// and a constant.
    error: [f64; 3],
}

impl ByTable {
    fn new(n: u64, sigma: f64) -> ByTable {
        let (n, guides) = (u32::try_from(n).map_or(0.0, f64::from), &*GUIDES);
        let spread = sigma * n;
        let cosine_error = guides[1].value_of(Rng::new(0, &[]).fraction()).1;
        // With the radius off by e, and the cosine by c:
        // (r + e) (cos + c) - r cos <= e + c (r + e).
        // The last term is rounding here.
        let error = [spread * (1.0 + cosine_error), spread * cosine_error, 1e-14 * n];
        ByTable { guides, middle: 0.5 * n, spread, error }
    }
}

impl Normal {
    /// `n` >= 1 places; `sigma`, the standard deviation, is a share of all of them.
    pub fn new(n: u64, sigma: f64) -> Normal {
        let n = n.max(1);
        Normal { n, sigma, by_table: ByTable::new(n, sigma) }
    }

    /// Draws a place. One that lies outside is drawn again, at most until chance gives up.
    #[inline]
    pub fn place(&self, rng: &mut Rng) -> u64 {
        let parts = [rng.fraction(), rng.fraction()];
        self.guided(parts).unwrap_or_else(|| self.place_of_or_next(parts, rng))
    }

    #[cold]
    fn place_of_or_next(&self, mut parts: [Fraction; 2], rng: &mut Rng) -> u64 {
        for _ in 1..1000 {
            if let Some(place) = self.exact(parts) {
                return place;
            }
            parts = [rng.fraction(), rng.fraction()];
        }
        self.exact(parts).unwrap_or_else(|| rng.below(self.n))
    }

    /// The place of two numbers, if no error of the tables makes it another one.
    #[inline(always)]
    fn guided(&self, [first, second]: [Fraction; 2]) -> Option<u64> {
        let ByTable { guides: [radii, cosines], middle, spread, error } = &self.by_table;
        let ((r, r_error), (c, _)) = (radii.value_of(first), cosines.value_of(second));
        let at = middle + spread * (r * c);
        let error = error[0] * r_error + error[1] * r + error[2];
        // Casts of 32 bits are the cheap ones.
        let place = at as u32;
        let beyond = at - f64::from(place);
        // Below 0 the cast gives 0, and what is beyond is negative.
        (beyond > error && beyond + error < 1.0 && u64::from(place) < self.n).then_some(u64::from(place))
    }

    /// The place of two numbers; none: it lies outside.
    fn exact(&self, [first, second]: [Fraction; 2]) -> Option<u64> {
        let at = 0.5 + self.sigma * radius(first.unit()) * (TAU * second.unit()).cos();
        (0.0..1.0).contains(&at).then(|| ((at * self.n as f64) as u64).min(self.n - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_around_the_middle() {
        let mut rng = Rng::new(1, &[7]);
        let (n, normal) = (100_000, Normal::new(1000, 0.1));
        let drawn: Vec<f64> = (0..n).map(|_| normal.place(&mut rng) as f64).collect();
        let within = |d: f64| drawn.iter().filter(|x| (*x - 500.0).abs() <= d).count() as f64 / f64::from(n);
        assert!((within(100.0) - 0.683).abs() < 0.01 && (within(200.0) - 0.954).abs() < 0.01, "{}", within(100.0));
        let wide = Normal::new(3, 50.0);
        assert!((0..1000).all(|_| wide.place(&mut rng) < 3));
    }

    #[test]
    fn tables_change_no_place() {
        let mut rng = Rng::new(2, &[]);
        let (mut known, mut draws) = (0, 0);
        for sigma in [1e-6, 0.01, 0.12, 0.5, 10.0] {
            for n in [1u64, 2, 1000, 1 << 20, 1 << 26, 1 << 40] {
                let normal = Normal::new(n, sigma);
                for i in 0..100_000 {
                    let edges = [0.0, 1e-12, 0.999_999_999_9, 0.25, 0.5, 0.75].map(Fraction::near);
                    let unit = |rng: &mut Rng, i: usize| if i < 6 { edges[i] } else { rng.fraction() };
                    let units = [unit(&mut rng, i % 60), unit(&mut rng, i / 60 % 60)];
                    let guided = normal.guided(units);
                    assert!(guided.is_none() || guided == normal.exact(units), "sigma {sigma}, n {n}, {units:?}");
                    if (sigma, n) == (0.12, 1 << 20) {
                        (known, draws) = (known + u32::from(guided.is_some()), draws + 1);
                    }
                }
            }
        }
        assert!(f64::from(known) / f64::from(draws) > 0.8, "{known} of {draws}, with edges");
    }
}
