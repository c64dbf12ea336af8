//! vscsi of both versions.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refault_trace::Format;

fuzz_target!(|bytes: &[u8]| refault_fuzz::load(bytes, Some(Format::Vscsi)));
