//! Owner of memory: it gives advice, and changes limits.

use super::anonymous::Run;
use crate::core::{ProgressGuard, WINDOW};
use crate::uffd::PAGE;

/// A limit that is being changed: to how much, from what, and how long it goes on.
pub(super) struct Resize {
    to: u64,
    before: u64,
    guard: ProgressGuard,
}

impl Run {
    pub(super) fn advise(&mut self) {
        let first = self.random.below(u64::from(self.profile.pages)) as u32;
        let range = first..(first + 1 + self.random.below(WINDOW as u64) as u32).min(self.profile.pages);
        match self.random.below(4) {
            0 => self.core.page_out(range),
            1 => self.core.advise_cold(range),
            2 if self.core.wants(first, true) => _ = self.core.bring(first),
            _ if self.giving_up.is_none() && !self.kernel.0.borrow().threads.are_at(&range) => {
                self.giving_up = Some(range);
            }
            _ => {}
        }
    }

    pub(super) fn go_on_giving_up(&mut self) {
        let Some(range) = self.giving_up.take() else { return };
        if self.core.give_up(range.clone()) {
            return range.for_each(|page| self.model.forget(page));
        }
        // Some are on their way.
        self.giving_up = Some(range);
    }

    pub(super) fn change_limits(&mut self) -> Result<(), String> {
        if self.resize.is_some() {
            return Ok(());
        }
        let percent = 25 + self.random.below(95) as usize;
        if self.random.one_in(2) {
            let mut limits = self.core.limits;
            let is_high = !self.random.one_in(3);
            let most = self.core.budget.max_pages as usize * PAGE;
            limits.memory_high = if is_high { most * percent.min(95) / 100 } else { usize::MAX };
            self.core.set_group(&limits, u64::MAX).map_err(|e| e.to_string())?;
            self.core.limits_are_set(&limits);
        } else {
            self.start_resize(self.profile.memory_pages * percent as u64 / 100);
        }
        Ok(())
    }

    pub(super) fn start_resize(&mut self, to: u64) {
        let guard = ProgressGuard::new(self.core.stall_limit_ns, self.now_ns);
        self.resize = Some(Resize { to, before: self.core.budget.max_pages, guard });
    }

    pub(super) fn go_on_resizing(&mut self) -> Result<(), String> {
        let Some(mut resize) = self.resize.take() else { return Ok(()) };
        let result = self.core.set_max(resize.to, &mut resize.guard);
        self.charge();
        match result {
            Ok(None) => {
                self.figures.resized += 1;
                let limits = self.core.limits;
                self.core.limits_are_set(&limits);
            }
            Ok(Some(_)) => self.resize = Some(resize),
            // Back to what holds already.
            Err(_) if resize.to != resize.before => {
                self.figures.resizes_refused += 1;
                self.start_resize(resize.before);
            }
            Err(e) => return Err(format!("the limit that held before cannot be met: {e}")),
        }
        Ok(())
    }
}
