//! What happens next: events by time, and among equals by the order in which they were announced.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::hardware::Submission;

/// Something that happens at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// What ran on this CPU comes to a stop.
    Cpu(usize),
    /// A device has something to do, if nothing else was announced for it meanwhile.
    Device(usize),
    /// A thread sleeps until now, if it is still the sleep of that number.
    Wake(usize, u64),
    /// Requests reach their devices: the place of a list of them.
    Submit(usize),
    /// A cluster of a swap device was discarded: the number of its first slot.
    Discarded(u32),
    /// A sample of the time series is due.
    Sample,
    /// An event of the scenario, an index, is due.
    Admin(usize),
    /// A task, a specification, begins.
    Enter(usize),
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Events {
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    announced: u64,
    /// Requests on their way, by the number in [`Event::Submit`].
    submissions: Vec<Vec<Submission>>,
    free: Vec<usize>,
}

impl Events {
    pub(crate) fn push(&mut self, at_ns: u64, event: Event) {
        self.announced += 1;
        self.heap.push(Reverse((at_ns, self.announced, event)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    pub(crate) fn pop(&mut self) -> Option<(u64, Event)> {
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }

    /// Announces that requests will be made.
    pub(crate) fn push_submission(&mut self, at_ns: u64, what: Vec<Submission>) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.submissions.push(Vec::new());
            self.submissions.len() - 1
        });
        self.submissions[place] = what;
        self.push(at_ns, Event::Submit(place));
    }

    pub(crate) fn take_submission(&mut self, place: usize) -> Vec<Submission> {
        self.free.push(place);
        std::mem::take(&mut self.submissions[place])
    }
}
