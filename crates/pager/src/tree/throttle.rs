//! `memory.high` of whole programs: faults that are served, and wait.
//!
//! As in a region: the page is put in its place without waking who faulted on it. When the engine has reclaimed and said how long to
//! sleep, that thread goes on, at once or later; others go on meanwhile.

use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use refault_mm::{MemcgLimits, ThrottleReason};

use super::Shared;
use super::core::{Core, Pending};
use crate::error::Error;
use crate::uffd::PAGE;

/// Pages that may be ordered out for one return: a batch of charges.
const MOST_LEAVING: usize = 64;

/// Where somebody waits: the process and the address.
type Place = (usize, usize);

/// Who is to wait. With the default, nobody ever.
pub(super) struct High {
    /// There is a `memory.high`, in pages.
    pub(super) pages: Option<u64>,
    /// Pages that are in place and whose faults were not let go yet.
    held: Vec<Place>,
    /// How long they are to wait: the engine's last word.
    pub(super) sleep_ns: u64,
    /// Pages whose faults wait, and until when.
    sleepers: Vec<(Instant, Vec<Place>)>,
    /// Somebody began to wait since the evictor looked.
    pub(super) new_sleepers: bool,
    /// Reclaim stops when so many pages are on their way out.
    pub(super) most_leaving: usize,
}

impl Default for High {
    fn default() -> High {
        let (held, sleepers) = (Vec::new(), Vec::new());
        High { pages: None, held, sleep_ns: 0, sleepers, new_sleepers: false, most_leaving: usize::MAX }
    }
}

impl High {
    /// A page was put in its place, and who asked for it was not woken.
    pub(super) fn hold(&mut self, p: Pending) {
        self.held.push((p.space, p.address));
    }

    /// Whether a fault on the page is served, and waits.
    pub(super) fn is_asleep(&self, p: Pending) -> bool {
        let all = self.sleepers.iter().flat_map(|(_, places)| places).chain(&self.held);
        self.pages.is_some() && all.into_iter().any(|&place| place == (p.space, p.address))
    }
}

impl Shared {
    /// Who was served goes on, now or later. Pages that reclaim orders out for it are out, and then free, before the engine says how long;
    /// else all would wait for pages that go soon.
    #[cold]
    pub(super) fn let_go<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        for _ in 0..2 {
            if !core.engine.is_over_high() {
                break;
            }
            core.memory.high.most_leaving = MOST_LEAVING;
            let core_now = &mut *core;
            core_now.engine.reclaim_over_high(&mut core_now.memory);
            core.memory.high.most_leaving = usize::MAX;
            core.fill_others();
            core = self.evict_round(core);
            core.tick();
        }
        core.release_held();
        core.free_slots();
        core
    }
}

impl Core {
    /// Sets `memory.high`.
    pub(super) fn set_high(&mut self, bytes: usize, swap_pages: u64) -> Result<(), Error> {
        self.memory.high.pages = (bytes != usize::MAX).then_some((bytes / PAGE) as u64);
        let high = self.memory.high.pages.unwrap_or(u64::MAX);
        let limits = MemcgLimits { high, max: u64::MAX, swap_max: swap_pages, ..MemcgLimits::default() };
        self.engine.set_memcg_limits(&mut self.memory, self.group, &limits).map_err(Error::Config)
    }

    /// Faults were served whose threads do not go on yet.
    pub(super) fn has_held(&self) -> bool {
        !self.memory.high.held.is_empty()
    }

    /// The threads whose faults were served go on, or wait if their group went beyond `memory.high`.
    fn release_held(&mut self) {
        if self.engine.is_over_high() {
            self.memory.high.most_leaving = MOST_LEAVING;
            self.engine.return_to_user(&mut self.memory);
            self.memory.high.most_leaving = usize::MAX;
            self.fill_others();
        }
        let places = std::mem::take(&mut self.memory.high.held);
        match std::mem::take(&mut self.memory.high.sleep_ns) {
            0 => self.wake_all(places),
            ns => {
                self.memory.counts.throttled += places.len() as u64;
                self.memory.counts.throttled_ns += ns;
                self.memory.high.sleepers.push((Instant::now() + Duration::from_nanos(ns), places));
                self.memory.high.new_sleepers = true;
            }
        }
    }

    fn wake_all(&self, places: Vec<Place>) {
        for (space, address) in places {
            if let Some(uffd) = self.uffd(space) {
                // An error means that the memory is gone, and with it those who wait.
                _ = uffd.wake(address, PAGE);
            }
        }
    }

    /// Those whose time has come go on. Returns how long it is until the next.
    pub(super) fn wake_sleepers(&mut self) -> Option<Duration> {
        self.memory.high.new_sleepers = false;
        if self.memory.high.sleepers.is_empty() {
            return None;
        }
        let now = Instant::now();
        let due: Vec<_> = self.memory.high.sleepers.extract_if(.., |(until, _)| *until <= now).collect();
        for (_, places) in due {
            self.engine.throttle_ended(ThrottleReason::High);
            self.wake_all(places);
        }
        self.memory.high.sleepers.iter().map(|(until, _)| until.saturating_duration_since(now)).min()
    }
}
