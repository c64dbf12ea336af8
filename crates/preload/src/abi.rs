//! Words between the manager and the agent in a program. Both compile this file.
//!
//! They talk over a socket of packets. Pages that move, and their outcome, are in memory that both
//! map: a page of [`Control`], then [`WINDOW`] pages of content, then a page of [`NewMemory`], by
//! which threads of the program have memory watched that they have just made.

use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};

/// Pages that are moved at a time.
pub const WINDOW: usize = 64;

/// Bytes of a page.
pub const PAGE: usize = 4096;

/// Bytes of the memory that both map.
pub const SHARED_BYTES: usize = (2 + WINDOW) * PAGE;

/// Where the page of [`NewMemory`] is in it.
pub const NEW_MEMORY_AT: usize = (1 + WINDOW) * PAGE;

/// The variable that names the manager's socket, in the abstract name space.
pub const VARIABLE: &str = "REFAULT_RUN";

/// Says that both are of the same make.
pub const HELLO_MAGIC: u32 = 0x5246_4C31;

/// The first packet of an agent. A userfaultfd comes with it if `kind` is [`NEW`] and `error` is 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct AgentHello {
    /// [`HELLO_MAGIC`].
    pub magic: u32,
    /// [`NEW`] or [`FORKED`].
    pub kind: u32,
    /// Why there is no userfaultfd: an errno, or 0.
    pub error: u32,
    /// Step that failed: one of the `AT_` numbers.
    pub at: u32,
    /// The agent's own memory: never watched, but for the scratch pages.
    pub arena: u64,
    /// Its bytes.
    pub arena_bytes: u64,
    /// Where pages are moved to: [`WINDOW`] pages.
    pub scratch: u64,
    /// A page that is watched and never touched: discarding it tells which process the agent is in.
    /// The page behind it is empty in every child of `fork`; in it is where [`NewMemory`] is
    /// mapped.
    pub bell: u64,
    /// [`CALLS`] pages of the arena that are watched: touching one says that there is something in
    /// [`NewMemory`].
    pub calls: u64,
    /// Functions of the C library that were found and go through [`NewMemory`], of [`CAUGHT_ALL`].
    pub caught: u32,
    /// For the size to be a multiple of eight.
    pub padding: u32,
}

/// The bell, and the page behind it.
pub const BELL_BYTES: usize = 2 * PAGE;
/// [`AgentHello::caught`]: `mmap`, `brk`, `mremap` and `mprotect`.
pub const CAUGHT_ALL: u32 = 0b1111;

/// A process that has just been started.
pub const NEW: u32 = 0;
/// A process that was forked from one that has an agent.
pub const FORKED: u32 = 1;

/// Opening a userfaultfd failed.
pub const AT_OPEN: u32 = 1;
/// The kernel has not the features wanted, or this process may not use them.
pub const AT_FEATURES: u32 = 2;

/// A packet of the manager.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Order {
    /// One of the orders below.
    pub kind: u32,
    /// Entries of the control page that it is about.
    pub count: u32,
}

/// Discard the page at [`AgentHello::bell`].
pub const RING: u32 = 1;
/// All is set: the program may go on. The shared memory comes with it, and for a forked process the
/// userfaultfd.
pub const GO: u32 = 2;
/// This process is not served: go on without.
pub const LEAVE: u32 = 3;
/// Move the pages of the control page to the window. Answered by one byte.
pub const MOVE: u32 = 4;
/// All threads of the program have ended: so does the agent, with the status that comes as the
/// count. Not answered.
pub const END: u32 = 5;

/// The page was moved, but the kernel refused to mark where it was, since mappings change.
pub const UNMARKED: u32 = u32::MAX;

/// Pages to be moved, and what became of each.
#[repr(C)]
#[derive(Debug)]
pub struct Control {
    /// Addresses of pages.
    pub address: [u64; WINDOW],
    /// 0: it is in its place of the window. [`UNMARKED`]: likewise, but where it was is not marked.
    /// An errno: it is where it was, or nowhere.
    pub outcome: [u32; WINDOW],
    /// Pages among these (a bit for each entry) that could only be moved when they had been made
    /// this process's own: as a rule they were shared with another since a fork, and what the other
    /// has is as much memory as before.
    pub unshared: u64,
}

const _: () = assert!(size_of::<Control>() <= PAGE);

/// Threads that may ask at a time.
pub const CALLS: usize = 128;

/// How memory that the program makes comes to be watched before the program touches it. The
/// functions of the C library that make memory count what they make. As long as it is within the
/// allowance, that is all. Beyond it, and before they return, they put the range into an entry and
/// touch the page of that number of [`AgentHello::calls`]: a fault, which the manager serves when
/// the range is watched, or when it has found that there is room for it unwatched.
#[repr(C)]
#[derive(Debug)]
pub struct NewMemory {
    /// Bytes that may be made unwatched. Below [`WATCHED`], everything is watched.
    pub allowance: AtomicI64,
    /// Times that somebody asked.
    pub next: AtomicU64,
    /// Times that half of the pages of calls was emptied.
    pub emptied: AtomicU64,
    /// 1: this entry is in use.
    pub busy: [AtomicU32; CALLS],
    /// Memory that was made: where it starts, and its bytes.
    pub range: [[AtomicU64; 2]; CALLS],
}

/// An allowance below this says that all memory is watched.
pub const WATCHED: i64 = -(1 << 60);

const _: () = assert!(size_of::<NewMemory>() <= PAGE);
