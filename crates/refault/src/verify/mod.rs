//! A recording on the engine, beside what the kernel did in it: how far the lab is to be trusted.
//!
//! | file | what is in it |
//! |---|---|
//! | `request` | a comparison as users ask for it |
//! | `verdict` | the conclusion |
//! | `verified` | the result, and its form for programs |
//! | `beside` | two recordings of one program, access by access |
//! | `play` | a trace that a kernel played, beside the lab |
//!
//! It replays with `recording`, and `play` with `replay`'s cell.

mod beside;
mod play;
mod request;
mod verdict;
mod verified;

pub use beside::{ComparedRecordings, ComparedSide, ObjectBeside, Pair, beside};
pub use play::{Play, Played, PlayedSize, Repeat};
pub use request::Verify;
pub use verdict::{NotFor, Verdict};
pub use verified::Verified;

use crate::recording::{self, LoadedRecording};
use crate::{Failure, Watch};

/// Replays a recording, and compares every access with the kernel's.
///
/// # Errors
/// A setting that is impossible, or cancel.
pub fn verify<'a>(recording: &'a LoadedRecording, request: &Verify, watch: &Watch) -> Result<Verified<'a>, Failure> {
    let settings = request.settings(recording)?;
    watch.check()?;
    let compared = recording::run(recording, &settings).map_err(|e| format!("{}: {e}", recording.name))?;
    let verdict = Verdict::new(&compared, recording, &settings);
    Ok(Verified { recording, settings, compared, verdict })
}
