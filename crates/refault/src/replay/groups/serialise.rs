//! A row for programs; the schema is in docs/reference/replay.md.

use super::row::{GroupRow, GroupedRow, limits};
use refault_mm::MemcgLimits;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

impl Serialize for GroupedRow {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        row(self).serialize(to)
    }
}

fn row(row: &GroupedRow) -> Value {
    let memory = Some(row.memory_pages).filter(|&pages| pages != u64::MAX);
    json!({
        "trace": row.trace,
        "policy": row.policy.name(),
        "kernel": row.kernel.name(),
        "memory_pages": memory,
        "memory_bytes": memory.map(|pages| pages * row.page_size),
        "page_size": row.page_size,
        "footprint_pages": row.footprint_pages,
        "trace_accesses": row.trace_accesses,
        "seed": row.seed,
        "oom_at": row.oom_at,
        "maccesses_per_s": row.maccesses_per_s(),
        "groups": row.groups.iter().map(|g| group(g, row.page_size)).collect::<Vec<_>>(),
    })
}

/// The limits that are not the kernel's defaults, by the names of their files; sizes in pages.
pub fn limits_json(of: &MemcgLimits) -> Value {
    let pages = limits(of).into_iter().map(|(name, pages)| match pages {
        u64::MAX => (name, "max".into()),
        pages => (name, pages.into()),
    });
    let swappiness = of.swappiness.map(|n| ("memory.swappiness", n.into()));
    let writeback = (!of.zswap_writeback).then_some(("memory.zswap.writeback", 0.into()));
    let oom_group = of.oom_group.then_some(("memory.oom.group", 1.into()));
    Value::Object(
        pages
            .chain(writeback)
            .chain(swappiness)
            .chain(oom_group)
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

fn group(group: &GroupRow, page_size: u64) -> Value {
    let count = &group.count;
    let mut all = Map::new();
    all.insert("path".into(), group.path.clone().into());
    all.insert("limits".into(), limits_json(&group.limits));
    for (name, n) in [("accesses", count.accesses), ("hits", group.hits()), ("misses", count.misses)] {
        all.insert(name.into(), n.into());
    }
    all.insert("hit_rate".into(), group.hit_rate().into());
    for (name, n) in group.shown() {
        all.insert(name.into(), n.into());
    }
    all.insert("skipped".into(), count.skipped.into());
    all.insert("killed_at".into(), count.killed_at.into());
    all.insert("high_sleep_ns".into(), count.slept_ns.into());
    let object = |pairs: &mut dyn Iterator<Item = (&'static str, u64)>| {
        Value::Object(pairs.map(|(name, n)| (name.to_owned(), n.into())).collect())
    };
    all.insert("memory.peak".into(), (group.gauge("memory.peak") * page_size).into());
    all.insert("memory.events".into(), object(&mut group.events.iter().copied()));
    all.insert("memory.swap.events".into(), object(&mut group.swap_events.iter().copied()));
    all.insert("counters".into(), object(&mut group.counters.iter()));
    all.insert("gauges".into(), object(&mut group.gauges.iter().map(|g| (g.name, g.value))));
    Value::Object(all)
}
