//! What the command `refault` is made of.

pub mod replay;
mod terminal;
pub mod trace_cmd;

/// Any error of a subcommand; its text is one line that names the file or the flag, and the place.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Prints on standard output. A reader that has seen enough (`| head`) is no error.
pub fn print(text: &str) -> Result<(), Failure> {
    use std::io::{ErrorKind, Write, stdout};
    let written = stdout().write_all(text.as_bytes()).and_then(|()| stdout().flush());
    match written {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(format!("standard output: cannot be written: {e}").into()),
        _ => Ok(()),
    }
}
