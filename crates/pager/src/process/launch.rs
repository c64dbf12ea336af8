//! Starting a program, passing signals on, and waiting for its end.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use super::child_processes;
use super::inherited;
use super::record::TouchRecording;
use super::signals::{self, Signals};
use super::socket_file;
use super::watch::{self, ProcessWatch};
use super::{PRELOAD, Shared, Tree, TreeConfig, TreeStats, abi};
use crate::calls::{self, Call};
use crate::error::Error;
use refault_syscalls::newer;

/// Time after which a program that has not asked to be served never will.
const PATIENCE: Duration = Duration::from_secs(20);
/// How a run ended.
#[derive(Debug)]
pub struct RunEnd {
    /// How the program ended.
    pub status: ExitStatus,
    /// Whether its memory was ever served: not if it ended before it was loaded.
    pub was_served: bool,
    /// Counters and memory of the run.
    pub stats: TreeStats,
    /// From the start of the program to the end of the last process.
    pub wall: Duration,
    /// Touches of the run, if they were to be recorded; an error: they could not be written.
    pub recording: Option<std::io::Result<TouchRecording>>,
}

/// Runs a program with its memory limited, and waits until it and all that it started have ended.
/// `words` are its name and its arguments.
///
/// This process serves that memory: it must not be ended before. It takes signals that end
/// processes and passes them on.
pub fn run(config: TreeConfig, program: &Path, words: &[OsString]) -> Result<RunEnd, Error> {
    run_watched(config, program, words, None)
}

/// As [`run`]; `watch` is told how the run is, once a second and at the end.
pub fn run_watched(
    mut config: TreeConfig,
    program: &Path,
    words: &[OsString],
    watch: Option<ProcessWatch>,
) -> Result<RunEnd, Error> {
    inherited::check_not_served()?;
    inherited::check_file_limit()?;
    let open_files = inherited::raise_open_files()?;
    let mask = prepare()?;
    return_what_is_freed();
    // The number of its file is in the name, for those who find no socket of that name.
    let beside = socket_file::open();
    let number = beside.as_ref().map_or(0, |socket| socket.file.as_raw_fd());
    let name = format!("refault-{}-{number}-{:x}{}", std::process::id(), token()?, calls::for_agents());
    let preload = preload_file().map_err(Error::io("making a file for the library"))?;
    let (socket_file, socket) = beside.map(|socket| (socket.file, socket.socket)).unzip();
    let tree = Tree::new(&mut config, &name, socket)?;
    let path = format!("/proc/{}/fd/{}", std::process::id(), preload.as_raw_fd());
    let loaded = match std::env::var_os("LD_PRELOAD").filter(|v| !v.is_empty()) {
        Some(others) => [OsStr::new(&path), &others].join(OsStr::new(":")),
        None => path.into(),
    };
    let started = Instant::now();
    let mut command = Command::new(program);
    if let Some((name, args)) = words.split_first() {
        command.arg0(name).args(args);
    }
    command.env("LD_PRELOAD", loaded).env(abi::VARIABLE, &name);
    let as_it_was = move || {
        inherited::close_what_was_closed()?;
        inherited::set_open_files(open_files)?;
        set_mask(libc::SIG_SETMASK, &mask).map(drop)
    };
    // SAFETY: between fork and exec system calls alone, on a set of the closure's own and on
    // numbers.
    unsafe { command.pre_exec(as_it_was) };
    let mut child = calls::made(Call::Start, || command.spawn()).map_err(Error::io("starting the program"))?;
    let signals = Signals::pass_on(&tree.shared, child.id() as libc::pid_t, &name);
    let (over, end) = std::sync::mpsc::channel();
    let watching = watch.map(|watch| {
        let shared = tree.shared.clone();
        std::thread::spawn(move || watch::watch(&shared, started, &end, watch))
    });
    let was_served = wait_for_agent(&tree.shared, &mut child)?;
    let status = child.wait().map_err(Error::io("waiting for the program"))?;
    signals.program_ended();
    child_processes::wait_for_all(&name, || signals.insist());
    while tree.shared.lock().spaces.iter().any(Option::is_some) && signals.insist() {
        std::thread::sleep(Duration::from_micros(500));
    }
    let wall = started.elapsed();
    drop(over);
    watching.into_iter().for_each(|thread| _ = thread.join());
    drop(socket_file);
    let mut core = tree.shared.lock_now();
    if let Err(defect) = core.validate() {
        eprintln!("refault: defect: {defect}");
    }
    let stats = TreeStats { awake: tree.shared.latency.stats(), ..core.stats() };
    let recording = core.memory.recorder.take().map(super::record::Recorder::finish);
    drop(core);
    Ok(RunEnd { status, was_served, stats, wall, recording })
}

