//! Virtual time, and what happens next: events by time, and among equals by the order in which they
//! were announced.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::hardware::Submission;

/// Something that happens at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The thread that ran on this CPU comes to a stop.
    Cpu(usize),
    /// A device has something to do, if nothing else was announced for it meanwhile.
    Device(usize),
    /// Wakes a thread, if it is still in the wait of that number.
    Wake(usize, u64),
    /// Requests reach their devices: index of a list of requests.
    Submit(usize),
    /// A cluster of a swap device was discarded: the number of its first slot.
    Discarded(u32),
    /// A sample of the time series is due.
    Sample,
    /// The flusher looks for what has been dirty for too long.
    Expiry,
    /// An event of the scenario, an index, is due.
    Admin(usize),
    /// A look at the conditions of an event of the scenario, an index.
    Look(usize),
    /// A task, a specification, begins.
    Enter(usize),
}

impl Event {
    fn only_looks(self) -> bool {
        matches!(self, Event::Sample | Event::Look(_) | Event::Expiry)
    }
}

/// The time, and what is to come.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    now_ns: u64,
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    announced: u64,
    /// Number of pending samples and looks, which alone do not keep a machine going.
    onlookers: usize,
    handled: u64,
    /// Requests on their way, by the number in [`Event::Submit`].
    submissions: Vec<Vec<Submission>>,
    free: Vec<usize>,
}

impl Clock {
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Events that were handled.
    pub(crate) fn handled(&self) -> u64 {
        self.handled
    }

    pub(crate) fn push(&mut self, at_ns: u64, event: Event) {
        self.announced += 1;
        self.onlookers += usize::from(event.only_looks());
        self.heap.push(Reverse((at_ns, self.announced, event)));
    }

    /// Whether nothing is to come but samples, looks at conditions, and at what is dirty for long.
    pub(crate) fn is_idle(&self) -> bool {
        self.heap.len() == self.onlookers
    }

    pub(crate) fn pop(&mut self) -> Option<(u64, Event)> {
        let Reverse((at, _, event)) = self.heap.pop()?;
        self.onlookers -= usize::from(event.only_looks());
        Some((at, event))
    }

    /// Sets the time to that of an event. Error: that time is past.
    pub(crate) fn advance(&mut self, at_ns: u64) -> Result<(), String> {
        if at_ns < self.now_ns {
            return Err(format!("time runs backwards, from {} to {at_ns} ns", self.now_ns));
        }
        self.now_ns = at_ns;
        Ok(())
    }

    /// Counts an event as handled. Returns the number of events so far.
    pub(crate) fn count(&mut self) -> u64 {
        self.handled += 1;
        self.handled
    }

    /// Announces that requests will be made.
    pub(crate) fn push_submission(&mut self, at_ns: u64, what: Vec<Submission>) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.submissions.push(Vec::new());
            self.submissions.len() - 1
        });
        debug_assert!(self.submissions[place].is_empty(), "two lists of requests in one place");
        self.submissions[place] = what;
        self.push(at_ns, Event::Submit(place));
    }

    pub(crate) fn take_submission(&mut self, place: usize) -> Vec<Submission> {
        debug_assert!(!self.free.contains(&place), "requests that were sent already");
        self.free.push(place);
        std::mem::take(&mut self.submissions[place])
    }
}
