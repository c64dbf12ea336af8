//! A group that is watched, and its report for people.

use crate::advice::{CurveTrust, LimitAdvice};
use crate::counts::Accesses;
use crate::figures::Figures;
use crate::group::{AT_LIMIT, Curve, GroupCurve, Totals};
use crate::state::State;
use refault::memory_size::human;
use refault_record::Cgroup;

/// State of a group, for people.
#[derive(Clone, Debug)]
pub struct GroupReport {
    /// Path of the group.
    pub path: String,
    /// Name of the container or the pod, with its id; `None` for other groups.
    pub name: Option<String>,
    /// Sizes now.
    pub figures: Figures,
    /// The size that the curve is around, in bytes: the limit, or what it had.
    pub around_bytes: u64,
    /// Hit rate of the kernel since the last report; none: no touch.
    pub hit_rate_now: Option<f64>,
    /// Bytes read from disks each second since the last report.
    pub read_bytes_per_s_now: f64,
    /// The curve.
    pub curve: Curve,
    /// Whether the curve is one of a watcher before.
    pub is_old: bool,
    /// Conclusions.
    pub advice: LimitAdvice,
}

impl GroupReport {
    /// Whether more memory helps, and what speaks against the curve, in words.
    pub fn remarks(&self) -> Vec<String> {
        let helps = self.advice.helps.map(|to| {
            let hits = 100.0 * (self.curve.points[AT_LIMIT].hit_rate + to.hit_rate);
            format!("more memory helps: {hits:.1} % hits with {}", human(to.bytes))
        });
        helps.into_iter().chain(self.advice.why.iter().cloned()).collect()
    }
}

/// A group that is watched.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) cgroup: Cgroup,
    pub(crate) curve: GroupCurve,
    pub(crate) figures: Figures,
    /// Counts at the last report, and when it was.
    pub(crate) before: (Totals, u64),
    pub(crate) used_ns: u64,
    pub(crate) begun_ns: u64,
    pub(crate) looked_ns: u64,
}

/// Growth of misses that is asked for, and curves of a watcher before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportSettings<'a> {
    pub(crate) growth: f64,
    pub(crate) state: Option<&'a State>,
}

/// The report of a group, since the last one.
pub(crate) fn report(
    path: &str,
    watched: &mut Watched,
    asked: ReportSettings<'_>,
    one_in: u64,
    now_ns: u64,
) -> GroupReport {
    let totals = watched.curve.totals;
    let (last, at_ns) = std::mem::replace(&mut watched.before, (totals, now_ns));
    let seconds = (now_ns.saturating_sub(at_ns) as f64 / 1e9).max(1e-9);
    let reads = totals.reads.saturating_sub(last.reads) * one_in * 4096;
    let mut curve = watched.curve.curve();
    let mut advice = LimitAdvice::of(&curve, &watched.figures, asked.growth);
    let old = asked.state.and_then(|state| state.curves.get(path));
    let old = old.filter(|old| advice.trust == CurveTrust::NotYet || is_ahead(old, &curve));
    if let Some(old) = old {
        curve = old.clone();
        advice = LimitAdvice::of(&curve, &watched.figures, asked.growth);
        advice.trust = advice.trust.min(CurveTrust::Low);
        advice.why.insert(0, "the curve is of before the watcher began anew".to_owned());
    }
    GroupReport {
        path: path.to_owned(),
        name: None,
        figures: watched.figures,
        around_bytes: watched.curve.limit_pages() * 4096,
        hit_rate_now: hit_rate_now(&totals, &last, one_in),
        read_bytes_per_s_now: reads as f64 / seconds,
        is_old: old.is_some(),
        curve,
        advice,
    }
}

/// Whether a curve from before says more than one that has just begun, of the same limit.
fn is_ahead(old: &Curve, new: &Curve) -> bool {
    let limit = |curve: &Curve| curve.points[AT_LIMIT].bytes;
    limit(old) == limit(new) && new.span_s < 0.25 * old.span_s && new.sampled < old.sampled
}

/// Hit rate of the kernel between two totals: of all accesses, if they are counted.
fn hit_rate_now(now: &Totals, before: &Totals, one_in: u64) -> Option<f64> {
    let more = |now: u64, before: u64| now.saturating_sub(before);
    let (accesses, misses) = (more(now.accesses, before.accesses), more(now.misses, before.misses));
    let of = match now.whole - before.whole {
        0 => Accesses::Sampled(accesses),
        whole => Accesses::Counted(whole as f64 / one_in as f64),
    };
    (accesses > 0).then(|| of.hit_rate(misses))
}
