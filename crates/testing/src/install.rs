//! Programs that a test makes and runs.

use std::path::Path;
use std::process::Command;

/// Copies a program for a test to run, with the right to run it. A process of its own does: of a
/// file that this one writes, a child that another test is just starting may have the descriptor
/// for a moment, and Linux refuses to run a file that is open for writing (`ETXTBSY`).
///
/// # Panics
/// If `install` fails.
pub fn install(from: &Path, to: &Path) {
    let done = Command::new("install").args(["-m", "755"]).arg(from).arg(to).status();
    assert!(done.is_ok_and(|status| status.success()), "install {} {}", from.display(), to.display());
}
