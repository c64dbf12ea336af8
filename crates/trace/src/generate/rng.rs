//! Random numbers that mean the same everywhere.

use rand_pcg::Lcg128Xsl64;
use rand_pcg::rand_core::Rng as _;

/// A generator of one purpose: the same seed and purpose, the same numbers.
#[derive(Clone, Debug)]
pub struct Rng(Lcg128Xsl64);

impl Rng {
    /// The generator of a purpose that is named by numbers, such as a phase and a stream.
    pub fn new(seed: u64, purpose: &[u64]) -> Self {
        let mut state = mix(seed);
        for part in purpose {
            state = mix(state ^ *part);
        }
        let high = u128::from(mix(state)) << 64;
        // The stream is the constant of the reference implementation.
        Self(Lcg128Xsl64::new(high | u128::from(state), 0x0a02_bdbf_7bb3_c0a7_ac28_fa16_a64a_bf96))
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`, all equally likely (Lemire's method).
    pub fn below(&mut self, bound: u64) -> u64 {
        let mut product = u128::from(self.next_u64()) * u128::from(bound);
        if (product as u64) < bound {
            let unfair = bound.wrapping_neg() % bound;
            while (product as u64) < unfair {
                product = u128::from(self.next_u64()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// A number in [0, 1) of 53 bits.
    pub fn unit(&mut self) -> f64 {
        self.fraction().unit()
    }

    /// The same, as whole parts.
    #[inline]
    pub fn fraction(&mut self) -> Fraction {
        Fraction(self.next_u64() >> (64 - Fraction::BITS))
    }
}

/// A number in [0, 1), in units of 2^-53.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fraction(u64);

impl Fraction {
    const BITS: u32 = 53;

    /// As a number to count with.
    #[inline]
    pub fn unit(self) -> f64 {
        // Every value fits a signed integer, which is converted by one instruction.
        self.0 as i64 as f64 * (1.0 / (1u64 << Self::BITS) as f64)
    }

    /// The nearest to a number in [0, 1), from below.
    #[cfg(test)]
    pub(super) fn near(unit: f64) -> Fraction {
        Fraction((unit * (1u64 << Self::BITS) as f64) as u64)
    }

    /// In which of 2^`bits` equal cells it is, and where in that, from 0 to 1.
    #[inline]
    pub(super) fn cell<const BITS: u32>(self) -> (usize, f64) {
        let rest = Self::BITS - BITS;
        let share = (self.0 & ((1 << rest) - 1)) as i64 as f64 * (1.0 / (1u64 << rest) as f64);
        ((self.0 >> rest) as usize, share)
    }
}

/// Something that happens with a probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probability {
    /// Bound in units of 2^-53: it happens to fractions below.
    below: u64,
}

impl Probability {
    /// With this probability; what is below 0 never happens.
    pub fn new(share: f64) -> Probability {
        // The scale is a power of two: nothing is rounded but by `ceil`, and a number of whole
        // parts is below that if it is below the share. The cast saturates.
        Probability { below: (share * (1u64 << Fraction::BITS) as f64).ceil() as u64 }
    }

    /// Whether it can happen at all.
    #[inline]
    pub fn is_none(self) -> bool {
        self.below == 0
    }

    /// Whether it happens: as `rng.unit() < share`.
    #[inline]
    pub fn happens(self, rng: &mut Rng) -> bool {
        rng.fraction().0 < self.below
    }
}

/// The finalizer of SplitMix64: seeds that differ in one bit give states that have nothing in
/// common.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_pinned() {
        // A change of these is a change of every generated workload.
        let mut rng = Rng::new(42, &[0, 1]);
        let first: Vec<_> = (0..3).map(|_| rng.next_u64()).collect();
        assert_eq!(first, PINNED);
    }

    const PINNED: [u64; 3] = [7_289_165_092_390_852_967, 4_273_029_640_936_426_502, 808_986_857_228_455_891];

    #[test]
    fn a_chance_is_a_number_below_its_share() {
        for share in [-1.0, 0.0, 1e-300, 1e-9, 0.2, 0.5, 1.0 / 3.0, 1.0 - 1e-16, 1.0, 2.0, f64::NAN] {
            let (mut one, mut other) = (Rng::new(3, &[]), Rng::new(3, &[]));
            let chance = Probability::new(share);
            for _ in 0..1000 {
                assert_eq!(chance.happens(&mut one), other.unit() < share, "{share}");
            }
            let edge = (share * (1u64 << 53) as f64) as u64;
            for parts in edge.saturating_sub(2)..edge.saturating_add(3).min(1 << 53) {
                assert_eq!(parts < chance.below, Fraction(parts).unit() < share, "{share}, {parts} parts");
            }
        }
    }

    #[test]
    fn a_fraction_is_a_cell_and_a_place_in_it() {
        let mut rng = Rng::new(4, &[]);
        for _ in 0..1000 {
            let f = rng.fraction();
            let (i, share) = f.cell::<10>();
            assert_eq!(((f.unit() * 1024.0) as usize, (f.unit() * 1024.0).fract()), (i, share));
        }
    }

    #[test]
    fn below_is_fair() {
        let mut rng = Rng::new(1, &[]);
        let mut counts = [0u32; 3];
        for _ in 0..30_000 {
            counts[rng.below(3) as usize] += 1;
        }
        assert!(counts.iter().all(|c| (9_600..10_400).contains(c)), "{counts:?}");
    }
}
