//! A trace or a recording, looked into by the library.

use super::args::ReportArgs;
use crate::page::command_line;
use crate::verify;
use crate::{Failure, say};
use refault::document::Document;
use refault::names::shown;
use refault::report::ReportSubject;
use std::path::Path;

/// Replays a trace as often as the pages need; of a recording, what its kernel did is beside that.
pub(super) fn read(args: &ReportArgs, path: &Path) -> Result<Document, Failure> {
    let (request, open) = (args.request(), || Ok(args.input.open(path)?));
    let name = path.display().to_string();
    let subject = ReportSubject::read(&request, &open)?;
    if let (Some(file), false) = (&args.memcg_limits, subject.has_groups()) {
        return Err(format!("--memcg-limits {}: {name} says nothing of memory cgroups", file.display()).into());
    }
    // The kernel is compared with the whole recording only.
    let whole = subject.machine().filter(|_| args.max_accesses.is_none());
    let verify = whole.map(|machine| verify::document(machine.loaded(), args.kernel, path)).transpose()?;
    let mut document = subject.report(&request, &name, &open)?;
    document.notes.iter().for_each(|note| say(&format!("note: {name}: {note}")));
    document.notes.extend(args.input.notes());
    (document.command, document.verify) = (shown(&command_line()), verify);
    Ok(Document::Trace(Box::new(document)))
}
