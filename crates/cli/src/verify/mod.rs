//! `refault verify`: a recording on the engine, beside what the kernel did in it.
//!
//! | file | what is in it |
//! |---|---|
//! | `args` | the flags |
//! | `compare` | the verdict, and the form for programs |
//! | `play` | a trace on the kernel of this machine in the place of a recording |
//! | `text` | the result for people |
//!
//! It replays with `recording`. `main` calls `run`.

mod args;
mod compare;
mod play;
mod text;

use crate::recording::{self, Loaded};
use crate::{Failure, print};

pub use args::VerifyArgs;

/// Compares. False: the lab is not within its bounds.
pub fn run(args: &VerifyArgs) -> Result<bool, Failure> {
    let Some(path) = &args.recording else { return play::run(args) };
    let mut source = refault_trace::open(path, &refault_trace::OpenOptions::default())?;
    let loaded = Loaded::read(&mut source)?;
    let settings = args.settings(&loaded)?;
    let compared = recording::run(&loaded, &settings).map_err(|e| format!("{}: {e}", path.display()))?;
    let verdict = compare::Verdict::new(&compared, &loaded);
    if args.json {
        print(&(serde_json::to_string_pretty(&compare::json(&compared, &loaded, &settings, &verdict))? + "\n"))?;
    } else {
        print(&text::render(&loaded, &settings, &compared, &verdict))?;
    }
    Ok(!args.strict || verdict.is_within)
}
