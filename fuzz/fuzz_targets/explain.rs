//! Readings of the kernel's files, as people paste them, and dumps of below: parsed, and explained.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refault::explain::{Counters, explain, explain_below_text};

fuzz_target!(|text: &[u8]| {
    let text = String::from_utf8_lossy(text);
    let _ = explain_below_text(&text, "dump", None);
    let _ = explain_below_text(&text, "dump", Some("/a"));
    let (before, after) = text.split_once("----").unwrap_or(("", &text));
    let (Ok(before), Ok(after)) = (Counters::parse(before, "before"), Counters::parse(after, "after")) else { return };
    if let Ok(explanation) = explain(&before, &after, Some(1.0)) {
        assert!(!explanation.findings.is_empty() || !explanation.unknown.is_empty());
    }
});
