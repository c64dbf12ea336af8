//! Objects, tasks, and what tasks do.

use std::ops::Range;

use refault_mm::{AccessAdvice, HugeAdvice};
use refault_trace::{ObjectKind, Via};

/// Content of the pages of an object: shares of all, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContentSpec {
    /// Share of pages that hold only zeros.
    pub zero: f64,
    /// Share of pages that hold one word over and over.
    pub same: f64,
    /// Share of pages that no compressor makes smaller.
    pub incompressible: f64,
    /// Compression ratio of the other pages together: bytes before over bytes after.
    pub ratio: f64,
}

/// A file or an anonymous region.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectSpec {
    /// Its name.
    pub name: String,
    /// Backing of the object.
    pub kind: ObjectKind,
    /// Pages of the object.
    pub pages: u64,
    /// Pages of its areas, by turns, with a hole of a page behind each area: a large folio lies
    /// within one area. Empty: one area.
    pub areas: Vec<u64>,
    /// The device of a file, an index; `None` for anonymous memory.
    pub device: Option<usize>,
    /// Group that is charged, an index; `None`: the root.
    pub memcg: Option<usize>,
    /// Each copy of the task has its own. Only one task uses it then.
    pub private: bool,
    /// Content of its pages; `None`: all are alike, and compress as the device or zswap has it.
    pub content: Option<ContentSpec>,
    /// `MADV_HUGEPAGE` or `MADV_NOHUGEPAGE` on anonymous memory.
    pub huge: HugeAdvice,
}

/// A task, or several that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSpec {
    /// Its name.
    pub name: String,
    /// Copies of it that run at once.
    pub count: u32,
    /// Its group, an index; `None`: the root.
    pub memcg: Option<usize>,
    /// When the task starts; with `after`, nanoseconds after the end of that task.
    pub start_ns: u64,
    /// Nanoseconds that each copy starts after the copy before it.
    pub stagger_ns: u64,
    /// The task (an index) whose copies must all have ended before this task starts.
    pub after: Option<usize>,
    /// Phases of the task, one after the other; at least one. With a trace there is exactly one,
    /// without streams.
    pub phases: Vec<PhaseSpec>,
    /// Loops over phases that are done more than once, in their order; no phase is in two loops.
    pub loops: Vec<LoopSpec>,
    /// A trace that it replays.
    pub trace: Option<TraceSpec>,
    /// Its copies are threads of one program; `None`: if they share anonymous memory.
    pub threads: Option<bool>,
    /// Whether the scenario may end while the task still runs.
    pub background: bool,
    /// `oom_score_adj`.
    pub oom_score_adj: i32,
    /// Hint that policies in the form of cache_ext get of it.
    pub cache_ext_hint: u8,
}

/// A trace that drives a task.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSpec {
    /// The file.
    pub path: std::path::PathBuf,
    /// Device of the files, an index.
    pub device: Option<usize>,
    /// Accesses come no earlier than the trace says; otherwise one after the other.
    pub timed: bool,
    /// Advice of its program on how it accesses its files.
    pub advice: AccessAdvice,
    /// Before each access the program asks with `mincore` whether the page is there, which takes a
    /// page and gives it back.
    pub mincore: bool,
}

/// Phases of a task that follow each other again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopSpec {
    /// The phases, by index.
    pub phases: Range<usize>,
    /// Times through the loop.
    pub times: u64,
    /// Records the changes in the counters of the machine by each time through, for the results.
    pub record: bool,
}

/// A part of the life of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseSpec {
    /// Its name.
    pub name: Option<String>,
    /// Accesses of the phase. None at all: the task sleeps until the phase ends.
    pub streams: Vec<StreamSpec>,
    /// The end of the phase.
    pub until: PhaseLimit,
    /// Whether the phase counts in the results.
    pub measured: bool,
    /// Nanoseconds of sleep after each operation.
    pub think_ns: u64,
    /// Nanoseconds of CPU time of the program for each access.
    pub cpu_ns: u64,
    /// Cache lines that an access brings from memory, one after the other. They cost time only on
    /// nodes with a latency.
    pub lines: u32,
    /// Accesses (of one page each) that make an operation.
    pub accesses_per_op: u32,
    /// Operations a second that each copy does at most.
    pub rate_per_s: Option<f64>,
    /// The task works by turns.
    pub burst: Option<Burst>,
}

