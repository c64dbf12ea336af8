//! TODO map

pub(crate) mod charge;
pub(crate) mod frames;
pub(crate) mod large;
