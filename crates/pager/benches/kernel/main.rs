//! The same accesses to a region of the pager, and to ordinary memory in a cgroup whose swap is
//! zram or a file; or to a file that the pager maps, and that the kernel does.
//!
//! ```text
//! cargo bench -p refault-pager --bench kernel -- [--region-mib N] [--memory-mib N] [...]
//! ```
//!
//! `--help` lists the options. Every row is a process of its own; rows of the kernel and of the
//! pager take turns. The kernel's need root, the memory controller (cgroup v1 or v2), zram with
//! lz4, and that no swap is on; what is missing is said, and the pager's rows are run alone. The
//! setup is undone whatever ends this program, for another process sees to it.

mod load;
mod mapped;
mod options;
// The benchmark of whole programs uses the rest of it.
#[allow(dead_code)]
mod rig;
mod table;

use std::process::{Command, ExitCode};

use refault_pager::store::Codec;
use refault_pager::{FaultMode, PoolConfig, Region, RegionConfig, ThpSize};

use self::load::Figures;
use self::options::{Backing, Faults, Options};
use self::rig::{ROLE, Rig, Setup, Swap};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let options = match Options::parse(&args) {
        Ok(Some(options)) => options,
        Ok(None) => return ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            return ExitCode::from(2);
        }
    };
    let result = match std::env::var(ROLE) {
        Ok(role) if role == "janitor" => {
            rig::clean_up();
            Ok(())
        }
        Ok(role) => work(&role, &options),
        Err(_) => compare(&options, &args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}

/// All rows, and the table.
fn compare(o: &Options, args: &[String]) -> Result<(), String> {
    println!("{}", o.describe());
    let mut table = table::Table::default();
    for &backing in &o.backings {
        let rig = Rig::new(Setup {
            memory_max_bytes: Some(o.memory as u64),
            swap: backing.swap().map(|swap| (swap, o.swap_bytes as u64 + (16 << 20))),
            directory: &o.directory,
        });
        if let Err(why) = &rig {
            println!("the kernel's rows with {backing} are skipped: {why}");
        }
        println!("{}", table::HEADER);
        // Nobody serves faults of a mapped file in their own thread.
        let faults: Vec<Faults> =
            o.faults.iter().copied().filter(|&f| backing != Backing::Mapped || f == Faults::Threads).collect();
        for &threads in &o.threads {
            for workload in &o.workloads {
                for round in 0..o.rounds {
                    let row = format!("{workload} {threads} {backing}");
                    let kernel = match &rig {
                        Ok(rig) => run_in(rig, &row, args)?,
                        Err(_) => None,
                    };
                    let of = |faults: Faults| Ok((faults, run(&format!("{} {row} -", faults.name()), args)?));
                    let pagers = faults.iter().copied().map(of).collect::<Result<Vec<_>, String>>()?;
                    table.add(&format!("{backing}, {workload}, {threads} thr."), round, kernel, &pagers);
                }
            }
        }
        if let Ok(rig) = rig {
            println!("{}", rig.used());
            rig.end()?;
        }
    }
    print!("{}", table.markdown());
    Ok(())
}

/// A row of the kernel. Now and then the kernel ends a process of a cgroup for lack of memory while
/// there is swap left, and all of its memory is on the active list: such a row is run again.
fn run_in(rig: &Rig, row: &str, args: &[String]) -> Result<Option<Figures>, String> {
    for _ in 0..4 {
        match run(&format!("kernel {row} {}", rig.cgroup().display()), args) {
            Ok(figures) => return Ok(Some(figures)),
            Err(e) if e.contains("SIGKILL") => println!("{row}: the kernel ended it for lack of memory; once more"),
            Err(e) => return Err(e),
        }
    }
    Ok(None)
}

/// A row, in a process of its own.
fn run(role: &str, args: &[String]) -> Result<Figures, String> {
    let me = std::env::current_exe().map_err(|e| format!("where this program is: {e}"))?;
    let output = Command::new(me).args(args).env(ROLE, role).output().map_err(|e| format!("starting a row: {e}"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{role}: {} {}", output.status, why.trim_end()));
    }
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    Figures::parse(&String::from_utf8_lossy(&output.stdout)).ok_or_else(|| format!("{role}: no figures"))
}

/// A row ends when the one that wants it does.
fn die_with_parent() {
    // SAFETY: changes only what signal this process gets then.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// Does the work of such a process.
fn work(role: &str, o: &Options) -> Result<(), String> {
    die_with_parent();
    let words: Vec<&str> = role.split(' ').collect();
    let [system, workload, threads, swap, cgroup] = words[..] else {
        return Err(format!("{ROLE} is for processes that this program starts, and was {role:?}"));
    };
    let threads = threads.parse().map_err(|e| format!("{ROLE}: {threads:?}: {e}"))?;
    let backing = Backing::parse(swap)?;
    let figures = match (system, backing) {
        ("kernel", Backing::Mapped) => {
            let group = rig::enter(cgroup)?;
            let mut figures = mapped::by_kernel(o, workload, threads)?;
            figures.in_place_bytes = rig::usage_bytes(&group)?;
            figures
        }
        ("kernel", Backing::Swap(_)) => {
            let group = rig::enter(cgroup)?;
            let memory =
                refault_pager::mem::AnonymousMapping::new(o.region).map_err(|e| format!("mapping memory: {e}"))?;
            let mut figures = load::run(o, workload, threads, memory.start() as *mut u8, load::kernel_misses);
            figures.in_place_bytes = rig::usage_bytes(&group)?;
            figures
        }
        (_, Backing::Mapped) => mapped::by_pager(o, workload, threads)?,
        (faults, Backing::Swap(swap)) => in_region(o, workload, threads, swap, Faults::parse(faults)?)?,
    };
    println!("{}", figures.line());
    Ok(())
}

fn in_region(o: &Options, workload: &str, threads: usize, swap: Swap, faults: Faults) -> Result<Figures, String> {
    let mut config = RegionConfig::new(o.region, o.memory);
    config.swap_max = o.swap_bytes;
    config.overhead_beside = !o.inside;
    config.policy = o.policy;
    config.standby_percent = o.standby_percent;
    config.sample_cpu_percent = o.sample_cpu_percent;
    config.thp.swap_in = o.folio_swap_in;
    if o.folio_order > 0 {
        config.thp.sizes[o.folio_order] = ThpSize::Always;
    }
    config.fault_threads = o.fault_threads;
    config.fault_mode = match faults {
        Faults::Threads => FaultMode::Threads,
        Faults::Signal => FaultMode::Signal,
    };
    (config.pool, config.swap_directory) = match swap {
        Swap::Zram => (
            Some(PoolConfig { codec: Codec::Lz4, max_bytes: if o.inside { o.memory / 4 * 3 } else { o.region } }),
            None,
        ),
        Swap::File => (None, Some(o.directory.clone())),
    };
    let region = Region::new(&config).map_err(|e| e.to_string())?;
    let misses = || {
        let stats = region.stats();
        let major = stats.vmstat.iter().find(|(name, _)| *name == "pgmajfault");
        (major.map_or(0, |m| m.1), stats.counts.swapped_in)
    };
    let mut figures = load::run(o, workload, threads, region.as_ptr(), misses);
    let stats = region.stats();
    figures.overhead_bytes = stats.overhead_pages * 4096;
    figures.in_place_bytes = stats.memory_pages * 4096 - if o.inside { figures.overhead_bytes } else { 0 };
    if o.verbose {
        eprintln!("{stats:?}");
    }
    Ok(figures)
}
