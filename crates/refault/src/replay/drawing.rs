//! Hit rate against memory, drawn in a terminal.

use super::Row;
use super::policy::RowPolicy;
use crate::memory_size::human;
use crate::words::printable;
use refault_mm::Policy;
use std::fmt::Write as _;

/// Columns of the drawing itself; with the scale at its left it stays below 80.
const WIDTH: usize = 70;
/// Lines of the drawing.
const HEIGHT: usize = 21;
/// A place that several policies share, when they do not fit beside each other.
const CROWD: char = '+';

/// The curves of one trace as text of 80 columns at most, with a legend; in colours of a terminal
/// if `colour`.
pub fn draw(rows: &[Row], colour: bool) -> String {
    let mut sizes: Vec<u64> = rows.iter().map(|r| r.memory_pages).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let every = sizes.len().div_ceil(WIDTH);
    let sizes: Vec<u64> = sizes.into_iter().step_by(every.max(1)).collect();
    let slot = (WIDTH / sizes.len()).clamp(1, 12);
    let scale = Scale::of(rows);
    let mut grid = vec![vec![' '; slot * sizes.len()]; HEIGHT];
    for row in rows {
        if let Ok(at) = sizes.binary_search(&row.memory_pages) {
            place(&mut grid[scale.line(row.hit_rate())][at * slot..(at + 1) * slot], row.policy.letter());
        }
    }
    let mut text = format!("\n{}: hit rate against memory\n", printable(&rows[0].trace));
    for (line, cells) in grid.iter().enumerate() {
        let _ = write!(text, "{:>6} |", scale.label(line));
        let end = cells.iter().rposition(|&c| c != ' ').map_or(0, |last| last + 1);
        cells[..end].iter().for_each(|&c| paint(&mut text, c, colour));
        text.push('\n');
    }
    let _ = writeln!(text, "{:>6} +{}", "", "-".repeat(slot * sizes.len()));
    axes(&mut text, rows, &sizes, slot);
    legend(&mut text, rows, colour);
    text
}

/// The line of a hit rate. The scale spans a round number that holds every rate, so that its
/// labels are round.
struct Scale {
    low: f64,
    high: f64,
}

/// Spans of a scale in percent: a tenth of each, which is the step of the labels, is a round
/// number.
const SPANS: [f64; 5] = [10.0, 20.0, 40.0, 50.0, 100.0];

impl Scale {
    fn of(rows: &[Row]) -> Scale {
        let rates = || rows.iter().map(|row| 100.0 * row.hit_rate());
        let low = (rates().fold(100.0, f64::min) / 10.0).floor() * 10.0;
        let high = (rates().fold(0.0, f64::max) / 10.0).ceil() * 10.0;
        let span = SPANS.into_iter().find(|&span| span >= high - low).unwrap_or(100.0);
        let low = (high - span).max(0.0);
        Scale { low, high: low + span }
    }

    fn line(&self, rate: f64) -> usize {
        let share = (self.high - 100.0 * rate) / (self.high - self.low);
        ((share * (HEIGHT - 1) as f64).round() as usize).min(HEIGHT - 1)
    }

    /// The rate of a line, on every other one.
    fn label(&self, line: usize) -> String {
        let share = line as f64 / (HEIGHT - 1) as f64;
        match line.is_multiple_of(2) {
            true => format!("{:.0}%", self.high - share * (self.high - self.low)),
            false => String::new(),
        }
    }
}

/// Puts a letter into the first free place of a slot.
fn place(slot: &mut [char], letter: char) {
    // A slot keeps a blank at its end if it can, so that neighbours stay apart.
    let usable = if slot.len() > 2 { slot.len() - 1 } else { slot.len() };
    match slot[..usable].iter().position(|&c| c == ' ') {
        Some(free) => slot[free] = letter,
        None => slot[usable - 1] = CROWD,
    }
}

