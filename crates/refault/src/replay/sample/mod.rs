//! Estimates by samples of the pages of a trace.

mod estimate;
mod one_in;

pub use estimate::{Question, SampleRow, SampledEstimate, estimate};
pub use one_in::OneIn;
