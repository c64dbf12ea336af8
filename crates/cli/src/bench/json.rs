//! The result for programs; the schema is in docs/lab.md.

use super::report::{Report, Row, Side, better_name};
use crate::Failure;
use crate::lab::{ending_name, overrides};
use serde_json::{Map, Value, json};

/// All reports as one object.
pub(super) fn json(reports: &[Report]) -> Result<String, Failure> {
    let benchmarks: Vec<_> = reports.iter().map(report).collect();
    let all = json!({ "refault": env!("CARGO_PKG_VERSION"), "benchmarks": benchmarks });
    Ok(serde_json::to_string_pretty(&all)? + "\n")
}

fn report(report: &Report) -> Value {
    json!({
        "name": report.name,
        "about": report.about,
        "source": report.source,
        "scale": report.scale,
        "seeds": report.seeds,
        "before": side(&report.sides[0]),
        "after": side(&report.sides[1]),
        "rows": report.rows.iter().map(row).collect::<Vec<_>>(),
        "notes": report.notes,
    })
}

fn side(side: &Side) -> Value {
    let overrides: Map<_, _> = overrides(&side.policy).into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
    json!({
        "policy": side.policy.policy.name(),
        "overrides": overrides,
        "virtual_seconds": side.virtual_seconds,
        "real_seconds": side.real_seconds,
        "events": side.events,
        "oom_kills": side.oom_kills,
        "ending": ending_name(side.ending),
    })
}

/// Numbers that are not finite become null.
fn row(row: &Row) -> Value {
    json!({
        "metric": row.spec.metric,
        "label": row.spec.label,
        "unit": row.spec.unit,
        "better": row.spec.better.map(better_name),
        "published_before": row.spec.before,
        "published_after": row.spec.after,
        "before": row.ours[0],
        "after": row.ours[1],
        "published_ratio": row.published_ratio(),
        "ratio": row.ratio,
        "ratios": row.ratios,
        "band": row.spec.band,
        "within": row.within,
    })
}
