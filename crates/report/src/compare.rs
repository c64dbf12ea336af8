//! What differs between results.
//!
//! Each result says its numbers by name; numbers of the same name stand beside each other. It
//! calls `pages` for what a number is of; the crate's root calls it.

use crate::document::trace::TraceDocument;
use crate::document::{Document, Source};
use crate::model::{Axis, Body, Cell, Chart, Figure, Page, Shape, Table, Verdict};
use crate::pages::memory::{Curves, Line};
use crate::units::Unit;

/// A number of a result.
struct Metric {
    name: String,
    unit: Unit,
    value: f64,
    /// Whether less of it is better; none: neither is.
    less: Option<bool>,
}

fn metric(name: impl Into<String>, unit: Unit, value: f64, less: Option<bool>) -> Metric {
    Metric { name: name.into(), unit, value, less }
}

/// Numbers of a table at most.
const MOST: usize = 400;

/// The page that compares; none of one result alone.
pub(crate) fn pages(sources: &[Source]) -> Vec<Page> {
    let [first, others @ ..] = sources else { return Vec::new() };
    if others.is_empty() {
        return Vec::new();
    }
    let (rows, tally) = rows(first, others);
    let mut heads = vec!["what".to_owned(), first.name.clone()];
    for other in others {
        heads.extend([other.name.clone(), "difference".into()]);
    }
    let answer = match rows.is_empty() {
        true => "The inputs have no number in common: each has its own pages below.".to_owned(),
        false => format!(
            "Of {} numbers that both have, {} are better than in {}, {} are worse, and {} are the same or neither.",
            rows.len(),
            tally[0],
            first.name,
            tally[1],
            tally[2]
        ),
    };
    let mut page = Page::new("compare", "What is different?", answer);
    if let Some(chart) = curves(sources) {
        let meaning = "The curves of all inputs on the same axes.";
        page = page.with(Figure::new(
            "Misses against memory",
            meaning,
            "reference/report.md#comparison",
            Body::Chart(chart),
        ));
    }
    if !rows.is_empty() {
        let meaning = "Blue is better, orange is worse, and the word says it, too. Differences of percents are points.";
        let table = Table { heads, rows, searchable: true };
        page = page.with(Figure::new("Differences", meaning, "reference/report.md#comparison", Body::Table(table)));
    }
    vec![page]
}

/// A row for each number that the first and another have; how many are better, worse, neither.
fn rows(first: &Source, others: &[Source]) -> (Vec<Vec<Cell>>, [usize; 3]) {
    let others: Vec<_> = others.iter().map(|other| metrics(&other.document)).collect();
    let (mut rows, mut tally) = (Vec::new(), [0; 3]);
    for m in metrics(&first.document).into_iter().take(MOST) {
        let mut cells = vec![Cell::Text(m.name.clone()), Cell::Number(m.value, m.unit)];
        let mut known = false;
        for other in &others {
            let Some(o) = other.iter().find(|o| o.name == m.name) else {
                cells.extend([Cell::None, Cell::None]);
                continue;
            };
            let verdict = verdict(m.value, o.value, m.less);
            if !known {
                tally[verdict as usize] += 1;
            }
            known = true;
            cells.extend([Cell::Number(o.value, o.unit), Cell::Difference(o.value - m.value, m.unit, verdict)]);
        }
        if known {
            rows.push(cells);
        }
    }
    (rows, tally)
}

/// Differences of less than a thousandth are none.
fn verdict(before: f64, after: f64, less: Option<bool>) -> Verdict {
    let is_same = (after - before).abs() <= 1e-3 * before.abs().max(after.abs());
    match less {
        Some(less) if !is_same => {
            if (after < before) == less {
                Verdict::Better
            } else {
                Verdict::Worse
            }
        }
        _ => Verdict::Neither,
    }
}

fn metrics(document: &Document) -> Vec<Metric> {
    match document {
        Document::Trace(d) => of_trace(d),
        Document::Replay(d) => (d.rows.iter())
            .flat_map(|r| {
                let memory =
                    r.memory_pages.map_or("no limit".into(), |p| crate::units::bytes((p * r.page_size) as f64));
                let group = r.group.as_ref().map_or(String::new(), |g| format!(" {g}"));
                let head = format!("{}, {memory}{group}", r.policy);
                let refaults = r.sum(&["workingset_refault_anon", "workingset_refault_file"]);
                [
                    metric(format!("{head}: misses"), Unit::Percent, 100.0 * r.miss_ratio(), Some(true)),
                    metric(format!("{head}: refaults"), Unit::Count, refaults as f64, Some(true)),
                ]
            })
            .collect(),
        Document::Scenario(d) => of_scenario(d),
        Document::Bench(d) => of_bench(d),
        Document::Size(d) => {
            let answer = d.answer_bytes.map(|n| metric("smallest that is enough", Unit::Bytes, n as f64, Some(true)));
            answer.into_iter().collect()
        }
        Document::Verify(d) => {
            let (kernel, lab) = d.total().hit_rates();
            vec![
                metric("hits of the kernel", Unit::Percent, kernel, Some(false)),
                metric("hits of the lab", Unit::Percent, lab, None),
                metric("lab less kernel, absolute", Unit::Percent, (lab - kernel).abs(), Some(true)),
                metric("accesses that agree", Unit::Percent, 100.0 * d.agreement, Some(false)),
            ]
        }
        Document::Run(d) => (d.figures.iter())
            .map(|(name, &n)| {
                let cost = ["wall_s", "faults", "swapped", "refaults", "stall", "throttled", "errors", "lost"];
                let less = cost.iter().any(|c| name.contains(c)).then_some(true);
                metric(name, crate::pages::run_unit(name), n, less)
            })
            .collect(),
    }
}

