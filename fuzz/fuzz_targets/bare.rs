//! Bare numbers of both widths and byte orders.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refault_trace::Format;

fuzz_target!(|bytes: &[u8]| {
    for format in [Format::U32Le, Format::U32Be, Format::U64Le, Format::U64Be] {
        refault_fuzz::load(bytes, Some(format));
    }
});
