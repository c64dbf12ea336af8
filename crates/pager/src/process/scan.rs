//! Finding memory: how much processes have, which of it is not watched yet, and what of it is in
//! place without the engine's knowledge.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Shared;
use super::abi;
use super::core::Core;
use super::maps;
use super::new_memory::WORTH_WATCHING;
use super::unserved::UnservedProcesses;
use crate::core::State;
use crate::pagemap::Pagemap;
use crate::threads::processor_time;
use crate::uffd::PAGE;

/// Bytes that are looked at under the lock at a time.
const CHUNK: usize = 64 << 20;
/// Pages unknown to the engine by which a process must grow for another look at its mappings.
const WORTH_A_LOOK: u64 = 16;
/// Time between two looks through all watched memory of processes that have pages unknown to the
/// engine.
const RECONCILE_EVERY: Duration = Duration::from_millis(500);
/// The time between two looks is at least this, and this many times the processor time that a look
/// takes.
const LEAST_PAUSE: Duration = Duration::from_millis(1);
const MOST_PAUSE: Duration = Duration::from_millis(20);
const SHARE: u32 = 20;
/// While processes can copy much of what they share without a word.
const MOST_PAUSE_SHARED: Duration = Duration::from_millis(2);
/// The scanner goes before programs.
const NICE: libc::c_int = -10;

/// Work to be done about a process.
struct ScanTarget {
    index: usize,
    pid: i32,
    pagemap: Arc<Pagemap>,
    map: bool,
    reconcile: bool,
}

impl Shared {
    /// The scanner's thread.
    pub(super) fn scan(&self) {
        // Memory that it finds late is beyond the limit. If the system does not let it go first,
        // that is only later. SAFETY: the call changes the priority of this thread (0 names it).
        _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
        let mut reconciled = Instant::now();
        // Closer looks take longer, and pause for themselves.
        let mut closer_at = reconciled;
        let mut unserved = UnservedProcesses::new();
        while !self.stop.load(Ordering::Relaxed) {
            let (began, worked) = (Instant::now(), processor_time());
            let all = reconciled.elapsed() > RECONCILE_EVERY;
            if all {
                reconciled = began;
                self.catch_up();
            }
            let (looks, most) = self.look_around(all, all || began >= closer_at);
            let counted = processor_time().saturating_sub(worked);
            let is_closer = !looks.is_empty();
            for look in looks {
                if look.map {
                    self.watch_mappings(&look);
                }
                if look.reconcile {
                    self.reconcile(&look);
                }
                self.note_known(look.index);
            }
            let looked = processor_time().saturating_sub(worked + counted);
            if is_closer {
                closer_at = Instant::now() + (looked * SHARE).min(MOST_PAUSE);
            }
            self.look_for_unserved(&mut unserved);
            std::thread::sleep((counted * SHARE).clamp(LEAST_PAUSE, most));
        }
    }

    /// Reads all events of all processes. A waiting thread is told of a descriptor once: if it had
    /// not read everything, a thread that faulted would wait until another thread of its process
    /// faults.
    fn catch_up(&self) {
        let spaces = self.lock().spaces.len();
        for index in 0..spaces {
            let mut core = self.lock_now();
            core.note_answer(index);
            _ = core.settle(index);
            self.after(core);
        }
    }

    /// Counts processes that are not served, and what they have.
    fn look_for_unserved(&self, unserved: &mut UnservedProcesses) {
        let known: Vec<i32> = {
            let core = self.lock();
            (0..core.spaces.len()).map(|index| core.pid_of(index)).collect()
        };
        let found = unserved.look(&known);
        if found.kib > 0 || found.new > 0 {
            let unlimited = &mut self.lock().unlimited;
            unlimited.unserved += found.new;
            unlimited.peak_unserved = unlimited.peak_unserved.max(found.kib);
        }
    }

