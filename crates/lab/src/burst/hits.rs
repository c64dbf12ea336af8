//! Accesses in a row that are plain hits: what they mean for the task is added up once, at the end
//! of the row.

use super::context::Burst;
use crate::scenario::PhaseSpec;
use crate::task::{Access, Hits, Task};

impl Burst<'_> {
    /// Makes the accesses that a task has drawn ahead, from `clock` to `end`, up to the first that
    /// is more than a hit; the time then.
    pub(super) fn run_hits(&mut self, task: &mut Task, phase: &PhaseSpec, mut clock: u64, end: u64) -> u64 {
        let end = task.end_of_phase(phase).min(end);
        let mut made = Hits::default();
        while clock < end && made.count() < task.accesses_left() {
            if task.is_dry() {
                self.look_ahead(task);
            }
            let Some(access) = task.drawn() else { break };
            let hit = match access.mapped {
                true => self.touch_in_table(task, phase, clock, access),
                false => self.read_at_random(task, phase, clock, access),
            };
            let Some([user_ns, system_ns]) = hit else { break };
            task.take_drawn();
            made.add(user_ns, system_ns);
            clock += (user_ns + system_ns).max(1);
        }
        if made.count() > 0 {
            task.finish_hits(phase, made, clock);
        }
        clock
    }

    /// A touch through a page table that needs no fault: the program's time and the kernel's.
    #[inline]
    fn touch_in_table(&mut self, task: &Task, phase: &PhaseSpec, clock: u64, access: Access) -> Option<[u64; 2]> {
        let space = task.streams[access.stream].space?;
        Some([self.hit_in_table(space, phase, clock, access)?, 0])
    }

    /// A read by descriptor that is a plain hit, likewise.
    #[inline]
    fn read_at_random(&mut self, task: &mut Task, phase: &PhaseSpec, clock: u64, access: Access) -> Option<[u64; 2]> {
        let kernel = &mut *self.kernel;
        if access.write || !kernel.hw.nodes.is_empty() {
            return None;
        }
        kernel.set_now_ns(clock);
        let readahead = &mut task.streams[access.stream].readahead;
        let hit = kernel.engine.read_at_random(access.page, readahead);
        hit.then_some([phase.cpu_ns, kernel.costs.read_hit_ns])
    }
}
