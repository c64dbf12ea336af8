//! Runs in processes of their own, with a watchdog.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use refault_pager::calls::{AgentFault, Call, CallFault};

use crate::{group, heap};

/// A run that takes longer hangs; what its threads waited for a processor does not count, up to so
/// much.
const WATCHDOG: Duration = Duration::from_secs(25);
const MOST_WAITED: Duration = Duration::from_secs(180);
/// Runs at a time; those of small scenarios sleep most of the time (`memory_high` has them).
pub const AT_A_TIME: usize = 2;
pub const SMALL_AT_A_TIME: usize = 24;

/// Results that the program got, as bits.
pub const RIGHT: u32 = 1;
pub const ERROR_VALUE: u32 = 2;
pub const LOST: u32 = 4;
pub const ENDED: u32 = 8;

pub const WRONG: i32 = 99;
const BROKEN: i32 = 98;
const SKIP: i32 = 97;

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Run {
    /// With right bytes, or with explicit errors.
    Fine(u32),
    Skipped,
    /// Other bytes than there should be.
    Wrong,
    /// `validate` found something.
    Broken,
    /// Nothing happened any more.
    Hung,
    /// A page was lost or the process ended, and no line says so.
    Silent(i32),
}

/// Report of a run, in memory that both processes map.
#[repr(C)]
pub struct Report {
    counts: [AtomicU64; 64],
    met: AtomicU64,
    outcome: AtomicU32,
    /// Allocations of a run in which none fails.
    allocations: AtomicU64,
    /// Failure to inject: written before the fork.
    inject: Inject,
}

impl Report {
    pub fn count(&self, call: Call) {
        self.counts[call as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub fn injected(&self, call: Call, n: u64) -> Option<CallFault> {
        let (_, _, fault) = self.inject.calls().find(|i| (i.0, i.1) == (call, n))?;
        self.met.fetch_add(1, Ordering::Relaxed);
        Some(fault)
    }

    pub fn of_agents(&self) -> Option<AgentFault> {
        if let Inject::Agent(fault) = self.inject { Some(fault) } else { None }
    }

    /// Whether this is the call that fails.
    pub fn is_about(&self, call: Call) -> bool {
        self.inject.calls().any(|i| i.0 == call)
    }

    /// It got this.
    pub fn got(&self, outcome: u32) {
        self.outcome.fetch_or(outcome, Ordering::Relaxed);
    }

    /// It got other bytes.
    pub fn wrong(&self, what: &str) -> ! {
        eprintln!("WRONG: {what}");
        self.exit(WRONG)
    }

    /// The pager says that something is broken.
    pub fn broken(&self, what: &str) -> ! {
        eprintln!("BROKEN: {what}");
        self.exit(BROKEN)
    }

    /// This machine does not allow it, or the fault has it look so.
    pub fn unsupported(&self, why: &str) -> ! {
        if self.inject == Inject::None {
            eprintln!("{why}");
            self.exit(SKIP);
        }
        self.got(ERROR_VALUE);
        self.exit(0)
    }

    pub fn exit(&self, status: i32) -> ! {
        // SAFETY: ends the process.
        unsafe { libc::_exit(status) }
    }
}

/// A call, its number among calls of its kind, and what goes wrong with it.
pub type Planned = (Call, u64, CallFault);

/// Failure of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inject {
    None,
    Call(Planned),
    Two(Planned, Planned),
    /// The n-th allocation.
    Allocation(u64),
    /// A call of the agents of a tree.
    Agent(AgentFault),
}

impl Inject {
    fn calls(&self) -> impl Iterator<Item = Planned> {
        let both = match *self {
            Inject::Call(one) => [Some(one), None],
            Inject::Two(one, two) => [Some(one), Some(two)],
            _ => [None; 2],
        };
        both.into_iter().flatten()
    }
}

/// A run that is to be done.
pub struct Job {
    pub title: String,
    pub inject: Inject,
    pub body: fn(&'static Report),
}

impl Job {
    /// Whether it is a call of this name that fails, and nothing else.
    pub fn is_about(&self, name: &str) -> bool {
        matches!(self.inject, Inject::Call((call, _, _)) if call.name() == name)
    }
}

/// A run that was done.
pub struct Done {
    pub title: String,
    pub inject: Inject,
    pub run: Run,
    pub met: bool,
    pub counts: Vec<u64>,
    pub allocations: u64,
    pub stderr: String,
}

struct Running {
    job: Job,
    pid: i32,
    status: Option<i32>,
    since: Instant,
    /// How long it may take.
    allowed: Duration,
    report: &'static Report,
    stderr: File,
    /// At its end when all processes of the run have ended.
    alive: File,
}

/// Does them all, so many at a time.
pub fn run_all(jobs: Vec<Job>, at_a_time: usize) -> Vec<Done> {
    let mut jobs = jobs.into_iter();
    let mut running: Vec<Running> = Vec::new();
    let mut done = Vec::new();
    loop {
        while running.len() < at_a_time
            && let Some(job) = jobs.next()
        {
            running.push(start(job));
        }
        if running.is_empty() {
            return done;
        }
        let mut i = 0;
        while i < running.len() {
            match running[i].ended() {
                Some(run) => done.push(running.swap_remove(i).finish(run)),
                None => i += 1,
            }
        }
        std::thread::sleep(Duration::from_micros(300));
    }
}

fn start(job: Job) -> Running {
    let bytes = size_of::<Report>();
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, where the kernel chooses; zeros are a report but for what is written
    // here, before anyone else knows it.
    let report = unsafe {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let at = libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0);
        assert_ne!(at, libc::MAP_FAILED);
        let report = at.cast::<Report>();
        (&raw mut (*report).inject).write(job.inject);
        &*report
    };
    // SAFETY: new descriptors, ours. This process has one thread, so the child may do what it
    // likes.
    unsafe {
        let stderr = File::from_raw_fd(refault_syscalls::newer::memfd_create(c"stderr") as i32);
        let mut pipe = [0; 2];
        assert_eq!(libc::pipe2(pipe.as_mut_ptr(), libc::O_NONBLOCK), 0);
        let (alive, held) = (File::from_raw_fd(pipe[0]), OwnedFd::from_raw_fd(pipe[1]));
        let pid = libc::fork();
        assert!(pid >= 0, "{}", std::io::Error::last_os_error());
        if pid == 0 {
            libc::setpgid(0, 0);
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
            libc::dup2(stderr.as_raw_fd(), 2);
            libc::dup2(stderr.as_raw_fd(), 1);
            // Nothing but the pipe: what else this process was given is not for those that may
            // outlive it.
            libc::close_range(3, pipe[1] as u32 - 1, 0);
            libc::close_range(pipe[1] as u32 + 1, u32::MAX, 0);
            heap::fail_at(if let Inject::Allocation(n) = job.inject { n } else { u64::MAX });
            (job.body)(report);
            report.allocations.store(heap::made(), Ordering::Relaxed);
            if report.outcome.load(Ordering::Relaxed) == 0 {
                report.got(RIGHT);
            }
            report.exit(0);
        }
        drop(held);
        Running { job, pid, status: None, since: Instant::now(), allowed: WATCHDOG, report, stderr, alive }
    }
}

impl Running {
    /// `None`: it goes on.
    fn ended(&mut self) -> Option<Run> {
        if self.status.is_none() {
            let mut status = 0;
            // SAFETY: room for a status, of a child of this process.
            if unsafe { libc::waitpid(self.pid, &raw mut status, libc::WNOHANG) } == self.pid {
                self.status = Some(status);
            }
        }
        let is_over = self.status.is_some() && matches!(self.alive.read(&mut [0]), Ok(0));
        if is_over {
            return Some(self.class(self.status?));
        }
        if self.since.elapsed() > self.allowed {
            let group = group::look(self.pid);
            self.allowed = WATCHDOG + group.waited.min(MOST_WAITED);
            if self.since.elapsed() <= self.allowed {
                return None;
            }
            // The state of the processes is added to what the run said.
            _ = self
                .stderr
                .seek(std::io::SeekFrom::End(0))
                .and_then(|_| self.stderr.write_all(group.threads.as_bytes()));
            // SAFETY: the group of a child of this process, which was not waited for or has
            // members.
            unsafe { libc::kill(-self.pid, libc::SIGKILL) };
            if self.status.is_none() {
                // SAFETY: as above.
                unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
            }
            return Some(Run::Hung);
        }
        None
    }

