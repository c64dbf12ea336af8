//! What can be chosen: the policy, its variants, the sizes that tests shrink.

use std::fmt;
use std::str::FromStr;

use crate::folio::thp::ThpConfig;
use crate::node::config::{NodeConfig, NumaConfig};
use crate::swap::{MAX_SWAP_DEVICE_PAGES, MAX_SWAP_DEVICES, SwapDeviceConfig, SwapPolicy};
use crate::zswap::config::ZswapConfig;

/// How an lruvec keeps its folios.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lru {
    /// An inactive and an active list per type.
    TwoList,
    /// Up to four generations per type.
    MultiGen,
}

/// What a refault is tested with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefaultTest {
    /// No shadows at all: Linux before working-set detection.
    None,
    /// File only, distance against the active file list (Linux 3.15).
    Distance2013,
    /// Today's: distance against what the type competes with; on multi-gen LRU, the generation.
    Mainline,
    /// The shadow position of "refault distance update" (RFC v3), on either kind of lists.
    ShadowPosition,
}

/// The named policies of the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Two lists with today's refault test.
    Lru,
    /// Two lists with the test of 2013.
    Lru2013,
    /// Two lists without working-set detection.
    LruNone,
    /// Two lists with the shadow-position test.
    LruShadow,
    /// Multi-gen LRU.
    Mglru,
    /// Multi-gen LRU with the RFC v3 re-activation.
    MglruShadow,
}

impl Policy {
    /// All of them.
    pub const ALL: [Policy; 6] =
        [Policy::Lru, Policy::Lru2013, Policy::LruNone, Policy::LruShadow, Policy::Mglru, Policy::MglruShadow];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Lru => "lru",
            Policy::Lru2013 => "lru-2013",
            Policy::LruNone => "lru-none",
            Policy::LruShadow => "lru-shadow",
            Policy::Mglru => "mglru",
            Policy::MglruShadow => "mglru-shadow",
        }
    }

    fn parts(self) -> (Lru, RefaultTest) {
        match self {
            Policy::Lru => (Lru::TwoList, RefaultTest::Mainline),
            Policy::Lru2013 => (Lru::TwoList, RefaultTest::Distance2013),
            Policy::LruNone => (Lru::TwoList, RefaultTest::None),
            Policy::LruShadow => (Lru::TwoList, RefaultTest::ShadowPosition),
            Policy::Mglru => (Lru::MultiGen, RefaultTest::Mainline),
            Policy::MglruShadow => (Lru::MultiGen, RefaultTest::ShadowPosition),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        Policy::ALL.into_iter().find(|p| p.name() == s).ok_or_else(|| {
            let names: Vec<_> = Policy::ALL.iter().map(|p| p.name()).collect();
            format!("unknown policy {s:?}; known are {}", names.join(", "))
        })
    }
}

/// Which accounting multi-gen LRU gives a refault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefaultCounting {
    /// `workingset_refault` counts every refault (6.12).
    All,
    /// Only those of the oldest generation (6.1).
    RecentOnly,
}

/// How RFC v3 compares the generation in a shadow with the oldest one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recency {
    /// In the 3 bits that the shadow keeps.
    ThreeBit,
    /// As posted: with a mask that is too wide, so never equal once min_seq is 8 or more.
    Literal,
}

/// What multi-gen LRU does on its way with folios that cannot be freed at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WritebackSort {
    /// They are isolated like others (6.12.117).
    None,
    /// Locked, written-back and dirty file folios move to the next generation (6.1).
    NextGeneration,
}

/// When the non-resident clock of the two lists advances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clock {
    /// On evictions and on activations (mainline).
    EvictionsAndActivations,
    /// On evictions only (RFC v3).
    EvictionsOnly,
}

/// The comparison in the refault test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// distance ≤ size.
    Inclusive,
    /// distance < size.
    Strict,
}

