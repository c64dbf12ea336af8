//! Words that the command was called with: those of the process, but where another program runs it.

use std::ffi::OsString;
use std::sync::OnceLock;

static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();

/// Notes them.
pub(crate) fn note(words: &[OsString]) {
    let _ = WORDS.set(words.to_vec());
}

/// The words, with the name of the program.
pub(crate) fn words() -> Vec<OsString> {
    WORDS.get().cloned().unwrap_or_else(|| std::env::args_os().collect())
}
