//! The table: as it is measured, and as a page has it.

use crate::judge::{Cell, Verdict};
use crate::promise::Promise;
use crate::truth::Truth;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A limit of which something was promised, and which then was tried.
#[derive(Clone, Serialize)]
pub struct Line {
    pub row: String,
    /// The program and its work, in words.
    pub program: String,
    pub how: &'static str,
    pub recorded_bytes: u64,
    /// The limit, why it was tried.
    pub limit_bytes: Option<u64>,
    pub why: String,
    pub promise: Option<Promise>,
    /// Runs in this limit.
    pub truth: Vec<Truth>,
    pub cells: Vec<Cell>,
    /// Why there is nothing else.
    pub failed: Option<String>,
}

const HEADER: &str = "\
| program | recorded, MiB | at, MiB | why | hit rate: promised | true | misses: promised | true \
| disk, MiB: promised | true | device | refaults: promised | true | the lab at that limit itself |
|---|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|";

/// The header and the lines.
pub fn markdown(lines: &[Line]) -> String {
    let mut text = format!("{HEADER}\n");
    lines.iter().for_each(|line| text += &format!("{}\n", row(line)));
    text
}

pub fn row(line: &Line) -> String {
    let mut text = format!("| {} ({}) | {} | ", line.program, line.how, mib(line.recorded_bytes));
    let limit = line.limit_bytes.map_or("-".to_owned(), mib);
    let _ = write!(text, "{limit} | {} |", line.why);
    let (Some(truth), false) = (line.truth.first(), line.cells.is_empty()) else {
        let _ = write!(text, " {} ||||||||||", line.failed.as_deref().unwrap_or("-"));
        return text;
    };
    for cell in &line.cells {
        let _ = write!(text, " {} | {} |", promised(cell, line.promise.as_ref()), truth_of(cell));
        if cell.name == "disk_pages" {
            let _ = write!(text, " {} |", truth.device_bytes.map_or("-".to_owned(), mib));
        }
    }
    let own = truth.own.as_ref().map_or("-".to_owned(), |own| {
        let points = 100.0 * (own.lab_hit_rate - truth.hit_rate());
        format!("{points:+.2} points, {:.1} % alike", 100.0 * own.alike)
    });
    let lost = if truth.lost > 0 { format!(", {} lost", truth.lost) } else { String::new() };
    let killed = if truth.oom_kills > 0 { ", killed" } else { "" };
    let _ = write!(text, " {own}{lost}{killed} |");
    text
}

/// A figure of one run, or the ends of several.
fn truth_of(cell: &Cell) -> String {
    let (low, high) = (figure(cell, cell.truth.0), figure(cell, cell.truth.1));
    if low == high { low } else { format!("{low} to {high}") }
}

fn promised(cell: &Cell, promise: Option<&Promise>) -> String {
    let mut text = cell.promised.value.map_or("-".to_owned(), |value| figure(cell, value));
    if let Some((low, high)) = cell.promised.interval.filter(|(low, high)| low < high) {
        let _ = write!(text, " ({} to {})", figure(cell, low), figure(cell, high));
    }
    match cell.verdict {
        Verdict::Within | Verdict::NotPromised => text,
        Verdict::Inside => format!("{text} inside"),
        Verdict::Off => format!("**{text}**"),
        Verdict::Refused => {
            let why = promise.and_then(|promise| promise.refused.as_deref()).unwrap_or("refused");
            format!("{}: {text}", if cell.is_rate() { why } else { "not trusted" })
        }
    }
}

fn figure(cell: &Cell, value: f64) -> String {
    match cell.name {
        "hit_rate" => format!("{:.2} %", 100.0 * value),
        "disk_pages" => format!("{:.0}", value / 256.0),
        _ => grouped(value.round().max(0.0) as u64),
    }
}

fn mib(bytes: u64) -> String {
    format!("{:.0}", bytes as f64 / f64::from(1 << 20))
}

/// 1234567 as 1,234,567.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How many cells are what.
pub fn counted(lines: &[Line]) -> String {
    let mut counts = BTreeMap::<&str, [u64; 5]>::new();
    // Limits of which nothing is promised but that the recording repeats itself are not counted.
    for cell in lines.iter().filter(|line| line.why != "recorded").flat_map(|line| &line.cells) {
        counts.entry(cell.name).or_default()[cell.verdict.clone() as usize] += 1;
    }
    let mut text = "| figure | within | inside its interval | off | not promised | refused |\n".to_owned();
    text += "|---|---:|---:|---:|---:|---:|\n";
    for (name, of) in counts {
        let _ = writeln!(text, "| {name} | {} | {} | {} | {} | {} |", of[0], of[1], of[2], of[3], of[4]);
    }
    text
}
