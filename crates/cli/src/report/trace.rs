//! A trace or a recording, looked into by the library.

use super::args::ReportArgs;
use crate::page::command_line;
use crate::{Failure, GivenFlags, say};
use refault::document::Document;
use refault::names::shown;
use refault::report::of_trace;
use std::path::Path;

/// Replays a trace as often as the pages need; of a recording, what its kernel did is beside that.
pub(super) fn read(args: &ReportArgs, given: &GivenFlags, path: &Path) -> Result<Document, Failure> {
    let name = path.display().to_string();
    let mut document = of_trace(&args.request(given), &name, &|| Ok(args.input.open(path)?))?;
    document.notes.iter().for_each(|note| say(&format!("note: {name}: {note}")));
    document.command = shown(&command_line());
    document.notes.extend(args.input.notes());
    Ok(Document::Trace(Box::new(document)))
}
