//! Running the command as a user does.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A directory of its own.
pub struct Sandbox {
    dir: tempfile::TempDir,
}

impl Sandbox {
    /// An empty one.
    pub fn new() -> Sandbox {
        Sandbox { dir: tempfile::tempdir().expect("a temporary directory") }
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

    /// Runs `refault-run` in it.
    pub fn run<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_refault-run"))
            .args(args)
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .output()
            .expect("the command runs")
    }
}
