//! Differences between results.
//!
//! Each result says its numbers by name; numbers of the same name stand beside each other. It
//! calls `pages` for what a number is of; the crate's root calls it.

use crate::document::replay::{ReplayDocument, ReplayRow};
use crate::document::trace::TraceDocument;
use crate::document::{Document, Source};
use crate::model::{Axis, Body, Cell, Chart, Dash, Figure, Page, Shape, Table, Verdict};
use crate::pages::memory::{Curves, Line};
use crate::units::{Unit, bytes, counted};

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

/// An input beside the first.
struct Other<'a> {
    name: &'a str,
    metrics: Vec<Metric>,
    /// Why no difference to it is called better or worse.
    apart: Option<String>,
    /// Numbers that it and the first have: better, worse, and the others.
    tally: [usize; 3],
}

/// The page that compares; none of one result alone.
pub(crate) fn pages(sources: &[Source]) -> Vec<Page> {
    let [first, others @ ..] = sources else { return Vec::new() };
    if others.is_empty() {
        return Vec::new();
    }
    let own = metrics(&first.document);
    let mut others: Vec<_> = others.iter().map(|other| beside(first, &own, other)).collect();
    let mut answer: Vec<_> = others.iter().map(|other| in_words(&first.name, other)).collect();
    // A column without a number would only take room.
    others.retain(|other| other.tally != [0; 3]);
    if others.is_empty() {
        answer = vec!["The inputs have no number in common: each has its own pages below.".to_owned()];
    }
    let mut heads = vec!["what".to_owned(), first.name.clone()];
    for other in &others {
        heads.extend([other.name.to_owned(), "difference".into()]);
    }
    let rows = rows(&own, &others);
    let mut page = Page::new("compare", "What is different?", answer.join(" "));
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
        let meaning = "Blue is better, orange is worse, and the word says it, too. Of counters neither is: they say how \
                       something came about. Differences of percents are points.";
        let table = Table { heads, rows, searchable: true };
        page = page.with(Figure::new("Differences", meaning, "reference/report.md#comparison", Body::Table(table)));
    }
    vec![page]
}

fn beside<'a>(first: &Source, own: &[Metric], other: &'a Source) -> Other<'a> {
    let (a, b) = (work(&first.document), work(&other.document));
    let apart = (a != b).then(|| format!("{a} there, {b} here"));
    let metrics = metrics(&other.document);
    let mut tally = [0; 3];
    for (m, o) in own.iter().take(MOST).filter_map(|m| Some((m, found(&metrics, m)?))) {
        tally[verdict(m, o, apart.is_some()) as usize] += 1;
    }
    Other { name: &other.name, metrics, apart, tally }
}

fn in_words(first: &str, other: &Other<'_>) -> String {
    let [better, worse, neither] = other.tally;
    let (name, all) = (other.name, better + worse + neither);
    match &other.apart {
        _ if all == 0 => format!("{name} has no number in common with {first}."),
        Some(why) => format!(
            "{name} has {} in common with {first}, but is of other work ({why}): no difference is called better or worse.",
            counted(all as u64, "number")
        ),
        None => format!(
            "{name} has {} in common with {first}: {better} better, {worse} worse, {neither} the same or neither.",
            counted(all as u64, "number")
        ),
    }
}

fn found<'a>(all: &'a [Metric], m: &Metric) -> Option<&'a Metric> {
    all.iter().find(|o| o.name == m.name)
}

