//! Signals that are sent to the manager: they are passed on, and a run that is told to end ends.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::Shared;
use super::child_processes;
use super::maps;

/// Signals that are passed on to the program.
const PASSED_ON: [libc::c_int; 7] =
    [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2, libc::SIGWINCH];
/// Signals of these that tell a run to end.
const ENDING: [libc::c_int; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];
/// Time within which a second signal ends a run: a program that catches its signal may be
/// interrupted again and again and go on, but not twice within this time.
const AT_ONCE: Duration = Duration::from_secs(5);
/// One request may come twice: `timeout` signals its child, and then its group.
const ONE_REQUEST: Duration = Duration::from_millis(100);
/// Time after a program that was told to end has ended, until what it left behind is killed.
const LEFT_BEHIND: Duration = Duration::from_secs(5);
/// Time for which a killed process is waited for.
const KILLED: Duration = Duration::from_secs(10);

/// Time after which a process is killed again: some may have been forked meanwhile.
const AGAIN: Duration = Duration::from_millis(50);

/// Processes that are told.
pub(super) struct Signals {
    shared: Arc<Shared>,
    program: libc::pid_t,
    /// The name of the run, which its processes have in their environment.
    name: String,
    has_ended: AtomicBool,
    /// The last of [`ENDING`] that came; 0: none.
    told: AtomicI32,
    since: Mutex<Since>,
}

/// Since when.
#[derive(Default)]
struct Since {
    told: Option<Instant>,
    left_behind: Option<Instant>,
    killed: Option<Instant>,
    killed_again: Option<Instant>,
}

/// Signals that the thread that passes them on blocks.
pub(super) fn set() -> libc::sigset_t {
    // SAFETY: a set is plain data, and the calls change nothing else.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        PASSED_ON.iter().for_each(|&s| _ = libc::sigaddset(&raw mut set, s));
        set
    }
}

impl Signals {
    /// Starts a thread that passes signals on to the program of this number.
    pub(super) fn pass_on(shared: &Arc<Shared>, program: libc::pid_t, name: &str) -> Arc<Signals> {
        let signals = Arc::new(Signals {
            shared: shared.clone(),
            program,
            name: name.into(),
            has_ended: AtomicBool::new(false),
            told: AtomicI32::new(0),
            since: Mutex::default(),
        });
        let waiting = Arc::downgrade(&signals);
        std::thread::spawn(move || {
            loop {
                // SAFETY: the structure is plain data and is filled by the call.
                let (signal, from) = unsafe {
                    let (all, mut info): (_, libc::siginfo_t) = (set(), std::mem::zeroed());
                    (libc::sigwaitinfo(&raw const all, &raw mut info), info.si_code)
                };
                let Some(signals) = waiting.upgrade() else { return };
                if signal > 0 {
                    signals.take(signal, from);
                }
            }
        });
        signals
    }

    fn since(&self) -> MutexGuard<'_, Since> {
        self.since.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A signal came.
    fn take(&self, signal: libc::c_int, from: libc::c_int) {
        const SENT_BY_KERNEL: libc::c_int = 0x80;
        let has_ended = self.has_ended.load(Ordering::Acquire);
        // Signals that the terminal sends, the program gets by itself.
        if from == SENT_BY_KERNEL && !has_ended {
            return;
        }
        if !ENDING.contains(&signal) {
            return self.send_to_program(signal);
        }
        let now = Instant::now();
        let before = self.since().told;
        let is_same = self.told.swap(signal, Ordering::AcqRel) == signal;
        if is_same && before.is_some_and(|at| now - at < ONE_REQUEST) {
            return;
        }
        self.since().told = Some(now);
        let counts = |at| {
            let is_interrupted = signal != libc::SIGTERM && !has_ended && maps::catches(self.program, signal);
            !is_interrupted || now - at < AT_ONCE
        };
        let is_second = before.is_some_and(counts);
        if is_second {
            self.kill_all("it was told to end a second time");
        } else if has_ended {
            self.send_to_all(signal);
        } else {
            self.send_to_program(signal);
        }
    }

    fn send_to_program(&self, signal: libc::c_int) {
        if !self.has_ended.load(Ordering::Acquire) {
            // SAFETY: the process is the program, whose end was not asked for yet.
            unsafe { libc::kill(self.program, signal) };
        }
    }

    /// Sends a signal to all processes of the run. How many there are.
    fn send_to_all(&self, signal: libc::c_int) -> usize {
        let mut pids: Vec<i32> = {
            let core = self.shared.lock();
            (0..core.spaces.len()).map(|index| core.pid_of(index)).filter(|&pid| pid > 0).collect()
        };
        if !self.has_ended.load(Ordering::Acquire) {
            pids.push(self.program);
        }
        // Processes that are being loaded are children of this process now, or of one of the
        // others.
        pids.extend(
            child_processes::living_children().into_iter().filter(|&pid| child_processes::is_of_run(pid, &self.name)),
        );
        pids.sort_unstable();
        pids.dedup();
        // SAFETY: the processes are those of the run; a number that was used again would be of this
        // user, too.
        pids.iter().for_each(|&pid| _ = unsafe { libc::kill(pid, signal) });
        pids.len()
    }

    fn kill_all(&self, why: &str) {
        let n = self.send_to_all(libc::SIGKILL);
        if self.since().killed.replace(Instant::now()).is_none() {
            let are = if n == 1 { "process of the run is" } else { "processes of the run are" };
            eprintln!("refault: {why}: {n} {are} killed");
        }
    }

    /// The program has ended, and its number may be another's. If that was since it was told to,
    /// what it has left behind is told, too.
    pub(super) fn program_ended(&self) {
        self.has_ended.store(true, Ordering::Release);
        let told = self.told.load(Ordering::Acquire);
        if told != 0 {
            self.send_to_all(told);
            self.since().left_behind = Some(Instant::now());
        }
    }

    /// Asked again and again while processes are waited for that the program has left behind: if
    /// the run was told to end, they end. False: they are not to be waited for any more.
    pub(super) fn insist(&self) -> bool {
        let is_over = |at: Option<Instant>, time: Duration| at.is_some_and(|at| at.elapsed() > time);
        let (told, left_behind, killed, is_due) = {
            let mut since = self.since();
            let is_due = is_over(since.killed_again.or(since.killed), AGAIN);
            since.killed_again = if is_due { Some(Instant::now()) } else { since.killed_again };
            (since.told, since.left_behind, since.killed, is_due)
        };
        if is_due {
            // For processes that were being forked then.
            self.send_to_all(libc::SIGKILL);
        } else if killed.is_none() && is_over(left_behind.or(told), LEFT_BEHIND) {
            self.kill_all("it was told to end, and the program has ended");
        }
        !is_over(killed, KILLED)
    }
}
