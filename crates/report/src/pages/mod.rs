//! From a result to pages: a question, a sentence that answers it, figures.
//!
//! | file | the question |
//! |---|---|
//! | `memory` | How much memory is enough? |
//! | `policy` | Which policy? |
//! | `objects` | Who takes the memory, who misses? |
//! | `groups` | Which group takes the memory, which misses? |
//! | `when` | When? |
//! | `access` | What does access look like? |
//! | `inside` | What goes on inside? |
//! | `counters` | What did the kernel count, and when? |
//! | `verify` | What did the kernel do? |
//! | `replay`, `size`, `bench`, `scenario`, `run`, `whatif`, `sweep` | the pages of other results |
//! | `by_owner` | tasks and groups of a scenario over time |
//!
//! It reads `document` and makes `model`; the crate's root calls it.

mod access;
mod bench;
mod by_owner;
mod counters;
mod groups;
mod inside;
pub(crate) mod memory;
mod objects;
mod policy;
mod replay;
mod run;
mod scenario;
mod size;
mod sweep;
mod verify;
mod whatif;
mod when;

use crate::model::{Axis, Page};
use refault::curve::Curves;
use refault::document::Document;
use refault::document::trace::TraceDocument;
use refault::units::Unit;

/// The pages of a result.
pub(crate) fn of(document: &Document) -> Vec<Page> {
    match document {
        Document::Trace(d) => [
            memory::page(&Curves::of_trace(d)),
            Some(policy::page(d)),
            Some(objects::page(d)),
            groups::page(d),
            Some(when::page(d)),
            Some(access::page(d)),
            Some(inside::page(d)),
            d.verify.as_ref().map(|verified| verify::page(verified, Some(d))),
        ]
        .into_iter()
        .flatten()
        .collect(),
        Document::Replay(d) => replay::pages(d),
        Document::Scenario(d) => scenario::pages(d),
        Document::Bench(d) => bench::pages(d),
        Document::Size(d) => vec![size::page(d)],
        Document::Run(d) => run::pages(d),
        Document::Verify(d) => vec![verify::page(d, None)],
        Document::WhatIf(d) => whatif::pages(d),
        Document::Sweep(d) => vec![sweep::page(d)],
    }
}

/// The name that charts of the time of a trace share.
const TIME: &str = "time";

/// The time axis of a trace: seconds if it has them, accesses otherwise; where each window begins.
fn time_axis(d: &TraceDocument) -> (Axis, Vec<f64>) {
    let starts = d.windows.len().saturating_sub(1);
    match &d.window_s {
        Some(seconds) => (Axis::new("time", Unit::Seconds), seconds.iter().take(starts).copied().collect()),
        None => (Axis::new("access", Unit::Count), d.windows.iter().take(starts).map(|&n| n as f64).collect()),
    }
}

/// As [`time_axis`], for counts of windows: a last window that is shorter is left out, as it has
/// less of everything.
fn whole_time_axis(d: &TraceDocument) -> (Axis, Vec<f64>) {
    let (axis, mut starts) = time_axis(d);
    let long: Vec<u64> = d.windows.windows(2).map(|w| w[1].saturating_sub(w[0])).collect();
    if let ([.., _, last], Some(&first)) = (&long[..], long.first())
        && *last < first
    {
        starts.pop();
    }
    (axis, starts)
}

/// A place of the time axis in words.
fn when_text(d: &TraceDocument, window: usize) -> String {
    let (axis, starts) = time_axis(d);
    let at = starts.get(window).copied().unwrap_or(0.0);
    match axis.unit {
        Unit::Seconds => axis.unit.text(at),
        _ => format!("access {}", axis.unit.text(at)),
    }
}

fn share(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_last_window_has_no_counts() {
        let starts = |windows: Vec<u64>| whole_time_axis(&TraceDocument { windows, ..TraceDocument::default() }).1;
        assert_eq!(starts(vec![0, 64, 128, 130]), [0.0, 64.0]);
        assert_eq!(starts(vec![0, 64, 128, 192]), [0.0, 64.0, 128.0]);
        assert_eq!(starts(vec![0, 10]), [0.0]);
    }
}
