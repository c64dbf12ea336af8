//! Tables, and charts as tables.

use crate::model::{Cell, Chart, Heat, Table, Verdict};
use crate::names::escaped;
use crate::rounded::rounded;
use crate::words;
use refault::units::Unit;
use std::fmt::Write as _;

/// Most rows of a table that is the text alternative of a chart.
const READ_ROWS: usize = 60;

/// Rows from which on a table has a field to search.
const SEARCH_ROWS: usize = 8;

/// A table.
pub(super) fn html(table: &Table, caption: &str) -> String {
    let mut out = String::new();
    if table.searchable && table.rows.len() > SEARCH_ROWS {
        let label = escaped(caption);
        let _ = writeln!(
            out,
            "<p class=\"search\"><label>Search <input type=\"search\" aria-label=\"Search in {label}\"></label></p>"
        );
    }
    let class = if table.searchable { " class=\"sortable\"" } else { "" };
    let _ = write!(out, "<div class=\"scroll\" tabindex=\"0\"><table{class}>\n<thead><tr>");
    for (n, head) in table.heads.iter().enumerate() {
        let is_text = table.rows.first().is_some_and(|row| matches!(row.get(n), Some(Cell::Text(_))));
        let class = if is_text { " class=\"t\"" } else { "" };
        let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", words::html(head));
    }
    out += "</tr></thead>\n<tbody>\n";
    for row in &table.rows {
        out += "<tr>";
        row.iter().enumerate().for_each(|(n, one)| cell(&mut out, one, n == 0, table.searchable));
        out += "</tr>\n";
    }
    out + "</tbody></table></div>\n"
}

fn cell(out: &mut String, cell: &Cell, first: bool, sortable: bool) {
    let by = |n: f64| if sortable { format!(" data-v=\"{}\"", rounded(n)) } else { String::new() };
    let _ = match cell {
        Cell::Text(text) if first => write!(out, "<th scope=\"row\">{}</th>", words::html(text)),
        Cell::Text(text) => write!(out, "<td class=\"t\">{}</td>", words::html(text)),
        Cell::Number(n, unit) => write!(out, "<td{}>{}</td>", by(*n), unit.text(*n)),
        Cell::Difference(n, unit, verdict) => difference(out, &unit.difference(*n), &by(*n), *verdict),
        Cell::EitherDifference(n, unit, verdict) => {
            let both = words::either(&unit.difference(*n), &unit.difference(-n));
            difference(out, &both, &by(*n), *verdict)
        }
        Cell::Either(misses, hits, unit) => {
            let both = words::either(&unit.text(*misses), &unit.text(*hits));
            write!(out, "<td{}>{}</td>", by(*misses), words::html(&both))
        }
        Cell::None => write!(out, "<td>–</td>"),
    };
}

fn difference(out: &mut String, text: &str, by: &str, verdict: Verdict) -> std::fmt::Result {
    let (class, word) = match verdict {
        Verdict::Better => ("better", " better"),
        Verdict::Worse => ("worse", " worse"),
        Verdict::Neither => ("same", ""),
    };
    write!(out, "<td class=\"{class}\"{by}>{}{word}</td>", words::html(text))
}

/// A chart as a table: of many points evenly chosen ones.
pub(super) fn of_chart(chart: &Chart) -> Table {
    let mut heads = vec![chart.x.label.clone()];
    heads.extend(chart.series.iter().map(|series| series.name.clone()));
    let step = chart.xs.len().div_ceil(READ_ROWS).max(1);
    let row = |at: usize| {
        let x = match chart.labels.get(at) {
            Some(label) => Cell::Text(label.clone()),
            None => Cell::Text(chart.x.unit.text(chart.xs[at])),
        };
        let one = |n: f64| if chart.share { Cell::share(n) } else { Cell::Number(n, chart.y.unit) };
        let value = |n: Option<f64>| n.map_or(Cell::None, one);
        let values = chart.series.iter().map(|series| value(series.values.get(at).copied().flatten()));
        std::iter::once(x).chain(values).collect()
    };
    Table { heads, rows: (0..chart.xs.len()).step_by(step).map(row).collect(), searchable: false }
}

/// A heat map as a table: sums over a tenth of the columns and an eighth of the rows each.
pub(super) fn of_heat(heat: &Heat) -> Table {
    let (wide, high) = (heat.columns.div_ceil(10).max(1), heat.rows.div_ceil(8).max(1));
    let starts: Vec<_> = (0..heat.columns).step_by(wide).collect();
    let mut heads = vec![heat.what.clone()];
    heads.extend(starts.iter().map(|&c| format!("from {}", heat.x.unit.text(heat.xs[c]))));
    let rows = (0..heat.rows).step_by(high).map(|r| {
        let end = (r + high).min(heat.rows);
        let sum = |c: usize| {
            let columns = c..(c + wide).min(heat.columns);
            (r..end).map(|row| columns.clone().map(|c| heat.cells[row * heat.columns + c]).sum::<f64>()).sum()
        };
        let label = heat.labels.get(r).cloned().unwrap_or_default();
        let cells = starts.iter().map(|&c| Cell::Number(sum(c), Unit::Count));
        std::iter::once(Cell::Text(label)).chain(cells).collect()
    });
    Table { heads, rows: rows.collect(), searchable: false }
}
