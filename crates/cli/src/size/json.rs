//! The result for programs; the schema is in docs/reference/size.md.

use super::report::{Change, Figure, Point, Recorded, Report};
use super::text::warnings;
use crate::Failure;
use serde_json::{Map, Value, json};

/// One object.
pub(super) fn json(report: &Report, of_traces: &[String]) -> Result<String, Failure> {
    let bytes = |pages: u64| pages * report.page_size;
    let answer = report.answer();
    let notes = [&report.notes[..], of_traces].concat();
    let all = json!({
        "refault": env!("CARGO_PKG_VERSION"),
        "name": report.name,
        "group": report.group,
        "limit": report.limit,
        "target": report.target.to_string(),
        "metric": report.target.metric().name(),
        "bound": report.target.bound(),
        "policy": report.policy,
        "seed": report.seed,
        "scale": report.scale,
        "page_size": report.page_size,
        "low_bytes": bytes(report.grid.low),
        "high_bytes": bytes(report.grid.high),
        "resolution_bytes": bytes(report.grid.step),
        "verdict": report.verdict_name(),
        "answer_pages": answer,
        "answer_bytes": answer.map(bytes),
        "monotone": report.is_monotone(),
        "warnings": warnings(report),
        "baseline": report.baseline.map(|of| json!({
            "pages": (of.pages != u64::MAX).then_some(of.pages),
            "kernel": of.kernel,
            "lab": of.lab,
            "trust": of.trust.name(),
        })),
        "certain_bytes": report.certain().map(bytes),
        "possible_bytes": report.hopeful().map(bytes),
        "notes": notes,
        "doubted": report.doubted,
        "recorded": report.recorded.as_ref().map(|of| recorded(report, of)),
        "sample": report.sampled.map(|of| json!({ "one_in": of.one_in.0, "samples": of.samples })),
        "points": report.points.iter().map(|p| point(report, p)).collect::<Vec<_>>(),
    });
    Ok(serde_json::to_string_pretty(&all)? + "\n")
}

fn recorded(report: &Report, recorded: &Recorded) -> Value {
    let bytes = |pages: u64| pages * report.page_size;
    let change = |change: &Change| {
        let object = change.object.as_ref().map(|of| json!({ "name": of.name, "share": of.share }));
        json!({
            "pages": change.pages,
            "bytes": bytes(change.pages),
            "misses": if change.is_out_of_memory { Value::Null } else { change.misses.into() },
            "read_bytes": if change.is_out_of_memory { Value::Null } else { change.read_bytes.into() },
            "more_misses": change.more(recorded).filter(|_| !change.is_out_of_memory),
            "object": object,
            "out_of_memory": change.is_out_of_memory,
        })
    };
    json!({
        "pages": recorded.pages,
        "bytes": bytes(recorded.pages),
        "misses": recorded.misses,
        "read_bytes": recorded.read_bytes,
        "changes": recorded.changes.iter().map(change).collect::<Vec<_>>(),
    })
}

fn point(report: &Report, point: &Point) -> Value {
    let mut all = Map::new();
    all.insert("pages".into(), point.pages.into());
    all.insert("bytes".into(), (point.pages * report.page_size).into());
    all.insert("value".into(), point.value.into());
    all.insert("low".into(), point.bounds.map_or(point.value, |of| Some(of.0)).into());
    all.insert("high".into(), point.bounds.map_or(point.value, |of| Some(of.1)).into());
    all.insert("met".into(), point.met.into());
    all.insert("failed".into(), point.failed.into());
    for (name, beside) in &point.beside {
        let value = match *beside {
            Figure::Count(n) | Figure::Nanoseconds(n) | Figure::Bytes(n) => n.into(),
            Figure::Number(n) | Figure::Share(n) | Figure::Percent(n) => n.into(),
        };
        all.insert((*name).into(), value);
    }
    Value::Object(all)
}
