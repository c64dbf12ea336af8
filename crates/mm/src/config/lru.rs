//! Choices about lists and refaults.

use super::one_of;
use super::recency::{AccessAdvice, AdviceRecency};
/// How an lruvec keeps its folios.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lru {
    /// An inactive and an active list per type.
    TwoList,
    /// Up to four generations per type.
    MultiGen,
}

/// Test that decides about a refault.
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

/// Accounting of a refault by multi-gen LRU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefaultCounting {
    /// `workingset_refault` counts every refault (Linux 6.12).
    All,
    /// `workingset_refault` counts refaults of the oldest generation only (Linux 6.1).
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

/// Handling of folios that multi-gen LRU meets and that cannot be freed at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WritebackSort {
    /// These folios are isolated like others (Linux 6.12.117).
    None,
    /// Locked, written-back and dirty file folios move to the next generation (Linux 6.1).
    NextGeneration,
}

/// Where multi-gen LRU has cold pages of files begin, and how well their tiers protect them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CacheProtection {
    /// Pages of files begin in the oldest generation, and fresh anon one above its oldest; refs of
    /// 4 are worth no more than their tier (before "fix underprotected page cache").
    None,
    /// Pages of files begin one above the oldest generation where there are more than three, and
    /// fresh anon below the youngest; folios with refs of 4 are always protected (since Linux 6.7,
    /// and 6.6.8 and 6.1.69).
    SecondOldest,
}

/// How multi-gen LRU keeps the generations of anon and file apart, and what protects a folio in
/// them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Generations {
    /// Anon may not pass file; aging looks at how pages spread over generations; the second access
    /// makes a working set; a refault counts in the generation that is the oldest (before Linux
    /// 6.14).
    Linked,
    /// Anon and file move on their own; aging looks at the number of generations alone; a page is
    /// promoted when it is found in use again; a refault counts for four generations ("rework aging
    /// feedback", "rework type selection", "rework refault detection", "rework workingset
    /// protection", Linux 6.14).
    Independent,
}

/// When multi-gen reclaim computes how many pages of a group it may scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScanBudget {
    /// Looked up again for every batch; aging takes the place of a batch (before Linux 7.2).
    PerBatch,
    /// Computed once a run; aging is a step on the way, batches are small, and a run for a group
    /// ends with what it wants ("improve reclaim loop and dirty folio handling", Linux 7.2).
    Once,
}

/// Birth under multi-gen LRU of a page that a fault brings in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultedPages {
    /// As active, in one of the two youngest generations.
    Active,
    /// As accessed once, unless it was in the working set. Accessed pages begin in the second
    /// oldest generation (Linux 7.2).
    Accessed,
}

/// When a kswapd that gave up works again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KswapdRevival {
    /// Any reclaim freed a page, also that of a group at its limit.
    OnProgress,
    /// Reclaim freed a page, and a zone is balanced ("mitigate spurious kswapd_failures reset from
    /// direct reclaim", Linux 7.2).
    WhenBalanced,
}

/// Events that count as a cost of reclaiming a type, under two lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReclaimCost {
    /// Writes and refaults, 1 each (before Linux 6.2).
    Io,
    /// Writes and refaults, 32 each, and pages that were scanned in vain, 1 each.
    IoAndRotation,
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

/// When two lists deactivate file pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deactivation {
    /// When the inactive list is low, or refaults challenge the active one.
    InactiveLow,
    /// With every scan of the inactive list, in proportion: before Linux 2.6.31.
    WithInactive,
}

/// The capabilities of multi-gen LRU, the bits of `lru_gen/enabled`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LruGenCaps {
    /// 0x2: aging walks page tables. Without it only look-around finds young pages.
    pub leaf_walk: bool,
}

