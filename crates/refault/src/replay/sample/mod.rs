//! Estimates by samples of the pages of a trace.

mod estimate;
mod one_in;

pub use estimate::{Estimate, Question, SampleRow, estimate};
pub use one_in::OneIn;
