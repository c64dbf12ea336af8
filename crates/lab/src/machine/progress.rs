//! Progress of a run, for people who wait for it.

use super::state::Machine;
use crate::scenario::{PhaseLimit, TaskSpec};
use crate::sched::Thread;
use crate::task::Task;

impl Machine {
    /// Share of the scenario that is over, 0 to 1: by its end, or by the phases of the tasks that
    /// keep it alive, whichever is further. An estimate, because accesses differ in length. None:
    /// nothing says when the scenario ends.
    pub fn done_share(&self) -> Option<f64> {
        let by_end = self.spec.end_ns.map(|end| self.now_ns() as f64 / end.max(1) as f64);
        let share = by_end.into_iter().chain(self.tasks_share()).reduce(f64::max)?;
        Some(share.clamp(0.0, 1.0))
    }

    /// Mean share over all copies in the foreground; none if a copy goes on to the end of the
    /// scenario.
    fn tasks_share(&self) -> Option<f64> {
        let (mut sum, mut copies) = (0.0, 0u32);
        for task in self.threads.iter().filter_map(Thread::task) {
            let spec = &self.spec.tasks[task.spec];
            if spec.background {
                continue;
            }
            if spec.phases.iter().any(|phase| phase.until == PhaseLimit::End) {
                return None;
            }
            copies += 1;
            sum += task_share(task, spec, self.now_ns());
        }
        (copies > 0).then(|| sum / f64::from(copies))
    }
}

/// Share of a task that is over, 0 to 1. Each time through a phase weighs its accesses; all phases
/// weigh the same if one has no number of accesses.
fn task_share(task: &Task, spec: &TaskSpec, now_ns: u64) -> f64 {
    let counted = spec.phases.iter().all(|phase| matches!(phase.until, PhaseLimit::Accesses(_)));
    let (mut done, mut all) = (0.0, 0.0);
    for (n, phase) in spec.phases.iter().enumerate() {
        let weight = match phase.until {
            PhaseLimit::Accesses(accesses) if counted => accesses as f64,
            _ => 1.0,
        };
        let inside = spec.loops.iter().find(|l| l.phases.contains(&n));
        let times = inside.map_or(1.0, |l| l.times as f64);
        all += weight * times;
        // In a loop: full times through the loop so far.
        let before = inside.filter(|l| l.phases.contains(&task.phase)).map(|_| task.iteration() as f64);
        done += weight
            * match n.cmp(&task.phase) {
                std::cmp::Ordering::Less => before.map_or(times, |before| before + 1.0),
                std::cmp::Ordering::Equal => before.unwrap_or(0.0) + task.phase_share(phase, now_ns),
                std::cmp::Ordering::Greater => before.unwrap_or(0.0),
            };
    }
    if all > 0.0 { done / all } else { 0.0 }
}
