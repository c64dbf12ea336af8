//! The trace that a task replays.

use std::rc::Rc;

use refault_mm::PageId;
use refault_trace::Trace;

use super::step::{Access, TaskStep};

/// A trace that a task replays.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) trace: Rc<Trace>,
    /// The first page and the first extent of its objects in the machine.
    pub(crate) first: PageId,
    pub(crate) first_extent: usize,
    /// By object: its first page, in the numbers of the trace.
    pub(crate) objects: Rc<[u32]>,
    pub(crate) at: usize,
    pub(crate) timed: bool,
    /// Before each access it asks whether the page is there.
    pub(crate) mincore: bool,
    /// When its time 0 is.
    pub(crate) start_ns: u64,
}

impl Script {
    pub(super) fn next_step(&self, now_ns: u64) -> TaskStep {
        let Some(a) = self.trace.accesses.get(self.at) else { return TaskStep::PhaseOver };
        if let (true, Some(times)) = (self.timed, &self.trace.time_ns) {
            let due = self.start_ns + (times[self.at] - times[0]);
            if due > now_ns {
                return TaskStep::SleepUntil(due);
            }
        }
        let stream = self.objects.partition_point(|&first| first <= a.page()) - 1;
        TaskStep::Access(Access {
            stream,
            page: PageId(self.first.0 + a.page()),
            left: 1,
            write: a.is_write(),
            mapped: a.is_map(),
            continues: a.continues(),
        })
    }

    /// Every access is as likely as every other.
    pub(super) fn weigh(&self, add: &mut dyn FnMut(PageId, f64)) {
        let all = self.trace.accesses.len().max(1) as f64;
        for access in &self.trace.accesses {
            add(PageId(self.first.0 + access.page()), 1.0 / all);
        }
    }
}
