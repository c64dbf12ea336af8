//! Running the command as a user does.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Time after which a run counts as one that never ends: the longest takes a minute on a busy
/// machine.
pub const LONGEST: Duration = Duration::from_secs(300);

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

    /// Runs `refault-run` in it. One that does not end is killed, and fails the test by name.
    pub fn run<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_refault-run"));
        command.args(args).current_dir(self.dir.path()).stdin(Stdio::null());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command runs");
        let id = child.id().to_string();
        let (ended, end) = mpsc::channel::<()>();
        let watchdog = std::thread::spawn(move || {
            let is_late = end.recv_timeout(LONGEST) == Err(mpsc::RecvTimeoutError::Timeout);
            is_late && Command::new("kill").args(["-KILL", &id]).status().is_ok()
        });
        let output = child.wait_with_output().expect("it is waited for");
        drop(ended);
        assert!(!watchdog.join().expect("it ends"), "{command:?} did not end in {LONGEST:?}: {output:?}");
        output
    }
}
