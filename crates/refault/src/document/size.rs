//! Output of `refault size --json`.

use super::MOST_ROWS;
use crate::names::shown;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A search for a limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct SizeDocument {
    pub refault: String,
    pub name: String,
    pub group: String,
    pub limit: String,
    pub target: String,
    pub metric: String,
    pub bound: f64,
    pub policy: String,
    pub seed: u64,
    pub scale: f64,
    pub verdict: String,
    pub answer_bytes: Option<u64>,
    pub monotone: bool,
    pub warnings: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    pub points: Vec<SizePoint>,
}

/// A size that was tried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct SizePoint {
    pub bytes: u64,
    pub value: Option<f64>,
    pub met: bool,
    pub failed: Option<String>,
}

pub(super) fn read(value: Value) -> Result<SizeDocument, serde_json::Error> {
    let mut all: SizeDocument = serde_json::from_value(value)?;
    all.points.truncate(MOST_ROWS);
    all.warnings.truncate(20);
    for text in [&mut all.name, &mut all.group, &mut all.target, &mut all.metric, &mut all.policy, &mut all.limit] {
        *text = shown(text);
    }
    Ok(all)
}

impl SizeDocument {
    /// Summary in a line.
    pub fn facts(&self) -> String {
        format!(
            "refault size of {}, group {}: {} with {}, policy {}, seed {}, scale {}, refault {}",
            self.name, self.group, self.limit, self.target, self.policy, self.seed, self.scale, self.refault
        )
    }
}
