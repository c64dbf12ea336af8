//! Memory cgroups: the one that takes the memory, the one that misses.

use super::{TIME, share, time_axis, whole_time_axis};
use crate::model::{Axis, Body, Cell, Chart, Colour, Figure, Page, Series, Shape, Table};
use crate::words;
use refault::document::trace::{GroupFacts, GroupsUnder, TraceDocument};
use refault::units::{Unit, bytes};

const DOC: &str = "reference/report.md#groups";

/// Groups with a colour of their own.
const DRAWN: usize = 6;

/// The page; none of a trace without groups.
pub(super) fn page(d: &TraceDocument) -> Option<Page> {
    let main = d.groups.iter().find(|g| g.policy == "mglru").or(d.groups.first())?;
    let page = Page::new("groups", "Which group takes the memory, which misses?", answer(d, main)?);
    let resident = chart(d, main, Shape::Stacked, Axis::new("in memory", Unit::Bytes), |g, n| {
        d.bytes(g.window_resident.get(n).copied().unwrap_or(0) as f64)
    });
    let counted = |what: &str, of: fn(&GroupFacts) -> &[u64]| {
        chart(d, main, Shape::Lines, Axis::new(what, Unit::Count), |g, n| of(g).get(n).copied().unwrap_or(0) as f64)
    };
    let under = format!("under {}, {}", main.policy, memory(d, main));
    let figures = [
        (
            "Groups in memory",
            format!("Pages on the lists of each group, without those of groups below it, {under}."),
            resident,
        ),
        (
            "Misses by group",
            format!("Accesses of each group that missed, window by window, {under}."),
            counted("misses", |g| &g.window_misses),
        ),
        (
            "Refaults by group",
            format!("Pages that came back to a group while their shadow was still known, window by window, {under}."),
            counted("refaults", |g| &g.window_refaults),
        ),
    ];
    let figures = figures.into_iter().map(|(title, meaning, body)| Figure::new(title, meaning, DOC, body));
    Some(page.with_all(figures).with(table(d)))
}

/// Memory of all groups together, in words.
fn memory(d: &TraceDocument, under: &GroupsUnder) -> String {
    match under.memory_pages {
        Some(pages) => format!("with {} for all", bytes(d.bytes(pages as f64))),
        None => "with the limits of the groups".into(),
    }
}

fn mean(all: &[u64]) -> f64 {
    all.iter().sum::<u64>() as f64 / all.len().max(1) as f64
}

fn answer(d: &TraceDocument, main: &GroupsUnder) -> Option<String> {
    let most = main.groups.iter().max_by(|a, b| mean(&a.window_resident).total_cmp(&mean(&b.window_resident)))?;
    let misses = main.groups.iter().max_by_key(|g| g.misses)?;
    let total: f64 = main.groups.iter().map(|g| mean(&g.window_resident)).sum();
    let all: u64 = main.groups.iter().map(|g| g.misses).sum();
    let who = if most.path == misses.path { "it" } else { &misses.path };
    let mut out = format!(
        "{} takes most of the memory ({} of what is resident, on average), and {who} has most of the misses ({}); {}, {}.",
        most.path,
        Unit::Percent.text(100.0 * mean(&most.window_resident) / total.max(1e-9)),
        Unit::Percent.text(share(misses.misses, all)),
        main.policy,
        memory(d, main)
    );
    if let Some(killed) = main.groups.iter().find(|g| g.killed_at.is_some()) {
        out += &format!(" {} was killed for lack of memory.", killed.path);
    }
    Some(out)
}

/// Groups over time: those with most accesses by themselves, the others as one.
fn chart(
    d: &TraceDocument,
    main: &GroupsUnder,
    shape: Shape,
    y: Axis,
    value: impl Fn(&GroupFacts, usize) -> f64,
) -> Body {
    // Areas are what there is at the end of a window, lines what was counted in it.
    let (x, xs) = if shape == Shape::Lines { whole_time_axis(d) } else { time_axis(d) };
    let mut order: Vec<&GroupFacts> = main.groups.iter().collect();
    order.sort_by_key(|g| std::cmp::Reverse(g.accesses));
    let values = |g: &GroupFacts| (0..xs.len()).map(|n| value(g, n)).collect::<Vec<_>>();
    let own = order.iter().take(DRAWN).enumerate();
    let mut series: Vec<_> = own.map(|(n, g)| Series::new(&*g.path, Colour::number(n), values(g))).collect();
    if order.len() > DRAWN {
        let rest = (0..xs.len()).map(|n| order[DRAWN..].iter().map(|g| value(g, n)).sum());
        series.push(Series::new(format!("{} others", order.len() - DRAWN), Colour::Grey, rest));
    }
    let mut chart = Chart::new(shape, x, y, xs, series);
    chart.time = Some(TIME);
    Body::Chart(chart)
}

fn table(d: &TraceDocument) -> Figure {
    let heads = [
        "group",
        "policy",
        "limits",
        "in memory, mean",
        "accesses",
        &words::misses(),
        &words::either("miss rate", "hit rate"),
        "refaults",
        "read, in bytes",
    ];
    let rows = d.groups.iter().flat_map(|under| {
        under.groups.iter().map(|g| {
            let killed = g.killed_at.map_or(String::new(), |at| format!(" (killed at access {at})"));
            vec![
                Cell::Text(g.path.clone()),
                Cell::Text(format!("{}{killed}", under.policy)),
                Cell::Text(g.limits.clone()),
                Cell::Number(d.bytes(mean(&g.window_resident)), Unit::Bytes),
                Cell::Number(g.accesses as f64, Unit::Count),
                Cell::misses(g.misses, g.accesses),
                Cell::share(share(g.misses, g.accesses)),
                Cell::Number(g.refaults as f64, Unit::Count),
                Cell::Number(d.bytes(g.misses as f64), Unit::Bytes),
            ]
        })
    });
    let table = Table { heads: heads.map(str::to_owned).to_vec(), rows: rows.collect(), searchable: true };
    let meaning = "Each group under each policy, without groups below it. A miss brings in a page, but for first touches of \
                   anonymous memory and whole-page writes.";
    Figure::new("Groups", meaning, DOC, Body::Table(table))
}
