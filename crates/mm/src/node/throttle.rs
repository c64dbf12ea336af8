//! Throttling: which tasks wait for reclaim, for which reason, and when they go on.

use crate::world::ThrottleReason;

/// Who waits for reclaim, by reason.
#[derive(Clone, Debug, Default)]
pub(crate) struct Throttled {
    pub(crate) waiters: [u64; ThrottleReason::ALL.len()],
    /// Pages marked for reclaim that were written since the first waited.
    pub(crate) written: u64,
}
