//! What a scenario is once it is read: plain data, names resolved to indices, units in the names of fields.

use refault_mm::tiering::{NodePerf, NodePreset, PromotionPolicy};
use refault_mm::{
    Backoff, Bound, Clock, Config, HugeAdvice, MemcgLimits, MemcgSelection, Policy, Recency, RefaultCounting,
    SwapAllocator, SwapOverflow, SwapRotational, ThpConfig, WritebackSort, ZswapConfig,
};
use refault_trace::{ObjectKind, Via};
use std::collections::BTreeMap;
use std::ops::Range;

/// A machine, what runs on it, and what a publication measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its name, for people and for the command line.
    pub name: String,
    /// What it is, in a sentence.
    pub about: String,
    /// The publication that it is taken from.
    pub source: Option<String>,
    /// Seed of every random number.
    pub seed: u64,
    /// When it ends at the latest; without it, when every task that is not in the background has ended.
    pub end_ns: Option<u64>,
    /// Distance of the samples of the time series.
    pub sample_ns: u64,
    /// The machine.
    pub machine: MachineSpec,
    /// Its page reclaim.
    pub policy: PolicySpec,
    /// Block devices, in the order of the file.
    pub devices: Vec<DeviceSpec>,
    /// Swap, if there is any.
    pub swap: Vec<SwapSpec>,
    /// Compressed pages in memory in front of swap; `None`: off.
    pub zswap: Option<ZswapConfig>,
    /// Memory cgroups, parents before their children.
    pub memcgs: Vec<MemcgSpec>,
    /// Files and anonymous regions, in the order of the file.
    pub objects: Vec<ObjectSpec>,
    /// Tasks, in the order of the file.
    pub tasks: Vec<TaskSpec>,
    /// What happens to groups meanwhile, in the order of the file.
    pub events: Vec<EventSpec>,
    /// What was published.
    pub published: Option<Published>,
}

/// CPUs, memory and the settings of the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineSpec {
    /// CPUs.
    pub cpus: u32,
    /// Memory, all of it.
    pub memory_pages: u64,
    /// Of it, what is taken by things that are never reclaimed.
    pub kernel_pages: u64,
    /// Of memory, what is in the zone DMA; never more than an eighth.
    pub dma_pages: u64,
    /// What of the rest is in the zone DMA32.
    pub dma32_pages: u64,
    /// How long a task keeps a CPU while others wait.
    pub quantum_ns: u64,
    /// `vm.swappiness`.
    pub swappiness: u32,
    /// `vm.min_free_kbytes`; `None`: by the formula of the kernel.
    pub min_free_kbytes: Option<u64>,
    /// `vm.watermark_scale_factor`.
    pub watermark_scale_factor: u32,
    /// `vm.page_cluster`: swap readahead of up to 2^this pages.
    pub page_cluster: u32,
    /// `read_ahead_kb` of every device; 0: none.
    pub read_ahead_pages: u32,
    /// `vm.dirty_background_ratio`.
    pub dirty_background_ratio: u64,
    /// `vm.dirty_ratio`.
    pub dirty_ratio: u64,
    /// `lru_gen/min_ttl_ms`; 0: off.
    pub min_ttl_ns: u64,
    /// `transparent_hugepage`: the sizes of anonymous folios.
    pub thp: ThpConfig,
    /// The mount option `memory_recursiveprot` of cgroups.
    pub recursive_protection: bool,
    /// How often the statistics of groups are added up; 0: they are exact.
    pub stat_flush_interval_ns: u64,
    /// CPU costs that are not the default, by name, in nanoseconds.
    pub costs: BTreeMap<String, u64>,
    /// Nodes of memory with latency and bandwidth; `memory_pages` and `cpus` are those of all of them. Empty: one node, and an access costs
    /// the same wherever its page is.
    pub nodes: Vec<NodeSpec>,
    /// By how much sizes and times were divided ([`Scenario::scale`]): tiering has periods of its own.
    pub scale: u64,
}

