//! One (policy, size) cell of a replay with groups.

use super::tree::Tree;
use crate::replay::cell::{Cell, NS_PER_ACCESS, PREFETCH_BLOCK, TICK};
use refault_mm::{Config, MappingId, MemcgId, OomTask, PageId};
use refault_trace::{ObjectKind, PackedAccess, Trace};

/// Accesses of a group and their misses, without groups below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCount {
    /// Accesses replayed.
    pub accesses: u64,
    /// Misses among them.
    pub misses: u64,
    /// Accesses left out, as the group had been killed.
    pub skipped: u64,
    /// Number of the access of the trace at which it was killed for lack of memory.
    pub killed_at: Option<u64>,
    /// Nanoseconds that `memory.high` would have put its tasks to sleep.
    pub slept_ns: u64,
}

/// A trace being replayed with its groups.
#[derive(Debug)]
pub struct Grouped<'a> {
    tree: &'a Tree,
    /// The engine and what is around it.
    pub cell: Cell,
    /// Counts, by group of the tree.
    pub counts: Vec<GroupCount>,
    /// The anonymous memory of each group of the tree.
    anon: Vec<Vec<MappingId>>,
    at: u64,
    /// How many pages left memory otherwise than by reclaim.
    dropped: usize,
}

impl<'a> Grouped<'a> {
    /// An engine with the groups of the tree; the first group may have `memory_pages`.
    pub fn new(
        trace: &Trace,
        tree: &'a Tree,
        cfg: Config,
        memory_pages: u64,
        swap_max_pages: u64,
    ) -> Result<Grouped<'a>, String> {
        let cell = Cell::of_tree(trace, tree, cfg, memory_pages, swap_max_pages)?;
        let mut anon = vec![Vec::new(); tree.groups.len()];
        let touched = trace.objects.iter().filter(|o| !o.indices.is_empty());
        for (object, &mapping) in touched.zip(&cell.mappings) {
            if object.kind == ObjectKind::Anon {
                anon[tree.of_trace[usize::from(object.group)]].push(mapping);
            }
        }
        Ok(Grouped { tree, counts: vec![GroupCount::default(); tree.groups.len()], cell, anon, at: 0, dropped: 0 })
    }

    /// Replays the accesses `range` of the trace. False: memory ran out and nobody was left to
    /// kill.
    pub fn run(&mut self, trace: &Trace, range: std::ops::Range<usize>, times: Option<&[u64]>) -> bool {
        let groups = trace.memcg.as_deref().unwrap_or_default();
        for start in range.clone().step_by(PREFETCH_BLOCK) {
            let block = start..(start + PREFETCH_BLOCK).min(range.end);
            self.cell.prefetch(&trace.accesses[block.clone()]);
            for i in block {
                if i % TICK == 0 {
                    self.cell.engine.set_now_ns(times.map_or(i as u64 * NS_PER_ACCESS, |t| t[i]));
                }
                let group = self.tree.of_trace[groups.get(i).map_or(0, |&g| usize::from(g))];
                self.at = i as u64;
                while let Some(&(_, page)) = trace.drops.get(self.dropped).filter(|(at, _)| *at <= self.at) {
                    self.cell.engine.truncate_range(&mut self.cell.machine, PageId(page), 1);
                    self.dropped += 1;
                }
                if !self.step(trace.accesses[i], group) {
                    return false;
                }
            }
        }
        true
    }

    fn step(&mut self, access: PackedAccess, group: usize) -> bool {
        if self.counts[group].killed_at.is_some() {
            self.counts[group].skipped += 1;
            return true;
        }
        self.counts[group].accesses += 1;
        if !self.cell.step(access) {
            self.counts[group].misses += 1;
            if self.cell.machine.oom.is_some() && !self.make_room(access, group) {
                return false;
            }
        }
        if self.cell.engine.is_over_high() {
            self.cell.engine.return_to_user(&mut self.cell.machine);
            self.counts[group].slept_ns += std::mem::take(&mut self.cell.machine.high_ns);
        }
        true
    }

    /// An access found no room: kills until it does, or until its own group was killed. False:
    /// nobody is left.
    #[cold]
    fn make_room(&mut self, access: PackedAccess, group: usize) -> bool {
        while let Some(over) = self.cell.machine.oom.take() {
            if !self.kill(over) {
                self.cell.oom_at = Some(self.at);
                return false;
            }
            if self.counts[group].killed_at.is_some() {
                break;
            }
            self.cell.step(access);
        }
        true
    }

    /// The out-of-memory killer: of the groups within the one that has no room it ends the one with
    /// most anonymous memory, as if it were one task. False: there is none.
    fn kill(&mut self, over: MemcgId) -> bool {
        let alive: Vec<usize> =
            (0..self.anon.len()).filter(|&g| self.counts[g].killed_at.is_none() && !self.anon[g].is_empty()).collect();
        let task = |&g: &usize| OomTask { memcg: self.cell.groups[g], score_adj: 0, mappings: self.anon[g].clone() };
        let tasks: Vec<_> = alive.iter().map(task).collect();
        let victims = self.cell.engine.oom_kill(over, &tasks);
        for &victim in &victims {
            self.counts[alive[victim]].killed_at = Some(self.at);
            for &mapping in &tasks[victim].mappings {
                self.cell.engine.zap_mapping(&mut self.cell.machine, mapping);
            }
        }
        !victims.is_empty()
    }

    /// Accesses and misses of each group and the groups below it, by place in the tree.
    pub fn totals(&self) -> Vec<GroupCount> {
        let mut totals = self.counts.clone();
        for (at, own) in self.counts.iter().enumerate() {
            for above in self.tree.chain(at).skip(1) {
                let total = &mut totals[above];
                total.accesses += own.accesses;
                total.misses += own.misses;
                total.skipped += own.skipped;
                total.slept_ns += own.slept_ns;
            }
        }
        totals
    }
}
