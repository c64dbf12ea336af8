//! Next step of a task, and its results so far.

use refault_mm::PageId;

use crate::metric::Latency;

/// Kinds of waits, as `sched` tells them apart.
pub(crate) const WAITS: usize = 3;

/// Results of a task in the phases that count.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskTotals {
    pub(crate) accesses: u64,
    pub(crate) hits: u64,
    pub(crate) ops: u64,
    pub(crate) errors: u64,
    /// When the first of these phases began and the last ended.
    pub(crate) first_ns: Option<u64>,
    pub(crate) last_ns: u64,
    /// CPU time in the program itself, and in the kernel; of the latter that of direct reclaim.
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    pub(crate) reclaim_ns: u64,
    /// Time without a CPU, by what it waited for; sleep by its own will is none of them.
    pub(crate) waited_ns: [u64; WAITS],
    pub(crate) latency: Latency,
}

/// Next thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskStep {
    /// Access this page of this stream; so many pages of its block are left, this one included.
    Access(Access),
    /// Read or write these pages past the page cache.
    Direct(Direct),
    /// Have a file written.
    Sync(SyncStep),
    /// Say something about these pages.
    Advise(AdviseStep),
    /// Nothing before that time.
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

/// A file of which pages are to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SyncStep {
    pub(crate) stream: usize,
    /// The block that was written last.
    pub(crate) first: PageId,
    pub(crate) pages: u32,
    /// All is under way, and what comes before this page of the file has been written.
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
