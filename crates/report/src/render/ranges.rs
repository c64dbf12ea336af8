//! Points, spans and bands on a scale, as SVG: sharp in print, and text stays text.

use crate::model::{Cell, Point, RangeRow, Ranges, Table};
use crate::names::escaped;
use crate::units::Unit;
use std::fmt::Write as _;

/// Width of the scale, of what is left of it, and of a row, in units of the drawing.
const WIDE: f64 = 520.0;
const LEFT: f64 = 240.0;
const ROW: f64 = 26.0;
const VERDICT: f64 = 60.0;

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

    fn place(&self, n: f64) -> f64 {
        let share = match self.log {
            true => (n.max(1e-300) / self.low).ln() / (self.high / self.low).ln(),
            false => (n - self.low) / (self.high - self.low),
        };
        LEFT + WIDE * share.clamp(0.0, 1.0)
    }

    /// Round numbers across the scale.
    fn ticks(&self) -> Vec<f64> {
        if self.log {
            let steps = (-12..=15).flat_map(|p| [1.0, 2.0, 5.0].map(|n| n * 10f64.powi(p)));
            let all: Vec<f64> = steps.filter(|&n| n >= self.low && n <= self.high).collect();
            let every = all.len().div_ceil(7).max(1);
            // Of a short scale there may be one at most.
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

/// The drawing.
pub(super) fn svg(ranges: &Ranges, title: &str) -> String {
    let scale = Scale::of(ranges);
    let (high, wide) = (ROW * ranges.rows.len() as f64 + 30.0, LEFT + WIDE + VERDICT);
    let mut out = legend(ranges);
    let _ = writeln!(
        out,
        "<div class=\"scroll\"><svg class=\"ranges\" viewBox=\"0 0 {wide} {high}\" role=\"img\" aria-label=\"{}; the table below has \
         its numbers\">",
        escaped(title)
    );
    let bottom = high - 24.0;
    for tick in scale.ticks() {
        let x = scale.place(tick);
        let _ = writeln!(
            out,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"0\" y2=\"{bottom:.1}\"/><text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
            high - 8.0,
            escaped(&ranges.unit.text(tick))
        );
    }
    for (n, row) in ranges.rows.iter().enumerate() {
        draw(&mut out, row, ROW * (n as f64 + 0.5), &scale, ranges);
    }
    out + "</svg></div>\n"
}

fn legend(ranges: &Ranges) -> String {
    let mut out = String::from("<p class=\"keys\">");
    for (colour, shape, what) in &ranges.legend {
        let _ = write!(
            out,
            "<span><svg viewBox=\"0 0 14 14\" aria-hidden=\"true\">{}</svg> {}</span> ",
            sign(shape, 7.0, 7.0, colour.name()),
            escaped(what)
        );
    }
    out + "</p>\n"
}

/// Characters that fit left of the scale.
const LABEL: usize = 38;

fn draw(out: &mut String, row: &RangeRow, y: f64, scale: &Scale, ranges: &Ranges) {
    let shown = match row.label.chars().count() > LABEL {
        true => row.label.chars().take(LABEL - 1).chain(['…']).collect(),
        false => row.label.clone(),
    };
    let _ = writeln!(
        out,
        "<g><title>{}</title><text class=\"label\" x=\"{}\" y=\"{:.1}\">{}</text>",
        escaped(&hover(row, ranges)),
        LEFT - 10.0,
        y + 4.0,
        escaped(&shown)
    );
    if let Some((low, high)) = row.band {
        let (from, to) = (scale.place(low), high.map_or(LEFT + WIDE, |high| scale.place(high)));
        let _ = writeln!(
            out,
            "<rect class=\"band\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"16\"/>",
            y - 8.0,
            (to - from).max(1.0)
        );
    }
    for point in row.points.iter().filter(|point| point.value.is_finite()) {
        if let Some((low, high)) = point.spread {
            let (from, to) = (scale.place(low), scale.place(high));
            let _ = writeln!(
                out,
                "<line class=\"spread c-{}\" x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>",
                point.colour.name()
            );
        }
        let _ = writeln!(out, "{}", sign(point.shape, scale.place(point.value), y, point.colour.name()));
    }
    if let Some((good, word)) = row.verdict {
        let class = if good { "better" } else { "worse" };
        let _ = writeln!(
            out,
            "<text class=\"verdict {class}\" x=\"{:.1}\" y=\"{:.1}\">{word}</text>",
            LEFT + WIDE + 8.0,
            y + 4.0
        );
    }
    *out += "</g>\n";
}

fn sign(shape: &str, x: f64, y: f64, colour: &str) -> String {
    match shape {
        "ring" => format!("<circle class=\"ring c-{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\"/>"),
        "diamond" => format!(
            "<path class=\"dot c-{colour}\" d=\"M{x:.1} {:.1}L{:.1} {y:.1}L{x:.1} {:.1}L{:.1} {y:.1}Z\"/>",
            y - 6.0,
            x + 6.0,
            y + 6.0,
            x - 6.0
        ),
        _ => format!("<circle class=\"dot c-{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\"/>"),
    }
}

fn hover(row: &RangeRow, ranges: &Ranges) -> String {
    let one = |p: &Point| format!("{}: {}", p.name, ranges.unit.text(p.value));
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
    heads.extend(["spread".into(), "band".into(), "".into()]);
    let text = |n: f64| ranges.unit.text(n);
    let row = |row: &RangeRow| {
        let mut cells = vec![Cell::Text(row.label.clone())];
        for name in &names {
            let point = row.points.iter().find(|p| p.name == *name).filter(|p| p.value.is_finite());
            cells.push(point.map_or(Cell::None, |p| Cell::Number(p.value, ranges.unit)));
        }
        let spreads = row.points.iter().filter_map(|p| p.spread.map(|(l, h)| format!("{} to {}", text(l), text(h))));
        cells.push(Cell::Text(spreads.collect::<Vec<_>>().join("; ")));
        cells.push(row.band.map_or(Cell::None, |(low, high)| {
            Cell::Text(format!("{} to {}", text(low), high.map_or("any".into(), text)))
        }));
        cells.push(row.verdict.map_or(Cell::None, |(_, word)| Cell::Text(word.into())));
        cells
    };
    Table { heads, rows: ranges.rows.iter().map(row).collect(), searchable: false }
}
