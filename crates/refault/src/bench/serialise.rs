//! A report for programs; the schema is in docs/reference/bench.md. Numbers that are not finite
//! become null.

use super::misses::missing;
use super::result::{BenchReport, BenchRow, Variant, band_from_name, better_name};
use crate::runner::{Overrides, ending_name, overrides};
use refault_lab::scenario::{Band, Calibrated};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

#[derive(Serialize)]
struct BenchmarkOut<'a> {
    name: &'a str,
    about: &'a str,
    source: Option<&'a str>,
    scale: f64,
    seeds: &'a [u64],
    variants: Vec<VariantOut<'a>>,
    rows: Vec<RowOut<'a>>,
    notes: &'a [String],
    parameters: ParametersOut<'a>,
}

#[derive(Serialize)]
struct ParametersOut<'a> {
    published: &'a [String],
    derived: &'a BTreeMap<String, String>,
    calibrated: BTreeMap<&'a str, CalibratedOut<'a>>,
    chosen: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum CalibratedOut<'a> {
    By {
        by: &'a str,
        how: &'a str,
    },
    As {
        #[serde(rename = "as")]
        key: &'a str,
    },
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
    scaled: bool,
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
    #[serde(flatten)]
    verdict: VerdictOut,
}

#[derive(Serialize)]
struct RatioOut<'a> {
    of: &'a str,
    to: &'a str,
    published: Option<f64>,
    ratio: f64,
    ratios: &'a [f64],
    #[serde(flatten)]
    verdict: VerdictOut,
}

#[derive(Serialize)]
struct VerdictOut {
    band: Option<[f64; 2]>,
    band_from: Option<&'static str>,
    within: Option<bool>,
    missing: Option<&'static str>,
}

impl VerdictOut {
    fn new(row: &str, band: Option<&Band>, within: Option<bool>) -> VerdictOut {
        VerdictOut {
            band: band.map(|band| band.ends),
            band_from: band.map(|band| band_from_name(&band.from)),
            within,
            missing: missing(row).filter(|_| within == Some(false)).map(|missing| missing.name),
        }
    }
}

impl Serialize for BenchReport {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        benchmark(self).serialize(to)
    }
}

fn benchmark(report: &BenchReport) -> BenchmarkOut<'_> {
    BenchmarkOut {
        name: &report.name,
        about: &report.about,
        source: report.source.as_deref(),
        scale: report.scale,
        seeds: &report.seeds,
        variants: report.variants.iter().map(variant).collect(),
        rows: report.rows.iter().map(|r| row(r, report)).collect(),
        notes: &report.notes,
        parameters: ParametersOut {
            published: &report.parameters.published,
            derived: &report.parameters.derived,
            calibrated: report.parameters.calibrated.iter().map(|(key, c)| (key.as_str(), calibrated(c))).collect(),
            chosen: &report.parameters.chosen,
        },
    }
}

fn calibrated(origin: &Calibrated) -> CalibratedOut<'_> {
    match origin {
        Calibrated::By { row, how } => CalibratedOut::By { by: row, how },
        Calibrated::As(key) => CalibratedOut::As { key },
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

fn row<'a>(row: &'a BenchRow, report: &'a BenchReport) -> RowOut<'a> {
    let variants = &report.variants;
    let numbers = row.numbers.iter().enumerate().map(|(at, n)| NumberOut {
        variant: &variants[at].name,
        published: n.published,
        number: n.mean,
        numbers: &n.all,
        verdict: VerdictOut::new(&report.name_of_number(row, at), n.band.as_ref(), n.within),
    });
    let ratios = row.ratios.iter().map(|r| RatioOut {
        of: &variants[r.spec.of].name,
        to: &variants[r.spec.to].name,
        published: r.published,
        ratio: r.ratio,
        ratios: &r.all,
        verdict: VerdictOut::new(&report.name_of_ratio(row, r), r.spec.band.as_ref(), r.within),
    });
    RowOut {
        metric: &row.spec.metric,
        label: &row.spec.label,
        unit: &row.spec.unit,
        scaled: row.spec.scaled,
        better: row.spec.better.map(better_name),
        numbers: numbers.collect(),
        ratios: ratios.collect(),
    }
}