fn of_trace(d: &TraceDocument) -> Vec<Metric> {
    let mut all = Vec::new();
    for line in &Curves::of_trace(d).all {
        if let Some((at, misses)) = line.knee() {
            all.push(metric(format!("{}: knee", line.policy), Unit::Bytes, at, Some(true)));
            all.push(metric(format!("{}: misses at the knee", line.policy), Unit::Percent, misses, Some(true)));
        }
    }
    for x in &d.details {
        let head = format!("{}, in detail", x.policy);
        let misses = 100.0 * x.misses as f64 / x.accesses.max(1) as f64;
        all.push(metric(format!("{head}: misses"), Unit::Percent, misses, Some(true)));
        for name in ["pgscan_anon", "pgscan_file", "pgsteal_anon", "pgsteal_file", "pswpin", "pswpout"] {
            let n = x.counters.get(name).copied().unwrap_or(0);
            all.push(metric(format!("{head}: {name}"), Unit::Count, n as f64, Some(true)));
        }
    }
    all.push(metric("accesses", Unit::Count, d.trace.accesses as f64, None));
    all.push(metric("footprint", Unit::Bytes, d.bytes(d.trace.footprint_pages as f64), None));
    all.push(metric("memory in detail", Unit::Bytes, d.bytes(d.detail_pages as f64), None));
    all.retain(|m| m.value != 0.0 || !m.name.contains(": p"));
    all
}

fn of_scenario(d: &crate::document::scenario::ScenarioDocument) -> Vec<Metric> {
    let mut all = Vec::new();
    for run in &d.runs {
        // With one policy each, the policy is what is compared.
        let head = if d.runs.len() > 1 { format!("{}: ", run.policy) } else { String::new() };
        all.push(metric(format!("{head}virtual time"), Unit::Seconds, run.virtual_seconds, Some(true)));
        for t in &run.tasks {
            all.push(metric(format!("{head}{}: ops/s", t.name), Unit::Number, t.ops_per_s, Some(false)));
            all.push(metric(format!("{head}{}: p99", t.name), Unit::Nanoseconds, t.latency_ns.p99 as f64, Some(true)));
            all.extend(
                t.hit_rate
                    .map(|r| metric(format!("{head}{}: hit rate", t.name), Unit::Percent, 100.0 * r, Some(false))),
            );
        }
        for g in &run.groups {
            all.push(metric(format!("{head}{}: refaults", g.path), Unit::Count, g.refaults as f64, Some(true)));
            all.extend(
                g.peak_bytes.map(|n| metric(format!("{head}{}: memory, peak", g.path), Unit::Bytes, n as f64, None)),
            );
            let some = g.pressure.some.total_us as f64 / 1e6;
            all.push(metric(format!("{head}{}: stalled, some", g.path), Unit::Seconds, some, Some(true)));
        }
    }
    all
}

fn of_bench(d: &crate::document::bench::BenchDocument) -> Vec<Metric> {
    let mut all = Vec::new();
    for bench in &d.benchmarks {
        for row in &bench.rows {
            let less = row.better.as_deref().map(|b| b == "lower");
            for f in &row.numbers {
                let name = format!("{}, {}, {}", bench.name, row.label, f.variant);
                all.extend(f.number.map(|n| metric(name, Unit::Number, n, less)));
            }
            for f in &row.ratios {
                let name = format!("{}, {}: {} / {}", bench.name, row.label, f.of, f.to);
                all.extend(f.number.map(|n| metric(name, Unit::Number, n, less)));
            }
        }
    }
    all
}

/// The curves of all inputs, if all have some.
fn curves(sources: &[Source]) -> Option<Chart> {
    let of = |source: &Source| match &source.document {
        Document::Trace(d) => Some(Curves::of_trace(d)),
        Document::Replay(d) => Some(crate::pages::replay_curves(d)),
        _ => None,
    };
    let all: Vec<Curves> = sources.iter().map(of).collect::<Option<_>>()?;
    if all.iter().any(|c| c.sizes().len() < 2) {
        return None;
    }
    let mut xs: Vec<f64> = all.iter().flat_map(Curves::sizes).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let mut series = Vec::new();
    let common = common_policy(&all);
    for (n, (curves, source)) in all.iter().zip(sources).enumerate() {
        let of_common = || curves.all.iter().find(|line| Some(line.policy.as_str()) == common);
        let main: Vec<Line> = of_common().or(curves.main()).cloned().into_iter().collect();
        let one = Curves { all: main, ..curves.clone() };
        for mut s in one.series(&xs, &format!(", {}", source.name)) {
            s.dashed = n % 2 == 1;
            s.colour = crate::model::Colour::number(n);
            series.push(s);
        }
    }
    let (x, y) = (Axis::new("memory", Unit::Bytes), Axis::new("misses, % of accesses", Unit::Percent));
    Some(Chart::new(Shape::Lines, x, y, xs, series))
}

/// A policy of Linux that all have: the one that pages tell most of, if it is.
fn common_policy(all: &[Curves]) -> Option<&str> {
    let first = all.first()?;
    let has = |policy: &str| all.iter().all(|curves| curves.all.iter().any(|line| line.policy == policy));
    let mut policies = first.main().into_iter().chain(&first.all).map(|line| line.policy.as_str());
    policies.find(|policy| *policy != "opt" && has(policy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_a_direction() {
        assert_eq!(verdict(1.0, 2.0, Some(true)), Verdict::Worse);
        assert_eq!(verdict(1.0, 2.0, Some(false)), Verdict::Better);
        assert_eq!(verdict(1.0, 1.0001, Some(false)), Verdict::Neither);
        assert_eq!(verdict(1.0, 2.0, None), Verdict::Neither);
    }
}