/// A node of memory.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSpec {
    /// Its name.
    pub name: String,
    /// Its size.
    pub pages: u64,
    /// What it is like.
    pub preset: NodePreset,
    /// The figures of the preset, or what the scenario says.
    pub perf: NodePerf,
    /// CPUs on it.
    pub cpus: u32,
}

/// Settings of tiering that are not those of Linux.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TieringSpec {
    /// What a hint fault leads to.
    pub promotion: Option<PromotionPolicy>,
    /// Bits of the time stamp of a folio.
    pub stamp_bits: Option<u32>,
    /// Numbers, by the names of [`refault_mm::tiering::TieringConfig::SYSCTLS`], in their units and at full size.
    pub sysctls: BTreeMap<String, u64>,
}

/// A policy and the variants of it that are not the default. `None`: what [`Config::new`] gives.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicySpec {
    /// The named policy.
    pub policy: Policy,
    /// Non-resident clock of the two lists.
    pub clock: Option<Clock>,
    /// Comparison of the distance test.
    pub bound: Option<Bound>,
    /// Accounting of multi-gen refaults.
    pub refault_counting: Option<RefaultCounting>,
    /// Recency comparison of RFC v3.
    pub recency: Option<Recency>,
    /// Writeback case of multi-gen sorting.
    pub writeback_sort: Option<WritebackSort>,
    /// Refs from which a recent multi-gen refault counts as restored.
    pub restore_refs: Option<u32>,
    /// Multi-gen LRU: whose turn it is when the whole machine needs memory.
    pub memcgs: Option<MemcgSelection>,
    /// With [`MemcgSelection::First`]: when to leave a group.
    pub backoff: Option<Backoff>,
    /// Multi-gen aging walks page tables.
    pub leaf_walk: Option<bool>,
    /// Folios in a per-CPU batch.
    pub batch_folios: Option<usize>,
    /// Pages that a reclaim aims at.
    pub swap_cluster_max: Option<u64>,
    /// Pages charged ahead.
    pub charge_batch: Option<u64>,
    /// Tree nodes and page tables are charged.
    pub charge_kernel: Option<bool>,
    /// Pages mapped around a file fault.
    pub fault_around_pages: Option<u64>,
    /// Pages mapped around a fault start with the accessed bit set.
    pub fault_around_young: Option<bool>,
    /// From where slots of swap are taken.
    pub swap_allocator: Option<SwapAllocator>,
    /// Where large folios go that found no place on the first swap device.
    pub swap_overflow: Option<SwapOverflow>,
    /// How a rotational swap device hands out slots.
    pub swap_rotational: Option<SwapRotational>,
    /// Slots of a cluster of a swap device.
    pub swap_cluster_pages: Option<u32>,
    /// Per-CPU caches of swap slots.
    pub swap_slot_cache: Option<bool>,
    /// Hint faults, promotion and demotion; part of the machine's configuration, not of [`PolicySpec::config`].
    pub tiering: TieringSpec,
}

impl PolicySpec {
    /// A policy as the kernel has it.
    pub fn new(policy: Policy) -> PolicySpec {
        PolicySpec {
            policy,
            clock: None,
            bound: None,
            refault_counting: None,
            recency: None,
            writeback_sort: None,
            restore_refs: None,
            memcgs: None,
            backoff: None,
            leaf_walk: None,
            batch_folios: None,
            swap_cluster_max: None,
            charge_batch: None,
            charge_kernel: None,
            fault_around_pages: None,
            fault_around_young: None,
            swap_allocator: None,
            swap_overflow: None,
            swap_rotational: None,
            swap_cluster_pages: None,
            swap_slot_cache: None,
            tiering: TieringSpec::default(),
        }
    }

