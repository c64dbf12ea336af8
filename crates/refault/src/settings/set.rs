//! `--set KEY=VALUE`: the variants of the engine, by name.

use refault_mm::{
    AccessAdvice, AdviceRecency, Backoff, Bound, CacheProtection, Clock, Config, Deactivation, FaultedPages,
    Generations, KswapdRevival, MemcgSelection, MemcgWalk, Policy, Recency, ReclaimCost, RefaultCounting, ScanBudget,
    SwapAllocator, SwapOverflow, SwapRotational, ThpConfig, WritebackSort,
};
use serde_json::Value;
use std::fmt::Write as _;
use std::str::FromStr;

/// One field of [`Config`] as the command line sees it.
struct Setting {
    key: &'static str,
    values: &'static str,
    what: &'static str,
    /// None: not a value of this setting.
    set: fn(&mut Config, &str) -> Option<()>,
    get: fn(&Config) -> Value,
}

/// A setting whose values are what its type parses.
macro_rules! plain {
    ($key:literal, $values:literal, $field:ident $(. $sub:ident)*, $what:literal) => {
        Setting {
            key: $key,
            values: $values,
            what: $what,
            set: |c, v| {
                c.$field $(. $sub)* = v.parse().ok()?;
                Some(())
            },
            get: |c| c.$field $(. $sub)*.into(),
        }
    };
}

/// A setting with named values.
macro_rules! named {
    ($key:literal, $field:ident $(. $sub:ident)*, $what:literal, $first:literal = $a:expr, $second:literal = $b:expr) => {
        Setting {
            key: $key,
            values: concat!($first, "|", $second),
            what: $what,
            set: |c, v| {
                c.$field $(. $sub)* = match v {
                    $first => $a,
                    $second => $b,
                    _ => return None,
                };
                Some(())
            },
            get: |c| if c.$field $(. $sub)* == $a { $first } else { $second }.into(),
        }
    };
}

/// Values of `memcgs`.
const SELECTIONS: [(&str, MemcgSelection); 3] =
    [("iterate", MemcgSelection::Iterate), ("first", MemcgSelection::First), ("memcg-lru", MemcgSelection::MemcgLru)];

/// Values of `backoff`.
const BACKOFFS: [(&str, Backoff); 3] = [
    ("any-priority", Backoff::AnyPriority),
    ("low-priorities", Backoff::LowPriorities),
    ("avoid-swapping", Backoff::AvoidSwapping),
];

