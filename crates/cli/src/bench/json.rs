//! The result for programs; the schema is in docs/lab.md. Numbers that are not finite become null.

use super::report::{Report, Row, Side, better_name};
use crate::Failure;
use crate::lab::{Overrides, ending_name, overrides};
use serde::Serialize;

#[derive(Serialize)]
struct All<'a> {
    refault: &'static str,
    benchmarks: Vec<Benchmark<'a>>,
}

#[derive(Serialize)]
struct Benchmark<'a> {
    name: &'a str,
    about: &'a str,
    source: Option<&'a str>,
    scale: f64,
    seeds: &'a [u64],
    before: SideOut,
    after: SideOut,
    rows: Vec<RowOut<'a>>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct SideOut {
    policy: &'static str,
    overrides: Overrides,
    virtual_seconds: f64,
    real_seconds: f64,
    events: u64,
    oom_kills: u64,
    ending: &'static str,
}

#[derive(Serialize)]
struct RowOut<'a> {
    metric: &'a str,
    label: &'a str,
    unit: &'a str,
    better: Option<&'static str>,
    published_before: Option<f64>,
    published_after: Option<f64>,
    before: f64,
    after: f64,
    published_ratio: Option<f64>,
    ratio: f64,
    ratios: &'a [f64],
    band: Option<[f64; 2]>,
    within: Option<bool>,
}

/// All reports as one object.
pub(super) fn json(reports: &[Report]) -> Result<String, Failure> {
    let all = All { refault: env!("CARGO_PKG_VERSION"), benchmarks: reports.iter().map(benchmark).collect() };
    Ok(serde_json::to_string_pretty(&all)? + "\n")
}

fn benchmark(report: &Report) -> Benchmark<'_> {
    Benchmark {
        name: &report.name,
        about: &report.about,
        source: report.source.as_deref(),
        scale: report.scale,
        seeds: &report.seeds,
        before: side(&report.sides[0]),
        after: side(&report.sides[1]),
        rows: report.rows.iter().map(row).collect(),
        notes: &report.notes,
    }
}

fn side(side: &Side) -> SideOut {
    SideOut {
        policy: side.policy.policy.name(),
        overrides: overrides(&side.policy),
        virtual_seconds: side.virtual_seconds,
        real_seconds: side.real_seconds,
        events: side.events,
        oom_kills: side.oom_kills,
        ending: ending_name(side.ending),
    }
}

fn row(row: &Row) -> RowOut<'_> {
    RowOut {
        metric: &row.spec.metric,
        label: &row.spec.label,
        unit: &row.spec.unit,
        better: row.spec.better.map(better_name),
        published_before: row.spec.before,
        published_after: row.spec.after,
        before: row.ours[0],
        after: row.ours[1],
        published_ratio: row.published_ratio(),
        ratio: row.ratio,
        ratios: &row.ratios,
        band: row.spec.band,
        within: row.within,
    }
}
