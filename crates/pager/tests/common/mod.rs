//! Helpers of several tests.
#![allow(dead_code, reason = "each test uses its part")]

pub mod files;
pub mod lab;

use refault_pager::tree::{RunEnd, TreeConfig, run};
use refault_pager::uffd::FaultScope;
use refault_pager::{Error, Region, RegionConfig};
use refault_testing::{Need, Program, absent};

/// Unwraps what was made; `None`: this machine cannot, as was said.
#[track_caller]
pub fn made<T>(result: Result<T, Error>) -> Option<T> {
    match result {
        Ok(made) => Some(made),
        Err(Error::Unsupported(why)) => {
            absent(Need::Uffd, why);
            None
        }
        Err(e) => panic!("{e}"),
    }
}

/// Whether memory may be handed to system calls, in place or not; if not, that was said.
#[track_caller]
pub fn serves_system_calls(scope: FaultScope) -> bool {
    if scope == FaultScope::UserMode {
        absent(Need::UffdKernel, "system calls cannot be handed memory that is not in place");
    }
    scope != FaultScope::UserMode
}

/// A region whose memory is handed to system calls.
#[track_caller]
pub fn made_for_system_calls(result: Result<Region, Error>) -> Option<Region> {
    made(result).filter(|region| serves_system_calls(region.scope()))
}

/// Runs this executable as a program, as `refault run` does; `None`: this machine cannot, as was
/// said.
#[track_caller]
pub fn run_program(program: &Program, memory: RegionConfig) -> Option<RunEnd> {
    let words = program.words();
    made(run(TreeConfig { memory, record: None }, words[0].as_ref(), &words))
}

/// The same, and it ends well.
#[track_caller]
pub fn run_to_a_good_end(program: Program, memory: RegionConfig) {
    // Naming the places of a failure takes more memory than there is.
    let outcome = run_program(&program.with("RUST_BACKTRACE", "0"), memory);
    assert!(outcome.is_none_or(|o| o.status.success()), "the program failed");
}
