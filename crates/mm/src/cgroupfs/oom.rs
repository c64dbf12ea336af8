//! Choice of the task that dies when a group, or the machine, is out of memory.
//!
//! Mechanism: `docs/mechanisms.md#out-of-memory`.

use crate::ids::{MappingId, MemcgId};
use crate::lru::pages::ResidentPages;
use crate::memcg::groups::Groups;
use crate::node::frames::Frames;
use crate::swap_cache::stack::SwapStack;

/// A task that could be killed.
#[derive(Clone, Debug)]
pub struct OomTask {
    /// Memcg of the task.
    pub memcg: MemcgId,
    /// `oom_score_adj`, −1000 to 1000; −1000: never.
    pub score_adj: i32,
    /// Mappings of its anonymous memory.
    pub mappings: Vec<MappingId>,
}

/// `oom_score_adj` of a task that is never killed.
const NEVER: i32 = -1000;

/// The killer: the tasks that it weighs, and the counters that it advances.
pub(crate) struct OomKiller<'a> {
    pub(crate) pages: &'a ResidentPages,
    pub(crate) groups: &'a mut Groups,
    pub(crate) frames: &'a Frames,
    pub(crate) swap: &'a SwapStack,
}

impl OomKiller<'_> {
    /// Chooses the tasks to kill; returns their indices in `tasks`.
    pub(crate) fn kill(&mut self, over: MemcgId, tasks: &[OomTask]) -> Vec<usize> {
        let thousandth = (self.total_pages(over) / 1000) as i64;
        let points = |t: &OomTask| {
            let used: u64 = t.mappings.iter().map(|&m| self.pages.footprint(m)).sum();
            used as i64 + i64::from(t.score_adj) * thousandth
        };
        let may_die = |t: &OomTask| t.score_adj > NEVER;
        let eligible =
            tasks.iter().enumerate().filter(|(_, t)| may_die(t) && self.groups.memcgs.is_within(t.memcg, over));
        // The first of equals.
        let Some((first, victim)) = eligible.max_by_key(|&(i, t)| (points(t), std::cmp::Reverse(i))) else {
            return Vec::new();
        };
        let group = self.groups.oom_group(victim.memcg, over);
        let together = |t: &OomTask| group.is_some_and(|g| may_die(t) && self.groups.memcgs.is_within(t.memcg, g));
        let victims: Vec<usize> = (0..tasks.len()).filter(|&i| i == first || together(&tasks[i])).collect();
        if let Some(group) = group {
            self.groups.memcgs.event(group, |e| &mut e.oom_group_kill);
        }
        victims.iter().for_each(|&i| self.groups.memcgs.event(tasks[i].memcg, |e| &mut e.oom_kill));
        victims
    }

    /// Pages of memory and swap that there could be: `oom_score_adj` is in thousandths of them.
    fn total_pages(&self, over: MemcgId) -> u64 {
        let machine: u64 = self.frames.nodes.managed_pages();
        if over == MemcgId::ROOT {
            return machine + self.swap.slots.total_pages();
        }
        let m = self.groups.memcgs.get(over);
        let max = if machine > 0 { m.max.min(machine) } else { m.max };
        max.saturating_add(m.swap_max.min(self.swap.slots.total_pages())).min(1 << 50)
    }
}
