//! Output of `refault bench --json`.

use super::MOST_ROWS;
use crate::names::shown;
use crate::units::counted;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// All benchmarks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct BenchDocument {
    pub refault: String,
    pub benchmarks: Vec<Benchmark>,
}

/// A benchmark.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct Benchmark {
    pub name: String,
    pub about: String,
    pub source: Option<String>,
    pub scale: f64,
    pub seeds: Vec<u64>,
    pub variants: Vec<Variant>,
    pub rows: Vec<Row>,
    pub notes: Vec<String>,
}

/// Variant that is compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct Variant {
    pub name: String,
    pub policy: String,
    pub virtual_seconds: f64,
    pub oom_kills: u64,
    pub ending: String,
}

/// A published number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct Row {
    pub metric: String,
    pub label: String,
    pub unit: String,
    /// Whether the numbers are of the scaled machine.
    pub scaled: bool,
    pub better: Option<String>,
    pub numbers: Vec<Figure>,
    pub ratios: Vec<Figure>,
}

/// A number, or a ratio of two.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct Figure {
    pub variant: String,
    pub of: String,
    pub to: String,
    pub published: Option<f64>,
    #[serde(alias = "ratio")]
    pub number: Option<f64>,
    #[serde(alias = "ratios")]
    pub numbers: Vec<Option<f64>>,
    pub band: Option<(f64, Option<f64>)>,
    pub within: Option<bool>,
}

impl Figure {
    /// The smallest and the largest over the seeds, if there are several.
    pub fn spread(&self) -> Option<(f64, f64)> {
        let all: Vec<f64> = self.numbers.iter().flatten().copied().collect();
        let fold = |of: fn(f64, f64) -> f64| all.iter().copied().reduce(of);
        (all.len() > 1).then_some(())?;
        Some((fold(f64::min)?, fold(f64::max)?))
    }

    /// How far the number is from those of other seeds; 0: there are none.
    pub fn reach(&self) -> f64 {
        let ends = self.number.zip(self.spread());
        ends.map_or(0.0, |(n, (low, high))| (n - low).max(high - n))
    }
}

impl Benchmark {
    /// Bands that are met, and all bands that were judged.
    pub fn bands_met(&self) -> (usize, usize) {
        let figures = self.rows.iter().flat_map(|r| r.numbers.iter().chain(&r.ratios));
        let verdicts: Vec<bool> = figures.filter_map(|f| f.within).collect();
        (verdicts.iter().filter(|met| **met).count(), verdicts.len())
    }
}

pub(super) fn read(value: Value) -> Result<BenchDocument, serde_json::Error> {
    let mut all: BenchDocument = serde_json::from_value(value)?;
    all.benchmarks.truncate(100);
    for bench in &mut all.benchmarks {
        bench.name = shown(&bench.name);
        bench.rows.truncate(MOST_ROWS / 10);
        for row in &mut bench.rows {
            (row.label, row.unit) = (shown(&row.label), shown(&row.unit));
            row.numbers.iter_mut().chain(&mut row.ratios).for_each(|f| f.numbers.truncate(100));
        }
    }
    Ok(all)
}

impl BenchDocument {
    /// Summary in a line.
    pub fn facts(&self) -> String {
        format!("refault bench: {}, refault {}", counted(self.benchmarks.len() as u64, "benchmark"), self.refault)
    }
}
