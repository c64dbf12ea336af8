//! What several tests need.
#![allow(dead_code, reason = "each test uses its part")]

pub mod lab;

use refault_pager::uffd::Scope;
use refault_pager::{Error, Region};

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
