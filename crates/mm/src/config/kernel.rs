//! Kernel profiles: which kernel is meant, as a named set of rules.
//!
//! A rule is one change of Linux. It says what the change was, since when it holds, and in which
//! profiles it is not as in 6.12; [`crate::Config::new`] is 6.12. `docs/kernels.md` says where each
//! profile comes from.

use std::fmt;
use std::str::FromStr;

use crate::config::Config;
use crate::config::lru::{
    CacheProtection, FaultedPages, Generations, KswapdRevival, Lru, ReclaimCost, RefaultCounting, RefaultTest,
    ScanBudget, WritebackSort,
};
use crate::config::memcg::{Backoff, MemcgSelection, MemcgWalk};
use crate::config::readahead::{MmapHits, OrderGrowth};
use crate::config::recency::AdviceRecency;
use crate::config::swap::{SwapAllocator, SwapRotational};

/// A kernel, or what a series was measured on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kernel {
    /// The multi-gen LRU series as posted for the 14th time, in August 2022.
    V2022V14,
    /// Linux 6.1, as its stable releases are from 6.1.69 on.
    V6_1,
    /// The later 6.6, as of September 2023, on which RFC v3 of "refault distance update" was
    /// measured.
    V6_6Rc,
    /// Linux 6.6, as its stable releases are from 6.6.8 on.
    V6_6,
    /// Linux 6.12.
    #[default]
    V6_12,
    /// Linux 6.18.
    V6_18,
    /// Linux 7.2.
    V7_2,
}

use Kernel::{V6_1, V6_6, V6_6Rc, V6_18, V7_2, V2022V14};

impl Kernel {
    /// All of them, the oldest first.
    pub const ALL: [Kernel; 7] = [V2022V14, V6_1, V6_6Rc, V6_6, Kernel::V6_12, V6_18, V7_2];

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            V2022V14 => "2022-v14",
            V6_1 => "6.1",
            V6_6Rc => "6.6-rc",
            V6_6 => "6.6",
            Kernel::V6_12 => "6.12",
            V6_18 => "6.18",
            V7_2 => "7.2",
        }
    }

    /// Describes the change in a line.
    pub fn about(self) -> &'static str {
        match self {
            V2022V14 => "the multi-gen LRU series, version 14 (August 2022)",
            V6_1 => "Linux 6.1 with its stable fixes (6.1.69 and later)",
            V6_6Rc => "what became Linux 6.6, in September 2023",
            V6_6 => "Linux 6.6 with its stable fixes (6.6.8 and later)",
            Kernel::V6_12 => "Linux 6.12, the default",
            V6_18 => "Linux 6.18",
            V7_2 => "Linux 7.2",
        }
    }

    /// The profile for a release such as `6.18.44-generic`: the last one that is not younger, but
    /// that multi-gen LRU of 6.18 came with 6.14. None: it is no release.
    pub fn of_release(release: &str) -> Option<Kernel> {
        let mut parts = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
        let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next()) else { return None };
        Some(match (major, minor) {
            (..6, _) | (6, ..6) => V6_1,
            (6, ..12) => V6_6,
            (6, ..14) => Kernel::V6_12,
            (6, _) | (7, ..2) => V6_18,
            _ => V7_2,
        })
    }

    /// Gives a configuration the rules of this kernel, where it has those of 6.12.
    pub fn apply(self, cfg: &mut Config) {
        RULES.iter().filter(|rule| rule.kernels.contains(&self)).for_each(|rule| rule.apply(cfg));
    }

    /// The rules in which this kernel differs from 6.12.
    pub fn rules(self) -> impl Iterator<Item = &'static KernelRule> {
        RULES.iter().filter(move |rule| rule.kernels.contains(&self))
    }

    /// How the order of the folios of a file grows from window to window, where it has large ones.
    pub fn order_growth(self) -> OrderGrowth {
        if SINCE_6_14.contains(&self) { OrderGrowth::ByFile } else { OrderGrowth::ByMark }
    }

    /// How faults on mapped files lower the count of misses that ends reading around them.
    pub fn mmap_hits(self) -> MmapHits {
        match self {
            V7_2 => MmapHits::FaultedPage,
            _ if BEFORE_6_12.contains(&self) => MmapHits::All,
            _ => MmapHits::NotWorkingset,
        }
    }

    /// Whether reclaim of a group without a dirty limit of its own (cgroup v1) waits where it meets
    /// nothing but dirty pages. Two lists do since "fix dirty pages throttling on cgroup v1" of
    /// Linux 6.3, generations since "wake up flushers conditionally to avoid cgroup OOM" of 6.13
    /// and its stable kernels.
    pub fn waits_for_flusher(self, lru: Lru) -> bool {
        match lru {
            Lru::TwoList => !BEFORE_6_2.contains(&self),
            Lru::MultiGen => !BEFORE_6_12.contains(&self),
        }
    }

    /// Whether reclaim adds up the statistics of groups before it reads them. Before "memcg: use
    /// ratelimited stats flush in the reclaim" of Linux 6.12 every run began with that, as soon as
    /// 64 changes a CPU had gathered: they are exact, as far as it shows.
    pub fn has_exact_stats(self) -> bool {
        BEFORE_6_12.contains(&self)
    }

    /// The locks that its CPUs take; the engine has none of them.
    pub fn locking(self) -> Locking {
        Locking {
            lru_batch: if BEFORE_6_12.contains(&self) { 15 } else { 31 },
            swap_device_lock: !SINCE_6_14.contains(&self),
            zsmalloc_pool_lock: matches!(self, V6_6Rc | V6_6),
            lock_per_area: !matches!(self, V2022V14 | V6_1),
        }
    }

    /// Whether zswap keeps pages of one word as such, before 6.12.
    pub fn has_same_filled_pages(self) -> bool {
        BEFORE_6_12.contains(&self)
    }
}

