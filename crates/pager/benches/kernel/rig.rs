//! The kernel's side: a cgroup with a limit, and swap. Another process, the janitor, undoes it all when this one is gone.

use std::fs;
use std::io::{BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::options::{Options, Swap};

/// What was set up.
pub struct Rig {
    janitor: Janitor,
    cgroup: PathBuf,
    zram: Option<u32>,
}

/// It is told of everything before it is made, and undoes it, the last first, when it hears no more.
struct Janitor(Child);

impl Janitor {
    fn start() -> Result<Janitor, String> {
        let me = std::env::current_exe().map_err(|e| format!("where this program is: {e}"))?;
        let mut command = Command::new(me);
        command.arg("--bench").env(super::ROLE, "janitor").stdin(Stdio::piped());
        command.spawn().map(Janitor).map_err(|e| format!("starting a process: {e}"))
    }

    fn told(&mut self, what: &str, which: impl std::fmt::Display) -> Result<(), String> {
        let stdin = self.0.stdin.as_mut().expect("it is piped");
        writeln!(stdin, "{what} {which}").map_err(|e| format!("the process that cleans up: {e}"))
    }

    /// Has it undo everything.
    fn end(&mut self) -> Result<(), String> {
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

impl Rig {
    /// Sets it up, or says why it cannot be.
    pub fn new(o: &Options, swap: Swap) -> Result<Rig, String> {
        // SAFETY: takes nothing, cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            return Err("they need root".into());
        }
        let swaps = fs::read_to_string("/proc/swaps").map_err(|e| format!("/proc/swaps: {e}"))?;
        if swaps.lines().count() > 1 {
            return Err("swap is on already, and would be used, too".into());
        }
        let v1 = Path::new("/sys/fs/cgroup/memory");
        let (root, limit) = match v1.join("memory.limit_in_bytes").exists() {
            true => (v1, "memory.limit_in_bytes"),
            false => (Path::new("/sys/fs/cgroup"), "memory.max"),
        };
        let cgroup = root.join(format!("refault-bench-{}", std::process::id()));
        let mut rig = Rig { janitor: Janitor::start()?, cgroup, zram: None };
        rig.janitor.told("cgroup", rig.cgroup.display())?;
        fs::create_dir(&rig.cgroup).map_err(|e| format!("making a cgroup: {e}"))?;
        put(&rig.cgroup.join(limit), &o.memory.to_string())?;
        let device = match swap {
            Swap::Zram => rig.zram(o)?,
            Swap::File => rig.swap_file(o)?,
        };
        rig.janitor.told("swap", device.display())?;
        rig.swap_on(&device)?;
        Ok(rig)
    }

    fn zram(&mut self, o: &Options) -> Result<PathBuf, String> {
        let id =
            fs::read_to_string("/sys/class/zram-control/hot_add").map_err(|e| format!("adding a zram device: {e}"))?;
        let id: u32 = id.trim().parse().map_err(|e| format!("the number of a zram device: {e}"))?;
        self.janitor.told("zram", id)?;
        self.zram = Some(id);
        let block = PathBuf::from(format!("/sys/block/zram{id}"));
        put(&block.join("comp_algorithm"), "lz4")?;
        put(&block.join("disksize"), &(o.swap_bytes + (16 << 20)).to_string())?;
        Ok(format!("/dev/zram{id}").into())
    }

    fn swap_file(&mut self, o: &Options) -> Result<PathBuf, String> {
        let path = o.directory.join(format!("refault-bench-swap-{}", std::process::id()));
        self.janitor.told("file", path.display())?;
        let file = fs::File::create_new(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        file.set_permissions(mode).map_err(|e| format!("{}: {e}", path.display()))?;
        let bytes = (o.swap_bytes + (16 << 20)) as libc::off_t;
        // SAFETY: the descriptor is open.
        let error = unsafe { libc::posix_fallocate(std::os::fd::AsRawFd::as_raw_fd(&file), 0, bytes) };
        if error != 0 {
            return Err(format!("{}: {}", path.display(), std::io::Error::from_raw_os_error(error)));
        }
        Ok(path)
    }

    fn swap_on(&self, device: &Path) -> Result<(), String> {
        let made = Command::new("mkswap").arg(device).output().map_err(|e| format!("mkswap: {e}"))?;
        if !made.status.success() {
            return Err(format!("mkswap: {}", String::from_utf8_lossy(&made.stderr).trim_end()));
        }
        match swap_call(device, |path| {
            // SAFETY: a path and flags; it changes no memory of this process.
            unsafe { libc::swapon(path.as_ptr(), 0) }
        }) {
            0 => Ok(()),
            _ => Err(format!("swapon: {}", std::io::Error::last_os_error())),
        }
    }

    pub fn cgroup(&self) -> &Path {
        &self.cgroup
    }

    /// What zram made of the pages.
    pub fn used(&self) -> String {
        let Some(id) = self.zram else { return String::new() };
        let stat = fs::read_to_string(format!("/sys/block/zram{id}/mm_stat")).unwrap_or_default();
        let n: Vec<f64> = stat.split_whitespace().map_while(|w| w.parse().ok()).collect();
        match n[..] {
            [.., most, _, _, _, _] if n.len() >= 8 => format!("zram took {:.1} MiB at most", most / f64::from(1 << 20)),
            _ => String::new(),
        }
    }

    /// Undoes it.
    pub fn end(mut self) -> Result<(), String> {
        self.janitor.end()
    }
}

fn put(path: &Path, value: &str) -> Result<(), String> {
    fs::write(path, value).map_err(|e| format!("writing {value} to {}: {e}", path.display()))
}

fn swap_call(device: &Path, call: impl Fn(&std::ffi::CStr) -> libc::c_int) -> libc::c_int {
    let path = std::ffi::CString::new(device.as_os_str().as_encoded_bytes()).expect("a path has no zero byte");
    call(&path)
}

/// The janitor.
pub fn clean_up() {
    // SAFETY: only what this process does about signals, and its session, change: what ends the others must not end it.
    unsafe {
        libc::setsid();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE] {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
    let lines: Vec<String> = std::io::stdin().lock().lines().map_while(Result::ok).collect();
    // Whoever is in the cgroup ends first: what is swapped out of it need not come back.
    for group in lines.iter().filter_map(|l| l.strip_prefix("cgroup ")) {
        empty(Path::new(group));
    }
    let mut all_done = true;
    for line in lines.iter().rev() {
        let (what, which) = line.split_once(' ').unwrap_or((line, ""));
        let path = Path::new(which);
        let done = match what {
            "swap" => {
                !is_on(path)
                    || swap_call(path, |p| {
                        // SAFETY: a path; it changes no memory of this process.
                        unsafe { libc::swapoff(p.as_ptr()) }
                    }) == 0
            }
            "zram" => {
                fs::write(format!("/sys/block/zram{which}/reset"), "1").is_ok()
                    && fs::write("/sys/class/zram-control/hot_remove", which).is_ok()
            }
            "file" => !path.exists() || fs::remove_file(path).is_ok(),
            _ => !path.exists() || retried(|| fs::remove_dir(path).is_ok()),
        };
        if !done {
            eprintln!("error: cleaning up {line}: {}", std::io::Error::last_os_error());
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
    (0..100).any(|_| {
        let ok = done();
        if !ok {
            std::thread::sleep(Duration::from_millis(50));
        }
        ok
    })
}

fn empty(group: &Path) {
    retried(|| {
        let procs = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        for pid in procs.lines().filter_map(|p| p.parse().ok()) {
            // SAFETY: the process is one of ours: it is in a cgroup that we made.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        procs.is_empty()
    });
}

/// A row ends when the one that wants it does.
pub fn die_with_parent() {
    // SAFETY: changes only what signal this process gets then.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
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
