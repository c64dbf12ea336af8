//! Results of a command as a page of HTML: what `report` and `replay --html` share.

use crate::{Failure, called};
use clap::ArgMatches;
use refault::document::Source;
use refault::open_metrics::Metrics;
use refault_report::{Made, html};
use refault_trace::{AtomicFile, TraceError};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The first input that its owner alone may read, if there is one.
static PRIVATE_INPUT: OnceLock<PathBuf> = OnceLock::new();

/// Notes the inputs of a command line: what is made of a private one is private.
pub fn note_inputs(matches: &ArgMatches) {
    const INPUTS: [&str; 8] = ["traces", "trace", "from", "inputs", "subject", "recording", "beside", "play"];
    for word in INPUTS.iter().filter_map(|id| matches.try_get_raw(id).ok().flatten()).flatten() {
        let is_private = |m: std::fs::Metadata| m.is_file() && m.permissions().mode() & 0o077 == 0;
        if std::fs::metadata(word).is_ok_and(is_private) {
            let _ = PRIVATE_INPUT.set(word.into());
        }
    }
    if let Some((_, inner)) = matches.subcommand() {
        note_inputs(inner);
    }
}

/// Starts a file of results.
pub(crate) fn create(path: &Path) -> Result<AtomicFile, TraceError> {
    match PRIVATE_INPUT.get() {
        Some(input) => AtomicFile::create_like(path, input),
        None => AtomicFile::create(path),
    }
}

/// Writes metrics, whole or not at all: a reader meanwhile finds the ones before.
pub(crate) fn write_metrics(path: &Path, all: &Metrics) -> Result<(), Failure> {
    write_text(path, &all.text())
}

/// Writes the page of some results; how many bytes it has.
pub(crate) fn write_html(path: &Path, sources: &[Source]) -> Result<usize, Failure> {
    let made = Made { command: command_line(), version: env!("CARGO_PKG_VERSION").into() };
    let page = html(sources, &made);
    write_text(path, &page)?;
    Ok(page.len())
}

/// Writes a text, whole or not at all.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<(), Failure> {
    let mut file = create(path)?;
    let failed = |e| TraceError::io(path.display().to_string(), "cannot be written", &e);
    file.write_all(text.as_bytes()).map_err(failed)?;
    Ok(file.commit()?)
}

/// The command as it was typed, with the program by its name.
pub(crate) fn command_line() -> String {
    let word = |word: std::ffi::OsString| {
        let word = word.to_string_lossy().into_owned();
        let plain = |c: char| c.is_alphanumeric() || "_-./+,:=@%".contains(c);
        if !word.is_empty() && word.chars().all(plain) { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
    };
    let words = called::words().into_iter().skip(1).map(word);
    std::iter::once("refault".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// How long it is waited whether there is something that opens pages.
const OPENED_AFTER: Duration = Duration::from_secs(2);

/// Opens a page in a browser.
pub(crate) fn open(path: &Path) -> Result<(), Failure> {
    let failed = |why: String| Err(format!("--open: {} is written, but {why}", path.display()).into());
    let quiet =
        Command::new("xdg-open").arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut opener = match quiet {
        Ok(opener) => opener,
        Err(e) => return failed(format!("xdg-open cannot be run: {e}")),
    };
    let begun = Instant::now();
    // It ends at once where a desktop takes the page over, and with the browser where none does.
    while begun.elapsed() < OPENED_AFTER {
        match opener.try_wait() {
            Ok(Some(status)) if !status.success() => return failed("xdg-open found nothing that opens it".into()),
            Ok(None) => sleep(Duration::from_millis(20)),
            _ => break,
        }
    }
    Ok(())
}