const SETTINGS: &[Setting] = &[
    named!(
        "clock",
        lru.clock,
        "when the non-resident clock of the two lists advances",
        "evictions-and-activations" = Clock::EvictionsAndActivations,
        "evictions" = Clock::EvictionsOnly
    ),
    named!(
        "bound",
        lru.bound,
        "refault distance against size: at most, or below",
        "inclusive" = Bound::Inclusive,
        "strict" = Bound::Strict
    ),
    named!(
        "refault_counting",
        lru.refault_counting,
        "multi-gen: count every refault (6.12) or recent ones (6.1)",
        "all" = RefaultCounting::All,
        "recent-only" = RefaultCounting::RecentOnly
    ),
    named!(
        "recency",
        lru.recency,
        "mglru-shadow: compare generations in 3 bits, or as posted",
        "3bit" = Recency::ThreeBit,
        "literal" = Recency::Literal
    ),
    named!(
        "writeback_sort",
        lru.writeback_sort,
        "multi-gen: busy folios stay, or move on (6.1)",
        "none" = WritebackSort::None,
        "next-generation" = WritebackSort::NextGeneration
    ),
    named!(
        "deactivation",
        lru.deactivation,
        "two lists: file pages are deactivated when the inactive list is low, or with it (before 2.6.31)",
        "inactive-low" = Deactivation::InactiveLow,
        "with-inactive" = Deactivation::WithInactive
    ),
    plain!(
        "inactive_ratio",
        "N",
        lru.inactive_ratio,
        "two lists: active file pages for each inactive one; 0 is by the root of their size"
    ),
    plain!("restore_refs", "N", lru.restore_refs, "multi-gen: references from which a refault counts as restored"),
    named!(
        "cache_protection",
        lru.cache_protection,
        "multi-gen: where cold file pages begin, and refs of 4: none, or since 6.7",
        "none" = CacheProtection::None,
        "second-oldest" = CacheProtection::SecondOldest
    ),
    named!(
        "generations",
        lru.generations,
        "multi-gen: those of anon and file are linked, or independent, with what else came with Linux 6.14",
        "linked" = Generations::Linked,
        "independent" = Generations::Independent
    ),
    named!(
        "scan_budget",
        lru.scan_budget,
        "multi-gen: what a run may scan is looked up for each batch, or computed once (since Linux 7.2)",
        "per-batch" = ScanBudget::PerBatch,
        "once" = ScanBudget::Once
    ),
    named!(
        "faulted_pages",
        lru.faulted_pages,
        "multi-gen: pages that a fault brings in begin as active, or as accessed once (since Linux 7.2)",
        "active" = FaultedPages::Active,
        "accessed" = FaultedPages::Accessed
    ),
    named!(
        "kswapd_revival",
        lru.kswapd_revival,
        "a kswapd that gave up works again: with any progress, or once a zone is balanced (since Linux 7.2)",
        "progress" = KswapdRevival::OnProgress,
        "balanced" = KswapdRevival::WhenBalanced
    ),
    plain!(
        "activation_resets_refs",
        "true|false",
        lru.activation_resets_refs,
        "multi-gen: what is put on its list as active forgets its accesses by descriptor"
    ),
    plain!("retry_survivors", "true|false", lru.retry_survivors, "multi-gen: survivors of a batch are tried once more"),
    named!(
        "reclaim_cost",
        lru.cost,
        "two lists: what anon and file cost: writes and refaults, or scans in vain as well (since 6.2)",
        "io" = ReclaimCost::Io,
        "io-and-rotation" = ReclaimCost::IoAndRotation
    ),
    plain!(
        "retry_without_trim",
        "true|false",
        lru.retry_without_trim,
        "kswapd that trimmed the cache in vain tries again with everything (since 6.9)"
    ),
    plain!(
        "kswapd_writes_files",
        "true|false",
        lru.kswapd_writes_files,
        "kswapd writes dirty pages of files where it meets nothing else, as ext4 let it up to Linux 6.1"
    ),
    named!(
        "advice_recency",
        lru.advice_recency,
        "accessed bits of advised mappings: ignored (since 6.3), or those of sequential ones",
        "ignored" = AdviceRecency::Ignored,
        "sequential-only" = AdviceRecency::SequentialOnly
    ),
    Setting {
        key: "advice",
        values: "normal|random|sequential|noreuse",
        what: "what programs say of how they access their files",
        set: |c, v| {
            c.lru.file_advice = AccessAdvice::ALL.into_iter().find(|a| a.0 == v)?.1;
            Some(())
        },
        get: |c| c.lru.file_advice.name().into(),
    },
    Setting {
        key: "memcgs",
        values: "iterate|first|memcg-lru",
        what: "multi-gen: whose turn it is when the whole machine needs memory",
        set: |c, v| {
            c.memcg.selection = SELECTIONS.iter().find(|s| s.0 == v)?.1;
            Some(())
        },
        get: |c| SELECTIONS.iter().find(|s| s.1 == c.memcg.selection).map_or(Value::Null, |s| s.0.into()),
    },
    Setting {
        key: "backoff",
        values: "any-priority|low-priorities|avoid-swapping",
        what: "memcgs=first: when reclaim leaves a group early; the last is of 2022 (version 14)",
        set: |c, v| {
            c.memcg.backoff = BACKOFFS.iter().find(|b| b.0 == v)?.1;
            Some(())
        },
        get: |c| BACKOFFS.iter().find(|b| b.1 == c.memcg.backoff).map_or(Value::Null, |b| b.0.into()),
    },
    plain!(
        "target_lowers_priority",
        "true|false",
        memcg.target_lowers_priority,
        "memcgs=first|iterate: a group that gave the target is scanned less (2022)"
    ),
    plain!(
        "stop_at_high_mark",
        "true|false",
        memcg.stop_at_high_mark,
        "memcgs=memcg-lru: kswapd stops when every zone is safe (since 6.7)"
    ),
    named!(
        "memcg_walk",
        memcg.walk,
        "which groups a run visits: until it has what it wants (since 6.11), or all",
        "incremental" = MemcgWalk::Incremental,
        "whole" = MemcgWalk::Whole
    ),
    plain!(
        "lru_reparent",
        "true|false",
        memcg.lru_reparent,
        "what a removed group has in memory goes to its parent at once (since 7.1)"
    ),
    plain!("leaf_walk", "true|false", lru.lru_gen.leaf_walk, "multi-gen: aging walks page tables"),
    plain!("batch_folios", "N", lru.batch_folios, "folios in a per-CPU batch; 0 is no batches"),
    plain!("swap_cluster_max", "N", lru.swap_cluster_max, "pages that a reclaim aims at"),
    plain!("charge_batch", "N", memcg.charge_batch, "pages charged ahead; 1 is none"),
    plain!("charge_kernel", "true|false", memcg.charge_kernel, "charge tree nodes and page tables to the group"),
    plain!("reserved_pages", "N", memcg.reserved_pages, "pages charged for what the trace does not show"),
    plain!("one_list", "true|false", lru.one_list, "never activate: FIFO by descriptor, second chance by mapping"),
    plain!("swap_synchronous", "true|false", swap.synchronous, "swap answers at once, as zram does"),
    plain!("swap_pages", "N", swap.pages, "size of the swap device in pages"),
    Setting {
        key: "swap_allocator",
        values: "free-first|nonfull-first|one-frag|free-only",
        what: "from which clusters slots of swap are taken; the last is before the cluster lists",
        set: |c, v| {
            c.swap.policy.allocator = SwapAllocator::ALL.into_iter().find(|a| a.name() == v)?;
            Some(())
        },
        get: |c| c.swap.policy.allocator.name().into(),
    },
    named!(
        "swap_overflow",
        swap.policy.overflow,
        "large folios that found no place on the first swap device: split, or to the next",
        "none" = SwapOverflow::None,
        "try-next" = SwapOverflow::TryNext
    ),
    named!(
        "swap_rotational",
        swap.policy.rotational,
        "slots of a rotational swap device: one cursor, or clusters (since 6.14)",
        "cursor" = SwapRotational::Cursor,
        "clusters" = SwapRotational::Clusters
    ),
    plain!("swap_cluster_pages", "256|512", swap.policy.cluster_pages, "slots of a cluster of a swap device"),
    plain!("swap_slot_cache", "true|false", swap.policy.slot_cache, "per-CPU caches of swap slots (before 6.14)"),
    plain!("swap_zeromap", "true|false", swap.policy.zeromap, "pages of zeros are not written to swap (since 6.12)"),
    plain!("fault_around_pages", "N", fault_around.pages, "pages mapped around a fault, a power of two; 1 is off"),
    plain!("fault_around_young", "true|false", fault_around.young, "pages mapped around a fault start as accessed"),
    plain!("dirty_background_ratio", "0..100", dirty.background_ratio, "percent dirty before the flusher starts"),
    plain!("total_pages", "N", total_pages, "pages of the machine, for the bucket order of shadows"),
    plain!("nodes_shift", "0..10", shadow.nodes_shift, "bits of the node number in a shadow"),
    plain!("eviction_bits_max", "8..64", shadow.eviction_bits_max, "bits of the eviction counter in a shadow, at most"),
];

