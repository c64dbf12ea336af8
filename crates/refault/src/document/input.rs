//! Files that results come from.

use crate::Failure;
use crate::scenario::is_scenario;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Most bytes of JSON or of a page: larger files are none of ours.
const MOST_BYTES: u64 = 1 << 30;

/// Kind of a file that has a result, or makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// A trace or a recording: it is replayed.
    Trace,
    /// A scenario: it runs.
    Scenario,
    /// JSON that a command printed.
    Json,
    /// A page of HTML that carries results.
    Page,
}

impl InputKind {
    /// Tells by the beginning of a file which kind it is.
    pub fn of(path: &Path) -> InputKind {
        match begin(path) {
            _ if is_scenario(path) => InputKind::Scenario,
            Some('{') => InputKind::Json,
            Some('<') => InputKind::Page,
            _ => InputKind::Trace,
        }
    }
}

/// First character of a file that is no space. No trace begins with a character that is looked for.
fn begin(path: &Path) -> Option<char> {
    // Input that can be read only once is left alone.
    if !path.is_file() {
        return None;
    }
    let mut head = Vec::new();
    File::open(path).and_then(|file| file.take(4096).read_to_end(&mut head)).ok()?;
    head.iter().find(|byte| !byte.is_ascii_whitespace()).map(|&byte| char::from(byte))
}

/// The text of JSON or of a page.
///
/// # Errors
/// The file cannot be read, or is too large.
pub fn read_text(path: &Path) -> Result<String, Failure> {
    let said = |e: &dyn std::fmt::Display| format!("{}: cannot be read: {e}", path.display());
    let bytes = std::fs::metadata(path).map_err(|e| said(&e))?.len();
    if bytes > MOST_BYTES {
        return Err(format!("{}: has {bytes} bytes; no result of refault is that large", path.display()).into());
    }
    Ok(std::fs::read_to_string(path).map_err(|e| said(&e))?)
}
