//! Results as pages and comparisons have them, cut down to what a page can hold: names are short,
//! rows are bounded, long series are binned. They are made of results, or read from JSON, also of
//! older versions.
//!
//! | file | what it is the result of |
//! |---|---|
//! | `trace` | a trace that `refault report` has looked at itself |
//! | `replay` | `refault replay TRACE --json` |
//! | `scenario` | `refault replay SCENARIO --json`, or a scenario that `refault report` ran |
//! | `bench` | `refault bench --json` |
//! | `size` | `refault size --json` |
//! | `run` | `refault run --json` |
//! | `verify` | `refault verify --json` |
//! | `whatif` | `refault whatif --json` |
//! | `sweep` | the summary of Python's `refault.sweep` |
//!
//! `input` tells which kind of result a file has, or makes; `content` that it has what is drawn.
//!
//! It reads the results of `replay` and `scenario`.

pub mod bench;
mod content;
mod input;
pub mod replay;
pub mod run;
pub mod scenario;
pub mod size;
pub mod sweep;
pub mod trace;
pub mod verify;
pub mod whatif;

pub use input::{InputKind, read_text};

use crate::names::{sentence, shown};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Rows of any list that a page shows at most.
pub const MOST_ROWS: usize = 400;
/// Notes at most.
pub const MOST_NOTES: usize = 20;
/// Points of a series at most.
pub const MOST_POINTS: usize = 480;

/// A result, with what it is called.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Source {
    /// A file name, for people.
    pub name: String,
    /// The result.
    pub document: Document,
}

impl Source {
    /// A result under that name.
    pub fn new(name: &str, document: Document) -> Source {
        Source { name: shown(name), document }
    }
}

/// A result.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[allow(missing_docs, reason = "the table of the module says what they are")]
pub enum Document {
    Trace(Box<trace::TraceDocument>),
    Replay(Box<replay::ReplayDocument>),
    Scenario(Box<scenario::ScenarioDocument>),
    Bench(Box<bench::BenchDocument>),
    Size(Box<size::SizeDocument>),
    Run(Box<run::RunDocument>),
    Verify(Box<verify::VerifyDocument>),
    WhatIf(Box<whatif::WhatIfDocument>),
    Sweep(Box<sweep::SweepDocument>),
}

/// Kind of result that a JSON text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the table of the module says what they are")]
pub enum Kind {
    Replay,
    Scenario,
    Bench,
    Size,
    Run,
    Verify,
    WhatIf,
    Sweep,
}

impl Kind {
    /// By the keys that only it has.
    fn of(value: &Value) -> Option<Kind> {
        let has = |key: &str| value.get(key).is_some();
        match () {
            () if has("summary") && has("sweep") => Some(Kind::Sweep),
            () if has("alternatives") && has("today") => Some(Kind::WhatIf),
            () if has("rows") => Some(Kind::Replay),
            () if has("runs") => Some(Kind::Scenario),
            () if has("benchmarks") => Some(Kind::Bench),
            () if has("points") && has("target") => Some(Kind::Size),
            () if has("verdict") && has("windows") => Some(Kind::Verify),
            () if has("memory_max_bytes") && has("command") => Some(Kind::Run),
            () => None,
        }
    }
}

