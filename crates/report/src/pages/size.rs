//! The page of `refault size --json`.

use crate::model::{Axis, Body, Chart, Colour, Figure, Mark, Page, Series, Shape};
use refault::document::size::SizeDocument;
use refault::units::{Unit, bytes};

/// Unit of a metric's numbers.
pub(crate) fn unit(metric: &str) -> Unit {
    match metric {
        m if m.starts_with("some") || m.starts_with("full") || is_share(m) => Unit::Percent,
        "p50" | "p90" | "p99" | "p999" | "max_latency" => Unit::Nanoseconds,
        _ => Unit::Number,
    }
}

/// Whether values are parts of 1.
fn is_share(metric: &str) -> bool {
    metric == "hit_rate" || metric.ends_with("_per_access")
}

/// The page.
pub(super) fn page(d: &SizeDocument) -> Page {
    let unit = unit(&d.metric);
    let whole = if is_share(&d.metric) { 100.0 } else { 1.0 };
    let bound = whole * d.bound;
    let mut points: Vec<_> = d.points.iter().filter_map(|p| Some((p.bytes as f64, whole * p.value?))).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (xs, ys): (Vec<_>, Vec<_>) = points.into_iter().unzip();
    let bound = Series::new(format!("target: {}", d.target), Colour::Ink, xs.iter().map(|_| bound));
    let series = vec![Series::new(&*d.metric, Colour::Vermillion, ys), bound];
    let mut chart =
        Chart::new(Shape::Lines, Axis::new(&*d.limit, Unit::Bytes), Axis::new(&*d.metric, unit), xs, series);
    if let Some(answer) = d.answer_bytes {
        chart.marks.push(Mark { at: answer as f64, label: "smallest that is enough".into() });
    }
    let meaning = "Each point is a run with that limit. The answer is the smallest from which on every larger size that was \
                   tried meets the target.";
    let figure = Figure::new("What was tried", meaning, "reference/size.md#how-it-searches", Body::Chart(chart));
    Page::new("size", "How much memory is enough?", answer(d)).with(figure)
}

fn answer(d: &SizeDocument) -> String {
    let mut out = match (d.answer_bytes, d.verdict.as_str()) {
        (Some(answer), "met-at-smallest") => {
            format!(
                "{} is enough for {}: it is the smallest size of the range, and a smaller one may be, too.",
                bytes(answer as f64),
                d.target
            )
        }
        (Some(answer), _) => {
            format!("{} = {} is the smallest that is enough for {}.", d.limit, bytes(answer as f64), d.target)
        }
        (None, _) => format!("No size of the range meets {}.", d.target),
    };
    if !d.monotone {
        out += " More memory does not always help here: the curve is not monotone, so look at it.";
    }
    d.warnings.iter().for_each(|warning| out += &format!(" {warning}"));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use refault::document::size::SizePoint;

    #[test]
    fn a_share_is_drawn_in_the_percent_of_its_target() {
        let point = SizePoint { bytes: 1 << 20, value: Some(0.75), ..SizePoint::default() };
        let d = SizeDocument {
            metric: "hit_rate".into(),
            target: "hit_rate>95%".into(),
            bound: 0.95,
            points: vec![point],
            ..SizeDocument::default()
        };
        let Body::Chart(chart) = &page(&d).figures[0].body else { panic!("a chart") };
        assert_eq!(chart.y.unit, Unit::Percent);
        let values: Vec<_> = chart.series.iter().map(|s| s.values[0]).collect();
        assert_eq!(values, [Some(75.0), Some(95.0)]);
    }
}
