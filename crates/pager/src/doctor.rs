//! Permissions that this machine gives the pager. Every answer comes from trying it, where that is
//! possible without a trace.

use std::fs;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::config::{PoolConfig, RegionConfig};
use crate::cpu_latency_qos;
use crate::mem::AnonymousMapping;
use crate::process::{self, TreeConfig};
use crate::store::{Codec, SwapIo};
use crate::uffd::{FaultScope, PAGE, Uffd, UffdFeature};
use refault_syscalls::machine::{limits, page_bytes};

/// A capability that some part of the pager can use: its number and its name.
const CAPABILITIES: [(u32, &str); 4] =
    [(19, "CAP_SYS_PTRACE"), (21, "CAP_SYS_ADMIN"), (14, "CAP_IPC_LOCK"), (24, "CAP_SYS_RESOURCE")];

/// Faults that can be served here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultSupport {
    /// All: the memory of a region may be handed to system calls.
    Everything,
    /// Faults of user mode: a system call that meets memory which is not in place fails with
    /// `EFAULT`.
    UserModeOnly,
    /// None: there are no regions here.
    Nothing,
}

impl FaultSupport {
    /// A word for machines.
    pub fn name(self) -> &'static str {
        match self {
            FaultSupport::Everything => "everything",
            FaultSupport::UserModeOnly => "user-mode-only",
            FaultSupport::Nothing => "nothing",
        }
    }
}

/// Whether something works, and if not, the error of the system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Probe {
    /// It works.
    pub works: bool,
    /// Error of the system.
    pub error: Option<String>,
}

impl Probe {
    fn of<T>(result: io::Result<T>) -> Probe {
        Probe { works: result.is_ok(), error: result.err().map(|e| e.to_string()) }
    }
}

/// Whether `refault run` watches memory that programs make before they touch it: it runs a shell
/// that does nothing, as `refault run` would. Afterwards this process blocks signals that such runs
/// pass on.
pub fn watches_new_memory() -> Probe {
    let pool = PoolConfig { codec: Codec::Lz4, max_bytes: 1 << 20 };
    let memory = RegionConfig { pool: Some(pool), ..RegionConfig::new(8 << 20, RegionConfig::MIN_MEMORY) };
    let words = ["sh", "-c", ":"].map(Into::into);
    let outcome = process::run(TreeConfig { memory, record: None }, "/bin/sh".as_ref(), &words);
    of_functions(outcome.map_err(|e| e.to_string()).map(|o| (o.was_served).then_some(o.stats.uncaught_functions)))
}

/// `None`: no process was served.
fn of_functions(uncaught: Result<Option<Vec<&str>>, String>) -> Probe {
    let error = match uncaught {
        Err(e) => Some(e),
        Ok(None) => Some("a shell that was tried ended before its memory could be served".into()),
        Ok(Some(names)) if names.is_empty() => None,
        Ok(Some(names)) => Some(format!(
            "{} of the C library cannot be caught (they begin otherwise than expected, or this system does not let a program change its code), so memory \
             is found after programs touch it, and may be over the limit until then",
            names.join(", ")
        )),
    };
    Probe { works: error.is_none(), error }
}

/// A directory for swap files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Directory {
    /// Its path.
    pub path: PathBuf,
    /// Files without a name can be made there.
    pub nameless: Probe,
    /// They can go round the page cache.
    pub direct: Probe,
    /// Bytes that this user may still write there.
    pub free_bytes: Option<u64>,
}

