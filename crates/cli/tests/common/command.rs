//! Running the command as a user does.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory of its own, with small traces on request.
pub struct Sandbox {
    dir: tempfile::TempDir,
    command: OsString,
}

impl Sandbox {
    /// An empty one.
    pub fn new() -> Sandbox {
        let dir = tempfile::tempdir().expect("a temporary directory");
        Sandbox { dir, command: env!("CARGO_BIN_EXE_refault").into() }
    }

    /// An empty one, with the command of `REFAULT_COMMAND` where that is set: a release is three
    /// times as fast, in tests that take minutes.
    pub fn of_release() -> Sandbox {
        let own = Sandbox::new();
        Sandbox { command: std::env::var_os("REFAULT_COMMAND").unwrap_or(own.command), ..own }
    }

    /// The path of a name in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file.
    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        std::fs::write(self.path(name), bytes).expect("writable");
        self.path(name)
    }

    /// A generated native trace.
    pub fn generate(&self, name: &str, phases: &[&str]) -> PathBuf {
        let path = self.path(name);
        let mut args = vec!["trace", "generate", path.to_str().expect("plain text")];
        phases.iter().for_each(|phase| args.extend(["--phase", phase]));
        ok(&self.run(&args));
        path
    }

    /// Runs `refault` in it.
    pub fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Output {
        Command::new(&self.command)
            .args(args)
            .current_dir(self.dir.path())
            .stdin(std::process::Stdio::null())
            .output()
            .expect("the command runs")
    }

    /// Runs `refault replay TRACE ...`.
    pub fn replay(&self, trace: &Path, flags: &[&str]) -> Output {
        let mut args = vec!["replay", trace.to_str().expect("plain text")];
        args.extend(flags);
        self.run(&args)
    }

    /// The names in it.
    pub fn files(&self) -> Vec<String> {
        let name =
            |e: std::io::Result<std::fs::DirEntry>| e.expect("an entry").file_name().into_string().expect("text");
        let mut names: Vec<_> = std::fs::read_dir(self.dir.path()).expect("readable").map(name).collect();
        names.sort();
        names
    }
}

/// Standard output of a successful run.
pub fn ok(output: &Output) -> String {
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {complaint}", output.status);
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// The one line that a run ended in, with status 2 and nothing on standard output.
pub fn error(output: &Output) -> String {
    let complaint = String::from_utf8(output.stderr.clone()).expect("text");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{complaint}{shown}");
    assert!(shown.is_empty(), "{shown}");
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    assert!(complaint.starts_with("error: "), "{complaint}");
    complaint
}

/// The rows of a JSON result.
pub fn rows(text: &str) -> Vec<serde_json::Value> {
    let all: serde_json::Value = serde_json::from_str(text).expect("JSON");
    all["rows"].as_array().expect("rows").clone()
}
