//! Putting pages in their places.

use std::sync::Arc;

use refault_mm::{PageId, Touch};

use super::core::{Core, Pending};
use super::memory::{Fill, Source};
use super::page_table::BLOCK;
use crate::core::State;
use crate::threads::fatal;
use crate::uffd::{FillMode, PAGE};

/// Nanoseconds after which a page with an unexplained mark ends the process.
const UNEXPLAINED_NS: u64 = 2_000_000_000;

impl Core {
    /// A fault on a page that should be in place. Either it was served meanwhile, or the program
    /// gave the page up: then it is as good as new.
    pub(super) fn refill(&mut self, page: u32, p: Pending) {
        let Some(uffd) = self.uffd(p.space) else { return };
        // SAFETY: the page is of a program that is served, and nothing is replaced.
        let done = unsafe { uffd.zero(p.address, PAGE) };
        match done.errno {
            0 if done.bytes == PAGE => self.memory.may_be_discarded[page as usize] = false,
            // The thread that faulted first has to wait for it, and so has any that comes after.
            libc::EEXIST if self.memory.high.is_asleep(&(p.space, p.address)) => {}
            libc::EEXIST => {
                self.wake(page);
                self.check_mark(p);
            }
            0 | libc::EAGAIN => {
                self.settle(p.space);
                self.unsettled.push(p);
            }
            _ => {
                self.drop_page(page);
                self.wake_at(p);
            }
        }
    }

    /// Checks a page that is filled though nothing was known of it. If a mark is there and stays,
    /// the content was lost, and the process must not go on. A mark may be there for a moment,
    /// between the message of `madvise` and its deed.
    fn check_mark(&mut self, p: Pending) {
        let at = (p.space, p.address);
        // Nothing is known of a child that was forked a moment ago but which process faulted.
        let of_toucher = || crate::pagemap::Pagemap::of(self.pid_of(p.space)).ok().map(Arc::new);
        let pagemap = self.space(p.space).and_then(|s| s.pagemap.clone()).or_else(of_toucher);
        let marks = pagemap.and_then(|m| m.marked(&(p.address..p.address + PAGE)).ok());
        if marks.is_none_or(|m| m.is_empty()) {
            self.unexplained_marks.remove(&at);
            return;
        }
        let since_ns = *self.unexplained_marks.entry(at).or_insert(p.since_ns);
        if self.now_ns - since_ns > UNEXPLAINED_NS && self.is_quiet(p.space) {
            self.strays += 1;
            self.kill_undecided(p.space, "has a page whose content is lost");
        }
    }

    /// Carries out what the engine ordered.
    pub(super) fn fill_all(&mut self, p: Pending) {
        while let Some(fill) = self.memory.fills.pop_front() {
            let asked = fill.page;
            self.fill(fill, p);
            // The page is in its place, and a thread that waits for it was not woken.
            if self.memory.high.holds && self.memory.state(asked) == State::Mapped {
                let place = self.memory.place_of(asked);
                self.memory.high.hold(place);
            }
        }
    }

    /// As [`Core::fill_all`], where nobody asked for a page.
    pub(super) fn fill_others(&mut self) {
        while let Some(fill) = self.memory.fills.pop_front() {
            let p = self.unasked(fill.page);
            self.fill(fill, p);
            if self.memory.high.holds {
                self.wake_at(p);
            }
        }
    }

    /// Puts a page in its place and lets waiting threads go on. Until then its content is known to
    /// the code that deals with changes of mappings, for a fork may be among the changes.
    fn fill(&mut self, fill: Fill, p: Pending) {
        let page = fill.page;
        self.memory.filling = Some(fill);
        self.fill_or_drop(page, p);
        if let Some(Fill { source: Source::Content(buffer), .. }) = self.memory.filling.take() {
            self.memory.take_back(buffer);
        }
    }

