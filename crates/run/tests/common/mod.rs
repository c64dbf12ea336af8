//! Parts that the tests of runs share.

pub mod command;
pub mod programs;
