//! Settings that a recording says.

use refault_mm::{Kernel, Policy};
use refault_trace::Recording;

/// The policy of the recorded kernel.
pub fn policy_of(recording: &Recording) -> Policy {
    if recording.lru_gen { Policy::Mglru } else { Policy::Lru }
}

/// The swappiness of the recorded group, 0 to 200.
pub fn swappiness_of(recording: &Recording) -> Option<u32> {
    recording.swappiness.map(|swappiness| swappiness.min(200))
}

/// The profile of the recorded kernel; the default one if its release is not known.
pub fn kernel_of(recording: &Recording) -> Kernel {
    Kernel::of_release(&recording.kernel).unwrap_or_default()
}

/// Nanoseconds between two sums of what groups counted, for reclaim to see (`FLUSH_TIME`); 0:
/// whenever it looks.
pub fn stat_flush_interval_ns(kernel: Kernel) -> u64 {
    if kernel.has_exact_stats() { 0 } else { 2_000_000_000 }
}
