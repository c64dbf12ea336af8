//! How fast refault is: rates of replays and machines, and instructions of its hot paths.
//!
//! ```text
//! cargo bench -p refault-cli --bench speed -- [replay|lab]... [FLAG]...
//! cargo bench -p refault-cli --bench speed -- --compare OLD.json NEW.json
//! cargo bench -p refault-cli --bench speed -- --table OLD.json NEW.json
//! cargo bench -p refault-cli --bench speed -- --instructions [--write]
//! cargo bench -p refault-cli --bench speed -- --bytes
//! ```
//!
//! | flag | meaning | default |
//! |---|---|---|
//! | `--runs N` | how often each row is run | 3 |
//! | `--only ROW` | this row alone | all |
//! | `--json FILE` | the figures of every run, too | |
//! | `--append` | with it: add the runs to those of a file that is there | |
//! | `--accesses N`, `--pages N`, `--via fd,map,anon` | the trace of `replay` | 20 million, 1 million, all |
//! | `--percent 10\|50` | memory, of what is touched | both |
//! | `--no-limits` | no limit loops | |
//! | `--dump FILE` | write the trace as oracleGeneral instead, for other simulators | |
//! | `--scale K` | the scale of machines in `lab`; 1 is full size | 32 |
//! | `--compare OLD NEW` | two files of `--json`: ratios of medians, and how far runs lie apart | |
//! | `--table OLD NEW` | the same as one table of policies: medians of old and new | |
//! | `--instructions` | instructions of ten paths under callgrind, beside `instructions.json`; more than 3 % above it ends with status 1 | |
//! | `--bytes` | bytes of memory and instructions an access, by callgrind's caches; `--accesses`, `--pages` | 2 million, 200,000 |
//! | `--write` | with it: write `instructions.json` anew | |

mod bytes;
mod compare;
mod instructions;
mod lab;
mod replay;
mod rows;
mod table;

use rows::{Rows, flag, has};
use std::process::ExitCode;

/// As that of the command.
#[global_allocator]
static HEAP: refault_syscalls::HugeHeap = refault_syscalls::HugeHeap;

fn main() -> ExitCode {
    let result = match () {
        () if has("--compare") => compare::run(),
        () if has("--table") => table::run(),
        () if has("--instructions") => instructions::run(),
        () if has("--path") => instructions::run_path(),
        () if has("--bytes") => bytes::run(),
        () if has("--bytes-of") => bytes::run_path(),
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
        replay::run(&mut rows)?;
    }
    if both || has("lab") {
        lab::run(&mut rows)?;
    }
    if let Some(path) = flag("--json") {
        rows.write(&path)?;
    }
    Ok(ExitCode::SUCCESS)
}
