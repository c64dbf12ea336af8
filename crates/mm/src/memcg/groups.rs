//! All memory cgroups: their tree with its charges, and whose turn it is when the machine needs memory.

use crate::config::Config;
use crate::memcg::empty_memcg_cache::Quiet;
use crate::memcg::group::Memcgs;
use crate::memcg::memcg_lru::MemcgLru;
use crate::node::nodes::Nodes;

/// All groups.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    pub(crate) memcgs: Memcgs,
    /// By node.
    pub(crate) memcg_lru: Vec<MemcgLru>,
    /// Groups that reclaim need not look at.
    pub(crate) empty: Quiet,
    /// Every visit to a group looks at all of it.
    #[cfg(test)]
    pub(crate) looks_closely: bool,
    /// The groups that reclaim visited; none: a pass begins.
    #[cfg(test)]
    pub(crate) visits: Vec<Option<MemcgId>>,
}

impl Groups {
    /// The root alone.
    pub(crate) fn new(cfg: &Config, nodes: &Nodes) -> Groups {
        Groups {
            memcgs: Memcgs::new(cfg.charge_batch, cfg.recursive_protection),
            memcg_lru: nodes.ids().map(|nid| MemcgLru::new(cfg.seed.wrapping_add(u64::from(nid.0)))).collect(),
            empty: Quiet::default(),
            #[cfg(test)]
            looks_closely: false,
            #[cfg(test)]
            visits: Vec::new(),
        }
    }
}
