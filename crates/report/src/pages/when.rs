//! When?

use super::{TIME, policy, share, time_axis, when_text, whole_time_axis};
use crate::model::{Axis, Body, Chart, Colour, Figure, Page, Series, Shape};
use crate::words;
use refault::document::trace::{TraceDetail, TraceDocument};
use refault::units::{Unit, bytes};

const DOC: &str = "reference/report.md#time";

/// The page.
pub(super) fn page(d: &TraceDocument) -> Page {
    let page = Page::new("when", "When?", answer(d));
    let Some(main) = d.main() else { return page };
    page.with(miss_rate(d)).with_all(counters(d, main)).with_all(swap(d, main))
}

fn window_accesses(d: &TraceDocument) -> Vec<u64> {
    d.windows.windows(2).map(|w| w[1] - w[0]).collect()
}

fn answer(d: &TraceDocument) -> String {
    let Some(main) = d.main() else { return String::new() };
    let all = window_accesses(d);
    let misses = &main.window_misses;
    let Some(worst) = (0..misses.len()).max_by(|&a, &b| share(misses[a], all[a]).total_cmp(&share(misses[b], all[b])))
    else {
        return String::new();
    };
    let mut sorted = misses.clone();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let half = main.misses.div_ceil(2);
    let mut sum = 0;
    let is_needed = |n: &&u64| {
        let missing = sum < half;
        sum += **n;
        missing
    };
    let windows = sorted.iter().take_while(is_needed).count();
    let part = 100.0 * windows as f64 / misses.len().max(1) as f64;
    let shape = match part {
        p if p < 20.0 => "Misses come in bursts",
        p if p > 40.0 => "Misses are spread over the whole time",
        _ => "Misses come and go",
    };
    format!(
        "{shape}: half of them fall into {} of the windows of equally many accesses. In the worst window, from {} on, {} of \
         the accesses {}; over the whole trace {} do ({}, {}).",
        Unit::Percent.text(part),
        when_text(d, worst),
        words::share(share(misses[worst], all[worst])),
        words::miss(),
        words::share(share(main.misses, main.accesses)),
        main.policy,
        bytes(d.bytes(d.detail_pages as f64))
    )
}

fn miss_rate(d: &TraceDocument) -> Figure {
    let all = window_accesses(d);
    let line = |x: &TraceDetail| {
        let rates = x.window_misses.iter().zip(&all).map(|(&m, &a)| share(m, a));
        Series::of_policy(&x.policy, rates)
    };
    let series = d.details.iter().map(line).collect();
    let (x, xs) = time_axis(d);
    let mut chart = Chart::of_misses(Shape::Lines, x, xs, series);
    chart.time = Some(TIME);
    let meaning = format!(
        "Share of the accesses of each window whose page was {} memory. {} Drag to zoom: all charts of time \
         follow; a double click shows all of it again.",
        words::either("not in", "in"),
        policy::why(d)
    );
    Figure::new(words::either("Miss rate", "Hit rate"), meaning, DOC, Body::Chart(chart))
}

/// Counts of windows over time.
fn counted(d: &TraceDocument, mut series: Vec<Series>) -> Body {
    let (x, xs) = whole_time_axis(d);
    series.iter_mut().for_each(|s| s.values.truncate(xs.len()));
    let mut chart = Chart::new(Shape::Lines, x, Axis::new("pages a window", Unit::Count), xs, series);
    chart.time = Some(TIME);
    Body::Chart(chart)
}

fn sums(main: &TraceDetail, names: &[&str]) -> Option<Vec<f64>> {
    let found: Vec<_> = names.iter().filter_map(|name| main.window_counters.get(*name)).collect();
    let len = found.first()?.len();
    Some((0..len).map(|at| found.iter().filter_map(|all| all.get(at)).sum::<u64>() as f64).collect())
}

fn counters(d: &TraceDocument, main: &TraceDetail) -> Option<Figure> {
    let lines = [
        ("scanned", Colour::Sky, &["pgscan_anon", "pgscan_file"][..]),
        ("evicted", Colour::Blue, &["pgsteal_anon", "pgsteal_file"]),
        ("refaults", Colour::Vermillion, &["workingset_refault_anon", "workingset_refault_file"]),
        ("activations", Colour::Orange, &["workingset_activate_anon", "workingset_activate_file"]),
    ];
    let series: Vec<_> = lines
        .into_iter()
        .filter_map(|(name, colour, names)| Some(Series::new(name, colour, sums(main, names)?)))
        .collect();
    if series.is_empty() {
        return None;
    }
    let meaning = format!(
        "Pages in each window, under {}: scanned (pgscan), evicted (pgsteal), come back (workingset_refault), and come \
         back and taken for part of the working set (workingset_activate). Scanning far above evicting is work for \
         nothing.",
        main.policy
    );
    Some(Figure::new("Refaults, scan and steal", meaning, DOC, counted(d, series)))
}

fn swap(d: &TraceDocument, main: &TraceDetail) -> Option<Figure> {
    let lines = [("swapped in", Colour::Vermillion, "pswpin"), ("swapped out", Colour::Blue, "pswpout")];
    let series: Vec<_> = lines
        .into_iter()
        .filter_map(|(name, colour, of)| Some(Series::new(name, colour, sums(main, &[of])?)))
        .collect();
    if series.iter().all(|s| s.values.iter().flatten().all(|&n| n == 0.0)) {
        return None;
    }
    let meaning = format!("Pages of anonymous memory to and from swap in each window, under {}.", main.policy);
    Some(Figure::new("Swap", meaning, DOC, counted(d, series)))
}
