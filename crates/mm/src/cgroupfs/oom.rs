//! Who dies when a group, or the machine, is out of memory (7.5, 6.4).

use crate::engine::Engine;
use crate::ids::{MappingId, MemcgId};

/// A task that could be killed.
#[derive(Clone, Debug)]
pub struct OomTask {
    /// Its group.
    pub memcg: MemcgId,
    /// `oom_score_adj`, −1000 to 1000; −1000: never.
    pub score_adj: i32,
    /// Its anonymous memory.
    pub mappings: Vec<MappingId>,
}

/// `oom_score_adj` of a task that is never killed.
const NEVER: i32 = -1000;

impl Engine {
    /// The victims, by their places in `tasks`: of the tasks within `over` the one with the largest resident set, swap and page tables,
    /// and with it all tasks of the highest group that has `oom_group` (those that are never killed excepted). None: nobody may
    /// be killed. The events of the groups are counted.
    pub fn oom_kill(&mut self, over: MemcgId, tasks: &[OomTask]) -> Vec<usize> {
        let thousandth = (self.oom_total_pages(over) / 1000) as i64;
        let points = |t: &OomTask| {
            let used: u64 = t.mappings.iter().map(|&m| self.footprint(m)).sum();
            used as i64 + i64::from(t.score_adj) * thousandth
        };
        let may_die = |t: &OomTask| t.score_adj > NEVER;
        let eligible =
            tasks.iter().enumerate().filter(|(_, t)| may_die(t) && self.groups.memcgs.is_within(t.memcg, over));
        // The first of equals.
        let Some((first, victim)) = eligible.max_by_key(|&(i, t)| (points(t), std::cmp::Reverse(i))) else {
            return Vec::new();
        };
        let group = self.oom_group(victim.memcg, over);
        let together = |t: &OomTask| group.is_some_and(|g| may_die(t) && self.groups.memcgs.is_within(t.memcg, g));
        let victims: Vec<usize> = (0..tasks.len()).filter(|&i| i == first || together(&tasks[i])).collect();
        if let Some(group) = group {
            self.groups.memcgs.event(group, |e| &mut e.oom_group_kill);
        }
        victims.iter().for_each(|&i| self.groups.memcgs.event(tasks[i].memcg, |e| &mut e.oom_kill));
        victims
    }

    /// The highest group with `oom_group` from that of the victim up to the one that has no room.
    fn oom_group(&self, victim: MemcgId, over: MemcgId) -> Option<MemcgId> {
        let mut group = None;
        for m in self.groups.memcgs.chain(victim) {
            if m != MemcgId::ROOT && self.groups.memcgs.get(m).oom_group {
                group = Some(m);
            }
            if m == over {
                break;
            }
        }
        group
    }

    /// What `oom_score_adj` is a share of: the memory and swap that there could be.
    fn oom_total_pages(&self, over: MemcgId) -> u64 {
        let machine: u64 = self.frames.nodes.managed_pages();
        if over == MemcgId::ROOT {
            return machine + self.swap.slots.total_pages();
        }
        let m = self.groups.memcgs.get(over);
        let max = if machine > 0 { m.max.min(machine) } else { m.max };
        max.saturating_add(m.swap_max.min(self.swap.slots.total_pages())).min(1 << 50)
    }
}
