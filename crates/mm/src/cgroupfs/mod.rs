//! TODO map

pub(crate) mod admin;
pub(crate) mod memory_high;
pub(crate) mod memory_reclaim;
pub(crate) mod move_mapping;
pub(crate) mod offline;
pub(crate) mod oom;
