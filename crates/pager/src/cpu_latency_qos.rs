//! Processors that have nothing to do poll for work instead of halting, while faults come fast: the
//! driver of [`crate::control::CpuLatencyQos`].
//!
//! The kernel does that for a process that holds `/dev/cpu_dma_latency` open and asks for a latency
//! of 0. The idle loop is what polls, so everything that can run has the processor at once, and a
//! wake from another processor takes no interrupt. If this process dies, the kernel takes the
//! request back.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::control::{CpuLatencyQos as Rule, CpuLatencyQosStats, LOOK_NS, LOOK_WAKES};

use crate::calls::{self, Call};
use crate::error::Error;
use crate::threads;

const DEVICE: &str = "/dev/cpu_dma_latency";
/// Any latency will do.
const ANY: i32 = i32::MAX;

/// Most processors of a machine on which they are kept awake: with more, most of them would be of
/// no use to the threads that fault.
pub(crate) const MOST_CPUS: usize = 4;

/// Stack of the keeper's thread in bytes, as far as it is touched.
pub(crate) const THREAD_BYTES: usize = 16 << 10;

/// The thread that tells of faults, and the thread that ends what they began.
pub(crate) struct CpuLatencyQos {
    /// `None`: this machine has too many processors, or does not allow it.
    keeper: Option<Arc<Keeper>>,
    thread: Option<JoinHandle<()>>,
}

struct Keeper {
    wakes: AtomicU64,
    /// Decision of the rule, for threads that do not hold the lock.
    awake: AtomicBool,
    state: Mutex<State>,
    /// It began, or it is over.
    told: Condvar,
    since: Instant,
}

struct State {
    rule: Rule,
    /// Closed, the request is taken back: that is for good.
    device: Option<File>,
    stop: bool,
}

impl CpuLatencyQos {
    /// Request on a machine with at most `most` processors.
    pub(crate) fn new(most: usize) -> Result<CpuLatencyQos, Error> {
        let rule = Rule::new(processors(), most);
        let device = if rule.may() { calls::made(Call::OpenLatency, open).ok() } else { None };
        let Some(device) = device else { return Ok(CpuLatencyQos { keeper: None, thread: None }) };
        let state = Mutex::new(State { rule, device: Some(device), stop: false });
        let (wakes, awake, told) = Default::default();
        let keeper = Arc::new(Keeper { wakes, awake, state, told, since: Instant::now() });
        let thread = threads::spawn("refault-awake", &keeper, Keeper::watch)?;
        Ok(CpuLatencyQos { keeper: Some(keeper), thread: Some(thread) })
    }

    /// Counts `n` faults, each served by another thread than the one that faulted.
    pub(crate) fn woke(&self, n: usize) {
        let Some(keeper) = &self.keeper else { return };
        let before = keeper.wakes.fetch_add(n as u64, Ordering::Relaxed);
        if before / LOOK_WAKES != (before + n as u64) / LOOK_WAKES && !keeper.awake.load(Ordering::Relaxed) {
            keeper.begin();
        }
    }

    pub(crate) fn stats(&self) -> CpuLatencyQosStats {
        self.keeper.as_ref().map(|k| k.lock().rule.stats()).unwrap_or_default()
    }
}

impl Drop for CpuLatencyQos {
    fn drop(&mut self) {
        let Some(keeper) = &self.keeper else { return };
        keeper.lock().stop = true;
        keeper.told.notify_one();
        self.thread.take().map(JoinHandle::join);
    }
}

impl Keeper {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self, state: &mut State) -> bool {
        state.rule.look(self.since.elapsed().as_nanos() as u64, self.wakes.load(Ordering::Relaxed))
    }

    fn begin(&self) {
        let mut state = self.lock();
        if !self.awake.load(Ordering::Relaxed) && self.look(&mut state) && state.ask(0) {
            self.awake.store(true, Ordering::Relaxed);
            self.told.notify_one();
        }
    }

    /// The thread: nobody else knows when there are no faults.
    fn watch(&self) {
        let mut state = self.lock();
        while !state.stop {
            if !self.awake.load(Ordering::Relaxed) {
                state = self.told.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let wait = self.told.wait_timeout(state, Duration::from_nanos(LOOK_NS));
            state = wait.unwrap_or_else(PoisonError::into_inner).0;
            let goes_on = self.look(&mut state);
            if state.stop || !goes_on {
                state.ask(ANY);
                self.awake.store(false, Ordering::Relaxed);
            }
        }
        state.device = None;
    }
}

