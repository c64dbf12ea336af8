//! The CPU time that the machine charges for what the kernel does.

use refault_mm::ReclaimWork;

/// Nanoseconds of CPU time.
///
/// The defaults were measured where a program can measure them: Linux 6.18, two virtual CPUs of an
/// Intel Xeon that others used too, ext4, pages of 4 KiB, one thread on one CPU, CPU time of the
/// process (of the switch: time) over 16 384 or 32 768 pages. A virtual machine pays more for
/// faults and TLB flushes than the hardware; the ratios matter more than the figures. The others
/// are estimates, and say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    /// A read of 4 KiB from the page cache. Measured: 1019 ns, `pread` at random places of 128 MiB,
    /// median of 21.
    pub read_hit_ns: u64,
    /// A write of 4 KiB to a page in the cache. Measured: 1447 ns, `pwrite` at random places of 128
    /// MiB, median of 21.
    pub write_hit_ns: u64,
    /// A touch of a mapped page. Measured: 13 ns, a load at random pages of 128 MiB, median of 21.
    pub map_hit_ns: u64,
    /// A fault on a page that is in memory, for one page. Measured: 1105 ns, mappings of a page
    /// each, so that none is mapped around the fault, median of 15. (A fault that maps 16 pages
    /// took about 1800 ns.)
    pub minor_fault_ns: u64,
    /// The CPU's part of a fault that reads, without the submission and the switches. Estimate: a
    /// minor fault, and 3 us for the frame, the page cache and the file system (Zhong and others,
    /// "XRP", OSDI 2022, have 2.0 us in ext4).
    pub major_fault_ns: u64,
    /// The CPU's part of a read by descriptor that is not in the cache: as a fault that reads,
    /// without the fault. Estimate.
    pub read_miss_ns: u64,
    /// Each page of a request that reads, before that is sent: its frame, its place in the page
    /// cache, its part of the request. Not measured here, and none.
    pub fill_page_ns: u64,
    /// The first touch of an anonymous page, zeroing it too. Measured: 1462 ns at random pages of
    /// 128 MiB, median of 21.
    pub anon_fault_ns: u64,
    /// Each page of a large folio beyond the first, on the first touch of it. Measured: a fault of
    /// 2 MiB took 470 ns a page, 128 MiB with `MADV_HUGEPAGE`, median of 21; single pages 1343 to
    /// 1374 ns at the same time.
    pub zero_page_ns: u64,
    /// A group that a pass of reclaim visits, without its pages: its lists are looked at and its
    /// caches are counted, shrinker by shrinker. Not measured here, and none.
    pub visit_group_ns: u64,
    /// A page that reclaim looks at. Measured: 31 ns, `MADV_COLD` on mapped file pages: entry,
    /// accessed bit, change of list; median of 9.
    pub scan_page_ns: u64,
    /// A page of an unwanted zone, which reclaim only moves to the head of its list. Not measured:
    /// as a page that is scanned.
    pub skip_page_ns: u64,
    /// A clean page that is taken out of the cache and freed. Measured: 403 ns,
    /// `POSIX_FADV_DONTNEED`, median of 9.
    pub reclaim_page_ns: u64,
    /// Unmapping a page first: the walk from the page to its entries, and the flush. Measured:
    /// `MADV_PAGEOUT` of clean mapped pages takes 1119 ns (median of 9), less the two above.
    pub unmap_page_ns: u64,
    /// An entry that aging looks at in a page table. Measured: 19 ns, `MADV_COLD` on entries that
    /// are old already, median of 9.
    pub pte_walk_ns: u64,
    /// Each page of a large folio that is split. Measured: `MADV_COLD` on one page of a folio of 64
    /// KiB took 5044 ns, all but 408 ns of it for the split: 290 ns a page; median of 21. A folio
    /// of 16 KiB took 400 ns a page, of 256 KiB 262 ns, of 2 MiB 115 ns.
    pub split_page_ns: u64,
    /// A request for swap slots, without its clusters and places: the next two costs. All three are
    /// measured on the allocator of this program, which takes no locks (`cargo bench -p refault-mm
    /// --bench swap_slots -- --steps`): 42 ns for a request that looks into one cluster and tests
    /// one place.
    pub swap_call_ns: u64,
    /// A swap cluster that is looked into. Measured: 4.9 to 5.1 ns, requests that fail since every
    /// cluster has too few free slots.
    pub swap_cluster_ns: u64,
    /// 64 places in swap that are tested for free slots, as many as the map has in a cache line.
    /// Measured: 0.56 ns each, a scan of a map of 1 MiB a byte at a time. For a large folio a place
    /// is a range of slots; a range took 1.1 ns on a device of 2 GB (1.9 to 3.1 ns on one of 20 GB,
    /// whose map is in no cache), but counts as 0.56 ns here.
    pub swap_64_places_ns: u64,
    /// A slot of swap that is given back to its device, which drops the content there. With caches
    /// of slots a CPU pays for 64 at once. Not measured here, and none; in a guest of 6.12 whose
    /// instructions take 2 ns, `munmap` of a page on zram took 2.3 us (8,192 pages, median of 21).
    pub free_slot_ns: u64,
    /// zswap compresses a page. Measured: 4.3 us, lz4 on pages that shrink to 1/2.2 (as the preset
    /// `zram`).
    pub compress_page_ns: u64,
    /// zswap decompresses a page. Measured: 1.6 us, as above.
    pub decompress_page_ns: u64,
    /// Advice on a range of memory, without what it has done. Measured: 143 ns, `MADV_DONTNEED` on
    /// an untouched page, median of 21.
    pub madvise_ns: u64,
    /// Submitting a request and taking its end. Estimate: 0.5 us in the block layer and the driver
    /// ("XRP", as above: 379 and 113 ns) and as much for the interrupt. In the virtual machine a
    /// read took 20 us, which is the hypervisor's.
    pub io_submit_ns: u64,
    /// From one task to another. Measured: 1507 ns one way between two processes with a pipe on one
    /// CPU, less 445 ns for the pipe; medians of 5.
    pub context_switch_ns: u64,
    /// A fault on a page that was marked, to see whether it is touched. Estimate: as a minor fault.
    pub hint_fault_ns: u64,
    /// Moving a page to another node, without unmapping it (above) and copying it (given by the
    /// nodes). Estimate: as a minor fault: a frame, its list, its entry.
    pub migrate_page_ns: u64,
}

