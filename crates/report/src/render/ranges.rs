//! Points, spans and bands on a scale, as SVG: sharp in print, and text stays text. Places are
//! parts of the width, so that the scale is as wide as there is room, and words keep their size.

use crate::model::{Cell, Point, RangeRow, Ranges, Table};
use crate::names::escaped;
use crate::words;
use refault::units::Unit;
use std::fmt::Write as _;

/// Height of a row, and the middle of it.
const ROW: f64 = 26.0;
const MIDDLE: f64 = ROW / 2.0;

/// From a number to a place on the scale.
struct Scale {
    low: f64,
    high: f64,
    log: bool,
    unit: Unit,
}

impl Scale {
    fn of(ranges: &Ranges) -> Scale {
        let mut all = Vec::new();
        for row in &ranges.rows {
            for point in &row.points {
                all.push(point.value);
                all.extend(point.spread.iter().flat_map(|&(low, high)| [low, high]));
            }
            if let Some((low, high)) = row.band {
                all.push(low);
                all.extend(high);
            }
        }
        let (log, unit) = (ranges.log, ranges.unit);
        all.retain(|n| n.is_finite() && (!log || *n > 0.0));
        let low = all.iter().copied().fold(f64::INFINITY, f64::min);
        let high = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        match (low <= high, log) {
            (false, _) => Scale { low: 0.0, high: 1.0, log: false, unit },
            (true, true) => Scale { low: low / 1.3, high: high * 1.3, log, unit },
            // Lengths from 0 can be compared.
            (true, false) => {
                Scale { low: low.min(0.0), high: if high > low.min(0.0) { high * 1.05 } else { 1.0 }, log, unit }
            }
        }
    }

    /// In percent of the width.
    fn place(&self, n: f64) -> f64 {
        let share = match self.log {
            true => (n.max(1e-300) / self.low).ln() / (self.high / self.low).ln(),
            false => (n - self.low) / (self.high - self.low),
        };
        100.0 * share.clamp(0.0, 1.0)
    }

    /// Round numbers across the scale.
    fn ticks(&self) -> Vec<f64> {
        if self.log {
            let steps = (-12..=15).flat_map(|p| [1.0, 2.0, 5.0].map(|n| n * 10f64.powi(p)));
            let all: Vec<f64> = steps.filter(|&n| n >= self.low && n <= self.high).collect();
            let every = all.len().div_ceil(7).max(1);
            // A short scale may have one at most.
            if all.len() > 1 {
                return all.into_iter().step_by(every).collect();
            }
        }
        let step = match self.unit {
            Unit::Bytes => 2f64.powf(((self.high - self.low) / 5.0).max(1.0).log2().ceil()),
            _ => nice((self.high - self.low) / 5.0),
        };
        let first = (self.low / step).ceil();
        (0..8).map(|n| (first + f64::from(n)) * step).filter(|&n| n <= self.high).collect()
    }
}

fn nice(step: f64) -> f64 {
    let ten = 10f64.powf(step.max(1e-12).log10().floor());
    let ratio = step / ten;
    ten * if ratio <= 1.0 {
        1.0
    } else if ratio <= 2.0 {
        2.0
    } else if ratio <= 5.0 {
        5.0
    } else {
        10.0
    }
}

/// The drawing; of shares one of what misses, and one of what hits.
pub(super) fn svg(ranges: &Ranges, title: &str) -> String {
    if !ranges.share {
        return drawing(ranges, title);
    }
    let hits = hits(ranges);
    let titled = |class: &str, of: &Ranges| format!("<div class=\"{class}\">\n{}</div>\n", drawing(of, title));
    titled("w-misses", ranges) + &titled("w-hits", &hits)
}

/// The same of what hits.
fn hits(ranges: &Ranges) -> Ranges {
    let mut out = ranges.clone();
    for point in out.rows.iter_mut().flat_map(|row| &mut row.points) {
        point.value = 100.0 - point.value;
        point.spread = point.spread.map(|(low, high)| (100.0 - high, 100.0 - low));
    }
    out
}

/// A label, a scale and a verdict for each row.
fn drawing(ranges: &Ranges, title: &str) -> String {
    let scale = Scale::of(ranges);
    let ticks = scale.ticks();
    let grid: String = ticks.iter().map(|&tick| line("grid", scale.place(tick), (0.0, ROW))).collect();
    let mut out = legend(ranges);
    let _ = writeln!(
        out,
        "<div class=\"ranges\" role=\"img\" aria-label=\"{}; the table below has its numbers\">",
        escaped(title)
    );
    ranges.rows.iter().for_each(|row| draw(&mut out, row, &scale, &grid, ranges));
    let word = |(n, &tick): (usize, &f64)| {
        let (class, x) = (if n % 2 == 1 { "tick odd" } else { "tick" }, scale.place(tick));
        format!("<text class=\"{class}\" x=\"{x:.2}%\" y=\"12\">{}</text>", escaped(&ranges.unit.text(tick)))
    };
    let words: String = ticks.iter().enumerate().map(word).collect();
    let _ = writeln!(out, "<div class=\"range axis\"><svg class=\"track\" height=\"18\">{words}</svg></div>");
    out + "</div>\n"
}

fn line(class: &str, x: f64, (from, to): (f64, f64)) -> String {
    format!("<line class=\"{class}\" x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"{from}\" y2=\"{to}\"/>")
}

