//! `refault report`, from its flags to the file.

use super::args::ReportArgs;
use super::input;
use crate::page::write_html;
use crate::{Failure, Given, is_same_file};
use refault_trace::AtomicFile;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs `refault report ...`, of whose flags `given` were.
pub fn run(args: &ReportArgs, given: &Given) -> Result<(), Failure> {
    if args.inputs.iter().any(|path| is_same_file(path, &args.output)) {
        return Err(format!("{}: is an input; give --output another name", args.output.display()).into());
    }
    // An output that cannot be written is known before the replays.
    drop(AtomicFile::create(&args.output)?);
    let mut sources = Vec::new();
    for path in &args.inputs {
        sources.extend(input::read(args, given, path)?);
    }
    write_html(&args.output, &sources)?;
    if args.open {
        open(&args.output)?;
    }
    Ok(())
}

fn open(path: &Path) -> Result<(), Failure> {
    let quiet =
        Command::new("xdg-open").arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    match quiet {
        Ok(_) => Ok(()),
        Err(e) => Err(format!("--open: {} is written, but xdg-open cannot be run: {e}", path.display()).into()),
    }
}
