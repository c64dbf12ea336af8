//! TODO map

pub(crate) mod dirty;
