//! Estimates by samples of the pages of a trace.

mod estimate;
mod one_in;
mod sampling;

pub use estimate::{Question, SampleRow, SampledEstimate, estimate};
pub use one_in::OneIn;
pub use sampling::SampledBy;
