//! The boundary: questions of the engine to the driver, and effects that the driver carries out.

use crate::ids::{MemcgId, NodeId, PageId, SwapSlot};
use crate::stat::ReclaimWork;

/// An action that the driver must carry out in the world. Effects come in the order in which they
/// must be carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Read the page (and the 2^order − 1 after it) from its file. Ends in
    /// [`crate::Engine::read_done`] if pending.
    Read {
        /// First page.
        page: PageId,
        /// log2 of the number of pages.
        order: u8,
    },
    /// Read the page from swap. Ends in [`crate::Engine::read_done`] if pending.
    SwapIn {
        /// First page.
        page: PageId,
        /// log2 of the number of pages.
        order: u8,
        /// Slot that it is read from.
        slot: SwapSlot,
    },
    /// The page is all zeros: fill it in the place of reading it from swap.
    ZeroFill {
        /// First page.
        page: PageId,
        /// log2 of the number of pages.
        order: u8,
    },
    /// Compress the page and keep that in memory under the slot. `Failed`: it cannot be compressed.
    ZswapStore {
        /// The page.
        page: PageId,
        /// Slot under which it is kept.
        slot: SwapSlot,
    },
    /// Fill the page with what is kept compressed under the slot.
    ZswapLoad {
        /// The page.
        page: PageId,
        /// Its slot.
        slot: SwapSlot,
    },
    /// The compressed copy under the slot is not needed any more.
    ZswapDrop {
        /// The slot.
        slot: SwapSlot,
    },
    /// Write the page to its file. Ends in [`crate::Engine::write_done`] if pending.
    Write {
        /// First page.
        page: PageId,
        /// log2 of the number of pages.
        order: u8,
    },
    /// Write the page to swap. Ends in [`crate::Engine::write_done`] if pending.
    SwapOut {
        /// First page.
        page: PageId,
        /// log2 of the number of pages.
        order: u8,
        /// To here.
        slot: SwapSlot,
    },
    /// Make the page accessible, writable without a further call if `writable`, with the accessed
    /// bit as given.
    Map {
        /// The page.
        page: PageId,
        /// The accessed bit starts set.
        young: bool,
        /// A write need not be announced: the driver sets the dirty bit itself.
        writable: bool,
    },
    /// Make the page inaccessible. The engine asks for its dirty bit right after.
    Unmap {
        /// The page.
        page: PageId,
    },
    /// The next write to the page must be announced by a fault again.
    WriteProtect {
        /// The page.
        page: PageId,
    },
    /// The frames of the page are free.
    Free {
        /// First page.
        page: PageId,
        /// log2 of the number of pages.
        order: u8,
    },
    /// The slot holds nothing any more.
    FreeSlot {
        /// The slot.
        slot: SwapSlot,
    },
    /// The slots of a cluster of a swap device hold nothing: the device may forget them. Ends in
    /// [`crate::Engine::discard_done`] if pending.
    Discard {
        /// The first slot.
        first: SwapSlot,
        /// Slots.
        pages: u32,
    },
    /// Copy a folio to frames of another node. It was unmapped before if it was mapped, and will be
    /// mapped again. Ends in [`crate::Engine::migrate_done`] if pending; until then nobody gets to
    /// it.
    Migrate {
        /// First page.
        page: PageId,
        /// log2 of the number of pages.
        order: u8,
        /// Node on which it is.
        from: NodeId,
        /// Node to which it goes.
        to: NodeId,
    },
    /// Many pages are dirty, or reclaim met nothing else: call [`crate::Engine::flush`] soon.
    /// Answered with `Done`, the engine flushes by itself, at a moment when no write of a page is
    /// half way.
    WakeFlusher,
    /// An allocation went below the low mark of a node: call [`crate::Engine::kswapd_node_step`]
    /// until it sleeps. Answered with `Done`, there is no kswapd and tasks reclaim for themselves.
    WakeKswapd {
        /// The node of the kswapd.
        node: NodeId,
    },
    /// zswap is full: call [`crate::Engine::zswap_step`] until it sleeps. Answered with `Done`, the
    /// engine does that by itself at the next access that is more than a hit.
    WakeZswap,
    /// The task (or kswapd) that called the engine waits after this call, until it is let go or the
    /// time is over: then call [`crate::Engine::throttle_ended`]. With the answer `Done` it does
    /// not wait.
    Throttle {
        /// Reason of the wait.
        reason: ThrottleReason,
        /// Longest wait, in nanoseconds.
        max_wait_ns: u64,
    },
    /// Tasks that wait for that reason go on.
    Unthrottle {
        /// Reason for which they waited.
        reason: ThrottleReason,
    },
    /// The memcg is at its limit and nothing in it can be reclaimed.
    Oom {
        /// The memcg.
        memcg: MemcgId,
    },
}

