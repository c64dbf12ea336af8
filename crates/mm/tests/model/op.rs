//! Operations of a test on the model: every call that a driver can make, as data.

use refault_mm::{AccessAdvice, Advice, HugeAdvice, Touch};

/// An operation of a test.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    Access(u32, Touch),
    /// The n-th pending I/O ends, well or not.
    Complete(u8, bool),
    Advise(u32, Advice),
    /// The same for so many pages.
    AdviseRange(u32, u16, Advice),
    PageOut(u32, u16),
    DropRange(u32, u16),
    Huge(HugeAdvice),
    /// How the file (even) or the region (odd) will be accessed.
    AdviseAccess(u8, AccessAdvice),
    Drain,
    Flush,
    Cpu(u8),
    Wait(u32),
    /// A read by descriptor that reads ahead.
    ReadFile(u32, u8),
    /// So many steps of kswapd.
    Kswapd(u8),
    /// A throttled task waited long enough.
    ThrottleEnded(u8),
    /// The driver takes so many pages of the node.
    External(u8),
    /// The machine gets larger or smaller.
    Resize(u16),
    /// The owner of the anonymous memory is gone; the next one starts from nothing.
    Exit,
    /// A group of its own for more anonymous memory, below one of those that are there.
    NewGroup(u8),
    /// A group is removed; its pages stay in use.
    RemoveGroup(u8),
    /// Moves the memory of the n-th mapping to a group.
    Move(u8, u8),
    /// A limit of a group is set: which, and to how much.
    Limit(u8, u8, u16),
    /// `memory.reclaim`.
    Reclaim(u8, u8),
    /// Through the debug interface.
    Age(bool),
    /// A swap device of so many pages is added.
    Swapon(u8),
    /// The n-th swap device is taken away, as far as that goes at once.
    Swapoff(u8),
    Evict(u8),
    /// So many steps of the worker of zswap.
    Zswap(u8),
    /// `zswap.max` and `zswap.writeback` of the group.
    ZswapLimit(u64, bool),
    /// So many pages are marked for hint faults.
    HintMark(u32, u16),
}
