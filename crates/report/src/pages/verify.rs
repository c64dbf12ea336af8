//! Page on the kernel beside the lab.

use super::share;
use crate::model::{Axis, Body, Cell, Chart, Colour, Figure, Page, Series, Shape, Table, Verdict};
use crate::words;
use refault::document::trace::TraceDocument;
use refault::document::verify::{BothSides, VerifyDocument};
use refault::units::Unit;

const DOC: &str = "reference/record.md#the-method-of-verify";

/// The page; `beside` is what the other pages replay.
pub(super) fn page(d: &VerifyDocument, beside: Option<&TraceDocument>) -> Page {
    let page =
        Page::new("kernel", "What did the kernel do?", answer(d) + &beside.map_or(String::new(), |t| apart_from(d, t)));
    page.with(hit_rates(d)).with(apart(d)).with_all(objects(d)).with(counters(d))
}

fn answer(d: &VerifyDocument) -> String {
    let (kernel, lab) = d.total().hit_rates();
    format!(
        "Under Linux {} {} of the accesses {}, in the lab ({}) {}: {}.",
        d.kernel,
        words::share(100.0 - kernel),
        words::miss(),
        d.policy,
        words::share(100.0 - lab),
        d.verdict.text
    )
}

/// Why the other pages have other misses.
fn apart_from(d: &VerifyDocument, trace: &TraceDocument) -> String {
    if trace.as_recorded {
        return " The other pages are of the same machine, with its readahead: pages that are missing one after the other \
                in one read are one miss, as they are one wait."
            .to_owned();
    }
    let (_, lab) = d.total().hit_rates();
    let same = trace.details.iter().find(|x| x.policy == d.policy && d.memory_pages == Some(trace.detail_pages));
    let other = same.map_or(String::new(), |x| {
        let misses = words::share(share(x.misses, x.accesses));
        format!(": with the same limit {misses} {} there, {} here", words::miss(), words::share(100.0 - lab))
    });
    format!(
        " The other pages have other misses{other}. There each page that is not in memory is a miss, and nothing is read \
         ahead. Here the lab reads ahead as the kernel did, and pages that are missing one after the other in one read are \
         one miss, as they are one wait."
    )
}

/// Line of a chart: its name, colour, and value in a window.
type Line<'a> = (&'static str, Colour, &'a dyn Fn(&BothSides) -> f64);

/// A chart over the windows; those without an access have no value.
fn over_windows(d: &VerifyDocument, y: Axis, lines: [Line<'_>; 2]) -> Body {
    let begin = |n: usize| d.windows[..n].iter().map(|w| w.accesses as f64).sum();
    // JSON of older versions has no times.
    let has_times = d.window_from_s.len() == d.windows.len() && d.window_from_s.last().is_some_and(|&end| end > 0.0);
    let (x, xs) = match has_times {
        true => (Axis::new("time", Unit::Seconds), d.window_from_s.clone()),
        false => (Axis::new("access", Unit::Count), (0..d.windows.len()).map(begin).collect()),
    };
    let line = |(name, colour, of): Line<'_>| {
        let values = d.windows.iter().map(|w| (w.accesses > 0).then(|| of(w))).collect();
        Series { values, ..Series::new(name, colour, []) }
    };
    let series = lines.map(line).into();
    let mut chart = Chart::new(Shape::Lines, x, y, xs, series);
    // Its windows are not those of the other charts.
    chart.time = Some("verify");
    Body::Chart(chart)
}

fn hit_rates(d: &VerifyDocument) -> Figure {
    let y = Axis::new(format!("{}, % of accesses", words::misses()), Unit::Percent);
    let lines: [Line<'_>; 2] = [
        ("the kernel", Colour::Ink, &|w| 100.0 - w.hit_rates().0),
        ("the lab", Colour::Vermillion, &|w| 100.0 - w.hit_rates().1),
    ];
    let meaning = "What the recorded kernel did in each window, and what the engine does with the same accesses, limit and \
                   settings.";
    Figure::new("The kernel beside us", meaning, DOC, shared(over_windows(d, y, lines)))
}

