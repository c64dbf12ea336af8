//! Where a program runs, what is watched meanwhile, and what came of it.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::launch::Launcher;
use super::rig::{Rig, Setup, Swap};

/// Does the work of a program in a directory of its own, on about so many bytes of memory; the
/// result as text.
pub type Work = fn(&mut Launcher, &Path, u64) -> Result<String, String>;

/// Under what a program runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Nothing, with as much memory as it likes.
    Alone,
    /// `refault run`.
    Refault,
    /// The same with its pool and its own memory beside the limit, as zram is.
    RefaultBeside,
    /// A memory cgroup with swap of the kernel.
    Kernel(Swap),
    /// The same with zram, which the limit of a cgroup does not count, out of the limit: the cgroup
    /// gets as much less as zram takes.
    ZramCounted,
}

impl System {
    fn swap(self) -> Option<Swap> {
        match self {
            System::Alone | System::Refault | System::RefaultBeside => None,
            System::Kernel(swap) => Some(swap),
            System::ZramCounted => Some(Swap::Zram),
        }
    }
}

/// All of them, in the order in which they are run.
pub const SYSTEMS: [System; 6] = [
    System::Alone,
    System::Refault,
    System::RefaultBeside,
    System::Kernel(Swap::Zram),
    System::Kernel(Swap::File),
    System::ZramCounted,
];

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            System::Alone => f.pad("alone"),
            System::Refault => f.pad("refault run"),
            System::RefaultBeside => f.pad("run, beside"),
            System::Kernel(swap) => f.pad(&format!("cgroup, {swap}")),
            System::ZramCounted => f.pad("zram, counted"),
        }
    }
}

/// A run that is to be done.
#[derive(Clone, Copy)]
pub struct Order<'a> {
    pub system: System,
    pub work: Work,
    pub directory: &'a Path,
    /// Bytes that the program works on.
    pub work_bytes: u64,
    pub memory_max_bytes: u64,
    /// Bytes that swap of the kernel can hold.
    pub swap_bytes: u64,
    pub time_out: Duration,
    /// More flags for `refault run`.
    pub flags: &'a [String],
}

/// Figures of a run.
#[derive(Clone, Default)]
pub struct Figures {
    /// Result that the program computed.
    pub result: String,
    pub wall_s: f64,
    /// The most anonymous memory of all that ran, by the kernel's count, looked at every
    /// millisecond.
    pub anon_peak_bytes: Option<u64>,
    /// The most that the pager counts against its limit.
    pub taken_peak_bytes: Option<f64>,
    pub pages_out: f64,
    pub pages_back: f64,
    /// The most that zram took.
    pub zram_bytes: Option<u64>,
    /// Remark beside the figures.
    pub note: String,
}

/// How a run ended.
pub enum Outcome {
    /// By itself.
    Ended(Figures),
    /// The kernel ended it for lack of memory, twice.
    Killed,
    /// It took too long, and was ended.
    TimedOut,
    /// It cannot be done here, and why.
    Skipped(String),
    /// It went wrong.
    Failed(String),
}

impl Outcome {
    pub fn figures(&self) -> Option<&Figures> {
        if let Outcome::Ended(figures) = self { Some(figures) } else { None }
    }
}

/// Runs the program; once more if the kernel ends it for lack of memory, which it does now and then
/// while there is swap left.
pub fn run(order: &Order) -> Outcome {
    if order.system == System::ZramCounted { run_zram_counted(order) } else { run_twice(order) }
}

fn run_twice(order: &Order) -> Outcome {
    match run_once(order) {
        Outcome::Killed => match run_once(order) {
            Outcome::Ended(f) => Outcome::Ended(Figures { note: format!("killed the first time; {}", f.note), ..f }),
            other => other,
        },
        other => other,
    }
}

/// Runs it until what the cgroup may take and what zram took are the limit together. Less for the
/// one is more for the other, so the limit of the cgroup only goes down.
fn run_zram_counted(order: &Order) -> Outcome {
    const TRIES: usize = 8;
    /// Divisor of the limit: a sum that is above it by no more than this part will do.
    const CLOSE: u64 = 50;
    let all = order.memory_max_bytes;
    let mut memory_max_bytes = all;
    for _ in 0..TRIES {
        let figures = match run_twice(&Order { memory_max_bytes, ..*order }) {
            Outcome::Ended(figures) => figures,
            other => return other,
        };
        let Some(zram) = figures.zram_bytes else { return Outcome::Skipped("what zram takes is not known".into()) };
        if memory_max_bytes + zram <= all + all / CLOSE {
            let note =
                format!("{:.1} MiB for the cgroup; {}", memory_max_bytes as f64 / (1 << 20) as f64, figures.note);
            return Outcome::Ended(Figures { note, ..figures });
        }
        memory_max_bytes = (all.saturating_sub(zram) / 4096 * 4096).max(1 << 20);
    }
    Outcome::Skipped(format!("{TRIES} runs with less and less for the cgroup took more than the limit"))
}

