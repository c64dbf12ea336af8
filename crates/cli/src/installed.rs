//! Commands of a package of its own: `refault run` and `refault top` are the program `refault-run`,
//! if it is installed, as git finds its commands.

use crate::Failure;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Words that the program parses.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, after_help = "The program refault-run does it, of the package of that name.")]
pub struct ExternalCommand {
    /// Its flags; `--help` says more
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    words: Vec<OsString>,
}

/// The program.
const RUN: &str = "refault-run";

/// Its file: beside the file of this process, links followed, or in `PATH`.
fn find(name: &str) -> Result<PathBuf, Failure> {
    let beside = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.to_owned()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = beside.iter().cloned().chain(std::env::split_paths(&path));
    let found = folders.map(|folder| folder.join(name)).find(|file| is_program(file));
    found.ok_or_else(|| {
        let beside = beside.map_or_else(|| "refault".to_owned(), |folder| folder.display().to_string());
        format!(
            "{name}: not found in {beside} or in PATH; install the package {name} (wheels do not have it), or build it \
             with cargo build --release -p {name}"
        )
        .into()
    })
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// Becomes `refault-run`; it returns only if that fails.
pub fn become_run(words: impl IntoIterator<Item = OsString>) -> Failure {
    match find(RUN) {
        Ok(file) => format!("{}: cannot be run: {}", file.display(), Command::new(&file).args(words).exec()).into(),
        Err(e) => e,
    }
}

/// Result of `refault-run` with some words.
pub(crate) fn ask_run(words: &[OsString]) -> Result<Output, Failure> {
    let file = find(RUN)?;
    Ok(Command::new(&file).args(words).output().map_err(|e| format!("{}: cannot be run: {e}", file.display()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_named_with_what_to_do() {
        let e = find("refault-nothing").unwrap_err().to_string();
        assert!(e.starts_with("refault-nothing: not found in /") && e.contains("cargo build"), "{e}");
        assert!(find("sh").is_ok_and(|file| file.is_absolute()));
    }
}