/// Names of effects: one that is not among them does not compile.
macro_rules! effects {
    ($($name:ident),*) => {
        impl Effect {
            /// The names of all effects.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// The name of the effect.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Effect::$name { .. } => stringify!($name)),*
                }
            }
        }
    };
}

effects!(
    Read,
    SwapIn,
    ZeroFill,
    ZswapStore,
    ZswapLoad,
    ZswapDrop,
    Write,
    SwapOut,
    Map,
    Unmap,
    WriteProtect,
    Free,
    FreeSlot,
    Discard,
    Migrate,
    WakeFlusher,
    WakeKswapd,
    WakeZswap,
    Throttle,
    Unthrottle,
    Oom
);

/// Why reclaim has someone wait (direct reclaim, reclaim throttling).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThrottleReason {
    /// kswapd meets folios again whose writes have not ended; or reclaim of a group without a dirty
    /// limit of its own meets only dirty folios.
    Writeback,
    /// Reclaim made no progress.
    NoProgress,
    /// All dirty folios met are being written already.
    Congested,
    /// Next to nothing is free: kswapd goes first.
    Exhausted,
    /// Too many pages are dirty.
    Dirty,
    /// Its group is beyond `memory.high` or `memory.swap.high`; only time ends that.
    High,
}

impl ThrottleReason {
    /// All of them.
    pub const ALL: [ThrottleReason; 6] = [
        ThrottleReason::Writeback,
        ThrottleReason::NoProgress,
        ThrottleReason::Congested,
        ThrottleReason::Exhausted,
        ThrottleReason::Dirty,
        ThrottleReason::High,
    ];
}

/// Content of a page, for drivers that store it without I/O or compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// Nothing but zeros.
    Zero,
    /// One machine word over and over.
    SameFilled,
    /// A page that compresses to `bytes`; 4096 or more: it cannot be compressed.
    Compressed {
        /// Bytes.
        bytes: u32,
    },
}

/// Result of an effect that does I/O. Others are answered with `Done`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ack {
    /// The effect is carried out.
    Done,
    /// The effect is under way; the driver will say when it is done.
    Pending,
    /// The effect failed.
    Failed,
}

/// The driver's side.
pub trait World {
    /// Carries out an effect, or starts it.
    fn effect(&mut self, effect: Effect) -> Ack;

    /// Reads and clears the accessed bit of a mapped page.
    fn test_and_clear_young(&mut self, page: PageId) -> bool;

    /// Whether the accessed bit may be set; nothing is cleared. Asked before anything is looked up
    /// for a page, since most are not young. A driver that cannot tell says yes.
    fn may_be_young(&self, _page: PageId) -> bool {
        true
    }

    /// Bits of `among` (bit i: page `first` + i) for whose pages [`World::may_be_young`] says yes.
    /// A driver that keeps accessed bits side by side can answer for all pages at once.
    fn young_among(&self, first: PageId, among: u64) -> u64 {
        let (mut young, mut left) = (0, among);
        while left != 0 {
            let i = left.trailing_zeros();
            young |= u64::from(self.may_be_young(PageId(first.0 + i))) << i;
            left &= left - 1;
        }
        young
    }

