//! Memory of the run that is not limited, but said: shared memory, huge pages, and all that
//! processes have that are not served.

use super::core::Core;
use super::maps;
use super::new_memory::Sized;
use crate::uffd::PAGE;

/// Pages by which shared memory, or files, must grow to be looked at again; else they are looked at
/// after this many nanoseconds for each process.
const GROWN: u64 = 64;
const LOOK_EVERY_NS: u64 = 50_000_000;

/// Memory seen beside what is limited. Sizes are in KiB.
#[derive(Default, Debug)]
pub(super) struct UnlimitedMemory {
    /// Pages of files and shared memory when they were looked at, and when that was.
    looked: u64,
    looked_ns: u64,
    pub(super) peak_shared: u64,
    pub(super) peak_huge: u64,
    /// Number of processes that were not served, and the most memory that they had, in KiB.
    pub(super) unserved: u64,
    pub(super) peak_unserved: u64,
}

impl Core {
    /// Looks at shared memory, if there may be more than there was.
    pub(super) fn look_at_unlimited(&mut self, sizes: &[Sized]) {
        let shared: u64 = sizes.iter().map(|&(.., size)| size.shared).sum();
        let b = &mut self.unlimited;
        let pause_ns = LOOK_EVERY_NS * sizes.len() as u64;
        if shared < b.looked + GROWN && self.now_ns - b.looked_ns < pause_ns {
            b.looked = b.looked.min(shared);
            return;
        }
        (b.looked, b.looked_ns) = (shared, self.now_ns);
        let (mut huge, mut having) = (0, Vec::new());
        for &(index, pid, _) in sizes {
            let others = maps::others(pid);
            huge += others.huge;
            // Memory that it shares with the pager is the pager's.
            let agent = self.space(index).and_then(|s| s.agent.as_ref());
            let own = others.shared.saturating_sub(agent.map_or(0, |a| a.shared_bytes() as u64 >> 10));
            if own > 0 {
                having.push((pid, own));
            }
        }
        let shared = match having[..] {
            [(_, own)] => own,
            // The same memory may be that of several.
            _ => having.iter().map(|&(pid, own)| proportional(pid).map_or(own, |kib| kib.min(own))).sum(),
        };
        self.unlimited.peak_shared = self.unlimited.peak_shared.max(shared);
        self.unlimited.peak_huge = self.unlimited.peak_huge.max(huge);
    }
}

/// In KiB.
fn proportional(pid: i32) -> Option<u64> {
    maps::proportional_shared(pid).map(|pages| pages * (PAGE as u64 >> 10))
}