/// The lists, and the test of a refault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LruConfig {
    /// Kind of lists.
    pub kind: Lru,
    /// Refault test.
    pub refault: RefaultTest,
    /// Non-resident clock of the two lists.
    pub clock: Clock,
    /// Comparison of the distance test.
    pub bound: Bound,
    /// Deactivation by the two lists.
    pub deactivation: Deactivation,
    /// Active file pages for each inactive one above which the inactive list is low; 0: by a root
    /// of the size of both lists, as in Linux.
    pub inactive_ratio: u64,
    /// Accounting of multi-gen refaults.
    pub refault_counting: RefaultCounting,
    /// Recency comparison of RFC v3.
    pub recency: Recency,
    /// Writeback case of multi-gen sorting.
    pub writeback_sort: WritebackSort,
    /// Refs from which a recent multi-gen refault counts as restored: 3 in mainline, 4 in RFC v3.
    pub restore_refs: u32,
    /// Births of multi-gen LRU, and what refs of 4 are worth.
    pub cache_protection: CacheProtection,
    /// Generations of anon and file under multi-gen LRU.
    pub generations: Generations,
    /// Limit of pages that multi-gen reclaim may scan of a group.
    pub scan_budget: ScanBudget,
    /// Birth under multi-gen LRU of a page that a fault brings in.
    pub faulted_pages: FaultedPages,
    /// kswapd writes a dirty page of a file on its second way round the list, where a scan meets
    /// nothing but dirty pages: with a file system that has `writepage`, as ext4 had before Linux
    /// 6.2.
    pub kswapd_writes_files: bool,
    /// When a kswapd that gave up works again.
    pub kswapd_revival: KswapdRevival,
    /// Multi-gen: a folio that is put on its list as active, in the youngest generation, forgets
    /// its accesses by descriptor ("reset page lru tier bits when activating", Linux 6.13 and
    /// 6.12.117).
    pub activation_resets_refs: bool,
    /// Multi-gen: survivors of a batch that nothing keeps in memory are tried once more, and
    /// survivors that are rejected forget their accesses (since Linux 6.1).
    pub retry_survivors: bool,
    /// Cost of reclaiming a type under two lists.
    pub cost: ReclaimCost,
    /// kswapd that freed nothing by trimming the cache tries once more with everything (since Linux
    /// 6.9).
    pub retry_without_trim: bool,
    /// Effect of advice on access patterns on reclaim.
    pub advice_recency: AdviceRecency,
    /// The advice that files begin with.
    pub file_advice: AccessAdvice,
    /// Capabilities of multi-gen LRU.
    pub lru_gen: LruGenCaps,
    /// `lru_gen/min_ttl_ms` in nanoseconds; 0 = off.
    pub min_ttl_ns: u64,
    /// Never activate: with batches of 0 the inactive list alone is FIFO, or second chance for
    /// mapped pages.
    pub one_list: bool,
    /// Folios in a per-CPU batch; 31 in Linux, 0 = no batches.
    pub batch_folios: usize,
    /// Pages in a GiB, for the balance of active and inactive lists by size; fewer on a machine
    /// that stands for a larger one.
    pub gib_pages: u64,
    /// Pages that a reclaim aims at, and that one pass over a list takes; 32 in Linux.
    pub swap_cluster_max: u64,
    /// Interval at which the statistics of groups are added up for two-list reclaim, in
    /// nanoseconds; 2 s in Linux, 0 = they are exact.
    pub stat_flush_interval_ns: u64,
    /// Pages of the kernel that each page stands for, in a sample of a larger memory; 1: itself
    /// alone.
    pub pages_per_page: u64,
    /// Divisor of the kernel's batches, where whole batches would be too large a share of memory;
    /// 1: whole batches.
    pub batch_divisor: u64,
}

impl LruConfig {
    /// As the kernel has it.
    pub(super) fn new(kind: Lru, refault: RefaultTest) -> LruConfig {
        let shadow_position = refault == RefaultTest::ShadowPosition;
        LruConfig {
            kind,
            refault,
            clock: if shadow_position { Clock::EvictionsOnly } else { Clock::EvictionsAndActivations },
            bound: if shadow_position { Bound::Strict } else { Bound::Inclusive },
            deactivation: Deactivation::InactiveLow,
            inactive_ratio: 0,
            refault_counting: RefaultCounting::All,
            recency: Recency::ThreeBit,
            writeback_sort: WritebackSort::None,
            restore_refs: if shadow_position { 4 } else { 3 },
            cache_protection: CacheProtection::SecondOldest,
            generations: Generations::Linked,
            scan_budget: ScanBudget::PerBatch,
            faulted_pages: FaultedPages::Active,
            kswapd_writes_files: false,
            kswapd_revival: KswapdRevival::OnProgress,
            activation_resets_refs: true,
            retry_survivors: true,
            cost: ReclaimCost::IoAndRotation,
            retry_without_trim: true,
            advice_recency: AdviceRecency::Ignored,
            file_advice: AccessAdvice::Normal,
            lru_gen: LruGenCaps { leaf_walk: true },
            min_ttl_ns: 0,
            one_list: false,
            batch_folios: 31,
            gib_pages: 1 << 18,
            swap_cluster_max: 32,
            stat_flush_interval_ns: 0,
            pages_per_page: 1,
            batch_divisor: 1,
        }
    }

    /// Whether sums of groups are made, and may be old. The kernels before mainline's refault test
    /// had exact counts of the machine.
    pub(crate) fn adds_up_stats(&self) -> bool {
        self.stat_flush_interval_ns > 0 && matches!(self.refault, RefaultTest::Mainline | RefaultTest::ShadowPosition)
    }

    pub(super) fn check(&self) -> Result<(), String> {
        one_of(&[
            (self.swap_cluster_max >= 1, "swap_cluster_max is at least 1"),
            (self.gib_pages >= 1, "gib_pages is at least 1"),
            (self.pages_per_page >= 1, "pages_per_page is at least 1"),
            (self.pages_per_page <= 1 << 32, "pages_per_page is at most 2^32"),
            ((1..=self.pages_per_page).contains(&self.batch_divisor), "batch_divisor is 1 to pages_per_page"),
            (self.batch_folios <= 1024, "batch_folios is at most 1024"),
            (self.swap_cluster_max <= 1 << 32, "swap_cluster_max is at most 2^32"),
        ])
    }
}
