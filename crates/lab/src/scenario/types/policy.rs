//! Policies, and their variants.

use std::collections::BTreeMap;

use refault_mm::tiering::PromotionPolicy;
use refault_mm::{
    AdviceRecency, Backoff, Bound, CacheProtection, Clock, Config, Deactivation, FaultedPages, Generations, Kernel,
    KswapdRevival, MemcgSelection, MemcgWalk, Policy, Recency, ReclaimCost, RefaultCounting, ScanBudget, SwapAllocator,
    SwapOverflow, SwapRotational, WritebackSort,
};

/// Settings of tiering that are not those of Linux.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TieringSpec {
    /// Decision on promotion at a hint fault.
    pub promotion: Option<PromotionPolicy>,
    /// Bits of the time stamp of a folio.
    pub stamp_bits: Option<u32>,
    /// Numbers, by the names of [`refault_mm::tiering::TieringConfig::SYSCTLS`], in their units and
    /// at full size.
    pub sysctls: BTreeMap<String, u64>,
}

/// A policy, the kernel whose rules it follows, and the variants of it that are not as there.
/// `None`: what the kernel has.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicySpec {
    /// The named policy.
    pub policy: Policy,
    /// Kernel whose rules hold.
    pub kernel: Kernel,
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
    /// When two lists deactivate file pages.
    pub deactivation: Option<Deactivation>,
    /// Active file pages for each inactive one, from which on the inactive list is low.
    pub inactive_ratio: Option<u64>,
    /// Refs from which a recent multi-gen refault counts as restored.
    pub restore_refs: Option<u32>,
    /// Multi-gen LRU: births, and what refs of 4 are worth.
    pub cache_protection: Option<CacheProtection>,
    /// Multi-gen LRU: generations of anon and file.
    pub generations: Option<Generations>,
    /// Multi-gen LRU: what a run may scan of a group.
    pub scan_budget: Option<ScanBudget>,
    /// Multi-gen LRU: where a page begins that a fault brings in.
    pub faulted_pages: Option<FaultedPages>,
    /// When a kswapd that gave up works again.
    pub kswapd_revival: Option<KswapdRevival>,
    /// Multi-gen folios that are put on their list as active forget their accesses by descriptor.
    pub activation_resets_refs: Option<bool>,
    /// Multi-gen survivors of a batch are tried once more.
    pub retry_survivors: Option<bool>,
    /// Cost of reclaiming a type under two lists.
    pub reclaim_cost: Option<ReclaimCost>,
    /// kswapd that trimmed the cache in vain tries once more with everything.
    pub retry_without_trim: Option<bool>,
    /// kswapd writes dirty pages of files.
    pub kswapd_writes_files: Option<bool>,
    /// Meaning of advice on access patterns to reclaim.
    pub advice_recency: Option<AdviceRecency>,
    /// Multi-gen LRU: whose turn it is when the whole machine needs memory.
    pub memcgs: Option<MemcgSelection>,
    /// With [`MemcgSelection::First`]: when to leave a group.
    pub backoff: Option<Backoff>,
    /// With [`MemcgSelection::First`]: a group that gave the target is scanned less.
    pub target_lowers_priority: Option<bool>,
    /// With [`MemcgSelection::MemcgLru`]: kswapd stops when every zone is safe.
    pub stop_at_high_mark: Option<bool>,
    /// Which groups are visited where multi-gen LRU does not choose them.
    pub memcg_walk: Option<MemcgWalk>,
    /// Whether what a removed group has in memory goes to its parent at once.
    pub lru_reparent: Option<bool>,
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
    /// Pages of zeros leave a bit and are not written.
    pub swap_zeromap: Option<bool>,
    /// Hint faults, promotion and demotion; part of the machine's configuration, not of
    /// [`PolicySpec::config`].
    pub tiering: TieringSpec,
}

