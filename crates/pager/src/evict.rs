//! State that the threads of a driver share, and the evictor's thread: the tasks that the core
//! gives it, one after the other; and writes of what was moved out, by the thread that makes room.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::core::{Claim, Evictor, EvictorCore, Task, WINDOW};
use crate::staging;
use crate::store::{Page, StoreError, SwapArea};
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::threads;
use crate::uffd::PAGE;

/// Looks at most until a waiting thread has got the lock: it may get no processor.
const LOOKS: usize = if cfg!(feature = "shuttle") { 1 } else { 1000 };

/// A core that threads drive.
pub(crate) trait LockedCore {
    type EvictorCore: EvictorCore;

    /// Time goes on.
    fn set_now(&mut self, now_ns: u64);
    /// Answers to its evictor about its tasks.
    fn evictor_core(&mut self) -> &mut Self::EvictorCore;
    /// Charges memory again after the store's use has changed.
    fn charge_overhead(&mut self);
}

/// State that the threads of every driver share: its core under a lock, its clock, and word of
/// work.
pub(crate) struct DriverState<C> {
    core: Mutex<C>,
    /// Threads that wait for that lock.
    waiting: AtomicUsize,
    started: Instant,
    /// The evictor has something to do.
    pub(crate) work: Condvar,
    /// It is over.
    pub(crate) stop: AtomicBool,
}

impl<C: LockedCore> DriverState<C> {
    pub(crate) fn new(core: C) -> DriverState<C> {
        DriverState {
            core: Mutex::new(core),
            waiting: AtomicUsize::new(0),
            started: Instant::now(),
            work: Condvar::new(),
            stop: AtomicBool::new(false),
        }
    }

    /// The lock.
    pub(crate) fn lock(&self) -> MutexGuard<'_, C> {
        match self.core.try_lock() {
            Ok(core) => core,
            Err(_) => {
                self.waiting.fetch_add(1, Ordering::Relaxed);
                let core = threads::lock(&self.core);
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                core
            }
        }
    }

    /// The lock, and time goes on.
    pub(crate) fn lock_now(&self) -> MutexGuard<'_, C> {
        let mut core = self.lock();
        self.tick(&mut core);
        core
    }

    /// The lock, after a thread that waits for it has had it. A lock that is released and taken at
    /// once stays with the same thread, because the waiting thread is not awake by then.
    pub(crate) fn yield_lock<'a>(&'a self, core: MutexGuard<'a, C>) -> MutexGuard<'a, C> {
        let waiting = self.waiting.load(Ordering::Relaxed);
        if waiting == 0 {
            return core;
        }
        drop(core);
        for _ in 0..LOOKS {
            if self.waiting.load(Ordering::Relaxed) < waiting {
                break;
            }
            std::hint::spin_loop();
        }
        self.lock_now()
    }

    /// Time goes on.
    pub(crate) fn tick(&self, core: &mut C) {
        core.set_now(threads::nanoseconds(self.started.elapsed()));
    }

    /// Nothing is begun any more, and the evictor is told.
    pub(crate) fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        // The thread that has looked at it and does not wait yet has the lock.
        drop(self.lock());
        self.work.notify_all();
    }
}

/// Tasks that a driver has its evictor do.
pub(crate) trait EvictorDriver: Deref<Target = DriverState<Self::Core>> {
    type Core: LockedCore;

    /// The swap area; `None`: there is none.
    fn area(&self) -> Option<&SwapArea>;
    /// [`Task::Reclaim`].
    fn reclaim<'a>(&'a self, core: MutexGuard<'a, Self::Core>) -> MutexGuard<'a, Self::Core>;
    /// [`Task::Write`].
    fn write<'a>(&'a self, core: MutexGuard<'a, Self::Core>) -> MutexGuard<'a, Self::Core>;
    /// [`Task::Yield`].
    fn pause(&self) {
        std::thread::yield_now();
    }
}

/// A driver whose pages go to a swap area by staging places.
pub(crate) trait SwapEvictor: EvictorDriver {
    /// Where the staging places begin.
    fn staging_start(core: &Self::Core) -> usize;
    /// Pages to be written now: a folio, or at most `most` single pages. Until they are settled
    /// they stay in their places, and nobody writes to them.
    fn claim_writes(core: &mut Self::Core, most: usize) -> Vec<Claim>;
    /// Books the results of writes; slots that are free are given back.
    fn settle_writes(core: &mut Self::Core, claimed: &[Claim], results: &[Result<(), StoreError>]);
    /// Whether there are enough places of no use for a call that discards them.
    fn has_discards(core: &Self::Core) -> bool;
    /// Places of no use: they are the caller's, and no page refers to them.
    fn take_discards(core: &mut Self::Core) -> Vec<u32>;
    /// Books discarded places as empty.
    fn settle_discards(core: &mut Self::Core, places: &[u32]);

