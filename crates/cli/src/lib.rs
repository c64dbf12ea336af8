//! Library that the command `refault` is made of. `api` is for programs that are not the command.

use std::path::{Path, PathBuf};

pub mod api;
mod bars;
pub mod bench;
mod called;
pub mod command;
mod complaint;
mod demo;
pub mod doctor;
pub mod exit;
pub mod explain;
mod flags;
mod given;
pub mod installed;
pub mod live;
mod page;
pub mod record;
pub mod replay;
pub mod report;
pub mod size;
mod start;
pub mod trace_cmd;
pub mod verify;
pub mod watch;
pub mod whatif;

pub use complaint::{asked_for, complaint, one_line};
pub use flags::kernel::parser as kernel_parser;
pub use flags::memory::{advise_for, has_max_memory, max_memory};
pub use given::GivenFlags;
pub use page::note_inputs;
use refault::table;
pub use refault::{Failure, Watch};

/// Prints on standard output. A reader that has seen enough (`| head`) is no error.
pub fn print(text: &str) -> Result<(), Failure> {
    use std::io::{ErrorKind, Write, stdout};
    let written = stdout().write_all(text.as_bytes()).and_then(|()| stdout().flush());
    match written {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(format!("standard output: cannot be written: {e}").into()),
        _ => Ok(()),
    }
}

/// Says something on standard error, in one line that cannot steer the terminal.
pub fn say(text: &str) {
    eprintln!("{}", one_line(text));
}

/// Whether two names mean the same file, links followed; also one that does not exist yet.
pub(crate) fn is_same_file(a: &Path, b: &Path) -> bool {
    whole(a) == whole(b)
}

/// A path without links and detours, as far as it exists.
fn whole(path: &Path) -> PathBuf {
    let beside = || {
        let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
        Some(std::fs::canonicalize(parent).ok()?.join(path.file_name()?))
    };
    std::fs::canonicalize(path).ok().or_else(beside).unwrap_or_else(|| path.to_owned())
}