    fn said(&mut self) -> String {
        let mut bytes = Vec::new();
        self.stderr.rewind().expect("a file in memory");
        self.stderr.read_to_end(&mut bytes).expect("a file in memory");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn class(&mut self, status: i32) -> Run {
        let said = self.said();
        if libc::WIFEXITED(status) {
            let outcome = self.report.outcome.load(Ordering::Relaxed);
            return match libc::WEXITSTATUS(status) {
                WRONG => Run::Wrong,
                BROKEN => Run::Broken,
                SKIP => Run::Skipped,
                0 if outcome & LOST != 0 && !said.contains("is lost: ") => Run::Silent(status),
                0 if outcome & ENDED != 0 && !said.contains("refault: ") => Run::Silent(status),
                0 => Run::Fine(outcome),
                _ => Run::Silent(status),
            };
        }
        // Anywhere in a line: other processes of the run may be in the middle of one.
        match said.contains("refault: fatal: ") || said.contains("memory allocation of ") {
            true if libc::WTERMSIG(status) == libc::SIGABRT => Run::Fine(ENDED),
            // Touched by an instruction, not by a system call.
            false if libc::WTERMSIG(status) == libc::SIGBUS && said.contains(" is lost: ") => Run::Fine(LOST),
            _ => Run::Silent(status),
        }
    }

    fn finish(mut self, run: Run) -> Done {
        let stderr = self.said();
        let counts = self.report.counts.iter().map(|c| c.load(Ordering::Relaxed)).collect();
        let allocations = self.report.allocations.load(Ordering::Relaxed);
        let met = self.report.met.load(Ordering::Relaxed) > 0 || stderr.contains("a call of the agent fail");
        // SAFETY: the mapping was made for this run, which is over; nobody refers to it any more.
        unsafe { libc::munmap(std::ptr::from_ref(self.report).cast_mut().cast(), size_of::<Report>()) };
        Done { title: self.job.title, inject: self.job.inject, run, met, counts, allocations, stderr }
    }
}