/// No number is larger: sums of a few of them stay far from overflow.
const LARGEST: u64 = 1 << 40;

/// One `--set KEY=VALUE`: a value for the setting of that number.
#[derive(Clone, Debug)]
pub struct Set(usize, String);

impl FromStr for Set {
    type Err = String;

    fn from_str(text: &str) -> Result<Set, String> {
        let Some((key, value)) = text.split_once('=') else {
            return Err(format!("{text:?} is not KEY=VALUE; --set help lists the keys"));
        };
        let (key, value) = (key.trim(), value.trim());
        let Some(at) = SETTINGS.iter().position(|s| s.key == key) else {
            return Err(format!("unknown key {key:?}; --set help lists the keys"));
        };
        let setting = &SETTINGS[at];
        if value.parse::<u64>().is_ok_and(|n| n > LARGEST) {
            return Err(format!("{value} is too large for {key}; at most {LARGEST} is believable"));
        }
        match (setting.set)(&mut Config::new(Policy::Lru), value) {
            Some(()) => Ok(Set(at, value.to_owned())),
            None => Err(format!("{value:?} is not a value of {key}; it takes {}", setting.values)),
        }
    }
}

impl Set {
    /// Sets it.
    pub fn apply(&self, cfg: &mut Config) {
        // The value was tried when it was parsed.
        let _ = (SETTINGS[self.0].set)(cfg, &self.1);
    }
}

