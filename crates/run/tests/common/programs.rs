//! Programs of `tests/programs`, and `/proc` of a run of one.

use super::command::{LONGEST, Sandbox};
use refault_testing::{Need, absent};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// `programs/memory.c`, compiled once. `None`: it was said why not.
pub fn memory() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAM.get_or_init(|| compile("memory")).as_deref()
}

fn compile(name: &str) -> Option<PathBuf> {
    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let source = format!("{}/tests/programs/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let mut command = Command::new(&cc);
    command.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-pthread", "-o"]).arg(&program).arg(source);
    match command.output() {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            absent(Need::Cc, format_args!("there is no C compiler ({cc})"));
            return None;
        }
        Err(e) => panic!("{cc}: {e}"),
        Ok(o) => assert!(o.status.success(), "{command:?}: {}", String::from_utf8_lossy(&o.stderr)),
    }
    Some(program)
}

/// The most that was seen at one time, in bytes.
#[derive(Clone, Copy, Default, Debug)]
pub struct Seen {
    /// Anonymous memory of the processes.
    pub anonymous: u64,
    /// Shared memory of theirs.
    pub shared: u64,
    /// Huge pages.
    pub huge: u64,
    /// Anonymous and shared memory of the manager.
    pub manager: u64,
}

/// A run that is over.
#[derive(Debug)]
pub struct Run {
    /// The status of its end.
    pub status: ExitStatus,
    /// Standard error.
    pub said: String,
    /// `--json`.
    pub json: serde_json::Value,
    /// Meanwhile.
    pub seen: Seen,
}

/// Starts `refault run` with a program, and its figures to `run.json`.
pub fn start(s: &Sandbox, flags: &[&str], words: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_refault-run"));
    command.args(flags).args(["--json", "run.json", "--"]).args(words);
    command.current_dir(s.path("")).stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(std::fs::File::create(s.path("said")).expect("writable")).spawn().expect("the command runs")
}

impl Run {
    /// Runs a program, and looks at all processes meanwhile. `None`: it was said why this machine
    /// cannot. One that does not end is killed, and fails the test by name.
    pub fn of(s: &Sandbox, flags: &[&str], words: &[&str]) -> Option<Run> {
        let mut child = start(s, flags, words);
        let mut seen = Seen::default();
        let started = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().expect("a child") {
                break status;
            }
            if started.elapsed() > LONGEST {
                let (left, killed) = (children(child.id()), child.kill());
                panic!("{words:?} did not end in {LONGEST:?}; processes left: {left:?}, killed: {killed:?}");
            }
            seen.look(child.id());
            std::thread::sleep(Duration::from_millis(5));
        };
        let said = std::fs::read_to_string(s.path("said")).expect("text");
        let Ok(json) = std::fs::read(s.path("run.json")) else {
            absent(Need::Uffd, said.trim());
            return None;
        };
        Some(Run { status, said, json: serde_json::from_slice(&json).expect("JSON"), seen })
    }

    /// A figure of `--json`.
    pub fn number(&self, key: &str) -> u64 {
        self.json[key].as_u64().unwrap_or_else(|| panic!("{key} in {}", self.json))
    }
}

impl Seen {
    fn look(&mut self, manager: u32) {
        let (mut now, mut next) = (Seen::default(), children(manager));
        while let Some(pid) = next.pop() {
            next.extend(children(pid));
            let of = sizes(pid, "smaps_rollup");
            now.anonymous += of("Pss_Anon:");
            now.shared += of("Pss_Shmem:");
            now.huge += of("Private_Hugetlb:") + of("Shared_Hugetlb:");
        }
        let of = sizes(manager, "status");
        now.manager = of("RssAnon:") + of("RssShmem:");
        self.anonymous = self.anonymous.max(now.anonymous);
        self.shared = self.shared.max(now.shared);
        self.huge = self.huge.max(now.huge);
        self.manager = self.manager.max(now.manager);
    }
}

/// Sizes in a file of `/proc`, in bytes.
fn sizes(pid: u32, file: &str) -> impl Fn(&str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    move |name| {
        let kib = text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or(0) << 10
    }
}

fn children(pid: u32) -> Vec<u32> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let texts = tasks.flatten().map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    texts.collect::<String>().split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}
