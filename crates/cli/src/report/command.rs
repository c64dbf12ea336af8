//! `refault report`, from its flags to the file.

use super::args::ReportArgs;
use super::{applies, input};
use crate::page::write_html;
use crate::{Failure, Given, is_same_file, say};
use refault::words::{grouped, printable};
use refault_trace::AtomicFile;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Runs `refault report ...`, of whose flags `given` were, and says what came of it.
pub fn run(args: &ReportArgs, given: &Given) -> Result<(), Failure> {
    let begun = Instant::now();
    let bytes = write(args, given)?;
    let seconds = begun.elapsed().as_secs_f64();
    if args.open {
        open(&args.output)?;
    }
    let path = printable(&args.output.display().to_string());
    say(&format!("{path}: {} bytes, {seconds:.1} s", grouped(bytes as u64)));
    Ok(())
}

/// Writes the page; how many bytes it has.
pub(crate) fn write(args: &ReportArgs, given: &Given) -> Result<usize, Failure> {
    if args.inputs.is_empty() {
        return Err("no input given; name at least one".into());
    }
    if args.inputs.iter().any(|path| is_same_file(path, &args.output)) {
        return Err(format!("{}: is an input; give --output another name", args.output.display()).into());
    }
    applies::check(args, given)?;
    // An output that cannot be written is known before the replays.
    drop(AtomicFile::create(&args.output)?);
    let mut sources = Vec::new();
    for path in &args.inputs {
        sources.extend(input::read(args, given, path)?);
    }
    write_html(&args.output, &sources)
}

/// How long it is waited whether there is something that opens pages.
const OPENED_AFTER: Duration = Duration::from_secs(2);

fn open(path: &Path) -> Result<(), Failure> {
    let failed = |why: String| Err(format!("--open: {} is written, but {why}", path.display()).into());
    let quiet =
        Command::new("xdg-open").arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut opener = match quiet {
        Ok(opener) => opener,
        Err(e) => return failed(format!("xdg-open cannot be run: {e}")),
    };
    let begun = Instant::now();
    // It ends at once where a desktop takes the page over, and with the browser where none does.
    while begun.elapsed() < OPENED_AFTER {
        match opener.try_wait() {
            Ok(Some(status)) if !status.success() => return failed("xdg-open found nothing that opens it".into()),
            Ok(None) => sleep(Duration::from_millis(20)),
            _ => break,
        }
    }
    Ok(())
}