/// Findings about the machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The release of the kernel.
    pub kernel: String,
    /// Bytes of a page. The pager knows 4096.
    pub page_bytes: u64,
    /// userfaultfd for all faults.
    pub userfaultfd: Probe,
    /// userfaultfd for faults of user mode.
    pub userfaultfd_user_mode: Probe,
    /// `/dev/userfaultfd` can be opened.
    pub userfaultfd_device: Probe,
    /// `vm.unprivileged_userfaultfd`.
    pub unprivileged_userfaultfd: Option<String>,
    /// Features of userfaultfd, and whether the kernel has them.
    pub features: Vec<(&'static str, bool)>,
    /// A page was moved and found again.
    pub moves: Probe,
    /// io_uring can be set up.
    pub io_uring: Probe,
    /// While faults come fast, processors without work are kept from halting
    /// ([`RegionConfig::awake_cpus`]).
    pub stays_awake: Probe,
    /// Capabilities of use, and whether this process has them.
    pub capabilities: Vec<(&'static str, bool)>,
    /// Mode of seccomp in `/proc/self/status`: 0 none, 1 strict, 2 a filter.
    pub seccomp: Option<u32>,
    /// The memory limit of the cgroup, in bytes, if there is one.
    pub cgroup_memory_max: Option<u64>,
    /// Limits of the process by name: soft, in bytes or counts; none is unlimited.
    pub limits: Vec<(&'static str, Option<u64>)>,
    /// `vm.max_map_count`.
    pub max_map_count: Option<u64>,
    /// CPUs that this process may use.
    pub cpus: u64,
    /// Memory of the machine, in bytes.
    pub memory_bytes: Option<u64>,
    /// Bytes of swap that the kernel itself has.
    pub kernel_swap_bytes: Option<u64>,
    /// Where swap files would be made.
    pub swap_directory: Directory,
}

impl Report {
    /// Looks at this machine, as this process sees it. Swap files would be made in `directory`.
    pub fn new(directory: &Path) -> Report {
        let uffd = Uffd::open_scope(FaultScope::Everything, &[]);
        let user_mode = Uffd::open_scope(FaultScope::UserMode, &[]);
        let any = uffd.as_ref().or(user_mode.as_ref()).ok();
        let features = UffdFeature::ALL.iter().map(|&f| (f.name, any.is_some_and(|u| u.offers(f)))).collect();
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let caps = field(&status, "CapEff:").and_then(|c| u64::from_str_radix(c, 16).ok()).unwrap_or(0);
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kib = |name| field(&meminfo, name).and_then(|v| v.split(' ').next()?.parse::<u64>().ok()).map(|k| k << 10);
        Report {
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().into(),
            page_bytes: page_bytes(),
            userfaultfd: Probe::of(uffd),
            userfaultfd_user_mode: Probe::of(user_mode),
            userfaultfd_device: Probe::of(fs::File::open("/dev/userfaultfd")),
            unprivileged_userfaultfd: sysctl("vm/unprivileged_userfaultfd"),
            features,
            moves: Probe::of(try_move()),
            io_uring: Probe::of(try_io_uring()),
            stays_awake: Probe::of(cpu_latency_qos::probe()),
            capabilities: CAPABILITIES.iter().map(|&(bit, name)| (name, caps >> bit & 1 == 1)).collect(),
            seccomp: field(&status, "Seccomp:").and_then(|s| s.parse().ok()),
            cgroup_memory_max: cgroup_memory_max(),
            limits: limits(),
            max_map_count: sysctl("vm/max_map_count").and_then(|s| s.parse().ok()),
            cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u64),
            memory_bytes: kib("MemTotal:"),
            kernel_swap_bytes: kib("SwapTotal:"),
            swap_directory: look_at(directory),
        }
    }

    /// How regions write their swap files here, unless they ask for another way.
    pub fn swap_io(&self) -> &'static str {
        match SwapIo::default() {
            SwapIo::Ring if self.io_uring.works => "io_uring",
            SwapIo::Ring | SwapIo::Calls => "pwritev",
        }
    }

    /// Faults that can be served.
    pub fn verdict(&self) -> FaultSupport {
        match () {
            () if !self.moves.works || self.page_bytes != PAGE as u64 => FaultSupport::Nothing,
            () if self.userfaultfd.works => FaultSupport::Everything,
            () => FaultSupport::UserModeOnly,
        }
    }

    /// Why it is no more, if it is less than everything.
    pub fn why(&self) -> Option<String> {
        let has = |name| self.features.iter().any(|&(n, there)| n == name && there);
        let error = |p: &Probe| p.error.clone().unwrap_or_default();
        match self.verdict() {
            FaultSupport::Everything => None,
            FaultSupport::UserModeOnly => Some(format!(
                "userfaultfd serves faults of user mode only ({}): this process lacks CAP_SYS_PTRACE, /dev/userfaultfd cannot be opened, and \
                 vm.unprivileged_userfaultfd is not 1",
                error(&self.userfaultfd)
            )),
            FaultSupport::Nothing if self.page_bytes != PAGE as u64 => {
                Some(format!("pages have {} bytes; the pager knows 4096", self.page_bytes))
            }
            FaultSupport::Nothing if !self.userfaultfd.works && !self.userfaultfd_user_mode.works => {
                let by = if self.seccomp == Some(2) { "; a seccomp filter is active, as in containers" } else { "" };
                Some(format!("userfaultfd cannot be used: {}{by}", error(&self.userfaultfd_user_mode)))
            }
            FaultSupport::Nothing if !has("MOVE") => {
                Some("the kernel has no UFFDIO_MOVE; Linux 6.8 or later has it".into())
            }
            FaultSupport::Nothing => Some(format!("UFFDIO_MOVE does not work: {}", error(&self.moves))),
        }
    }

    /// The one command or step that would improve it, if any.
    pub fn improvement(&self) -> Option<String> {
        match self.verdict() {
            FaultSupport::Everything => None,
            FaultSupport::UserModeOnly => Some("sudo sysctl vm.unprivileged_userfaultfd=1".into()),
            FaultSupport::Nothing if self.page_bytes != PAGE as u64 => Some("boot a kernel with pages of 4 KiB".into()),
            FaultSupport::Nothing if self.userfaultfd.works || self.userfaultfd_user_mode.works => {
                Some("boot Linux 6.8 or later".into())
            }
            FaultSupport::Nothing if self.seccomp == Some(2) => {
                Some("start the container with --security-opt seccomp=unconfined --cap-add SYS_PTRACE".into())
            }
            FaultSupport::Nothing => Some("boot a kernel with CONFIG_USERFAULTFD".into()),
        }
    }
}

