//! How fast refault is: rates of replays and machines, and instructions of its hot paths.
//!
//! ```text
//! cargo bench -p refault-cli --bench speed -- [replay|lab]... [FLAG]...
//! cargo bench -p refault-cli --bench speed -- --compare OLD.json NEW.json
//! cargo bench -p refault-cli --bench speed -- --instructions [--write]
//! ```
//!
//! | flag | meaning | default |
//! |---|---|---|
//! | `--runs N` | how often each row is run | 3 |
//! | `--only ROW` | this row alone | all |
//! | `--json FILE` | the figures of every run, too | |
//! | `--accesses N`, `--pages N`, `--via fd\|map` | the trace of `replay` | 20 million, 1 million, both |
//! | `--scale K` | the scale of machines in `lab`; 1 is full size | 32 |
//! | `--compare OLD NEW` | two files of `--json`: ratios of medians, and how far runs lie apart | |
//! | `--instructions` | instructions of ten paths under callgrind, beside `instructions.json`; more than 3 % above it ends with status 1 | |
//! | `--write` | with it: write `instructions.json` anew | |

mod compare;
mod instructions;
mod lab;
mod replay;
mod rows;

use rows::{Rows, flag, has};
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = match () {
        () if has("--compare") => compare::run(),
        () if has("--instructions") => instructions::run(),
        () if has("--path") => instructions::run_path(),
        () => measure(),
    };
    match result {
        Ok(code) => code,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::from(2)
        }
    }
}

/// Runs the parts that are named, both if none is.
fn measure() -> Result<ExitCode, String> {
    let mut rows = Rows::default();
    let both = !has("replay") && !has("lab");
    if both || has("replay") {
        replay::run(&mut rows);
    }
    if both || has("lab") {
        lab::run(&mut rows)?;
    }
    if let Some(path) = flag("--json") {
        rows.write(&path)?;
    }
    Ok(ExitCode::SUCCESS)
}