    fn fill_or_drop(&mut self, page: u32, p: Pending) {
        for attempt in 0.. {
            // Dropped meanwhile, by an event that was read in between.
            if self.memory.state(page) != State::Mapped {
                break;
            }
            let space = self.memory.owner(page);
            if self.has_batch(space) {
                // A fork that was read of and not dealt with has the page as it is now: after this
                // it would be lost for the child.
                self.settle_for_certain(space);
                continue;
            }
            let to = self.memory.address[page as usize];
            let (Some(uffd), Some(fill)) = (self.uffd(space), &self.memory.filling) else { return };
            let is_content = fill.source.content().is_some();
            let protected = is_content && !p.write && self.memory.protects();
            let quiet = self.memory.high.holds || self.wakes.are_kept();
            let mode = FillMode { quiet, protected };
            // SAFETY: the source is a page: zeros, a buffer, or a staging place that was given up
            // under this lock and so is not emptied yet. The destination is of a program that is
            // served, and was watched, or the call fails.
            let done = unsafe {
                match fill.source.content() {
                    None if mode.quiet => uffd.zero_quietly(to, PAGE),
                    None => uffd.zero(to, PAGE),
                    Some(content) => uffd.copy_in_mode(to, content, PAGE, mode),
                }
            };
            match done.errno {
                0 if done.bytes == PAGE => {
                    self.memory.written.came(page, protected);
                    self.memory.may_be_discarded[page as usize] = false;
                    self.memory.is_discarding[page as usize] = false;
                    if self.memory.high.holds {
                        return;
                    }
                    if attempt > 0 {
                        self.wake_at(p);
                    }
                    if quiet {
                        self.wakes.keep(uffd, to);
                    }
                    return;
                }
                // Something changes the mappings, and the kernel waits until that was read of: it
                // may be about this page.
                0 | libc::EAGAIN => _ = self.settle_for_certain(space),
                libc::EEXIST if !is_content => break,
                // Something is there that nobody put there: it may be older than what was to go
                // there.
                libc::EEXIST => fatal("a page that is out of memory is in the page tables"),
                libc::ENOMEM => std::thread::sleep(std::time::Duration::from_millis(1)),
                // Not there: it may have been moved a moment ago, which was not read of. If nothing
                // is or was under way, it is gone.
                libc::ENOENT | libc::ESRCH | libc::EINVAL | libc::EFAULT => {
                    if self.settle_for_certain(space) || !self.is_quiet(space) {
                        continue;
                    }
                    self.strays += u64::from(done.errno != libc::ESRCH && is_content);
                    self.drop_page(page);
                    break;
                }
                _ => {
                    self.memory.counts.fill_errors += 1;
                    self.poison(page, "the kernel could not put it in its place");
                    break;
                }
            }
        }
        // A thread that waited tries again, and is served anew if that is needed.
        self.wake_at(p);
        self.wake(page);
    }

    /// The program fills memory in order: the next pages are put in place before they are asked
    /// for, as long as there is memory that reclaim does not work for.
    pub(super) fn fill_ahead(&mut self, p: Pending) {
        let Some(s) = self.spaces[p.space].as_mut() else { return };
        let (run, row) = s.fresh.touched(p.address);
        let first = p.address + PAGE;
        // Only inside the block, and only where the mapping is known to be.
        let room = BLOCK - 1 - p.address / PAGE % BLOCK;
        let is_watched = |i: &usize| s.is_watched(first + i * PAGE);
        let most = (0..(run - 1).min(room)).take_while(is_watched).count();
        let uffd = s.uffd.clone();
        let mut pages = Vec::new();
        self.memory.in_place = true;
        for i in 0..most {
            let page = self.spaces[p.space].as_ref().and_then(|s| s.table.get(first + i * PAGE));
            let Some(page) = page.filter(|&q| self.memory.state(q) == State::Empty) else { break };
            if self.engine.free_pages() <= self.low_mark || self.memory.may_be_discarded[page as usize] {
                break;
            }
            self.engine.access(&mut self.memory, PageId(page), Touch::MapWrite);
            if self.memory.state(page) != State::Mapped {
                break;
            }
            pages.push(page);
        }
        self.memory.in_place = false;
        self.fill_others();
        let done = match pages.len() {
            0 => 0,
            // SAFETY: the pages are of a program that is served, and its mapping was watched, or
            // the call fails.
            n => unsafe { uffd.zero(first, n * PAGE) }.bytes / PAGE,
        };
        pages[done..].iter().for_each(|&page| self.drop_page(page));
        if let Some(r) = &mut self.memory.recorder {
            // For the engine they were touched. A look for written pages does not name what has
            // just come.
            (0..done).for_each(|i| r.touch(p.since_ns, p.space, first + i * PAGE, true));
        }
        if let Some(s) = self.space_mut(p.space) {
            s.fresh.came(row, first + done * PAGE, done + 1);
        }
    }
}
