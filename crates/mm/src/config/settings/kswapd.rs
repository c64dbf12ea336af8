//! Settings of kswapd.

use super::acts::is_multi_gen;
use super::words::words;
use super::{Other, Setting, Value, setting};
use crate::config::kernel::{BEFORE_6_2, BEFORE_6_12, Kernel, KernelRule};
use crate::config::lru::KswapdRevival;
use crate::config::memcg::MemcgSelection;

words!(KswapdRevival { "progress" = OnProgress, "balanced" = WhenBalanced });

pub(super) const SETTINGS: &[Setting] = &[
    setting!(
        "kswapd_revival",
        lru.kswapd_revival,
        "a kswapd that gave up works again: with any progress, or once a zone is balanced"
    )
    .of_machines("kswapd").at("kswapd")
    .other(&[Other {
        rule: &KernelRule {
            change: "\"mm/vmscan: mitigate spurious kswapd_failures reset from direct reclaim\": a kswapd that gave up works again once a zone is balanced; before, with any progress, that of a group at its limit, too",
            since: "7.2",
            kernels: &[Kernel::V7_2],
        },
        value: Value::Word("balanced"),
    }]),
    setting!(
        "kswapd_writes_files",
        lru.kswapd_writes_files,
        "kswapd writes dirty pages of files where it meets nothing else"
    )
    .of_machines("kswapd").at("kswapd")
    .other(&[Other {
        rule: &KernelRule {
            change: "kswapd leaves dirty pages of files to the flusher, for ext4, XFS and btrfs have no `writepage` any more; before, it wrote them where it met nothing else",
            since: "after 6.1 (ext4)",
            kernels: BEFORE_6_2,
        },
        value: Value::Flag(true),
    }]),
    setting!(
        "retry_without_trim",
        lru.retry_without_trim,
        "kswapd that trimmed the cache in vain tries again with everything"
    )
    .of_machines("kswapd").at("kswapd")
    .other(&[Other {
        rule: &KernelRule {
            change: "\"mm, vmscan: retry kswapd's priority loop with cache_trim_mode off on failure\"",
            since: "6.9",
            kernels: BEFORE_6_12,
        },
        value: Value::Flag(false),
    }]),
    setting!(
        "stop_at_high_mark",
        memcg.stop_at_high_mark,
        "memcgs=memcg-lru: kswapd stops when every zone is safe"
    )
    .acts_with("memcgs=memcg-lru", |cfg| is_multi_gen(cfg) && cfg.memcg.selection == MemcgSelection::MemcgLru)
    .of_machines("kswapd").at("The memcg LRU")
    .other(&[Other {
        rule: &KernelRule {
            change: "\"mm/mglru: try to stop at high watermarks\": kswapd ends its walk over the memcg LRU when every zone is safe",
            since: "6.7 (6.6.8)",
            kernels: &[Kernel::V6_6Rc],
        },
        value: Value::Flag(false),
    }]),
];
