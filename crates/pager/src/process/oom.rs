//! Room: what takes memory besides the pages that the engine knows of, who waits for room, and what
//! becomes of processes that get none.

use refault_mm::{PageId, ReclaimRequest, ReclaimRound, Touch};

use super::address_space::AddressSpace;
use super::agent::Agent;
use super::core::{Core, Pending};
use super::maps;
use super::no_progress::{Moved, NO_PROGRESS_NS};
use crate::core::{State, engine_bytes, kswapd_step};
use crate::staging::WINDOW;
use crate::uffd::PAGE;

/// Rounds after which a pool in front of a file is asked for memory, each time.
const ROOM_ROUNDS: u32 = 20;

/// Nanoseconds of waiting for room after which a debugger of a process that does not move its pages
/// out gets some of the memory kept for reclaim.
const RESERVE_AFTER_NS: u64 = 2_000_000;
/// Nanoseconds for which the pages that a helped process has then stay in memory: they may be all
/// that can leave, and would come and go.
const RESERVE_FOR_NS: u64 = 100_000_000;

/// Once nothing is kept any more, the debugger gets memory beyond the limit, while less than one
/// part in this many of the memory is missing.
const MOST_UNCHARGED: u64 = 10;

impl Core {
    /// Whether a process got some of what is kept for reclaim a moment ago.
    pub(super) fn got_reserve(&self, space: usize) -> bool {
        self.space(space).and_then(|s| s.reserve_ns).is_some_and(|at_ns| self.now_ns - at_ns < RESERVE_FOR_NS)
    }

    /// Debuggers of processes that do not answer. A debugger may be waiting for room itself, and
    /// until it goes on, its process does not answer.
    fn tracers(&self) -> Vec<i32> {
        if self.waiting_for_frame.is_empty() {
            return Vec::new();
        }
        let unanswered = self.spaces.iter().flatten().filter(|s| s.unanswered.is_some());
        unanswered.filter_map(|s| maps::tracer(s.pid)).collect()
    }

    /// Reclaim is at work, and what is left is for it.
    pub(super) fn is_short(&self) -> bool {
        self.budget.is_short(&self.engine, self.memory.kswapd_awake)
    }

    /// Pages of `memory.high`, or of `memory.max`.
    pub(super) fn lowest_limit(&self) -> u64 {
        self.high_pages.map_or(self.budget.max_pages, |high| high.min(self.budget.max_pages))
    }

