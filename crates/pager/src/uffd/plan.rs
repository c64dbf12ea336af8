//! Calls that fail as they are told: for tests of whoever makes them.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// A call that can be made to fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// `UFFDIO_COPY`.
    Copy,
    /// `UFFDIO_ZEROPAGE`.
    Zero,
    /// `UFFDIO_MOVE`.
    Move,
    /// `UFFDIO_WRITEPROTECT`.
    Protect,
}

impl Call {
    /// All of them.
    pub const ALL: [Call; 4] = [Call::Copy, Call::Zero, Call::Move, Call::Protect];
}

/// How.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallFault {
    /// Nothing is done, and this is the error.
    Fails(i32),
    /// It is done, and yet this is the error.
    DoneButFails(i32),
    /// The pages are in neither place afterwards, and this is the error. Of a move only; else as [`CallFault::Fails`].
    Loses(i32),
}

/// Which calls fail: asked with the call and its number among calls of its kind, from 0.
pub struct CallPlan {
    plan: Box<dyn Fn(Call, u64) -> Option<CallFault> + Send + Sync>,
    made: [AtomicU64; Call::ALL.len()],
}

impl CallPlan {
    /// A plan.
    pub fn new(plan: impl Fn(Call, u64) -> Option<CallFault> + Send + Sync + 'static) -> CallPlan {
        CallPlan { plan: Box::new(plan), made: [const { AtomicU64::new(0) }; Call::ALL.len()] }
    }

    pub(super) fn next(&self, call: Call) -> Option<CallFault> {
        let n = self.made[call as usize].fetch_add(1, Ordering::Relaxed);
        (self.plan)(call, n)
    }
}

impl fmt::Debug for CallPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallPlan").field("made", &self.made).finish_non_exhaustive()
    }
}
