//! Errors as exceptions, with the text that the command prints.

use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyPermissionError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use refault_cli::{Failure, one_line};
use refault_trace::{ErrorKind, TraceError};

/// A line of the command with keywords in place of flags, except in a command that it shows.
fn in_keywords(line: &str) -> String {
    let line = line.replace("; --set help lists what there is", "").replace("; --set help lists the keys", "");
    let line = line.replace("--set ", "");
    let led = line.strip_prefix("--").and_then(|rest| rest.split_once(": "));
    let (mut said, rest) = match led {
        Some((flag, rest)) => match flag.split_once([' ', '=']) {
            Some((name, value)) => (format!("{}='{value}': ", name.replace('-', "_")), rest),
            None => (format!("{}: ", flag.replace('-', "_")), rest),
        },
        None => (String::new(), line.as_str()),
    };
    for (at, part) in rest.split("--").enumerate() {
        let is_flag = part.starts_with(|c: char| c.is_ascii_lowercase());
        // Commands end where the next thing is said.
        let shows_a_command = said.rsplit([';', ',', '(']).next().is_some_and(|clause| clause.contains("refault "));
        if at == 0 {
            said += part;
        } else if is_flag && !shows_a_command {
            let end = part.find(|c: char| c != '-' && !c.is_ascii_alphanumeric()).unwrap_or(part.len());
            said += &part[..end].replace('-', "_");
            said += &part[end..];
        } else {
            said += "--";
            said += part;
        }
    }
    said
}

/// Converts an error: a refusal of the system is an `OSError`, everything else a `ValueError`.
pub(crate) fn exception(failure: &Failure) -> PyErr {
    let text = in_keywords(&one_line(&failure.to_string()));
    let refused = failure.downcast_ref::<TraceError>().is_some_and(|e| e.kind() == ErrorKind::Io)
        || text.contains(": cannot be opened: ")
        || text.contains(": cannot be written: ");
    match () {
        () if refused && text.contains("No such file") => PyFileNotFoundError::new_err(text),
        () if refused && text.contains("Permission denied") => PyPermissionError::new_err(text),
        () if refused => PyOSError::new_err(text),
        () => PyValueError::new_err(text),
    }
}

/// A panic is a defect of refault, and an error of its own.
pub(crate) fn defect(panic: &(dyn std::any::Any + Send)) -> PyErr {
    let said = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    PyRuntimeError::new_err(format!("a defect of refault, please report it: {}", said.unwrap_or("it panicked")))
}
