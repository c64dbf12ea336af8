//! TODO map

pub(crate) mod access;
pub(crate) mod advise;
pub(crate) mod fault_around;
pub(crate) mod readahead;
pub(crate) mod resize;
pub(crate) mod swapoff;
pub(crate) mod zap;