/// Work and rest by turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// Nanoseconds of work.
    pub on_ns: u64,
    /// Nanoseconds of rest.
    pub off_ns: u64,
}

/// When a phase ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PhaseLimit {
    /// After this number of accesses of one page, by each copy. Pages that are paged out or dropped
    /// count as well.
    Accesses(u64),
    /// After this number of times through the pages of the only stream. The number of pages may
    /// differ each time.
    Passes(f64),
    /// This number of nanoseconds after the phase began.
    Duration(u64),
    /// This number of nanoseconds after the start of the scenario.
    Time(u64),
    /// With the scenario.
    End,
}

/// Accesses of a phase to one object.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamSpec {
    /// The object, an index.
    pub object: usize,
    /// Action on the blocks.
    pub action: Action,
    /// Call after each block that the program has written by descriptor.
    pub sync: Sync,
    /// Order in which blocks are accessed.
    pub pattern: AccessPattern,
    /// Weight of the stream: its share of the blocks, relative to the other streams of the phase.
    pub weight: f64,
    /// Access by descriptor or by mapping.
    pub via: Via,
    /// Share of the blocks that are written: 0 to 1.
    pub write_share: f64,
    /// Consecutive pages that are accessed together.
    pub block_pages: u32,
    /// Advice of the program on how it accesses the object: `MADV_RANDOM` or `POSIX_FADV_RANDOM`,
    /// and so on.
    pub advice: AccessAdvice,
    /// The first page that is used.
    pub first_page: u64,
    /// The pages that are used.
    pub pages: u64,
    /// Least number of pages used, where it varies. Each iteration of a loop, or phase outside of
    /// loops, draws a number from here to `pages`.
    pub least_pages: u64,
    /// Where a sequential reader begins, counted from `first_page` or, with [`Share::Split`], from
    /// the start of its slice.
    pub start_page: u64,
    /// How the copies of a task divide the pages.
    pub share: Share,
    /// Times that each block is accessed before the next one.
    pub times: u32,
}

/// Action of a stream on the blocks that it comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reads or writes the blocks.
    Access,
    /// Drops the blocks (`MADV_DONTNEED`), and then reads or writes them: anonymous memory that is
    /// new each time.
    Renew,
    /// Reads or writes the blocks past the page cache (`O_DIRECT`).
    Direct,
    /// Drops the blocks: anonymous memory with `MADV_DONTNEED`, files with `POSIX_FADV_DONTNEED`.
    Drop,
    /// Pages the blocks out (`MADV_PAGEOUT`).
    PageOut,
}

/// Calls that follow a write by descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Nothing: it is written when the kernel sees fit.
    None,
    /// `fsync`: all dirty pages of the file are written, and waited for.
    Fsync,
    /// `sync_file_range` with `SYNC_FILE_RANGE_WRITE`: the pages of the block begin to be written.
    SyncFileRange,
}

/// How the copies of a task divide the pages of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Each copy uses all pages and starts at `start_page`.
    Same,
    /// Each copy has a slice of its own: the pages divided by the number of copies, rounded down.
    Split,
    /// Each copy uses all pages; the starts are evenly spaced, the first at `start_page`.
    Staggered,
    /// The copies together go over the pages once a round, from `start_page` on: each copy takes
    /// the next block that none has taken.
    Queue,
}

/// The order of accesses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AccessPattern {
    /// One block after the other, round and round.
    Sequential,
    /// Every block is as likely.
    Uniform,
    /// Block of rank r with a probability proportional to r^-skew.
    Zipf {
        /// Exponent of the distribution.
        skew: f64,
        /// Ranks are permuted over the object; otherwise rank 1 is its first block.
        permute: bool,
    },
    /// Blocks around the middle, with a normal distribution; what would be outside is drawn again.
    Normal {
        /// Standard deviation, as a share of all blocks.
        sigma: f64,
    },
}
