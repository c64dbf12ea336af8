//! A trace or a recording, looked into by the library.

use super::args::ReportArgs;
use crate::Failure;
use crate::page::command_line;
use refault::document::Document;
use refault::names::shown;
use refault::report::of_trace;
use std::path::Path;

/// Replays a trace as often as the pages need; of a recording, what its kernel did is beside that.
pub(super) fn read(args: &ReportArgs, path: &Path) -> Result<Document, Failure> {
    let mut document = of_trace(&args.request(), &path.display().to_string(), &|| Ok(args.input.open(path)?))?;
    (document.command, document.notes) = (shown(&command_line()), args.input.notes());
    Ok(Document::Trace(Box::new(document)))
}
