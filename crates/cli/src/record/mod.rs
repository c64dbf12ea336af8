//! `refault record`: programs on the kernel of this machine, as a trace.
//!
//! `args` are the flags, `report` is what is said on the way and at the end, `live` what `refault
//! top` reads. `words` corrects a line whose `-o` or `--` is missing. `refault-record` does the
//! work; `main` calls `run`.

mod args;
mod live;
mod report;
mod words;

use crate::Failure;
use crate::exit::SUCCESS;
use refault_record::End;
use std::os::unix::process::ExitStatusExt;

pub use args::RecordArgs;

/// Records; the exit status, that of the program if there is one.
pub fn run(args: &RecordArgs) -> Result<u8, Failure> {
    let options = args.options()?;
    let mut line = report::RecordLine::new();
    let mut live = live::Live::new(args)?;
    let done = refault_record::record(&options, |progress| {
        line.show(progress);
        live.tell(progress);
    });
    drop(live);
    line.end();
    let report = done?;
    report::give(args, &report)?;
    Ok(match report.end {
        // As a shell has it.
        End::Gone(Some(status)) => {
            let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
            code as u8
        }
        _ => SUCCESS,
    })
}
