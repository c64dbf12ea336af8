//! Conclusions from a curve: the smallest limit, what a little less or more would do, and how far
//! to trust it.

use crate::figures::Figures;
use crate::group::{AT_LIMIT, Curve, CurvePoint, PERCENT};
use refault::curve::{CurveLine, MoreMemory};
use refault::memory_size::human;
use serde::Serialize;

/// Touches of a sample below which nothing is said.
const LEAST_SAMPLED: u64 = 1000;

/// Pages of a sample below which single pages show.
const FEW_PAGES: u64 = 100;

/// Difference of engine and kernel that is agreement, as a share of accesses.
const NEAR: f64 = 0.02;

/// Two standard errors of the hit rate at the limit above which a curve is not to be trusted.
const WIDE: f64 = 0.1;

/// Share of lost events from which on they are said.
const MUCH_LOST: f64 = 0.01;

/// Misses, as a share of accesses, that are none.
const NONE: f64 = 0.0005;

/// CurveTrust in a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CurveTrust {
    /// Too little was seen.
    NotYet,
    /// Something speaks against it.
    Low,
    /// As it is.
    Good,
}

impl CurveTrust {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            CurveTrust::NotYet => "not yet",
            CurveTrust::Low => "low",
            CurveTrust::Good => "good",
        }
    }
}

/// Another size in the place of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SizeChange {
    /// The size in bytes.
    pub bytes: u64,
    /// Hit rate there less that at the limit, as a share of accesses.
    pub hit_rate: f64,
    /// Two standard errors of it.
    pub bar: f64,
    /// Bytes read from disks each second, as a multiple of those at the limit; none: there were
    /// none.
    pub reads: Option<f64>,
}

/// A size, and its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Smallest {
    /// Most likely, in bytes.
    pub bytes: u64,
    /// With bars to the good side.
    pub low_bytes: u64,
    /// With bars to the bad side.
    pub high_bytes: u64,
    /// No smaller size was tried that has room: it may be smaller still.
    pub is_at_most: bool,
}

/// Conclusions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LimitAdvice {
    /// How far it can be trusted.
    pub trust: CurveTrust,
    /// Reasons, in words.
    pub why: Vec<String>,
    /// The smallest limit at which misses grow by less than was asked for; none: it is not known.
    pub smallest: Option<Smallest>,
    /// A tenth less memory; none: there is no room for what is besides files.
    pub less: Option<SizeChange>,
    /// A tenth more.
    pub more: Option<SizeChange>,
    /// The larger size that saves nine tenths of what can be saved; none: no larger size saves a
    /// point, a tenth of the misses, and more than the bar.
    pub helps: Option<SizeChange>,
}

/// Two standard errors of a point, and what may be in lost events.
pub(crate) fn bar(curve: &Curve, point: &CurvePoint) -> f64 {
    (2.0 * point.error.unwrap_or(0.0) + curve.lost).min(1.0)
}

impl LimitAdvice {
    /// Conclusions from a curve; misses may grow by the share `growth`.
    pub fn of(curve: &Curve, figures: &Figures, growth: f64) -> LimitAdvice {
        let (trust, why) = trust(curve, figures);
        let at_limit = &curve.points[AT_LIMIT];
        let is_known = trust > CurveTrust::NotYet && at_limit.fits;
        let change_to = |bytes: u64| {
            let point = curve.points.iter().find(|point| point.bytes == bytes && point.fits && is_known)?;
            // Both sizes are of the same sample: what they share cancels out.
            let bar = (bar(curve, point) - bar(curve, at_limit)).abs().max(curve.lost);
            Some(SizeChange {
                bytes: point.bytes,
                hit_rate: point.hit_rate - at_limit.hit_rate,
                bar,
                reads: (at_limit.read_bytes_per_s > 0.0).then(|| point.read_bytes_per_s / at_limit.read_bytes_per_s),
            })
        };
        let change = |percent: u64| {
            let at = PERCENT.iter().position(|&known| known == percent)?;
            change_to(curve.points.get(at)?.bytes)
        };
        let helps = match line(curve).more_than(at_limit.bytes as f64) {
            MoreMemory::Helps { bytes, .. } => change_to(bytes as u64).filter(|to| to.hit_rate > to.bar),
            MoreMemory::Untried | MoreMemory::SavesLittle => None,
        };
        let smallest = is_known.then(|| {
            let by = |errors: f64| smallest(curve, growth, errors);
            let tried = curve.points.iter().find(|point| point.fits).map_or(0, |point| point.bytes);
            Smallest { bytes: by(0.0), low_bytes: by(-1.0), high_bytes: by(1.0), is_at_most: by(0.0) <= tried }
        });
        let (trust, why) = doubts_of(smallest, curve, trust, why);
        LimitAdvice { trust, why, smallest, less: change(90), more: change(110), helps }
    }
}