    /// The configuration of the engine. What belongs to the machine (CPUs, swap, seed, ...) is as [`Config::new`] has it.
    pub fn config(&self) -> Config {
        fn set<T: Copy>(place: &mut T, value: Option<T>) {
            *place = value.unwrap_or(*place);
        }
        let mut config = Config::new(self.policy);
        set(&mut config.clock, self.clock);
        set(&mut config.bound, self.bound);
        set(&mut config.refault_counting, self.refault_counting);
        set(&mut config.recency, self.recency);
        set(&mut config.writeback_sort, self.writeback_sort);
        set(&mut config.restore_refs, self.restore_refs);
        set(&mut config.memcgs, self.memcgs);
        set(&mut config.backoff, self.backoff);
        set(&mut config.lru_gen.leaf_walk, self.leaf_walk);
        set(&mut config.batch_folios, self.batch_folios);
        set(&mut config.swap_cluster_max, self.swap_cluster_max);
        set(&mut config.charge_batch, self.charge_batch);
        set(&mut config.charge_kernel, self.charge_kernel);
        set(&mut config.fault_around_pages, self.fault_around_pages);
        set(&mut config.fault_around_young, self.fault_around_young);
        set(&mut config.swap.allocator, self.swap_allocator);
        set(&mut config.swap.overflow, self.swap_overflow);
        set(&mut config.swap.rotational, self.swap_rotational);
        set(&mut config.swap.cluster_pages, self.swap_cluster_pages);
        set(&mut config.swap.slot_cache, self.swap_slot_cache);
        config
    }
}

/// A block device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceSpec {
    /// Its name.
    pub name: String,
    /// What it is like: one of [`PRESETS`].
    pub preset: String,
    /// What differs from the preset.
    pub overrides: DeviceOverrides,
}

/// The presets of devices.
pub const PRESETS: [&str; 6] = ["hdd", "sata-ssd", "nvme", "ramdisk", "zram", "pmem"];

/// What differs from a preset. `None`: as the preset has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceOverrides {
    /// Requests that are served at once.
    pub channels: Option<u32>,
    /// Requests under way, those that wait included, before who swaps out must wait.
    pub queue: Option<u32>,
    /// Time of a read beside the transfer.
    pub read_latency_ns: Option<u64>,
    /// Bandwidth of reads.
    pub read_bytes_per_s: Option<u64>,
    /// Time of a write beside the transfer.
    pub write_latency_ns: Option<u64>,
    /// Bandwidth of writes.
    pub write_bytes_per_s: Option<u64>,
    /// Average seek (hdd).
    pub seek_average_ns: Option<u64>,
    /// Seek to the next track (hdd).
    pub seek_track_ns: Option<u64>,
    /// Revolutions a minute (hdd).
    pub rpm: Option<u32>,
    /// The largest request.
    pub max_request_pages: Option<u32>,
    /// Bytes of a page over bytes that it is compressed to (zram).
    pub compression_ratio: Option<f64>,
    /// The most memory that it takes (zram).
    pub mem_limit_pages: Option<u64>,
    /// Time to compress a page (zram).
    pub compress_ns: Option<u64>,
    /// Time to decompress a page (zram).
    pub decompress_ns: Option<u64>,
    /// Reads that fail, of a million.
    pub read_error_per_million: Option<u32>,
    /// Writes that fail, of a million.
    pub write_error_per_million: Option<u32>,
    /// Requests that take longer, of a million.
    pub spike_per_million: Option<u32>,
    /// How much longer they take.
    pub spike_ns: Option<u64>,
    /// When the device stops answering.
    pub stuck_at_ns: Option<u64>,
    /// For how long.
    pub stuck_for_ns: Option<u64>,
}

