//! Every counter of a run of a scenario that moved, over time.

use super::scenario::{columns, rate, timed};
use crate::model::{Axis, Colour, Figure, Page, Shape};
use refault::document::scenario::Run;
use refault::scenario::counts_events;
use refault::units::Unit;
use std::collections::BTreeMap;

const DOC: &str = "mechanisms.md#counters";

/// Colours of one chart, and so its lines at most.
const COLOURS: [Colour; 6] =
    [Colour::Blue, Colour::Vermillion, Colour::Green, Colour::Orange, Colour::Purple, Colour::Sky];

/// The page; none of a run of which nothing is known but what other pages have.
pub(super) fn page(run: &Run, n: usize) -> Option<Page> {
    let mut families: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let moved = |values: &[f64]| values.iter().any(|&n| n > 0.0);
    let is_counter = |name: &str| name != "seconds" && counts_events(name);
    let counters = run.series.iter().filter(|(name, values)| is_counter(name) && moved(values));
    for (name, _) in counters {
        families.entry(family(name)).or_default().push(name);
    }
    let count = families.values().map(Vec::len).sum::<usize>();
    let chunks = families.into_iter().flat_map(|(family, names)| {
        let chunks: Vec<Vec<&str>> = names.chunks(COLOURS.len()).map(<[&str]>::to_vec).collect();
        chunks.into_iter().map(move |names| (family, names))
    });
    let figures: Vec<_> = chunks.filter_map(|(family, names)| figure(run, n, family, &names)).collect();
    let answer = format!("{count} counters of the machine moved. Those that stayed 0 are left out.");
    (!figures.is_empty())
        .then(|| Page::new("counters", "What did the kernel count, and when?", answer).with_all(figures))
}

/// Subject of a counter: of `mthp.64kB.swpout` the size, of others the first word.
fn family(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((size, _)) => size,
        None => name.split('_').next().unwrap_or(name),
    }
}

fn figure(run: &Run, n: usize, family: &str, names: &[&str]) -> Option<Figure> {
    let named: Vec<_> = names.iter().zip(COLOURS).map(|(&name, colour)| (name, name, colour)).collect();
    let lines = columns(run, &named, |name| rate(run, name));
    let body = timed(run, n, Shape::Lines, Axis::new("a second", Unit::Count), lines)?;
    Some(Figure::new(family, "What these counters went up by, a second.", DOC, body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Body;

    /// A counter that moved is a line of a chart, whatever its name is.
    #[test]
    fn every_counter_that_moved_is_drawn() {
        let mut run = Run::default();
        run.series.insert("seconds".into(), vec![1.0, 2.0, 3.0]);
        let names: Vec<_> = (0..14).map(|n| format!("pgscan_{n}")).chain(["mthp.64kB.swpout".to_owned()]).collect();
        for name in &names {
            run.series.insert(name.clone(), vec![0.0, 1.0, 2.0]);
        }
        run.series.insert("pgfault".into(), vec![0.0; 3]);
        let page = page(&run, 0).expect("a page");
        let mut drawn = Vec::new();
        for figure in &page.figures {
            let Body::Chart(chart) = &figure.body else { panic!("a chart") };
            drawn.extend(chart.series.iter().map(|series| series.name.clone()));
        }
        drawn.sort();
        let mut want = names;
        want.sort();
        assert_eq!(drawn, want);
        assert!(page.figures.iter().any(|figure| figure.title == "mthp.64kB"));
    }
}
