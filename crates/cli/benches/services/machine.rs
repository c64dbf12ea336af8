//! The machine that it runs on: commands, programs that it has, its load.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A text and the place where it failed.
pub fn at<E: std::fmt::Display>(place: impl std::fmt::Display) -> impl FnOnce(E) -> String {
    move |e| format!("{place}: {e}")
}

/// Whether a program is installed.
pub fn has(program: &str) -> bool {
    let mut command = Command::new("sh");
    command.args(["-c", "command -v \"$0\"", program]).stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Runs a program to its end; what it printed.
pub fn run(program: &str, words: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(words).stdin(Stdio::null()).output().map_err(at(program))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} {}: {}: {}", words.join(" "), output.status, said.trim()))
}

/// The command that is measured: the one that was built with this, or `$REFAULT`.
pub fn command() -> Command {
    Command::new(std::env::var_os("REFAULT").unwrap_or(env!("CARGO_BIN_EXE_refault").into()))
}

/// The command: what it printed, whatever its exit status, or its error.
pub fn refault(words: &[&str]) -> Result<String, String> {
    let output = command().args(words).stdin(Stdio::null()).output();
    let output = output.map_err(at("refault"))?;
    if output.status.code() != Some(2) && !output.stdout.is_empty() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(said.lines().last().unwrap_or("no word").trim_start_matches("error: ").to_owned())
}

/// Waits for a process; beyond the time it is killed.
pub fn wait(child: &mut Child, name: &str, seconds: u64) -> Result<(), String> {
    let end = Instant::now() + Duration::from_secs(seconds);
    while child.try_wait().map_err(at(name))?.is_none() {
        if Instant::now() > end {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("{name}: did not end in {seconds} s"));
        }
        pause_ms(50);
    }
    Ok(())
}

pub fn pause_ms(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

/// Reads a file without the white space around.
pub fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// A name, and how busy it is.
pub fn described() -> String {
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let load = text("/proc/loadavg").split(' ').next().unwrap_or("unknown").to_owned();
    format!("Linux {}, {cpus} CPUs, load {load}", text("/proc/sys/kernel/osrelease"))
}