impl State {
    /// Asks for a latency. If that is refused, the device is closed, which ends what was asked for
    /// before.
    fn ask(&mut self, us: i32) -> bool {
        let Some(device) = &mut self.device else { return false };
        let asked = calls::made(Call::AskLatency, || device.write_all(&us.to_ne_bytes())).is_ok();
        if !asked {
            self.device = None;
            self.rule.give_up();
        }
        asked
    }
}

fn open() -> io::Result<File> {
    OpenOptions::new().write(true).open(DEVICE)
}

/// Whether processors are kept awake here with settings as they are by default; or why not.
pub(crate) fn probe() -> io::Result<()> {
    let (n, most) = (processors(), MOST_CPUS);
    if n > most {
        return Err(io::Error::other(format!(
            "there are {n} processors, and all would be; it is done with {most} at most"
        )));
    }
    open().map_err(|e| io::Error::other(format!("{DEVICE}: {e}")))?;
    let driver = fs::read_to_string("/sys/devices/system/cpu/cpuidle/current_driver").unwrap_or_default();
    match driver.trim() {
        "" | "none" => Err(io::Error::other("nothing comes of it, since the kernel has no driver of cpuidle")),
        _ => Ok(()),
    }
}

/// Processors of the machine: not only the ones that this process may run on would poll.
fn processors() -> usize {
    // SAFETY: takes a number.
    let n = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    usize::try_from(n).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::{CallFault, CallPlan};

    /// Latency that all holders of the device ask for together, in µs. `None`, and a line: it
    /// cannot be opened here.
    fn asked() -> Option<i32> {
        let read = || {
            let mut us = [0; 4];
            std::io::Read::read_exact(&mut File::open(DEVICE)?, &mut us)?;
            Ok::<_, std::io::Error>(i32::from_ne_bytes(us))
        };
        read().map_err(|e| eprintln!("skipped: {DEVICE}: {e}")).ok()
    }

    fn until(what: &str, done: impl Fn() -> bool) {
        let since = Instant::now();
        while !done() {
            assert!(since.elapsed() < Duration::from_secs(60), "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn it_is_asked_for_while_faults_come_and_taken_back_when_they_end() {
        if asked().is_none() {
            return;
        }
        let awake = CpuLatencyQos::new(usize::MAX).unwrap();
        until("asked for", || {
            awake.woke(LOOK_WAKES as usize);
            awake.stats().times > 0
        });
        // It goes on for as long as faults come.
        until("still asked for", || {
            awake.woke(LOOK_WAKES as usize);
            assert_eq!(asked(), Some(0));
            awake.stats().ns > 10 * LOOK_NS
        });
        // Other tests may ask for it at the same time, but not for ever.
        until("taken back", || asked() != Some(0));
        let stats = awake.stats();
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(awake.stats(), stats);
        until("asked for again", || {
            awake.woke(LOOK_WAKES as usize);
            awake.stats().times > stats.times
        });
        drop(awake);
        until("taken back at the end", || asked() != Some(0));
    }

    #[test]
    fn what_is_refused_is_done_without() {
        for (fails, asks) in [(Call::OpenLatency, 0), (Call::AskLatency, 1)] {
            let plan = CallPlan::new(move |call, _| (call == fails).then_some(CallFault::Fails(libc::EACCES)));
            let plan = plan.enter();
            let awake = CpuLatencyQos::new(usize::MAX).unwrap();
            if fails == Call::AskLatency && awake.keeper.is_none() {
                return;
            }
            (0..100).for_each(|_| awake.woke(LOOK_WAKES as usize));
            assert_eq!(plan.plan().made(Call::AskLatency), asks);
            assert_eq!(awake.stats().ns, 0);
        }
    }

    #[test]
    fn many_processors_are_left_alone() {
        let plan = CallPlan::new(|_, _| None).enter();
        let awake = CpuLatencyQos::new(0).unwrap();
        awake.woke(1000);
        assert_eq!((awake.stats().times, plan.plan().made(Call::OpenLatency)), (0, 0));
    }
}
