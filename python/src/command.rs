//! The command `refault` in this process: the program that a wheel brings calls it.

use pyo3::prelude::*;
use std::ffi::OsString;
use std::io::Write;

/// Runs the command, once a process; its exit status. The first word is the name of the program.
#[pyfunction]
pub(crate) fn command(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| {
        let status = refault_cli::command::run(words);
        // A program of Rust does it at its end.
        let _ = std::io::stdout().flush();
        status
    })
}
