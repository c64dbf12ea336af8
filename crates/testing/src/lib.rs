//! Tools that the tests of several crates share: random numbers, a world that answers at once,
//! tests that start themselves as a program, and what a machine must have for a test.
//!
//! No shipped crate depends on it. Unit tests of `refault-mm` take only what does not name its
//! types: in there they would be those of another build of the crate.

mod install;
mod needs;
mod program;
mod rng;
mod shared;
mod world;

pub use install::install;
pub use needs::{Need, absent, require};
pub use program::{Program, is_alone, role, test_name};
pub use rng::Rng;
pub use shared::{oracle, recordings, reports, traces};
pub use world::AtOnce;

/// Whether tests are to take as long as they can use: `REFAULT_LONG=1`, which `.ci/run` sets.
/// Without it a test of random loads runs fewer of them, and a stress test is shorter.
pub fn is_long() -> bool {
    std::env::var_os("REFAULT_LONG").is_some_and(|value| !value.is_empty() && value != "0")
}

/// One of two values: of short tests, or of long ones.
pub fn short_or_long<T>(short: T, long: T) -> T {
    if is_long() { long } else { short }
}

/// Step through so many like cases: the first alone, or all where tests are long. For `step_by`.
pub fn one_in(cases: usize) -> usize {
    short_or_long(cases, 1)
}

/// Whether everything is to be compared, however long it takes: `REFAULT_LONG=all`. Tables beside
/// kernels take minutes each; `REFAULT_LONG=1` compares a part of their rows.
pub fn is_whole() -> bool {
    std::env::var_os("REFAULT_LONG").is_some_and(|value| value == "all")
}

/// One of three values: of short tests, of long ones, or with `REFAULT_LONG=all`.
pub fn by_length<T>(short: T, long: T, all: T) -> T {
    if is_whole() { all } else { short_or_long(short, long) }
}

/// Step through like cases for `step_by`: in short tests, in long ones, and 1 with
/// `REFAULT_LONG=all`.
pub fn step(short: usize, long: usize) -> usize {
    by_length(short, long, 1)
}

/// Whether a test is one of those that only run where tests are long; says so where it does not.
pub fn only_long(test: &str) -> bool {
    if !is_long() {
        println!("{test}: not run, REFAULT_LONG=1 does");
    }
    is_long()
}

/// How long each stress test takes: `REFAULT_STRESS_SECONDS`, else what is given for short and for
/// long tests.
pub fn stress_seconds(short: f64, long: f64) -> f64 {
    let asked = std::env::var("REFAULT_STRESS_SECONDS").ok().and_then(|s| s.parse().ok());
    asked.unwrap_or(short_or_long(short, long))
}