impl Document {
    /// A result as a command printed it.
    ///
    /// # Errors
    ///
    /// It is no JSON, or none of these results.
    pub fn from_json(text: &str) -> Result<Document, String> {
        let value: Value = serde_json::from_str(text).map_err(|e| format!("is no JSON: {e}"))?;
        let unknown = "is JSON, but not of refault replay, size, bench, run, verify or whatif with --json";
        let kind = Kind::of(&value).ok_or(unknown)?;
        content::check(kind, &value)?;
        let broken = |e: serde_json::Error| format!("is not what refault writes: {e}");
        let settings = settings(&value);
        let mut document = match kind {
            Kind::Replay => Document::Replay(Box::new(replay::read(value).map_err(broken)?)),
            Kind::Scenario => Document::Scenario(Box::new(scenario::read(value).map_err(broken)?)),
            Kind::Bench => Document::Bench(Box::new(bench::read(value).map_err(broken)?)),
            Kind::Size => Document::Size(Box::new(size::read(value).map_err(broken)?)),
            Kind::Run => Document::Run(Box::new(run::read(value).map_err(broken)?)),
            Kind::Sweep => Document::Sweep(Box::new(sweep::read(value).map_err(broken)?)),
            Kind::WhatIf => Document::WhatIf(Box::new(whatif::read(value).map_err(broken)?)),
            Kind::Verify => Document::Verify(Box::new(verify::VerifyDocument::from_value(value).map_err(broken)?)),
        };
        document.note(settings);
        Ok(document)
    }

    /// Adds remarks, where there is a place for them.
    fn note(&mut self, more: Option<String>) {
        let notes = match self {
            Document::Trace(d) => &mut d.notes,
            Document::Replay(d) => &mut d.notes,
            Document::Scenario(d) => &mut d.notes,
            Document::Size(d) => &mut d.notes,
            Document::Verify(d) => &mut d.notes,
            Document::WhatIf(d) => &mut d.notes,
            Document::Bench(_) | Document::Run(_) | Document::Sweep(_) => return,
        };
        notes.extend(more);
    }

    /// Remarks on the traces that it is of.
    pub fn notes(&self) -> Vec<String> {
        let all: &[String] = match self {
            Document::Trace(d) => &d.notes,
            Document::Replay(d) => &d.notes,
            Document::Scenario(d) => &d.notes,
            Document::Size(d) => &d.notes,
            Document::Verify(d) => &d.notes,
            Document::WhatIf(d) => &d.notes,
            Document::Bench(_) | Document::Run(_) | Document::Sweep(_) => &[],
        };
        all.iter().take(MOST_NOTES).map(|note| sentence(note)).collect()
    }

    /// Summary in a line.
    pub fn facts(&self) -> String {
        match self {
            Document::Trace(d) => d.facts(),
            Document::Replay(d) => d.facts(),
            Document::Scenario(d) => d.facts(),
            Document::Bench(d) => d.facts(),
            Document::Size(d) => d.facts(),
            Document::Run(d) => d.facts(),
            Document::Verify(d) => d.facts(),
            Document::WhatIf(d) => d.facts(),
            Document::Sweep(d) => d.facts(),
        }
    }
}

/// The flags that a result says it was made with, as they are typed.
fn settings(value: &Value) -> Option<String> {
    let word = |flag: &str, value: &Value| match value {
        Value::Bool(_) => format!("--{flag}"),
        value => format!("--{flag} {}", value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
    };
    let words = |(flag, value): (&String, &Value)| match value {
        Value::Array(all) => all.iter().map(|value| word(flag, value)).collect::<Vec<_>>().join(" "),
        value => word(flag, value),
    };
    let all: Vec<_> = value.get("settings")?.as_object()?.iter().map(words).collect();
    (!all.is_empty()).then(|| format!("settings: {}", all.join(" ")))
}

/// Values of a long series, evenly chosen, and its last: at most one more than `most`.
fn chosen(all: &[f64], most: usize) -> Vec<f64> {
    let step = all.len().div_ceil(most).max(1);
    all.iter().enumerate().filter(|(n, _)| n % step == 0 || n + 1 == all.len()).map(|(_, &value)| value).collect()
}

/// Sums over equal parts of a series, at most `most` of them.
pub fn binned(all: &[u64], most: usize) -> Vec<u64> {
    if all.len() <= most {
        return all.to_vec();
    }
    let begin = |n: usize| n * all.len() / most;
    (0..most).map(|n| all[begin(n)..begin(n + 1)].iter().sum()).collect()
}
