//! Counters and memory of a run.

use crate::control::CpuLatencyQosStats;

use super::core::Core;
use crate::core::Counts;
use crate::store::AreaStats;

/// A run at a moment. Sizes are in pages of 4 KiB where the name says no other.
#[derive(Clone, Debug, Default)]
pub struct TreeStats {
    /// Events, counted where they happen, from the start on.
    pub counts: Counts,
    /// `memory.max`, in pages.
    pub max_pages: u64,
    /// The most memory that was counted at one time: of the processes, the pool and the pager.
    pub peak_pages: u64,
    /// The most anonymous memory that the processes had at one time, as the kernel counts it.
    pub peak_resident_pages: u64,
    /// The most memory that was taken at one time: anonymous memory of the processes as the kernel
    /// counts it (what is shared after `fork` counts in each), pages on their way out, the pool and
    /// the pager. It is above the limit where memory grew faster than it was found.
    pub peak_taken_pages: u64,
    /// The most shared memory (`MAP_SHARED`, memfd, System V, tmpfs) that processes had mapped at
    /// one time, in bytes: it is not limited.
    pub peak_shared_bytes: u64,
    /// The most huge pages (hugetlbfs), likewise.
    pub peak_huge_bytes: u64,
    /// Processes that were found and not served: without a limit.
    pub unserved: u64,
    /// The most memory that these had at one time, in bytes.
    pub peak_unserved_bytes: u64,
    /// Memory that is counted now.
    pub memory_pages: u64,
    /// Pages of it that the pool and the pager use.
    pub overhead_pages: u64,
    /// Bytes of the overhead that are tables of the engine and of the pager, stacks and buffers.
    pub own_bytes: u64,
    /// The most bytes that tables (of the engine and of the pager) took, and of how many pages they
    /// were then.
    pub peak_table_bytes: u64,
    /// Pages that the tables were of.
    pub peak_table_pages: u64,
    /// Processes that were killed because there was no room for them.
    pub killed: u64,
    /// Pages out of memory at most, at one time.
    pub peak_swap_pages: u64,
    /// The most bytes that the stores had in memory at one time.
    pub peak_pool_bytes: u64,
    /// The most pages in the swap file at one time.
    pub peak_file_pages: u64,
    /// How often, and how long, processors were kept from halting.
    pub awake: CpuLatencyQosStats,
    /// The swap area now.
    pub area: AreaStats,
    /// Programs that were started and served.
    pub processes: u64,
    /// Processes among these whose C library could not be caught: memory that they make is found
    /// later, instead of being watched before it is touched.
    pub uncaught: u64,
    /// The functions of the C library that could not be caught in any of them.
    pub uncaught_functions: Vec<&'static str>,
    /// Times that a thread asked about memory that it had made.
    pub asks: u64,
    /// Times that a process was not there to move its pages, for it was stopped or had no
    /// processor: until it was, it was not served, and others were.
    pub unanswered: u64,
    /// Processes that were forked from these programs.
    pub forks: u64,
    /// Times that the order of changes of mappings could not be told; the process is killed then.
    pub undecided: u64,
    /// Pages whose content had no place any more, or whose place had no content: there should be
    /// none.
    pub strays: u64,
    /// Nanoseconds that threads waited for pages that had been in memory before, or for room.
    pub stall_ns: u64,
    /// Microseconds in which some thread waited for memory, as `some` of `/proc/pressure/memory`.
    /// Where other threads worked meanwhile on other processors, the share of the waiting ones
    /// counts.
    pub stall_some_us: u64,
    /// Microseconds of these as `full`: nobody worked in place of the waiting threads.
    pub stall_full_us: u64,
    /// The counters of the engine, under their kernel names.
    pub vmstat: Vec<(&'static str, u64)>,
}

/// The names of functions by their bits, in the order of those.
fn names(bits: u32) -> Vec<&'static str> {
    let all = ["mmap", "brk", "mremap", "mprotect"].into_iter().enumerate();
    all.filter(|(i, _)| bits >> i & 1 == 1).map(|(_, name)| name).collect()
}

impl Core {
    pub(super) fn stats(&self) -> TreeStats {
        let area = self.memory.area.stats();
        let (stall_some_us, stall_full_us) = self.pressure.total_us(self.now_ns);
        TreeStats {
            counts: self.memory.counts,
            max_pages: self.budget.max_pages,
            peak_pages: self.budget.peak_pages,
            peak_resident_pages: self.peak_resident,
            peak_taken_pages: self.peak_taken,
            peak_shared_bytes: self.unlimited.peak_shared << 10,
            peak_huge_bytes: self.unlimited.peak_huge << 10,
            unserved: self.unlimited.unserved,
            peak_unserved_bytes: self.unlimited.peak_unserved << 10,
            memory_pages: self.budget.max_pages - self.engine.free_pages(),
            overhead_pages: self.overhead_pages(),
            own_bytes: self.own_bytes() as u64,
            peak_table_bytes: self.peak_tables.0,
            peak_table_pages: self.peak_tables.1,
            killed: self.killed,
            peak_swap_pages: self.peak_swap,
            peak_pool_bytes: self.peak_pool_bytes,
            peak_file_pages: self.peak_file,
            awake: CpuLatencyQosStats::default(),
            area,
            processes: self.processes,
            uncaught: self.uncaught,
            uncaught_functions: names(self.missed),
            asks: self.asks,
            unanswered: self.unanswered,
            forks: self.forks,
            undecided: self.undecided,
            strays: self.strays,
            stall_ns: self.stall_ns,
            stall_some_us,
            stall_full_us,
            vmstat: self.engine.vmstat().iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::abi::CAUGHT_ALL;
    use super::names;

    #[test]
    fn every_function_that_can_be_caught_has_a_name() {
        assert_eq!(names(CAUGHT_ALL).len() as u32, CAUGHT_ALL.count_ones());
        assert_eq!((names(0), names(0b1010)), (vec![], vec!["brk", "mprotect"]));
    }
}
