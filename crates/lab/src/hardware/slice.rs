//! Until when the thread on a CPU with ticks may go on, for the engine, which asks in the middle of
//! a call (`cond_resched`).

use refault_mm::ReclaimWork;

use crate::cost::Costs;

/// Slice of the thread for which the engine is called.
#[derive(Debug)]
pub(crate) struct Slice {
    costs: Costs,
    /// With ticks: nanoseconds until the tick that ends the slice. None: no thread is interrupted.
    pub(crate) left_ns: Option<u64>,
    /// The task that runs gave up the CPU before it reclaimed.
    pub(crate) yielded: bool,
    /// The call is for a task that can stop in the middle of reclaim.
    pub(crate) may_pause: bool,
}

impl Slice {
    pub(super) fn new(costs: Costs) -> Slice {
        Slice { costs, left_ns: None, yielded: false, may_pause: false }
    }

    /// A page that reclaim unmaps.
    pub(super) fn unmap_ns(&self) -> u64 {
        self.costs.unmap_page_ns
    }

    /// Nanoseconds of CPU time of the work.
    pub(super) fn work_ns(&self, work: &ReclaimWork) -> u64 {
        self.costs.walk_ns(work)
    }

    /// Whether the work of kswapd and `other_ns` use up the time until its tick.
    pub(super) fn is_over(&self, work: &ReclaimWork, other_ns: u64) -> bool {
        self.left_ns.is_some_and(|left_ns| self.costs.walk_ns(work) + other_ns >= left_ns)
    }
}