/// How multi-gen LRU chooses among memory cgroups when the whole machine needs memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemcgSelection {
    /// All of them at each priority, and each is aged that needs it: before "optimize multiple memcgs".
    Iterate,
    /// The first form of that series (6.1): easy pages anywhere before aging and swapping anywhere.
    First,
    /// Generations of groups (6.12).
    MemcgLru,
}

/// When the first condition of [`MemcgSelection::First`] to leave a group holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backoff {
    /// At any priority (the code of 6.1).
    AnyPriority,
    /// At low priorities, 12 and 11 (the text of the series).
    LowPriorities,
}

/// The capabilities of multi-gen LRU, the bits of `lru_gen/enabled`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LruGenCaps {
    /// 0x2: aging walks page tables. Without it only look-around finds young pages.
    pub leaf_walk: bool,
}

/// Everything that can be chosen. [`Config::new`] gives what a kernel would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Kind of lists.
    pub lru: Lru,
    /// Refault test.
    pub refault: RefaultTest,
    /// Non-resident clock of the two lists.
    pub clock: Clock,
    /// Comparison of the distance test.
    pub bound: Bound,
    /// Accounting of multi-gen refaults.
    pub refault_counting: RefaultCounting,
    /// Recency comparison of RFC v3.
    pub recency: Recency,
    /// Writeback case of multi-gen sorting.
    pub writeback_sort: WritebackSort,
    /// Refs from which a recent multi-gen refault counts as restored: 3 in mainline, 4 in RFC v3.
    pub restore_refs: u32,
    /// Capabilities of multi-gen LRU.
    pub lru_gen: LruGenCaps,
    /// Multi-gen LRU: whose turn it is when the whole machine needs memory.
    pub memcgs: MemcgSelection,
    /// With [`MemcgSelection::First`].
    pub backoff: Backoff,
    /// `lru_gen/min_ttl_ms` in nanoseconds; 0 = off.
    pub min_ttl_ns: u64,
    /// 0 to 200; 60 in Linux.
    pub swappiness: u32,
    /// Pages of swap that can be used, where no devices are listed in `swap_devices`.
    pub swap_pages: u64,
    /// That swap device answers at once (zram): swap-in goes round the swap cache and frees the slot.
    pub swap_synchronous: bool,
    /// Compressed pages in memory in front of the swap device; none: off, as in Linux by default.
    pub zswap: Option<ZswapConfig>,
    /// The swap devices from the start on. None: a solid-state one of `swap_pages` pages and a header.
    pub swap_devices: Vec<SwapDeviceConfig>,
    /// How slots of swap are handed out.
    pub swap: SwapPolicy,
    /// Folios in a per-CPU batch; 31 in Linux, 0 = no batches.
    pub batch_folios: usize,
    /// CPUs, each with its own batches.
    pub cpus: usize,
    /// Pages that a reclaim aims at and a list pass takes; 32 in Linux.
    pub swap_cluster_max: u64,
    /// Pages charged ahead; 64 in Linux.
    pub charge_batch: u64,
    /// Tree nodes and page tables are charged to the memcg, as Linux does.
    pub charge_kernel: bool,
    /// Pages charged to the memcg by what the engine does not see (the task's own stack, libraries, …).
    pub reserved_pages: u64,
    /// What a group's `min` and `low` leave unclaimed goes to its descendants (the mount option `memory_recursiveprot`, which
    /// systemd sets).
    pub recursive_protection: bool,
    /// How often the statistics of groups are added up that two-list reclaim reads, in nanoseconds; 2 s in Linux, 0 = they are exact.
    pub stat_flush_interval_ns: u64,
    /// Never activate: with batches of 0 the inactive list alone is FIFO, or second chance for mapped pages.
    pub one_list: bool,
    /// Pages mapped around a file fault, a power of two; 16 (64 KiB) in Linux, 1 = off.
    pub fault_around_pages: u64,
    /// Neighbours of a mapped fault, and the page itself, start with the accessed bit set (x86). Off on some ARM.
    pub fault_around_young: bool,
    /// Pages of the machine: only the bucket order of the shadow clock depends on it.
    pub total_pages: u64,
    /// Pages of a GiB, as far as the balance of active and inactive lists looks at sizes; less on a machine that stands for a larger one.
    pub gib_pages: u64,
    /// Width of the node id in a shadow.
    pub nodes_shift: u32,
    /// Fewer eviction bits than the layout leaves, for tests of the bucket order.
    pub eviction_bits_max: u32,
    /// Salt of the Bloom filters, where a kernel has the addresses of its page tables.
    pub seed: u64,
    /// Share of the cache that may be dirty before the flusher starts, in percent; 10 in Linux.
    pub dirty_background_ratio: u64,
    /// Share of the cache that may be dirty before those who write have to wait, in percent; 20 in Linux.
    pub dirty_ratio: u64,
    /// `dirty_expire_centisecs`: pages that are dirty for so long are written by [`crate::Engine::flush_expired`]; 30 s in Linux.
    pub dirty_expire_ns: u64,
    /// `dirty_writeback_centisecs`: how often it looks for them; 5 s in Linux.
    pub dirty_writeback_ns: u64,
    /// The size of the node; none: only the limits of memcgs count.
    pub node: Option<NodeConfig>,
    /// Several nodes, in the place of that one.
    pub numa: Option<NumaConfig>,
    /// `page_cluster`: a swap-in from a queueing device reads up to 2^page_cluster pages; 3 in Linux, 0 = one.
    pub page_cluster: u32,
    /// Where no swap slot is free, anon is scanned all the same while there are pages in the swap cache: they have slots, and once they are written nothing
    /// is needed but to find them. With that, multi-gen LRU scans it, too, where fewer than 64 slots are free. Not of Linux, which leaves these pages, and says that
    /// there is nothing to reclaim. For drivers whose writes take long: reclaim may have given slots to more pages than it needs before the first of them is free.
    pub reclaim_swap_cache: bool,
    /// The driver maps what was read ahead at once, whatever the device: there are no faults on it that would tell whether it was of
    /// use. So it is a run of faults, each where the last window ended, that makes windows grow. Not of Linux, where
    /// such pages wait in the swap cache.
    pub swap_map_ahead: bool,
    /// `read_ahead_kb`, in pages: the largest window of a sequential read; 32 in Linux, 0 = off.
    pub read_ahead_pages: u32,
    /// The same for faults on files: runs of them read ahead, up to `read_ahead_pages`. Linux reads around every fault instead, and maps
    /// what it finds in the cache, so that later ones are cheap; a driver for which there is no cheap fault had better read what is needed.
    pub file_map_ahead: bool,
    /// Sizes of anonymous folios; by default single pages only.
    pub thp: ThpConfig,
}

