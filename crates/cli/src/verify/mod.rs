//! `refault verify`: a recording on the engine, beside what the kernel did in it.
//!
//! | file | what is in it |
//! |---|---|
//! | `args` | the flags |
//! | `load` | a recording in memory: its records, its files, what was in memory when it began |
//! | `run` | the engine, fed with the recording as the kernel was |
//! | `compare` | hits and misses of both, by window and by object, and the verdict |
//! | `text` | the result for people |
//!
//! It replays with `replay`'s cell. `main` calls `run`, and `report` calls `json`.

mod args;
mod compare;
mod load;
mod run;
mod text;

use crate::{Failure, print};
use args::Settings;
use compare::{Compared, Verdict};
use load::Loaded;
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
    let Verified { loaded, settings, compared, verdict } = verify(args)?;
    if args.json {
        print(&(serde_json::to_string_pretty(&compared.json(&loaded, &settings, &verdict))? + "\n"))?;
    } else {
        print(&text::render(&loaded, &settings, &compared, &verdict))?;
    }
    Ok(!args.strict || verdict.is_within)
}

/// What `--json` prints of a recording.
pub(crate) fn json(recording: &Path) -> Result<String, Failure> {
    let Verified { loaded, settings, compared, verdict } = verify(&VerifyArgs::of(recording))?;
    Ok(compared.json(&loaded, &settings, &verdict).to_string())
}

fn verify(args: &VerifyArgs) -> Result<Verified, Failure> {
    let mut source = refault_trace::open(&args.recording, &refault_trace::OpenOptions::default())?;
    let loaded = Loaded::read(&mut source)?;
    let settings = args.settings(&loaded)?;
    let compared = run::run(&loaded, &settings).map_err(|e| format!("{}: {e}", args.recording.display()))?;
    let verdict = compared.verdict(&loaded);
    Ok(Verified { loaded, settings, compared, verdict })
}
