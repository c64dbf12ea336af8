//! The kernel's side: a cgroup, with a limit or without, and swap. Another process, the janitor,
//! undoes it all when this one is gone. The benchmark of whole programs
//! (`crates/cli/benches/programs`) includes this file, too, so it does by commands what else were
//! `unsafe`.

use std::fmt;
use std::fs;
use std::io::{BufRead as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Part of the work that a process of this program does; unset: it is the one that was started.
pub const ROLE: &str = "REFAULT_BENCH_ROLE";

/// Places that pages go to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Swap {
    /// Compressed memory.
    Zram,
    /// A swap file.
    File,
}

impl Swap {
    pub fn parse(s: &str) -> Result<Swap, String> {
        match s {
            "zram" => Ok(Swap::Zram),
            "file" => Ok(Swap::File),
            _ => Err(format!("unknown swap {s:?}; known are zram, file")),
        }
    }
}

impl fmt::Display for Swap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Swap::Zram { "zram" } else { "file" })
    }
}

/// Request for a rig: its cgroup and its swap.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// The limit of the cgroup; none: it only counts.
    pub memory_max_bytes: Option<u64>,
    /// Where pages go, and how much of them at most.
    pub swap: Option<(Swap, u64)>,
    /// Where a swap file is made.
    pub directory: &'a Path,
}

/// Rig that was set up; undone when it is dropped, or this process ends.
pub struct Rig {
    janitor: Janitor,
    cgroup: PathBuf,
    zram: Option<u32>,
}

/// It is told of everything before it is made, and undoes it, the last first, when it hears no
/// more.
pub struct Janitor(Child);

impl Janitor {
    /// A process group of its own, and deaf: what ends the others must not end it.
    pub fn start() -> Result<Janitor, String> {
        let me = std::env::current_exe().map_err(|e| format!("where this program is: {e}"))?;
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' INT TERM HUP QUIT PIPE; exec \"$0\" --bench"]).arg(me);
        command.env(ROLE, "janitor").stdin(Stdio::piped()).process_group(0);
        command.spawn().map(Janitor).map_err(|e| format!("starting a process: {e}"))
    }

    /// Something will be there: a `cgroup`, `swap` on a device, a `zram` device, a `file` or a
    /// `directory`.
    pub fn told(&mut self, what: &str, which: impl fmt::Display) -> Result<(), String> {
        let stdin = self.0.stdin.as_mut().expect("it is piped");
        writeln!(stdin, "{what} {which}").map_err(|e| format!("the process that cleans up: {e}"))
    }

    /// Has it undo everything.
    pub fn end(&mut self) -> Result<(), String> {
        drop(self.0.stdin.take());
        match self.0.wait() {
            Ok(status) if status.success() => Ok(()),
            other => Err(format!("not everything was cleaned up: {other:?}")),
        }
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        if self.0.stdin.is_some() {
            _ = self.end();
        }
    }
}

/// Names of what is set up differ.
fn number() -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed))
}

impl Rig {
    /// Sets it up, or says why it cannot be.
    pub fn new(setup: Setup) -> Result<Rig, String> {
        if !fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0) {
            return Err("it takes root".into());
        }
        let swaps = fs::read_to_string("/proc/swaps").map_err(|e| format!("/proc/swaps: {e}"))?;
        if setup.swap.is_some() && swaps.lines().count() > 1 {
            return Err("swap is on already, and would be used, too".into());
        }
        let v1 = Path::new("/sys/fs/cgroup/memory");
        let (root, limit) = match v1.join("memory.limit_in_bytes").exists() {
            true => (v1, "memory.limit_in_bytes"),
            false => (Path::new("/sys/fs/cgroup"), "memory.max"),
        };
        let cgroup = root.join(format!("refault-bench-{}", number()));
        let mut rig = Rig { janitor: Janitor::start()?, cgroup, zram: None };
        rig.janitor.told("cgroup", rig.cgroup.display())?;
        fs::create_dir(&rig.cgroup).map_err(|e| format!("making a cgroup: {e}"))?;
        if !rig.cgroup.join("memory.stat").exists() {
            return Err(format!("{} has no memory controller", root.display()));
        }
        if let Some(bytes) = setup.memory_max_bytes {
            put(&rig.cgroup.join(limit), &bytes.to_string())?;
        }
        if let Some((swap, bytes)) = setup.swap {
            let device = match swap {
                Swap::Zram => rig.zram(bytes)?,
                Swap::File => rig.swap_file(setup.directory, bytes)?,
            };
            rig.janitor.told("swap", device.display())?;
            command("mkswap", &[device.as_os_str()])?;
            command("swapon", &[device.as_os_str()])?;
        }
        Ok(rig)
    }

    fn zram(&mut self, bytes: u64) -> Result<PathBuf, String> {
        let id =
            fs::read_to_string("/sys/class/zram-control/hot_add").map_err(|e| format!("adding a zram device: {e}"))?;
        let id: u32 = id.trim().parse().map_err(|e| format!("the number of a zram device: {e}"))?;
        self.janitor.told("zram", id)?;
        self.zram = Some(id);
        let block = PathBuf::from(format!("/sys/block/zram{id}"));
        put(&block.join("comp_algorithm"), "lz4")?;
        put(&block.join("disksize"), &bytes.to_string())?;
        Ok(format!("/dev/zram{id}").into())
    }

    fn swap_file(&mut self, directory: &Path, bytes: u64) -> Result<PathBuf, String> {
        let path = directory.join(format!("refault-bench-swap-{}", number()));
        self.janitor.told("file", path.display())?;
        let file = fs::File::create_new(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        file.set_permissions(mode).map_err(|e| format!("{}: {e}", path.display()))?;
        command("fallocate", &["-l".as_ref(), bytes.to_string().as_ref(), path.as_os_str()])?;
        Ok(path)
    }

    pub fn cgroup(&self) -> &Path {
        &self.cgroup
    }

    /// The most memory that zram took for the pages.
    pub fn zram_bytes(&self) -> Option<u64> {
        let stat = fs::read_to_string(format!("/sys/block/zram{}/mm_stat", self.zram?)).ok()?;
        let n: Vec<u64> = stat.split_whitespace().map_while(|w| w.parse().ok()).collect();
        match n[..] {
            [.., most, _, _, _, _] if n.len() >= 8 => Some(most),
            _ => None,
        }
    }

    /// Memory that zram took for the pages, in words.
    pub fn used(&self) -> String {
        let text = |most: u64| format!("zram took {:.1} MiB at most", most as f64 / f64::from(1 << 20));
        self.zram_bytes().map_or_else(String::new, text)
    }

    /// Anonymous memory of all that is in the cgroup, as the kernel counts it now; what is shared
    /// after a fork counts once.
    pub fn anon_bytes(&self) -> Option<u64> {
        let stat = fs::read_to_string(self.cgroup.join("memory.stat")).ok()?;
        let of =
            |name: &str| stat.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok());
        of("total_rss").or_else(|| of("anon"))
    }

    /// How many processes the kernel has ended here for lack of memory.
    pub fn killed(&self) -> u64 {
        let read = |name: &str| fs::read_to_string(self.cgroup.join(name));
        let text = read("memory.oom_control").or_else(|_| read("memory.events")).unwrap_or_default();
        text.lines().find_map(|l| l.strip_prefix("oom_kill ")?.trim().parse().ok()).unwrap_or(0)
    }

    /// Ends all that is in the cgroup.
    pub fn end_all(&self) {
        empty(&self.cgroup);
    }

    /// Undoes it.
    pub fn end(mut self) -> Result<(), String> {
        self.janitor.end()
    }
}

