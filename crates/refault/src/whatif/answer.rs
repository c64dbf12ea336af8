//! Result: today's machine beside changed ones, and sentences on what changes.

use super::change::{Setup, WhatIfChange};
use super::effect::{Distance, EffectVerdict, WhatIfEffect, is_share};
use super::subject::{Measured, Outcome, WhatIfSubject};
use crate::size::{Confidence, Metric};
use serde::Serialize;
use std::collections::BTreeSet;

/// How near the lab is to the recorded kernel in a metric.
#[derive(Clone, Copy, Debug)]
pub struct MetricTrust {
    /// The metric.
    pub metric: Metric,
    /// Its value in the kernel.
    pub kernel: f64,
    /// Its value in the lab.
    pub lab: f64,
    /// Trust in the lab for it.
    pub trust: Confidence,
}

/// A changed machine.
#[derive(Clone, Debug, Serialize)]
pub struct Alternative {
    /// Changes by their flags, as `kernel 6.18`.
    pub name: String,
    /// Flags and values of the changes.
    pub changes: Vec<(&'static str, String)>,
    /// The limit in bytes; none: there is no limit.
    pub limit_bytes: Option<u64>,
    /// Effects by metric; of a run that failed there are none.
    pub effects: Vec<WhatIfEffect>,
    /// The reason why there are none.
    pub failed: Option<&'static str>,
    /// Reasons why an effect is not known.
    pub doubts: Vec<String>,
    /// Remark on the run: accesses that a recording leaves open, kills.
    pub remark: Option<String>,
}

/// Result.
#[derive(Clone, Debug)]
pub struct WhatIf {
    /// The name of the input.
    pub name: String,
    /// Kind and size of the input, in words.
    pub about: String,
    /// Today's machine, in words.
    pub today: String,
    /// Where today's limit is from, in words.
    pub limit_is: &'static str,
    /// Metrics of today's machine, with their values.
    pub values: Vec<(Metric, Option<f64>)>,
    /// The reason why today's machine says nothing; none: it does.
    pub failed: Option<&'static str>,
    /// How near the lab is to the kernel that was recorded, by metric.
    pub trust: Vec<MetricTrust>,
    /// Changed machines.
    pub alternatives: Vec<Alternative>,
    /// Questions that the input leaves open, in sentences.
    pub unknown: Vec<String>,
    /// Runs of each machine.
    pub starts: u16,
    /// How many of the first metrics sentences are of.
    pub spoken: usize,
}

/// The pairs of runs in which both have a metric.
fn pairs(today: &[&Outcome], other: &[&Outcome], at: usize) -> Vec<(Measured, Measured)> {
    let value = |outcome: &Outcome| outcome.values.get(at).copied().flatten().filter(|_| outcome.failed.is_none());
    today.iter().zip(other).filter_map(|(today, other)| Some((value(today)?, value(other)?))).collect()
}

impl Alternative {
    /// Effects of changes: runs of today's machine, and of the changed one.
    pub(super) fn new(
        subject: &dyn WhatIfSubject,
        changes: &[WhatIfChange],
        machine: &Setup,
        (today, other): (&[&Outcome], &[&Outcome]),
        trust: &[MetricTrust],
    ) -> Alternative {
        let first = other.first().copied();
        let failed = first.and_then(|outcome| outcome.failed);
        let mut doubts = Vec::new();
        let effect = |(at, &metric): (usize, &Metric)| {
            let near = trust.iter().find(|of| of.metric == metric);
            let distance = Distance {
                amount: subject.distance(metric, subject.today(), machine),
                baseline: near.map_or(0.0, off),
                least: subject.least(metric),
            };
            let mut effect = WhatIfEffect::of(metric, &pairs(today, other, at), distance)?;
            let far = near.filter(|of| of.trust == Confidence::Refused).map(too_far);
            if let Some(why) = far.or_else(|| subject.doubts(metric, changes)) {
                effect.verdict = EffectVerdict::Unknown;
                doubts.push(why);
            }
            Some(effect)
        };
        let effects: Vec<WhatIfEffect> = match failed {
            Some(_) => Vec::new(),
            None => subject.metrics().iter().enumerate().filter_map(effect).collect(),
        };
        doubts.dedup();
        let names: Vec<_> = changes.iter().map(ToString::to_string).collect();
        let value = |change: &WhatIfChange| {
            change.to_string().split_once(' ').map_or_else(|| change.to_string(), |of| of.1.to_owned())
        };
        Alternative {
            name: names.join(", "),
            changes: changes.iter().map(|change| (change.flag(), value(change))).collect(),
            limit_bytes: (machine.memory_pages != u64::MAX)
                .then(|| machine.memory_pages.saturating_mul(u64::from(machine.page_size))),
            effects,
            failed,
            doubts,
            remark: match machine.is_same(subject.today()) {
                true => Some("today's machine".to_owned()),
                false => first.and_then(|outcome| outcome.remark.clone()),
            },
        }
    }

