//! Output of `refault whatif --json`.

use super::MOST_ROWS;
use crate::names::{sentence, shown};
use crate::units::{Unit, counted};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A machine beside the same machine with something changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct WhatIfDocument {
    pub refault: String,
    pub name: String,
    pub about: String,
    pub today: Today,
    pub trust: Vec<MetricTrust>,
    pub starts: u64,
    pub answer: Vec<String>,
    pub unknown: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    pub alternatives: Vec<Alternative>,
}

/// Today's machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct Today {
    pub machine: String,
    pub limit_is: String,
    pub values: BTreeMap<String, Option<f64>>,
    pub failed: Option<String>,
}

/// Figures of the recorded kernel and of the lab under today's limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct MetricTrust {
    pub metric: String,
    pub kernel: f64,
    pub lab: f64,
    pub trust: String,
}

/// A change, and its effects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct Alternative {
    pub name: String,
    pub failed: Option<String>,
    pub doubts: Vec<String>,
    pub remark: Option<String>,
    pub effects: Vec<EffectFacts>,
}

/// Effect of a change on a metric: counts and times differ by parts of today's, shares by points.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct EffectFacts {
    pub metric: String,
    pub value: f64,
    pub change: f64,
    pub low: f64,
    pub high: f64,
    pub verdict: String,
}

pub(super) fn read(value: Value) -> Result<WhatIfDocument, serde_json::Error> {
    let mut all: WhatIfDocument = serde_json::from_value(value)?;
    all.alternatives.truncate(MOST_ROWS);
    all.name = shown(&all.name);
    all.about = sentence(&all.about);
    for list in [&mut all.answer, &mut all.unknown] {
        list.truncate(40);
        list.iter_mut().for_each(|text| *text = sentence(text));
    }
    for of in &mut all.alternatives {
        of.name = shown(&of.name);
        of.remark = of.remark.as_deref().map(sentence);
    }
    Ok(all)
}

impl Alternative {
    /// The effect on a metric.
    pub fn effect(&self, metric: &str) -> Option<&EffectFacts> {
        self.effects.iter().find(|effect| effect.metric == metric)
    }
}

impl WhatIfDocument {
    /// Metrics that have an effect, in the order of the first change that has any.
    pub fn metrics(&self) -> Vec<&str> {
        let first = self.alternatives.iter().find(|of| !of.effects.is_empty());
        first.map_or(Vec::new(), |of| of.effects.iter().map(|effect| effect.metric.as_str()).collect())
    }

    /// Evidence of the result, in words.
    pub fn trust_in_words(&self) -> String {
        let runs = format!("{} of each machine, in a little less and more memory", counted(self.starts, "run"));
        let Some(of) = self.trust.first() else {
            return format!("{runs}; no kernel is beside it");
        };
        let figure = |n: f64| Unit::Number.text(n);
        format!(
            "{runs}; the recorded kernel had {} {}, the lab {}{}",
            figure(of.kernel),
            of.metric.replace('_', " "),
            figure(of.lab),
            match of.trust.as_str() {
                "whole" => "",
                "widened" => ", and bounds are as far apart",
                _ => ", too far apart for an answer",
            }
        )
    }

    /// Summary in a line.
    pub fn facts(&self) -> String {
        format!("refault whatif of {}: {}, refault {}", self.name, self.about, self.refault)
    }
}
