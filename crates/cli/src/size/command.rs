//! `refault size`, from its flags to its output.

use super::args::SizeArgs;
use super::{json, scenario, text};
use crate::replay::{is_scenario, write};
use crate::{Failure, is_same_file, print};
use refault_trace::AtomicFile;

/// Runs `refault size ...`; false: no size meets the target.
pub fn run(args: &SizeArgs) -> Result<bool, Failure> {
    if let Some(path) = &args.output {
        if is_same_file(&args.subject, path) {
            return Err(format!("{}: is the file to read; give --output another name", path.display()).into());
        }
        // An output that cannot be written is known before the runs.
        drop(AtomicFile::create(path)?);
    }
    if !is_scenario(&args.subject) {
        return Err(format!("{}: is not a scenario", args.subject.display()).into());
    }
    let report = scenario::run(args)?;
    let text = if args.json { json::json(&report)? } else { text::text(&report) };
    match &args.output {
        Some(path) => write(path, text.as_bytes())?,
        None => print(&text)?,
    }
    Ok(report.answer().is_some())
}