    /// Page tables are about to be walked: accessed bits of many pages will be asked for. A driver
    /// that has to collect them does it now.
    fn before_walk(&mut self) {}

    /// Reads and clears the accessed bits of a page in all page tables that map it. Returns how
    /// many were set. The default suits drivers with at most one page table for a page.
    fn test_and_clear_young_count(&mut self, page: PageId) -> u32 {
        u32::from(self.test_and_clear_young(page))
    }

    /// Reads and clears the dirty bit of a page that is or was just mapped.
    fn test_and_clear_dirty(&mut self, page: PageId) -> bool;

    /// Content of an anonymous page that is to be swapped out. A driver that does not know says
    /// that it cannot be compressed.
    fn content(&mut self, _page: PageId) -> Content {
        Content::Compressed { bytes: 4096 }
    }

    /// Whether a write to swap must wait now, because the device has all the requests that it
    /// takes. Reclaim then stops where it would write, and the access that it reclaims for ends in
    /// [`crate::Outcome::Throttled`].
    fn is_write_queue_full(&self) -> bool {
        false
    }

    /// Whether the device of a page of a file has all the requests that it takes, so that the
    /// flusher waits before it writes on ([`crate::Engine::flush_expired_step`]).
    fn is_file_queue_full(&self, _page: PageId) -> bool {
        false
    }

    /// Whether a swap slot that was just read keeps its copy although its device answers at once: a
    /// page that is swapped out again unchanged then needs no write. For devices that are partly
    /// not memory, where a copy costs next to nothing. Other devices keep copies anyway, as long as
    /// there is swap enough.
    fn keeps_swap_copy(&self, _slot: SwapSlot) -> bool {
        false
    }

    /// Whether a page is among the hottest: asked only for
    /// [`crate::tiering::PromotionPolicy::Oracle`].
    fn is_hottest(&mut self, _page: PageId) -> bool {
        false
    }

    /// Whether several processes map a page of a file executable: likely a shared library, which
    /// hint faults do not move.
    fn is_shared_executable(&self, _page: PageId) -> bool {
        false
    }

    /// Whether a file page is mapped executable: reclaim gives such pages one more round.
    fn is_executable(&self, _page: PageId) -> bool {
        false
    }

    /// Asked by kswapd between two batches, with the work since [`ReclaimWork`] was last taken:
    /// whether another thread is to have the processor. If so, the step of kswapd ends, and its
    /// next step goes on with the pass.
    fn kswapd_yields(&mut self, _work: &ReclaimWork) -> bool {
        false
    }

    /// Asked before an allocation reclaims for the machine: whether the task gives up the processor
    /// to the kswapd that it has just woken. If so, the access ends in
    /// [`crate::Outcome::Throttled`]; when the task has the processor again, the driver calls
    /// [`crate::Engine::reclaim_directly`] and makes the access anew.
    fn task_yields(&mut self) -> bool {
        false
    }

    /// Asked in the middle of reclaim for a task, between two batches, with the work since
    /// [`ReclaimWork`] was last taken: whether it pauses, so that what it has begun to write may
    /// end before it goes on. If so, an access that needs the room ends in
    /// [`crate::Outcome::Throttled`]; the driver takes the run
    /// ([`crate::Engine::take_paused_reclaim`]), lets the time of its work pass, goes on with it
    /// ([`crate::Engine::resume_reclaim`]) and makes the access anew.
    fn reclaim_pauses(&mut self, _work: &ReclaimWork) -> bool {
        false
    }

    /// Passes over the machine have scanned 512 pages more: the worker of `vmpressure` is woken.
    /// The worker does nothing to memory; a driver whose threads share CPUs gives it a CPU for a
    /// moment.
    fn wake_vmpressure(&mut self) {}

    /// Whether something outside holds the page in place.
    fn is_pinned(&self, _page: PageId) -> bool {
        false
    }
}