/// The rest of the line that begins with `name`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

fn sysctl(name: &str) -> Option<String> {
    fs::read_to_string(Path::new("/proc/sys").join(name)).ok().map(|s| s.trim().into())
}

/// Moves a page from one mapping to another and reads it there.
fn try_move() -> io::Result<()> {
    let uffd = Uffd::open(&[UffdFeature::MOVE, UffdFeature::POISON])?;
    let (from, to) = (AnonymousMapping::new(PAGE)?, AnonymousMapping::new(PAGE)?);
    let page = [0x5A_u8; PAGE];
    // SAFETY: both mappings are new and nobody else knows them; only what is known to be there is
    // read.
    unsafe {
        uffd.register(from.start(), PAGE)?;
        uffd.register(to.start(), PAGE)?;
        let copied = uffd.copy(from.start(), page.as_ptr(), PAGE);
        let moved = uffd.move_pages(to.start(), from.start(), PAGE);
        if let Some(failed) = [copied, moved].iter().find(|p| p.bytes != PAGE) {
            return Err(io::Error::from_raw_os_error(failed.errno));
        }
        match std::ptr::read_volatile(to.start() as *const u8) {
            0x5A => Ok(()),
            other => Err(io::Error::other(format!("the page has {other:#x} where 0x5a was"))),
        }
    }
}

fn try_io_uring() -> io::Result<OwnedFd> {
    // The parameters are 120 bytes, all zero for a plain ring.
    let mut parameters = [0u64; 15];
    // SAFETY: the kernel reads and writes the parameters, which are as large as it expects.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1u32, parameters.as_mut_ptr()) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and ours.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// The smallest memory limit of this process's cgroup and those above, version 2 or 1.
fn cgroup_memory_max() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mut least = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            c if c.split(',').any(|c| c == "memory") => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        for group in Path::new(path.trim_start_matches('/')).ancestors() {
            let limit = fs::read_to_string(Path::new(root).join(group).join(file)).ok();
            // "max", or a number beyond any memory, is none.
            let limit = limit.and_then(|l| l.trim().parse::<u64>().ok()).filter(|&l| l < 1 << 60);
            least = [least, limit].into_iter().flatten().min();
        }
    }
    least
}

