//! State of the processes of a run: for the watchdog, which is about what hangs and not about who
//! waits for a processor.

use std::fs;
use std::time::Duration;

/// State of the processes at a look.
pub struct Group {
    /// Time that all their threads waited for a processor.
    pub waited: Duration,
    /// Each thread: its name, its state, and where in the kernel it is.
    pub threads: String,
}

/// Looks at the processes of a group.
pub fn look(group: i32) -> Group {
    let mut seen = Group { waited: Duration::ZERO, threads: String::new() };
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in all.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok()) {
        // Behind the name, which may have blanks and brackets: the state, the parent, the group.
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let of = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(2)?.parse::<i32>().ok());
        if of != Some(group) {
            continue;
        }
        for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let read = |name: &str| fs::read_to_string(task.path().join(name)).unwrap_or_default();
            let waited = read("schedstat").split_whitespace().nth(1).and_then(|n| n.parse().ok());
            seen.waited += Duration::from_nanos(waited.unwrap_or(0));
            let status = read("status");
            let state = status.lines().find_map(|l| l.strip_prefix("State:")).unwrap_or_default();
            let (stack, call) = (read("stack"), read("syscall"));
            let places: Vec<&str> = stack.lines().filter_map(|l| l.split_whitespace().nth(1)).take(6).collect();
            let at = (pid, task.file_name(), read("comm"));
            seen.threads += &format!(
                "thread {} {:?} {}:{} waited {:?}, call {}, in {}\n",
                at.0,
                at.1,
                at.2.trim(),
                state.replace('\t', " "),
                Duration::from_nanos(waited.unwrap_or(0)),
                call.trim(),
                places.join(" < ")
            );
        }
    }
    seen
}
