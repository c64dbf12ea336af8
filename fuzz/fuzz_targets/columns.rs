//! Text of every format: the first line is its name or describes its columns, the others are the
//! trace.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| refault_fuzz::columns(bytes));
