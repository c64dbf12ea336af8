//! Settings of the two lists.

use super::acts::ActsOn;
use super::words::words;
use super::{Other, Setting, Value, Values, setting};
use crate::config::kernel::{BEFORE_6_2, KernelRule};
use crate::config::lru::{Bound, Clock, Deactivation, ReclaimCost};

words!(Clock { "evictions-and-activations" = EvictionsAndActivations, "evictions" = EvictionsOnly });
words!(Bound { "inclusive" = Inclusive, "strict" = Strict });
words!(Deactivation { "inactive-low" = InactiveLow, "with-inactive" = WithInactive });
words!(ReclaimCost { "io" = Io, "io-and-rotation" = IoAndRotation });

pub(super) const SETTINGS: &[Setting] = &[
    setting!("clock", lru.clock, "when the non-resident clock of the two lists advances")
        .acts(ActsOn::DISTANCE).at("Refault distance")
        .own_in_rfc_v3(),
    setting!("bound", lru.bound, "refault distance against size: at most, or below").acts(ActsOn::POSITION).at("Refault distance").own_in_rfc_v3(),
    setting!(
        "deactivation",
        lru.deactivation,
        "file pages are deactivated when the inactive list is low, or with it (before 2.6.31)"
    )
    .acts(ActsOn::TWO_LISTS).at("Balance of active and inactive"),
    setting!(
        "inactive_ratio",
        lru.inactive_ratio,
        "active file pages for each inactive one, from which on the inactive list is low; 0 is by the root of their size"
    )
    .acts(ActsOn::TWO_LISTS).at("Balance of active and inactive")
    .takes(Values::Range(0, 1000), "pages"),
    setting!("reclaim_cost", lru.cost, "cost of anon and file: writes and refaults, or scans in vain as well")
        .acts(ActsOn::TWO_LISTS).at("Anon or file")
        .other(&[Other {
            rule: &KernelRule {
                change: "\"mm: vmscan: make rotations a secondary factor in balancing anon vs file\": pages scanned in vain are a cost, and I/O counts 32 times as much",
                since: "6.2",
                kernels: BEFORE_6_2,
            },
            value: Value::Word("io"),
        }]),
];
