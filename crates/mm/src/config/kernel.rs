//! Kernel profiles: which kernel is meant, as a named set of rules.
//!
//! A rule is one change of Linux; the [settings](crate::settings) that it changed name it, with
//! their other form. [`crate::Config::new`] is 6.12. `docs/kernels.md` says where each profile
//! comes from.

use std::fmt;
use std::str::FromStr;

use crate::config::Config;
use crate::config::lru::Lru;
use crate::config::readahead::{MmapMissDecrease, OrderGrowth};
use crate::config::settings::{Setting, Value, settings};
use crate::config::swap::SwapSplit;

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
    /// All profiles, the oldest first.
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

    /// The profile for a release such as `6.18.44-generic`: the last profile that is not younger.
    /// Multi-gen LRU of 6.18 came with 6.14, so releases from 6.14 on have its profile. None: it is
    /// no release.
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
        settings().for_each(|setting| setting.apply_kernel(cfg, self));
        cfg.swap.policy.split = self.swap_split();
        cfg.thp.swap_in = self.has_large_swap_in();
    }

    /// The rules in which this kernel differs from 6.12, by subject.
    pub fn rules(self) -> impl Iterator<Item = &'static KernelRule> {
        KernelRule::all().into_iter().filter(move |rule| rule.kernels.contains(&self))
    }

    /// Order in which the pages of a large folio take slots, if it is split because swap has no
    /// range for it. The split itself changed with "mm/huge_memory: add buddy allocator like
    /// (non-uniform) folio_split()" of Linux 6.15.
    pub fn swap_split(self) -> SwapSplit {
        if SINCE_6_14.contains(&self) { SwapSplit::FirstThenBack } else { SwapSplit::Ascending }
    }

    /// Whether a device that answers at once gives large folios back as such, since "mm: support
    /// large folios swap-in for sync io devices" of Linux 6.12.
    pub fn has_large_swap_in(self) -> bool {
        !BEFORE_6_12.contains(&self)
    }

    /// Whether machines have per-CPU caches of swap slots. "mm, swap: rework of swap allocator
    /// locks" of Linux 6.14 frees slots without them, and 6.15 has none.
    pub fn has_slot_caches(self) -> bool {
        !SINCE_6_14.contains(&self)
    }

    /// How the order of the folios of a file grows from window to window, where it has large ones.
    pub fn order_growth(self) -> OrderGrowth {
        if SINCE_6_14.contains(&self) { OrderGrowth::ByFile } else { OrderGrowth::ByMark }
    }

    /// How faults on mapped files lower the count of misses that ends reading around them.
    pub fn mmap_hits(self) -> MmapMissDecrease {
        match self {
            V7_2 => MmapMissDecrease::FaultedPage,
            _ if BEFORE_6_12.contains(&self) => MmapMissDecrease::All,
            _ => MmapMissDecrease::NotWorkingset,
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
    /// a CPU had gathered 64 changes: so they are taken as exact.
    pub fn has_exact_stats(self) -> bool {
        BEFORE_6_12.contains(&self)
    }

    /// The locks that CPUs of this kernel take. The engine itself has no locks.
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
    /// Folios that are put on a list at once, under its lock (`struct folio_batch`): 15; 31 since
    /// 6.9.
    pub lru_batch: u32,
    /// Slots of swap are taken and given back under the lock of their device, before "mm, swap:
    /// rework of swap allocator locks" of 6.14. Since then each cluster has a lock, and each CPU a
    /// cluster.
    pub swap_device_lock: bool,
    /// The pool of zsmalloc has one lock, from 6.2 to 6.10; before and since then each size has
    /// one.
    pub zsmalloc_pool_lock: bool,
    /// A fault locks the area (VMA) that it is in, since 6.4, and not the whole address space.
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
        // As people write it: v6.12, Linux 6.8, or a major number alone.
        let digits = name.find(|c: char| c.is_ascii_digit()).map_or("", |at| &name[at..]);
        let major = || digits.parse::<u8>().ok().and_then(|major| Kernel::of_release(&format!("{major}.0")));
        let nearest = Kernel::of_release(digits).or_else(major);
        let nearest = nearest.map_or(String::new(), |k| format!("nearest to it is {k}; "));
        Err(format!("unknown kernel {name:?}; {nearest}known are {known}"))
    }
}

/// A rule that is not in all kernels as it is in 6.12.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelRule {
    /// The change, by its commit message or posting.
    pub change: &'static str,
    /// The version since which the rule holds, and in brackets stable releases that have it, too.
    pub since: &'static str,
    /// The profiles whose form is not that of 6.12.
    pub kernels: &'static [Kernel],
}

impl KernelRule {
    /// All rules that change a setting, by its subject.
    pub fn all() -> Vec<&'static KernelRule> {
        let mut rules: Vec<&KernelRule> = Vec::new();
        for other in settings().flat_map(|setting| setting.other) {
            if !rules.contains(&other.rule) {
                rules.push(other.rule);
            }
        }
        rules
    }

    /// The settings that the rule changes, with their values in its kernels.
    pub fn settings(&self) -> impl Iterator<Item = (&'static Setting, Value)> {
        let all = settings().flat_map(|setting| setting.other.iter().map(move |other| (setting, other)));
        all.filter(move |(_, other)| other.rule == self).map(|(setting, other)| (setting, other.value))
    }

    /// Whether 6.12 has the older form.
    pub fn is_newer_than_6_12(&self) -> bool {
        self.kernels.iter().all(|kernel| SINCE_6_14.contains(kernel))
    }
}

/// The profiles since Linux 6.14.
pub(super) const SINCE_6_14: &[Kernel] = &[V6_18, V7_2];
/// The profiles before Linux 6.2.
pub(super) const BEFORE_6_2: &[Kernel] = &[V2022V14, V6_1];
/// The profiles before the changes of 6.7 to 6.12, but for changes that were ported back.
pub(super) const BEFORE_6_12: &[Kernel] = &[V2022V14, V6_1, V6_6Rc, V6_6];

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
        for rule in KernelRule::all() {
            let mut cfg = Config::new(Policy::Mglru);
            let before = cfg.clone();
            assert!(rule.settings().all(|(setting, value)| setting.set(&mut cfg, value)), "{}", rule.change);
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
        for (name, nearest) in [("v6.12", "6.12"), ("Linux 6.8", "6.6"), ("9", "7.2"), ("6", "6.1")] {
            let error = name.parse::<Kernel>().unwrap_err();
            assert!(error.contains(&format!("; nearest to it is {nearest}; ")), "{error}");
        }
        for name in ["2022", "newest", "v"] {
            assert!(!name.parse::<Kernel>().unwrap_err().contains("nearest"), "{name}");
        }
        assert!(!"newest".parse::<Kernel>().unwrap_err().contains("nearest"));
    }
}
