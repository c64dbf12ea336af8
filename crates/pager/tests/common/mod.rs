//! What several tests need.
#![allow(dead_code, reason = "each test uses its part")]

pub mod lab;

use std::ffi::OsString;

use refault_pager::tree::{TreeConfig, run};
use refault_pager::uffd::Scope;
use refault_pager::{Error, Region, RegionConfig};

/// Numbers that look random and are the same each time (splitmix64).
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// What was made, or the reason for skipping, printed.
pub fn made<T>(result: Result<T, Error>) -> Option<T> {
    match result {
        Ok(made) => Some(made),
        Err(Error::Unsupported(why)) => {
            eprintln!("skipped: {why}");
            None
        }
        Err(e) => panic!("{e}"),
    }
}

/// The same of a region whose memory is handed to system calls, in place or not.
pub fn made_for_system_calls(result: Result<Region, Error>) -> Option<Region> {
    let region = made(result)?;
    if region.scope() == Scope::UserMode {
        eprintln!("skipped: system calls cannot be handed memory that is not in place");
        return None;
    }
    Some(region)
}

/// Runs this executable's `the_program` with a variable set that tells it so. It ends well, or it was printed why this is skipped.
pub fn run_the_program(role: &str, memory: RegionConfig) {
    let exe = std::env::current_exe().expect("it runs");
    let role = format!("{role}=1");
    let exe = exe.to_str().expect("plain text");
    // Naming the places of a failure takes more memory than there is.
    let words = ["env", "RUST_BACKTRACE=0", &role, exe, "--exact", "the_program", "--test-threads=1"];
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    let outcome = made(run(TreeConfig { memory, record: None }, "/usr/bin/env".as_ref(), &words));
    assert!(outcome.is_none_or(|o| o.status.success()), "the program failed");
}
