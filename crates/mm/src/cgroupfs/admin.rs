//! Memory cgroups as an administrator sees them: made, limited, asked to shrink, looked at (1.1, 6.4).

use crate::engine::Engine;
use crate::ids::{LruvecId, MemcgId, NodeId};
use crate::lru::lruvec::{LIST_NAMES, Lruvec};
use crate::memcg::group::{Memcg, MemcgEvents, MemcgLimits, NODE_CHARGE_BYTES, PAGE_BYTES};
use crate::stat::{Counter, Gauge, Stats};
use crate::world::{Effect, World};

/// Rounds without progress before a request is given up.
pub(crate) const MAX_RECLAIM_RETRIES: u32 = 16;

impl Engine {
    /// A new memcg under `parent`, with `memory.max` and `memory.swap.max` in pages (`u64::MAX`: none).
    pub fn add_memcg(
        &mut self,
        parent: MemcgId,
        name: &str,
        max_pages: u64,
        swap_max_pages: u64,
    ) -> Result<MemcgId, String> {
        self.online_memcg(parent)?;
        let id = match self.take_gone_memcg() {
            Some(id) => id,
            None => {
                if self.groups.memcgs.all.len() > usize::from(u16::MAX) {
                    return Err("more than 65535 memory cgroups".into());
                }
                let id = MemcgId(self.groups.memcgs.all.len() as u16);
                let v = LruvecId(self.pages.lruvecs.len() as u32);
                for nid in self.frames.nodes.ids() {
                    self.pages.lruvecs.push(Lruvec::new(&mut self.pages.folios, id, nid, self.cfg.seed));
                }
                self.groups.memcgs.all.push(Memcg::new(None, name, v, max_pages, swap_max_pages));
                id
            }
        };
        let v = self.groups.memcgs.get(id).lruvec;
        for nid in self.frames.nodes.ids() {
            self.pages.lruvecs[v.on(nid).index()].parent = Some(self.lruvec_of(parent, nid));
        }
        *self.groups.memcgs.get_mut(id) = Memcg::new(None, name, v, max_pages, swap_max_pages);
        self.groups.memcgs.link(id, parent);
        self.groups.memcg_lru.iter_mut().for_each(|lru| lru.online(id));
        self.groups.memcgs.get_mut(id).reserved = self.cfg.reserved_pages;
        self.groups.memcgs.force_charge(id, self.cfg.reserved_pages);
        self.groups.memcgs.tolerate(id);
        Ok(id)
    }

    /// An error names a group that is not there (any more).
    pub(crate) fn online_memcg(&self, id: MemcgId) -> Result<(), String> {
        match self.groups.memcgs.all.get(id.index()).is_some_and(Memcg::is_online) {
            true => Ok(()),
            false => Err(format!("there is no memcg {}", id.0)),
        }
    }

    /// Whether a memcg uses more than its `memory.high` or `memory.max`.
    pub fn is_over_limit(&self, id: MemcgId) -> bool {
        let m = self.groups.memcgs.get(id);
        m.usage > m.high.min(m.max)
    }

    /// What is charged to a memcg and its descendants: `memory.current` in pages.
    pub fn memcg_usage(&self, id: MemcgId) -> u64 {
        self.groups.memcgs.get(id).usage
    }

