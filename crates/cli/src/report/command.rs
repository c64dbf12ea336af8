//! `refault report`, from its flags to the file.

use super::args::ReportArgs;
use super::input;
use crate::page::{open, write_html};
use crate::{Failure, GivenFlags, is_same_file, say};
use refault::document::InputKind;
use refault::report::check_flags;
use refault::words::{grouped, printable};
use refault_trace::AtomicFile;
use std::time::Instant;

/// Runs `refault report ...`, of whose flags `given` were, and says what came of it.
pub fn run(args: &ReportArgs, given: &GivenFlags) -> Result<(), Failure> {
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
fn write(args: &ReportArgs, given: &GivenFlags) -> Result<usize, Failure> {
    if args.inputs.is_empty() {
        return Err("no input given; name at least one".into());
    }
    if args.inputs.iter().any(|path| is_same_file(path, &args.output)) {
        return Err(format!("{}: is an input; give --output another name", args.output.display()).into());
    }
    let kinds: Vec<InputKind> = args.inputs.iter().map(|path| InputKind::of(path)).collect();
    check_flags(given.flags(), &kinds)?;
    // An output that cannot be written is known before the replays.
    drop(AtomicFile::create(&args.output)?);
    let mut sources = Vec::new();
    for path in &args.inputs {
        sources.extend(input::read(args, given, path)?);
    }
    write_html(&args.output, &sources)
}