    /// The effect on a metric.
    pub fn effect(&self, metric: Metric) -> Option<&WhatIfEffect> {
        self.effects.iter().find(|effect| effect.metric == metric)
    }
}

/// How far lab and kernel are apart: of shares a difference, of others a ratio of 1 or more.
fn off(of: &MetricTrust) -> f64 {
    let (less, more) = (of.kernel.min(of.lab), of.kernel.max(of.lab));
    if is_share(of.metric) { more - less } else { more.max(1.0) / less.max(1.0) }
}

fn too_far(of: &MetricTrust) -> String {
    let metric = of.metric;
    format!(
        "{}: of the recorded machine the lab has {} and the kernel had {}, too far apart for an answer",
        metric.name(),
        metric.show(of.lab),
        metric.show(of.kernel)
    )
}

impl WhatIf {
    /// Result of runs.
    pub(super) fn new(
        subject: &dyn WhatIfSubject,
        (today, trust): (&[&Outcome], Vec<MetricTrust>),
        alternatives: Vec<Alternative>,
        starts: u16,
    ) -> WhatIf {
        let value = |at: usize| today.first().and_then(|outcome| Some(outcome.values.get(at).copied()??.value));
        let mut unknown = subject.unknown();
        for doubt in alternatives.iter().flat_map(|of| &of.doubts) {
            if !unknown.contains(doubt) {
                unknown.push(doubt.clone());
            }
        }
        WhatIf {
            name: subject.name().to_owned(),
            about: subject.about(),
            today: subject.today().in_words(),
            limit_is: subject.limit_is(),
            values: subject.metrics().iter().enumerate().map(|(at, &metric)| (metric, value(at))).collect(),
            failed: today.first().and_then(|outcome| outcome.failed),
            trust,
            alternatives,
            unknown,
            starts,
            spoken: subject.spoken(),
        }
    }

    /// The answer, a table, and what is not known; `settings` is a line of flags.
    pub fn text(&self, settings: &str) -> String {
        super::text::text(self, settings)
    }

    /// The metric that sentences are of.
    pub fn metric(&self) -> Option<Metric> {
        self.values.first().map(|(metric, _)| *metric)
    }

    /// The answer in sentences: what is better, worse, the same, and not known.
    pub fn answer(&self) -> Vec<String> {
        if let Some(why) = self.failed {
            return vec![format!("today's machine is {why}, so that nothing can be compared with it")];
        }
        let measured = self.values.iter().filter(|(_, value)| value.is_some());
        let mut lines: Vec<_> = measured.take(self.spoken).flat_map(|(metric, _)| self.sentences(*metric)).collect();
        let failed: Vec<_> = self.alternatives.iter().filter_map(|of| Some((of.failed?, of.name.clone()))).collect();
        for why in failed.iter().map(|of| of.0).collect::<BTreeSet<_>>() {
            let names: Vec<_> = failed.iter().filter(|of| of.0 == why).map(|of| of.1.clone()).collect();
            lines.push(format!("{why}: {}", names.join(", ")));
        }
        lines
    }

    /// The answer in a metric.
    fn sentences(&self, metric: Metric) -> Vec<String> {
        let of = |verdict: EffectVerdict| {
            let effects = self.alternatives.iter().filter_map(|of| Some((of, of.effect(metric)?)));
            effects.filter(|(_, effect)| effect.verdict == verdict).collect::<Vec<_>>()
        };
        let listed = |verdict: EffectVerdict| {
            let mut all = of(verdict);
            all.sort_by(|a, b| b.1.change.abs().total_cmp(&a.1.change.abs()));
            let words = |(of, effect): &(&Alternative, &WhatIfEffect)| {
                format!("{} ({})", of.name, effect.difference(effect.change))
            };
            all.iter().map(words).collect::<Vec<_>>().join(", ")
        };
        let between = |(of, effect): &(&Alternative, &WhatIfEffect)| {
            let [change, low, high] = [effect.change, effect.low, effect.high].map(|change| effect.difference(change));
            format!("{} ({change}, between {low} and {high})", of.name)
        };
        let unsure = of(EffectVerdict::Unsure).iter().map(between).collect::<Vec<_>>().join(", ");
        let names = |verdict| of(verdict).iter().map(|(of, _)| of.name.clone()).collect::<Vec<_>>().join(", ");
        let what = metric.name().replace('_', " ");
        let (better, worse) = match metric {
            Metric::Misses => ("fewer", "more"),
            metric if metric.grows() => ("higher", "lower"),
            _ => ("lower", "higher"),
        };
        let lines = [
            (format!("{better} {what}"), listed(EffectVerdict::Better)),
            (format!("{worse} {what}"), listed(EffectVerdict::Worse)),
            (format!("unsure of {what}"), unsure),
            (format!("no difference in {what}"), names(EffectVerdict::Same)),
            (format!("{what} not known"), names(EffectVerdict::Unknown)),
        ];
        let said = lines.into_iter().filter(|(_, rest)| !rest.is_empty());
        said.map(|(lead, rest)| format!("{lead}: {rest}")).collect()
    }
}

impl Serialize for WhatIf {
    /// One object; the schema is in docs/reference/whatif.md.
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let values: serde_json::Map<String, serde_json::Value> =
            self.values.iter().map(|(metric, value)| (metric.name().to_owned(), (*value).into())).collect();
        let trust = self.trust.iter().map(|of| {
            serde_json::json!({
                "metric": of.metric.name(), "kernel": of.kernel, "lab": of.lab, "trust": of.trust.name(),
            })
        });
        let all = serde_json::json!({
            "refault": env!("CARGO_PKG_VERSION"),
            "name": self.name,
            "about": self.about,
            "today": { "machine": self.today, "limit_is": self.limit_is, "values": values, "failed": self.failed },
            "trust": trust.collect::<Vec<_>>(),
            "starts": self.starts,
            "answer": self.answer(),
            "unknown": self.unknown,
            "alternatives": self.alternatives,
        });
        all.serialize(to)
    }
}
