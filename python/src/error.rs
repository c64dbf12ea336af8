//! Errors as exceptions, with the text that the command prints.

use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyPermissionError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use refault_cli::{Failure, one_line};
use refault_trace::{ErrorKind, TraceError};

/// Converts an error: a refusal of the system is an `OSError`, everything else a `ValueError`.
pub(crate) fn exception(failure: &Failure) -> PyErr {
    let text = one_line(&failure.to_string());
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
