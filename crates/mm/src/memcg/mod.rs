//! TODO map

pub(crate) mod empty_memcg_cache;
pub(crate) mod group;
pub(crate) mod groups;
pub(crate) mod high;
pub(crate) mod memcg_lru;
pub(crate) mod protection;
pub(crate) mod stat_flush;
pub(crate) mod tree;