fn put(path: &Path, value: &str) -> Result<(), String> {
    fs::write(path, value).map_err(|e| format!("writing {value} to {}: {e}", path.display()))
}

fn command(name: &str, args: &[&std::ffi::OsStr]) -> Result<(), String> {
    let made = Command::new(name).args(args).output().map_err(|e| format!("{name}: {e}"))?;
    match made.status.success() {
        true => Ok(()),
        false => Err(format!("{name}: {}", String::from_utf8_lossy(&made.stderr).trim_end())),
    }
}

/// The janitor.
pub fn clean_up() {
    let lines: Vec<String> = std::io::stdin().lock().lines().map_while(Result::ok).collect();
    // The processes of the cgroup end first: what is swapped out of it need not come back.
    for group in lines.iter().filter_map(|l| l.strip_prefix("cgroup ")) {
        empty(Path::new(group));
    }
    let mut all_done = true;
    for line in lines.iter().rev() {
        let (what, which) = line.split_once(' ').unwrap_or((line, ""));
        let path = Path::new(which);
        let done = match what {
            "swap" if is_on(path) => command("swapoff", &[path.as_os_str()]),
            "swap" => Ok(()),
            "zram" => put(Path::new(&format!("/sys/block/zram{which}/reset")), "1")
                .and_then(|()| put(Path::new("/sys/class/zram-control/hot_remove"), which)),
            _ if !path.exists() => Ok(()),
            "file" => fs::remove_file(path).map_err(|e| e.to_string()),
            // A swap file in it is another janitor's, who may still be at it.
            "directory" => match retried(|| fs::remove_dir_all(path).is_ok()) {
                true => Ok(()),
                false => fs::remove_dir_all(path).map_err(|e| e.to_string()),
            },
            _ => match retried(|| fs::remove_dir(path).is_ok()) {
                true => Ok(()),
                false => Err("it is in use".into()),
            },
        };
        if let Err(e) = done {
            eprintln!("error: cleaning up {line}: {e}");
            all_done = false;
        }
    }
    if !all_done {
        std::process::exit(1);
    }
}

fn is_on(path: &Path) -> bool {
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    swaps.lines().any(|l| l.split_whitespace().next().is_some_and(|p| Path::new(p) == path))
}

fn retried(mut done: impl FnMut() -> bool) -> bool {
    (0..600).any(|_| {
        let ok = done();
        if !ok {
            std::thread::sleep(Duration::from_millis(50));
        }
        ok
    })
}

/// Ends all processes of a cgroup that is ours.
fn empty(group: &Path) {
    retried(|| {
        let procs = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        let pids: Vec<&str> = procs.split_whitespace().collect();
        if !pids.is_empty() {
            _ = Command::new("sh").args(["-c", "kill -9 \"$@\" 2>/dev/null", "sh"]).args(&pids).status();
        }
        pids.is_empty()
    });
}

/// This process goes into the cgroup.
pub fn enter(cgroup: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(cgroup);
    put(&path.join("cgroup.procs"), &std::process::id().to_string())?;
    Ok(path)
}

/// Memory that is counted in the cgroup.
pub fn usage_bytes(cgroup: &Path) -> Result<u64, String> {
    let read = |name: &str| fs::read_to_string(cgroup.join(name));
    let text =
        read("memory.usage_in_bytes").or_else(|_| read("memory.current")).map_err(|e| format!("memory in use: {e}"))?;
    text.trim().parse().map_err(|e| format!("memory in use: {e}"))
}
