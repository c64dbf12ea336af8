//! Page on the memory and the misses of each object.

use super::{TIME, policy, share, time_axis};
use crate::model::{Axis, Body, Cell, Chart, Colour, Figure, Page, Series, Shape, Table};
use crate::words;
use refault::document::trace::{TraceDetail, TraceDocument};
use refault::units::{Unit, bytes};

const DOC: &str = "reference/report.md#objects";

/// The page.
pub(super) fn page(d: &TraceDocument) -> Page {
    let page = Page::new("objects", "Who takes the memory, who misses?", answer(d));
    let Some(main) = d.main() else { return page };
    page.with_all(resident(d, main)).with(table(d, main))
}

/// Pages of an object in memory, on average over the windows.
fn mean_resident(main: &TraceDetail, object: usize) -> f64 {
    let all = main.object_resident.get(object).map(Vec::as_slice).unwrap_or_default();
    all.iter().sum::<u64>() as f64 / all.len().max(1) as f64
}

fn answer(d: &TraceDocument) -> String {
    let Some(main) = d.main() else { return String::new() };
    if d.objects.len() == 1 {
        return format!("There is one object, {}: all accesses and misses are its own.", d.objects[0].name);
    }
    let numbers = 0..d.objects.len();
    let memory = numbers.clone().max_by(|&a, &b| mean_resident(main, a).total_cmp(&mean_resident(main, b)));
    let misses = numbers.max_by_key(|&n| main.object_misses.get(n).copied().unwrap_or(0));
    let (Some(memory), Some(misses)) = (memory, misses) else { return "There is no object.".into() };
    let total: f64 = (0..d.objects.len()).map(|n| mean_resident(main, n)).sum();
    let of_memory = 100.0 * mean_resident(main, memory) / total.max(1e-9);
    let of_misses = share(main.object_misses.get(misses).copied().unwrap_or(0), main.misses);
    format!(
        "{} takes most of the memory ({} of what is resident, on average), and {} has most of the misses ({}).",
        d.objects[memory].name,
        Unit::Percent.text(of_memory),
        if memory == misses { "it" } else { &d.objects[misses].name },
        Unit::Percent.text(of_misses)
    )
}

/// Objects with a colour of their own.
const DRAWN: usize = 6;

fn resident(d: &TraceDocument, main: &TraceDetail) -> Option<Figure> {
    if main.object_resident.is_empty() {
        return None;
    }
    let mut order: Vec<usize> = (0..main.object_resident.len()).collect();
    order.sort_by(|&a, &b| mean_resident(main, b).total_cmp(&mean_resident(main, a)));
    let (axis, xs) = time_axis(d);
    let values = |n: usize| main.object_resident[n].iter().map(|&pages| d.bytes(pages as f64)).collect::<Vec<_>>();
    let mut series: Vec<_> = (order.iter().take(DRAWN).enumerate())
        .map(|(place, &n)| Series::new(&*d.objects[n].name, Colour::number(place), values(n)))
        .collect();
    if order.len() > DRAWN {
        let mut rest = vec![0.0; xs.len()];
        for &n in &order[DRAWN..] {
            values(n).iter().zip(&mut rest).for_each(|(v, sum)| *sum += v);
        }
        series.push(Series::new(format!("{} others", order.len() - DRAWN), Colour::Grey, rest));
    }
    let mut chart = Chart::new(Shape::Stacked, axis, Axis::new("in memory", Unit::Bytes), xs, series);
    chart.time = Some(TIME);
    let meaning = format!(
        "Pages of each object that are in memory under {}, with {}. {} What the kernel takes for its own tables is not in \
         it.",
        main.policy,
        bytes(d.bytes(d.detail_pages as f64)),
        policy::why(d)
    );
    Some(Figure::new("Who is in memory", meaning, DOC, Body::Chart(chart)))
}

fn table(d: &TraceDocument, main: &TraceDetail) -> Figure {
    let heads = [
        "object",
        "kind",
        "size touched",
        "in memory, mean",
        "accesses",
        "writes",
        &words::misses(),
        &words::either("miss rate", "hit rate"),
        "of all misses",
        "read, in bytes",
    ];
    let rows = d.objects.iter().enumerate().map(|(n, object)| {
        let misses = main.object_misses.get(n).copied().unwrap_or(0);
        vec![
            Cell::Text(object.name.clone()),
            Cell::Text(object.kind.clone()),
            Cell::Number(d.bytes(object.pages as f64), Unit::Bytes),
            Cell::Number(d.bytes(mean_resident(main, n)), Unit::Bytes),
            Cell::Number(object.accesses as f64, Unit::Count),
            Cell::Number(share(object.writes, object.accesses), Unit::Percent),
            Cell::misses(misses, object.accesses),
            Cell::share(share(misses, object.accesses)),
            Cell::Number(share(misses, main.misses), Unit::Percent),
            Cell::Number(d.bytes(misses as f64), Unit::Bytes),
        ]
    });
    let table = Table { heads: heads.map(str::to_owned).to_vec(), rows: rows.collect(), searchable: true };
    let meaning = format!(
        "Files and heaps under {}. A miss brings in a page, so misses are bytes read too, but for first touches of \
         anonymous memory and whole-page writes, which read nothing.",
        main.policy
    );
    Figure::new("Objects", meaning, DOC, Body::Table(table))
}
