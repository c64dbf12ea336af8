//! Page on the inside of a policy: lists, generations and charges.

use super::{TIME, time_axis};
use crate::model::{Axis, Body, Chart, Colour, Figure, Page, Series, Shape};
use refault::document::trace::{TraceDetail, TraceDocument};
use refault::units::{Unit, bytes};

/// The page.
pub(super) fn page(d: &TraceDocument) -> Page {
    let page = Page::new("inside", "What goes on inside?", answer(d));
    let figures =
        d.details.iter().filter(|x| x.policy != "opt").filter_map(|x| match x.window_generations.is_empty() {
            true => lists(d, x),
            false => generations(d, x),
        });
    page.with_all(figures.collect::<Vec<_>>()).with_all(d.main().and_then(|x| memory(d, x)))
}

fn answer(d: &TraceDocument) -> String {
    let mut out = Vec::new();
    for x in &d.details {
        let mean = |all: &[u64]| all.iter().sum::<u64>() as f64 / all.len().max(1) as f64;
        let gauge = |name: &str| x.window_gauges.get(name).map_or(0.0, |all| mean(all));
        if let Some(last) = x.window_generations.last() {
            let youngest = last.last().copied().unwrap_or(0);
            let all: u64 = last.iter().sum();
            out.push(format!(
                "{} ends with {} of its {} in the youngest of {} generations",
                x.policy,
                bytes(d.bytes(youngest as f64)),
                bytes(d.bytes(all as f64)),
                last.len()
            ));
        } else if x.policy != "opt" {
            let active = gauge("active_anon") + gauge("active_file");
            let all = active + gauge("inactive_anon") + gauge("inactive_file");
            out.push(format!(
                "{} keeps {} of its pages active on average",
                x.policy,
                Unit::Percent.text(100.0 * active / all.max(1e-9))
            ));
        }
    }
    if out.is_empty() { "Only policies of Linux have lists to show.".into() } else { out.join("; ") + "." }
}

fn timed(d: &TraceDocument, series: Vec<Series>) -> Body {
    let (x, xs) = time_axis(d);
    let mut chart = Chart::new(Shape::Stacked, x, Axis::new("in memory", Unit::Bytes), xs, series);
    chart.time = Some(TIME);
    Body::Chart(chart)
}

fn gauges<'a>(d: &TraceDocument, x: &'a TraceDetail, names: &[(&'a str, Colour)]) -> Vec<Series> {
    let one = |(name, colour): &(&str, Colour)| {
        let all = x.window_gauges.get(*name)?;
        all.iter().any(|&n| n > 0).then(|| Series::new(*name, *colour, all.iter().map(|&n| d.bytes(n as f64))))
    };
    names.iter().filter_map(one).collect()
}

fn lists(d: &TraceDocument, x: &TraceDetail) -> Option<Figure> {
    let names = [
        ("active_file", Colour::Blue),
        ("inactive_file", Colour::Sky),
        ("active_anon", Colour::Vermillion),
        ("inactive_anon", Colour::Orange),
    ];
    let series = gauges(d, x, &names);
    let meaning = "Pages that were used again are on the active lists; reclaim takes from the inactive ones. An active list \
                   that takes nearly all leaves new pages no time to be used twice.";
    (!series.is_empty()).then(|| {
        Figure::new(
            format!("Active and inactive lists, {}", x.policy),
            meaning,
            "mechanisms.md#two-lists",
            timed(d, series),
        )
    })
}

fn generations(d: &TraceDocument, x: &TraceDetail) -> Option<Figure> {
    let most = x.window_generations.iter().map(Vec::len).max()?;
    let colours = [Colour::Blue, Colour::Sky, Colour::Green, Colour::Yellow, Colour::Orange, Colour::Vermillion];
    let series = (0..most).map(|n| {
        let name = match n {
            0 => "oldest generation".to_owned(),
            n if n + 1 == most => "youngest generation".to_owned(),
            n => format!("generation {} from the oldest", n + 1),
        };
        let of = x.window_generations.iter().map(move |all| d.bytes(all.get(n).copied().unwrap_or(0) as f64));
        Series::new(name, colours[n % colours.len()], of)
    });
    let series = series.collect();
    let meaning = "Multi-gen LRU keeps pages by when they were last seen used. Reclaim takes the oldest generation; aging \
                   begins a new one. Memory that piles up in the youngest is all in use; in the oldest, it is cold.";
    Some(Figure::new(format!("Generations, {}", x.policy), meaning, "mechanisms.md#generations", timed(d, series)))
}

/// Figure of the group's charges.
fn memory(d: &TraceDocument, x: &TraceDetail) -> Option<Figure> {
    let names = [("memory.current", Colour::Ink), ("swap.current", Colour::Orange), ("kernel", Colour::Purple)];
    let series = gauges(d, x, &names);
    let (axis, xs) = time_axis(d);
    let mut chart = Chart::new(Shape::Lines, axis, Axis::new("charged", Unit::Bytes), xs, series);
    chart.time = Some(TIME);
    let meaning = "What the group is charged for (memory.current), what of it are the kernel's own tables (page tables and \
                   the nodes that hold shadows), and what is in swap.";
    (!chart.series.is_empty()).then(|| {
        Figure::new(format!("Charges, {}", x.policy), meaning, "reference/replay.md#sizes", Body::Chart(chart))
    })
}
