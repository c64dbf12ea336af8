//! `refault explain`: counters of a kernel at two moments in sentences, by the library.
//!
//! | file | what is in it |
//! |---|---|
//! | `args` | the flags |
//! | `live` | files of this machine's kernel, as they are pasted |
//!
//! It calls `refault::explain`. `main` calls `run`.

mod args;
mod live;

use crate::replay::{check_output, write};
use crate::trace_cmd::InputArgs;
use crate::{Failure, print};
pub use args::ExplainArgs;
use refault::explain::{Counters, Explanation, explain, explain_recording};
use refault::words::printable;
use std::fmt::Write as _;
use std::path::Path;

/// The largest reading that is taken; files of the kernel are far smaller.
const MOST_BYTES: u64 = 16 << 20;

/// Runs `refault explain ...`.
pub fn run(args: &ExplainArgs) -> Result<(), Failure> {
    if let Some(path) = &args.output {
        check_output(args.inputs.iter().map(std::path::PathBuf::as_path), path)?;
    }
    let seconds = args.span.map(|span| span.as_secs_f64());
    let explanation = match (args.live, args.inputs.as_slice()) {
        (true, _) => live::explanation(args)?,
        (false, [recording]) => of_recording(&args.input, recording)?,
        (false, [before, after]) => explain(&reading(before)?, &reading(after)?, seconds)?,
        (false, _) => return Err("give a recording, two files BEFORE AFTER, or --live".into()),
    };
    let text = match args.json {
        true => serde_json::to_string_pretty(&explanation)? + "\n",
        false => text(&explanation),
    };
    match &args.output {
        Some(path) => write(path, text.as_bytes()),
        None => print(&text),
    }
}

fn of_recording(input: &InputArgs, path: &Path) -> Result<Explanation, Failure> {
    let source = input.open(path).map_err(|e| format!("{e}; readings of the kernel's files are two, BEFORE AFTER"))?;
    let name = source.name().to_owned();
    match &source.header().recording {
        Some(recording) => explain_recording(recording, &name),
        None => Err(format!("{name}: is no recording of a kernel; give one, or two files BEFORE AFTER").into()),
    }
}

fn reading(path: &Path) -> Result<Counters, Failure> {
    use std::io::Read;
    let name = path.display().to_string();
    let unread = |e: std::io::Error| format!("{name}: cannot be read: {e}");
    let (mut file, mut bytes) = (std::fs::File::open(path).map_err(unread)?, Vec::new());
    let read = Read::by_ref(&mut file).take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(unread)?;
    if read as u64 > MOST_BYTES {
        return Err(format!("{name}: is larger than any reading of the kernel's files").into());
    }
    Ok(Counters::parse(&String::from_utf8_lossy(&bytes), &name)?)
}

/// The result for people.
fn text(explanation: &Explanation) -> String {
    let mut out = match explanation.seconds {
        Some(seconds) => format!("in {seconds:.1} s:\n"),
        None => String::new(),
    };
    for finding in &explanation.findings {
        let _ = writeln!(out, "- {}", printable(&finding.sentence));
        let _ = writeln!(out, "  ({})", printable(&finding.because.join(", ")));
    }
    for unknown in &explanation.unknown {
        let _ = writeln!(out, "not known: {}", printable(unknown));
    }
    for next in &explanation.next {
        let _ = writeln!(out, "more: {next}");
    }
    out
}
