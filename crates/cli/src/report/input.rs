//! The results of an input.

use super::args::ReportArgs;
use super::{scenario, trace};
use crate::{Failure, GivenFlags};
use refault::document::{InputKind, Source, read_text};
use refault::report::of_json;
use refault_report::read_back;
use std::path::Path;

/// The results of one input; of an old report as many as it has.
pub(super) fn read(args: &ReportArgs, given: &GivenFlags, path: &Path) -> Result<Vec<Source>, Failure> {
    let name = path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    let document = match InputKind::of(path) {
        InputKind::Scenario => scenario::read(args, given, path)?,
        InputKind::Trace => trace::read(args, given, path)?,
        InputKind::Json => of_json(path)?,
        InputKind::Page => {
            return match read_back(&read_text(path)?) {
                Some(Ok(sources)) => Ok(sources),
                Some(Err(e)) => Err(format!("{}: {e}", path.display()).into()),
                None => Err(format!("{}: is HTML, but no page of refault report", path.display()).into()),
            };
        }
    };
    Ok(vec![Source::new(&name, document)])
}
