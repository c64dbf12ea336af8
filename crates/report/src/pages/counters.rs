//! Every counter and size of a run of a scenario that moved, over time, of the machine and of its
//! groups.

use super::scenario::{PAGE, columns, rate, timed};
use crate::model::{Axis, Colour, Figure, Page, Shape};
use refault::document::scenario::Run;
use refault::scenario::{counts_events, group_column, is_size};
use refault::units::{Unit, counted};

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
    let mut figures: Vec<_> = chunks.filter_map(|(family, names)| figure(run, n, family, &names)).collect();
    figures.extend(sizes(run, n));
    let answer = format!("{} moved. Those that stayed 0 are left out.", counted(count as u64, "counter"));
    (!figures.is_empty())
        .then(|| Page::new("counters", "What did the kernel count, and when?", answer).with_all(figures))
}

/// Subject of a counter: of `mthp.64kB.swpout` the size, of one of a group its path, of others the
/// first word.
fn family(name: &str) -> &str {
    if let Some((path, _)) = group_column(name) {
        return path;
    }
    match name.rsplit_once('.') {
        Some((size, _)) => size,
        None => name.split('_').next().unwrap_or(name),
    }
}

fn figure(run: &Run, n: usize, family: &str, names: &[&str]) -> Option<Figure> {
    let short = |name| group_column(name).map_or(name, |(_, name)| name);
    let named: Vec<_> = names.iter().zip(COLOURS).map(|(&name, colour)| (short(name), name, colour)).collect();
    let lines = columns(run, &named, |name| rate(run, name));
    let body = timed(run, n, Shape::Lines, Axis::new("a second", Unit::Count), lines)?;
    Some(Figure::new(family, "What these counters went up by, a second.", DOC, body))
}

/// Sizes of the machine and of each group, and the pressure of groups.
fn sizes(run: &Run, n: usize) -> Vec<Figure> {
    let mut owners: BTreeMap<(&str, Kind), Vec<(&str, &str)>> = BTreeMap::new();
    for (column, values) in &run.series {
        let (owner, name) = group_column(column).unwrap_or(("the machine", column));
        if let Some(kind) = Kind::of(column, name).filter(|_| values.iter().any(|&n| n > 0.0)) {
            owners.entry((owner, kind)).or_default().push((name, column));
        }
    }
    let figures = owners.iter().flat_map(|(&(owner, kind), names)| {
        names.chunks(COLOURS.len()).filter_map(move |names| kind.figure(run, n, owner, names))
    });
    figures.collect()
}

/// Measure of a column that is no counter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Pages,
    Bytes,
    /// The non-resident clock.
    Age,
    Pressure,
}

impl Kind {
    /// Kind of a column; none: it is shown elsewhere.
    fn of(column: &str, name: &str) -> Option<Kind> {
        match name {
            _ if counts_events(column) => None,
            "nonresident_age" => Some(Kind::Age),
            _ if is_size(column) && name.ends_with("_bytes") => Some(Kind::Bytes),
            _ if is_size(column) => Some(Kind::Pages),
            _ => group_column(column).map(|_| Kind::Pressure),
        }
    }

    fn figure(self, run: &Run, n: usize, owner: &str, names: &[(&str, &str)]) -> Option<Figure> {
        let (axis, meaning, factor) = match self {
            Kind::Pages => (Axis::new("size", Unit::Bytes), "Sizes at that time.", PAGE),
            Kind::Bytes => (Axis::new("size", Unit::Bytes), "Sizes at that time.", 1.0),
            Kind::Age => (Axis::new("clock", Unit::Count), "The non-resident clock.", 1.0),
            Kind::Pressure => (Axis::new("%", Unit::Percent), "avg10 of memory.pressure.", 1.0),
        };
        let named: Vec<_> = names.iter().zip(COLOURS).map(|(&(name, column), colour)| (name, column, colour)).collect();
        let values = |name: &str| Some(run.series.get(name)?.iter().map(|n| Some(n * factor)).collect());
        let body = timed(run, n, Shape::Lines, axis, columns(run, &named, values))?;
        Some(Figure::new(owner, meaning, DOC, body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Body;
    use refault::document::scenario::ScenarioDocument;
    use refault::scenario::{COLUMNS, series_columns};

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

    /// Every column of a time series is in a chart of some page, if it moved.
    #[test]
    fn every_column_of_the_time_series_is_drawn() {
        // A threshold in milliseconds is a figure of its table.
        const ELSEWHERE: [&str; 1] = ["hot_threshold_ms"];
        let columns = series_columns(true, ["t"], ["/a"]);
        let moved = [0.0, 5.0, 9.0];
        for column in columns.iter().filter(|name| !ELSEWHERE.contains(&&***name)) {
            let mut run = Run::default();
            for own in COLUMNS {
                run.series.insert(own.to_owned(), vec![0.0; 3]);
            }
            run.series.insert("seconds".into(), vec![1.0, 2.0, 3.0]);
            run.series.insert("task.t.ops".into(), vec![0.0; 3]);
            if let Some(of) = column.strip_suffix("hits") {
                // Half of them miss.
                run.series.insert(format!("{of}accesses"), moved.map(|hits| 2.0 * hits).to_vec());
            }
            run.series.insert(column.clone(), moved.to_vec());
            let pages = super::super::scenario::pages(&ScenarioDocument { runs: vec![run], ..Default::default() });
            let is_drawn = pages.iter().flat_map(|page| &page.figures).any(|figure| match &figure.body {
                Body::Chart(chart) => chart.series.iter().any(|s| s.values.iter().flatten().any(|&n| n != 0.0)),
                _ => false,
            });
            assert!(is_drawn || column.ends_with("accesses"), "{column}");
        }
    }
}