fn look_at(directory: &Path) -> Directory {
    let open =
        |flags| fs::OpenOptions::new().write(true).mode(0o600).custom_flags(libc::O_TMPFILE | flags).open(directory);
    let free = || {
        let path = std::ffi::CString::new(directory.as_os_str().as_encoded_bytes()).ok()?;
        // SAFETY: the path ends in a zero byte; the structure is plain data, filled by the call.
        unsafe {
            let mut s: libc::statvfs = std::mem::zeroed();
            (libc::statvfs(path.as_ptr(), &mut s) == 0).then(|| s.f_bavail * s.f_frsize)
        }
    };
    Directory {
        path: directory.into(),
        nameless: Probe::of(open(0)),
        direct: Probe::of(open(libc::O_DIRECT)),
        free_bytes: free(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_caught_is_named() {
        assert_eq!(of_functions(Ok(Some(vec![]))), Probe { works: true, error: None });
        let said = |found| of_functions(found).error.unwrap();
        assert!(said(Ok(Some(vec!["mmap", "brk"]))).starts_with("mmap, brk of the C library cannot be caught"));
        assert!(said(Ok(None)).contains("ended before"));
        assert_eq!(said(Err("no userfaultfd".into())), "no userfaultfd");
    }

    #[test]
    fn the_verdict_is_what_a_region_meets() {
        let report = Report::new(&std::env::temp_dir());
        let region = crate::Region::new(&crate::RegionConfig::new(8 << 20, 8 << 20));
        match (report.verdict(), region) {
            (FaultSupport::Everything, Ok(r)) => assert_eq!(r.scope(), FaultScope::Everything),
            (FaultSupport::UserModeOnly, Ok(r)) => assert_eq!(r.scope(), FaultScope::UserMode),
            (FaultSupport::Nothing, Err(crate::Error::Unsupported(_))) => {}
            (verdict, region) => panic!("{verdict:?}, but {:?}", region.err()),
        }
    }

    fn report() -> Report {
        let mut r = Report::new(Path::new("/"));
        let yes = || Probe { works: true, error: None };
        (r.moves, r.userfaultfd, r.userfaultfd_user_mode, r.page_bytes) = (yes(), yes(), yes(), 4096);
        r.features.iter_mut().for_each(|f| f.1 = true);
        r
    }

    #[test]
    fn each_lack_has_its_reason_and_its_command() {
        let no = |e: &str| Probe { works: false, error: Some(e.into()) };
        let full = report();
        assert_eq!((full.verdict(), full.why(), full.improvement()), (FaultSupport::Everything, None, None));

        let mut user = report();
        user.userfaultfd = no("not permitted");
        assert_eq!(user.verdict(), FaultSupport::UserModeOnly);
        assert!(user.why().unwrap().contains("CAP_SYS_PTRACE") && user.improvement().unwrap().contains("sysctl"));

        let mut container = report();
        for probe in [&mut container.userfaultfd, &mut container.userfaultfd_user_mode, &mut container.moves] {
            *probe = no("not permitted");
        }
        container.seccomp = Some(2);
        assert_eq!(container.verdict(), FaultSupport::Nothing);
        assert!(container.why().unwrap().contains("seccomp") && container.improvement().unwrap().contains("container"));

        let mut old = report();
        old.moves = no("no MOVE");
        old.features.iter_mut().filter(|f| f.0 == "MOVE").for_each(|f| f.1 = false);
        assert!(old.why().unwrap().contains("6.8") && old.improvement().unwrap().contains("6.8"));

        let mut large = report();
        large.page_bytes = 65536;
        assert!(large.why().unwrap().contains("65536") && large.verdict() == FaultSupport::Nothing);
    }
}
