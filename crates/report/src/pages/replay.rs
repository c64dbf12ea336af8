//! The pages of `refault replay --json`.

use super::memory;
use super::share;
use crate::model::{Axis, Body, Cell, Chart, Colour, Figure, Page, Series, Shape, Table};
use crate::words;
use refault::curve::Curves;
use refault::document::replay::{ReplayDocument, ReplayRow};
use refault::units::{Unit, bytes};

/// The pages.
pub(super) fn pages(d: &ReplayDocument) -> Vec<Page> {
    let mut all = Vec::new();
    let traces = d.traces();
    for (n, trace) in traces.iter().enumerate() {
        let name = |page: Page| Page {
            id: format!("t{}-{}", n + 1, page.id),
            question: if traces.len() > 1 { format!("{trace}: {}", page.question) } else { page.question.clone() },
            ..page
        };
        all.extend(memory::page(&Curves::of_replay(d, trace)).map(name));
        let rows: Vec<_> = d.rows.iter().filter(|r| r.trace == *trace).collect();
        all.push(name(policy(&rows)));
        all.extend(when(&rows).map(name));
    }
    all
}

fn memory_text(row: &ReplayRow) -> String {
    row.memory_pages.map_or("no limit".into(), |pages| bytes((pages * row.page_size) as f64))
}

fn policy(rows: &[&ReplayRow]) -> Page {
    let linux = || rows.iter().filter(|r| r.policy != "opt" && r.group.as_deref().is_none_or(|g| g == "/"));
    if let [only] = linux().collect::<Vec<_>>()[..] {
        let misses = words::share(100.0 * only.miss_ratio());
        let miss = words::miss();
        let answer = format!("Under {} with {} {misses} of the accesses {miss}.", only.policy, memory_text(only));
        return Page::new("rows", "Which policy?", answer).with_all(bars(rows)).with(table(rows));
    }
    let best = linux().min_by(|a, b| a.miss_ratio().total_cmp(&b.miss_ratio()));
    let answer = best.map_or(String::new(), |r| {
        format!(
            "Of all rows {} with {} is best: {} of the accesses {}.",
            r.policy,
            memory_text(r),
            words::share(100.0 * r.miss_ratio()),
            words::miss()
        )
    });
    Page::new("rows", "Which policy?", answer).with_all(bars(rows)).with(table(rows))
}

/// The rows beside each other.
fn bars(rows: &[&ReplayRow]) -> Option<Figure> {
    let mut sizes: Vec<_> = rows.iter().map(|r| r.memory_pages).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut policies: Vec<(&str, Option<&str>)> = Vec::new();
    for row in rows {
        let one = (row.policy.as_str(), row.group.as_deref());
        if !policies.contains(&one) {
            policies.push(one);
        }
    }
    if policies.len() > 8 || sizes.len() > 40 {
        return None;
    }
    let label =
        |size: &Option<u64>| rows.iter().find(|r| r.memory_pages == *size).map_or(String::new(), |r| memory_text(r));
    let series = policies.iter().map(|&(policy, group)| Series {
        name: group.map_or(policy.to_owned(), |g| format!("{policy} {g}")),
        colour: Colour::of_policy(policy),
        dash: group.map_or(Series::of_policy(policy, []).dash, |_| None),
        values: (sizes.iter())
            .map(|s| {
                let row =
                    rows.iter().find(|r| r.memory_pages == *s && r.policy == policy && r.group.as_deref() == group);
                row.map(|r| 100.0 * r.miss_ratio())
            })
            .collect(),
    });
    let mut chart = Chart::of_misses(
        Shape::Lines,
        Axis::new("memory", Unit::Bytes),
        (0..sizes.len()).map(|n| n as f64).collect(),
        series.collect(),
    );
    chart.labels = sizes.iter().map(label).collect();
    let meaning = "The share of the accesses for each size and policy that was replayed.";
    Some(Figure::new(words::either("Miss rate", "Hit rate"), meaning, "reference/replay.md#hits", Body::Chart(chart)))
}

fn table(rows: &[&ReplayRow]) -> Figure {
    let grouped = rows.iter().any(|r| r.group.is_some());
    let mut heads = vec!["policy".to_owned()];
    heads.extend(grouped.then(|| "group".to_owned()));
    heads.extend(
        ["memory", "accesses", &words::misses(), &words::either("miss rate", "hit rate"), "refaults", "evicted"]
            .map(String::from),
    );
    heads.extend(["swapped in", "swapped out"].map(String::from));
    let row = |r: &&ReplayRow| {
        let mut cells = vec![Cell::Text(r.policy.clone())];
        cells.extend(grouped.then(|| Cell::Text(r.group.clone().unwrap_or_default())));
        let memory = r.memory_pages.map_or(Cell::None, |p| Cell::Number((p * r.page_size) as f64, Unit::Bytes));
        let count = |names: &[&str]| match r.counters.is_empty() {
            true => Cell::None,
            false => Cell::Number(r.sum(names) as f64, Unit::Count),
        };
        cells.extend([
            memory,
            Cell::Number(r.accesses as f64, Unit::Count),
            Cell::misses(r.misses, r.accesses),
            Cell::share(share(r.misses, r.accesses)),
            count(&["workingset_refault_anon", "workingset_refault_file"]),
            count(&["pgsteal_anon", "pgsteal_file"]),
            count(&["pswpin"]),
            count(&["pswpout"]),
        ]);
        cells
    };
    let table = Table { heads, rows: rows.iter().map(row).collect(), searchable: true };
    Figure::new("All rows", "What refault replay printed.", "reference/replay.md#columns", Body::Table(table))
}

/// Lines of a chart of time at most.
const LINES: usize = 8;

fn when(rows: &[&ReplayRow]) -> Option<Page> {
    let with: Vec<_> = rows.iter().filter(|r| r.window_misses.len() > 1 && r.group.is_none()).take(LINES).collect();
    let windows = with.first()?.window_misses.len();
    let accesses = with.first()?.accesses;
    let begin = |n: usize| (n as f64 * accesses as f64 / windows as f64).round();
    let series = with.iter().map(|r| {
        let rates = (0..windows).map(|n| {
            let misses = r.window_misses.get(n).copied().unwrap_or(0) as f64;
            100.0 * misses / (begin(n + 1) - begin(n)).max(1.0)
        });
        Series::new(format!("{} {}", r.policy, memory_text(r)), Colour::of_policy(&r.policy), rates)
    });
    let mut chart = Chart::of_misses(
        Shape::Lines,
        Axis::new("access", Unit::Count),
        (0..windows).map(begin).collect(),
        series.collect(),
    );
    chart.time = Some(super::TIME);
    let worst = with[0].window_misses.iter().enumerate().max_by_key(|(_, n)| **n)?;
    let answer = format!(
        "{} with {} misses most in the window from access {} on.",
        with[0].policy,
        memory_text(with[0]),
        Unit::Count.text(begin(worst.0))
    );
    let meaning = "The share of the accesses of each window.";
    let title = words::either("Miss rate over the trace", "Hit rate over the trace");
    let figure = Figure::new(title, meaning, "reference/replay.md#flags", Body::Chart(chart));
    Some(Page::new("when", "When?", answer).with(figure))
}