    /// Counts the memory of all processes. Returns the processes that need a closer look, if there
    /// may be one, and the longest pause until the next count.
    fn look_around(&self, all: bool, closer: bool) -> (Vec<ScanTarget>, Duration) {
        let mut core = self.lock_now();
        if all {
            core.remove_exited();
            core.end_agents();
        }
        core.look_at_threads();
        let sizes = core.count();
        let is_tight = core.memory.recorder.is_some()
            || core.engine.free_pages() < core.budget.max_pages - core.lowest_limit() / 2;

        core.open_pagemaps();
        let mut looks = Vec::new();
        let most = if core.can_copy_much() { MOST_PAUSE_SHARED } else { MOST_PAUSE };
        for (index, pid, size) in sizes.into_iter().filter(|_| closer) {
            let Some(s) = core.space_mut(index).filter(|s| s.pid == pid && s.unanswered.is_none()) else { continue };
            if is_tight && size.resident >= WORTH_WATCHING && !s.active {
                core.activate(index);
            }
            let Some(s) = core.space_mut(index) else { continue };
            let Some(pagemap) = s.pagemap.clone().filter(|_| s.active) else { continue };
            let grown = s.beyond.saturating_sub(s.known_unknown) >= WORTH_A_LOOK;
            let again = all || s.forked || std::mem::take(&mut s.is_unfinished);
            let (map, reconcile) =
                (all || grown || std::mem::take(&mut s.is_unwatched), again && s.beyond > WORTH_WATCHING);
            if map || reconcile {
                looks.push(ScanTarget { index, pid, pagemap, map, reconcile });
            }
        }
        self.tell_evictor(&mut core);
        (looks, most)
    }

    /// After a look: what is unknown now was not to be found.
    fn note_known(&self, index: usize) {
        let mut core = self.lock();
        let known = core.memory.resident(index);
        if let Some(s) = core.space_mut(index) {
            let now = maps::size(s.pid).resident.saturating_sub(known);
            (s.beyond, s.known_unknown) = (now, now);
            if !s.shares {
                s.unknown = now;
            }
        }
    }

    /// Watches the mappings of a process that are not watched yet, and has the engine know what is
    /// in them.
    fn watch_mappings(&self, look: &ScanTarget) {
        let Ok(mappings) = maps::anonymous(look.pid) else { return };
        for mapping in mappings {
            {
                let mut core = self.lock();
                let Some(s) = core.space(look.index).filter(|s| s.pid == look.pid) else { return };
                let gaps = s.watched.gaps(&mapping);
                if gaps.is_empty() && s.unadopted.parts(&mapping).is_empty() {
                    continue;
                }
                self.tick(&mut core);
                // In one piece: memory that is watched in part is two mappings, which some calls do
                // not take for one.
                gaps.iter().for_each(|gap| _ = core.watch(look.index, gap, false));
                self.after(core);
            }
            for chunk in chunks(mapping) {
                let mut core = self.lock_now();
                core.account_resident_range(look, &chunk);
                if let Some(s) = core.space_mut(look.index) {
                    s.unadopted.remove(&chunk);
                }
                self.after(core);
            }
        }
    }

    /// Looks through all that is watched for pages that the engine does not know of.
    fn reconcile(&self, look: &ScanTarget) {
        let ranges: Vec<Range<usize>> = {
            let core = self.lock();
            core.space(look.index).map_or(Vec::new(), |s| s.watched.iter().collect())
        };
        for chunk in ranges.into_iter().flat_map(chunks) {
            let mut core = self.lock_now();
            core.account_resident_range(look, &chunk);
            // There is no room for more, or mappings are changing.
            let is_unfinished = core.space(look.index).is_none_or(|s| s.is_unfinished);
            self.after(core);
            if is_unfinished {
                return;
            }
        }
    }
}

fn chunks(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(CHUNK).map(move |start| start..range.end.min(start + CHUNK))
}

impl Core {
    /// Opens the pagemaps that could not be opened when a process came, perhaps for lack of
    /// descriptors: what it has in place cannot be found without.
    fn open_pagemaps(&mut self) {
        for index in 0..self.spaces.len() {
            let Some(s) = self.space_mut(index).filter(|s| s.pid > 0 && s.pagemap.is_none()) else { continue };
            s.pagemap = Pagemap::of(s.pid).ok().map(Arc::new);
            let pagemap = s.pagemap.clone();
            self.memory.written.set_pagemap(index, pagemap);
        }
    }

