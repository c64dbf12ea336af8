//! The `lru_gen` files of debugfs: their text, their commands, and `min_ttl_ms`.
//!
//! Mechanism: `docs/mechanisms.md#lru_gen-files`.

use std::fmt::Write;

use crate::config::lru::{Generations, Lru};
use crate::config::memcg::MemcgSelection;
use crate::ids::{LruvecId, MemcgId, NodeId};
use crate::lru::lru_list::{ANON, FILE};
use crate::lru::lruvec::Lruvec;
use crate::lru::multi_gen::{MAX_NR_GENS, MAX_NR_TIERS, MIN_NR_GENS, gen_index};
use crate::lru::pages::ResidentPages;
use crate::memcg::groups::Groups;
use crate::memcg::protection::BelowProtection;
use crate::reclaim::Reclaim;
use crate::scan::ScanControl;
use crate::world::{Effect, World};

/// Engine state that the files of `lru_gen` show.
pub(crate) struct LruGenFile<'a> {
    pub(crate) pages: &'a ResidentPages,
    pub(crate) groups: &'a Groups,
    pub(crate) now_ns: u64,
}

impl LruGenFile<'_> {
    /// The whole text.
    pub(crate) fn text(&self, full: bool) -> String {
        let mut out = String::new();
        for id in self.groups.memcgs.subtree(MemcgId::ROOT) {
            let m = self.groups.memcgs.get(id);
            let _ = writeln!(out, "memcg {:5} {}", id.0, m.name);
            for nid in self.pages.node_ids() {
                let _ = writeln!(out, " node {:5}", nid.0);
                self.lruvec(&mut out, self.pages.lruvec_of(id, nid), full);
            }
        }
        out
    }

    fn lruvec(&self, out: &mut String, v: LruvecId, full: bool) {
        let g = &self.pages.lruvecs[v.index()].r#gen;
        let first = if full { (g.max_seq + 1).saturating_sub(MAX_NR_GENS) } else { g.evictable_min_seq(true) };
        for seq in first..=g.max_seq {
            let i = gen_index(seq);
            let age_ms = (self.now_ns - g.birth_ns[i].min(self.now_ns)) / 1_000_000;
            let _ = write!(out, " {seq:10} {age_ms:10}");
            for t in [ANON, FILE] {
                let mark = if full && seq < g.min_seq[t] { 'x' } else { ' ' };
                let _ = write!(out, " {:10}{mark}", g.nr_pages[i][t]);
            }
            out.push('\n');
            if full {
                self.tiers(out, v, seq);
            }
        }
    }

    /// Youngest: averages `R` and `T`; oldest: `r`efaulted, `e`victed, `p`rotected; others are not
    /// kept: `x`.
    fn tiers(&self, out: &mut String, v: LruvecId, seq: u64) {
        let g = &self.pages.lruvecs[v.index()].r#gen;
        for tier in 0..MAX_NR_TIERS {
            let _ = write!(out, "            {tier:10}");
            for t in [ANON, FILE] {
                let (marks, n) = if seq == g.max_seq {
                    ("RTx", [g.avg_refaulted[t][tier], g.avg_total[t][tier], 0])
                } else if seq == g.min_seq[t] {
                    ("rep", [g.refaulted[t][tier], g.evicted[t][tier], g.protected[t][tier]])
                } else {
                    ("xxx", [0; 3])
                };
                marks.chars().zip(n).for_each(|(mark, n)| _ = write!(out, " {n:10}{mark}"));
            }
            out.push('\n');
        }
        let (marks, stats) = if seq == g.max_seq { ("TYFA", g.walk_stats) } else { ("xxxx", [0; 4]) };
        let _ = write!(out, "{:22}", "");
        marks.chars().zip(stats).for_each(|(mark, n)| _ = write!(out, " {n:10}{mark}"));
        out.push('\n');
    }
}

