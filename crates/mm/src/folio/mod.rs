//! TODO map

pub(crate) mod list;
pub(crate) mod mapping;
pub(crate) mod readahead;
pub(crate) mod shadow;
pub(crate) mod size_stats;
pub(crate) mod slot;
pub(crate) mod table;