/// A swap device.
#[derive(Clone, Debug, PartialEq)]
pub struct SwapSpec {
    /// The device, an index.
    pub device: usize,
    /// Its size, at most 2^28, the header included.
    pub pages: u64,
    /// Its priority; none: below those with one, and below those before it.
    pub priority: Option<i16>,
    /// Clusters that became empty are discarded before they are used again.
    pub discard: bool,
    /// Slots are handed out in sequence.
    pub rotational: bool,
    /// It is a file, which takes no large folios.
    pub file: bool,
    /// Pages that cannot be used.
    pub bad_pages: Vec<u64>,
}

/// A memory cgroup.
#[derive(Clone, Debug, PartialEq)]
pub struct MemcgSpec {
    /// Its path, such as `/a/b`.
    pub path: String,
    /// The group above it, an index below its own; `None`: the root.
    pub parent: Option<usize>,
    /// What can be set of it.
    pub limits: MemcgLimits,
    /// It is not there before an event makes it.
    pub made_by_event: bool,
}

/// What an administrator does while the machine runs.
#[derive(Clone, Debug, PartialEq)]
pub struct EventSpec {
    /// When; with `after`, how long after the end of that task.
    pub at_ns: u64,
    /// The task (an index) of which every copy must have ended before.
    pub after: Option<usize>,
    /// What happens.
    pub action: EventAction,
}

/// One thing that an administrator does.
#[derive(Clone, Debug, PartialEq)]
pub enum EventAction {
    /// A group (an index) is made, with the limits that are its own.
    Create(usize),
    /// Limits of a group (an index) change.
    Set {
        /// The group.
        memcg: usize,
        /// The new limits.
        limits: LimitChanges,
    },
    /// A task (an index) moves to another group.
    Move {
        /// The task, every copy of it.
        task: usize,
        /// The group, an index; `None`: the root.
        to: Option<usize>,
        /// What is charged for it moves along.
        charges: bool,
    },
    /// A group (an index) without tasks and children is removed.
    Remove(usize),
    /// `memory.reclaim`.
    Reclaim {
        /// The group, an index; `None`: the root.
        memcg: Option<usize>,
        /// How much.
        pages: u64,
        /// Instead of that of the groups.
        swappiness: Option<u32>,
        /// Again and again, this much after the last time began.
        every_ns: Option<u64>,
        /// Up to that time of the scenario.
        until_ns: Option<u64>,
    },
}

/// Limits of a group that change. `None`: stays.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LimitChanges {
    /// `memory.min`.
    pub min: Option<u64>,
    /// `memory.low`.
    pub low: Option<u64>,
    /// `memory.high`.
    pub high: Option<u64>,
    /// `memory.max`.
    pub max: Option<u64>,
    /// `memory.swap.high`.
    pub swap_high: Option<u64>,
    /// `memory.swap.max`.
    pub swap_max: Option<u64>,
    /// `memory.zswap.max`.
    pub zswap_max: Option<u64>,
    /// `memory.zswap.writeback`.
    pub zswap_writeback: Option<bool>,
    /// Its own swappiness.
    pub swappiness: Option<u32>,
    /// `memory.oom.group`.
    pub oom_group: Option<bool>,
}

impl LimitChanges {
    /// Those limits with these changes.
    pub fn applied_to(&self, limits: &MemcgLimits) -> MemcgLimits {
        MemcgLimits {
            min: self.min.unwrap_or(limits.min),
            low: self.low.unwrap_or(limits.low),
            high: self.high.unwrap_or(limits.high),
            max: self.max.unwrap_or(limits.max),
            swap_high: self.swap_high.unwrap_or(limits.swap_high),
            swap_max: self.swap_max.unwrap_or(limits.swap_max),
            zswap_max: self.zswap_max.unwrap_or(limits.zswap_max),
            zswap_writeback: self.zswap_writeback.unwrap_or(limits.zswap_writeback),
            swappiness: self.swappiness.or(limits.swappiness),
            oom_group: self.oom_group.unwrap_or(limits.oom_group),
        }
    }
}