impl PolicySpec {
    /// A policy as the kernel has it.
    pub fn new(policy: Policy) -> PolicySpec {
        PolicySpec {
            policy,
            kernel: Kernel::default(),
            clock: None,
            bound: None,
            refault_counting: None,
            recency: None,
            writeback_sort: None,
            deactivation: None,
            inactive_ratio: None,
            restore_refs: None,
            cache_protection: None,
            generations: None,
            scan_budget: None,
            faulted_pages: None,
            kswapd_revival: None,
            activation_resets_refs: None,
            retry_survivors: None,
            reclaim_cost: None,
            retry_without_trim: None,
            kswapd_writes_files: None,
            advice_recency: None,
            memcgs: None,
            backoff: None,
            target_lowers_priority: None,
            stop_at_high_mark: None,
            memcg_walk: None,
            lru_reparent: None,
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
            swap_zeromap: None,
            tiering: TieringSpec::default(),
        }
    }

    /// Configuration of the kernel, without the variants.
    pub fn kernel_config(&self) -> Config {
        let mut config = Config::new(self.policy);
        self.kernel.apply(&mut config);
        config
    }

    /// The configuration of the engine. Settings that belong to the machine (CPUs, swap, seed, ...)
    /// are as [`Config::new`] has them.
    pub fn config(&self) -> Config {
        fn set<T: Copy>(place: &mut T, value: Option<T>) {
            *place = value.unwrap_or(*place);
        }
        let mut config = self.kernel_config();
        set(&mut config.lru.clock, self.clock);
        set(&mut config.lru.bound, self.bound);
        set(&mut config.lru.refault_counting, self.refault_counting);
        set(&mut config.lru.recency, self.recency);
        set(&mut config.lru.writeback_sort, self.writeback_sort);
        set(&mut config.lru.deactivation, self.deactivation);
        set(&mut config.lru.inactive_ratio, self.inactive_ratio);
        set(&mut config.lru.restore_refs, self.restore_refs);
        set(&mut config.lru.cache_protection, self.cache_protection);
        set(&mut config.lru.generations, self.generations);
        set(&mut config.lru.scan_budget, self.scan_budget);
        set(&mut config.lru.faulted_pages, self.faulted_pages);
        set(&mut config.lru.kswapd_revival, self.kswapd_revival);
        set(&mut config.lru.activation_resets_refs, self.activation_resets_refs);
        set(&mut config.lru.retry_survivors, self.retry_survivors);
        set(&mut config.lru.cost, self.reclaim_cost);
        set(&mut config.lru.retry_without_trim, self.retry_without_trim);
        set(&mut config.lru.kswapd_writes_files, self.kswapd_writes_files);
        set(&mut config.lru.advice_recency, self.advice_recency);
        set(&mut config.memcg.selection, self.memcgs);
        set(&mut config.memcg.backoff, self.backoff);
        set(&mut config.memcg.target_lowers_priority, self.target_lowers_priority);
        set(&mut config.memcg.stop_at_high_mark, self.stop_at_high_mark);
        set(&mut config.memcg.walk, self.memcg_walk);
        set(&mut config.memcg.lru_reparent, self.lru_reparent);
        set(&mut config.lru.lru_gen.leaf_walk, self.leaf_walk);
        set(&mut config.lru.batch_folios, self.batch_folios);
        set(&mut config.lru.swap_cluster_max, self.swap_cluster_max);
        set(&mut config.memcg.charge_batch, self.charge_batch);
        set(&mut config.memcg.charge_kernel, self.charge_kernel);
        set(&mut config.fault_around.pages, self.fault_around_pages);
        set(&mut config.fault_around.young, self.fault_around_young);
        set(&mut config.swap.policy.allocator, self.swap_allocator);
        set(&mut config.swap.policy.overflow, self.swap_overflow);
        set(&mut config.swap.policy.rotational, self.swap_rotational);
        set(&mut config.swap.policy.cluster_pages, self.swap_cluster_pages);
        set(&mut config.swap.policy.slot_cache, self.swap_slot_cache);
        set(&mut config.swap.policy.zeromap, self.swap_zeromap);
        config
    }
}
