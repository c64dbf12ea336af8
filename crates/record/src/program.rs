//! The program that is recorded: it starts when the recorder is ready, in a group if there is one.

use crate::group::Cgroup;
use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};

/// Set by SIGINT and SIGTERM.
static ENDED: AtomicBool = AtomicBool::new(false);

extern "C" fn on_end(_: libc::c_int) {
    ENDED.store(true, Ordering::Relaxed);
}

/// From now on SIGINT and SIGTERM end the recording, and not the recorder.
pub fn catch_end() {
    let handler = on_end as extern "C" fn(libc::c_int);
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler does nothing but store to an atomic.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
}

/// Whether one of them came.
pub fn is_ended() -> bool {
    ENDED.load(Ordering::Relaxed)
}

/// Starts the program.
pub(crate) fn start(words: &[OsString], group: Option<&Cgroup>) -> Result<Child, String> {
    let (program, args) = words.split_first().ok_or("no program given")?;
    let mut command = Command::new(program);
    command.args(args);
    if let Some(group) = group {
        let mut procs = group.procs().map_err(|e| format!("{}: cannot be entered: {e}", group.path()))?;
        // SAFETY: between fork and exec nothing happens but one write to an open descriptor.
        unsafe {
            command.pre_exec(move || procs.write_all(b"0"));
        }
    }
    command.spawn().map_err(|e| format!("{}: cannot be started: {e}", program.to_string_lossy()))
}