impl Config {
    /// A policy as the kernel has it.
    pub fn new(policy: Policy) -> Config {
        let (lru, refault) = policy.parts();
        let shadow_position = refault == RefaultTest::ShadowPosition;
        Config {
            lru,
            refault,
            clock: if shadow_position { Clock::EvictionsOnly } else { Clock::EvictionsAndActivations },
            bound: if shadow_position { Bound::Strict } else { Bound::Inclusive },
            refault_counting: RefaultCounting::All,
            recency: Recency::ThreeBit,
            writeback_sort: WritebackSort::None,
            restore_refs: if shadow_position { 4 } else { 3 },
            lru_gen: LruGenCaps { leaf_walk: true },
            memcgs: MemcgSelection::MemcgLru,
            backoff: Backoff::AnyPriority,
            min_ttl_ns: 0,
            swappiness: 60,
            swap_pages: MAX_SWAP_DEVICE_PAGES - 1,
            swap_synchronous: true,
            zswap: None,
            swap_devices: Vec::new(),
            swap: SwapPolicy::default(),
            batch_folios: 31,
            cpus: 1,
            swap_cluster_max: 32,
            charge_batch: 64,
            charge_kernel: true,
            reserved_pages: 0,
            recursive_protection: true,
            stat_flush_interval_ns: 0,
            one_list: false,
            fault_around_pages: 16,
            fault_around_young: true,
            total_pages: 1 << 22,
            gib_pages: 1 << 18,
            nodes_shift: 10,
            eviction_bits_max: 64,
            seed: 0,
            dirty_background_ratio: 10,
            dirty_ratio: 20,
            dirty_expire_ns: 30_000_000_000,
            dirty_writeback_ns: 5_000_000_000,
            node: None,
            numa: None,
            page_cluster: 3,
            reclaim_swap_cache: false,
            swap_map_ahead: false,
            file_map_ahead: false,
            read_ahead_pages: 32,
            thp: ThpConfig::default(),
        }
    }

