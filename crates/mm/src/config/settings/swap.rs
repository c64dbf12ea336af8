//! Settings of swap.

use super::words::words;
use super::{Other, Setting, Value, Values, setting};
use crate::config::kernel::{BEFORE_6_12, KernelRule, SINCE_6_14};
use crate::config::swap::{SwapAllocator, SwapOverflow, SwapRotational};

words!(SwapAllocator {
    "free-first" = FreeFirst,
    "nonfull-first" = NonfullFirst,
    "one-frag" = OneFrag,
    "free-only" = FreeOnly,
});
words!(SwapOverflow { "none" = None, "try-next" = TryNext });
words!(SwapRotational { "cursor" = Cursor, "clusters" = Clusters });

const LISTS_OF_CLUSTERS: KernelRule = KernelRule {
    change: "\"mm: swap: mTHP swap allocator base on swap cluster order\": lists of clusters; before, a scan of the map",
    since: "6.12",
    kernels: BEFORE_6_12,
};

pub(super) const SETTINGS: &[Setting] = &[
    setting!("swap_allocator", swap.policy.allocator, "clusters from which slots of swap are taken")
        .at("Allocation of swap slots")
        .other(&[
            Other { rule: &LISTS_OF_CLUSTERS, value: Value::Word("free-only") },
            Other {
                rule: &KernelRule {
                    change: "clusters that are used in part come before free ones, and one fragmented cluster is tried",
                    since: "6.13",
                    kernels: SINCE_6_14,
                },
                value: Value::Word("one-frag"),
            },
        ]),
    setting!(
        "swap_slot_cache",
        swap.policy.slot_cache,
        "per-CPU caches of swap slots; traces have none, and machines none of 6.18 and 7.2"
    )
    .at("Rules of slots"),
    setting!(
        "swap_overflow",
        swap.policy.overflow,
        "large folios that found no place on the first swap device: split, or to the next"
    )
    .of_machines("second swap device").at("Swap devices"),
    setting!("swap_rotational", swap.policy.rotational, "slots of a rotational swap device: one cursor, or clusters")
        .of_machines("disks").at("Allocation of swap slots")
        .other(&[Other {
            rule: &KernelRule {
                change: "\"mm, swap: remove old allocation path for HDD\": rotational devices have clusters",
                since: "6.14",
                kernels: SINCE_6_14,
            },
            value: Value::Word("clusters"),
        }]),
    setting!("swap_cluster_pages", swap.policy.cluster_pages, "slots of a cluster of a swap device")
        .at("Swap clusters")
        .takes(Values::OneOf(&[256, 512]), "slots"),
    setting!("swap_zeromap", swap.policy.zeromap, "pages of zeros are not written to swap")
        .of_machines("contents of pages").at("Rules of slots")
        .other(&[Other {
            rule: &KernelRule {
                change: "\"mm: store zero pages to be swapped out in a bitmap\"; before, zswap alone kept pages of one word as such",
                since: "6.12",
                kernels: BEFORE_6_12,
            },
            value: Value::Flag(false),
        }]),
];
