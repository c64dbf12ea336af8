//! Page on the accesses of a trace: which pages, when, and after which distance.

use super::{TIME, share, time_axis, whole_time_axis};
use crate::model::{Axis, Body, Chart, Colour, Figure, Heat, Mark, Page, Series, Shape};
use refault::document::trace::{TraceDetail, TraceDocument};
use refault::units::{Unit, bytes};

const DOC: &str = "reference/report.md#access";

/// The page.
pub(super) fn page(d: &TraceDocument) -> Page {
    let page = Page::new("access", "What does access look like?", answer(d));
    page.with_all(heat(d)).with_all(d.main().and_then(|main| distances(d, main))).with_all(working_set(d))
}

/// Distinct pages of each window.
fn distinct(d: &TraceDocument) -> Vec<u64> {
    let w = &d.working_set;
    w.first.iter().zip(&w.kept).zip(&w.back).map(|((a, b), c)| a + b + c).collect()
}

fn answer(d: &TraceDocument) -> String {
    let mut sizes = distinct(d);
    sizes.sort_unstable();
    let Some(&middle) = sizes.get(sizes.len() / 2) else { return String::new() };
    let mut out = format!(
        "A window of {} accesses touches {} in the middle, of {} in all.",
        Unit::Count.text(d.windows.windows(2).map(|w| w[1] - w[0]).next().unwrap_or(0) as f64),
        bytes(d.bytes(middle as f64)),
        bytes(d.bytes(d.trace.footprint_pages as f64))
    );
    if let Some(main) = d.main() {
        let total: u64 = main.distance_bins.iter().map(|b| b.1).sum();
        let mut sum = 0;
        let half = main.distance_bins.iter().find(|&&(_, n)| {
            sum += n;
            total > 0 && 2 * sum >= total
        });
        if let Some(&(to, _)) = half {
            // A bin ends where it ends: what is below is half or more.
            out += &format!(
                " Of the pages that came back {} were away for fewer than {} evictions: about {} more memory would have \
                 kept them ({}).",
                Unit::Percent.text(share(sum, total)),
                Unit::Count.text(to as f64),
                bytes(d.bytes(to as f64)),
                main.policy
            );
        }
    }
    out
}

fn heat(d: &TraceDocument) -> Option<Figure> {
    let h = &d.heat;
    if h.rows == 0 || h.columns == 0 {
        return None;
    }
    let (x, mut starts) = time_axis(d);
    let end = match &d.window_s {
        Some(seconds) => seconds.last().copied(),
        None => d.windows.last().map(|&n| n as f64),
    };
    starts.extend(end);
    // A column is one window, or several.
    let windows = starts.len().saturating_sub(1);
    let xs = (0..=h.columns).map(|c| starts.get(c * windows / h.columns).copied().unwrap_or(0.0)).collect();
    // Pages of older versions have rows up to the next name instead.
    let extent = |n: usize| (h.borders.get(n + 1).map_or(h.rows, |next| next.0).saturating_sub(h.borders[n].0)) as u64;
    // Equally many accesses take more time here and less there.
    let x = match x.unit {
        Unit::Seconds => Axis::new("time; each column has as many accesses, so seconds are not evenly apart", x.unit),
        unit => Axis::new("access", unit),
    };
    let heat = Heat {
        columns: h.columns,
        rows: h.rows,
        x,
        xs,
        what: "accesses".into(),
        cells: h.counts.iter().map(|&n| n as f64).collect(),
        labels: h.labels.clone(),
        borders: (h.borders.iter().enumerate())
            .map(|(n, (row, name))| (*row, name.clone(), h.border_pages.get(n).copied().unwrap_or_else(|| extent(n))))
            .collect(),
    };
    let meaning = "Accesses by place and time: each row is as many pages of an object, each column a time; pages that are \
                   never touched take no room. A horizontal line is a page that is used all the time, a diagonal one a \
                   scan, a block a phase.";
    Some(Figure::new("Where and when", meaning, DOC, Body::Heat(heat)))
}

