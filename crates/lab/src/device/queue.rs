//! Requests that wait for a channel, and which is next.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A run of pages that waits: a request, or what is left of one that is served in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The number of the request, in the order of submission.
    pub owner: u64,
    pub write: bool,
    pub at_page: u64,
    pub pages: u32,
    pub issued_ns: u64,
}

impl Run {
    /// Cuts off a first part of at most `max_pages` pages. Returns it and the rest, if there is
    /// one.
    fn cut(self, max_pages: u32) -> (Run, Option<Run>) {
        if self.pages <= max_pages {
            return (self, None);
        }
        let rest =
            Run { at_page: self.at_page.saturating_add(u64::from(max_pages)), pages: self.pages - max_pages, ..self };
        (Run { pages: max_pages, ..self }, Some(rest))
    }

    /// Number of parts in which the run is served. A run without pages, such as a flush, is one
    /// part too.
    pub fn parts(&self, max_pages: u32) -> u64 {
        u64::from(self.pages.div_ceil(max_pages)).max(1)
    }
}

/// The requests that wait.
pub(super) enum Waiting {
    /// First come, first served: what Linux does for fast devices (scheduler `none`).
    Fifo(VecDeque<Run>),
    /// In the order of their place.
    Elevator(Elevator),
}

impl Waiting {
    pub fn push(&mut self, run: Run) {
        match self {
            Waiting::Fifo(queue) => queue.push_back(run),
            Waiting::Elevator(elevator) => elevator.side(run.write).insert(run),
        }
    }

    /// The next part to serve, where the arm is at `head`.
    pub fn take(&mut self, now_ns: u64, head: u64, max_pages: u32) -> Option<Run> {
        match self {
            Waiting::Fifo(queue) => {
                let (part, rest) = queue.pop_front()?.cut(max_pages);
                if let Some(rest) = rest {
                    queue.push_front(rest);
                }
                Some(part)
            }
            Waiting::Elevator(elevator) => elevator.take(now_ns, head, max_pages),
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Waiting::Fifo(queue) => queue.is_empty(),
            Waiting::Elevator(elevator) => elevator.sides.iter().all(|side| side.by_age.is_empty()),
        }
    }

    /// Number of parts that wait. An error: the two copies of the elevator's requests differ. For
    /// checks.
    pub fn parts(&self, max_pages: u32) -> Result<u64, String> {
        match self {
            Waiting::Fifo(queue) => Ok(queue.iter().map(|run| run.parts(max_pages)).sum()),
            Waiting::Elevator(elevator) => {
                let mut parts = 0;
                for side in &elevator.sides {
                    let known = side.by_age.values().all(|run| side.by_place.contains(&(run.at_page, run.owner)));
                    if !known || side.by_place.len() != side.by_age.len() {
                        return Err("the elevator's two orders hold different requests".into());
                    }
                    parts += side.by_age.values().map(|run| run.parts(max_pages)).sum::<u64>();
                }
                Ok(parts)
            }
        }
    }
}

/// After so long a request is served out of turn: `read_expire` and `write_expire` of Linux's
/// deadline scheduler.
const EXPIRE_NS: [u64; 2] = [500_000_000, 5_000_000_000];
/// Most requests of one direction in a row: `fifo_batch`.
const BATCH: u32 = 16;
/// Most batches of reads in a row while writes wait: `writes_starved`.
const WRITES_STARVED: u32 = 2;

/// The order of a disk, after the documentation of Linux's deadline scheduler
/// (`Documentation/block/deadline-iosched.rst`).
///
/// Requests are served in batches of one direction, upwards from where the arm is and, past the
/// last, again from the lowest. Reads go first, but writes wait for two batches of reads at most. A
/// batch begins with the oldest request of its direction if that has expired, so none is left
/// behind.
#[derive(Default)]
pub(super) struct Elevator {
    /// Reads, writes.
    sides: [DirectionQueue; 2],
    batch_of_writes: bool,
    batch_left: u32,
    /// Batches of reads that began while writes waited.
    passed_over: u32,
}

/// The waiting requests of one direction, in two orders.
#[derive(Default)]
struct DirectionQueue {
    by_age: BTreeMap<u64, Run>,
    by_place: BTreeSet<(u64, u64)>,
}

impl DirectionQueue {
    fn insert(&mut self, run: Run) {
        self.by_age.insert(run.owner, run);
        self.by_place.insert((run.at_page, run.owner));
    }

    fn remove(&mut self, owner: u64) -> Option<Run> {
        let run = self.by_age.remove(&owner)?;
        self.by_place.remove(&(run.at_page, owner));
        Some(run)
    }

    /// The nearest at or past a place, else the lowest.
    fn ahead(&self, head: u64) -> Option<u64> {
        let next = self.by_place.range((head, 0)..).next().or_else(|| self.by_place.first())?;
        Some(next.1)
    }

    fn expired(&self, now_ns: u64, after_ns: u64) -> Option<u64> {
        let oldest = self.by_age.values().next()?;
        (oldest.issued_ns.saturating_add(after_ns) <= now_ns).then_some(oldest.owner)
    }
}

impl Elevator {
    fn side(&mut self, write: bool) -> &mut DirectionQueue {
        &mut self.sides[usize::from(write)]
    }

    fn take(&mut self, now_ns: u64, head: u64, max_pages: u32) -> Option<Run> {
        let write = self.batch_of_writes;
        let owner = if self.batch_left > 0 && !self.side(write).by_age.is_empty() {
            self.side(write).ahead(head)?
        } else {
            self.begin_batch(now_ns, head)?
        };
        self.batch_left -= 1;
        let write = self.batch_of_writes;
        let (part, rest) = self.side(write).remove(owner)?.cut(max_pages);
        if let Some(rest) = rest {
            self.side(write).insert(rest);
        }
        Some(part)
    }

    /// Chooses the direction of the next batch, and its first request.
    fn begin_batch(&mut self, now_ns: u64, head: u64) -> Option<u64> {
        let [reads, writes] = [0, 1].map(|side: usize| !self.sides[side].by_age.is_empty());
        if !reads && !writes {
            return None;
        }
        self.batch_of_writes = !reads || (writes && self.passed_over >= WRITES_STARVED);
        self.passed_over = if self.batch_of_writes || !writes { 0 } else { self.passed_over + 1 };
        self.batch_left = BATCH;
        let side = &self.sides[usize::from(self.batch_of_writes)];
        side.expired(now_ns, EXPIRE_NS[usize::from(self.batch_of_writes)]).or_else(|| side.ahead(head))
    }
}