/// Sizes below the drawing: in percent of the footprint, and in bytes where there is room.
fn axes(text: &mut String, rows: &[Row], sizes: &[u64], slot: usize) {
    let percent = |pages: u64| {
        let share = 100.0 * pages as f64 / rows[0].footprint_pages.max(1) as f64;
        if share < 1.0 { format!("{share:.1}%") } else { format!("{share:.0}%") }
    };
    let bytes = |pages: u64| human(pages.saturating_mul(rows[0].page_size));
    let shares: Vec<_> = sizes.iter().map(|&pages| percent(pages)).collect();
    let amounts: Vec<_> = sizes.iter().map(|&pages| bytes(pages)).collect();
    for (what, labels) in [("pages", shares), ("bytes", amounts)] {
        let mut line = String::new();
        for (at, label) in labels.iter().enumerate() {
            let free = line.is_empty() || line.len() < at * slot;
            if free && at * slot + label.len() <= WIDTH {
                let _ = write!(line, "{:1$}{label}", "", at * slot - line.len());
            }
        }
        let _ = writeln!(text, "{what:>6}  {line}");
    }
}

fn legend(text: &mut String, rows: &[Row], colour: bool) {
    let mut policies: Vec<RowPolicy> = Vec::new();
    for row in rows {
        if !policies.contains(&row.policy) {
            policies.push(row.policy);
        }
    }
    for policy in policies {
        text.push_str(if text.ends_with('\n') { "  " } else { " " });
        paint(text, policy.letter(), colour);
        let _ = write!(text, "={policy}");
    }
    let _ = writeln!(text, " {CROWD}=more");
}

/// Adds a character, in the colour of its policy.
fn paint(text: &mut String, c: char, colour: bool) {
    let policy = RowPolicy::every().find(|p| p.letter() == c);
    match policy.filter(|_| colour) {
        Some(policy) => {
            let _ = write!(text, "\x1b[{}m{c}\x1b[0m", ansi(policy));
        }
        None => text.push(c),
    }
}

fn ansi(policy: RowPolicy) -> u8 {
    match policy {
        RowPolicy::Linux(Policy::Lru) => 34,
        RowPolicy::Linux(Policy::Lru2013) => 36,
        RowPolicy::Linux(Policy::LruNone) => 90,
        RowPolicy::Linux(Policy::LruShadow) => 94,
        RowPolicy::Linux(Policy::Mglru) => 32,
        RowPolicy::Linux(Policy::MglruShadow) => 92,
        // They are told apart by their letters.
        RowPolicy::Linux(Policy::Ext(_)) => 35,
        RowPolicy::Opt => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(policy: RowPolicy, memory_pages: u64, misses: u64) -> Row {
        Row {
            trace: "t".into(),
            policy,
            plug_in: None,
            memory_pages,
            memory_bytes: memory_pages * 4096,
            page_size: 4096,
            footprint_pages: 100,
            trace_accesses: 1000,
            seed: 0,
            accesses: 1000,
            misses,
            reads: None,
            sampling_error: None,
            oom_at: None,
            seconds: 1.0,
            window_misses: None,
            swap: None,
            inside: None,
        }
    }

    #[test]
    fn fits_80_columns_and_shows_every_policy() {
        for sizes in [1u64, 2, 16, 40, 72, 500] {
            let mut rows = Vec::new();
            for size in 1..=sizes {
                rows.extend(RowPolicy::all().map(|p| row(p, size, 1000 - size)));
            }
            let text = draw(&rows, false);
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            assert!(RowPolicy::all().all(|p| text.contains(p.name())), "{text}");
        }
    }

    #[test]
    fn higher_is_better_and_equals_are_side_by_side() {
        let lru = RowPolicy::Linux(Policy::Lru);
        let rows = [row(lru, 10, 1000), row(RowPolicy::Opt, 10, 0), row(lru, 20, 0), row(RowPolicy::Opt, 20, 0)];
        let text = draw(&rows, false);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[2].starts_with("  100% |o") && lines[2].ends_with("lo"), "{text}");
        assert!(lines[HEIGHT + 1].starts_with("    0% |l"), "{text}");
    }
}
