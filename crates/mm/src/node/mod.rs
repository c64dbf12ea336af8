//! TODO map

pub(crate) mod migrate;
pub(crate) mod node;
pub(crate) mod nodes;
