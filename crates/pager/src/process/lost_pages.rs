//! Pages whose content is lost, and pages that cannot be written.

use super::core::Core;
use crate::core::State;
use crate::store::StoreError;
use crate::threads::{self, fatal};
use crate::uffd::PAGE;

/// Messages about lost pages.
const MAX_MESSAGES: u64 = 16;
/// Writes that failed before that is said.
const MANY_FAILED: u64 = 16;

impl Core {
    /// The page cannot be had: the thread that touches it gets a signal.
    pub(super) fn poison(&mut self, page: u32, why: &str) {
        self.memory.set_state(page, State::Poisoned);
        self.end_cow_swap(page);
        self.say_lost(page, why);
        self.mark_poisoned(page);
    }

    /// A write failed, which may be nothing: a pool alone takes no page that does not shrink. If a
    /// swap file goes on so, a line says it, once.
    pub(super) fn note_failed_write(&mut self, why: &StoreError) {
        if matches!(why, StoreError::Full) {
            self.recent_swap_ins.note_refused(self.now_ns);
        }
        self.failed_writes += u64::from(self.has_swap_file);
        if self.failed_writes == MANY_FAILED {
            threads::say(&format!(
                "{MANY_FAILED} pages could not be written to the swap file ({why}); what cannot stays in memory"
            ));
        }
    }

    /// A page is lost: it counts, and a line says so.
    pub(super) fn say_lost(&mut self, page: u32, why: &str) {
        let (space, address) = self.memory.place_of(page);
        self.memory.counts.poisoned += 1;
        if self.memory.counts.poisoned <= MAX_MESSAGES {
            let process = match self.pid_of(space) {
                0 => "a process without an agent".to_string(),
                pid => format!("process {pid}"),
            };
            eprintln!("refault: {process}: the page at {address:#x} is lost: {why}");
        }
    }

    pub(super) fn mark_poisoned(&mut self, page: u32) {
        while self.memory.state(page) == State::Poisoned {
            let (space, address) = self.memory.place_of(page);
            let Some(uffd) = self.uffd(space) else { return };
            // SAFETY: the page is of a program that is served; nothing is in place, and its mark is
            // lifted, for no mark is replaced.
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
