//! The page of HTML: what the groups need now, and what they had since the watcher began.

use crate::Failure;
use crate::page::write_text;
use refault_report::{Made, WatchedGroup, WatchedMoment, watch_html};
use refault_watch::GroupReport;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// Moments of a group that are kept; beyond it each second one goes.
const MOST_MOMENTS: usize = 480;

/// Groups as they were.
pub(super) struct Past {
    begun: Instant,
    moments: BTreeMap<String, Vec<WatchedMoment>>,
}

impl Past {
    pub(super) fn new() -> Past {
        Past { begun: Instant::now(), moments: BTreeMap::new() }
    }

    /// Notes the groups, and writes the page anew, whole or not at all.
    pub(super) fn write(&mut self, path: &Path, reports: &[GroupReport]) -> Result<(), Failure> {
        let at_s = self.begun.elapsed().as_secs_f64();
        self.moments.retain(|group, _| reports.iter().any(|report| report.path == *group));
        let groups: Vec<_> = reports.iter().map(|report| self.group(report, at_s)).collect();
        let made = Made { command: crate::page::command_line(), version: env!("CARGO_PKG_VERSION").into() };
        write_text(path, &watch_html(&groups, &made))
    }

    fn group(&mut self, of: &GroupReport, at_s: f64) -> WatchedGroup {
        let smallest = of.advice.smallest;
        let usage_bytes = of.figures.usage_bytes as f64;
        let moments = self.moments.entry(of.path.clone()).or_default();
        let smallest_bytes = smallest.map(|smallest| smallest.bytes as f64);
        moments.push(WatchedMoment { at_s, usage_bytes, smallest_bytes, hit_rate: of.hit_rate_now });
        if moments.len() > MOST_MOMENTS {
            let mut at = 0;
            moments.retain(|_| (at += 1, at % 2 == 0).1);
        }
        let sizes = of.curve.points.iter().filter(|point| point.fits && smallest.is_some());
        WatchedGroup {
            name: of.name.clone().unwrap_or_else(|| of.path.clone()),
            usage_bytes,
            limit_bytes: of.figures.limit_bytes.map(|bytes| bytes as f64),
            smallest_bytes: smallest.map(|of| [of.bytes, of.low_bytes, of.high_bytes].map(|bytes| bytes as f64)),
            is_at_most: smallest.is_some_and(|smallest| smallest.is_at_most),
            trust: of.advice.trust.name().to_owned(),
            why: of.advice.why.clone(),
            one_in: of.curve.one_in,
            sizes: sizes.map(|at| [at.bytes as f64, at.hit_rate, 2.0 * at.error.unwrap_or(0.0)]).collect(),
            moments: moments.clone(),
        }
    }
}