fn run_once(o: &Order) -> Outcome {
    let rig = Rig::new(Setup {
        memory_max_bytes: o.system.swap().map(|_| o.memory_max_bytes),
        swap: o.system.swap().map(|swap| (swap, o.swap_bytes)),
        directory: o.directory,
    });
    let rig = match (rig, o.system) {
        (Ok(rig), _) => Some(rig),
        (Err(why), System::Kernel(_) | System::ZramCounted) => return Outcome::Skipped(why),
        // Nobody counts from outside, then.
        (Err(_), _) => None,
    };
    let cgroup = rig.as_ref().map(Rig::cgroup);
    let mut launcher = match o.system {
        System::Refault | System::RefaultBeside => {
            let limit = o.memory_max_bytes.to_string();
            let mut flags = vec!["--memory-max", &limit, "--swap-max", "4G"];
            flags.extend((o.system == System::RefaultBeside).then_some("--overhead-beside"));
            flags.extend(o.flags.iter().map(String::as_str));
            Launcher::refault(cgroup, &flags, o.directory)
        }
        _ => Launcher::plain(cgroup),
    };
    let before = swapped();
    let (result, anon_peak_bytes, is_late) = watched(o, rig.as_ref(), &mut launcher);
    let after = swapped();
    let killed = rig.as_ref().map_or(0, Rig::killed);
    let note = rig.as_ref().map_or_else(String::new, Rig::used);
    let zram_bytes = rig.as_ref().and_then(Rig::zram_bytes);
    if let Some(Err(e)) = rig.map(Rig::end) {
        return Outcome::Failed(e);
    }
    let result = match result {
        Ok(result) => result,
        Err(_) if is_late => return Outcome::TimedOut,
        Err(_) if killed > 0 => return Outcome::Killed,
        Err(e) if ["userfaultfd", "kernel has not", "forks"].iter().any(|w| e.contains(w)) => {
            return Outcome::Skipped(e);
        }
        Err(e) => return Outcome::Failed(e),
    };
    let figures = Figures {
        result,
        wall_s: launcher.wall_s,
        anon_peak_bytes,
        taken_peak_bytes: None,
        pages_out: after.0 - before.0,
        pages_back: after.1 - before.1,
        zram_bytes,
        note,
    };
    if !matches!(o.system, System::Refault | System::RefaultBeside) {
        return Outcome::Ended(figures);
    }
    match of_pager(figures, &launcher) {
        Ok(figures) => Outcome::Ended(figures),
        Err(e) => Outcome::Failed(e),
    }
}

/// With what `refault run` says; an error if it says that something was lost.
fn of_pager(figures: Figures, launcher: &Launcher) -> Result<Figures, String> {
    let said = launcher.finished().ok_or("the run left no figures")?;
    for what in ["lost_pages", "read_errors", "write_errors"] {
        if said.number(what)? > 0.0 {
            return Err(format!("{what}: {}", said.number(what)?));
        }
    }
    Ok(Figures {
        taken_peak_bytes: Some(said.number("peak_taken_bytes")?),
        pages_out: said.number("swapped_out")?,
        pages_back: said.number("swapped_in")?,
        ..figures
    })
}

/// The work, its memory looked at every millisecond, and ended when it takes too long: its result,
/// the most memory, whether it was late.
fn watched(o: &Order, rig: Option<&Rig>, launcher: &mut Launcher) -> (Result<String, String>, Option<u64>, bool) {
    let (is_over, is_late) = (AtomicBool::new(false), AtomicBool::new(false));
    let deadline = Instant::now() + o.time_out;
    let pid = launcher.pid();
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut most = None;
            while !is_over.load(Ordering::Relaxed) {
                most = most.max(rig.and_then(Rig::anon_bytes));
                if Instant::now() > deadline {
                    is_late.store(true, Ordering::Relaxed);
                    match rig {
                        Some(rig) => rig.end_all(),
                        None => pid.end(),
                    }
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            most
        });
        let result = (o.work)(launcher, o.directory, o.work_bytes);
        is_over.store(true, Ordering::Relaxed);
        let most = watch.join().expect("it only looks");
        (result, most, is_late.load(Ordering::Relaxed))
    })
}

/// Pages that the kernel has written to swap and read back, of the whole system: nothing else
/// swaps, since no other swap is on.
fn swapped() -> (f64, f64) {
    let vmstat = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let of = |name: &str| vmstat.lines().find_map(|l| l.strip_prefix(name)?.trim().parse().ok()).unwrap_or(0.0);
    (of("pswpout "), of("pswpin "))
}
