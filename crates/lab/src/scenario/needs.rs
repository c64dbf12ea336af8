//! Needs of keys: a key that acts on something that a scenario does not have is refused.
//!
//! Needs that depend on the policy of a run are in `acts`.

use super::read::{Field, Result, Section};
use super::types::{Action, EventAction, Scenario, StreamSpec};
use refault_mm::{AccessAdvice, HugeAdvice, ThpConfig};
use refault_trace::{ObjectKind, Via};
use toml::de::DeValue;

/// Place of a key in its file.
#[derive(Clone, Copy)]
struct Place {
    /// Number in the outermost list: of a task, an event, a swap device.
    index: usize,
    /// Streams beside it in its phase.
    streams: usize,
}

/// Something that keys act on.
struct Need {
    /// Keys without places and names, as `task.stagger`; one that ends in `*` is all that begin so.
    keys: &'static [&'static str],
    /// Whether a scenario has it.
    is_met: fn(&Scenario, Place) -> bool,
    /// Message where it is missing, with a remedy.
    without: &'static str,
}

const NEEDS: &[Need] = &[
    Need {
        keys: &["machine.thp.swap_in", "machine.thp.defrag", "machine.costs.split_page", "machine.costs.zero_page"],
        is_met: |s, _| has_large_anon(s),
        without: "no object has large folios; write 64K = \"always\" in [machine.thp]",
    },
    Need {
        keys: &["object.areas", "object.advice"],
        is_met: |s, _| s.machine.thp.check_acts().is_ok(),
        without: "no size of large folios is on; write 64K = \"always\" in [machine.thp]",
    },
    Need {
        keys: &[
            "machine.page_cluster",
            "machine.costs.swap_*",
            "memcg.swap_high",
            "memcg.swap_max",
            "event.swap_high",
            "event.swap_max",
            "zswap*",
            "event.when.free_swap_below",
            "policy.swap_allocator",
            "policy.swap_cluster_pages",
            "policy.swap_slot_cache",
            "policy.swap_zeromap",
        ],
        is_met: |s, _| !s.swap.is_empty(),
        without: "there is no swap; write [[swap]]",
    },
    Need {
        keys: &["machine.swappiness", "memcg.swappiness", "event.swappiness", "event.sysctl.swappiness"],
        is_met: |s, _| !s.swap.is_empty() || !s.machine.nodes.is_empty(),
        without: "there is no swap to choose; write [[swap]]",
    },
    Need {
        keys: &[
            "memcg.zswap_max",
            "memcg.zswap_writeback",
            "event.zswap_max",
            "event.zswap_writeback",
            "machine.costs.compress_page",
            "machine.costs.decompress_page",
        ],
        is_met: |s, _| s.zswap.is_some(),
        without: "zswap is off; write [zswap]",
    },
    Need {
        keys: &["swap.priority"],
        is_met: |s, _| s.swap.len() > 1,
        without: "there is one swap device; write another [[swap]]",
    },
    Need {
        keys: &["policy.swap_rotational"],
        is_met: |s, _| s.swap.iter().any(|swap| swap.rotational),
        without: "no swap device is rotational; write rotational = true in [[swap]]",
    },
    Need {
        keys: &["policy.swap_overflow"],
        is_met: |s, _| s.swap.len() > 1 && has_large_anon(s),
        without: "it is of large folios and several swap devices; write 64K = \"always\" in [machine.thp], and [[swap]]",
    },
    Need {
        keys: &["policy.lru_reparent"],
        is_met: |s, _| s.events.iter().any(|event| matches!(event.action, EventAction::Remove(_))),
        without: "no group is removed; write remove = \"/...\" in [[event]]",
    },
    Need {
        keys: &[
            "machine.cgroup_writeback",
            "machine.stat_flush_interval",
            "machine.costs.visit_group",
            "policy.charge_stocks",
            "policy.memcgs",
            "policy.memcg_walk",
            "policy.backoff",
            "policy.target_lowers_priority",
        ],
        is_met: |s, _| !s.memcgs.is_empty() || has_trace(s),
        without: "there is no group; write [memcg.\"/...\"]",
    },
    Need {
        keys: &[
            "policy.promotion",
            "policy.numa_balancing_*",
            "policy.scan_delay_ms",
            "policy.scan_period_*",
            "policy.scan_size_mb",
            "policy.stamp_bits",
        ],
        is_met: |s, _| s.machine.nodes.is_empty() || s.policy.tiering.settings.get("numa_balancing").is_some(),
        without: "nothing is promoted; write numa_balancing = 2",
    },
    Need {
        keys: &["machine.memory_recursiveprot"],
        is_met: |s, _| s.memcgs.iter().any(|group| group.parent.is_some()),
        without: "no group is below another; write [memcg.\"/a/b\"]",
    },
    Need {
        keys: &["machine.large_folios", "machine.read_ahead", "machine.read_ahead_history"],
        is_met: |s, _| has_files(s),
        without: "there is no file; write [object.NAME] kind = \"file\"",
    },
    Need {
        keys: &[
            "machine.buffer_heads",
            "machine.dirty_background_ratio",
            "machine.dirty_ratio",
            "machine.dirty_expire",
            "machine.dirty_writeback",
        ],
        is_met: |s, _| has_trace(s) || streams(s).any(|stream| is_file(s, stream) && stream.write_share > 0.0),
        without: "no file is written; write write = \"...\" in a phase",
    },
    Need {
        keys: &["policy.advice_recency"],
        is_met: |s, _| has_trace(s) || streams(s).any(|stream| stream.advice != AccessAdvice::Normal),
        without: "no access is advised; write advice = \"random\" in a phase",
    },
    Need {
        keys: &["policy.fault_around_pages", "policy.fault_around_young"],
        is_met: |s, _| has_trace(s) || streams(s).any(|stream| is_file(s, stream) && stream.via == Via::Map),
        without: "no file is mapped; write via = \"map\" in a phase",
    },
    Need {
        keys: &["machine.costs.madvise"],
        is_met: |s, _| streams(s).any(|stream| matches!(stream.action, Action::Drop | Action::PageOut)),
        without: "no task advises; write page_out = \"...\" in a phase",
    },
    Need {
        keys: &["machine.costs.hint_fault", "machine.costs.migrate_page", "task.phase.lines"],
        is_met: |s, _| !s.machine.nodes.is_empty(),
        without: "there are no tiers; write [node.dram] and another node",
    },
    Need {
        keys: &["machine.contention*"],
        is_met: |s, _| s.machine.cpus > 1,
        without: "one CPU waits for no other; write cpus = 2",
    },
    Need {
        keys: &["task.threads"],
        is_met: |s, _| s.machine.contention.is_some(),
        without: "threads wait for nothing; write [machine.contention]",
    },
    Need {
        keys: &["task.stagger"],
        is_met: |s, at| s.tasks[at.index].count > 1,
        without: "the task has one copy; write count = 2",
    },
    Need {
        keys: &["task.phase.share"],
        is_met: |s, at| s.tasks[at.index].count > 1,
        without: "the task has one copy, which shares with none; write count = 2",
    },
    Need {
        keys: &["task.phase.weight"],
        is_met: |_, at| at.streams > 1,
        without: "the phase has one stream; write another [[task.phase.stream]]",
    },
];

