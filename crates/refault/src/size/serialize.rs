//! The result for programs; the schema is in docs/reference/size.md.

use super::sizing::{Change, Figure, Point, Recorded, Sizing};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

/// Keys of a search that a summary has not.
const OF_TARGETS: [&str; 8] =
    ["target", "metric", "bound", "verdict", "answer_pages", "answer_bytes", "certain_bytes", "possible_bytes"];

impl Serialize for Sizing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = value(self);
        if let (Some(summary), Value::Object(all)) = (&self.summary, &mut all) {
            let bytes = |at: usize| self.points[at].pages * self.page_size;
            all.retain(|key, _| !OF_TARGETS.contains(&key.as_str()));
            all.insert("knee_bytes".into(), summary.knee.map(bytes).into());
            all.insert("cut_bytes".into(), summary.cut.map(bytes).into());
        }
        all.serialize(serializer)
    }
}

/// One object.
fn value(sizing: &Sizing) -> Value {
    let bytes = |pages: u64| pages * sizing.page_size;
    let answer = sizing.answer();
    json!({
        "refault": env!("CARGO_PKG_VERSION"),
        "name": sizing.name,
        "group": sizing.group,
        "limit": sizing.limit.file(),
        "target": sizing.target.to_string(),
        "metric": sizing.target.metric().name(),
        "bound": sizing.target.bound(),
        "policy": sizing.policy,
        "seed": sizing.seed,
        "scale": sizing.scale,
        "page_size": sizing.page_size,
        "low_bytes": bytes(sizing.grid.low),
        "high_bytes": bytes(sizing.grid.high),
        "resolution_bytes": bytes(sizing.grid.step),
        "verdict": sizing.verdict_name(),
        "answer_pages": answer,
        "answer_bytes": answer.map(bytes),
        "monotone": sizing.is_monotone(),
        "warnings": sizing.warnings(),
        "baseline": sizing.baseline.map(|of| json!({
            "pages": (of.pages != u64::MAX).then_some(of.pages),
            "kernel": of.kernel,
            "lab": of.lab,
            "trust": of.trust.name(),
        })),
        "certain_bytes": sizing.certain().map(bytes),
        "possible_bytes": sizing.hopeful().map(bytes),
        "notes": sizing.notes,
        "doubted": sizing.doubted,
        "recorded": sizing.recorded.as_ref().map(|of| recorded(sizing, of)),
        "sample": sizing.sampled.map(|of| json!({ "one_in": of.one_in.0, "samples": of.samples })),
        "points": sizing.points.iter().map(|p| point(sizing, p)).collect::<Vec<_>>(),
    })
}

fn recorded(sizing: &Sizing, recorded: &Recorded) -> Value {
    let bytes = |pages: u64| pages * sizing.page_size;
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

fn point(sizing: &Sizing, point: &Point) -> Value {
    let mut all = Map::new();
    all.insert("pages".into(), point.pages.into());
    all.insert("bytes".into(), (point.pages * sizing.page_size).into());
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
