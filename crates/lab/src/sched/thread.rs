//! A thread: what runs on a CPU, and what it waits for.

use refault_mm::{NodeId, PausedReclaim, ThrottleReason};

use super::pressure::PsiState;
use crate::task::{Task, WAITS};

/// Why a thread stops running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Its quantum is over.
    Preempted,
    /// Asleep until this time, in nanoseconds.
    Sleep(u64),
    /// Blocked until someone wakes the thread, and how pressure counts it meanwhile.
    Blocked(PsiState),
    /// Ended for good.
    Done,
}

/// Where a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadState {
    /// Not started, or ended.
    Off,
    Queued,
    Running,
    Blocked,
}

/// Reasons for which a thread waits without a CPU, as delay accounting (`getdelays`) has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// A CPU.
    Cpu,
    /// A device: a page that is read or written, room in its queue, or fewer dirty pages.
    Io,
    /// Reclaim by others, or the penalty of `memory.high`.
    Reclaim,
    /// Nothing: the thread sleeps of its own will.
    Nothing,
}

const _: () = assert!(Wait::Nothing as usize == WAITS);

/// Work of a thread while it has a CPU.
#[derive(Debug)]
pub(crate) enum ThreadWork {
    Task(Box<Task>),
    Kswapd(NodeId),
    Flusher,
    /// The worker that writes back what zswap holds.
    Zswap,
    /// Reclaim for an event of the scenario, an index.
    Admin(usize),
}

/// A thread.
#[derive(Debug)]
pub(crate) struct Thread {
    /// Away while it runs.
    pub(crate) work: Option<ThreadWork>,
    pub(crate) state: ThreadState,
    pub(crate) psi_state: PsiState,
    /// Groups whose pressure counts the thread.
    pub(crate) groups: Vec<usize>,
    /// Number of the thread's last wait: a wake-up for an earlier wait comes too late.
    pub(crate) wait: u64,
    /// Woken before its burst was over.
    pub(crate) woken: bool,
    /// Woken for the first time: the task exists. Before that nobody can kill it.
    pub(crate) has_begun: bool,
    pub(crate) killed: bool,
    /// Killed by a program, not by the kernel.
    pub(crate) killed_by_program: bool,
    /// The read that the thread waited for failed.
    pub(crate) read_failed: bool,
    /// Reason for which the thread is throttled.
    pub(crate) throttled: Option<ThrottleReason>,
    /// Wait of the thread, now or as soon as its burst is over; and since when.
    pub(crate) waits_for: Wait,
    pub(crate) waits_since_ns: u64,
    /// CPU time that the thread had, with context switches.
    pub(crate) ran_ns: u64,
    /// CPU time of reclaim that the thread must still spend before it stops.
    pub(crate) debt_ns: u64,
    /// CPU time of reading pages of the working set that the thread must still spend.
    pub(crate) stall_ns: u64,
    /// The thread is spending `debt_ns` and `stall_ns`; and the wait that follows, kept while
    /// others have its CPU.
    pub(crate) pays: bool,
    pub(super) waits_then: Wait,
    pub(crate) stop: Stop,
    /// Nanoseconds of the slice under way that it has used, while it has no CPU.
    pub(crate) used_ns: u64,
    /// CPU time of the thread as EEVDF counts it, and by how much it was behind the mean of
    /// runnable threads when it fell asleep.
    pub(crate) vruntime_ns: i64,
    pub(crate) vlag_ns: i64,
    /// Another thread was to have the CPU meanwhile.
    pub(crate) wants_resched: bool,
    /// The thread is one of the kernel: never in user mode.
    pub(crate) is_of_kernel: bool,
    /// The thread gave up its CPU before it reclaimed, and reclaims as soon as it has a CPU again.
    pub(crate) owes_reclaim: bool,
    /// Reclaim that the thread is in the middle of, and goes on with when it has paid for what it
    /// did.
    pub(crate) paused_reclaim: Option<PausedReclaim>,
}

impl Thread {
    pub(crate) fn new(work: ThreadWork, groups: Vec<usize>) -> Thread {
        Thread {
            is_of_kernel: !matches!(work, ThreadWork::Task(_)),
            work: Some(work),
            state: ThreadState::Off,
            psi_state: PsiState::Idle,
            groups,
            wait: 0,
            woken: false,
            has_begun: false,
            killed: false,
            killed_by_program: false,
            read_failed: false,
            throttled: None,
            waits_for: Wait::Nothing,
            waits_since_ns: 0,
            ran_ns: 0,
            debt_ns: 0,
            stall_ns: 0,
            pays: false,
            waits_then: Wait::Nothing,
            stop: Stop::Preempted,
            used_ns: 0,
            vruntime_ns: 0,
            vlag_ns: 0,
            wants_resched: false,
            owes_reclaim: false,
            paused_reclaim: None,
        }
    }

    /// Whether the thread must still spend CPU time for work that is already done.
    pub(crate) fn owes(&self) -> bool {
        self.debt_ns + self.stall_ns > 0
    }

    /// Begins another wait; its number. A wake-up for an earlier one comes too late from now on.
    pub(crate) fn begin_wait(&mut self) -> u64 {
        self.waits_for = Wait::Nothing;
        self.wait += 1;
        self.wait
    }

    /// Ends the wait of the thread, and begins the next one, or the time with a CPU.
    pub(super) fn next_wait(&mut self, wait: Wait, now_ns: u64) {
        let over = std::mem::replace(&mut self.waits_for, wait);
        let ns = now_ns - std::mem::replace(&mut self.waits_since_ns, now_ns);
        if let (Some(task), true) = (self.task_mut(), over != Wait::Nothing) {
            task.wait(over as usize, ns);
        }
    }

    /// The task, of a thread that is one and does not run at the moment.
    pub(crate) fn task(&self) -> Option<&Task> {
        match &self.work {
            Some(ThreadWork::Task(task)) => Some(task),
            _ => None,
        }
    }

    /// The same, to change it.
    pub(crate) fn task_mut(&mut self) -> Option<&mut Task> {
        match &mut self.work {
            Some(ThreadWork::Task(task)) => Some(task),
            _ => None,
        }
    }
}
