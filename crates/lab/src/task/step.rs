//! Next step of a task, and its results so far.

use refault_mm::PageId;

use crate::metric::LatencyRecorder;

/// Kinds of waits, as `sched` tells them apart.
pub(crate) const WAITS: usize = 3;

/// Results of a task in the phases that count.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskTotals {
    pub(crate) accesses: u64,
    pub(crate) hits: u64,
    pub(crate) ops: u64,
    pub(crate) errors: u64,
    /// When the first phase that counts began, and the last one ended.
    pub(crate) first_ns: Option<u64>,
    pub(crate) last_ns: u64,
    /// CPU time in the program itself, in the kernel, and in direct reclaim (a part of the
    /// kernel's).
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    pub(crate) reclaim_ns: u64,
    /// Time without a CPU, by what the task waited for; without sleep of its own will.
    pub(crate) waited_ns: [u64; WAITS],
    pub(crate) latency: LatencyRecorder,
}

/// Next thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskStep {
    /// Access this page of this stream.
    Access(Access),
    /// Read or write these pages past the page cache.
    Direct(Direct),
    /// Have a file written.
    Sync(SyncStep),
    /// Say something about these pages.
    Advise(AdviseStep),
    /// Nothing before this time, in nanoseconds.
    SleepUntil(u64),
    /// The phase is over.
    PhaseOver,
}

/// One access of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) stream: usize,
    pub(crate) page: PageId,
    /// Pages of its block that are left, this one included.
    pub(crate) left: u32,
    pub(crate) write: bool,
    pub(crate) mapped: bool,
    /// A read that goes on in the page where the last one ended.
    pub(crate) continues: bool,
}

/// Consecutive pages that are read or written past the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Direct {
    pub(crate) first: PageId,
    pub(crate) pages: u32,
    pub(crate) write: bool,
}

/// A file with pages to write before the task goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SyncStep {
    pub(crate) stream: usize,
    /// The block that was written last.
    pub(crate) first: PageId,
    pub(crate) pages: u32,
    /// All writes are under way, and the pages before this one have been written.
    pub(crate) waits_from: Option<PageId>,
}

/// Consecutive pages that are dropped or paged out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AdviseStep {
    pub(crate) stream: usize,
    pub(crate) first: PageId,
    pub(crate) pages: u32,
    /// Paged out; otherwise dropped.
    pub(crate) page_out: bool,
}

/// Consequence of the end of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PhaseEnd {
    /// Another phase.
    Phase,
    /// The loop (an index) was gone through once; another phase.
    Repeat(usize),
    /// The loop was gone through for the last time; whether there is another phase.
    Leave(usize, bool),
    /// Nothing.
    End,
}
