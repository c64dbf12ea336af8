//! Settings of memory cgroups.

use super::acts::{ActsOn, is_multi_gen};
use super::words::words;
use super::{Other, Setting, Value, Values, setting};
use crate::config::kernel::{BEFORE_6_12, Kernel, KernelRule};
use crate::config::memcg::{Backoff, MemcgSelection, MemcgWalk};

words!(MemcgSelection { "iterate" = Iterate, "first" = First, "memcg-lru" = MemcgLru });
words!(Backoff { "any-priority" = AnyPriority, "low-priorities" = LowPriorities, "avoid-swapping" = AvoidSwapping });
words!(MemcgWalk { "incremental" = Incremental, "whole" = Whole });

const LISTS_OF_GROUPS: KernelRule = KernelRule {
    change: "\"mm: multi-gen LRU: per-node lru_gen_folio lists\": the memcg LRU; before, all groups in turn, and two reasons to leave one early",
    since: "6.3",
    kernels: &[Kernel::V6_1],
};
const VERSION_14: KernelRule = KernelRule {
    change: "the same in version 14: a group is left when it swaps while another has something easier, and scanned less once it gave the target",
    since: "6.3",
    kernels: &[Kernel::V2022V14],
};

pub(super) const SETTINGS: &[Setting] = &[
    setting!("memcgs", memcg.selection, "multi-gen: whose turn it is when the whole machine needs memory")
        .acts(ActsOn::GENERATIONS).of_groups().at("The memcg LRU")
        .other(&[
            Other { rule: &LISTS_OF_GROUPS, value: Value::Word("first") },
            Other { rule: &VERSION_14, value: Value::Word("first") },
        ]),
    setting!("backoff", memcg.backoff, "memcgs=first: when reclaim leaves a group early")
        .acts_with("memcgs=first", |cfg| is_multi_gen(cfg) && cfg.memcg.selection == MemcgSelection::First).of_groups().at("All memcgs in turn")
        .other(&[
            Other { rule: &LISTS_OF_GROUPS, value: Value::Word("any-priority") },
            Other { rule: &VERSION_14, value: Value::Word("avoid-swapping") },
        ]),
    setting!(
        "target_lowers_priority",
        memcg.target_lowers_priority,
        "memcgs=first|iterate: a group that gave the target is scanned less"
    )
    .acts_with("memcgs=first or iterate", |cfg| {
        is_multi_gen(cfg) && cfg.memcg.selection != MemcgSelection::MemcgLru
    })
    .of_groups().at("All memcgs in turn")
    .other(&[Other { rule: &VERSION_14, value: Value::Flag(true) }]),
    setting!("memcg_walk", memcg.walk, "groups that a run visits: until it has what it wants, or all")
        .acts(ActsOn::TWO_LISTS).of_groups().at("The walk over the memcg tree")
        .other(&[Other {
            rule: &KernelRule {
                change: "\"mm: vmscan: restore incremental cgroup iteration\": a run that met its target skips the other groups",
                since: "6.11",
                kernels: BEFORE_6_12,
            },
            value: Value::Word("whole"),
        }]),
    setting!("lru_reparent", memcg.lru_reparent, "pages of a removed group go to its parent at once")
        .of_machines("groups that are removed").at("Removing a memcg")
        .other(&[Other {
            rule: &KernelRule {
                change: "\"Eliminate Dying Memory Cgroup\": what a removed group has in memory goes to its parent at once",
                since: "7.1",
                kernels: &[Kernel::V7_2],
            },
            value: Value::Flag(true),
        }]),
    setting!("charge_batch", memcg.charge_batch, "pages charged ahead; 1 is none")
        .at("Charging")
        .takes(Values::Range(1, 1 << 20), "pages")
        .other(&[Other {
            rule: &KernelRule {
                change: "\"memcg: increase MEMCG_CHARGE_BATCH to 64\", from 32",
                since: "6.1",
                kernels: &[Kernel::V2022V14],
            },
            value: Value::Number(32),
        }]),
    setting!("charge_stocks", memcg.charge_stocks, "groups for which a CPU keeps pages that are charged ahead")
        .of_groups()
        .at("Charging")
        .takes(Values::Range(1, 1 << 16), "groups")
        .other(&[Other {
            rule: &KernelRule {
                change: "\"memcg: multi-memcg percpu charge cache\": a CPU keeps stocks of seven groups",
                since: "6.16",
                kernels: &[Kernel::V6_18, Kernel::V7_2],
            },
            value: Value::Number(7),
        }]),
    setting!("charge_kernel", memcg.charge_kernel, "tree nodes and page tables are charged to the group").at("Charging"),
];
