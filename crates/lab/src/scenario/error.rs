//! Errors of a scenario, and where they are.

use std::fmt;
use std::ops::Range;

/// One error: file, line, key, what is wrong and what to do, in one line.
///
/// For example `db-switch.toml:14: machine.memory: "16Q" is not a size; write 512M, 1.5G or 4096p`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    file: String,
    line: Option<usize>,
    key: String,
    what: String,
}

impl ScenarioError {
    /// An error about the whole file.
    pub fn whole(file: &str, what: impl Into<String>) -> ScenarioError {
        ScenarioError(Box::new(Inner { file: file.into(), line: None, key: String::new(), what: what.into() }))
    }

    /// The line, counted from 1; `None`: the file as a whole.
    pub fn line(&self) -> Option<usize> {
        self.0.line
    }

    /// The key, such as `machine.memory` or `task[1].phase[2].passes` (counted from 1); empty:
    /// none.
    pub fn key(&self) -> &str {
        &self.0.key
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { file, line, key, what } = &*self.0;
        write!(f, "{}:", plain(file, 400))?;
        if let Some(line) = line {
            write!(f, "{line}:")?;
        }
        if !key.is_empty() {
            write!(f, " {}:", plain(key, 200))?;
        }
        write!(f, " {}", plain(what, 750))
    }
}

impl std::error::Error for ScenarioError {}

/// The text that is read: what an error needs to say where.
#[derive(Clone, Copy)]
pub(super) struct Source<'s> {
    pub(super) file: &'s str,
    pub(super) text: &'s str,
}

impl Source<'_> {
    /// An error at a place of the text.
    pub(super) fn error(self, span: &Range<usize>, key: &str, what: impl Into<String>) -> ScenarioError {
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        ScenarioError(Box::new(Inner { file: self.file.into(), line: Some(line), key: key.into(), what: what.into() }))
    }

    /// A value as it is written, short enough to be part of a message.
    pub(super) fn shown(self, span: &Range<usize>) -> String {
        plain(self.text.get(span.clone()).unwrap_or("the value"), 40)
    }
}

/// Text that prints as one line of bounded length.
pub(super) fn plain(text: &str, chars: usize) -> String {
    let mut out = String::new();
    for (n, c) in text.chars().enumerate() {
        if n == chars {
            out.push_str("...");
            break;
        }
        let breaks = c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
        match c {
            _ if breaks => out.extend(c.escape_default()),
            _ => out.push(c),
        }
    }
    out
}