    /// Processes without an agent, of which nothing tells when they are gone.
    fn remove_exited(&mut self) {
        for index in 0..self.spaces.len() {
            let Some(s) = self.space(index).filter(|s| s.agent.is_none()) else { continue };
            // SAFETY: the bell is watched already, and never touched. Only the error is of
            // interest: without a process, it is this one.
            let gone = unsafe { s.uffd.register(s.bell, PAGE) };
            if gone.is_err_and(|e| matches!(e.raw_os_error(), Some(libc::ENOMEM | libc::ESRCH))) {
                self.remove_process(index);
            }
        }
    }

    /// Programs all of whose threads have ended by themselves, with no call that ends the process:
    /// the agent would keep it for ever.
    fn end_agents(&mut self) {
        for s in self.spaces.iter().flatten().filter(|s| s.pid > 0 && s.unanswered.is_none()) {
            if let (Some(agent), Some(status)) = (&s.agent, maps::ended_with(s.pid)) {
                // If it cannot be told, it has ended, too.
                _ = agent.link.order(abi::END, status as usize, &[]);
            }
        }
    }

    /// Has the engine know of pages that are in place.
    fn account_resident_range(&mut self, look: &ScanTarget, range: &Range<usize>) {
        if !self.settle(look.index) {
            if let Some(s) = self.space_mut(look.index) {
                s.is_unfinished = true;
            }
            return;
        }
        let Ok(mut present) = look.pagemap.present(range) else { return };
        self.clear_discarded(look.index, range, &present);
        if self.space(look.index).is_some_and(|s| s.forked) {
            // A page that is shared with another process is that process's, unless that has it no
            // more: it ended, or the page left it.
            let own = present.iter().filter_map(|r| look.pagemap.exclusive(r).ok()).flatten();
            let own: Vec<usize> = own.collect();
            let is_short = self.missing() > 0;
            let is_own =
                |a: &usize| own.binary_search(a).is_ok() || is_short && !self.is_known_of_another(look.index, *a);
            let all = present.iter().flat_map(|r| r.clone().step_by(PAGE));
            present = all.filter(is_own).map(|address| address..address + PAGE).collect();
        }
        for address in present.into_iter().flat_map(|r| r.step_by(PAGE)) {
            if self.space(look.index).is_none_or(|s| !s.is_watched(address)) {
                continue;
            }
            let Some(page) = self.page_at(look.index, address) else { return };
            let is_new = self.memory.state(page) == State::Empty && !self.memory.may_be_discarded[page as usize];
            if !is_new || !self.is_surely_watched(look.index, address) {
                continue;
            }
            if !self.account_resident_page(page) {
                if let Some(s) = self.space_mut(look.index) {
                    s.is_unfinished = true;
                }
                return;
            }
            if let Some(r) = &mut self.memory.recorder {
                r.touch(self.now_ns, look.index, address, true);
            }
        }
    }

    /// Whether the kernel would tell of a fault at this page, which is in place. A range may be
    /// registered although parts of it are not mapped any more, and what is mapped there later is
    /// not watched. From now on it would be told if the page goes.
    pub(super) fn is_surely_watched(&mut self, index: usize, address: usize) -> bool {
        let Some(s) = self.space_mut(index) else { return false };
        // SAFETY: the page is of a program that is served, and nothing is replaced.
        match unsafe { s.uffd.zero(address, PAGE) }.errno {
            libc::EEXIST => true,
            libc::ENOENT => {
                s.watched.remove(&(address..address + PAGE));
                false
            }
            _ => false,
        }
    }

    /// Pages that were about to be dropped and are gone: what is there from now on is new.
    fn clear_discarded(&mut self, index: usize, range: &Range<usize>, present: &[Range<usize>]) {
        let Some(s) = self.space(index) else { return };
        for (address, page) in s.table.pages(range) {
            if self.memory.may_be_discarded[page as usize] {
                let at = present.partition_point(|r| r.end <= address);
                let is_there = present.get(at).is_some_and(|r| r.contains(&address));
                self.memory.may_be_discarded[page as usize] = is_there;
            }
        }
    }
}
