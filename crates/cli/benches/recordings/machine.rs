//! The machine that it runs on: its shell, its page cache, what it is.

use rustix::fs::{Advice, fadvise};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Whether a program is installed.
pub fn has(program: &str) -> bool {
    let mut command = Command::new("sh");
    command.args(["-c", "command -v \"$0\"", program]).stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Runs a script to its end.
pub fn sh(script: &str, folder: &Path, variables: &[(&str, &Path)]) -> Result<(), String> {
    let mut command = Command::new("sh");
    command.args(["-euc", script]).current_dir(folder).envs(variables.iter().copied()).stdin(Stdio::null());
    let status = command.status().map_err(|e| format!("sh: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}: {script}", folder.display())) }
}

/// The command, run to its end; what it printed.
pub fn refault(words: &[&OsStr], folder: &Path) -> Result<String, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_refault"));
    command.args(words).current_dir(folder).stdin(Stdio::null());
    let output = command.output().map_err(|e| format!("refault: {e}"))?;
    match output.status.success() {
        true => String::from_utf8(output.stdout).map_err(|e| format!("refault: {e}")),
        false => Err(format!("refault: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// Has the files below a folder leave the page cache.
pub fn cool(folder: &Path) -> Result<(), String> {
    rustix::fs::sync();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?.flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(path),
                Ok(kind) if kind.is_file() => {
                    let file = fs::File::open(&path).map_err(|e| format!("{}: {e}", path.display()))?;
                    fadvise(&file, 0, None, Advice::DontNeed).map_err(|e| format!("{}: {e}", path.display()))?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Machine in words, and how busy it is.
pub fn described() -> String {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let mut text = format!("Linux {}, {cpus} CPUs, load {}", text("/proc/sys/kernel/osrelease").trim(), load());
    if cfg!(debug_assertions) {
        text += ", a build for tests";
    }
    text
}

/// How many want to run, of the last minute.
pub fn load() -> String {
    let all = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    all.split(' ').next().unwrap_or("unknown").to_owned()
}