    /// The limits of a memcg.
    pub fn memcg_limits(&self, id: MemcgId) -> MemcgLimits {
        let m = self.groups.memcgs.get(id);
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

    /// Sets the limits of a memcg, as writing to its files does. A `high` or `max` below what it uses reclaims; where that is not
    /// enough for `max`, it is out of memory ([`Effect::Oom`]), and the driver kills someone and sets it again.
    pub fn set_memcg_limits<W: World>(&mut self, w: &mut W, id: MemcgId, limits: &MemcgLimits) -> Result<(), String> {
        self.online_memcg(id)?;
        if id == MemcgId::ROOT {
            return Err("the root has no limits".into());
        }
        if limits.swappiness.is_some_and(|s| s > 200) {
            return Err("swappiness is 0 to 200".into());
        }
        let m = self.groups.memcgs.get_mut(id);
        m.protection.setting = [limits.min, limits.low];
        (m.high, m.max) = (limits.high, limits.max);
        (m.swap_high, m.swap_max, m.zswap_max) = (limits.swap_high, limits.swap_max, limits.zswap_max);
        (m.swappiness, m.oom_group) = (limits.swappiness, limits.oom_group);
        m.zswap.writeback = limits.zswap_writeback;
        self.groups.memcgs.propagate_protection(id);
        self.groups.memcgs.any_protected |= limits.min > 0 || limits.low > 0;
        self.groups.memcgs.any_high |= limits.high != u64::MAX || limits.swap_high != u64::MAX;
        self.groups.memcgs.tolerate(id);
        self.shrink_to(w, id, limits.high);
        // Where the swap device takes no more writes for now, there is more to reclaim later.
        if !self.shrink_to(w, id, limits.max) && !self.frames.reclaim_blocked && !self.is_io_pending(id) {
            self.groups.memcgs.event(id, |e| &mut e.oom);
            w.effect(Effect::Oom { memcg: id });
        }
        self.reap_memcgs();
        Ok(())
    }

    /// Reclaims until a group uses no more than so much. False: it could not.
    pub(crate) fn shrink_to<W: World>(&mut self, w: &mut W, id: MemcgId, limit: u64) -> bool {
        let (mut retries, mut drained) = (MAX_RECLAIM_RETRIES, false);
        loop {
            let usage = self.groups.memcgs.get(id).usage;
            if usage <= limit {
                return true;
            }
            if !drained {
                self.drain_all();
                self.drain_stocks(id);
                drained = true;
                continue;
            }
            if self.reclaim_memcg(w, id, usage - limit) == 0 {
                if retries == 0 || self.frames.reclaim_blocked {
                    return false;
                }
                retries -= 1;
            }
        }
    }

    /// Gives back what the groups of a subtree charged ahead.
    pub(crate) fn drain_stocks(&mut self, root: MemcgId) {
        let mut at = Some(root);
        while let Some(m) = at {
            self.groups.memcgs.drain_stock(m);
            at = self.groups.memcgs.next_in(root, m);
        }
    }

    /// The groups that are there, parents first.
    pub fn memcgs(&self) -> impl Iterator<Item = MemcgId> + '_ {
        self.groups.memcgs.subtree(MemcgId::ROOT)
    }

    /// The path of a memcg.
    pub fn memcg_path(&self, id: MemcgId) -> &str {
        &self.groups.memcgs.get(id).name
    }

    /// The counters of one memcg, without its descendants.
    pub fn memcg_stats(&self, id: MemcgId) -> &Stats {
        &self.groups.memcgs.get(id).stat
    }

    /// The counters of one memcg and its descendants, as `memory.stat` has them.
    pub fn memcg_tree_stats(&self, id: MemcgId) -> Stats {
        let mut all = Stats::default();
        for m in self.groups.memcgs.subtree(id) {
            Counter::ALL.iter().for_each(|&c| all.add(c, self.groups.memcgs.get(m).stat.get(c)));
        }
        all
    }