/// Occasions on which CPUs of a kernel take locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locking {
    /// Pages that are put on a list under its lock at once (`struct folio_batch`): 15, since 6.9
    /// 31.
    pub lru_batch: u32,
    /// Slots of swap are taken and given back under the lock of their device, before "mm, swap:
    /// rework of swap allocator locks" of 6.14. Since then each cluster has a lock, and each CPU a
    /// cluster.
    pub swap_device_lock: bool,
    /// The pool of zsmalloc has one lock, from 6.2 to 6.10; before and since then each size has
    /// one.
    pub zsmalloc_pool_lock: bool,
    /// A fault locks its area, since 6.4, and not all memory of its program.
    pub lock_per_area: bool,
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kernel {
    type Err = String;

    fn from_str(name: &str) -> Result<Kernel, String> {
        if let Some(found) = Kernel::ALL.into_iter().find(|k| k.name() == name) {
            return Ok(found);
        }
        let known = Kernel::ALL.map(Kernel::name).join(", ");
        let nearest = Kernel::of_release(name).map_or(String::new(), |k| format!("nearest to it is {k}; "));
        Err(format!("unknown kernel {name:?}; {nearest}known are {known}"))
    }
}

/// A rule that is not in all kernels as it is in 6.12.
#[derive(Debug)]
pub struct KernelRule {
    /// The change, and the version since which it holds or did no longer.
    pub change: &'static str,
    /// The profiles to which the form of 6.12 does not belong.
    pub kernels: &'static [Kernel],
    set: fn(&mut Config),
}

impl KernelRule {
    /// Gives a configuration the other form.
    pub fn apply(&self, cfg: &mut Config) {
        (self.set)(cfg);
    }
}

/// The profiles since Linux 6.14.
const SINCE_6_14: &[Kernel] = &[V6_18, V7_2];
/// The profiles before Linux 6.2.
const BEFORE_6_2: &[Kernel] = &[V2022V14, V6_1];
/// The profiles before what came with 6.7 to 6.12, but for what was ported back.
const BEFORE_6_12: &[Kernel] = &[V2022V14, V6_1, V6_6Rc, V6_6];

