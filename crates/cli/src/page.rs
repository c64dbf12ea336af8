//! Results of a command as a page of HTML: what `report` and `replay --html` share.

use crate::Failure;
use refault_report::document::MOST_POINTS;
use refault_report::{Document, Made, Source, html};
use refault_trace::{AtomicFile, TraceError};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// Writes the page of some results.
pub(crate) fn write_html(path: &Path, sources: &[Source]) -> Result<(), Failure> {
    let made = Made { command: command_line(), version: env!("CARGO_PKG_VERSION").into() };
    let mut file = AtomicFile::create(path)?;
    file.write_all(html(sources, &made).as_bytes())
        .map_err(|e| TraceError::io(path.display().to_string(), "cannot be written", &e))?;
    Ok(file.commit()?)
}

/// The command as it was typed, with the program by its name.
pub(crate) fn command_line() -> String {
    let word = |word: std::ffi::OsString| {
        let word = word.to_string_lossy().into_owned();
        let plain = |c: char| c.is_alphanumeric() || "_-./+,:=@%".contains(c);
        if !word.is_empty() && word.chars().all(plain) { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
    };
    let words = std::env::args_os().skip(1).map(word);
    std::iter::once("refault".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// The document of runs, with their time series as CSV.
pub(crate) fn with_series(json: &str, series: &[String]) -> Result<Document, Failure> {
    let mut document = Document::from_json(json)?;
    if let Document::Scenario(runs) = &mut document {
        for (run, csv) in runs.runs.iter_mut().zip(series) {
            run.series = columns(csv);
        }
    }
    Ok(document)
}

/// The columns of a time series, of many rows evenly chosen ones and the last.
fn columns(csv: &str) -> BTreeMap<String, Vec<f64>> {
    let mut lines = csv.lines();
    let heads: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let rows: Vec<&str> = lines.collect();
    let step = rows.len().div_ceil(MOST_POINTS).max(1);
    let chosen = rows.iter().enumerate().filter(|(n, _)| n % step == 0 || n + 1 == rows.len());
    let mut all: BTreeMap<String, Vec<f64>> = heads.iter().map(|head| ((*head).to_owned(), Vec::new())).collect();
    for (_, row) in chosen {
        for (head, cell) in heads.iter().zip(row.split(',')) {
            if let Some(column) = all.get_mut(*head) {
                column.push(cell.parse().unwrap_or(0.0));
            }
        }
    }
    all
}
