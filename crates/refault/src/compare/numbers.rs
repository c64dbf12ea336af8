//! The numbers of a result, by name.

use crate::curve::Curves;
use crate::document::Document;
use crate::document::bench::BenchDocument;
use crate::document::replay::{ReplayDocument, ReplayRow};
use crate::document::run::RunDocument;
use crate::document::scenario::ScenarioDocument;
use crate::document::trace::{TraceDetail, TraceDocument};
use crate::units::{Unit, bytes, counted};
use std::collections::BTreeMap;

/// A number of a result.
pub(super) struct NamedNumber {
    pub(super) name: String,
    pub(super) unit: Unit,
    pub(super) value: f64,
    /// Whether less of it is better; none: neither is.
    pub(super) less: Option<bool>,
    /// How far it is from what a little more or less memory, or another seed, gives; 0: not known.
    pub(super) spread: f64,
}

impl NamedNumber {
    /// The same with how far it spreads.
    pub(super) fn spread(self, spread: f64) -> NamedNumber {
        NamedNumber { spread, ..self }
    }

    /// Whether two values differ, by less than they spread.
    pub(super) fn is_within(&self, other: &NamedNumber) -> bool {
        let apart = (self.value - other.value).abs();
        apart > 0.0 && apart <= self.spread.max(other.spread)
    }
}

pub(super) fn metric(name: impl Into<String>, unit: Unit, value: f64, less: Option<bool>) -> NamedNumber {
    NamedNumber { name: name.into(), unit, value, less, spread: 0.0 }
}

/// Work that was done, in words: results of other work are neither better nor worse.
pub(super) fn work(document: &Document) -> String {
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
        Document::WhatIf(d) => d.name.clone(),
        Document::Sweep(d) => d.sweep.clone(),
    }
}

/// Settings of a result, by name.
pub(super) fn settings(document: &Document) -> BTreeMap<String, String> {
    let one = |name: &str, value: String| (name.to_owned(), value);
    match document {
        Document::Replay(d) => d.settings.clone(),
        Document::Trace(d) => BTreeMap::from([one("kernel", d.kernel.clone()), one("seed", d.seed.to_string())]),
        Document::Scenario(d) => {
            let mut policies: Vec<&str> = d.runs.iter().map(|run| run.policy.as_str()).collect();
            policies.dedup();
            let seed = d.runs.first().map(|run| one("seed", run.seed.to_string()));
            seed.into_iter().chain([one("policy", policies.join(", "))]).collect()
        }
        _ => BTreeMap::new(),
    }
}

/// The policies of a result of one trace or several, in its order; of other results none.
pub(super) fn policies(document: &Document) -> Vec<&str> {
    let all: Vec<&str> = match document {
        Document::Trace(d) => {
            let of_curves = d.curves.iter().map(|curve| curve.policy.as_str());
            of_curves.chain(d.details.iter().map(|x| x.policy.as_str())).collect()
        }
        Document::Replay(d) => d.rows.iter().map(|row| row.policy.as_str()).collect(),
        _ => Vec::new(),
    };
    let mut once = Vec::new();
    for policy in all {
        if !once.contains(&policy) {
            once.push(policy);
        }
    }
    once
}

/// The only policy of a result beside OPT, if there is one alone.
pub(super) fn only_policy(document: &Document) -> Option<&str> {
    match policies(document).into_iter().filter(|policy| *policy != "opt").collect::<Vec<_>>()[..] {
        [only] => Some(only),
        _ => None,
    }
}

/// The command whose result it is.
pub(super) fn command(document: &Document) -> &'static str {
    match document {
        Document::Trace(_) => "refault report of a trace",
        Document::Replay(_) => "refault replay of a trace",
        Document::Scenario(_) => "refault replay of a scenario",
        Document::Bench(_) => "refault bench",
        Document::Size(_) => "refault size",
        Document::Run(_) => "refault run",
        Document::Verify(_) => "refault verify",
        Document::WhatIf(_) => "refault whatif",
        Document::Sweep(_) => "refault.sweep",
    }
}

/// The numbers; those of the policy `own` are called so, in the place of its name.
pub(super) fn metrics(document: &Document, own: Option<&str>) -> Vec<NamedNumber> {
    match document {
        Document::Trace(d) => of_trace(d, own),
        Document::Replay(d) => of_replay(d, own),
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
        Document::WhatIf(_) => Vec::new(),
        Document::Sweep(d) => (d.summary.iter())
            .map(|row| {
                let name = format!("{}: median of fewer misses than {}", row.label(), row.against);
                metric(name, Unit::Percent, 100.0 * row.p50, Some(false))
            })
            .collect(),
        Document::Run(d) => (d.figures.iter())
            .map(|(name, &n)| {
                let cost = ["wall_s", "stall", "throttled", "errors", "lost"];
                let less = cost.iter().any(|c| name.contains(c)).then_some(true);
                metric(name, RunDocument::unit(name), n, less)
            })
            .collect(),
    }
}

