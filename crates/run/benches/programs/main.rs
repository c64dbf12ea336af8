//! Real programs, unmodified: as they are, under `refault run` in less memory than they take, and
//! in a memory cgroup of the kernel with the same limit, whose swap is zram or a file. Memory of
//! zram is not in that limit, so there is one more whose limit is as much lower, and `refault run`
//! is also run with its pool and its own memory beside the limit. The results must be the same, and
//! nothing may be lost. Each does its work under some launcher and says what came out, as text that
//! must not depend on where it ran. A program that is not installed, or not allowed here, is
//! skipped, and said.
//!
//! ```text
//! cargo bench -p refault-run --bench programs -- [--time-out SECONDS] [--without-kernel] [--flag
//! FLAG]... [NAME...]
//! ```
//!
//! `--without-kernel` leaves the cgroups out; `--flag` is one more word for `refault run` (`--flag
//! --pool --flag none`).
//!
//! Cgroups, zram and swap take root; what was set up is undone whatever ends this program.

mod batch;
mod launch;
mod place;
// The benchmark of regions uses the rest of it.
#[allow(dead_code)]
#[path = "../../../pager/benches/kernel/rig.rs"]
mod rig;
mod servers;
mod table;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use launch::Launcher;
use place::{Order, Outcome, SYSTEMS, System, Work};
use table::Row;

const MIB: u64 = 1 << 20;

/// A program that can be run.
struct Program {
    /// The name of its row.
    name: &'static str,
    /// Needs on this machine: programs, or `python3:numpy` for a module of Python.
    needs: &'static [&'static str],
    limit: Limit,
    /// MiB of memory that it is asked to work on.
    work_mib: u64,
    work: Work,
}

/// Limit of memory that a program is given.
#[derive(Clone, Copy)]
enum Limit {
    Mib(u64),
    /// Half of what it and all that it starts took at most, alone.
    HalfOfPeak,
}

/// Half of what it works on is what it is given.
const fn half(name: &'static str, limit_mib: u64, needs: &'static [&'static str], work: Work) -> Program {
    Program { name, needs, limit: Limit::Mib(limit_mib), work_mib: 2 * limit_mib, work }
}

const ALL: &[Program] = &[
    half("numpy", 64, &["python3", "python3:numpy"], batch::numpy),
    half("python-dicts", 48, &["python3"], batch::dicts),
    half("sort", 48, &["sort"], batch::sort),
    Program { name: "g++ -j2", needs: &["g++"], limit: Limit::HalfOfPeak, work_mib: 280, work: batch::compile },
    half("redis", 48, &["redis-server"], servers::redis),
    half("memcached", 48, &["memcached"], servers::memcached),
];

/// First of `needs` that is not here, if any.
fn missing(program: &Program) -> Option<&'static str> {
    let quiet = |c: &mut std::process::Command| {
        c.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).status().is_ok_and(|s| s.success())
    };
    program.needs.iter().copied().find(|need| match need.split_once(':') {
        Some((python, module)) => !quiet(std::process::Command::new(python).arg("-c").arg(format!("import {module}"))),
        None => !quiet(std::process::Command::new("sh").arg("-c").arg(format!("command -v {need}"))),
    })
}

