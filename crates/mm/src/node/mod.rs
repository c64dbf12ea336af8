//! TODO map

pub(crate) mod frames;
pub(crate) mod migrate;
pub(crate) mod node;
pub(crate) mod nodes;
pub(crate) mod throttle;
