//! Lines that are written over on a terminal are the progress library's, or of `ratatui`.

use super::crates::{crates, root, rust_files};
use std::fs;

/// Escapes by which a line is written over: to its beginning, and clearing it.
const OVERWRITES: [&str; 3] = ["\\r{", "\\r\\x1b", "\\x1b[K"];

/// Lines, from 1, that write over one of the terminal.
fn overwriting(text: &str) -> Vec<usize> {
    let is_found = |line: &str| OVERWRITES.iter().any(|escape| line.contains(escape));
    text.lines().zip(1..).filter(|(line, _)| is_found(line)).map(|(_, n)| n).collect()
}

#[test]
fn progress_is_shown_by_the_library() {
    let mut wrong = Vec::new();
    for path in crates().iter().flat_map(|name| rust_files(&root().join("crates").join(name).join("src"))) {
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        wrong.extend(overwriting(&text).iter().map(|n| format!("{}:{n}", path.display())));
    }
    assert!(wrong.is_empty(), "use crates/cli/src/bars, or indicatif:\n  {}", wrong.join("\n  "));
}

#[test]
fn a_line_that_is_written_over_is_found() {
    let text = "write!(out, \"\\r{text}\\x1b[K\");\nprint!(\"\\x1b[1m\");\nwrite!(out, \"\\r\\x1b[K\");";
    assert_eq!(overwriting(text), [1, 3]);
}
