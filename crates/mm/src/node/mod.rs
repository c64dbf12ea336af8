//! TODO map

pub(crate) mod frames;
pub(crate) mod hint;
pub(crate) mod kswapd;
pub(crate) mod migration;
pub(crate) mod node;
pub(crate) mod nodes;
pub(crate) mod resize;
pub(crate) mod throttle;
