//! Content that a result has of each kind: without it there is nothing to draw, and a page of zeros
//! would say something that nobody has found.

use super::Kind;
use serde_json::Value;

/// Keys of each result of a kind, and of the lists in them that have something.
struct Content {
    /// Keys of the whole object.
    whole: &'static [&'static str],
    /// Its list of results; empty: it is one itself.
    list: &'static str,
    /// Keys of each of these.
    each: &'static [&'static str],
    /// Lists in each of these, with a member at least.
    filled: &'static [&'static str],
}

impl Kind {
    fn content(self) -> Content {
        match self {
            Kind::Replay => Content {
                whole: &["refault"],
                list: "rows",
                each: &["trace", "policy", "memory_pages", "footprint_pages", "page_size"],
                filled: &[],
            },
            Kind::Scenario => Content {
                whole: &["refault"],
                list: "runs",
                each: &["scenario", "policy", "ending", "virtual_seconds"],
                filled: &["tasks"],
            },
            Kind::Bench => Content {
                whole: &["refault"],
                list: "benchmarks",
                each: &["name", "scale"],
                filled: &["variants", "rows"],
            },
            Kind::Size => Content {
                whole: &["refault", "name", "limit", "policy"],
                list: "points",
                each: &["bytes", "value"],
                filled: &[],
            },
            Kind::Verify => Content {
                whole: &["refault", "recording", "kernel", "policy", "accesses"],
                list: "",
                each: &[],
                filled: &[],
            },
            Kind::Sweep => Content {
                whole: &["refault", "sweep"],
                list: "summary",
                each: &["policy", "memory", "against", "traces", "p50"],
                filled: &[],
            },
            Kind::WhatIf => Content {
                whole: &["refault", "name", "about"],
                list: "alternatives",
                each: &["name", "effects"],
                filled: &[],
            },
            Kind::Run => Content { whole: &["refault", "wall_s"], list: "", each: &[], filled: &["command"] },
        }
    }
}

/// Fails where something is missing that a page is drawn from.
///
/// # Errors
/// The key, and where it is missing.
pub(super) fn check(kind: Kind, value: &Value) -> Result<(), String> {
    let Content { whole, list, each, filled } = kind.content();
    has(value, "the result", whole)?;
    if list.is_empty() {
        return all_filled(value, "the result", filled);
    }
    let results = value.get(list).and_then(Value::as_array).ok_or_else(|| format!("has no list {list:?}"))?;
    if results.is_empty() {
        return Err(format!("has nothing in {list:?}, so that there is nothing to show"));
    }
    for (n, result) in results.iter().enumerate() {
        let place = format!("{list}[{n}]");
        has(result, &place, each)?;
        all_filled(result, &place, filled)?;
        if kind == Kind::Replay {
            // Rows with memory cgroups have their figures in these.
            match result.get("groups") {
                Some(_) => all_filled(result, &place, &["groups"])?,
                None => has(result, &place, &["accesses", "misses"])?,
            }
        }
    }
    Ok(())
}

fn has(value: &Value, place: &str, keys: &[&str]) -> Result<(), String> {
    match keys.iter().find(|key| value.get(key).is_none()) {
        Some(key) => {
            Err(format!("has no {key:?} in {place}, so that there is nothing to show; make it anew with --json"))
        }
        None => Ok(()),
    }
}

fn all_filled(value: &Value, place: &str, keys: &[&str]) -> Result<(), String> {
    let is_filled = |key: &&&str| value.get(key).and_then(Value::as_array).is_some_and(|all| !all.is_empty());
    match keys.iter().find(|key| !is_filled(key)) {
        Some(key) => Err(format!(
            "has nothing in {key:?} of {place}, so that there is nothing to show; make it anew with --json"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;
    use serde_json::{Map, json};

    const KINDS: [Kind; 8] =
        [Kind::Replay, Kind::Scenario, Kind::Bench, Kind::Size, Kind::Run, Kind::Verify, Kind::WhatIf, Kind::Sweep];

    /// The least that a result of a kind has; types are those that its document reads.
    fn least(kind: Kind) -> Value {
        let value = |key: &str| match key {
            "memory_pages" | "footprint_pages" | "page_size" | "bytes" | "accesses" | "misses" => json!(1),
            "traces" => json!(1),
            "p50" | "value" | "scale" | "virtual_seconds" | "wall_s" => json!(1.0),
            "command" => json!(["true"]),
            "tasks" | "variants" | "rows" => json!([{}]),
            "effects" => json!([]),
            _ => json!("x"),
        };
        let object = |keys: &[&str]| keys.iter().map(|key| ((*key).to_owned(), value(key))).collect::<Map<_, _>>();
        let Content { whole, list, each, filled } = kind.content();
        let mut all = object(whole);
        let own: &[&str] = if kind == Kind::Replay { &["accesses", "misses"] } else { &[] };
        match list {
            "" => all.extend(object(filled)),
            list => _ = all.insert(list.to_owned(), json!([object(&[each, filled, own].concat())])),
        }
        // Keys by which the kind is known.
        let known: &[(&str, Value)] = match kind {
            Kind::Size => &[("target", json!("x"))],
            Kind::Verify => &[("verdict", json!({})), ("windows", json!([]))],
            Kind::Run => &[("memory_max_bytes", json!(1))],
            Kind::WhatIf => &[("today", json!({}))],
            _ => &[],
        };
        all.extend(known.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        Value::Object(all)
    }

    /// The same without one key, in every place that has one.
    fn with_one_less(value: &Value) -> Vec<(String, Value)> {
        let mut all = Vec::new();
        let Value::Object(object) = value else { return all };
        for (key, inner) in object {
            let mut less = object.clone();
            less.remove(key);
            all.push((key.clone(), Value::Object(less)));
            for (inner_key, changed) in inner.get(0).into_iter().flat_map(with_one_less) {
                let mut other = object.clone();
                other[key] = json!([changed]);
                all.push((inner_key, Value::Object(other)));
            }
            if inner.as_array().is_some_and(|all| !all.is_empty()) {
                let mut empty = object.clone();
                empty[key] = json!([]);
                all.push((key.clone(), Value::Object(empty)));
            }
        }
        all
    }

    /// A result that lacks what is drawn is refused with a line that names it: pages of zeros were
    /// made of `{"rows":[{}]}`.
    #[test]
    fn regression_results_without_content_are_refused() {
        for kind in KINDS {
            let whole = least(kind);
            let read = |value: &Value| Document::from_json(&value.to_string());
            assert!(read(&whole).is_ok(), "{kind:?}: {:?}", read(&whole).err());
            for (key, less) in with_one_less(&whole) {
                if ["windows", "verdict", "target", "memory_max_bytes", "today"].contains(&key.as_str()) {
                    continue;
                }
                let error = read(&less).expect_err(&key);
                assert!(
                    error.contains(&format!("{key:?}")) || error.starts_with("is JSON, but"),
                    "{kind:?} {key}: {error}"
                );
            }
        }
    }
}
