//! Summary of a sweep, as Python's `refault.sweep` writes it: fewer misses than a policy, over many
//! traces.

use super::MOST_ROWS;
use crate::names::shown;
use crate::units::counted;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A summary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SweepDocument {
    /// The version of refault.
    pub refault: String,
    /// Name of the sweep.
    pub sweep: String,
    /// Cells without figures.
    pub failed: u64,
    /// A row for each policy, size and settings.
    pub summary: Vec<SweepRow>,
}

/// Misses of a policy beside those of another, as a part of these: over how many traces, mean and
/// percentiles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct SweepRow {
    pub policy: String,
    pub memory: String,
    pub settings: String,
    pub against: String,
    pub traces: u64,
    pub mean: f64,
    pub p10: f64,
    pub p25: f64,
    pub p50: f64,
    pub p75: f64,
    pub p90: f64,
}

pub(super) fn read(value: Value) -> Result<SweepDocument, serde_json::Error> {
    let mut all: SweepDocument = serde_json::from_value(value)?;
    all.summary.truncate(MOST_ROWS);
    all.sweep = shown(&all.sweep);
    for row in &mut all.summary {
        for name in [&mut row.policy, &mut row.memory, &mut row.settings, &mut row.against] {
            *name = shown(name);
        }
    }
    Ok(all)
}

impl SweepRow {
    /// Policy, size and settings that are not the usual ones.
    pub fn label(&self) -> String {
        let settings = if self.settings == "{}" { String::new() } else { format!(" {}", self.settings) };
        format!("{} {}{settings}", self.policy, self.memory)
    }
}

impl SweepDocument {
    /// Summary in a line.
    pub fn facts(&self) -> String {
        format!(
            "refault.sweep {}: {}, {} without figures, refault {}",
            self.sweep,
            counted(self.summary.len() as u64, "row"),
            counted(self.failed, "cell"),
            self.refault
        )
    }
}