impl<W: World> Reclaim<'_, W> {
    /// Runs one command.
    pub(crate) fn run_command(&mut self, command: &str) -> Result<(), String> {
        let mut words = command.split_whitespace();
        let verb = words.next().unwrap_or_default();
        let numbers: Result<Vec<u64>, _> = words.map(str::parse).collect();
        let numbers = numbers.map_err(|_| "memcg, node and seq are numbers")?;
        let (&[memcg, node, seq], rest) = numbers
            .split_at_checked(3)
            .and_then(|(a, b)| Some((a.first_chunk()?, b)))
            .ok_or("too few numbers: memcg node seq")?;
        if rest.len() > 2 {
            return Err("too many numbers".into());
        }
        let there = self.mem.groups.memcgs.all.get(memcg as usize).is_some_and(crate::memcg::group::Memcg::is_online);
        if node >= self.mem.pages.node_sizes.len() as u64 || !there {
            return Err(format!("there is no memcg {memcg} on node {node}"));
        }
        let (memcg, nid) = (MemcgId(memcg as u16), NodeId(node as u8));
        let own = self.mem.groups.memcgs.get(memcg).swappiness.unwrap_or(self.mem.cfg.swappiness);
        let swappiness = rest.first().copied().unwrap_or(u64::from(own));
        if swappiness > 200 {
            return Err("swappiness is 0 to 200".into());
        }
        let (last, v) = (rest.get(1).copied(), self.mem.pages.lruvec_of(memcg, nid));
        match verb {
            "+" => self.run_aging(v, seq, swappiness > 0, last != Some(0)),
            "-" => self.run_eviction(v, seq, swappiness as u32, last.unwrap_or(u64::MAX)),
            _ => Err("a command starts with + or -".into()),
        }
    }

    fn run_aging(&mut self, v: LruvecId, seq: u64, can_swap: bool, force: bool) -> Result<(), String> {
        let g = &self.mem.pages.lruvecs[v.index()].r#gen;
        if seq < g.max_seq {
            return Ok(());
        }
        if seq > g.max_seq {
            return Err(format!("max_seq is {}", g.max_seq));
        }
        if !force && g.evictable_min_seq(can_swap) + MAX_NR_GENS - 1 <= g.max_seq {
            return Err("there are four generations already, and force is off".into());
        }
        self.mem.pages.try_to_inc_max_seq(self.mem.now_ns, self.world, v, seq, can_swap, force);
        self.mem.pages.walk_context = false;
        Ok(())
    }

    fn run_eviction(&mut self, v: LruvecId, seq: u64, swappiness: u32, nr: u64) -> Result<(), String> {
        if seq + MIN_NR_GENS > self.mem.pages.lruvecs[v.index()].r#gen.max_seq {
            return Err("the two youngest generations cannot be evicted".into());
        }
        self.mem.pages.drain_batches();
        let Lruvec { memcg, nid, .. } = self.mem.pages.lruvecs[v.index()];
        self.sc = ScanControl { nid, ..ScanControl::for_memcg(memcg, nr, Some(swappiness)) };
        let oldest = |e: &Self| e.mem.pages.lruvecs[v.index()].r#gen.evictable_min_seq(swappiness > 0);
        let mut in_vain = 0;
        while oldest(self) <= seq && self.sc.nr_reclaimed < nr && in_vain <= self.oldest_pages(v) {
            let before = (oldest(self), self.mem.pages.work.scanned);
            let scanned = self.evict_folios(v, swappiness);
            if scanned == 0 {
                break;
            }
            let now = (oldest(self), self.mem.pages.work.scanned);
            in_vain = if now == before { in_vain + scanned } else { 0 };
        }
        Ok(())
    }

    /// With `min_ttl_ms`, out of memory if no group has anything that may go: each is too young,
    /// too small, or protected. True: it was.
    pub(crate) fn age_node_on(&mut self, nid: NodeId) -> bool {
        if self.mem.cfg.lru.min_ttl_ns == 0 || self.mem.cfg.lru.kind != Lru::MultiGen {
            return false;
        }
        if self.mem.cfg.memcg.selection == MemcgSelection::MemcgLru {
            // A group too small to be of help goes by the priority of the pass that follows.
            self.set_initial_priority();
        }
        let places = 0..self.mem.pages.lruvecs.len() as u32;
        if places.map(LruvecId).any(|v| self.mem.pages.lruvecs[v.index()].nid == nid && self.is_reclaimable(v)) {
            return false;
        }
        self.world.effect(Effect::Oom { memcg: MemcgId::ROOT });
        true
    }

    /// The oldest generation of an lruvec is older than `min_ttl_ms`, and a pass at this priority
    /// would take something of the lruvec.
    fn is_reclaimable(&self, id: LruvecId) -> bool {
        let swappiness = self.effective_swappiness(id);
        let (v, lru) = (&self.mem.pages.lruvecs[id.index()], &self.mem.cfg.lru);
        let oldest = match lru.generations {
            Generations::Linked => v.r#gen.min_seq[FILE],
            Generations::Independent => v.r#gen.evictable_min_seq(swappiness > 0),
        };
        if v.r#gen.birth_ns[gen_index(oldest)].saturating_add(lru.min_ttl_ns) > self.mem.now_ns {
            return false;
        }
        let types = if swappiness > 0 { ANON..=FILE } else { FILE..=FILE };
        let total: u64 = v.r#gen.nr_pages.iter().map(|pages| pages[types.clone()].iter().sum::<u64>()).sum();
        let is_online = self.mem.groups.memcgs.get(v.memcg).is_online();
        let taken = if is_online { lru.share_of_priority(total, self.sc.priority) } else { total };
        taken > 0 && self.mem.groups.memcgs.below_protection(MemcgId::ROOT, v.memcg) != BelowProtection::Min
    }
}
