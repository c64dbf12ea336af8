//! Kinds of inputs.

use super::args::ReportArgs;
use super::{scenario, trace};
use crate::{Failure, Given};
use refault::document::{Document, Source};
use refault::scenario::is_scenario;
use refault_report::read_back;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// JSON or a page of more than so much is none of ours.
const MOST_BYTES: u64 = 1 << 30;

/// Treatment of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputKind {
    /// It is replayed.
    Trace,
    /// It runs.
    Scenario,
    /// JSON or a page: it is shown as it is.
    Result,
}

pub(super) fn kind(path: &Path) -> InputKind {
    match begin(path) {
        _ if is_scenario(path) => InputKind::Scenario,
        Some('{' | '<') => InputKind::Result,
        _ => InputKind::Trace,
    }
}

/// The results of one input; of an old report as many as it has.
pub(super) fn read(args: &ReportArgs, given: &Given, path: &Path) -> Result<Vec<Source>, Failure> {
    let name = path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    if is_scenario(path) {
        return Ok(vec![Source::new(&name, scenario::read(args, given, path)?)]);
    }
    match begin(path) {
        Some('{') => {
            let document = Document::from_json(&text(path)?).map_err(|e| format!("{}: {e}", path.display()))?;
            Ok(vec![Source::new(&name, document)])
        }
        Some('<') => match read_back(&text(path)?) {
            Some(Ok(sources)) => Ok(sources),
            Some(Err(e)) => Err(format!("{}: {e}", path.display()).into()),
            None => Err(format!("{}: is HTML, but no page of refault report", path.display()).into()),
        },
        _ => Ok(vec![Source::new(&name, trace::read(args, path)?)]),
    }
}

/// The first sign of a file that is no space. No trace begins with one of those that are looked
/// for.
fn begin(path: &Path) -> Option<char> {
    // Input that can be read only once is left alone.
    if !path.is_file() {
        return None;
    }
    let mut head = Vec::new();
    File::open(path).and_then(|file| file.take(4096).read_to_end(&mut head)).ok()?;
    head.iter().find(|byte| !byte.is_ascii_whitespace()).map(|&byte| char::from(byte))
}

fn text(path: &Path) -> Result<String, Failure> {
    let said = |e: &dyn std::fmt::Display| format!("{}: cannot be read: {e}", path.display());
    let bytes = std::fs::metadata(path).map_err(|e| said(&e))?.len();
    if bytes > MOST_BYTES {
        return Err(format!("{}: has {bytes} bytes; no result of refault is that large", path.display()).into());
    }
    Ok(std::fs::read_to_string(path).map_err(|e| said(&e))?)
}