fn legend(ranges: &Ranges) -> String {
    let mut out = String::from("<p class=\"keys\">");
    for (colour, shape, what) in &ranges.legend {
        let _ = write!(
            out,
            "<span><svg viewBox=\"-7 -7 14 14\" aria-hidden=\"true\">{}</svg> {}</span> ",
            sign(shape, colour.name()),
            words::html(what)
        );
    }
    out + "</p>\n"
}

fn draw(out: &mut String, row: &RangeRow, scale: &Scale, grid: &str, ranges: &Ranges) {
    let label = escaped(&row.label);
    let _ = write!(
        out,
        "<div class=\"range\" title=\"{}\"><span class=\"label\">{label}</span><svg class=\"track\" height=\"{ROW}\">{grid}",
        escaped(&hover(row, ranges))
    );
    if let Some((low, high)) = row.band {
        let (from, to) = (scale.place(low), high.map_or(100.0, |high| scale.place(high)));
        let _ = write!(
            out,
            "<rect class=\"band\" x=\"{from:.2}%\" y=\"1\" width=\"{:.2}%\" height=\"{}\"/>",
            // Its ends stand out above and below of marks, however narrow it is.
            (to - from).max(0.2),
            ROW - 2.0
        );
        let ends = [Some(low), high].into_iter().flatten();
        ends.for_each(|end| *out += &line("band-end", scale.place(end), (1.0, ROW - 1.0)));
    }
    for point in row.points.iter().filter(|point| point.value.is_finite()) {
        if let Some((low, high)) = point.spread {
            let (from, to) = (scale.place(low), scale.place(high));
            let _ = write!(
                out,
                "<line class=\"spread c-{}\" x1=\"{from:.2}%\" x2=\"{to:.2}%\" y1=\"{MIDDLE}\" y2=\"{MIDDLE}\"/>",
                point.colour.name()
            );
        }
        let sign = sign(point.shape, point.colour.name());
        let x = scale.place(point.value);
        let _ = write!(out, "<svg class=\"at\" x=\"{x:.2}%\" y=\"{MIDDLE}\">{sign}</svg>");
    }
    *out += "</svg>";
    if let Some((good, word)) = row.verdict {
        let class = if good { "better" } else { "worse" };
        let _ = write!(out, "<span class=\"verdict {class}\">{word}</span>");
    }
    *out += "</div>\n";
}

/// A sign around the origin.
fn sign(shape: &str, colour: &str) -> String {
    match shape {
        "ring" => format!("<circle class=\"ring c-{colour}\" r=\"5\"/>"),
        "diamond" => format!("<path class=\"dot c-{colour}\" d=\"M0-6L6 0L0 6L-6 0Z\"/>"),
        _ => format!("<circle class=\"dot c-{colour}\" r=\"5\"/>"),
    }
}

fn hover(row: &RangeRow, ranges: &Ranges) -> String {
    let one = |p: &Point| format!("{}: {}", words::plain(&p.name), ranges.unit.text(p.value));
    let points: Vec<_> = row.points.iter().map(one).collect();
    format!("{} ({})", row.label, points.join(", "))
}

/// The same as a table.
pub(super) fn table(ranges: &Ranges) -> Table {
    let mut heads = vec!["what".to_owned()];
    for row in &ranges.rows {
        for point in &row.points {
            if !heads.contains(&point.name) {
                heads.push(point.name.clone());
            }
        }
    }
    let names = heads[1..].to_vec();
    let number = |n: f64| if ranges.share { Cell::share(n) } else { Cell::Number(n, ranges.unit) };
    let text = |n: f64| if ranges.share { words::share(n) } else { ranges.unit.text(n) };
    let spread = |row: &RangeRow| {
        let spreads = row.points.iter().filter_map(|p| p.spread.map(|(l, h)| format!("{} to {}", text(l), text(h))));
        spreads.collect::<Vec<_>>().join("; ")
    };
    let band = |(low, high): (f64, Option<f64>)| match high {
        Some(high) => format!("{} to {}", text(low), text(high)),
        None => format!("{} or more", text(low)),
    };
    let has = |of: fn(&RangeRow) -> bool| ranges.rows.iter().any(of);
    let with =
        [has(|r| r.points.iter().any(|p| p.spread.is_some())), has(|r| r.band.is_some()), has(|r| r.verdict.is_some())];
    heads.extend(["spread", "band", "verdict"].iter().zip(with).filter(|(_, has)| *has).map(|(h, _)| (*h).to_owned()));
    let row = |row: &RangeRow| {
        let mut cells = vec![Cell::Text(row.label.clone())];
        for name in &names {
            let point = row.points.iter().find(|p| p.name == *name).filter(|p| p.value.is_finite());
            cells.push(point.map_or(Cell::None, |p| number(p.value)));
        }
        let others = [
            Cell::Text(spread(row)),
            row.band.map_or(Cell::None, |of| Cell::Text(band(of))),
            row.verdict.map_or(Cell::None, |(_, word)| Cell::Text(word.into())),
        ];
        cells.extend(others.into_iter().zip(with).filter(|(_, has)| *has).map(|(cell, _)| cell));
        cells
    };
    Table { heads, rows: ranges.rows.iter().map(row).collect(), searchable: false }
}
