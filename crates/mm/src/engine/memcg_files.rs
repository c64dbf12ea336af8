//! Memory cgroups as they are looked at: their files, counters and sizes.

use crate::engine::Engine;
use crate::ids::{MemcgId, NodeId};
use crate::lru::lru_list::LIST_NAMES;
use crate::lru::lruvec::Lruvec;
use crate::memcg::group::{Memcg, MemcgEvents, MemcgLimits, NODE_CHARGE_BYTES, PAGE_BYTES};
use crate::stat::{Counter, Gauge, Stats};

impl Engine {
    /// Whether a memcg uses more than its `memory.high` or `memory.max`.
    pub fn is_over_limit(&self, id: MemcgId) -> bool {
        let m = self.mem.groups.memcgs.get(id);
        m.usage > m.high.min(m.max)
    }

    /// Pages charged to a memcg and its descendants: `memory.current`.
    pub fn memcg_usage(&self, id: MemcgId) -> u64 {
        self.mem.groups.memcgs.get(id).usage
    }

    /// The limits of a memcg.
    pub fn memcg_limits(&self, id: MemcgId) -> MemcgLimits {
        let m = self.mem.groups.memcgs.get(id);
        let [min, low] = m.protection.setting;
        MemcgLimits {
            min,
            low,
            high: m.high,
            max: m.max,
            swap_high: m.swap_high,
            swap_max: m.swap_max,
            zswap_max: m.zswap_max,
            zswap_writeback: m.zswap.writeback,
            swappiness: m.swappiness,
            oom_group: m.oom_group,
        }
    }