    /// Sizes of a memcg and its descendants under their kernel names: what `memory.stat` and `memory.current` say.
    pub fn memcg_tree_gauges(&self, id: MemcgId) -> Vec<Gauge> {
        /// These count descendants already.
        const WHOLE: [&str; 4] = ["memory.current", "memory.peak", "swap.current", "nonresident_age"];
        let mut all = self.memcg_gauges(id);
        for below in self.groups.memcgs.subtree(id).filter(|&m| m != id) {
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

    /// `memory.events` of a memcg: those of its descendants count, too.
    pub fn memcg_events(&self, id: MemcgId) -> MemcgEvents {
        self.groups.memcgs.get(id).events
    }

    /// `memory.events.local` of a memcg.
    pub fn memcg_events_local(&self, id: MemcgId) -> MemcgEvents {
        self.groups.memcgs.get(id).events_local
    }

    /// Its effective protection under the pressure of the whole machine: (`emin`, `elow`).
    pub fn memcg_protection(&self, id: MemcgId) -> (u64, u64) {
        let [min, low] = self.groups.memcgs.effective_protection(MemcgId::ROOT, id);
        (min, low)
    }

    /// Sizes of a memcg under their kernel names, in pages.
    pub fn memcg_gauges(&self, id: MemcgId) -> Vec<Gauge> {
        let m = self.groups.memcgs.get(id);
        let sum = |of: fn(&Lruvec) -> u64| self.lruvecs_of(id).map(|v| of(&self.pages.lruvecs[v.index()])).sum();
        let lists = LIST_NAMES.iter().zip(self.sizes_of(id)).map(|(&name, value)| Gauge { name, value });
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

    /// Pages on the lists of a memcg, of all nodes.
    pub(crate) fn sizes_of(&self, id: MemcgId) -> [u64; 5] {
        let sizes = self.lruvecs_of(id).map(|v| self.pages.lruvecs[v.index()].size);
        sizes.fold([0; 5], |sum, size| std::array::from_fn(|l| sum[l] + size[l]))
    }

    /// Sizes of a node under their kernel names, in pages.
    pub fn node_gauges_of(&self, node: NodeId) -> Vec<Gauge> {
        let n = self.frames.nodes.get(node);
        let lists = LIST_NAMES.iter().zip(n.size).map(|(&name, value)| Gauge { name, value });
        lists.chain([Gauge { name: "nr_free_pages", value: n.free_pages() }]).collect()
    }

    /// Sizes of the machine under their kernel names, in pages.
    pub fn node_gauges(&self) -> Vec<Gauge> {
        let lists = LIST_NAMES.iter().zip(self.frames.nodes.total_size()).map(|(&name, value)| Gauge { name, value });
        let sum = |of: fn(&Memcg) -> u64| self.groups.memcgs.all.iter().map(of).sum();
        let rest = [
            ("nr_free_pages", self.frames.nodes.free_pages()),
            ("file_dirty", sum(|m| m.dirty)),
            ("file_writeback", sum(|m| m.writeback)),
            ("swapcached", sum(|m| m.swap_cached)),
            ("zswap_bytes", sum(|m| m.zswap.own_bytes)),
            ("zswapped", sum(|m| m.zswap.stored)),
            ("pagetables", sum(|m| m.page_tables)),
            ("workingset_nodes", self.pages.lruvecs.iter().map(|v| v.shadow_nodes.len).sum()),
        ];
        lists.chain(rest.map(|(name, value)| Gauge { name, value })).collect()
    }

    /// A file of a memcg as the kernel shows it, in bytes where it counts bytes; none: there is no such file here. `memory.pressure`
    /// belongs to whoever knows the tasks ([`crate::Psi`]).
    pub fn memcg_file(&self, id: MemcgId, file: &str) -> Option<String> {
        let m = self.groups.memcgs.get(id);
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

impl MemcgEvents {
    /// Names and values, in the order of the kernel.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("low", self.low),
            ("high", self.high),
            ("max", self.max),
            ("oom", self.oom),
            ("oom_kill", self.oom_kill),
            ("oom_group_kill", self.oom_group_kill),
        ]
        .into_iter()
    }

    /// Those of `memory.swap.events`.
    pub fn swap_iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [("high", self.swap_high), ("max", self.swap_max), ("fail", self.swap_fail)].into_iter()
    }
}

/// Names and values, a line each.
fn text_of(values: impl Iterator<Item = (&'static str, u64)>) -> String {
    values.map(|(name, value)| format!("{name} {value}\n")).collect()
}