/// The program under each system, in turn; every line is printed as it comes.
fn run(program: &Program, directory: &Path, chosen: &Chosen) -> Row {
    let mut row = Row { name: program.name, limit_bytes: 0, load: load(), outcomes: Vec::new() };
    if let Limit::Mib(mib) = program.limit {
        row.limit_bytes = mib * MIB;
    }
    let work_bytes = program.work_mib * MIB;
    let mut swap_bytes = 0;
    let wanted = |s: &System| !(chosen.without_kernel && matches!(s, System::Kernel(_) | System::ZramCounted));
    for system in SYSTEMS.into_iter().filter(wanted) {
        let order = Order {
            system,
            work: program.work,
            directory,
            work_bytes,
            memory_max_bytes: row.limit_bytes,
            swap_bytes,
            time_out: chosen.time_out,
            flags: &chosen.flags,
        };
        let mut outcome = place::run(&order);
        if system == System::Alone {
            let peak = outcome.figures().and_then(|f| f.anon_peak_bytes);
            match (program.limit, peak, &outcome) {
                // Whole pages.
                (Limit::HalfOfPeak, Some(bytes), _) => row.limit_bytes = bytes / 8192 * 4096,
                (Limit::HalfOfPeak, None, Outcome::Ended(_)) => {
                    outcome = Outcome::Skipped("what it takes alone cannot be measured: it takes root".into());
                }
                _ => {}
            }
            // A child of fork may have its own copy of all.
            swap_bytes = 2 * peak.unwrap_or(2 * work_bytes) + 64 * MIB;
        }
        if let (Some(f), Some(wanted)) = (outcome.figures(), row.of(System::Alone).and_then(Outcome::figures))
            && f.result != wanted.result
        {
            outcome = Outcome::Failed(format!("another result: {:?} instead of {:?}", f.result, wanted.result));
        }
        row.outcomes.push((system, outcome));
        row.print_last();
        if row.of(System::Alone).and_then(Outcome::figures).is_none() {
            break;
        }
    }
    row
}

/// How busy the machine is.
fn load() -> String {
    let all = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    all.split(' ').next().unwrap_or("unknown").to_owned()
}

/// Choices of the command line.
struct Chosen {
    /// Longest time of a run.
    time_out: Duration,
    /// Not in cgroups of the kernel.
    without_kernel: bool,
    /// For `refault run`.
    flags: Vec<String>,
    /// Programs; none: all.
    names: Vec<String>,
}

fn arguments() -> Result<Chosen, String> {
    let time_out = Duration::from_secs(240);
    let mut chosen = Chosen { time_out, without_kernel: false, flags: Vec::new(), names: Vec::new() };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--bench" => {}
            "--time-out" => {
                let value = args.next().unwrap_or_default();
                let seconds = value.parse().map_err(|e| format!("--time-out {value}: {e}"))?;
                chosen.time_out = Duration::from_secs(seconds);
            }
            "--without-kernel" => chosen.without_kernel = true,
            "--flag" => chosen.flags.push(args.next().ok_or("--flag: which?")?),
            flag if flag.starts_with('-') => {
                return Err(format!(
                    "{flag}: unknown option; there are --time-out SECONDS, --without-kernel and --flag FLAG"
                ));
            }
            name if ALL.iter().any(|p| p.name.contains(name)) => chosen.names.push(name.to_owned()),
            name => return Err(format!("{name}: no such program")),
        }
    }
    Ok(chosen)
}

fn compare() -> Result<bool, String> {
    let chosen = arguments()?;
    let mut janitor = rig::Janitor::start()?;
    println!(
        "with an LZ4 pool before a swap file, as by default {:?}; the peak is in % of the limit: counted by the pager,",
        chosen.flags
    );
    println!("and anonymous memory of program and pager as the kernel counts it; load {}", load());
    println!("{}", table::HEADER);
    let mut rows = Vec::new();
    let names = &chosen.names;
    for program in ALL.iter().filter(|p| names.is_empty() || names.iter().any(|c| p.name.contains(c.as_str()))) {
        if let Some(what) = missing(program) {
            println!("{:<16}skipped: there is no {what}", program.name);
            continue;
        }
        let directory = tempfile::tempdir().map_err(|e| e.to_string())?;
        janitor.told("directory", directory.path().display())?;
        rows.push(run(program, directory.path(), &chosen));
    }
    print!("{}", table::markdown(&rows));
    janitor.end()?;
    Ok(!rows.iter().flat_map(|r| &r.outcomes).any(|o| matches!(o.1, Outcome::Failed(_))))
}

fn main() -> ExitCode {
    if std::env::var(rig::ROLE).is_ok_and(|role| role == "janitor") {
        rig::clean_up();
        return ExitCode::SUCCESS;
    }
    if !std::env::args().any(|a| a == "--bench") {
        println!("skipped: this takes minutes, and is run by cargo bench");
        return ExitCode::SUCCESS;
    }
    match compare() {
        Ok(all_well) => ExitCode::from(u8::from(!all_well)),
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::from(2)
        }
    }
}