/// A row for each number that the first and another have.
fn rows(own: &[Metric], others: &[Other<'_>]) -> Vec<Vec<Cell>> {
    let row = |m: &Metric| {
        let mut cells = vec![Cell::Text(m.name.clone()), Cell::Number(m.value, m.unit)];
        for other in others {
            cells.extend(match found(&other.metrics, m) {
                Some(o) => {
                    let verdict = verdict(m, o, other.apart.is_some());
                    [Cell::Number(o.value, o.unit), Cell::Difference(o.value - m.value, m.unit, verdict)]
                }
                None => [Cell::None, Cell::None],
            });
        }
        cells
    };
    let is_shared = |m: &&Metric| others.iter().any(|other| found(&other.metrics, m).is_some());
    own.iter().take(MOST).filter(is_shared).map(row).collect()
}

/// Work that was done, in words: results of other work are neither better nor worse.
fn work(document: &Document) -> String {
    let trace = |accesses: u64, pages: u64| format!("{} to {}", counted(accesses, "access"), counted(pages, "page"));
    match document {
        Document::Trace(d) => trace(d.trace.accesses, d.trace.footprint_pages),
        Document::Replay(d) => {
            let mut all: Vec<_> =
                d.rows.iter().filter(|r| r.group.is_none()).map(|r| trace(r.accesses, r.footprint_pages)).collect();
            all.dedup();
            all.join(", ")
        }
        Document::Scenario(d) => {
            let mut all: Vec<_> = d.runs.iter().map(|run| format!("{} at scale {}", run.scenario, run.scale)).collect();
            all.dedup();
            all.join(", ")
        }
        // Rows of other benchmarks have other names.
        Document::Bench(_) => String::new(),
        Document::Size(d) => format!("{} with {} of {}", d.limit, d.target, d.name),
        Document::Verify(d) => format!("{} with {}", d.recording, trace(d.accesses, d.events)),
        Document::Run(d) => d.command.clone(),
    }
}

/// Differences of less than a thousandth are none.
fn verdict(before: &Metric, after: &Metric, is_other_work: bool) -> Verdict {
    let (a, b) = (before.value, after.value);
    let is_same = (b - a).abs() <= 1e-3 * a.abs().max(b.abs());
    match before.less {
        Some(less) if !is_same && !is_other_work => {
            if (b < a) == less {
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
        Document::Replay(d) => of_replay(d),
        Document::Scenario(d) => of_scenario(d),
        Document::Bench(d) => of_bench(d),
        Document::Size(d) => {
            let answer = d.answer_bytes.map(|n| metric("smallest that is enough", Unit::Bytes, n as f64, Some(true)));
            answer.into_iter().collect()
        }
        Document::Verify(d) => {
            let (kernel, lab) = d.total().hit_rates();
            vec![
                metric("hits of the kernel", Unit::Percent, kernel, None),
                metric("hits of the lab", Unit::Percent, lab, None),
                metric("lab less kernel, absolute", Unit::Percent, (lab - kernel).abs(), Some(true)),
                metric("accesses that agree", Unit::Percent, 100.0 * d.agreement, Some(false)),
            ]
        }
        Document::Run(d) => (d.figures.iter())
            .map(|(name, &n)| {
                let cost = ["wall_s", "stall", "throttled", "errors", "lost"];
                let less = cost.iter().any(|c| name.contains(c)).then_some(true);
                metric(name, crate::pages::run_unit(name), n, less)
            })
            .collect(),
    }
}

/// Misses of a policy: those of OPT are of the trace, and nothing that anybody could do better.
fn misses(policy: &str, memory: &str, percent: f64) -> Metric {
    metric(format!("{policy}, {memory}: misses"), Unit::Percent, percent, (policy != "opt").then_some(true))
}

fn of_replay(d: &ReplayDocument) -> Vec<Metric> {
    let many = crate::pages::replay_traces(d).len() > 1;
    let of = |r: &ReplayRow| {
        let memory = r.memory_pages.map_or("no limit".into(), |p| bytes((p * r.page_size) as f64));
        let group = r.group.as_ref().map_or(String::new(), |g| format!(" {g}"));
        let trace = if many { format!(" of {}", r.trace) } else { String::new() };
        let memory = format!("{memory}{group}{trace}");
        let refaults = r.sum(&["workingset_refault_anon", "workingset_refault_file"]);
        let misses = misses(&r.policy, &memory, 100.0 * r.miss_ratio());
        let refaults = metric(format!("{}, {memory}: refaults", r.policy), Unit::Count, refaults as f64, None);
        if r.counters.is_empty() { vec![misses] } else { vec![misses, refaults] }
    };
    d.rows.iter().flat_map(of).collect()
}

fn of_trace(d: &TraceDocument) -> Vec<Metric> {
    let mut all = Vec::new();
    for line in &Curves::of_trace(d).all {
        let knee = line.knee().map(|(at, _)| metric(format!("{}: knee", line.policy), Unit::Bytes, at, None));
        all.extend(knee.filter(|_| line.policy != "opt"));
        all.extend(line.points.iter().map(|&(at, percent)| misses(&line.policy, &bytes(at), percent)));
    }
    let memory = bytes(d.bytes(d.detail_pages as f64));
    for x in &d.details {
        let percent = 100.0 * x.misses as f64 / x.accesses.max(1) as f64;
        let own = misses(&x.policy, &memory, percent);
        all.extend((!all.iter().any(|m| m.name == own.name)).then_some(own));
        for name in ["pgscan_anon", "pgscan_file", "pgsteal_anon", "pgsteal_file", "pswpin", "pswpout"] {
            if let Some(&n) = x.counters.get(name) {
                all.push(metric(format!("{}, {memory}: {name}", x.policy), Unit::Count, n as f64, None));
            }
        }
    }
    all.push(metric("accesses", Unit::Count, d.trace.accesses as f64, None));
    all.push(metric("footprint", Unit::Bytes, d.bytes(d.trace.footprint_pages as f64), None));
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
            all.push(metric(format!("{head}{}: refaults", g.path), Unit::Count, g.refaults as f64, None));
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
            s.dash = Some(Dash::number(n));
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
    use crate::document::trace::{Curve, TraceFacts};

    fn trace(name: &str, accesses: u64, misses: [f64; 3]) -> Source {
        let curve = |policy: &str, part: f64| Curve {
            policy: policy.into(),
            pages: vec![100, 200, 300],
            miss_ratio: misses.map(|m| Some(m * part)).to_vec(),
            read_pages: Vec::new(),
        };
        let facts = TraceFacts { page_size: 4096, accesses, footprint_pages: 300, ..TraceFacts::default() };
        let curves = vec![curve("lru", 1.0), curve("opt", 0.5)];
        Source::new(name, Document::Trace(Box::new(TraceDocument { trace: facts, curves, ..TraceDocument::default() })))
    }

    fn differences(page: &Page) -> (Vec<String>, Vec<(String, Verdict)>) {
        let Body::Table(table) = &page.figures.last().expect("a figure").body else { panic!("a table") };
        let of = |row: &Vec<Cell>| match (&row[0], row.last()) {
            (Cell::Text(name), Some(Cell::Difference(_, _, verdict))) => (name.clone(), *verdict),
            other => panic!("{other:?}"),
        };
        (table.heads.clone(), table.rows.iter().map(of).collect())
    }

    #[test]
    fn differences_have_a_direction() {
        let m = |value: f64, less| metric("m", Unit::Count, value, less);
        let of = |a, b, less| verdict(&m(a, less), &m(b, less), false);
        assert_eq!(of(1.0, 2.0, Some(true)), Verdict::Worse);
        assert_eq!(of(1.0, 2.0, Some(false)), Verdict::Better);
        assert_eq!(of(1.0, 1.0001, Some(false)), Verdict::Neither);
        assert_eq!(of(1.0, 2.0, None), Verdict::Neither);
        assert_eq!(verdict(&m(1.0, Some(true)), &m(2.0, Some(true)), true), Verdict::Neither);
    }

    #[test]
    fn only_outcomes_are_better_or_worse() {
        let pages = pages(&[trace("a", 9, [0.8, 0.3, 0.1]), trace("b", 9, [0.8, 0.7, 0.05])]);
        let (_, rows) = differences(&pages[0]);
        let of = |name: &str| rows.iter().find(|(known, _)| known == name).map(|(_, verdict)| *verdict);
        assert_eq!(of("lru, 800 KiB: misses"), Some(Verdict::Worse));
        assert_eq!(of("lru, 1.17 MiB: misses"), Some(Verdict::Better));
        assert_eq!((of("opt, 800 KiB: misses"), of("lru: knee")), (Some(Verdict::Neither), Some(Verdict::Neither)));
        assert!(of("opt: knee").is_none());
        assert!(
            pages[0].answer.contains("b has 9 numbers in common with a: 1 better, 1 worse, 7"),
            "{}",
            pages[0].answer
        );
    }

    #[test]
    fn other_work_is_neither_better_nor_worse_and_what_has_nothing_in_common_has_no_column() {
        let size = Document::Size(Box::default());
        let sources = [trace("a", 9, [0.8, 0.3, 0.1]), trace("b", 1, [0.8, 0.7, 0.05]), Source::new("c", size)];
        let pages = pages(&sources);
        let (heads, rows) = differences(&pages[0]);
        assert_eq!(heads, ["what", "a", "b", "difference"]);
        assert!(rows.len() > 6 && rows.iter().all(|(_, verdict)| *verdict == Verdict::Neither));
        let answer = &pages[0].answer;
        assert!(
            answer.contains(
                "b has 9 numbers in common with a, but is of other work (9 accesses to 300 pages there, \
                                 1 access to 300 pages here)"
            ),
            "{answer}"
        );
        assert!(answer.contains("c has no number in common with a."), "{answer}");
    }
}