/// The rules, by subject: multi-gen LRU, two lists, groups, batches, swap.
const RULES: &[KernelRule] = &[
    KernelRule {
        change: "\"fix underprotected page cache\" (6.7; 6.6.8, 6.1.69): cold file pages begin above the oldest generation, refs of 4 are protected",
        kernels: &[V2022V14, V6_6Rc],
        set: |c| {
            c.lru.cache_protection = CacheProtection::None;
            c.lru.restore_refs = 4;
        },
    },
    KernelRule {
        change: "\"retry folios written back while isolated\" (6.1): survivors of a multi-gen batch are tried once more",
        kernels: &[V2022V14],
        set: |c| c.lru.retry_survivors = false,
    },
    KernelRule {
        change: "\"fix workingset accounting\" (6.5): multi-gen LRU counts every refault, and recent ones as activated",
        kernels: BEFORE_6_2,
        set: |c| {
            if c.lru.refault != RefaultTest::ShadowPosition {
                c.lru.refault_counting = RefaultCounting::RecentOnly;
            }
        },
    },
    KernelRule {
        change: "\"use the common routine for dirty/writeback reactivation\" (2026; stable 6.12.117): busy folios are isolated; before, sorting moved them on",
        kernels: BEFORE_6_12,
        set: |c| c.lru.writeback_sort = WritebackSort::NextGeneration,
    },
    KernelRule {
        change: "\"reset page lru tier bits when activating\" (6.13; stable 6.12.117): what multi-gen LRU puts on its list as active forgets its accesses by descriptor",
        kernels: BEFORE_6_12,
        set: |c| c.lru.activation_resets_refs = false,
    },
    KernelRule {
        change: "\"add vma_has_recency()\" (6.3): reclaim ignores accessed bits of random mappings, too, and of files advised not to be reused",
        kernels: BEFORE_6_2,
        set: |c| c.lru.advice_recency = AdviceRecency::SequentialOnly,
    },
    KernelRule {
        change: "\"make rotations a secondary factor in balancing anon vs file\" (6.2): what is scanned in vain is a cost",
        kernels: BEFORE_6_2,
        set: |c| c.lru.cost = ReclaimCost::Io,
    },
    KernelRule {
        change: "kswapd leaves dirty pages of files to the flusher (ext4: after 6.1); before, it wrote them where it met nothing else",
        kernels: BEFORE_6_2,
        set: |c| c.lru.kswapd_writes_files = true,
    },
    KernelRule {
        change: "\"retry kswapd's priority loop with cache_trim_mode off on failure\" (6.9)",
        kernels: BEFORE_6_12,
        set: |c| c.lru.retry_without_trim = false,
    },
    KernelRule {
        change: "\"per-node lru_gen_folio lists\" (6.3): the memcg LRU; before, all groups in turn, and two reasons to leave one early",
        kernels: &[V6_1],
        set: |c| {
            c.memcg.selection = MemcgSelection::First;
            c.memcg.backoff = Backoff::AnyPriority;
        },
    },
    KernelRule {
        change: "the same in version 14: a group is left when it swaps while another has something easier, and scanned less once it gave the target",
        kernels: &[V2022V14],
        set: |c| {
            c.memcg.selection = MemcgSelection::First;
            c.memcg.backoff = Backoff::AvoidSwapping;
            c.memcg.target_lowers_priority = true;
        },
    },
    KernelRule {
        change: "\"try to stop at high watermarks\" (6.7; 6.6.8): kswapd ends its walk over the memcg LRU when every zone is safe",
        kernels: &[V6_6Rc],
        set: |c| c.memcg.stop_at_high_mark = false,
    },
    KernelRule {
        change: "\"restore incremental cgroup iteration\" (6.11): a run that has met its target skips the rest of the groups",
        kernels: BEFORE_6_12,
        set: |c| c.memcg.walk = MemcgWalk::Whole,
    },
    KernelRule {
        change: "\"increase MEMCG_CHARGE_BATCH to 64\" (6.1): pages charged ahead; before, 32",
        kernels: &[V2022V14],
        set: |c| c.memcg.charge_batch = 32,
    },
    KernelRule {
        change: "\"increase folio batch size\" (6.9): 31 folios in a per-CPU batch; before, 15",
        kernels: BEFORE_6_12,
        set: |c| c.lru.batch_folios = 15,
    },
    KernelRule {
        change: "\"swap allocator for large folios\" (6.12): lists of clusters; before, a scan of the map, and per-CPU caches of slots",
        kernels: BEFORE_6_12,
        set: |c| {
            c.swap.policy.allocator = SwapAllocator::FreeOnly;
            c.swap.policy.slot_cache = true;
        },
    },
    KernelRule {
        change: "\"store zero pages to be swapped out in a bitmap\" (6.12): before, only zswap took pages of one word for what they are",
        kernels: BEFORE_6_12,
        set: |c| c.swap.policy.zeromap = false,
    },
    KernelRule {
        change: "\"rework aging feedback\", \"rework type selection\", \"rework refault detection\", \"rework workingset protection\" (6.14): generations of anon and file move independently, aging goes by their number, a page is promoted when it is in use again",
        kernels: SINCE_6_14,
        set: |c| c.lru.generations = Generations::Independent,
    },
    KernelRule {
        change: "\"improve reclaim loop and dirty folio handling\" (7.2): a run of multi-gen reclaim has a scan budget, aging is a step of it",
        kernels: &[V7_2],
        set: |c| c.lru.scan_budget = ScanBudget::Once,
    },
    KernelRule {
        change: "pages that a fault brings in are accessed, not active, and accessed pages begin in the second oldest generation (7.2)",
        kernels: &[V7_2],
        set: |c| c.lru.faulted_pages = FaultedPages::Accessed,
    },
    KernelRule {
        change: "\"mitigate spurious kswapd_failures reset from direct reclaim\" (7.2): a kswapd that gave up works again once a zone is balanced; before, with any progress",
        kernels: &[V7_2],
        set: |c| c.lru.kswapd_revival = KswapdRevival::WhenBalanced,
    },
    KernelRule {
        change: "\"Eliminate Dying Memory Cgroup\" (7.1): what a removed group has in memory goes to its parent at once",
        kernels: &[V7_2],
        set: |c| c.memcg.lru_reparent = true,
    },
    KernelRule {
        change: "clusters that are used in part come before free ones, and one fragmented cluster is tried (6.13)",
        kernels: SINCE_6_14,
        set: |c| c.swap.policy.allocator = SwapAllocator::OneFrag,
    },
    KernelRule {
        change: "\"remove old allocation path for HDD\" (6.14): rotational devices have clusters",
        kernels: SINCE_6_14,
        set: |c| c.swap.policy.rotational = SwapRotational::Clusters,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Policy;

    fn of(kernel: Kernel, policy: Policy) -> Config {
        let mut cfg = Config::new(policy);
        kernel.apply(&mut cfg);
        cfg
    }

    #[test]
    fn the_default_is_6_12_and_changes_nothing() {
        assert_eq!(Kernel::default(), Kernel::V6_12);
        for policy in Policy::ALL {
            assert_eq!(of(Kernel::V6_12, policy), Config::new(policy));
        }
    }

    #[test]
    fn every_rule_changes_something_in_each_of_its_kernels() {
        for rule in RULES {
            let mut cfg = Config::new(Policy::Mglru);
            let before = cfg.clone();
            (rule.set)(&mut cfg);
            assert!(cfg != before && !rule.kernels.is_empty(), "{}", rule.change);
        }
        for kernel in Kernel::ALL.into_iter().filter(|&k| k != Kernel::V6_12) {
            for policy in Policy::ALL {
                let cfg = of(kernel, policy);
                assert!(cfg != Config::new(policy), "{kernel} {policy}");
                cfg.check().unwrap_or_else(|e| panic!("{kernel} {policy}: {e}"));
            }
        }
    }

    #[test]
    fn names_are_read_back_and_a_wrong_one_is_answered_with_all() {
        for kernel in Kernel::ALL {
            assert_eq!(kernel.name().parse(), Ok(kernel));
        }
        let error = "5.15".parse::<Kernel>().unwrap_err();
        assert!(error.contains("5.15") && error.contains("2022-v14, 6.1, 6.6-rc, 6.6, 6.12, 6.18"), "{error}");
    }

    #[test]
    fn a_release_has_the_profile_of_its_multi_gen_lru() {
        let cases = [
            ("5.15.0", V6_1),
            ("6.1.0-25-amd64", V6_1),
            ("6.8.0-31-generic", V6_6),
            ("6.12.1", Kernel::V6_12),
            ("6.13.9", Kernel::V6_12),
            ("6.14.0", V6_18),
            ("6.17.9", V6_18),
            ("6.18.44-fc", V6_18),
            ("7.0-rc1", V6_18),
            ("7.2.0-rc5", V7_2),
            ("8.0", V7_2),
        ];
        for (release, want) in cases {
            assert_eq!(Kernel::of_release(release), Some(want), "{release}");
        }
        assert_eq!(["", "six", "6", "v6.1"].map(Kernel::of_release), [None; 4]);
    }

    #[test]
    fn an_unknown_release_is_answered_with_the_nearest_profile() {
        let error = "6.13".parse::<Kernel>().unwrap_err();
        assert!(error.contains("\"6.13\"; nearest to it is 6.12; known are"), "{error}");
        assert!(!"newest".parse::<Kernel>().unwrap_err().contains("nearest"));
    }
}
