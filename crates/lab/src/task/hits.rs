//! A task whose accesses are hits: one follows the other, and nothing else does.

use super::stream::{Direction, Stream};
use super::{Access, Task};
use crate::metric::Latency;
use crate::scenario::PhaseSpec;

/// What hits in a row took.
#[derive(Debug, Default)]
pub(crate) struct Hits {
    count: u64,
    user_ns: u64,
    system_ns: u64,
    /// Latencies, and how many accesses had each. There are few: reads and writes of each kind of
    /// memory; those beyond are in `others`.
    alike: [(u64, u64); 4],
    others: Vec<u64>,
}

impl Hits {
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// One more, that took so long in the program and in the kernel.
    #[inline]
    pub(crate) fn add(&mut self, user_ns: u64, system_ns: u64) {
        self.count += 1;
        self.user_ns += user_ns;
        self.system_ns += system_ns;
        let ns = user_ns + system_ns;
        match self.alike.iter_mut().find(|(of, count)| *of == ns || *count == 0) {
            Some((of, count)) => (*of, *count) = (ns, *count + 1),
            None => self.others.push(ns),
        }
    }

    fn record(&self, latency: &mut Latency) {
        self.alike.iter().filter(|(_, count)| *count > 0).for_each(|&(ns, count)| latency.record_many(ns, count));
        self.others.iter().for_each(|&ns| latency.record(ns));
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

    /// Its next access was made.
    #[inline]
    pub(crate) fn take_drawn(&mut self) {
        self.choices.skip();
    }

    /// These accesses were made, and are over.
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
        hits.record(&mut self.done.latency);
    }
}