/// What the pages of an object hold: shares of all, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContentSpec {
    /// Nothing but zeros.
    pub zero: f64,
    /// One word over and over.
    pub same: f64,
    /// What no compressor makes smaller.
    pub incompressible: f64,
    /// Bytes of the other pages over bytes that they are compressed to, on the whole.
    pub ratio: f64,
}

/// A file or an anonymous region.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectSpec {
    /// Its name.
    pub name: String,
    /// What backs it.
    pub kind: ObjectKind,
    /// Its size.
    pub pages: u64,
    /// Sizes of its areas, by turns, with a hole of a page behind each: a large folio lies in one of them. Empty: one area.
    pub areas: Vec<u64>,
    /// The device of a file, an index; `None` for anonymous memory.
    pub device: Option<usize>,
    /// Who is charged, an index; `None`: the root.
    pub memcg: Option<usize>,
    /// Each copy of the task has its own. Only one task uses it then.
    pub private: bool,
    /// What its pages hold; `None`: all are alike, and compress as the device or zswap has it.
    pub content: Option<ContentSpec>,
    /// `MADV_HUGEPAGE` or `MADV_NOHUGEPAGE` on anonymous memory.
    pub huge: HugeAdvice,
}

/// A task, or several that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSpec {
    /// Its name.
    pub name: String,
    /// Copies of it that run at once.
    pub count: u32,
    /// Its group, an index; `None`: the root.
    pub memcg: Option<usize>,
    /// When it starts; with `after`, how long after the end of that task.
    pub start_ns: u64,
    /// How much later than the one before it each copy starts.
    pub stagger_ns: u64,
    /// The task (an index) of which every copy must have ended before this one starts.
    pub after: Option<usize>,
    /// What it does, one after the other; at least one. With a trace there is exactly one, without streams.
    pub phases: Vec<PhaseSpec>,
    /// Phases that it does more than once, in their order; no phase is in two of them.
    pub loops: Vec<LoopSpec>,
    /// A trace that it replays.
    pub trace: Option<TraceSpec>,
    /// It does not keep the scenario alive.
    pub background: bool,
    /// `oom_score_adj`.
    pub oom_score_adj: i32,
}

/// A trace that drives a task.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSpec {
    /// The file.
    pub path: std::path::PathBuf,
    /// Where its files are, an index.
    pub device: Option<usize>,
    /// Accesses come no earlier than the trace says; otherwise one after the other.
    pub timed: bool,
    /// `POSIX_FADV_RANDOM`: no readahead.
    pub random_advice: bool,
}

/// Phases of a task that follow each other again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopSpec {
    /// The phases, by index.
    pub phases: Range<usize>,
    /// How often.
    pub times: u64,
    /// What each time changed in the counters of the machine is among the results.
    pub record: bool,
}

/// A part of the life of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseSpec {
    /// Its name.
    pub name: Option<String>,
    /// What is accessed. None at all: the task sleeps until the phase ends.
    pub streams: Vec<StreamSpec>,
    /// How long.
    pub until: Until,
    /// It counts in the results.
    pub measured: bool,
    /// Sleep after each operation.
    pub think_ns: u64,
    /// CPU time of the program for each access.
    pub cpu_ns: u64,
    /// Cache lines that an access brings from memory, one after the other. Only nodes with a latency charge for them.
    pub lines: u32,
    /// Accesses (of one page each) that make an operation.
    pub accesses_per_op: u32,
    /// Operations a second that each copy does at most.
    pub rate_per_s: Option<f64>,
    /// The task works by turns.
    pub burst: Option<Burst>,
}

/// Work and rest by turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// How long it works.
    pub on_ns: u64,
    /// How long it rests.
    pub off_ns: u64,
}

/// When a phase ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Until {
    /// After so many accesses of one page, by each copy. Pages that are paged out or dropped count as well.
    Accesses(u64),
    /// After so many times through the pages of the only stream, of which there may be more or less each time.
    Passes(f64),
    /// So many nanoseconds after it began.
    Duration(u64),
    /// So many nanoseconds after the start of the scenario.
    Time(u64),
    /// With the scenario.
    End,
}

