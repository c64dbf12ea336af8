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
//! It replays with `replay`'s cell. `main` calls `run`.

mod args;
mod compare;
mod load;
mod run;
mod text;

use crate::{Failure, print};

pub use args::VerifyArgs;

/// Compares. False: the lab is not within its bounds.
pub fn run(args: &VerifyArgs) -> Result<bool, Failure> {
    let mut source = refault_trace::open(&args.recording, &refault_trace::OpenOptions::default())?;
    let loaded = load::Loaded::read(&mut source)?;
    let settings = args.settings(&loaded)?;
    let compared = run::run(&loaded, &settings).map_err(|e| format!("{}: {e}", args.recording.display()))?;
    let verdict = compared.verdict(&loaded);
    if args.json {
        print(&(serde_json::to_string_pretty(&compared.json(&loaded, &settings, &verdict))? + "\n"))?;
    } else {
        print(&text::render(&loaded, &settings, &compared, &verdict))?;
    }
    Ok(!args.strict || verdict.is_within)
}
