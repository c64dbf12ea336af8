//! Counters, under their names in `/proc/vmstat` and `memory.stat`. Linux counts `pgskip`,
//! `allocstall` and `pgalloc` by zone; `lru_gen_*` and the errors of devices are refault's own.

macro_rules! counters {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A counter.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(usize)]
        pub enum Counter { $($(#[$doc])* $variant,)* }

        impl Counter {
            /// All counters, in the order in which they are printed.
            pub const ALL: &'static [Counter] = &[$(Counter::$variant,)*];

            /// The kernel's name for it.
            pub fn name(self) -> &'static str {
                match self { $(Counter::$variant => $name,)* }
            }
        }
    };
}

counters! {
    /// Folios that came back with a shadow, anon, in pages.
    WorkingsetRefaultAnon = "workingset_refault_anon",
    /// Folios that came back with a shadow, file, in pages.
    WorkingsetRefaultFile = "workingset_refault_file",
    /// Refaults that the refault test accepted, anon, in pages.
    WorkingsetActivateAnon = "workingset_activate_anon",
    /// Refaults that the refault test accepted, file, in pages.
    WorkingsetActivateFile = "workingset_activate_file",
    /// Refaults of folios that had been in the working set, anon, in pages.
    WorkingsetRestoreAnon = "workingset_restore_anon",
    /// Refaults of folios that had been in the working set, file, in pages.
    WorkingsetRestoreFile = "workingset_restore_file",
    /// Shadow nodes that the shrinker took.
    WorkingsetNodereclaim = "workingset_nodereclaim",
    /// Pages that reclaim looked at on behalf of a task.
    PgscanDirect = "pgscan_direct",
    /// Pages that kswapd looked at.
    PgscanKswapd = "pgscan_kswapd",
    /// Anonymous pages looked at.
    PgscanAnon = "pgscan_anon",
    /// File pages looked at.
    PgscanFile = "pgscan_file",
    /// Pages that reclaim freed on behalf of a task.
    PgstealDirect = "pgsteal_direct",
    /// Pages that kswapd freed.
    PgstealKswapd = "pgsteal_kswapd",
    /// Anonymous pages freed.
    PgstealAnon = "pgsteal_anon",
    /// File pages freed.
    PgstealFile = "pgsteal_file",
    /// Pages passed over because their zone is above the zones that pages are wanted from.
    PgscanSkip = "pgskip",
    /// Pages of the active list looked at (multi-gen: sorted).
    Pgrefill = "pgrefill",
    /// Pages activated.
    Pgactivate = "pgactivate",
    /// Pages deactivated.
    Pgdeactivate = "pgdeactivate",
    /// Pages moved to the tail after writeback.
    Pgrotated = "pgrotated",
    /// Pages made lazily freeable.
    Pglazyfree = "pglazyfree",
    /// Lazily freeable pages freed.
    Pglazyfreed = "pglazyfreed",
    /// Faults on mapped pages.
    Pgfault = "pgfault",
    /// Faults that needed I/O.
    Pgmajfault = "pgmajfault",
    /// Pages read from the swap device.
    Pswpin = "pswpin",
    /// Pages written to the swap device.
    Pswpout = "pswpout",
    /// Pages of zeros that were swapped out without a write.
    SwpoutZero = "swpout_zero",
    /// Pages of zeros that were swapped in without a read.
    SwpinZero = "swpin_zero",
    /// Pages that zswap took.
    Zswpout = "zswpout",
    /// Pages that zswap gave back.
    Zswpin = "zswpin",
    /// Pages that zswap wrote to the device.
    Zswpwb = "zswpwb",
    /// Dirty pages sent to be written by reclaim.
    NrVmscanWrite = "nr_vmscan_write",
    /// Dirty pages marked for reclaim after their writeback.
    NrVmscanImmediateReclaim = "nr_vmscan_immediate_reclaim",
    /// Pages dirtied.
    NrDirtied = "nr_dirtied",
    /// Pages written back.
    NrWritten = "nr_written",
    /// Direct reclaims that an allocation of a page entered, not a limit of a group.
    Allocstall = "allocstall",
    /// Runs of kswapd.
    Pageoutrun = "pageoutrun",
    /// kswapd was woken within 100 ms of falling asleep.
    KswapdLowWmarkHitQuickly = "kswapd_low_wmark_hit_quickly",
    /// kswapd ended a run below its mark and went on.
    KswapdHighWmarkHitQuickly = "kswapd_high_wmark_hit_quickly",
    /// Allocations that waited because next to nothing was free.
    PgscanDirectThrottle = "pgscan_direct_throttle",
    /// Pages read from swap ahead of need.
    SwapRa = "swap_ra",
    /// Pages read ahead that were needed.
    SwapRaHit = "swap_ra_hit",
    /// Pages freed.
    Pgfree = "pgfree",
    /// Pages allocated and charged.
    Pgalloc = "pgalloc",
    /// Page-table entries that aging walks visited.
    MmLeafTotal = "lru_gen_leaf_total",
    /// Page-table entries that aging walks found young.
    MmLeafYoung = "lru_gen_leaf_young",
    /// Page tables that aging walks entered.
    MmNonleafFound = "lru_gen_nonleaf_found",
    /// Page tables that aging walks put into the next Bloom filter.
    MmNonleafAdded = "lru_gen_nonleaf_added",
    /// Folios of 2 MiB made by a first touch.
    ThpFaultAlloc = "thp_fault_alloc",
    /// First touches that wanted 2 MiB and made less.
    ThpFaultFallback = "thp_fault_fallback",
    /// Fallbacks for which the memcg had no room.
    ThpFaultFallbackCharge = "thp_fault_fallback_charge",
    /// Folios of 2 MiB that were split.
    ThpSplitPage = "thp_split_page",
    /// Folios of 2 MiB sent whole to swap.
    ThpSwpout = "thp_swpout",
    /// Folios of 2 MiB split since swap had no range for them.
    ThpSwpoutFallback = "thp_swpout_fallback",
    /// Pages that kswapd moved to a slower node.
    PgdemoteKswapd = "pgdemote_kswapd",
    /// Pages that reclaim on behalf of a task moved to a slower node.
    PgdemoteDirect = "pgdemote_direct",
    /// Pages that `memory.reclaim` moved to a slower node.
    PgdemoteProactive = "pgdemote_proactive",
    /// Pages of slow memory that were hot enough to be tried.
    PgpromoteCandidate = "pgpromote_candidate",
    /// Pages that a hint fault moved to fast memory.
    PgpromoteSuccess = "pgpromote_success",
    /// Page-table entries that were marked for a hint fault.
    NumaPteUpdates = "numa_pte_updates",
    /// Touches of marked pages.
    NumaHintFaults = "numa_hint_faults",
    /// Hint faults on pages of the node of the CPU.
    NumaHintFaultsLocal = "numa_hint_faults_local",
    /// Pages that hint faults moved.
    NumaPagesMigrated = "numa_pages_migrated",
    /// Pages that moved to another node, for whatever reason.
    PgmigrateSuccess = "pgmigrate_success",
    /// Pages whose move to another node failed.
    PgmigrateFail = "pgmigrate_fail",
    /// Reads that failed.
    ReadErrors = "read_errors",
    /// Writes that failed.
    WriteErrors = "write_errors",
}