    /// Empties the places whose content is of no use, and gives them back.
    fn discard<'a>(&'a self, mut core: MutexGuard<'a, Self::Core>) -> MutexGuard<'a, Self::Core> {
        let mut places = Self::take_discards(&mut core);
        let start = Self::staging_start(&core);
        drop(core);
        // SAFETY: the places are taken, and no page refers to them any more.
        unsafe { staging::empty(start, &mut places) };
        let mut core = self.lock_now();
        Self::settle_discards(&mut core, &places);
        core
    }
}

/// Pages claimed for writing at a time: a thread that touches one of them waits for all. Where
/// writing them together is faster, a window is claimed.
const CLAIM: usize = 8;

/// Writes what is to be written.
pub(crate) fn write_round<'a, D: SwapEvictor>(
    driver: &'a D,
    area: &SwapArea,
    mut core: MutexGuard<'a, D::Core>,
) -> MutexGuard<'a, D::Core> {
    loop {
        let claimed = D::claim_writes(&mut core, if area.takes_runs() { WINDOW } else { CLAIM });
        if claimed.is_empty() {
            return core;
        }
        let start = D::staging_start(&core);
        drop(core);
        let content = |c: &Claim| {
            let place = start + c.place as usize * PAGE;
            // SAFETY: a page that was claimed is in its place, which is filled and readable, until
            // the write is settled, and nobody writes to it.
            (c.slot, c.page, unsafe { &*(place as *const Page) })
        };
        let pages: Vec<_> = claimed.iter().map(content).collect();
        let results = area.write_many(&pages);
        core = driver.lock_now();
        D::settle_writes(&mut core, &claimed, &results);
        // Growth of the pool is taken before others get what is free now.
        core.charge_overhead();
        // The engine takes frames of discards for free, so there must be no more than the number
        // that is counted as the pager's own.
        if D::has_discards(&core) {
            core = driver.discard(core);
        }
    }
}

/// The thread.
pub(crate) fn run<D: EvictorDriver>(driver: &D) {
    let mut evictor = Evictor::new();
    let mut core = driver.lock_now();
    loop {
        let task = evictor.next(core.evictor_core());
        if driver.stop.load(Ordering::Relaxed) {
            return;
        }
        core = match task {
            Task::Sleep(ns) => {
                let mut core = threads::wait(&driver.work, core, Duration::from_nanos(ns));
                driver.tick(&mut core);
                core
            }
            Task::Reclaim => driver.reclaim(core),
            Task::Write => driver.write(core),
            Task::Tend => without_lock(driver, core, SwapArea::tend),
            Task::GiveRoom => without_lock(driver, core, SwapArea::give_room),
            Task::Yield => {
                drop(core);
                driver.pause();
                driver.lock_now()
            }
        };
    }
}

/// The store does something for which nobody holds the lock.
fn without_lock<'a, D: EvictorDriver>(
    driver: &'a D,
    core: MutexGuard<'a, D::Core>,
    act: fn(&SwapArea),
) -> MutexGuard<'a, D::Core> {
    drop(core);
    if let Some(area) = driver.area() {
        act(area);
    }
    let mut core = driver.lock_now();
    core.charge_overhead();
    core
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    /// Turns of each, and how often time went on.
    #[derive(Default)]
    struct Turns {
        others: u32,
        ticks: u32,
    }

    struct NoEvictor;

    impl EvictorCore for NoEvictor {
        fn wake_sleepers(&mut self) -> Option<u64> {
            None
        }
        fn has_work(&self, _: bool) -> bool {
            false
        }
        fn reclaims(&self) -> bool {
            false
        }
        fn is_waiting_for_frame(&self) -> bool {
            false
        }
        fn sleeps(&mut self) {}
        fn woke(&mut self) -> bool {
            false
        }
    }

    impl LockedCore for Turns {
        type EvictorCore = NoEvictor;
        fn set_now(&mut self, _: u64) {
            self.ticks += 1;
        }
        fn evictor_core(&mut self) -> &mut NoEvictor {
            unreachable!("nobody runs an evictor here")
        }
        fn charge_overhead(&mut self) {}
    }

    #[test]
    fn the_lock_is_kept_where_nobody_waits_for_it() {
        let common = DriverState::new(Turns::default());
        let core = common.yield_lock(common.lock());
        assert_eq!(core.ticks, 0, "it was let go and taken again");
    }

    #[test]
    fn a_thread_that_waits_has_the_lock_in_between() {
        let common = DriverState::new(Turns::default());
        std::thread::scope(|threads| {
            let mut core = common.lock();
            threads.spawn(|| common.lock().others += 1);
            while common.waiting.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
            // Once is enough, unless the thread has no processor for as long as that. Time goes on
            // with each turn that was given.
            let mut turns = 0;
            while core.others == 0 {
                core = common.yield_lock(core);
                turns += 1;
                assert!(core.ticks == turns, "the lock was not let go");
                assert!(turns < 1_000_000, "the thread that waits never had it");
            }
        });
    }
}