/// The same, of values that are percent of the accesses that miss.
fn shared(body: Body) -> Body {
    match body {
        Body::Chart(chart) => Body::Chart(Chart { share: true, ..chart }),
        other => other,
    }
}

fn apart(d: &VerifyDocument) -> Figure {
    let y = Axis::new("% of accesses", Unit::Percent);
    // One of two that differ missed: the differences of both kinds follow from the sums.
    let differ = |w: &BothSides| w.accesses.saturating_sub(w.same);
    let kernel_only = |w: &BothSides| (differ(w) + w.kernel_misses).saturating_sub(w.lab_misses) / 2;
    let lines: [Line<'_>; 2] = [
        ("only the kernel missed", Colour::Blue, &|w| share(kernel_only(w), w.accesses)),
        ("only the lab missed", Colour::Orange, &|w| share(differ(w).saturating_sub(kernel_only(w)), w.accesses)),
    ];
    let meaning = "Accesses of each window that one of both found in memory and the other did not. Where both lines are \
                   high and the hit rates above agree, as many pages are kept, but others.";
    Figure::new("Where they differ", meaning, DOC, over_windows(d, y, lines))
}

fn objects(d: &VerifyDocument) -> Option<Figure> {
    let word = |of: &str| format!("{}, {of}", words::misses());
    let rate = |of: &str| format!("{}, {of}", words::either("miss rate", "hit rate"));
    let own = ["object", "accesses", "lab less kernel"].map(str::to_owned);
    let [object, accesses, difference] = own;
    let heads = vec![object, accesses, word("kernel"), word("lab"), difference, rate("kernel"), rate("lab")];
    let row = |b: &BothSides| {
        let (kernel, lab) = b.hit_rates();
        vec![
            Cell::Text(b.name.clone()),
            Cell::Number(b.accesses as f64, Unit::Count),
            Cell::misses(b.kernel_misses, b.accesses),
            Cell::misses(b.lab_misses, b.accesses),
            Cell::EitherDifference(b.lab_misses as f64 - b.kernel_misses as f64, Unit::Count, Verdict::Neither),
            Cell::share(100.0 - kernel),
            Cell::share(100.0 - lab),
        ]
    };
    let rows: Vec<_> = d.objects.iter().map(row).collect();
    let table = Table { heads, rows, searchable: true };
    let meaning = "The objects whose misses differ most, at most ten.";
    (!table.rows.is_empty())
        .then(|| Figure::new("Objects with the largest difference", meaning, DOC, Body::Table(table)))
}

fn counters(d: &VerifyDocument) -> Figure {
    let kernel =
        [("added", d.kernel_pages.added), ("evicted", d.kernel_pages.evicted), ("dropped", d.kernel_pages.dropped)];
    let kernel = kernel.map(|(what, n)| (format!("pages {what}"), "the kernel", n));
    let lab = d.lab_counters.iter().map(|(name, &n)| (name.clone(), "the lab", n));
    let row = |(name, who, n): (String, &str, u64)| {
        vec![Cell::Text(name), Cell::Text(who.into()), Cell::Number(n as f64, Unit::Count)]
    };
    let rows = kernel.into_iter().chain(lab).map(row).collect();
    let table = Table { heads: ["figure", "of", "value"].map(str::to_owned).to_vec(), rows, searchable: true };
    let meaning = "Pages that the kernel added to the page cache and took out of it, and the counters of the engine under \
                   their kernel names.";
    Figure::new("Counts", meaning, "reference/record.md#json-of-verify", Body::Table(table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_of_both_kinds_add_up() {
        // 10 accesses: 2 missed by both, 3 by the kernel alone, 1 by the lab alone.
        let w = BothSides { accesses: 10, kernel_misses: 5, lab_misses: 3, same: 6, ..BothSides::default() };
        let d = VerifyDocument { windows: vec![w.clone(), BothSides::default()], ..VerifyDocument::default() };
        let Body::Chart(chart) = apart(&d).body else { panic!("a chart") };
        let values: Vec<_> = chart.series.iter().map(|s| s.values.clone()).collect();
        assert_eq!(values, [[Some(30.0), None], [Some(10.0), None]]);
        assert_eq!(chart.xs, [0.0, 10.0]);
        assert_eq!(d.total(), w);
    }
}