impl Counter {
    const PAIRS: [[Counter; 2]; 5] = [
        [Counter::WorkingsetRefaultAnon, Counter::WorkingsetRefaultFile],
        [Counter::WorkingsetActivateAnon, Counter::WorkingsetActivateFile],
        [Counter::WorkingsetRestoreAnon, Counter::WorkingsetRestoreFile],
        [Counter::PgscanAnon, Counter::PgscanFile],
        [Counter::PgstealAnon, Counter::PgstealFile],
    ];

    pub(crate) fn refault(file: usize) -> Counter {
        Self::PAIRS[0][file]
    }

    pub(crate) fn activate(file: usize) -> Counter {
        Self::PAIRS[1][file]
    }

    pub(crate) fn restore(file: usize) -> Counter {
        Self::PAIRS[2][file]
    }

    pub(crate) fn scan(file: usize) -> Counter {
        Self::PAIRS[3][file]
    }

    pub(crate) fn steal(file: usize) -> Counter {
        Self::PAIRS[4][file]
    }
}

/// The values of all counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats([u64; Counter::ALL.len()]);

impl Default for Stats {
    fn default() -> Self {
        Stats([0; Counter::ALL.len()])
    }
}

impl Stats {
    /// The value of one counter.
    pub fn get(&self, c: Counter) -> u64 {
        self.0[c as usize]
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, c: Counter, n: u64) {
        self.0[c as usize] += n;
    }

    /// Adds what others counted.
    pub(crate) fn merge(&mut self, other: &Stats) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, n)| *sum += n);
    }

    /// The same with every counter multiplied.
    pub fn times(&self, n: u64) -> Stats {
        let mut times = self.clone();
        times.0.iter_mut().for_each(|count| *count *= n);
        times
    }

    /// Counted since an earlier look.
    pub fn since(&self, before: &Stats) -> Stats {
        let mut since = self.clone();
        since.0.iter_mut().zip(before.0).for_each(|(n, before)| *n = n.saturating_sub(before));
        since
    }

    /// Name and value of every counter.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Counter::ALL.iter().map(|&c| (c.name(), self.get(c)))
    }
}

/// A gauge of the engine or of one memcg, with the name it has in `memory.stat`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gauge {
    /// The kernel's name.
    pub name: &'static str,
    /// Value in pages, unless the name says otherwise.
    pub value: u64,
}

impl Gauge {
    /// The names of [`crate::Engine::node_gauges`].
    pub const OF_MACHINE: [&'static str; 13] = [
        "inactive_anon",
        "active_anon",
        "inactive_file",
        "active_file",
        "unevictable",
        "nr_free_pages",
        "file_dirty",
        "file_writeback",
        "swapcached",
        "zswap_bytes",
        "zswapped",
        "pagetables",
        "workingset_nodes",
    ];
    /// The names of [`crate::Engine::memcg_gauges`].
    pub const OF_MEMCG: [&'static str; 18] = [
        "inactive_anon",
        "active_anon",
        "inactive_file",
        "active_file",
        "unevictable",
        "memory.current",
        "memory.peak",
        "kernel",
        "pagetables",
        "slab_reclaimable_bytes",
        "file_dirty",
        "file_writeback",
        "swapcached",
        "swap.current",
        "zswap_bytes",
        "zswapped",
        "workingset_nodes",
        "nonresident_age",
    ];
}

/// Work of reclaim since it was last taken: a driver charges processor time for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReclaimWork {
    /// Pages looked at, on inactive and active lists and while sorting.
    pub scanned: u64,
    /// Pages of `scanned` from unwanted zones, which only go to the head of their list.
    pub skipped: u64,
    /// Pages freed.
    pub reclaimed: u64,
    /// Page-table entries that walks visited.
    pub ptes: u64,
    /// Pages that zswap compressed, or tried to.
    pub compressed: u64,
    /// Pages that zswap decompressed.
    pub decompressed: u64,
    /// Memory cgroups that reclaim visited.
    pub memcgs: u64,
    /// Pages of large folios that were split.
    pub split: u64,
    /// Pages whose migration to another node was ordered.
    pub migrated: u64,
}
