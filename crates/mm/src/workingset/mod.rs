//! TODO map

pub(crate) mod evict_clean;
pub(crate) mod policy;
pub(crate) mod refault;
pub(crate) mod shadow_nodes;