/// The curve of sizes that have room: bytes, and misses in percent.
fn line(curve: &Curve) -> CurveLine {
    let fits = curve.points.iter().filter(|point| point.fits);
    let points = fits.map(|point| (point.bytes as f64, 100.0 * (1.0 - point.hit_rate))).collect();
    CurveLine { policy: String::new(), points, reads: Vec::new() }
}

/// The trust, and the reasons, with what speaks against the smallest size.
fn doubts_of(
    smallest: Option<Smallest>,
    curve: &Curve,
    trust: CurveTrust,
    mut why: Vec<String>,
) -> (CurveTrust, Vec<String>) {
    let Some(smallest) = smallest else { return (trust, why) };
    let tried = human(smallest.bytes);
    if smallest.is_at_most && curve.points[0].fits {
        why.push(format!("{tried} is the smallest size tried, and enough: less may be, too"));
    } else if smallest.is_at_most {
        why.push(format!("in less than {tried} there is no room for what is not of files"));
    }
    let pages = smallest.bytes / 4096 / curve.one_in.max(1);
    if pages < FEW_PAGES && curve.sample_pages >= FEW_PAGES {
        why.push(format!("the smallest size is {pages} pages of the sample"));
    }
    (if why.is_empty() { trust } else { trust.min(CurveTrust::Low) }, why)
}

/// The smallest size with no more misses than at the limit and a share more, between two sizes in
/// proportion; `bars` are added to the misses of each size.
fn smallest(curve: &Curve, growth: f64, bars: f64) -> u64 {
    let limit = &curve.points[AT_LIMIT];
    let most = ((1.0 - limit.hit_rate) * (1.0 + growth)).max(1.0 - limit.hit_rate + NONE);
    let over = |point: &CurvePoint| {
        let own = (bar(curve, point) - bar(curve, limit)).abs();
        if point.fits { 1.0 - point.hit_rate + bars * own - most } else { f64::INFINITY }
    };
    let mut best = limit;
    for point in curve.points[..AT_LIMIT].iter().rev() {
        let (above, below) = (over(best).min(0.0), over(point));
        if below > 0.0 {
            // Without room there is nothing between.
            let part = if below.is_finite() { -above / (below - above) } else { 0.0 };
            let (from, to) = ((best.bytes as f64).ln(), (point.bytes as f64).ln());
            return (from + (to - from) * part).exp().round() as u64;
        }
        best = point;
    }
    best.bytes
}

