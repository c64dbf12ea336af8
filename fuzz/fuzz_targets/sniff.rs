//! Seeing compression and format, and decompressing.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| refault_fuzz::load(bytes, None));
