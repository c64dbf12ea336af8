//! The curves of a result, by bytes.

use super::knee::knee_by_price;
use crate::document::replay::ReplayDocument;
use crate::document::trace::{CurveFacts, TraceDocument, main_of};

/// Miss ratios by memory.
#[derive(Clone, Debug, Default)]
pub struct Curves {
    /// Bytes a page.
    pub page_size: f64,
    /// Distinct pages of the trace.
    pub footprint_bytes: f64,
    /// The limit that there is today.
    pub limit_bytes: Option<f64>,
    /// The policy of the recorded kernel; none: it is no recording.
    pub recorded_policy: Option<String>,
    /// Replays a tenth below and above the knee and the limit.
    pub tenths: Option<CurveLine>,
    /// A curve for each policy.
    pub all: Vec<CurveLine>,
}

/// The curve of one policy: bytes and misses in percent, by bytes.
#[derive(Clone, Debug)]
pub struct CurveLine {
    /// The policy.
    pub policy: String,
    /// Bytes of memory in ascending order, and misses in percent.
    pub points: Vec<(f64, f64)>,
    /// Bytes read from disks, by bytes of memory.
    pub reads: Vec<(f64, f64)>,
}

impl CurveLine {
    /// At a size that was replayed.
    pub fn exactly(&self, bytes: f64) -> Option<f64> {
        self.points.iter().find(|&&(b, _)| b == bytes).map(|&(_, misses)| misses)
    }

    /// In percent; between two sizes in proportion.
    pub fn at(&self, bytes: f64) -> Option<f64> {
        let after = self.points.partition_point(|&(b, _)| b < bytes);
        let &(b1, m1) = self.points.get(after)?;
        if b1 == bytes || after == 0 {
            return (b1 == bytes).then_some(m1);
        }
        let (b0, m0) = self.points[after - 1];
        Some(m0 + (m1 - m0) * (bytes - b0) / (b1 - b0))
    }

    /// Distance of the misses from those with 2 % less or more memory, in points; 0: no size is
    /// near.
    pub fn near(&self, bytes: f64) -> f64 {
        let Some(here) = self.at(bytes) else { return 0.0 };
        let apart = |part: f64| self.at(bytes * part).map_or(0.0, |misses| (misses - here).abs());
        apart(0.98).max(apart(1.02))
    }

    /// The size beyond which memory is not worth its price.
    pub fn knee(&self) -> Option<(f64, f64)> {
        self.points.get(knee_by_price(&self.points)?).copied()
    }
}

impl Curves {
    /// Curves of a trace that a report looked at.
    pub fn of_trace(d: &TraceDocument) -> Curves {
        let line = |c: &CurveFacts| CurveLine {
            policy: c.policy.clone(),
            points: c
                .pages
                .iter()
                .zip(&c.miss_ratio)
                .filter_map(|(&p, m)| Some((d.bytes(p as f64), 100.0 * (*m)?)))
                .collect(),
            reads: c
                .pages
                .iter()
                .zip(&c.read_pages)
                .filter_map(|(&p, read)| Some((d.bytes(p as f64), d.bytes((*read)? as f64))))
                .collect(),
        };
        Curves {
            page_size: d.trace.page_size as f64,
            footprint_bytes: d.bytes(d.trace.footprint_pages as f64),
            limit_bytes: d.limit_pages.map(|p| d.bytes(p as f64)),
            recorded_policy: d.recorded_policy.clone(),
            tenths: d.tenths.as_ref().map(line),
            all: d.curves.iter().map(line).collect(),
        }
    }

    /// Curves of a trace of a replay, without groups.
    pub fn of_replay(d: &ReplayDocument, trace: &str) -> Curves {
        let mut all = Curves::default();
        for row in d.rows.iter().filter(|r| r.trace == trace && r.group.is_none() && r.oom_at.is_none()) {
            let Some(pages) = row.memory_pages else { continue };
            all.page_size = row.page_size as f64;
            all.footprint_bytes = (row.footprint_pages * row.page_size) as f64;
            let point = (pages as f64 * all.page_size, 100.0 * row.miss_ratio());
            match all.all.iter_mut().find(|l| l.policy == row.policy) {
                Some(line) => line.points.push(point),
                None => all.all.push(CurveLine { policy: row.policy.clone(), points: vec![point], reads: Vec::new() }),
            }
        }
        all.all.iter_mut().for_each(|l| l.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
        all
    }

    /// The curve of the policy that pages tell most of.
    pub fn main(&self) -> Option<&CurveLine> {
        main_of(&self.all, |line| &line.policy, self.recorded_policy.as_deref())
    }

    /// All sizes of all curves, in ascending order.
    pub fn sizes(&self) -> Vec<f64> {
        let mut all: Vec<f64> = self.all.iter().flat_map(|l| l.points.iter().map(|p| p.0)).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_knee_is_where_the_curve_bends() {
        let points = vec![(1.0, 90.0), (2.0, 50.0), (3.0, 10.0), (4.0, 9.0), (10.0, 8.0)];
        let line = CurveLine { policy: "lru".into(), points, reads: Vec::new() };
        assert_eq!(line.knee(), Some((3.0, 10.0)));
        assert_eq!(line.at(2.5), Some(30.0));
        assert_eq!(line.at(0.5), None);
        assert_eq!(line.at(11.0), None);
        let points = vec![(1.0, 5.0), (2.0, 5.0), (3.0, 5.0)];
        let flat = CurveLine { policy: "lru".into(), points, reads: Vec::new() };
        assert_eq!(flat.knee(), None);
    }
}