fn streams(s: &Scenario) -> impl Iterator<Item = &StreamSpec> {
    s.tasks.iter().flat_map(|task| &task.phases).flat_map(|phase| &phase.streams)
}

fn is_file(s: &Scenario, stream: &StreamSpec) -> bool {
    s.objects[stream.object].kind == ObjectKind::File
}

fn has_trace(s: &Scenario) -> bool {
    s.tasks.iter().any(|task| task.trace.is_some())
}

fn has_files(s: &Scenario) -> bool {
    has_trace(s) || s.objects.iter().any(|object| object.kind == ObjectKind::File)
}

/// Whether a first touch of some object makes a large folio.
fn has_large_anon(s: &Scenario) -> bool {
    let thp: &ThpConfig = &s.machine.thp;
    let of_trace = has_trace(s) && thp.orders(HugeAdvice::None) != 0;
    of_trace || s.objects.iter().any(|o| o.kind == ObjectKind::Anon && thp.orders(o.huge) != 0)
}

/// Tables whose entries have names that the scenario chooses.
const NAMED: [&str; 4] = ["device", "memcg", "node", "object"];

/// Fails at the first key that does nothing in its scenario.
pub(super) fn check(root: &Section<'_>, scenario: &Scenario) -> Result<()> {
    for (part, field) in root.entries() {
        match field.value() {
            DeValue::Table(_) if NAMED.contains(&part) => {
                for (_, field) in field.any_section()?.entries() {
                    keys(&field, part, Place { index: 0, streams: 0 }, scenario)?;
                }
            }
            DeValue::Array(items) => {
                for (index, field) in field.list(items.len())?.iter().enumerate() {
                    keys(field, part, Place { index, streams: 0 }, scenario)?;
                }
            }
            _ => keys(&field, part, Place { index: 0, streams: 0 }, scenario)?,
        }
    }
    Ok(())
}

/// Checks a field, and the fields in it; `bare` is its key without places and names.
fn keys(field: &Field<'_>, bare: &str, place: Place, scenario: &Scenario) -> Result<()> {
    // Costs may be written with their unit.
    let plain = bare.strip_suffix("_ns").unwrap_or(bare);
    let fits = |key: &str| key.strip_suffix('*').map_or(plain == key, |start| plain.starts_with(start));
    for need in NEEDS.iter().filter(|need| need.keys.iter().any(|key| fits(key))) {
        if !(need.is_met)(scenario, place) {
            return Err(field.error(format!("does nothing here, for {}", need.without)));
        }
    }
    match field.value() {
        DeValue::Table(_) => {
            for (name, field) in field.any_section()?.entries() {
                // Steps of loops and streams of phases have the keys of phases.
                let is_phase = ["step", "stream"].contains(&name) && bare.starts_with("task.phase");
                let bare = if is_phase { bare.to_owned() } else { format!("{bare}.{name}") };
                let streams = match field.value() {
                    DeValue::Array(items) if name == "stream" => items.len(),
                    _ => place.streams,
                };
                keys(&field, &bare, Place { streams, ..place }, scenario)?;
            }
        }
        DeValue::Array(items) if items.iter().any(|item| matches!(item.get_ref(), DeValue::Table(_))) => {
            for field in field.list(items.len())? {
                keys(&field, bare, place, scenario)?;
            }
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
pub(crate) fn needy() -> impl Iterator<Item = &'static str> {
    NEEDS.iter().flat_map(|need| need.keys).copied()
}
