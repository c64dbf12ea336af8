//! A bound on the pager's own tables. They grow with each 2 MiB in which a process touched a page,
//! and with each fork, and nothing makes them smaller while the processes are there: without a
//! bound they would take all of the memory, and more.

use super::core::Core;
use super::maps;
use super::page_table::BLOCK;
use crate::core::State;
use crate::uffd::PAGE;
use refault_syscalls::machine;

/// Part of the memory that may be tables: the rest is for pages.
const PART: (usize, usize) = (2, 3);
/// Processes killed for want of memory that get a line each, at most.
const MOST_NAMED: u64 = 16;

impl Core {
    /// Whether another process may have another block of pages.
    pub(super) fn has_room_for_tables(&self) -> bool {
        let most = self.budget.max_pages as usize * PAGE * PART.0 / PART.1;
        self.own_bytes() - self.budget.fixed_bytes + self.memory.lent_to_come(BLOCK) < most
    }

    /// There is no room for what a process takes of tables: it dies. One that was forked a moment
    /// ago dies as soon as its number is known.
    pub(super) fn out_of_tables(&mut self, space: usize) {
        let Some(s) = self.space_mut(space) else { return };
        if !std::mem::replace(&mut s.is_undecided, true) {
            self.say_killed(space);
        }
        self.kill(space);
    }

    /// A process is killed for want of memory: it counts, and a line says so.
    pub(super) fn say_killed(&mut self, space: usize) {
        self.killed += 1;
        if self.killed <= MOST_NAMED {
            let process = match self.pid_of(space) {
                0 => "a process that was just forked".to_string(),
                pid => format!("process {pid}"),
            };
            eprintln!("refault: out of memory: {process} is killed; {}", self.what_is_short());
        } else if self.killed == MOST_NAMED + 1 {
            eprintln!("refault: out of memory: more processes are killed, which the last line counts");
        }
    }

    /// Whether all that may be out of memory is. Not all slots are used: processors keep some, and
    /// some do not fit a cluster.
    pub(super) fn is_swap_full(&self) -> bool {
        self.engine.swap_used_pages() + self.swap_pages / 16 >= self.swap_pages
    }

    /// Tells what takes the memory, and what would help.
    fn what_is_short(&self) -> String {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        let (area, max) = (self.memory.area.stats(), self.budget.max_pages * PAGE as u64);
        let (pool, tables) = (area.usage.memory_bytes, self.own_bytes() as u64);
        let resident = self.memory.all_resident() * PAGE as u64;
        let file_limit =
            machine::limit("file_size_bytes").filter(|&l| self.has_swap_file && l < self.swap_pages * PAGE as u64);
        let advice = if !self.has_room_for_tables() || tables > max / 4 && !self.is_swap_full() {
            return format!(
                "of {} MiB tables take {} and may take two thirds: they grow by some 25 KB with each 2 MiB in which a process ever touched a \
                 page, or was forked with pages out of memory ({} of these now, processes: {}, with {} pages in all); give it more \
                 --memory-max, or have it touch memory that is closer together",
                mib(max),
                mib(tables),
                self.blocks(),
                self.spaces.iter().flatten().count(),
                self.memory.states().iter().filter(|&&state| state != State::Empty).count()
            );
        } else if self.is_swap_full() {
            "--swap-max is used up: give it more"
        } else if let Some(limit) = file_limit.filter(|_| area.write_errors > 0) {
            return format!("the swap file may have no more than {limit} bytes (ulimit -f): raise that limit");
        } else if area.write_errors > 0 || pool > max / 2 {
            "there is no room where pages go: give it a swap file (--swap-file DIR, on a disk with room) or more --memory-max"
        } else if let Some(s) = self.spaces.iter().flatten().find(|s| s.pid > 0 && maps::is_stopped(s.pid)) {
            let pid = s.pid;
            return format!(
                "process {pid} is stopped (by a signal or a debugger), so its memory cannot be moved out: let it go on"
            );
        } else if let Some(s) = self.spaces.iter().flatten().find(|s| s.pid > 0 && s.unanswered.is_some()) {
            let pid = s.pid;
            return format!(
                "process {pid} does not move its memory out: it has no processor, or the kernel has its mappings under a lock"
            );
        } else {
            "what is in place cannot be moved out (locked, not writable, or in use by a device): give it more --memory-max"
        };
        format!(
            "of {} MiB the stores take {}, tables {}, pages in place {}; {advice}",
            mib(max),
            mib(pool),
            mib(tables),
            mib(resident)
        )
    }

    /// Blocks of pages that processes have.
    fn blocks(&self) -> u64 {
        self.spaces.iter().flatten().map(|s| s.blocks.len() as u64).sum()
    }
}
