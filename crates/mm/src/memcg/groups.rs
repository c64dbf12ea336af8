//! All memory cgroups: their tree with its charges, and whose turn it is when the machine needs
//! memory.

use crate::config::Config;
use crate::ids::MemcgId;
use crate::memcg::empty_memcg_cache::EmptyMemcgs;
use crate::memcg::group::{Memcg, Memcgs};
use crate::memcg::memcg_lru::MemcgLru;
use crate::memcg::vmpressure::Vmpressure;

/// All groups.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    pub(crate) memcgs: Memcgs,
    /// By node: generations of groups.
    pub(crate) memcg_lru: Vec<MemcgLru>,
    /// Groups that reclaim need not look at.
    pub(crate) empty: EmptyMemcgs,
    pub(crate) vmpressure: Vmpressure,
    /// Sums of groups are made now and then, and may be old.
    pub(crate) stats_are_added_up: bool,
    /// Every visit to a group looks at all of it.
    #[cfg(test)]
    pub(crate) looks_closely: bool,
    /// The groups that reclaim visited; none: a pass begins.
    #[cfg(test)]
    pub(crate) visits: Vec<Option<MemcgId>>,
}

impl Groups {
    /// The root alone.
    pub(crate) fn new(cfg: &Config, nr_nodes: usize) -> Groups {
        Groups {
            memcgs: Memcgs {
                max_stocked: cfg.memcg.charge_stocks as usize * cfg.cpus.max(1),
                ..Memcgs::new(cfg.memcg.charge_batch, cfg.memcg.recursive_protection)
            },
            memcg_lru: (0..nr_nodes as u64).map(|n| MemcgLru::new(cfg.seed.wrapping_add(n))).collect(),
            empty: EmptyMemcgs::default(),
            vmpressure: Vmpressure::default(),
            stats_are_added_up: cfg.lru.adds_up_stats(),
            #[cfg(test)]
            looks_closely: false,
            #[cfg(test)]
            visits: Vec::new(),
        }
    }
}

impl Groups {
    /// Counts an event `high` of swap for the group and each ancestor above its `memory.swap.high`.
    /// As in the kernel, at each look for the overage.
    pub(crate) fn count_swap_high(&mut self, id: MemcgId) {
        let mut at = Some(id);
        while let Some(m) = at {
            let memcg = self.memcgs.get(m);
            at = memcg.parent;
            if memcg.swap_usage > memcg.swap_high {
                self.memcgs.event(m, |e| &mut e.swap_high);
            }
        }
    }

    /// The highest group with `oom_group` from that of the victim up to the one that has no room.
    pub(crate) fn oom_group(&self, victim: MemcgId, over: MemcgId) -> Option<MemcgId> {
        let mut group = None;
        for m in self.memcgs.chain(victim) {
            if m != MemcgId::ROOT && self.memcgs.get(m).oom_group {
                group = Some(m);
            }
            if m == over {
                break;
            }
        }
        group
    }

    /// An error names a group that is not there (any more).
    pub(crate) fn online_memcg(&self, id: MemcgId) -> Result<(), String> {
        match self.memcgs.all.get(id.index()).is_some_and(Memcg::is_online) {
            true => Ok(()),
            false => Err(format!("there is no memcg {}", id.0)),
        }
    }

    /// Gives back what the groups of a subtree charged ahead.
    pub(crate) fn drain_stocks(&mut self, root: MemcgId) {
        let mut at = Some(root);
        while let Some(m) = at {
            self.memcgs.drain_stock(m);
            at = self.memcgs.next_in(root, m);
        }
    }

    /// Whether statistics are read as flushed sums, which may be old. Without any group, as where
    /// the memory controller is off, the exact counts of the nodes are read instead.
    pub(crate) fn stats_lag(&self) -> bool {
        self.stats_are_added_up && self.memcgs.has_children(MemcgId::ROOT)
    }

    /// Whether a page of the group, or of one below it, is in the swap cache.
    pub(crate) fn has_swap_cache(&self, memcg: MemcgId) -> bool {
        self.memcgs.subtree(memcg).any(|m| self.memcgs.get(m).swap_cached > 0)
    }

    /// `memory.zswap.writeback` of a group and those above it.
    pub(crate) fn may_write_back(&self, memcg: MemcgId) -> bool {
        self.memcgs.chain(memcg).all(|m| self.memcgs.get(m).zswap.writeback)
    }

    /// Swappiness of the request, or of the group, or of the machine.
    pub(crate) fn swappiness(&self, cfg: &Config, memcg: MemcgId, asked: Option<u32>) -> u32 {
        asked.or(self.memcgs.get(memcg).swappiness).unwrap_or(cfg.swappiness)
    }

    /// For tests: the groups that were visited, at which priority.
    #[inline(always)]
    pub(crate) fn note_visit(&mut self, _memcg: MemcgId) {
        #[cfg(test)]
        self.visits.push(Some(_memcg));
    }
}
