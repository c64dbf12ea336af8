//! Lack of memory: who is killed, and what is free then.

use refault_mm::{MappingId, MemcgId, OomTask};

use super::context::OnCpu;
use crate::results::{Ending, OomVictim};
use crate::sched::Event;

impl OnCpu<'_> {
    /// The out-of-memory killer: the engine says who.
    pub(super) fn kill_for(&mut self, memcg: MemcgId) {
        if self.kill_within(memcg) == 0 {
            // Linux gives up, too.
            *self.ending = Some(Ending::Stuck);
        }
    }

    /// Kills the tasks that are to die for lack of memory in a group. Returns how many.
    pub(super) fn kill_within(&mut self, memcg: MemcgId) -> usize {
        let spec = self.spec;
        let mut threads = Vec::new();
        let mut tasks = Vec::new();
        let (mut at, mut names) = (0, Vec::new());
        for (n, s) in spec.tasks.iter().enumerate() {
            // Without a group it has not begun.
            let group = self.groups.id_or_root(self.groups.of_task(n));
            for copy in 0..s.count {
                if let (Some(group), true) = (group, self.threads.can_be_killed(at)) {
                    threads.push(at);
                    names.push((n, self.groups.of_task(n)));
                    let mappings = self.programs.anon_of(spec, n, copy);
                    tasks.push(OomTask { memcg: group, score_adj: s.oom_score_adj, mappings });
                }
                at += 1;
            }
        }
        let victims = self.kernel.engine.oom_kill(memcg, &tasks);
        victims.iter().for_each(|&v| self.kill(threads[v], &tasks[v].mappings));
        self.programs.oom_kills += victims.len() as u64;
        let path = |group: Option<usize>| group.map_or("/", |g| &spec.memcgs[g].path).to_owned();
        let within = (0..spec.memcgs.len()).find(|&g| self.groups.id(g) == Some(memcg));
        for &victim in victims.iter().take(OomVictim::MOST.saturating_sub(self.programs.oom_victims.len())) {
            let (task, group) = names[victim];
            self.programs.oom_victims.push(OomVictim {
                at_ns: self.clock.now_ns(),
                task: spec.tasks[task].name.clone(),
                group: path(group),
                within: path(within),
            });
        }
        victims.len()
    }

    /// A copy of a task has ended: anonymous memory that nobody will use any more is free. Files
    /// stay in the cache.
    pub(crate) fn free_memory_of(&mut self, task: usize, copy: u32) {
        let kernel = &mut *self.kernel;
        for mapping in self.programs.unused_after(self.spec, task, copy) {
            kernel.engine.zap_mapping(&mut kernel.hw, mapping);
        }
        let _ = self.settle(self.clock.now_ns());
    }

    pub(super) fn kill(&mut self, t: usize, mappings: &[MappingId]) {
        debug_assert!(!self.threads[t].killed, "thread {t} is killed twice");
        self.threads[t].killed = true;
        let kernel = &mut *self.kernel;
        for &m in mappings {
            kernel.engine.zap_mapping(&mut kernel.hw, m);
        }
        self.kernel.send_discards(self.clock.now_ns(), self.clock);
        let wait = self.threads[t].begin_wait();
        self.clock.push(self.clock.now_ns(), Event::Wake(t, wait));
    }
}
