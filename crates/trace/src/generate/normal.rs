//! Normally distributed places (Box and Muller, 1958).

use std::f64::consts::TAU;
use std::sync::LazyLock;

use super::guide::Guide;
use super::rng::Rng;

/// What places are drawn from: a radius and the cosine of an angle, each by a number in [0, 1).
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
    /// Places that tables are asked for, as a number to count with: none, where 32 bits are not
    /// enough.
    guided_n: f64,
}

impl Normal {
    /// `n` >= 1 places; `sigma`, the standard deviation, is a share of all of them.
    pub fn new(n: u64, sigma: f64) -> Normal {
        let n = n.max(1);
        Normal { n, sigma, guided_n: u32::try_from(n).map_or(0.0, f64::from) }
    }

    /// A place. What lies outside is drawn again, at most until chance gives up.
    pub fn place(&self, rng: &mut Rng) -> u64 {
        for _ in 0..1000 {
            let units = [rng.unit(), rng.unit()];
            if let Some(place) = self.guided(units).or_else(|| self.exact(units)) {
                return place;
            }
        }
        rng.below(self.n)
    }

    /// The place of two numbers, if no error of the tables makes it another one.
    #[inline]
    fn guided(&self, [first, second]: [f64; 2]) -> Option<u64> {
        let [radii, cosines] = &*GUIDES;
        let ((r, r_error), (c, c_error)) = (radii.value(first)?, cosines.value(second)?);
        let n = self.guided_n;
        let at = (0.5 + self.sigma * r * c) * n;
        // The last term is rounding here.
        let error = (self.sigma * (r_error + c_error * (r + r_error)) + 1e-14) * n;
        let place = at as u32;
        let beyond = at - f64::from(place);
        // Below 0 the cast gives 0, and what is beyond is negative.
        (beyond > error && beyond + error < 1.0 && u64::from(place) < self.n).then_some(u64::from(place))
    }

    /// The place of two numbers; none: it lies outside.
    fn exact(&self, [first, second]: [f64; 2]) -> Option<u64> {
        let at = 0.5 + self.sigma * radius(first) * (TAU * second).cos();
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
                    let edges = [0.0, 1e-12, 0.999_999_999_9, 0.25, 0.5, 0.75];
                    let unit = |rng: &mut Rng, i: usize| if i < 6 { edges[i] } else { rng.unit() };
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
