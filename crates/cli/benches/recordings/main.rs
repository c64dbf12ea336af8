//! Recordings of real programs beside the lab, and what recording costs.
//!
//! ```text
//! cargo bench -p refault-cli --bench recordings -- [--folder DIR] [--tree DIR] [NAME...] cargo
//! bench -p refault-cli --bench recordings -- --cost [--pairs N] [--ring SIZE] [--touches TIME]
//! [NAME...]
//! ```
//!
//! Each program runs once under each of its limits, from a cold cache, under `refault record`;
//! `refault verify` then compares. Programs whose touches are a known sequence have another
//! row, of a recording to which the touches in place were added. With `--cost` it runs from the
//! cache, with a recorder and without in turn; with `--touches`, which is that of `refault record`,
//! touches of memory are sampled. It takes root. All files are below `--folder`, which wants a
//! file system with a page cache of its own and 4 GiB, and stays there for the next time; `--tree`
//! is a folder of sources [default: those of the registry of cargo].

mod cost;
mod in_place;
mod machine;
mod programs;
mod table;

use programs::{ALL, Program};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Choices of the command line.
struct Chosen {
    folder: PathBuf,
    tree: PathBuf,
    /// Whether the cost is measured, by so many pairs.
    cost: bool,
    pairs: usize,
    ring: String,
    touches: Option<String>,
    /// None: all.
    names: Vec<String>,
}

fn arguments() -> Result<Chosen, String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let mut chosen = Chosen {
        folder: Path::new(env!("CARGO_TARGET_TMPDIR")).join("recordings"),
        tree: home.unwrap_or_default().join("registry/src"),
        cost: false,
        pairs: 7,
        ring: "16M".to_owned(),
        touches: None,
        names: Vec::new(),
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg}: which?"));
        match arg.as_str() {
            "--bench" => {}
            "--folder" => chosen.folder = value()?.into(),
            "--tree" => chosen.tree = value()?.into(),
            "--cost" => chosen.cost = true,
            "--pairs" => chosen.pairs = value()?.parse().map_err(|e| format!("--pairs: {e}"))?,
            "--ring" => chosen.ring = value()?,
            "--touches" => chosen.touches = Some(value()?),
            flag if flag.starts_with('-') => return Err(format!("{flag}: unknown option")),
            name if ALL.iter().any(|p| p.name == name) => chosen.names.push(arg),
            name => return Err(format!("{name}: no such program")),
        }
    }
    Ok(chosen)
}

/// Runs what is chosen; prints its rows as they come.
fn all(chosen: &Chosen) -> Result<(), String> {
    println!("{}\n", machine::described());
    println!("{}", if chosen.cost { cost::HEADER } else { table::HEADER });
    for program in ALL.iter().filter(|p| chosen.names.is_empty() || chosen.names.iter().any(|name| name == p.name)) {
        if chosen.cost && program.timed.is_none() {
            continue;
        }
        if let Some(what) = program.needs.iter().find(|what| !machine::has(what)) {
            println!("{}: skipped: there is no {what}", program.name);
            continue;
        }
        let folder = made(program, chosen)?;
        match program.timed {
            Some(script) if chosen.cost => println!("{}", cost::row(program, script, &folder, chosen)?),
            _ => {
                for &mib in program.limits_mib {
                    println!("{}", table::row(program, mib, &folder)?);
                }
            }
        }
    }
    Ok(())
}

/// The folder of a program, with what it works on.
fn made(program: &Program, chosen: &Chosen) -> Result<PathBuf, String> {
    let folder = chosen.folder.join(program.name);
    let done = chosen.folder.join(format!("{}.made", program.name));
    if !done.exists() {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let mapped = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/recordings/mapped.c");
        machine::sh(program.prepare, &folder, &[("TREE", &chosen.tree), ("MAPPED", &mapped)])?;
        std::fs::write(&done, "").map_err(|e| format!("{}: {e}", done.display()))?;
    }
    Ok(folder)
}

fn main() -> ExitCode {
    if !std::env::args().any(|a| a == "--bench") {
        println!("skipped: this takes minutes, and is run by cargo bench");
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
