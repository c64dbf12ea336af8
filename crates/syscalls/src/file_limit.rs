//! Files that grow beyond the limit of the shell (`ulimit -f`).

extern "C" fn pass_over(_: libc::c_int) {}

/// From now on a write beyond the limit of a file's size is an error that the writer sees ("File
/// too large"); by custom a signal ends the process without a word. Programs that this one starts
/// have the custom.
pub fn say_file_limit() {
    let handler = pass_over as extern "C" fn(libc::c_int);
    // SAFETY: the handler does nothing. A handler, and not `SIG_IGN`, does not outlive `exec`.
    unsafe { libc::signal(libc::SIGXFSZ, handler as libc::sighandler_t) };
}
