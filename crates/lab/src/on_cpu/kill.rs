//! Victims of a program that watches the machine: a task, or all tasks of a group.

use refault_mm::{Counter, MappingId};

use super::context::OnCpu;
use crate::scenario::{Scenario, Victim};

/// A copy of a task that could be killed.
struct Candidate {
    thread: usize,
    task: usize,
    group: Option<usize>,
    mappings: Vec<MappingId>,
}

/// Whether `group` is `within` or a descendant of it; `None` is the root.
fn is_within(spec: &Scenario, group: Option<usize>, within: Option<usize>) -> bool {
    within.is_none() || std::iter::successors(group, |&g| spec.memcgs[g].parent).any(|g| Some(g) == within)
}

impl OnCpu<'_> {
    /// Kills tasks in a group or below it, as a daemon in user space does. Returns how many, and
    /// the name of the task or group. `scanned`: by group the pages that reclaim had looked at
    /// before.
    pub(crate) fn kill_by_daemon(
        &mut self,
        (within, victim): (Option<usize>, Victim),
        scanned: &[u64],
    ) -> Result<(u64, String), String> {
        let candidates = self.candidates(within);
        let (chosen, name): (Vec<Candidate>, String) = match victim {
            Victim::OomScore | Victim::OomScoreAdj => {
                let by = |c: &Candidate| self.score(c, victim);
                let best =
                    candidates.into_iter().filter(|c| self.spec.tasks[c.task].oom_score_adj > -1000).max_by_key(by);
                let best = best.ok_or("nobody may be killed")?;
                let name = self.spec.tasks[best.task].name.clone();
                (vec![best], name)
            }
            Victim::LargestGroup | Victim::SwapGroup | Victim::ScannedGroup => {
                let groups = candidates.iter().filter_map(|c| c.group);
                let best = groups.max_by_key(|&g| (self.weight(g, victim, scanned), std::cmp::Reverse(g)));
                let best = best.ok_or("no group has a task")?;
                let name = self.spec.memcgs[best].path.clone();
                (candidates.into_iter().filter(|c| c.group == Some(best)).collect(), name)
            }
        };
        for c in &chosen {
            self.kill(c.thread, &c.mappings);
            self.threads[c.thread].killed_by_program = true;
        }
        Ok((chosen.len() as u64, name))
    }

    fn candidates(&self, within: Option<usize>) -> Vec<Candidate> {
        let (spec, mut thread, mut all) = (self.spec, 0, Vec::new());
        for (task, s) in spec.tasks.iter().enumerate() {
            let group = self.groups.of_task(task);
            for copy in 0..s.count {
                if self.threads.can_be_killed(thread) && is_within(spec, group, within) {
                    let mappings = self.programs.anon_of(spec, task, copy);
                    all.push(Candidate { thread, task, group, mappings });
                }
                thread += 1;
            }
        }
        all
    }

    /// `oom_score`: memory and swap in thousandths of all there is, and the adjustment; or the
    /// adjustment first.
    fn score(&self, c: &Candidate, victim: Victim) -> (i64, i64, std::cmp::Reverse<usize>) {
        let engine = &self.kernel.engine;
        let pages = c.mappings.iter().map(|&m| engine.footprint(m)).sum::<u64>() as i64;
        let swap: u64 = engine.swap_maps().iter().map(|map| map.device.usable_pages).sum();
        let all = (engine.managed_pages() + swap) as i64;
        let adj = i64::from(self.spec.tasks[c.task].oom_score_adj);
        let first = if victim == Victim::OomScore { pages + adj * all / 1000 } else { adj };
        (first, pages, std::cmp::Reverse(c.thread))
    }

    fn weight(&self, group: usize, victim: Victim, scanned: &[u64]) -> u64 {
        let Some(id) = self.groups.id(group) else { return 0 };
        let engine = &self.kernel.engine;
        let gauges = engine.memcg_tree_gauges(id);
        let gauge = |name: &str| gauges.iter().find(|g| g.name == name).map_or(0, |g| g.value);
        match victim {
            Victim::LargestGroup => engine.memcg_usage(id).saturating_sub(gauge("inactive_file")),
            Victim::SwapGroup => gauge("memory.swap.current"),
            _ => self.scanned(group).saturating_sub(scanned.get(group).copied().unwrap_or(0)),
        }
    }

    /// Pages of a group and its descendants that reclaim has scanned so far.
    pub(crate) fn scanned(&self, group: usize) -> u64 {
        let Some(id) = self.groups.id(group) else { return 0 };
        let stats = self.kernel.engine.memcg_tree_stats(id);
        stats.get(Counter::PgscanAnon) + stats.get(Counter::PgscanFile)
    }
}
