//! The standing table: what `refault size` and `refault verify` promise of real programs, beside
//! what is true.
//!
//! ```text
//! cargo bench -p refault-cli --bench services -- [FLAG...] [ROW...]
//! cargo bench -p refault-cli --bench services -- --from DIR
//! ```
//!
//! Each program runs on a file system of its own in a memory cgroup, and is recorded once. The
//! recording is sized for two targets, a fifth fewer and a fifth more misses, and replayed at
//! further limits. Then the program runs at all these limits and is recorded there: these are the
//! kernel's own figures. Loads are bound by counts. It takes root.
//!
//! - `--folder DIR`: for data and recordings; it wants 8 GiB on a file system with direct I/O.
//! - `--keep`: takes recordings that are there as they are, so that one set of them can be asked of
//!   several versions; `REFAULT` in the environment is the path of another.
//! - `--recorded MIB`: sizes from this recorded limit only.
//! - `--repeats N`: runs in each limit, as the kernel is not the same each time.
//! - `--scale N`: divides limits, data and counts.
//! - `--install`: installs programs that are missing, with apt-get; else they are named.
//! - `--from DIR`: takes recordings that were made elsewhere, such as in `crates/record/guest`:
//!   `NAME-LIMIT.parquet`, with the limit in MiB, and `NAME-LIMIT.1.parquet` of a further run.

mod compare;
mod disk;
mod elsewhere;
mod group;
mod judge;
mod machine;
mod promise;
mod rows;
mod run;
mod table;
mod truth;

use compare::Subject;
use machine::at;
use rows::{ALL, Row};
use rustix::fs::FlockOperation;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use table::Line;

/// The wishes of the command line.
struct Chosen {
    folder: PathBuf,
    keep: bool,
    install: bool,
    scale: u64,
    repeats: usize,
    /// None: all.
    recorded_mib: Option<u64>,
    from: Option<PathBuf>,
    /// None: all.
    names: Vec<String>,
}

fn arguments() -> Result<Chosen, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("services");
    let mut chosen = Chosen {
        folder,
        keep: false,
        install: false,
        scale: 1,
        repeats: 1,
        recorded_mib: None,
        from: None,
        names: Vec::new(),
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg}: which?"));
        match arg.as_str() {
            "--bench" => {}
            "--folder" => chosen.folder = value()?.into(),
            "--keep" => chosen.keep = true,
            "--install" => chosen.install = true,
            "--scale" => chosen.scale = value()?.parse().map_err(at("--scale"))?,
            "--repeats" => chosen.repeats = value()?.parse().map_err(at("--repeats"))?,
            "--recorded" => chosen.recorded_mib = Some(value()?.parse().map_err(at("--recorded"))?),
            "--from" => chosen.from = Some(value()?.into()),
            flag if flag.starts_with('-') => return Err(format!("{flag}: unknown option")),
            name if ALL.iter().any(|row| row.name == name) => chosen.names.push(arg),
            name => {
                let all: Vec<_> = ALL.iter().map(|row| row.name).collect();
                return Err(format!("{name}: no such row; there are {}", all.join(", ")));
            }
        }
    }
    if chosen.scale == 0 || chosen.repeats == 0 {
        return Err("--scale and --repeats: 0 is none; write 1 or more".to_owned());
    }
    Ok(chosen)
}

/// Packages that a row needs and that are not there.
fn missing(row: &Row, install: bool) -> Result<Vec<&'static str>, String> {
    let is_missing = |need: &&(&str, &str)| !machine::has(need.0);
    let missing: Vec<_> = row.needs.iter().filter(is_missing).map(|need| need.1).collect();
    if !install || missing.is_empty() {
        return Ok(missing);
    }
    machine::run("apt-get", &[&["install", "-y", "--no-install-recommends"], &missing[..]].concat())?;
    self::missing(row, false)
}

/// Runs what is chosen; prints its lines as they come.
fn all(chosen: &Chosen) -> Result<(), String> {
    println!("{}\n", machine::described());
    if let Some(folder) = &chosen.from {
        return written(&elsewhere::lines(folder)?, folder);
    }
    fs::create_dir_all(&chosen.folder).map_err(at(chosen.folder.display()))?;
    let folder = chosen.folder.canonicalize().map_err(at(chosen.folder.display()))?;
    let _alone = alone(&folder)?;
    let place = run::Place { folder: folder.clone(), scale: chosen.scale };
    let mut lines = Vec::new();
    for row in ALL.iter().filter(|row| chosen.names.is_empty() || chosen.names.iter().any(|name| name == row.name)) {
        let missing = missing(row, chosen.install)?;
        if !missing.is_empty() {
            println!("{}: skipped: install {}, or give --install", row.name, missing.join(", "));
            continue;
        }
        match (Subject {
            row,
            place: &place,
            repeats: chosen.repeats,
            recorded_mib: chosen.recorded_mib,
            keep: chosen.keep,
        })
        .lines()
        {
            Ok(row) => lines.extend(row),
            Err(e) => println!("{}: {e}", row.name),
        }
    }
    written(&lines, &folder)
}

/// A lock: two at once would end each other's programs.
fn alone(folder: &Path) -> Result<fs::File, String> {
    let path = folder.join("lock");
    let lock = fs::File::create(&path).map_err(at(path.display()))?;
    rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| format!("{}: another run is under way; wait for its end", path.display()))?;
    Ok(lock)
}

/// Prints the table, and leaves it as `services.json` and `services.md`.
fn written(lines: &[Line], folder: &Path) -> Result<(), String> {
    let text = format!("{}\n\n{}\n{}", machine::described(), table::markdown(lines), table::counted(lines));
    println!("\n{text}");
    let json = serde_json::to_string_pretty(lines).map_err(|e| e.to_string())?;
    for (name, text) in [("services.md", text), ("services.json", json)] {
        fs::write(folder.join(name), text).map_err(at(folder.join(name).display()))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    if !std::env::args().any(|a| a == "--bench") {
        println!("skipped: this takes an hour, and is run by cargo bench");
        return ExitCode::SUCCESS;
    }
    match arguments().and_then(|chosen| all(&chosen)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::from(2)
        }
    }
}
