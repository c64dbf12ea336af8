//! Settings of multi-gen LRU.

use super::acts::{ActsOn, is_multi_gen};
use super::words::words;
use super::{Other, Setting, Value, Values, setting};
use crate::config::kernel::{BEFORE_6_2, BEFORE_6_12, Kernel, KernelRule, SINCE_6_14};
use crate::config::lru::{
    CacheProtection, FaultedPages, Generations, Recency, RefaultCounting, RefaultTest, ScanBudget, WritebackSort,
};

words!(RefaultCounting { "all" = All, "recent-only" = RecentOnly });
words!(Recency { "3bit" = ThreeBit, "literal" = Literal });
words!(WritebackSort { "none" = None, "next-generation" = NextGeneration });
words!(CacheProtection { "none" = None, "second-oldest" = SecondOldest });
words!(Generations { "linked" = Linked, "independent" = Independent });
words!(ScanBudget { "per-batch" = PerBatch, "once" = Once });
words!(FaultedPages { "active" = Active, "accessed" = Accessed });

const UNDERPROTECTED: KernelRule = KernelRule {
    change: "\"mm/mglru: fix underprotected page cache\": cold file pages begin above the oldest generation if there are more than three, fresh anon below the youngest; refs of 4 are always protected; a refault with refs of 3 is restored, and gets all refs",
    since: "6.7 (6.6.8, 6.1.69)",
    kernels: &[Kernel::V2022V14, Kernel::V6_6Rc],
};

pub(super) const SETTINGS: &[Setting] = &[
    setting!("cache_protection", lru.cache_protection, "birth of cold file pages, and whether refs of 4 are protected")
        .acts(ActsOn::GENERATIONS).at("Birth generation")
        .other(&[Other { rule: &UNDERPROTECTED, value: Value::Word("none") }]),
    setting!("restore_refs", lru.restore_refs, "references from which on a refault counts as restored")
        .acts_with("generations=linked, or RFC v3", |cfg| {
            is_multi_gen(cfg)
                && (cfg.lru.generations == Generations::Linked || cfg.lru.refault == RefaultTest::ShadowPosition)
        }).at("Multi-gen refaults")
        .takes(Values::Range(1, 16), "references")
        .own_in_rfc_v3()
        .other(&[Other { rule: &UNDERPROTECTED, value: Value::Number(4) }]),
    setting!("retry_survivors", lru.retry_survivors, "survivors of a batch are tried once more")
        .acts(ActsOn::GENERATIONS).at("Multi-gen eviction")
        .other(&[Other {
            rule: &KernelRule {
                change: "\"mm: multi-gen LRU: retry folios written back while isolated\"; before, survivors also kept their accesses",
                since: "6.1",
                kernels: &[Kernel::V2022V14],
            },
            value: Value::Flag(false),
        }]),
    setting!("refault_counting", lru.refault_counting, "refaults that count: all, or recent ones")
        .acts(ActsOn::GENERATIONS).at("Multi-gen refaults")
        .formerly(&[("recent", "recent-only")])
        .own_in_rfc_v3()
        .other(&[Other {
            rule: &KernelRule {
                change: "\"Multi-gen LRU: fix workingset accounting\": every refault counts, and recent ones as activated",
                since: "6.5",
                kernels: BEFORE_6_2,
            },
            value: Value::Word("recent-only"),
        }]),
    setting!("recency", lru.recency, "mglru-shadow: generations are compared in 3 bits, or as posted")
        .acts_with("", |cfg| is_multi_gen(cfg) && cfg.lru.refault == RefaultTest::ShadowPosition).at("Multi-gen LRU with RFC v3")
        .formerly(&[("three-bit", "3bit")]),
    setting!("writeback_sort", lru.writeback_sort, "busy folios stay, or move on to the next generation")
        .acts(ActsOn::GENERATIONS).at("Multi-gen eviction")
        .other(&[Other {
            rule: &KernelRule {
                change: "\"mm/mglru: use the common routine for dirty/writeback reactivation\": sorting no longer moves busy folios to the next generation",
                since: "2026 (6.12.117)",
                kernels: BEFORE_6_12,
            },
            value: Value::Word("next-generation"),
        }]),
    setting!(
        "activation_resets_refs",
        lru.activation_resets_refs,
        "a folio that is put on its list as active forgets its accesses by descriptor"
    )
    .acts_with("generations=linked", |cfg| is_multi_gen(cfg) && cfg.lru.generations == Generations::Linked).at("Birth generation")
    .other(&[Other {
        rule: &KernelRule {
            change: "\"mm/mglru: reset page lru tier bits when activating\": a folio that is put on its list as active forgets its accesses by descriptor; before, a refault that got all refs was protected for them later",
            since: "6.13 (6.12.117)",
            kernels: BEFORE_6_12,
        },
        value: Value::Flag(false),
    }]),
    setting!("generations", lru.generations, "generations of anon and file are linked, or independent")
        .acts(ActsOn::GENERATIONS).at("Independent generations")
        .other(&[Other {
            rule: &KernelRule {
                change: "\"mm/mglru: rework aging feedback\", \"rework type selection\", \"rework refault detection\", \"rework workingset protection\": generations of anon and file move independently, aging goes by their number, a page is promoted when it is in use again",
                since: "6.14",
                kernels: SINCE_6_14,
            },
            value: Value::Word("independent"),
        }]),
    setting!("scan_budget", lru.scan_budget, "pages to scan are computed for each batch, or once a run")
        .acts(ActsOn::GENERATIONS).at("The scan budget")
        .other(&[Other {
            rule: &KernelRule {
                change: "\"mm/mglru: improve reclaim loop and dirty folio handling\": a run of reclaim has a scan budget, aging is a step of it",
                since: "7.2",
                kernels: &[Kernel::V7_2],
            },
            value: Value::Word("once"),
        }]),
    setting!("faulted_pages", lru.faulted_pages, "pages that a fault brings in begin as active, or as accessed once")
        .acts(ActsOn::GENERATIONS).at("Faulted pages")
        .other(&[Other {
            rule: &KernelRule {
                change: "\"mm/mglru: use folio_mark_accessed to replace folio_set_active\": pages that a fault brings in are accessed, not active, and accessed pages begin in the second oldest generation",
                since: "7.2",
                kernels: &[Kernel::V7_2],
            },
            value: Value::Word("accessed"),
        }]),
    setting!("leaf_walk", lru.lru_gen.leaf_walk, "aging walks page tables").acts(ActsOn::GENERATIONS).at("Multi-gen aging"),
];
