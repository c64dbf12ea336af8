//! Processes that a program leaves behind when it ends. Processes just forked or being loaded have
//! no memory that is served yet, and would find nobody to serve it.

use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use super::abi;

/// Between two looks, at first and at most.
const PAUSE: Duration = Duration::from_millis(1);
const LONG_PAUSE: Duration = Duration::from_millis(20);
/// Looks at a process before it is taken for a stranger: in the middle of `exec` a process has no
/// environment for a moment.
const LOOKS: u32 = 3;

/// Waits until no process is left that would come to be served in the run of this name. Orphans are
/// children of this process (`PR_SET_CHILD_SUBREAPER`), and each has, or its parent has, the run's
/// name in its environment. A process without it is not served. Other children of this process may
/// be anyone's, so none is waited for with `waitpid`. `goes_on`: called again and again, until it
/// says that they are not to be waited for.
pub(super) fn wait_for_all(name: &str, goes_on: impl Fn() -> bool) {
    let (mut strange, mut pause) = (0, PAUSE);
    loop {
        let children = living_children();
        if children.is_empty() || !goes_on() {
            return;
        }
        strange = if children.iter().any(|&pid| is_of_run(pid, name)) { 0 } else { strange + 1 };
        if strange >= LOOKS {
            return;
        }
        pause = if strange > 0 { PAUSE } else { (pause * 2).min(LONG_PAUSE) };
        std::thread::sleep(pause);
    }
}

/// Whether a process has the name of the run in its environment.
pub(super) fn is_of_run(pid: i32, name: &str) -> bool {
    let variable = [abi::VARIABLE.as_bytes(), b"=", name.as_bytes()].concat();
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|&b| b == 0).any(|v| v == variable)
}

/// Children of this process that have not ended.
pub(super) fn living_children() -> Vec<i32> {
    let own = std::process::id() as i32;
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|e| std::str::from_utf8(e.ok()?.file_name().as_bytes()).ok()?.parse().ok());
    pids.filter(|&pid: &i32| is_living_child(pid, own)).collect()
}

/// `/proc/PID/stat` has the name, which may have anything in it, in parentheses; then the state and
/// the parent.
fn is_living_child(pid: i32, of: i32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let Some((_, behind)) = stat.rsplit_once(')') else { return false };
    let mut words = behind.split_whitespace();
    !matches!(words.next(), None | Some("Z" | "X")) && words.next().and_then(|p| p.parse().ok()) == Some(of)
}
