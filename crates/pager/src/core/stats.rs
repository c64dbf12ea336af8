//! Counters of anonymous memory.

/// Events, counted where they happen, from the start on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Faults served.
    pub faults: u64,
    /// Faults among them on pages that were never touched before.
    pub first_touches: u64,
    /// Pages read from the swap area.
    pub swapped_in: u64,
    /// Pages among them that were read into the frame of a page that had left, which was moved into
    /// the region.
    pub frames_reused: u64,
    /// Pages written to the swap area.
    pub swapped_out: u64,
    /// Pages that were touched after they had been moved out, and before their frames were free.
    pub rescued: u64,
    /// Pages moved out.
    pub moved_out: u64,
    /// Calls that moved pages out.
    pub moves: u64,
    /// Pages that could not be moved out at the time (a device reads or writes them).
    pub busy: u64,
    /// Pages whose move was reported failed although it was done, or the reverse. Their content is
    /// what it should be.
    pub misreported_moves: u64,
    /// Times that the kernel was asked which pages were written.
    pub walks: u64,
    /// Pages that it named.
    pub seen_written: u64,
    /// Faults that waited because there was no room.
    pub starved: u64,
    /// Writes to the swap area that failed; the pages stayed in memory.
    pub write_errors: u64,
    /// Reads from the swap area that failed; the pages are poisoned.
    pub read_errors: u64,
    /// Pages that cannot be had any more. A thread that touches one gets `SIGBUS`.
    pub poisoned: u64,
    /// Times that the kernel could not put a page in its place.
    pub fill_errors: u64,
    /// Times that there was no room and nothing to reclaim.
    pub oom: u64,
    /// Pages whose faults were served, but whose threads had to wait above `memory.high`.
    pub throttled: u64,
    /// For how long, in nanoseconds: one wait may be of several threads.
    pub throttled_ns: u64,
    /// Pages whose content was given up by advice.
    pub given_up: u64,
    /// Orders of the engine that did not fit the state of a page: defects.
    pub inconsistent: u64,
}
