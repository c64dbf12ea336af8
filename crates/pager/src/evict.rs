//! The evictor's thread: the tasks that the core gives it, one after the other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::core::{Evictor, Task};
use crate::store::SwapArea;
use crate::sync::{Condvar, MutexGuard};
use crate::threads;

/// What a driver has its evictor do.
pub(crate) trait Evicts {
    type Core;

    /// Its lock, and time goes on.
    fn enter(&self) -> MutexGuard<'_, Self::Core>;
    /// Time goes on.
    fn tick(&self, core: &mut Self::Core);
    /// The next task.
    fn next(evictor: &mut Evictor, core: &mut Self::Core) -> Task;
    /// What the evictor waits on for work.
    fn work(&self) -> &Condvar;
    /// It is over.
    fn stop(&self) -> &AtomicBool;
    /// The swap area; `None`: there is none.
    fn area(&self) -> Option<&SwapArea>;
    /// What the store takes has changed.
    fn charge_overhead(core: &mut Self::Core);
    /// [`Task::Reclaim`].
    fn reclaim<'a>(&'a self, core: MutexGuard<'a, Self::Core>) -> MutexGuard<'a, Self::Core>;
    /// [`Task::Write`].
    fn write<'a>(&'a self, core: MutexGuard<'a, Self::Core>) -> MutexGuard<'a, Self::Core>;
    /// [`Task::Yield`].
    fn pause(&self) {
        std::thread::yield_now();
    }
}

/// The thread.
pub(crate) fn run<D: Evicts>(driver: &D) {
    let mut evictor = Evictor::new();
    let mut core = driver.enter();
    loop {
        let task = D::next(&mut evictor, &mut core);
        if driver.stop().load(Ordering::Relaxed) {
            return;
        }
        core = match task {
            Task::Sleep(ns) => {
                let mut core = threads::wait(driver.work(), core, Duration::from_nanos(ns));
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
                driver.enter()
            }
        };
    }
}

/// The store does something for which nobody holds the lock.
fn without_lock<'a, D: Evicts>(
    driver: &'a D,
    core: MutexGuard<'a, D::Core>,
    act: fn(&SwapArea),
) -> MutexGuard<'a, D::Core> {
    drop(core);
    if let Some(area) = driver.area() {
        act(area);
    }
    let mut core = driver.enter();
    D::charge_overhead(&mut core);
    core
}
