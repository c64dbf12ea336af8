//! `refault verify`: a recording beside the kernel that was recorded, by the library.
//!
//! | file | what is in it |
//! |---|---|
//! | `args` | the flags, as a request |
//! | `play` | a trace on the kernel of this machine in the place of a recording |
//! | `text` | the result for people |
//!
//! It calls `refault::verify`. `main` calls `run`, and `report` calls `document`.

mod args;
mod play;
mod text;

use crate::given::{GivenFlags, GivenSettings};
use crate::replay::{check_output, write};
use crate::trace_cmd::note;
use crate::{Failure, Watch, print};
use refault::recording::{LoadedRecording, has_cache_events};
use refault::verify::{beside, verify};
use serde::Serialize;
use std::path::Path;

pub use args::VerifyArgs;

/// Inputs.
const INPUTS: [&str; 2] = ["beside", "play"];
/// Inputs, and flags that the rows of a play say themselves.
const OF_PLAYED: [&str; 4] = ["beside", "play", "policy", "memory"];

/// Compares, by flags of which `given` were. False: the lab is not within its bounds.
pub fn run(args: &VerifyArgs, given: &GivenFlags) -> Result<bool, Failure> {
    if let Some(output) = &args.output {
        check_output(args.inputs(), output)?;
    }
    args.check_play(given)?;
    let settings = given.settings(if args.play.is_some() { &OF_PLAYED[..] } else { &INPUTS });
    let (text, is_within) = match (&args.recording, &args.beside) {
        (None, _) => play::run(args, &settings)?,
        (Some(path), None) => recorded(args, &settings, path)?,
        (Some(first), Some(second)) => two(args, &settings, first, second)?,
    };
    match &args.output {
        Some(output) => write(output, text.as_bytes())?,
        None => print(&text)?,
    }
    Ok(!args.strict || is_within)
}

fn recorded(args: &VerifyArgs, settings: &GivenSettings, path: &Path) -> Result<(String, bool), Failure> {
    let recording = load(path, Some(args))?;
    let verified = verify(&recording, &args.request()?, &Watch::default())?;
    Ok((shown(args, settings, &verified, text::render)?, verified.verdict.is_within))
}

fn two(args: &VerifyArgs, settings: &GivenSettings, first: &Path, second: &Path) -> Result<(String, bool), Failure> {
    let compared = beside(&load(first, None)?, &load(second, None)?)?;
    Ok((shown(args, settings, &compared, text::beside)?, compared.is_within))
}

/// The result for programs or for people.
fn shown<T: Serialize>(
    args: &VerifyArgs,
    settings: &GivenSettings,
    result: &T,
    text: impl Fn(&T) -> String,
) -> Result<String, Failure> {
    #[derive(Serialize)]
    struct All<'a, T> {
        #[serde(flatten)]
        result: &'a T,
        settings: &'a GivenSettings,
    }
    Ok(match args.json {
        true => serde_json::to_string_pretty(&All { result, settings })? + "\n",
        false => settings.line(&[]) + &text(result),
    })
}

/// Reads a recording; with flags for the machine also page cache events, which do not tell it.
fn load(path: &Path, machine: Option<&VerifyArgs>) -> Result<LoadedRecording, Failure> {
    let mut source = refault_trace::open(path, &refault_trace::OpenOptions::default()).map_err(|e| {
        // There is no flag for the format of a recording: it has one.
        match e.to_string().contains("--format") {
            true => format!("{}: is no recording of a kernel: refault record makes one", path.display()).into(),
            false => Failure::from(e),
        }
    })?;
    let loaded = match machine.filter(|_| has_cache_events(&*source)) {
        Some(args) => LoadedRecording::of_cache_events(&mut source, args.memory.first(), args.policy()?)?,
        None => LoadedRecording::read(&mut source)?,
    };
    note(source.header(), path);
    Ok(loaded)
}