    /// There is no room and nothing to reclaim: the process that asks dies, as it would without a
    /// pager.
    fn out_of_memory(&mut self, p: Pending) {
        let Some(s) = self.space_mut(p.space) else { return };
        let pid = s.pid;
        if pid > 0 && !std::mem::replace(&mut s.is_killed, true) {
            self.say_killed(p.space);
            // SAFETY: the process is one that is served here; a number that was used again would be
            // of this user, too.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        if pid == 0
            && let Some(page) = self.page_at(p.space, p.address)
        {
            self.poison(page, "there is no room for it, and nothing to reclaim");
        }
    }

    /// One step of background reclaim.
    pub(super) fn kswapd_step(&mut self) {
        if self.memory.kswapd_awake {
            self.memory.kswapd_awake = kswapd_step(&mut self.engine, &mut self.memory);
        }
        self.fill_others();
    }

    /// Pages that are missing because of memory that the engine does not know of.
    pub(super) fn missing(&self) -> u64 {
        let (free, low): (u64, u64) =
            self.engine.zones().fold((0, 0), |(f, l), (.., free, marks)| (f + free, l + marks.low));
        (low + self.uncharged).saturating_sub(free)
    }

    /// Reclaims as much as is missing, while not too much is on its way out: nothing of that is
    /// free yet, so without this limit all memory would be ordered out at once.
    pub(super) fn reclaim_missing(&mut self) {
        let missing = self.missing();
        if missing > 0 && !self.memory.kswapd_awake && self.memory.leaving.is_empty() {
            let mut request = ReclaimRequest::new(self.group, missing.min(WINDOW as u64 * 4), None);
            // Less than asked for: the next round goes on.
            while let Ok(ReclaimRound::More) = self.engine.reclaim_round(&mut self.memory, &mut request) {}
            self.fill_others();
        }
    }

    /// Faults that found no room try again. Without anyone who makes room, they reclaim for
    /// themselves.
    pub(super) fn retry_waiting(&mut self) {
        let c = &self.memory.counts;
        let moved = Moved { swapped: c.swapped_out + c.swapped_in, failed: c.write_errors };
        // A thread that waits for a page that is being written is back here when that has failed.
        let anyone_waits = !(self.waiting_for_frame.is_empty() && self.waiting.is_empty());
        self.progress.round(self.now_ns, moved, anyone_waits);
        let under_way = self.memory.is_under_way();
        if self.progress.rounds().is_multiple_of(ROOM_ROUNDS) && !under_way && self.memory.area.ask_for_room() {
            return;
        }
        let waits_too_long = self.progress.stuck_ns() > self.stall_limit_ns;
        // Pages that have no place to go to need not be waited for.
        let patience_ns = if self.is_swap_full() { NO_PROGRESS_NS / 10 } else { NO_PROGRESS_NS };
        let is_stuck = waits_too_long || self.progress.is_over(patience_ns, self.memory.all_resident(), under_way);
        if is_stuck && !waits_too_long && self.sharing.forget(self.now_ns) {
            // Figures that are not known for certain have nobody killed.
            self.progress.allow_more();
            return self.charge_overhead();
        }
        let tracers = self.tracers();
        let mut victim = false;
        for p in std::mem::take(&mut self.waiting_for_frame) {
            let waited_ns = self.now_ns - p.since_ns;
            if is_stuck && !victim && waited_ns > patience_ns {
                // One at a time: its memory is for the others.
                victim = true;
                self.progress.begin_again();
                self.out_of_memory(p);
            } else {
                let holds = self.space(p.space).is_some_and(|s| tracers.contains(&s.pid));
                let helps = holds && waited_ns > RESERVE_AFTER_NS;
                self.engine.set_memalloc(helps);
                if helps {
                    self.leave_page_uncharged();
                }
                let before = self.waiting_for_frame.len();
                self.serve(p, helps || !self.memory.kswapd_awake);
                self.engine.set_memalloc(false);
                let is_served = self.waiting_for_frame.len() == before;
                let now_ns = self.now_ns;
                if let Some(s) = self.space_mut(p.space).filter(|_| helps && is_served) {
                    s.reserve_ns = Some(now_ns);
                }
            }
        }
        self.note_pressure();
    }

    /// Charges the memory that the pool and the pager take, and that processes have beyond what the
    /// engine knows of.
    pub(super) fn charge_overhead(&mut self) {
        let area = self.memory.area.stats();
        self.peak_swap = self.peak_swap.max(area.pages);
        self.peak_pool_bytes = self.peak_pool_bytes.max(area.usage.memory_bytes);
        self.peak_file = self.peak_file.max(area.usage.file_pages);
        let tables = (self.own_bytes() - self.budget.fixed_bytes) as u64;
        self.peak_tables = self.peak_tables.max((tables, self.memory.states().len() as u64));
        let unknown: u64 = self.spaces.iter().flatten().map(|s| s.unknown).sum();
        let own = if self.budget.overhead_beside { 0 } else { self.overhead_pages() };
        self.set_external(own + unknown + self.sharing.pages());
        self.note_peak();
    }

    /// Pages that the pool and the pager take.
    pub(super) fn overhead_pages(&self) -> u64 {
        let stores = self.memory.area.stats().usage.memory_bytes;
        (self.own_bytes() as u64 + stores).div_ceil(PAGE as u64)
    }

    /// Takes memory for what the engine does not know of, as far as there is any; reclaim sees to
    /// the rest.
    fn set_external(&mut self, pages: u64) {
        let before = self.engine.free_pages();
        let all = self.engine.set_external_pages(pages);
        self.taken = if all { pages } else { self.taken + before - self.engine.free_pages() };
        self.uncharged = pages - self.taken;
        if self.memory.high.holds {
            // And counts against `memory.high`. The group is there, so this does not fail.
            _ = self.engine.set_memcg_external_pages(self.group, pages);
        }
    }

    /// If all is taken, a page of what the engine does not know of is left uncharged: memory is
    /// beyond the limit by as much, for a while.
    fn leave_page_uncharged(&mut self) {
        if self.engine.free_pages() == 0 && self.taken > 0 && self.uncharged < self.budget.max_pages / MOST_UNCHARGED {
            self.engine.set_external_pages(self.taken - 1);
            (self.taken, self.uncharged) = (self.taken - 1, self.uncharged + 1);
        }
    }

    pub(super) fn own_bytes(&self) -> usize {
        let of_space = |s: &AddressSpace| s.table.bytes() + s.agent.as_ref().map_or(0, Agent::shared_bytes);
        let tables: usize = self.spaces.iter().flatten().map(of_space).sum();
        self.budget.fixed_bytes + engine_bytes(&self.engine) + self.memory.table_bytes() + tables
    }

    pub(super) fn note_peak(&mut self) {
        self.budget.note_peak(&self.engine);
    }

    /// A page that is in place already becomes known to the engine. False: there is no room for it
    /// now.
    pub(super) fn account_resident_page(&mut self, page: u32) -> bool {
        // The page was counted as unknown: as much memory becomes free as the engine must have to
        // give a page.
        let free = self.engine.free_pages();
        if free < self.high_mark + 32 {
            self.set_external(self.taken.saturating_sub(self.high_mark + 32 - free));
        }
        // Else the engine would look for room in all that is known, again for each page, and who
        // makes some would wait for the lock.
        if self.engine.free_pages() <= self.budget.min_mark {
            return false;
        }
        self.memory.in_place = true;
        self.engine.access(&mut self.memory, PageId(page), Touch::MapWrite);
        self.memory.in_place = false;
        self.fill_others();
        let is_known = self.memory.state(page) == State::Mapped;
        if is_known && self.space(self.memory.owner(page)).is_some_and(|s| s.shares) {
            self.sharing.found();
        }
        is_known
    }
}
