//! Samples as users ask for them.

use super::one_in::OneIn;
use refault_trace::{Sample, SampleUnit};

/// Samples of the pages of a trace in the place of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledBy {
    /// Pages that each page kept stands for.
    pub one_in: OneIn,
    /// Pages that a sample keeps or leaves out together.
    pub unit: SampleUnit,
    /// Number of samples, each with a salt of its own: the error of an estimate is how much they
    /// differ.
    pub salts: u32,
}

impl SampledBy {
    /// The samples, with salts by a seed.
    pub fn samples(&self, seed: u64) -> Vec<Sample> {
        let salts = (0..u64::from(self.salts)).map(|n| seed.wrapping_mul(1 << 32).wrapping_add(n));
        salts.map(|salt| Sample::new(self.one_in.0, self.unit, salt)).collect()
    }
}