fn distances(d: &TraceDocument, main: &TraceDetail) -> Option<Figure> {
    let bins = &main.distance_bins;
    if bins.is_empty() {
        return None;
    }
    let label = |&(to, _): &(u64, u64)| format!("< {}", bytes(d.bytes(to as f64)));
    let mut chart = Chart::new(
        Shape::Bars,
        Axis::new("evictions while the page was away, as memory", Unit::Count),
        Axis::new("refaults", Unit::Count),
        (0..bins.len()).map(|n| n as f64).collect(),
        vec![Series::new("refaults", Colour::of_policy(&main.policy), bins.iter().map(|b| b.1 as f64))],
    );
    chart.labels = bins.iter().map(label).collect();
    // More memory by that much keeps all that is left of the line.
    let (have, footprint) = (d.detail_pages as f64, d.trace.footprint_pages as f64);
    let sizes = [("+10 %", have * 1.1), ("+50 %", have * 1.5), ("×2", have * 2.0), ("all of it", footprint)];
    for (name, pages) in sizes {
        let more = pages - have;
        if more <= 0.0 || pages > footprint {
            continue;
        }
        let to = |n: usize| bins[n].0 as f64;
        let from = |n: usize| if n == 0 { 0.0 } else { to(n - 1) };
        if let Some(n) = (0..bins.len()).find(|&n| more <= to(n)) {
            let at = n as f64 - 0.5 + (more - from(n)) / (to(n) - from(n)).max(1.0);
            chart.marks.push(Mark { at, label: name.into() });
        }
    }
    let meaning = format!(
        "How long pages were away that came back: the evictions between the eviction of a page and its return, which is \
         Linux's refault distance. A page that was away for N evictions would have stayed with N pages more. The lines \
         are memory sizes, from the {} there are: what is left of a line would have stayed with that much. First \
         touches are not in it. Under {}.",
        bytes(d.bytes(have)),
        main.policy
    );
    Some(Figure::new("Refault distance", meaning, "mechanisms.md#refault-distance", Body::Chart(chart)))
}

fn working_set(d: &TraceDocument) -> Option<Figure> {
    let w = &d.working_set;
    if w.first.is_empty() {
        return None;
    }
    let (x, xs) = whole_time_axis(d);
    let of = |all: &[u64]| all.iter().take(xs.len()).map(|&n| d.bytes(n as f64)).collect::<Vec<_>>();
    let series = vec![
        Series::new("also in the window before", Colour::Blue, of(&w.kept)),
        Series::new("back from earlier", Colour::Orange, of(&w.back)),
        Series::new("for the first time", Colour::Green, of(&w.first)),
    ];
    let mut chart = Chart::new(Shape::Stacked, x, Axis::new("distinct pages", Unit::Bytes), xs, series);
    chart.time = Some(TIME);
    let meaning = "The distinct pages that each window touches: those that the window before touched as well, those that \
                   come back from earlier, and new ones. What comes back from earlier is what memory is kept for.";
    Some(Figure::new("Working set by window", meaning, DOC, Body::Chart(chart)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use refault::document::trace::{HeatFacts, TraceFacts, WorkingSet};

    /// Values below the border of a bin are told as they are, not as half.
    #[test]
    fn the_share_that_was_away_for_less_is_the_true_one() {
        let detail = TraceDetail {
            policy: "lru".into(),
            distance_bins: vec![(8, 10), (16, 57), (32, 33)],
            ..TraceDetail::default()
        };
        let d = TraceDocument {
            trace: TraceFacts { page_size: 4096, footprint_pages: 9, ..TraceFacts::default() },
            details: vec![detail],
            working_set: WorkingSet { first: vec![1], kept: vec![0], back: vec![0] },
            ..TraceDocument::default()
        };
        let answer = answer(&d);
        assert!(answer.contains("67.0 % were away for fewer than 16 evictions"), "{answer}");
    }

    #[test]
    fn names_of_the_heat_map_have_their_sizes() {
        let borders = vec![(0, "small".to_owned()), (0, "large".to_owned())];
        let facts = HeatFacts { rows: 2, columns: 1, counts: vec![1, 1], borders, ..HeatFacts::default() };
        let sizes = |border_pages: Vec<u64>| {
            let heat = HeatFacts { border_pages, ..facts.clone() };
            let d =
                TraceDocument { heat, windows: vec![0, 2], window_s: Some(vec![0.0, 1.0]), ..TraceDocument::default() };
            let Some(Figure { body: Body::Heat(heat), .. }) = super::heat(&d) else { panic!("a heat map") };
            assert!(heat.x.label.contains("not evenly apart"), "{}", heat.x.label);
            heat.borders.iter().map(|border| border.2).collect::<Vec<_>>()
        };
        assert_eq!(sizes(vec![1, 9]), [1, 9]);
        // A page of an older version: the rows up to the next.
        assert_eq!(sizes(Vec::new()), [0, 2]);
    }
}
