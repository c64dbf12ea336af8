//! A process: its memory as the manager sees it.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::abi::BELL_BYTES;
use super::agent::Agent;
use super::maps;
use super::order::Change;
use super::page_table::{PageTable, Ranges};
use super::unanswered::UnansweredOrder;
use crate::pagemap::Pagemap;
use crate::uffd::Uffd;

/// A process.
pub(super) struct AddressSpace {
    /// Serial number: tells it from others with its process number.
    pub(super) serial: u32,
    /// 0: not known (a child of `fork` that has no agent).
    pub(super) pid: i32,
    /// While it is not known: a thread of it that faulted.
    pub(super) toucher: i32,
    pub(super) uffd: Arc<Uffd>,
    /// None: nothing can be moved out of it.
    pub(super) agent: Option<Agent>,
    /// When it last got some of what is kept for reclaim, in nanoseconds.
    pub(super) reserve_ns: Option<u64>,
    /// An order that it has not answered.
    pub(super) unanswered: Option<Box<UnansweredOrder>>,
    pub(super) bell: usize,
    /// The agent's own memory.
    pub(super) arena: Range<usize>,
    /// Pages of it that threads touch to ask something.
    pub(super) calls: Range<usize>,
    pub(super) table: PageTable,
    /// Ranges that are watched, or never to be: the agent's pages and the bell are in them.
    pub(super) watched: Ranges,
    /// Ranges among them that were not looked through yet for pages in place.
    pub(super) unadopted: Ranges,
    /// Its memory is watched as it appears. Until then it is only counted.
    pub(super) active: bool,
    /// Its memory is in part that of the process it was forked from.
    pub(super) forked: bool,
    /// Whether it was forked from a process, or another from it: memory may belong to both.
    pub(super) shares: bool,
    /// Since when it is known, in nanoseconds.
    pub(super) since_ns: u64,
    /// Number of minor faults when copies were last counted, and how many faults since then are
    /// known not to be copies.
    pub(super) minor_faults: u64,
    pub(super) made_its_own: u64,
    /// First pages of its blocks.
    pub(super) blocks: Vec<u32>,
    pub(super) pagemap: Option<Arc<Pagemap>>,
    /// Pages beyond the ones that the engine knows, at the last look.
    pub(super) beyond: u64,
    /// Pages among these that count as its memory.
    pub(super) unknown: u64,
    /// Pages that it had at the last look at its mappings beyond what was known then.
    pub(super) known_unknown: u64,
    /// There was no room for some of its pages to become known.
    pub(super) is_unfinished: bool,
    /// Whether it is to die for lack of memory.
    pub(super) is_killed: bool,
    /// Whether it is to die because the place of its memory is not known: it is not served any
    /// more.
    pub(super) is_undecided: bool,
    /// Some of its memory could not be watched.
    pub(super) is_unwatched: bool,
    /// Changes of its mappings that were read, but whose order is not known yet.
    pub(super) batch: Vec<Change>,
    /// Whether some of these were read while several threads could change mappings.
    pub(super) has_no_order: bool,
    /// Descriptors of the processes that are forked in the batch.
    pub(super) batch_forks: Vec<Arc<Uffd>>,
    /// Ranges that were first watched while something may have been under way that is not read yet.
    pub(super) doubtful: Ranges,
    /// First touches in order.
    pub(super) fresh: FreshRuns,
}

/// First touches in order: a program fills some areas at a time, each from its beginning on.
#[derive(Debug, Default)]
pub(super) struct FreshRuns {
    /// Where the next first touch of a row would be, and how many pages the row's last fault
    /// brought.
    rows: [(usize, usize); ROWS],
    /// Index of the row that is replaced next.
    oldest: usize,
}

/// Rows that are followed at a time: as many as the engine follows for reading ahead.
const ROWS: usize = 8;
/// The most pages that a fault brings: 256 KiB, half of what a read brings at the most.
const MOST_FRESH: usize = 64;

impl FreshRuns {
    /// Pages that a first touch should bring, itself among them, and the row that it belongs to.
    pub(super) fn touched(&mut self, address: usize) -> (usize, usize) {
        if let Some(row) = self.rows.iter().position(|&(next, pages)| pages > 0 && next == address) {
            return ((self.rows[row].1 * 2).min(MOST_FRESH), row);
        }
        let row = self.oldest;
        self.oldest = (row + 1) % ROWS;
        (1, row)
    }

    /// Notes the pages that a first touch brought: a row is as long as there was room for it.
    pub(super) fn came(&mut self, row: usize, next: usize, pages: usize) {
        self.rows[row] = (next, pages);
    }
}

/// Numbers that tell processes apart, as far as they are kept.
const SERIAL_MASK: u32 = (1 << 30) - 1;
static NEXT: AtomicU32 = AtomicU32::new(0);

impl AddressSpace {
    pub(super) fn new(pid: i32, uffd: Arc<Uffd>, bell: usize, since_ns: u64) -> AddressSpace {
        AddressSpace {
            serial: NEXT.fetch_add(1, Ordering::Relaxed) & SERIAL_MASK,
            pid,
            toucher: 0,
            uffd,
            agent: None,
            reserve_ns: None,
            unanswered: None,
            bell,
            arena: 0..0,
            calls: 0..0,
            table: PageTable::default(),
            watched: Ranges::default(),
            unadopted: Ranges::default(),
            active: false,
            forked: false,
            shares: false,
            since_ns,
            minor_faults: 0,
            made_its_own: 0,
            blocks: Vec::new(),
            pagemap: (pid > 0).then(|| Pagemap::of(pid).ok().map(Arc::new)).flatten(),
            beyond: 0,
            unknown: 0,
            known_unknown: 0,
            is_unfinished: false,
            is_killed: false,
            is_undecided: false,
            is_unwatched: false,
            batch: Vec::new(),
            has_no_order: false,
            batch_forks: Vec::new(),
            doubtful: Ranges::default(),
            fresh: FreshRuns::default(),
        }
    }

    /// Whether an address is the agent's or the bell: nothing is ever moved out there, or put
    /// there.
    pub(super) fn is_ours(&self, address: usize) -> bool {
        self.arena.contains(&address) || (self.bell..self.bell + BELL_BYTES).contains(&address)
    }

    /// Whether the program has one thread now, beside its agent. Asked right after changes were
    /// read: who made them waited until then, so is among the threads.
    pub(super) fn has_one_thread(&self) -> bool {
        const WITH_AGENT: u64 = 2;
        self.pid > 0 && self.agent.is_some() && maps::threads(self.pid) == Some(WITH_AGENT)
    }

    /// Whether an address is of the program's and known to be watched.
    pub(super) fn is_watched(&self, address: usize) -> bool {
        self.watched.contains(address) && !self.is_ours(address)
    }
}