fn trust(curve: &Curve, figures: &Figures) -> (CurveTrust, Vec<String>) {
    if curve.sampled < LEAST_SAMPLED {
        return (CurveTrust::NotYet, vec![format!("{} touches of the sample so far", curve.sampled)]);
    }
    let mut why = Vec::new();
    let limit = &curve.points[AT_LIMIT];
    if !limit.fits {
        why.push("memory besides files fills the limit".to_owned());
    }
    let off = curve.kernel_hit_rate.map_or(0.0, |kernel| limit.hit_rate - kernel);
    let allowed = NEAR.max(2.0 * curve.error_of_difference.unwrap_or(0.0));
    if figures.limit_bytes.is_some() && off.abs() > allowed {
        let than = if off > 0.0 { "more" } else { "less" };
        why.push(format!("the engine hits {:.1} points {than} than this kernel", 100.0 * off.abs()));
    }
    if curve.sample_pages < FEW_PAGES {
        why.push(format!("the limit is {} pages of the sample", curve.sample_pages));
    }
    let wide = bar(curve, limit);
    if wide > WIDE {
        why.push(format!(
            "the error bar at the limit is {:.0} points: watch longer, or at a higher --rate",
            100.0 * wide
        ));
    }
    if curve.lost > MUCH_LOST {
        why.push(format!("{:.0} % of the events were lost", 100.0 * curve.lost));
    }
    if figures.anon_bytes > figures.file_bytes.saturating_mul(3) && figures.swap_ins.is_some_and(|n| n > 0) {
        why.push("most of it is anonymous and swaps, which is not in the curve".to_owned());
    }
    if curve.given_up > 0 {
        why.push("more files than the watcher may remember: larger sizes are underrated".to_owned());
    }
    // A group that is far from its limit never fills the engine: all sizes with room are alike.
    if !limit.is_filled && figures.limit_bytes.is_some_and(|bytes| figures.usage_bytes / 9 * 10 >= bytes) {
        why.push("the limit is full, and the engine is not yet".to_owned());
    }
    (if why.is_empty() { CurveTrust::Good } else { CurveTrust::Low }, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(misses: [f64; 15]) -> Curve {
        let point = |(percent, misses): (u64, f64)| CurvePoint {
            bytes: percent << 20,
            hit_rate: 1.0 - misses,
            error: Some(0.0),
            read_bytes_per_s: misses * 1e6,
            fits: true,
            is_filled: true,
        };
        Curve {
            points: PERCENT.into_iter().zip(misses).map(point).collect(),
            sampled: 50_000,
            counted: None,
            accesses_per_s: 100.0,
            kernel_hit_rate: Some(1.0 - misses[AT_LIMIT]),
            error_of_difference: Some(0.0),
            kernel_read_bytes_per_s: 0.0,
            lost: 0.0,
            sample_pages: 1000,
            one_in: 1,
            most_one_in: 1,
            span_s: 60.0,
            given_up: 0,
        }
    }

    #[test]
    fn the_smallest_limit_is_where_misses_begin_to_grow() {
        let knee = curve([0.9, 0.9, 0.9, 0.9, 0.8, 0.5, 0.3, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]);
        let advice = LimitAdvice::of(&knee, &Figures::default(), 0.1);
        let smallest = advice.smallest.expect("known");
        assert!((88 << 20..=90 << 20).contains(&smallest.bytes), "{smallest:?}");
        assert_eq!((advice.trust, advice.less.expect("known").hit_rate), (CurveTrust::Good, 0.0));
    }

    #[test]
    fn more_memory_that_helps_is_named() {
        let at = |misses: [f64; 15], error: f64| {
            let mut curve = curve(misses);
            curve.points[12..].iter_mut().for_each(|point| point.error = Some(error));
            LimitAdvice::of(&curve, &Figures::default(), 0.1).helps.map(|to| (to.bytes >> 20, to.hit_rate))
        };
        let mut misses = [0.9; 15];
        (misses[13], misses[14]) = (0.25, 0.2);
        assert_eq!(at(misses, 0.0), Some((200, 0.65)));
        assert_eq!(at(misses, 0.4), None, "the bar is wider");
        assert_eq!(at([0.9; 15], 0.0), None);
    }

    #[test]
    fn an_answer_at_the_end_of_the_sizes_is_a_bound() {
        for misses in [0.1, 0.0] {
            let flat = LimitAdvice::of(&curve([misses; 15]), &Figures::default(), 0.1);
            let smallest = flat.smallest.expect("known");
            assert!((smallest.bytes, smallest.is_at_most) == (PERCENT[0] << 20, true), "{smallest:?}");
            assert!(flat.trust == CurveTrust::Low && flat.why[0].contains("smallest size tried"), "{flat:?}");
        }
        let mut tight = curve([0.1; 15]);
        tight.points[..6].iter_mut().for_each(|point| point.fits = false);
        let tight = LimitAdvice::of(&tight, &Figures::default(), 0.1);
        assert!(tight.smallest.is_some_and(|size| size.is_at_most && size.bytes == 63 << 20), "{tight:?}");
        assert!(tight.trust == CurveTrust::Low && tight.why[0].contains("not of files"), "{tight:?}");
        // The bar alone reaches the end.
        let mut rough = curve([0.12, 0.12, 0.12, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]);
        rough.points[..3].iter_mut().for_each(|point| point.error = Some(0.02));
        assert!(LimitAdvice::of(&rough, &Figures::default(), 0.1).smallest.is_some_and(|size| !size.is_at_most));
    }

    #[test]
    fn bars_widen_the_answer() {
        let mut rough = curve([0.9, 0.9, 0.9, 0.9, 0.8, 0.5, 0.3, 0.2, 0.12, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]);
        rough.points[..AT_LIMIT].iter_mut().for_each(|point| point.error = Some(0.02));
        let smallest = LimitAdvice::of(&rough, &Figures::default(), 0.3).smallest.expect("known");
        assert!(smallest.low_bytes < smallest.bytes && smallest.bytes < smallest.high_bytes, "{smallest:?}");
    }

    #[test]
    fn what_speaks_against_it_is_said() {
        let figures = Figures { limit_bytes: Some(100 << 20), ..Figures::default() };
        let mut off = curve([0.9, 0.9, 0.9, 0.9, 0.9, 0.5, 0.5, 0.5, 0.5, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]);
        off.kernel_hit_rate = Some(0.8);
        off.lost = 0.05;
        let advice = LimitAdvice::of(&off, &figures, 0.1);
        assert_eq!((advice.trust, advice.why.len()), (CurveTrust::Low, 2));
        assert!(advice.why[0].contains("10.0 points more"), "{:?}", advice.why);
        let mut rough = curve([0.9, 0.9, 0.9, 0.9, 0.9, 0.5, 0.5, 0.5, 0.5, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]);
        rough.points[AT_LIMIT].error = Some(0.1);
        let advice = LimitAdvice::of(&rough, &figures, 0.1);
        assert_eq!((advice.trust, advice.why.len()), (CurveTrust::Low, 1));
        assert!(advice.why[0].contains("is 20 points"), "{:?}", advice.why);
        off.sampled = 10;
        let advice = LimitAdvice::of(&off, &figures, 0.1);
        assert_eq!((advice.trust, advice.smallest), (CurveTrust::NotYet, None));
    }
}
