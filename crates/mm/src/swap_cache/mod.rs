//! TODO map

pub(crate) mod cache;
pub(crate) mod front;
pub(crate) mod stack;
pub(crate) mod zswap_writeback;