/// One of the things that a phase accesses.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamSpec {
    /// The object, an index.
    pub object: usize,
    /// What is done with it.
    pub action: Action,
    /// In which order.
    pub pattern: Pattern,
    /// Share of the blocks, relative to the other streams of the phase.
    pub weight: f64,
    /// By descriptor or by mapping.
    pub via: Via,
    /// Of the blocks, those that are written: 0 to 1.
    pub write_share: f64,
    /// Consecutive pages that are accessed together.
    pub block_pages: u32,
    /// `MADV_RANDOM`, `POSIX_FADV_RANDOM`: no readahead.
    pub random_advice: bool,
    /// The first page that is used.
    pub first_page: u64,
    /// The pages that are used.
    pub pages: u64,
    /// Where there are fewer at times: the least. Each iteration of a loop, or phase outside of loops, draws how many.
    pub least_pages: u64,
    /// Where a sequential reader begins, counted from `first_page` or, with [`Share::Split`], from the start of its slice.
    pub start_page: u64,
    /// How the copies of a task divide them.
    pub share: Share,
}

/// What a stream does with the blocks that it comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It reads or writes them.
    Access,
    /// It drops them (`MADV_DONTNEED`), and then reads or writes them: anonymous memory that is new each time.
    Renew,
    /// It drops them.
    Drop,
    /// It pages them out (`MADV_PAGEOUT`).
    PageOut,
}

/// How the copies of a task divide what a stream uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Each uses all of it and starts at `start_page`.
    Same,
    /// Each has a slice of its own: the pages divided by the number of copies, rounded down.
    Split,
    /// Each uses all of it; the starts are evenly spaced, the first at `start_page`.
    Staggered,
    /// Together they go over it once a round, from `start_page` on: each takes the next block that none has taken.
    Queue,
}

/// The order of accesses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// One block after the other, round and round.
    Sequential,
    /// Every block is as likely.
    Uniform,
    /// Block of rank r with a probability proportional to r^-skew.
    Zipf {
        /// The exponent.
        skew: f64,
        /// Ranks are strewn over the object; otherwise rank 1 is its first block.
        permute: bool,
    },
    /// Blocks around the middle, with a normal distribution; what would be outside is drawn again.
    Normal {
        /// Standard deviation, as a share of all blocks.
        sigma: f64,
    },
}

/// What was published: numbers of several kernels, or of several settings of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// What is compared, at least one; the first is what the second is compared with.
    pub variants: Vec<PublishedVariant>,
    /// The numbers.
    pub rows: Vec<PublishedRow>,
    /// What a reader of the numbers should know.
    pub notes: Vec<String>,
    /// Seeds that a comparison takes if nobody says how many: 1 to so many. `None`: the seed of the scenario.
    pub seeds: Option<u64>,
}

/// One of the things that are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedVariant {
    /// Its name.
    pub name: String,
    /// The scenario's own policy with the overrides of the variant.
    pub policy: PolicySpec,
}

/// One number, of each variant.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedRow {
    /// What it is compared with: the name of one of our results.
    pub metric: String,
    /// What people call it.
    pub label: String,
    /// The unit in which it is published.
    pub unit: String,
    /// The published numbers, in the unit of our result, by variant.
    pub published: Vec<Option<f64>>,
    /// Where our numbers must be, by variant.
    pub bands: Vec<Option<[f64; 2]>>,
    /// The ratios that count.
    pub ratios: Vec<PublishedRatio>,
    /// Which direction is good.
    pub better: Option<Better>,
}

/// The number of one variant through that of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedRatio {
    /// The variant (an index) above the line.
    pub of: usize,
    /// The variant below it.
    pub to: usize,
    /// Where our ratio must be.
    pub band: Option<[f64; 2]>,
}

/// Which direction is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}