/// A policy as numbers name it: `own` is the one that stands beside another policy.
fn named<'a>(policy: &'a str, own: Option<&str>) -> &'a str {
    if own == Some(policy) { "own policy" } else { policy }
}

/// Miss percentage of a policy. OPT's is a fact of the trace, neither better nor worse.
fn misses(policy: &str, own: Option<&str>, memory: &str, percent: f64) -> NamedNumber {
    let name = format!("{}, {memory}: misses", named(policy, own));
    metric(name, Unit::Percent, percent, (policy != "opt").then_some(true))
}

fn of_replay(d: &ReplayDocument, own: Option<&str>) -> Vec<NamedNumber> {
    let many = d.traces().len() > 1;
    let lines: Vec<_> = d.traces().iter().map(|trace| (trace.to_string(), Curves::of_replay(d, trace))).collect();
    let near = |r: &ReplayRow| {
        let line = lines.iter().find(|(trace, _)| *trace == r.trace);
        let line = line.and_then(|(_, curves)| curves.all.iter().find(|line| line.policy == r.policy));
        let at = r.memory_pages.filter(|_| r.group.is_none()).map(|pages| (pages * r.page_size) as f64);
        line.zip(at).map_or(0.0, |(line, at)| line.near(at))
    };
    let of = |r: &ReplayRow| {
        let memory = r.memory_pages.map_or("no limit".into(), |p| bytes((p * r.page_size) as f64));
        let group = r.group.as_ref().map_or(String::new(), |g| format!(" {g}"));
        let trace = if many { format!(" of {}", r.trace) } else { String::new() };
        let memory = format!("{memory}{group}{trace}");
        let refaults = r.sum(&["workingset_refault_anon", "workingset_refault_file"]);
        let misses = misses(&r.policy, own, &memory, 100.0 * r.miss_ratio()).spread(near(r));
        let policy = named(&r.policy, own);
        let refaults = metric(format!("{policy}, {memory}: refaults"), Unit::Count, refaults as f64, None);
        if r.counters.is_empty() { vec![misses] } else { vec![misses, refaults] }
    };
    d.rows.iter().flat_map(of).collect()
}

/// How far misses are from those with a little less and more memory, in points.
fn spread(x: &TraceDetail) -> f64 {
    let apart = |misses: u64| 100.0 * misses.abs_diff(x.misses) as f64 / x.accesses.max(1) as f64;
    x.near.iter().map(|&(_, misses)| apart(misses)).fold(0.0, f64::max)
}

fn of_trace(d: &TraceDocument, own: Option<&str>) -> Vec<NamedNumber> {
    let mut all = Vec::new();
    for line in &Curves::of_trace(d).all {
        let policy = named(&line.policy, own);
        let knee = line.knee().map(|(at, _)| metric(format!("{policy}: knee"), Unit::Bytes, at, None));
        all.extend(knee.filter(|_| line.policy != "opt"));
        let detail = d.detail(&line.policy).map_or(0.0, spread);
        let of = |&(at, percent): &(f64, f64)| {
            let here = if at == d.bytes(d.detail_pages as f64) { detail } else { 0.0 };
            misses(&line.policy, own, &bytes(at), percent).spread(here.max(line.near(at)))
        };
        all.extend(line.points.iter().map(of));
    }
    let memory = bytes(d.bytes(d.detail_pages as f64));
    for x in &d.details {
        let percent = 100.0 * x.misses as f64 / x.accesses.max(1) as f64;
        let number = misses(&x.policy, own, &memory, percent).spread(spread(x));
        all.extend((!all.iter().any(|m| m.name == number.name)).then_some(number));
        for name in ["pgscan_anon", "pgscan_file", "pgsteal_anon", "pgsteal_file", "pswpin", "pswpout"] {
            if let Some(&n) = x.counters.get(name) {
                let name = format!("{}, {memory}: {name}", named(&x.policy, own));
                all.push(metric(name, Unit::Count, n as f64, None));
            }
        }
    }
    all.push(metric("accesses", Unit::Count, d.trace.accesses as f64, None));
    all.push(metric("footprint", Unit::Bytes, d.bytes(d.trace.footprint_pages as f64), None));
    all
}

fn of_scenario(d: &ScenarioDocument) -> Vec<NamedNumber> {
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

fn of_bench(d: &BenchDocument) -> Vec<NamedNumber> {
    let mut all = Vec::new();
    for bench in &d.benchmarks {
        for row in &bench.rows {
            let less = row.better.as_deref().map(|b| b == "lower");
            for f in &row.numbers {
                let name = format!("{}, {}, {}", bench.name, row.label, f.variant);
                all.extend(f.number.map(|n| metric(name, Unit::Number, n, less).spread(f.reach())));
            }
            for f in &row.ratios {
                let name = format!("{}, {}: {} / {}", bench.name, row.label, f.of, f.to);
                all.extend(f.number.map(|n| metric(name, Unit::Number, n, less).spread(f.reach())));
            }
        }
    }
    all
}
