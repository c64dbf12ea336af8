//! Rows of accesses that are hits, with nothing between them.

use super::stream::{Block, Direction, Stream};
use super::{Access, Task};
use crate::metric::EqualLatencies;
use crate::scenario::PhaseSpec;

/// Nanoseconds of hits in a row.
#[derive(Debug, Default)]
pub(crate) struct Hits {
    count: u64,
    user_ns: u64,
    system_ns: u64,
    /// By kind of access: the last ones, for latencies seldom change. Earlier ones are in `others`.
    latest: [EqualLatencies; KINDS],
    others: Vec<(u64, u64)>,
}

/// Kinds that are told apart: reads and writes of each node of memory. Further kinds share a place,
/// so that its latency changes more often.
const KINDS: usize = 8;

impl Hits {
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// One more of a kind, that took so long in the program and in the kernel.
    #[inline]
    pub(crate) fn add(&mut self, kind: usize, user_ns: u64, system_ns: u64) {
        self.count += 1;
        self.user_ns += user_ns;
        self.system_ns += system_ns;
        if let Some(row) = self.latest[kind % KINDS].push(user_ns + system_ns, 1) {
            self.others.push(row);
        }
    }

    /// Latencies, and how many accesses had each.
    fn latencies(&self) -> impl Iterator<Item = (u64, u64)> {
        self.latest.iter().filter_map(EqualLatencies::get).chain(self.others.iter().copied())
    }
}

impl Task {
    /// Whether an access of a phase with these streams that is a hit is followed by the next one at
    /// once, and is an operation.
    pub(super) fn has_rows_of_hits(&self, spec: &PhaseSpec) -> bool {
        spec.think_ns == 0
            && spec.rate_per_s.is_none()
            && spec.burst.is_none()
            && spec.accesses_per_op <= 1
            && self.script.is_none()
            && self.choices.looks_ahead()
            && self.streams.iter().all(Stream::has_plain_hits)
    }

    /// Whether its next accesses can be a row of hits: it is not in the middle of one.
    #[inline]
    pub(crate) fn is_at_hits(&self) -> bool {
        self.rows_of_hits && self.block.is_none() && !self.counted && self.op_start_ns.is_none()
    }

    /// Accesses until its phase is over.
    pub(crate) fn accesses_left(&self) -> u64 {
        self.accesses_left
    }

    /// When its phase is over, if time says so.
    pub(crate) fn end_of_phase(&self, spec: &PhaseSpec) -> u64 {
        self.ends_ns(spec).unwrap_or(u64::MAX)
    }

    /// Its next access, if it was drawn ahead.
    #[inline]
    pub(crate) fn drawn(&self) -> Option<Access> {
        let choice = self.choices.peek()?;
        let (stream, block) = (choice.stream as usize, choice.block);
        let (write, mapped) = (block.direction == Direction::Write, self.streams[stream].mapped);
        Some(Access { stream, page: block.first, left: block.pages, write, mapped, continues: false })
    }

    /// Its next accesses, if they were drawn ahead and are all touches through one page table.
    #[inline]
    pub(crate) fn drawn_touches(&self) -> Option<(usize, impl Iterator<Item = Block> + Clone)> {
        match &self.streams[..] {
            [only] if only.mapped => Some((only.space?, self.choices.drawn())),
            _ => None,
        }
    }

    /// So many of its next accesses were made.
    #[inline]
    pub(crate) fn take_drawn(&mut self, accesses: usize) {
        self.choices.skip(accesses);
    }

    /// Counts these hits as made and finished.
    pub(crate) fn finish_hits(&mut self, spec: &PhaseSpec, hits: Hits, now_ns: u64) {
        self.accesses_left -= hits.count;
        self.not_before_ns = now_ns;
        if !spec.measured {
            return;
        }
        self.spend(spec, hits.user_ns, hits.system_ns);
        self.done.accesses += hits.count;
        self.done.hits += hits.count;
        self.done.ops += hits.count;
        self.done.last_ns = now_ns;
        hits.latencies().for_each(|(ns, count)| self.record_latency(ns, count));
    }
}
