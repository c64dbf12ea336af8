//! Flags, runs, and the file of all figures.

use std::hint::black_box;
use std::time::Instant;

use serde::{Deserialize, Serialize};

/// Whether a word is among the arguments.
pub fn has(word: &str) -> bool {
    std::env::args().any(|arg| arg == word)
}

/// The word behind a flag.
pub fn flag(name: &str) -> Option<String> {
    std::env::args().skip_while(|arg| arg != name).nth(1)
}

/// The number behind a flag.
pub fn number(name: &str, default: u64) -> u64 {
    flag(name).map_or(default, |v| v.parse().expect("a number"))
}

/// Whether `--only ROW` asks for this row, or there is no such flag.
pub fn is_wanted(row: &str) -> bool {
    flag("--only").is_none_or(|only| only == row)
}

/// A row, with the figure of each run: the more the better.
#[derive(Debug, Serialize, Deserialize)]
pub struct Row {
    pub name: String,
    pub unit: String,
    pub values: Vec<f64>,
}

impl Row {
    pub fn best(&self) -> f64 {
        self.values.iter().copied().fold(0.0, f64::max)
    }

    pub fn median(&self) -> f64 {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => sorted[n / 2],
            n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
        }
    }

    /// From the slowest run to the fastest one, as a part of the median.
    pub fn spread(&self) -> f64 {
        let slowest = self.values.iter().copied().fold(f64::INFINITY, f64::min);
        (self.best() - slowest) / self.median()
    }
}

/// All that was measured.
#[derive(Debug, Serialize, Deserialize)]
pub struct Rows {
    pub refault: String,
    pub rows: Vec<Row>,
}

impl Default for Rows {
    fn default() -> Rows {
        Rows { refault: env!("CARGO_PKG_VERSION").into(), rows: Vec::new() }
    }
}

impl Rows {
    /// Runs something so often that each run is `amount` of the unit; adds the row.
    pub fn add<T>(&mut self, name: String, unit: &str, amount: f64, runs: u64, mut run: impl FnMut() -> T) -> &Row {
        let mut values = Vec::new();
        for _ in 0..runs {
            let start = Instant::now();
            black_box(run());
            values.push(amount / start.elapsed().as_secs_f64());
        }
        self.rows.push(Row { name, unit: unit.into(), values });
        self.rows.last().expect("a row was added")
    }

    /// Writes the file; with `--append` the runs of one that is there come first.
    pub fn write(mut self, path: &str) -> Result<(), String> {
        if has("--append") && std::path::Path::new(path).exists() {
            let mut all = Rows::read(path)?;
            for row in std::mem::take(&mut self.rows) {
                match all.rows.iter_mut().find(|old| old.name == row.name && old.unit == row.unit) {
                    Some(old) => old.values.extend(row.values),
                    None => all.rows.push(row),
                }
            }
            self = all;
        }
        let text = serde_json::to_string_pretty(&self).map_err(|e| e.to_string())?;
        std::fs::write(path, text + "\n").map_err(|e| format!("{path}: {e}"))
    }

    /// The two files behind a flag.
    pub fn pair(flag: &str) -> Result<(Rows, Rows), String> {
        let mut files = std::env::args().skip_while(|arg| arg != flag).skip(1);
        let (Some(old), Some(new)) = (files.next(), files.next()) else {
            return Err(format!("{flag}: wants two files of --json, the old one first"));
        };
        Ok((Rows::read(&old)?, Rows::read(&new)?))
    }

    pub fn read(path: &str) -> Result<Rows, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
        serde_json::from_str(&text).map_err(|e| format!("{path}: {e}"))
    }
}