/// One setting of `--thp`.
#[derive(Clone, Debug)]
pub struct Thp(String);

impl FromStr for Thp {
    type Err = String;

    fn from_str(text: &str) -> Result<Thp, String> {
        ThpConfig::default().set(text.trim())?;
        Ok(Thp(text.trim().to_owned()))
    }
}

impl Thp {
    /// Sets it.
    pub fn apply(&self, cfg: &mut Config) {
        // It was tried when it was parsed.
        let _ = cfg.thp.set(&self.0);
    }
}

/// Key and value of everything that can be set.
pub fn values(cfg: &Config) -> impl Iterator<Item = (&'static str, Value)> + '_ {
    SETTINGS.iter().map(|s| (s.key, (s.get)(cfg)))
}

/// Every key with the values that it takes and what it is.
pub fn described() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    SETTINGS.iter().map(|s| (s.key, s.values, s.what))
}

/// Every key with its values and its default, for people.
pub fn help() -> String {
    let mut text = String::from("--set KEY=VALUE, for all policies of the replay:\n\n");
    for s in SETTINGS {
        let default = |policy| match (s.get)(&Config::new(policy)) {
            Value::String(name) => name,
            other => other.to_string(),
        };
        let (usual, shadow) = (default(Policy::Lru), default(Policy::LruShadow));
        let _ = write!(text, "  {}={}\n      {} [default: {usual}", s.key, s.values, s.what);
        if shadow != usual {
            let _ = write!(text, "; {shadow} for lru-shadow and mglru-shadow");
        }
        text.push_str("]\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_values() {
        for policy in Policy::ALL {
            let cfg = Config::new(policy);
            for (key, value) in values(&cfg) {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let set: Set = format!("{key}={text}").parse().expect(key);
                let mut again = cfg.clone();
                set.apply(&mut again);
                assert_eq!(again, cfg, "{key}={text}");
            }
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, want) in [
            ("recency", "KEY=VALUE"),
            ("speed=1", "unknown key \"speed\""),
            ("recency=4bit", "it takes 3bit|literal"),
            ("charge_kernel=yes", "true|false"),
            ("batch_folios=-1", "not a value"),
            ("charge_batch=18446744073709551615", "too large"),
        ] {
            let error = text.parse::<Set>().expect_err(text);
            assert!(error.contains(want), "{text}: {error}");
        }
    }

    #[test]
    fn help_names_every_key() {
        let text = help();
        assert!(SETTINGS.iter().all(|s| text.contains(&format!("  {}=", s.key))));
        assert!(text.lines().all(|line| line.len() <= 140));
    }
}