/// True: the program is served. False: it ended before.
fn wait_for_agent(shared: &Shared, child: &mut Child) -> Result<bool, Error> {
    let since = Instant::now();
    let mut first = shared.first.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    loop {
        match first.take() {
            Some(Ok(())) => {
                *first = Some(Ok(()));
                return Ok(true);
            }
            Some(Err(why)) => {
                _ = child.wait();
                return Err(Error::Unsupported(why));
            }
            None => {}
        }
        if child.try_wait().map_err(Error::io("waiting for the program"))?.is_some() {
            return Ok(false);
        }
        if since.elapsed() > PATIENCE {
            _ = child.kill();
            _ = child.wait();
            return Err(Error::Unsupported("the program did not load the library that serves its memory".into()));
        }
        let waited = shared.arrived.wait_timeout(first, Duration::from_millis(5));
        first = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
    }
}

/// Has the C library's allocator give back what is freed. Tables grow, and what they leave behind
/// is too small for them, and large: by default blocks of up to 32 MiB stay in heaps, one for each
/// thread, so that a fifth of what the pager had was memory that nobody used.
fn return_what_is_freed() {
    const LARGE_BYTES: libc::c_int = 64 << 10;
    const HEAPS: libc::c_int = 2;
    // SAFETY: the calls take numbers and change how memory is allocated from here on.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
        libc::mallopt(libc::M_ARENA_MAX, HEAPS);
    }
}

/// Sets properties of this process and of all that it starts: without huge pages (they would have
/// to be split), and processes whose parents are gone come to this one, so that it knows them as
/// its own. The signals that are passed on are blocked from here on; the mask from before is the
/// program's. Blocked, too, is the signal by which the kernel says that a file would be larger than
/// `ulimit
/// -f` allows: the write fails, and that is said.
fn prepare() -> Result<libc::sigset_t, Error> {
    // SAFETY: the calls take numbers and change properties of this process.
    unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    }
    let mut blocked = signals::set();
    // SAFETY: the set was made, and is changed.
    unsafe { libc::sigaddset(&raw mut blocked, libc::SIGXFSZ) };
    set_mask(libc::SIG_BLOCK, &blocked).map_err(Error::io("blocking signals"))
}

/// Changes the signal mask of this thread; what it was.
fn set_mask(how: libc::c_int, set: &libc::sigset_t) -> std::io::Result<libc::sigset_t> {
    // SAFETY: a set is plain data; the call fills the old one.
    let (result, old) = unsafe {
        let mut old = std::mem::zeroed();
        (libc::pthread_sigmask(how, set, &raw mut old), old)
    };
    if result == 0 { Ok(old) } else { Err(std::io::Error::from_raw_os_error(result)) }
}

/// Nobody guesses the name of the socket.
fn token() -> Result<u128, Error> {
    let mut bytes = [0u8; 16];
    let get = || newer::getrandom(&mut bytes);
    match calls::number(Call::Random, get).map_err(Error::io("random numbers"))? {
        16 => Ok(u128::from_ne_bytes(bytes)),
        _ => Err(Error::Io { what: "random numbers".into(), source: std::io::ErrorKind::UnexpectedEof.into() }),
    }
}

/// The library, in a file without a name: it is there as long as this process is.
fn preload_file() -> std::io::Result<File> {
    // SAFETY: the descriptor is new and ours.
    let mut file = unsafe {
        let name = CString::new(inherited::PRELOAD_NAME)?;
        let fd = calls::number(Call::MemFd, || newer::memfd_create(&name))?;
        File::from_raw_fd(fd as i32)
    };
    file.write_all(PRELOAD)?;
    Ok(file)
}

/// The exit status to end with as a program did. If a signal ended it, the same ends this process,
/// and this does not return.
pub fn exit_like(status: ExitStatus) -> u8 {
    let Some(signal) = status.signal() else { return status.code().unwrap_or(1) as u8 };
    // SAFETY: plain data, filled before it is used; the signal's action becomes that of the system,
    // and no core is written.
    unsafe {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::signal(signal, libc::SIG_DFL);
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::raise(signal);
    }
    128 + signal as u8
}
