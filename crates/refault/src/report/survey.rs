//! One walk over the accesses of a trace: objects, the heat map, working sets.

use super::folders::{ObjectFolder, together};
use crate::document::trace::{HeatFacts, ObjectFacts, WorkingSet};
use crate::names::shown;
use refault_trace::{Object, ObjectKind, Trace};

/// Objects, and folders of others, that are told by their names, but for one of what is left.
const OBJECTS: usize = 200;
/// Rows of the heat map at most.
const ROWS: u64 = 96;
/// Columns of it at most.
const COLUMNS: usize = 200;
/// Objects whose begins are marked in it.
const BORDERS: usize = 40;

/// Facts of a trace that no policy changes.
pub(super) struct Survey {
    pub(super) objects: Vec<ObjectFacts>,
    /// Place of the page's object in `objects`, by page.
    pub(super) object_of: Vec<u16>,
    pub(super) heat: HeatFacts,
    pub(super) working_set: WorkingSet,
    pub(super) writes: u64,
}

/// Walks over the windows that begin at these places; the last place is the end.
pub(super) fn survey(trace: &Trace, windows: &[u64]) -> Survey {
    let count = windows.len() - 1;
    let footprint = u64::from(trace.footprint_pages()).max(1);
    // Counts by object of the trace first: the busiest are known only at the end.
    let touched: Vec<usize> = (0..trace.objects.len()).filter(|&n| !trace.objects[n].indices.is_empty()).collect();
    let mut owner = vec![0u32; footprint as usize];
    for (place, &n) in touched.iter().enumerate() {
        let object = &trace.objects[n];
        let first = object.first_page as usize;
        owner[first..first + object.indices.len()].fill(place as u32);
    }
    let mut counts = vec![(0u64, 0u64); touched.len()];
    let (rows, columns) = (ROWS.min(footprint) as usize, COLUMNS.min(count));
    let mut cells = vec![0u64; rows * columns];
    let mut last = vec![0u16; footprint as usize];
    let mut working_set = WorkingSet { first: vec![0; count], kept: vec![0; count], back: vec![0; count] };
    for window in 0..count {
        let column = window * columns / count;
        let now = window as u16 + 1;
        for a in &trace.accesses[windows[window] as usize..windows[window + 1] as usize] {
            let page = a.page() as usize;
            let of = &mut counts[owner[page] as usize];
            of.0 += 1;
            of.1 += u64::from(a.is_write());
            cells[(page as u64 * rows as u64 / footprint) as usize * columns + column] += 1;
            let before = std::mem::replace(&mut last[page], now);
            if before != now {
                let kind = match before {
                    0 => &mut working_set.first,
                    n if n + 1 == now => &mut working_set.kept,
                    _ => &mut working_set.back,
                };
                kind[window] += 1;
            }
        }
    }
    let writes = counts.iter().map(|of| of.1).sum();
    let (objects, slot_of) = busiest(trace, &touched, &counts);
    let object_of = owner.iter().map(|&place| slot_of[place as usize]).collect();
    let (borders, border_pages) = borders(trace, &touched, rows).into_iter().unzip();
    let heat = HeatFacts { rows, columns, counts: cells, labels: labels(trace, rows), borders, border_pages };
    Survey { objects, object_of, heat, working_set, writes }
}

/// The busiest objects, then all others by their folders; for each object that is touched, which of
/// these.
fn busiest(trace: &Trace, touched: &[usize], counts: &[(u64, u64)]) -> (Vec<ObjectFacts>, Vec<u16>) {
    let mut order: Vec<usize> = (0..touched.len()).collect();
    order.sort_by_key(|&place| std::cmp::Reverse(counts[place].0));
    let names: Vec<&str> = order.iter().map(|&place| trace.objects[touched[place]].name.as_str()).collect();
    let mut slot_of = vec![0; touched.len()];
    let facts = |(slot, ObjectFolder { name: given, objects }): (usize, ObjectFolder)| {
        let mut facts = ObjectFacts { name: name(&given), ..ObjectFacts::default() };
        for at in &objects {
            let place = order[*at];
            let object = &trace.objects[touched[place]];
            slot_of[place] = slot as u16;
            facts.pages += object.indices.len() as u64;
            facts.accesses += counts[place].0;
            facts.writes += counts[place].1;
            if let [_] = objects.as_slice() {
                facts.kind = if object.kind == ObjectKind::File { "file" } else { "anon" }.into();
            }
        }
        facts
    };
    let objects = together(&names, OBJECTS + 1).into_iter().enumerate().map(facts).collect();
    (objects, slot_of)
}

/// A name as it is shown, and something where there is none.
fn name(given: &str) -> String {
    match shown(given) {
        name if name.trim().is_empty() => "(no name)".into(),
        name => name,
    }
}

/// Labels of the rows of the heat map.
fn labels(trace: &Trace, rows: usize) -> Vec<String> {
    let footprint = u64::from(trace.footprint_pages());
    let label = |row: usize| {
        let page = (row as u64 * footprint).div_ceil(rows as u64) as u32;
        let object = &trace.objects[trace.object_of(page)];
        let index = object.indices.get((page - object.first_page) as usize).copied().unwrap_or(0);
        format!("{}, page {index}", name(&object.name))
    };
    (0..rows).map(label).collect()
}

/// The rows at which the largest objects begin, and how many pages they have.
fn borders(trace: &Trace, touched: &[usize], rows: usize) -> Vec<((usize, String), u64)> {
    let footprint = u64::from(trace.footprint_pages()).max(1);
    let mut largest: Vec<_> = touched.iter().map(|&n| &trace.objects[n]).collect();
    largest.sort_by_key(|object| std::cmp::Reverse(object.indices.len()));
    largest.truncate(BORDERS);
    largest.sort_by_key(|object| object.first_page);
    let row = |page: u32| (u64::from(page) * rows as u64 / footprint) as usize;
    let border = |object: &Object| ((row(object.first_page), name(&object.name)), object.indices.len() as u64);
    largest.into_iter().map(border).collect()
}
