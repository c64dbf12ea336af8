//! The result for programs; the schema is in docs/reference/bench.md. Numbers that are not finite
//! become null.

use super::report::{Report, Row, Variant, better_name};
use crate::Failure;
use crate::runner::{Overrides, ending_name, overrides};
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
    variants: Vec<VariantOut<'a>>,
    rows: Vec<RowOut<'a>>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct VariantOut<'a> {
    name: &'a str,
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
    numbers: Vec<NumberOut<'a>>,
    ratios: Vec<RatioOut<'a>>,
}

#[derive(Serialize)]
struct NumberOut<'a> {
    variant: &'a str,
    published: Option<f64>,
    number: f64,
    numbers: &'a [f64],
    band: Option<[f64; 2]>,
    within: Option<bool>,
}

#[derive(Serialize)]
struct RatioOut<'a> {
    of: &'a str,
    to: &'a str,
    published: Option<f64>,
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
        variants: report.variants.iter().map(variant).collect(),
        rows: report.rows.iter().map(|r| row(r, &report.variants)).collect(),
        notes: &report.notes,
    }
}

fn variant(variant: &Variant) -> VariantOut<'_> {
    VariantOut {
        name: &variant.name,
        policy: variant.policy.policy.name(),
        overrides: overrides(&variant.policy),
        virtual_seconds: variant.virtual_seconds,
        real_seconds: variant.real_seconds,
        events: variant.events,
        oom_kills: variant.oom_kills,
        ending: ending_name(variant.ending),
    }
}

fn row<'a>(row: &'a Row, variants: &'a [Variant]) -> RowOut<'a> {
    let numbers = row.numbers.iter().zip(variants).map(|(n, variant)| NumberOut {
        variant: &variant.name,
        published: n.published,
        number: n.mean,
        numbers: &n.all,
        band: n.band,
        within: n.within,
    });
    let ratios = row.ratios.iter().map(|r| RatioOut {
        of: &variants[r.spec.of].name,
        to: &variants[r.spec.to].name,
        published: r.published,
        ratio: r.ratio,
        ratios: &r.all,
        band: r.spec.band,
        within: r.within,
    });
    RowOut {
        metric: &row.spec.metric,
        label: &row.spec.label,
        unit: &row.spec.unit,
        better: row.spec.better.map(better_name),
        numbers: numbers.collect(),
        ratios: ratios.collect(),
    }
}
