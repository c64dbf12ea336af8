//! Results of a command as a page of HTML: what `report` and `replay --html` share.

use crate::Failure;
use refault_report::{Made, Source, html};
use refault_trace::{AtomicFile, TraceError};
use std::io::Write;
use std::path::Path;

/// Writes the page of some results; how many bytes it has.
pub(crate) fn write_html(path: &Path, sources: &[Source]) -> Result<usize, Failure> {
    let made = Made { command: command_line(), version: env!("CARGO_PKG_VERSION").into() };
    let mut file = AtomicFile::create(path)?;
    let page = html(sources, &made);
    file.write_all(page.as_bytes()).map_err(|e| TraceError::io(path.display().to_string(), "cannot be written", &e))?;
    file.commit()?;
    Ok(page.len())
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
