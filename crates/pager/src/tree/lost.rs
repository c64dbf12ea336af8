//! Pages that cannot be had any more.

use super::core::Core;
use super::memory::State;
use crate::threads::fatal;
use crate::uffd::PAGE;

/// Messages about lost pages.
const MAX_MESSAGES: u64 = 16;

impl Core {
    /// The page cannot be had: whoever touches it gets a signal.
    pub(super) fn poison(&mut self, page: u32, why: &str) {
        self.memory.set_state(page, State::Poisoned);
        self.end_loan(page);
        self.say_lost(page, why);
        self.mark_poisoned(page);
    }

    /// A page is lost: it counts, and a line says so.
    pub(super) fn say_lost(&mut self, page: u32, why: &str) {
        let (space, address) = (self.memory.owner[page as usize] as usize, self.memory.address[page as usize]);
        self.memory.counts.poisoned += 1;
        if self.memory.counts.poisoned <= MAX_MESSAGES {
            let pid = self.space(space).map_or(0, |s| s.pid);
            eprintln!("refault: process {pid}: the page at {address:#x} is lost: {why}");
        }
    }

    pub(super) fn mark_poisoned(&mut self, page: u32) {
        while self.memory.state(page) == State::Poisoned {
            let (space, address) = (self.memory.owner[page as usize] as usize, self.memory.address[page as usize]);
            let Some(uffd) = self.uffd(space) else { return };
            // SAFETY: the page is of a program that is served; nothing is in place, and its mark is lifted, for no mark is replaced.
            let done = unsafe {
                _ = uffd.write_protect(address, PAGE, false);
                uffd.poison(address, PAGE)
            };
            match done.errno {
                0 if done.bytes == PAGE => break,
                0 | libc::EAGAIN => _ = self.settle_for_certain(space),
                libc::EEXIST | libc::ENOENT | libc::ESRCH | libc::EINVAL => break,
                e => fatal(&format!("a page that is lost cannot be marked: error {e}")),
            }
        }
        self.wake(page);
    }
}
