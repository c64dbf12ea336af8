//! Settings of mappings, and of batches.

use super::words::words;
use super::{Other, Setting, Value, Values, setting};
use crate::config::kernel::{BEFORE_6_2, BEFORE_6_12, KernelRule};
use crate::config::recency::AdviceRecency;

words!(AdviceRecency { "ignored" = Ignored, "sequential-only" = SequentialOnly });

pub(super) const SETTINGS: &[Setting] = &[
    setting!(
        "advice_recency",
        lru.advice_recency,
        "accessed bits of advised mappings: ignored, or those of sequential ones"
    )
    .at("Recency by advice")
    .other(&[Other {
        rule: &KernelRule {
            change: "\"mm: add vma_has_recency()\", \"mm: support POSIX_FADV_NOREUSE\": reclaim ignores accessed bits of random mappings, too, and of files advised not to be reused",
            since: "6.3",
            kernels: BEFORE_6_2,
        },
        value: Value::Word("sequential-only"),
    }]),
    setting!("fault_around_pages", fault_around.pages, "pages mapped around a fault on a file; 1 is off")
        .at("Fault-around")
        .takes(Values::OneOf(&[1, 2, 4, 8, 16, 32, 64, 128, 256, 512]), "pages")
        .formerly(&[("fault_around", "fault_around_pages, in pages: 16 for \"64K\", 1 for none")]),
    setting!("fault_around_young", fault_around.young, "pages mapped around a fault start as accessed").at("Fault-around"),
    setting!("batch_folios", lru.batch_folios, "folios in a per-CPU batch; 0 is no batches")
        .at("Per-CPU batches")
        .takes(Values::Range(0, 1024), "folios")
        .other(&[Other {
            rule: &KernelRule {
                change: "\"mm: increase folio batch size\": 31 folios in a per-CPU batch, from 15",
                since: "6.9",
                kernels: BEFORE_6_12,
            },
            value: Value::Number(15),
        }]),
    setting!("swap_cluster_max", lru.swap_cluster_max, "pages that a reclaim aims at")
        .at("Reclaim")
        .takes(Values::Range(1, 1 << 20), "pages"),
];
