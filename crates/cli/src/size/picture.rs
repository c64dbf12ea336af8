//! The curve that a search walked, drawn in a terminal.

use crate::flags::size::human;
use refault::size::Sizing;
use std::fmt::Write as _;

/// Columns and lines of the drawing itself; with the scale at its left it stays below 80.
const WIDTH: usize = 66;
const HEIGHT: usize = 15;
/// Columns of the scale.
const SCALE: usize = 10;

/// Value against size: `o` meets the target, `x` does not, dashes are the target.
pub(super) fn draw(sizing: &Sizing) -> String {
    let metric = sizing.target.metric();
    let bound = sizing.target.bound();
    let values: Vec<_> = sizing.points.iter().filter_map(|p| p.value).collect();
    if values.is_empty() {
        return String::new();
    }
    let top = values.iter().copied().fold(bound, f64::max);
    let bottom = values.iter().copied().fold(bound, f64::min);
    // Falling values go to 0; a hit rate near 100 % would be a flat line if its scale began there.
    let bottom = if metric.grows() { bottom } else { 0.0 };
    let top = if top > bottom { top } else { bottom + 1.0 };
    let line = |value: f64| ((top - value) / (top - bottom) * (HEIGHT - 1) as f64).round() as usize;
    let (first, last) = (sizing.grid.low, sizing.grid.high);
    let column = |pages: u64| {
        let share = (pages - first) as f64 / (last - first).max(1) as f64;
        (share * (WIDTH - 1) as f64).round() as usize
    };
    let mut grid = vec![vec![' '; WIDTH]; HEIGHT];
    grid[line(bound)].iter_mut().step_by(2).for_each(|cell| *cell = '-');
    for point in &sizing.points {
        let at = point.value.map_or(HEIGHT - 1, |value| line(value).min(HEIGHT - 1));
        grid[at][column(point.pages)] = match (point.failed, point.met) {
            (Some(_), _) => '!',
            (None, true) => 'o',
            (None, false) => 'x',
        };
    }
    let failed = sizing.points.iter().find_map(|point| point.failed).map_or(String::new(), |why| format!(", ! {why}"));
    let mut text =
        format!("\n{} against {}: o meets {}, x does not{failed}\n", metric.name(), sizing.limit.file(), sizing.target);
    for (n, cells) in grid.iter().enumerate() {
        let value = top - (top - bottom) * n as f64 / (HEIGHT - 1) as f64;
        let label = match n {
            _ if n == line(bound) => metric.show(bound),
            // Neighbours of the target's own label would crowd it.
            _ if n.is_multiple_of(2) && n.abs_diff(line(bound)) > 1 => metric.show(value),
            _ => String::new(),
        };
        let cells: String = cells.iter().collect();
        let _ = writeln!(text, "{label:>SCALE$} |{}", cells.trim_end());
    }
    let _ = writeln!(text, "{:>SCALE$} +{}", "", "-".repeat(WIDTH));
    let _ = writeln!(text, "{:>SCALE$}  {}", "", axis(sizing));
    text
}

/// Five sizes below the drawing.
fn axis(sizing: &Sizing) -> String {
    let mut line = String::new();
    for part in 0..5 {
        let pages = sizing.grid.low + (sizing.grid.high - sizing.grid.low) * part / 4;
        let label = human(pages * sizing.page_size);
        let at = part as usize * (WIDTH - 1) / 4;
        // The last label ends with the drawing.
        let at = at.min(WIDTH.saturating_sub(label.len()));
        let gap = at.saturating_sub(line.len());
        let _ = write!(line, "{:gap$}{label}", "");
    }
    line
}
