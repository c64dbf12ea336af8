//! `refault verify`: a recording on the engine, beside what the kernel did in it.
//!
//! | file | what is in it |
//! |---|---|
//! | `args` | the flags |
//! | `beside` | two recordings of one program, access by access |
//! | `compare` | the verdict, and the form for programs |
//! | `play` | a trace on the kernel of this machine in the place of a recording |
//! | `text` | the result for people |
//!
//! It replays with `recording`. `main` calls `run`, and `report` calls `document`.

mod args;
mod beside;
mod compare;
mod play;
mod text;

use crate::replay::{check_output, write};
use crate::trace_cmd::note;
use crate::{Failure, print};
use compare::Verdict;
use refault::document::verify::VerifyDocument;
use refault::recording::{self, Compared, Loaded, Settings};
use refault_mm::Kernel;
use std::path::Path;

pub use args::VerifyArgs;

/// A recording, what it was replayed with, and what came of it.
struct Verified {
    loaded: Loaded,
    settings: Settings,
    compared: Compared,
    verdict: Verdict,
}

/// Compares. False: the lab is not within its bounds.
pub fn run(args: &VerifyArgs) -> Result<bool, Failure> {
    if let Some(output) = &args.output {
        check_output(args.inputs(), output)?;
    }
    let (text, is_within) = match (&args.recording, &args.beside) {
        (None, _) => play::run(args)?,
        (Some(path), None) => recorded(args, path)?,
        (Some(first), Some(second)) => beside(args, first, second)?,
    };
    match &args.output {
        Some(output) => write(output, text.as_bytes())?,
        None => print(&text)?,
    }
    Ok(!args.strict || is_within)
}

fn recorded(args: &VerifyArgs, path: &Path) -> Result<(String, bool), Failure> {
    let Verified { loaded, settings, compared, verdict } = verify(args, path)?;
    let text = match args.json {
        true => serde_json::to_string_pretty(&compare::json(&compared, &loaded, &settings, &verdict))? + "\n",
        false => text::render(&loaded, &settings, &compared, &verdict),
    };
    Ok((text, verdict.is_within))
}

fn beside(args: &VerifyArgs, first: &Path, second: &Path) -> Result<(String, bool), Failure> {
    let (first, second) = (load(first)?, load(second)?);
    let compared = beside::compare(&first, &second)?;
    let text = match args.json {
        true => serde_json::to_string_pretty(&beside::json(&first, &second, &compared))? + "\n",
        false => text::beside(&first, &second, &compared),
    };
    Ok((text, compared.is_within))
}

/// A recording that was read beside its kernel, under that kernel's rules or others; `path` is what
/// errors call it.
pub(crate) fn document(loaded: &Loaded, kernel: Option<Kernel>, path: &Path) -> Result<VerifyDocument, Failure> {
    let settings = VerifyArgs::of(path, kernel).settings(loaded)?;
    let compared = recording::run(loaded, &settings).map_err(|e| format!("{}: {e}", path.display()))?;
    let verdict = Verdict::new(&compared, loaded);
    Ok(VerifyDocument::from_value(compare::json(&compared, loaded, &settings, &verdict))?)
}

fn load(path: &Path) -> Result<Loaded, Failure> {
    let mut source = refault_trace::open(path, &refault_trace::OpenOptions::default()).map_err(|e| {
        // There is no flag for the format of a recording: it has one.
        let is_other = e.to_string().contains("--format");
        let name = path.display();
        if is_other {
            format!("{name}: is no recording of a kernel: refault record makes one").into()
        } else {
            Failure::from(e)
        }
    })?;
    let loaded = Loaded::read(&mut source)?;
    note(source.header(), path);
    Ok(loaded)
}

fn verify(args: &VerifyArgs, path: &Path) -> Result<Verified, Failure> {
    let loaded = load(path)?;
    let settings = args.settings(&loaded)?;
    let compared = recording::run(&loaded, &settings).map_err(|e| format!("{}: {e}", path.display()))?;
    let verdict = Verdict::new(&compared, &loaded);
    Ok(Verified { loaded, settings, compared, verdict })
}