    /// The groups that are there, parents first.
    pub fn memcgs(&self) -> impl Iterator<Item = MemcgId> + '_ {
        self.mem.groups.memcgs.subtree(MemcgId::ROOT)
    }

    /// The path of a memcg.
    pub fn memcg_path(&self, id: MemcgId) -> &str {
        &self.mem.groups.memcgs.get(id).name
    }

    /// The counters of one memcg, without its descendants.
    pub fn memcg_stats(&self, id: MemcgId) -> Stats {
        self.mem.pages.memcg_stats(id)
    }

    /// Adds up the counts of a memcg and its descendants, as a read of its `memory.stat` does on
    /// Linux: reclaim sees the sums from now on, and not only after the next interval.
    pub fn flush_memcg_stats(&mut self, id: MemcgId) {
        if self.mem.cfg.lru.adds_up_stats() {
            self.mem.pages.flush_stats(&self.mem.groups, id);
        }
    }

    /// The counters of one memcg and its descendants, as `memory.stat` has them.
    pub fn memcg_tree_stats(&self, id: MemcgId) -> Stats {
        let mut all = Stats::default();
        for m in self.mem.groups.memcgs.subtree(id) {
            all.merge(&self.mem.pages.memcg_stats(m));
        }
        all
    }

    /// Sizes of a memcg and its descendants under their kernel names: what `memory.stat` and
    /// `memory.current` say.
    pub fn memcg_tree_gauges(&self, id: MemcgId) -> Vec<Gauge> {
        /// These count descendants already.
        const WHOLE: [&str; 4] = ["memory.current", "memory.peak", "swap.current", "nonresident_age"];
        let mut all = self.memcg_gauges(id);
        for below in self.mem.groups.memcgs.subtree(id).filter(|&m| m != id) {
            for (sum, own) in all.iter_mut().zip(self.memcg_gauges(below)) {
                sum.value += if WHOLE.contains(&own.name) { 0 } else { own.value };
            }
        }
        all
    }

    /// The counters of the machine.
    pub fn vmstat(&self) -> Stats {
        self.memcg_tree_stats(MemcgId::ROOT)
    }

    /// `memory.events` of a memcg, with the events of its descendants.
    pub fn memcg_events(&self, id: MemcgId) -> MemcgEvents {
        self.mem.groups.memcgs.get(id).events
    }

    /// `memory.events.local` of a memcg.
    pub fn memcg_events_local(&self, id: MemcgId) -> MemcgEvents {
        self.mem.groups.memcgs.get(id).events_local
    }

    /// Effective protection of a memcg under the pressure of the whole machine, in pages: (`emin`,
    /// `elow`).
    pub fn memcg_protection(&self, id: MemcgId) -> (u64, u64) {
        let [min, low] = self.mem.groups.memcgs.effective_protection(MemcgId::ROOT, id);
        (min, low)
    }

    /// Sizes of a memcg under their kernel names, in pages.
    pub fn memcg_gauges(&self, id: MemcgId) -> Vec<Gauge> {
        let m = self.mem.groups.memcgs.get(id);
        let sum = |of: fn(&Lruvec) -> u64| {
            self.mem.pages.lruvecs_of(id).map(|v| of(&self.mem.pages.lruvecs[v.index()])).sum()
        };
        let lists = LIST_NAMES.iter().zip(self.mem.pages.lru_sizes(id)).map(|(&name, value)| Gauge { name, value });
        let rest = [
            ("memory.current", m.usage),
            ("memory.peak", m.peak),
            ("kernel", m.kernel + m.zswap.pages()),
            ("pagetables", m.page_tables),
            ("slab_reclaimable_bytes", m.nodes * NODE_CHARGE_BYTES),
            ("file_dirty", m.dirty),
            ("file_writeback", m.writeback),
            ("swapcached", m.swap_cached),
            ("swap.current", m.swap_usage),
            ("zswap_bytes", m.zswap.own_bytes),
            ("zswapped", m.zswap.stored),
            ("workingset_nodes", sum(|v| v.shadow_nodes.len)),
            ("nonresident_age", sum(|v| v.nonresident_age)),
        ];
        lists.chain(rest.map(|(name, value)| Gauge { name, value })).collect()
    }

    /// Sizes of a node under their kernel names, in pages.
    pub fn node_gauges_of(&self, node: NodeId) -> Vec<Gauge> {
        let n = self.mem.frames.nodes.get(node);
        let lists =
            LIST_NAMES.iter().zip(self.mem.pages.node_sizes[node.index()]).map(|(&name, value)| Gauge { name, value });
        lists.chain([Gauge { name: "nr_free_pages", value: n.free_pages() }]).collect()
    }

    /// Sizes of the machine under their kernel names, in pages.
    pub fn node_gauges(&self) -> Vec<Gauge> {
        let lists = LIST_NAMES.iter().zip(self.mem.pages.total_size()).map(|(&name, value)| Gauge { name, value });
        let sum = |of: fn(&Memcg) -> u64| self.mem.groups.memcgs.all.iter().map(of).sum();
        let rest = [
            ("nr_free_pages", self.mem.frames.nodes.free_pages()),
            ("file_dirty", sum(|m| m.dirty)),
            ("file_writeback", sum(|m| m.writeback)),
            ("swapcached", sum(|m| m.swap_cached)),
            ("zswap_bytes", sum(|m| m.zswap.own_bytes)),
            ("zswapped", sum(|m| m.zswap.stored)),
            ("pagetables", sum(|m| m.page_tables)),
            ("workingset_nodes", self.mem.pages.lruvecs.iter().map(|v| v.shadow_nodes.len).sum()),
        ];
        lists.chain(rest.map(|(name, value)| Gauge { name, value })).collect()
    }

    /// A file of a memcg as the kernel shows it, in bytes where it counts bytes; none: there is no
    /// such file here. `memory.pressure` belongs to the driver, which knows the tasks
    /// ([`crate::Psi`]).
    pub fn memcg_file(&self, id: MemcgId, file: &str) -> Option<String> {
        let m = self.mem.groups.memcgs.get(id);
        let bytes = |pages: u64| match pages {
            u64::MAX => "max\n".to_owned(),
            n => format!("{}\n", n * PAGE_BYTES),
        };
        let l = self.memcg_limits(id);
        Some(match file {
            "memory.current" => bytes(m.usage),
            "memory.peak" => bytes(m.peak),
            "memory.min" => bytes(l.min),
            "memory.low" => bytes(l.low),
            "memory.high" => bytes(l.high),
            "memory.max" => bytes(l.max),
            "memory.swap.current" => bytes(m.swap_usage),
            "memory.swap.high" => bytes(l.swap_high),
            "memory.swap.max" => bytes(l.swap_max),
            "memory.zswap.max" => bytes(l.zswap_max),
            "memory.zswap.writeback" => format!("{}\n", u8::from(l.zswap_writeback)),
            "memory.oom.group" => format!("{}\n", u8::from(l.oom_group)),
            "memory.events" => text_of(m.events.iter()),
            "memory.events.local" => text_of(m.events_local.iter()),
            "memory.swap.events" => text_of(m.events.swap_iter()),
            "memory.zswap.current" => format!("{}\n", m.zswap.bytes),
            "memory.stat" => self.memory_stat(id),
            _ => return None,
        })
    }

    fn memory_stat(&self, id: MemcgId) -> String {
        use std::fmt::Write as _;
        let gauges = self.memcg_tree_gauges(id);
        let get = |name: &str| gauges.iter().find(|g| g.name == name).map_or(0, |g| g.value);
        let mut text = String::new();
        let pages = [
            ("anon", get("inactive_anon") + get("active_anon")),
            ("file", get("inactive_file") + get("active_file")),
            ("kernel", get("kernel")),
            ("pagetables", get("pagetables")),
            ("file_dirty", get("file_dirty")),
            ("file_writeback", get("file_writeback")),
            ("swapcached", get("swapcached")),
            ("zswapped", get("zswapped")),
        ];
        let lists = LIST_NAMES.map(|name| (name, get(name)));
        for (name, pages) in pages.into_iter().chain(lists) {
            let _ = writeln!(text, "{name} {}", pages * PAGE_BYTES);
        }
        let _ = writeln!(text, "zswap {}", get("zswap_bytes"));
        let _ = writeln!(text, "slab_reclaimable {}", get("slab_reclaimable_bytes"));
        let _ = writeln!(text, "slab {}", get("slab_reclaimable_bytes"));
        let stats = self.memcg_tree_stats(id);
        let _ = writeln!(text, "pgscan {}", stats.get(Counter::PgscanAnon) + stats.get(Counter::PgscanFile));
        let _ = writeln!(text, "pgsteal {}", stats.get(Counter::PgstealAnon) + stats.get(Counter::PgstealFile));
        text + &text_of(stats.iter())
    }
}

/// Names and values, a line each.
fn text_of(values: impl Iterator<Item = (&'static str, u64)>) -> String {
    values.map(|(name, value)| format!("{name} {value}\n")).collect()
}

#[cfg(test)]
mod tests {
    use crate::stat::Gauge;
    use crate::{Config, Engine, MemcgId, Policy};

    #[test]
    fn gauges_have_the_names_that_are_known_without_an_engine() {
        let e = Engine::new(Config::new(Policy::Mglru)).unwrap();
        let names = |gauges: Vec<Gauge>| gauges.iter().map(|g| g.name).collect::<Vec<_>>();
        assert_eq!(names(e.node_gauges()), Gauge::OF_MACHINE);
        assert_eq!(names(e.memcg_tree_gauges(MemcgId::ROOT)), Gauge::OF_MEMCG);
    }
}