    /// What is impossible in it, if anything.
    pub fn check(&self) -> Result<(), String> {
        let limits = [
            (self.swappiness <= 200, "swappiness is 0 to 200"),
            (self.cpus >= 1, "there is at least one CPU"),
            (self.swap_cluster_max >= 1, "swap_cluster_max is at least 1"),
            (self.charge_batch >= 1, "charge_batch is at least 1"),
            (
                self.fault_around_pages.is_power_of_two() && self.fault_around_pages <= 512,
                "fault_around_pages is a power of two up to 512",
            ),
            (self.gib_pages >= 1, "gib_pages is at least 1"),
            (self.nodes_shift <= 10, "nodes_shift is at most 10"),
            (
                self.numa.as_ref().is_none_or(|n| n.nodes.len() <= 1 << self.nodes_shift),
                "nodes_shift has room for all nodes",
            ),
            ((8..=64).contains(&self.eviction_bits_max), "eviction_bits_max is 8 to 64"),
            (self.batch_folios <= 1024, "batch_folios is at most 1024"),
            (self.swap_cluster_max <= 1 << 32, "swap_cluster_max is at most 2^32"),
            (self.charge_batch <= 1 << 32, "charge_batch is at most 2^32"),
            (self.reserved_pages <= 1 << 40, "reserved_pages is at most 2^40"),
            (self.dirty_background_ratio <= 100, "dirty_background_ratio is 0 to 100"),
            (self.dirty_ratio <= 100, "dirty_ratio is 0 to 100"),
            (self.page_cluster <= 9, "page_cluster is 0 to 9"),
            (self.read_ahead_pages <= 1 << 16, "read_ahead_pages is at most 65536"),
            (
                self.zswap.as_ref().is_none_or(|z| z.max_pool_percent <= 100 && z.accept_threshold_percent <= 100),
                "the percentages of zswap are 0 to 100",
            ),
            (self.swap_pages < 1 << 30, "swap_pages is below 2^30 (4 TiB)"),
        ];
        if let Some((_, what)) = limits.iter().find(|(ok, _)| !ok) {
            return Err(format!("configuration: {what}"));
        }
        if self.swap_devices.len() > MAX_SWAP_DEVICES {
            return Err(format!("configuration: {} swap devices; at most {MAX_SWAP_DEVICES}", self.swap_devices.len()));
        }
        let checks = self.swap_devices.iter().map(SwapDeviceConfig::check);
        let node = self.node.as_ref().map_or(Ok(()), |n| n.check(n.pages));
        let numa = self.numa.as_ref().map_or(Ok(()), NumaConfig::check);
        checks
            .chain([self.swap.check(), self.thp.check(), node, numa])
            .collect::<Result<(), _>>()
            .map_err(|e| format!("configuration: {e}"))
    }

    /// The swap devices from the start on. A device beyond the largest there can be is several.
    pub(crate) fn all_swap_devices(&self) -> Vec<SwapDeviceConfig> {
        if !self.swap_devices.is_empty() {
            return self.swap_devices.clone();
        }
        let most = MAX_SWAP_DEVICE_PAGES - 1;
        let parts = (0..self.swap_pages.div_ceil(most)).map(|i| most.min(self.swap_pages - i * most));
        let device =
            |pages| SwapDeviceConfig { synchronous: self.swap_synchronous, ..SwapDeviceConfig::new(pages + 1) };
        parts.map(device).collect()
    }
}