impl Default for Costs {
    fn default() -> Self {
        Costs {
            read_hit_ns: 1_019,
            write_hit_ns: 1_447,
            map_hit_ns: 13,
            minor_fault_ns: 1_105,
            major_fault_ns: 4_100,
            read_miss_ns: 3_000,
            fill_page_ns: 0,
            anon_fault_ns: 1_462,
            zero_page_ns: 470,
            visit_group_ns: 0,
            scan_page_ns: 31,
            skip_page_ns: 31,
            reclaim_page_ns: 403,
            unmap_page_ns: 685,
            pte_walk_ns: 19,
            split_page_ns: 290,
            swap_call_ns: 36,
            swap_cluster_ns: 5,
            swap_64_places_ns: 36,
            free_slot_ns: 0,
            compress_page_ns: 4_300,
            decompress_page_ns: 1_600,
            madvise_ns: 143,
            io_submit_ns: 1_000,
            context_switch_ns: 1_062,
            hint_fault_ns: 1_105,
            migrate_page_ns: 1_105,
        }
    }
}

/// The longest cost, a second: a longer one is a mistake of units.
const MOST_NS: u64 = 1_000_000_000;

impl Costs {
    /// Nanoseconds of reclaim for groups visited, pages scanned and pages freed.
    pub(crate) fn walk_ns(&self, work: &ReclaimWork) -> u64 {
        work.memcgs * self.visit_group_ns
            + (work.scanned - work.skipped) * self.scan_page_ns
            + work.skipped * self.skip_page_ns
            + work.reclaimed * self.reclaim_page_ns
            + work.ptes * self.pte_walk_ns
    }

    /// Nothing costs anything: for tests that count on other times.
    pub fn free() -> Costs {
        Costs {
            read_hit_ns: 0,
            write_hit_ns: 0,
            map_hit_ns: 0,
            minor_fault_ns: 0,
            major_fault_ns: 0,
            read_miss_ns: 0,
            fill_page_ns: 0,
            anon_fault_ns: 0,
            zero_page_ns: 0,
            visit_group_ns: 0,
            scan_page_ns: 0,
            skip_page_ns: 0,
            reclaim_page_ns: 0,
            unmap_page_ns: 0,
            pte_walk_ns: 0,
            split_page_ns: 0,
            swap_call_ns: 0,
            swap_cluster_ns: 0,
            swap_64_places_ns: 0,
            free_slot_ns: 0,
            compress_page_ns: 0,
            decompress_page_ns: 0,
            madvise_ns: 0,
            io_submit_ns: 0,
            context_switch_ns: 0,
            hint_fault_ns: 0,
            migrate_page_ns: 0,
        }
    }

