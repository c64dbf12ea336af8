//! Cells of one policy begin alike, whatever their memory: a leader replays what they have in
//! common once.
//!
//! Why: an engine is a function of its configuration and its calls, and the cells of a policy
//! differ only in `memory.max` of one group. While there is room, the engine reads this limit in
//! two places. A charge asks whether it fits, and whether a batch ahead fits (`try_charge`): yes in
//! every size with more room left than two batches and what an access can charge. A write to a file
//! asks how much could become cache (`dirty_levels`): the shared part ends in front of the first
//! write. All else that reads the limit follows a charge that did not fit. So up to there the cell
//! of the largest memory is in the state of each smaller one, and a copy of it goes on with the
//! smaller limit.
//!
//! Not shared: plug-ins, which are told the limit; large folios, of which one access charges many
//! pages; traces in which pages leave memory, whose accesses are not replayed in equal steps; and
//! machines with nodes of a size.

use super::cell::TICK;
use super::plan::{CellPolicy, Plan, Running, STEP};
use crate::watch::Progress;
use refault_mm::Config;
use refault_trace::{ObjectKind, Trace};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Pages that one access charges at most: its own page, a page of page tables, and 11 nodes of a
/// tree over 64-bit indices, none larger than a page.
const PAGES_PER_ACCESS: u64 = 1 + 1 + 11;

/// Cells that begin alike.
#[derive(Debug)]
pub(super) struct SharedPrefix<'p> {
    /// Their policy.
    pub(super) policy: CellPolicy<'p>,
    /// Their places among all cells, and their sizes, ascending.
    pub(super) cells: Vec<(usize, u64)>,
}

/// A cell that has left its leader.
#[derive(Debug)]
pub(super) struct Fork<'p> {
    pub(super) at: usize,
    /// Accesses already replayed.
    pub(super) from: usize,
    pub(super) running: Running<'p>,
}

/// Work for a thread.
#[derive(Debug)]
pub(super) enum Task<'p> {
    Lead(SharedPrefix<'p>),
    Finish(Box<Fork<'p>>),
}

#[derive(Debug)]
struct Waiting<'p> {
    prefixes: VecDeque<SharedPrefix<'p>>,
    forks: Vec<Fork<'p>>,
    /// Leaders still running: each may add forks.
    leaders: usize,
}

/// Work of all threads.
#[derive(Debug)]
pub(super) struct Tasks<'p> {
    waiting: Mutex<Waiting<'p>>,
    more: Condvar,
    threads: usize,
}

impl<'p> Tasks<'p> {
    pub(super) fn new(prefixes: Vec<SharedPrefix<'p>>, threads: usize) -> Tasks<'p> {
        let waiting = Waiting { prefixes: prefixes.into(), forks: Vec::new(), leaders: 0 };
        Tasks { waiting: Mutex::new(waiting), more: Condvar::new(), threads }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting<'p>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next task; `None` if there is nothing more to come. The leader says when it is done.
    pub(super) fn next(&self) -> Option<Task<'p>> {
        let mut waiting = self.waiting();
        loop {
            if let Some(fork) = waiting.forks.pop() {
                return Some(Task::Finish(Box::new(fork)));
            }
            if let Some(family) = waiting.prefixes.pop_front() {
                waiting.leaders += 1;
                return Some(Task::Lead(family));
            }
            if waiting.leaders == 0 {
                return None;
            }
            waiting = self.more.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A leader is done.
    pub(super) fn led(&self) {
        self.waiting().leaders -= 1;
        self.more.notify_all();
    }

    /// Leaves a cell to another thread. Given back if as many wait as there are threads: each holds
    /// a state of the engine.
    pub(super) fn offer(&self, fork: Box<Fork<'p>>) -> Result<(), Box<Fork<'p>>> {
        let mut waiting = self.waiting();
        if self.threads < 2 || waiting.forks.len() >= self.threads {
            return Err(fork);
        }
        waiting.forks.push(*fork);
        self.more.notify_one();
        Ok(())
    }
}

/// Whether cells with this configuration may begin alike.
fn is_sharable(cfg: &Config) -> bool {
    let plain = Config { node: None, numa: None, cache_ext: None, thp: Default::default(), ..cfg.clone() };
    *cfg == plain && cfg.readahead.file_order == 0
}

/// Cells of a plan, grouped by their common beginning.
pub(super) fn prefixes<'p>(plan: &'p Plan<'_>) -> Vec<SharedPrefix<'p>> {
    let mut prefixes: Vec<SharedPrefix<'_>> = Vec::new();
    let cells = plan.cells();
    let kinds = plan.policies.len() + plan.plug_ins.len();
    for kind in 0..kinds {
        let mut own: Vec<_> = cells.iter().enumerate().skip(kind).step_by(kinds).collect();
        own.sort_by_key(|(_, cell)| cell.0);
        let Some(&(_, &(_, policy))) = own.first() else { continue };
        let shares = match policy {
            CellPolicy::Own((_, Some(cfg))) => plan.trace.drops.is_empty() && is_sharable(cfg),
            _ => false,
        };
        let own = own.into_iter().map(|(at, &(pages, _))| (at, pages));
        match shares {
            true => prefixes.push(SharedPrefix { policy, cells: own.collect() }),
            false => prefixes.extend(own.map(|cell| SharedPrefix { policy, cells: vec![cell] })),
        }
    }
    // The longest first.
    prefixes.sort_by_key(|prefix| std::cmp::Reverse(prefix.cells.len()));
    prefixes
}

/// Accesses in front of the first write to a file.
pub(super) fn before_file_writes(trace: &Trace) -> usize {
    let files = trace.objects.iter().filter(|o| o.kind == ObjectKind::File);
    let mut ranges: Vec<_> = files.map(|o| (o.first_page, o.first_page + o.indices.len() as u32)).collect();
    ranges.sort_unstable();
    let is_file = |page: u32| {
        let behind = ranges.partition_point(|&(first, _)| first <= page);
        behind > 0 && page < ranges[behind - 1].1
    };
    let all = &trace.accesses;
    all.iter().position(|a| a.is_write() && is_file(a.page())).unwrap_or(all.len())
}

/// Feeds a leader with these accesses as long as a memory of `pages` would be in the same state;
/// returns where that ends.
pub(super) fn feed_prefix(
    plan: &Plan<'_>,
    leader: &mut Running<'_>,
    pages: u64,
    accesses: Range<usize>,
    progress: &Progress,
) -> usize {
    let Range { start: mut from, end } = accesses;
    let batches = 2 * leader.cfg.memcg.charge_batch;
    while !plan.watch.is_stopped() {
        let used = leader.cell.engine.memcg_usage(leader.cell.group);
        let sure = pages.saturating_sub(used + batches) / PAGES_PER_ACCESS;
        let nr = (sure as usize).min(STEP).min(end.saturating_sub(from)) / TICK * TICK;
        if nr == 0 {
            break;
        }
        plan.feed(leader, &plan.trace.accesses[from..from + nr], plan.times_from(from), progress);
        from += nr;
    }
    from
}
