//! State of a watcher: what is read can be written, and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refault_watch::State;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(state) = State::parse(bytes) {
        assert!(State::parse(state.text().as_bytes()).is_ok());
    }
});
