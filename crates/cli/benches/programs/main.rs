//! Real programs, unmodified, as they are and under `refault run` in half of the memory that they take: the results must be the same, and
//! nothing may be lost. Each does its work under some launcher and says what came out, as text that must not depend on where it ran. What is not
//! installed, or not allowed here, is skipped, and said. Words behind `--` choose programs by name.

mod batch;
mod launch;
mod servers;

use launch::Launcher;
use std::path::Path;
use std::process::ExitCode;

const MIB: u64 = 1 << 20;

/// A program that can be run.
struct Program {
    /// The name of its row.
    name: &'static str,
    /// What must be there: programs, or `python3:numpy` for a module of Python.
    needs: &'static [&'static str],
    /// Of memory that it is given, in MiB: half of what it works on.
    limit_mib: u64,
    /// Does the work in a directory of its own, on about so many bytes of memory; the result as text.
    work: fn(&mut Launcher, &Path, u64) -> Result<String, String>,
}

const ALL: &[Program] = &[
    Program { name: "numpy", limit_mib: 64, needs: &["python3", "python3:numpy"], work: batch::numpy },
    Program { name: "python-dicts", limit_mib: 48, needs: &["python3"], work: batch::dicts },
    Program { name: "sort", limit_mib: 48, needs: &["sort"], work: batch::sort },
    Program { name: "g++ -j2", limit_mib: 140, needs: &["g++"], work: batch::compile },
    Program { name: "redis", limit_mib: 48, needs: &["redis-server"], work: servers::redis },
    Program { name: "memcached", limit_mib: 48, needs: &["memcached"], work: servers::memcached },
];

/// What of `needs` is not here, if anything.
fn missing(program: &Program) -> Option<&'static str> {
    let quiet = |c: &mut std::process::Command| {
        c.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).status().is_ok_and(|s| s.success())
    };
    program.needs.iter().copied().find(|need| match need.split_once(':') {
        Some((python, module)) => !quiet(std::process::Command::new(python).arg("-c").arg(format!("import {module}"))),
        None => !quiet(std::process::Command::new("sh").arg("-c").arg(format!("command -v {need}"))),
    })
}

/// How a program did: seconds as it is and under the limit, and what the pager did.
struct Row {
    plain_s: f64,
    limited_s: f64,
    peak_of_limit: f64,
    swapped_out: f64,
    swapped_in: f64,
}

fn run(program: &Program) -> Result<Row, String> {
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    let bytes = 2 * program.limit_mib * MIB;
    let mut plain = Launcher::plain();
    let wanted = (program.work)(&mut plain, dir.path(), bytes)?;
    let limit = format!("{}M", program.limit_mib);
    let mut limited = Launcher::refault(&["--memory-max", &limit, "--swap-max", "4G"], dir.path());
    let got = (program.work)(&mut limited, dir.path(), bytes)?;
    if got != wanted {
        return Err(format!("another result: {got:?} instead of {wanted:?}"));
    }
    let figures = limited.finished().ok_or("the run left no figures")?;
    for what in ["lost_pages", "read_errors", "write_errors"] {
        if figures.number(what)? > 0.0 {
            return Err(format!("{what}: {}", figures.number(what)?));
        }
    }
    Ok(Row {
        plain_s: plain.wall_s,
        limited_s: limited.wall_s,
        peak_of_limit: figures.number("peak_taken_bytes")? / figures.number("memory_max_bytes")?,
        swapped_out: figures.number("swapped_out")?,
        swapped_in: figures.number("swapped_in")?,
    })
}

/// How busy the machine is.
fn load() -> String {
    let all = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    all.split(' ').next().unwrap_or("unknown").to_owned()
}

fn main() -> ExitCode {
    let chosen: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    println!(
        "each in half of the memory that it works on, with an LZ4 pool before a swap file, as by default; load {}",
        load()
    );
    println!(
        "{:<14}{:>7}{:>10}{:>10}{:>8}{:>11}{:>11}{:>11}",
        "", "MiB", "alone, s", "in it, s", "", "peak", "pages out", "back"
    );
    let mut failed = false;
    for program in ALL.iter().filter(|p| chosen.is_empty() || chosen.iter().any(|c| p.name.contains(c.as_str()))) {
        if let Some(what) = missing(program) {
            println!("{:<14}skipped: there is no {what}", program.name);
            continue;
        }
        match run(program) {
            Ok(r) => println!(
                "{:<14}{:>7}{:>10.2}{:>10.2}{:>8}{:>10.1}%{:>11}{:>11}",
                program.name,
                program.limit_mib,
                r.plain_s,
                r.limited_s,
                format!("x{:.1}", r.limited_s / r.plain_s),
                r.peak_of_limit * 100.0,
                r.swapped_out,
                r.swapped_in
            ),
            Err(e) if ["userfaultfd", "kernel has not", "forks"].iter().any(|w| e.contains(w)) => {
                println!("{:<14}skipped: {}", program.name, e.trim_end());
            }
            Err(e) => {
                failed = true;
                println!("{:<14}FAILED: {}", program.name, e.trim_end());
            }
        }
    }
    ExitCode::from(u8::from(failed))
}
