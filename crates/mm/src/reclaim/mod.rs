//! TODO map

pub(crate) mod aging;
pub(crate) mod evict;
pub(crate) mod kswapd;
pub(crate) mod lru_gen;
pub(crate) mod memcg_iter_reclaim;
#[cfg(test)]
mod memcg_props;
pub(crate) mod peek;
pub(crate) mod scan;
pub(crate) mod shrink;
pub(crate) mod two_list;
pub(crate) mod vmscan;