    /// Every cost with its name, in the order of the fields.
    pub fn named(&self) -> [(&'static str, u64); 27] {
        // Taken apart, so that a new cost cannot be forgotten here.
        let Costs {
            read_hit_ns,
            write_hit_ns,
            map_hit_ns,
            minor_fault_ns,
            major_fault_ns,
            read_miss_ns,
            fill_page_ns,
            anon_fault_ns,
            zero_page_ns,
            visit_group_ns,
            scan_page_ns,
            skip_page_ns,
            reclaim_page_ns,
            unmap_page_ns,
            pte_walk_ns,
            split_page_ns,
            swap_call_ns,
            swap_cluster_ns,
            swap_64_places_ns,
            free_slot_ns,
            compress_page_ns,
            decompress_page_ns,
            madvise_ns,
            io_submit_ns,
            context_switch_ns,
            hint_fault_ns,
            migrate_page_ns,
        } = *self;
        [
            ("read_hit_ns", read_hit_ns),
            ("write_hit_ns", write_hit_ns),
            ("map_hit_ns", map_hit_ns),
            ("minor_fault_ns", minor_fault_ns),
            ("major_fault_ns", major_fault_ns),
            ("read_miss_ns", read_miss_ns),
            ("fill_page_ns", fill_page_ns),
            ("anon_fault_ns", anon_fault_ns),
            ("zero_page_ns", zero_page_ns),
            ("visit_group_ns", visit_group_ns),
            ("scan_page_ns", scan_page_ns),
            ("skip_page_ns", skip_page_ns),
            ("reclaim_page_ns", reclaim_page_ns),
            ("unmap_page_ns", unmap_page_ns),
            ("pte_walk_ns", pte_walk_ns),
            ("split_page_ns", split_page_ns),
            ("swap_call_ns", swap_call_ns),
            ("swap_cluster_ns", swap_cluster_ns),
            ("swap_64_places_ns", swap_64_places_ns),
            ("free_slot_ns", free_slot_ns),
            ("compress_page_ns", compress_page_ns),
            ("decompress_page_ns", decompress_page_ns),
            ("madvise_ns", madvise_ns),
            ("io_submit_ns", io_submit_ns),
            ("context_switch_ns", context_switch_ns),
            ("hint_fault_ns", hint_fault_ns),
            ("migrate_page_ns", migrate_page_ns),
        ]
    }

    /// Sets a cost by its name, with or without its unit.
    pub fn set(&mut self, name: &str, ns: u64) -> Result<(), String> {
        let place = match name.strip_suffix("_ns").unwrap_or(name) {
            "read_hit" => &mut self.read_hit_ns,
            "write_hit" => &mut self.write_hit_ns,
            "map_hit" => &mut self.map_hit_ns,
            "minor_fault" => &mut self.minor_fault_ns,
            "major_fault" => &mut self.major_fault_ns,
            "read_miss" => &mut self.read_miss_ns,
            "fill_page" => &mut self.fill_page_ns,
            "anon_fault" => &mut self.anon_fault_ns,
            "zero_page" => &mut self.zero_page_ns,
            "visit_group" => &mut self.visit_group_ns,
            "scan_page" => &mut self.scan_page_ns,
            "skip_page" => &mut self.skip_page_ns,
            "reclaim_page" => &mut self.reclaim_page_ns,
            "unmap_page" => &mut self.unmap_page_ns,
            "pte_walk" => &mut self.pte_walk_ns,
            "split_page" => &mut self.split_page_ns,
            "swap_call" => &mut self.swap_call_ns,
            "swap_cluster" => &mut self.swap_cluster_ns,
            "swap_64_places" => &mut self.swap_64_places_ns,
            "free_slot" => &mut self.free_slot_ns,
            "compress_page" => &mut self.compress_page_ns,
            "decompress_page" => &mut self.decompress_page_ns,
            "madvise" => &mut self.madvise_ns,
            "io_submit" => &mut self.io_submit_ns,
            "context_switch" => &mut self.context_switch_ns,
            "hint_fault" => &mut self.hint_fault_ns,
            "migrate_page" => &mut self.migrate_page_ns,
            _ => {
                let known: Vec<_> = self.named().iter().map(|(n, _)| n.trim_end_matches("_ns")).collect();
                return Err(format!("there is no such cost; known are {}", known.join(", ")));
            }
        };
        *place = ns;
        Ok(())
    }

    /// Whether the costs are possible: none is more than a second.
    pub fn check(&self) -> Result<(), String> {
        match self.named().into_iter().find(|&(_, ns)| ns > MOST_NS) {
            Some((name, ns)) => Err(format!("costs: {name} is {ns}, which is more than a second")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_possible_and_in_order() {
        let costs = Costs::default();
        costs.check().unwrap();
        assert!(costs.map_hit_ns < costs.read_hit_ns && costs.minor_fault_ns < costs.major_fault_ns);
        assert!(costs.pte_walk_ns < costs.scan_page_ns && costs.scan_page_ns < costs.reclaim_page_ns);
        // Three were not measured.
        assert!(
            costs
                .named()
                .iter()
                .all(|&(name, ns)| (ns > 0) != matches!(name, "visit_group_ns" | "fill_page_ns" | "free_slot_ns"))
        );
        assert!(Costs::free().named().iter().all(|&(_, ns)| ns == 0));
        Costs::free().check().unwrap();
    }

    #[test]
    fn a_cost_of_more_than_a_second_is_named() {
        let costs = Costs { pte_walk_ns: 1_000_000_001, ..Costs::default() };
        assert!(costs.check().unwrap_err().contains("pte_walk_ns"));
    }
}
