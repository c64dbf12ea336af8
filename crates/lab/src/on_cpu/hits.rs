//! Runs of consecutive plain hits, which are charged to the task once, at the end of the run.

use super::context::OnCpu;
use crate::scenario::PhaseSpec;
use crate::task::{Access, Block, Direction, Hits, Task};

impl OnCpu<'_> {
    /// Makes the accesses that a task has drawn ahead, from `clock` to `end`, up to the first that
    /// is more than a hit; the time then.
    pub(super) fn run_hits(&mut self, task: &mut Task, phase: &PhaseSpec, mut clock: u64, end: u64) -> u64 {
        let end = task.end_of_phase(phase).min(end);
        let mut made = Hits::default();
        while clock < end && made.count() < task.accesses_left() {
            if task.is_dry() {
                self.look_ahead(task);
            }
            let most = task.accesses_left() - made.count();
            let touched = task
                .drawn_touches()
                .map(|(space, row)| self.touch_row(phase, (space, row), (&mut clock, end), most, &mut made));
            if let Some(touched) = touched {
                task.take_drawn(touched);
                if task.is_dry() {
                    continue;
                }
                break;
            }
            let Some(access) = task.drawn() else { break };
            let hit = match access.mapped {
                true => self.touch_in_table(task, phase, clock, access),
                false => self.read_at_random(task, phase, clock, access),
            };
            let Some([user_ns, system_ns]) = hit else { break };
            task.take_drawn(1);
            made.add(usize::from(access.write), user_ns, system_ns);
            clock += (user_ns + system_ns).max(1);
        }
        if made.count() > 0 {
            task.finish_hits(phase, made, clock);
        }
        clock
    }

    /// Touches the pages of a row through one page table, up to the first that needs a fault, to
    /// the time `end`, or `most` pages. Returns how many it touched.
    #[inline]
    fn touch_row(
        &mut self,
        phase: &PhaseSpec,
        (space, row): (usize, impl Iterator<Item = Block>),
        (clock, end): (&mut u64, u64),
        most: u64,
        made: &mut Hits,
    ) -> usize {
        let kernel = &mut *self.kernel;
        let hit_ns = kernel.costs.map_hit_ns + phase.cpu_ns;
        let (mut table, nodes) = (kernel.hw.tables.table(space), &mut kernel.hw.nodes);
        let has_nodes = !nodes.is_empty();
        let mut touched = 0;
        for block in row {
            if *clock >= end || touched as u64 == most {
                break;
            }
            let write = block.direction == Direction::Write;
            let Some(entry) = table.touch(block.first, write) else { break };
            let mut ns = hit_ns;
            if has_nodes {
                ns += nodes.access(entry.node(), write, phase.lines, *clock);
            }
            made.add(entry.node() << 1 | usize::from(write), ns, 0);
            *clock += ns.max(1);
            touched += 1;
        }
        touched
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
