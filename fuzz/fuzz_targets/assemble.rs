//! Events of a kernel, in any order and with any numbers, to records.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    refault_fuzz::assembled::records(bytes);
});
