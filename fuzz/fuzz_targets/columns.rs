//! Columns of text: the first line describes them, the others are the trace.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| refault_fuzz::columns(bytes));
