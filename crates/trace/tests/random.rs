//! Random bytes in every format: an error or records, never a panic and never more than was asked
//! for.

use proptest::prelude::*;
use refault_trace::{Format, Input, LoadOptions, OpenOptions, Trace, open_input};
use std::io::Cursor;

fn load(bytes: &[u8], format: Option<Format>) {
    let opts = OpenOptions { format, ..OpenOptions::default() };
    let limits = LoadOptions { max_accesses: Some(100_000), ..LoadOptions::default() };
    let loaded = Input::from_reader("t", Box::new(Cursor::new(bytes.to_vec())))
        .and_then(|input| open_input(input, &opts))
        .and_then(|mut source| Trace::load(&mut source, &limits));
    match loaded {
        Ok(trace) => assert!(!trace.accesses.is_empty()),
        Err(error) => assert_eq!(error.to_string().lines().count(), 1),
    }
}

fn all_formats(bytes: &[u8]) {
    load(bytes, None);
    for (format, ..) in Format::all() {
        load(bytes, Some(format));
    }
}

proptest! {
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        all_formats(&bytes);
    }

    #[test]
    fn any_text(text in "[0-9a-fx ,LSMIlsrw*#=\r\n-]{0,200}") {
        all_formats(text.as_bytes());
    }

    #[test]
    fn behind_magic(
        magic in prop_oneof![
            Just(&b"\x28\xb5\x2f\xfd"[..]),
            Just(&b"\x1f\x8b\x08\x00"[..]),
            Just(&b"\xfd7zXZ\x00"[..]),
            Just(&b"PGTRACE1"[..]),
            Just(&b"PAR1"[..]),
            Just(&b"PK\x03\x04"[..]),
        ],
        tail in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        all_formats(&[magic, &tail].concat());
        all_formats(&[magic, &tail, magic].concat());
    }
}
