//! Notes on traces: what is said on the terminal is in every form that programs and browsers read.

use crate::common::command::{Sandbox, error, ok};
use std::fmt::Write as _;

const NOTE: &str = "numbers are read as pages, but all are multiples of 4096: they look like addresses in bytes";

/// Addresses in bytes, where pages are expected.
fn sandbox() -> Sandbox {
    let s = Sandbox::new();
    let mut text = String::new();
    (0..2000u64).for_each(|i| _ = writeln!(text, "{}", i * i % 301 * 4096));
    std::fs::write(s.path("t.txt"), text).expect("writable");
    let scenario = "name = \"s\"\nmachine = { memory = \"64M\" }\ndevice.d = { preset = \"nvme\" }\n\
                    [[task]]\nname = \"a\"\ntrace = { file = \"t.txt\", device = \"d\" }\n";
    std::fs::write(s.path("s.toml"), scenario).expect("writable");
    s
}

fn notes(text: &str) -> Vec<String> {
    let all: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let notes = all["notes"].as_array().expect("notes");
    notes.iter().map(|note| note.as_str().expect("a text").to_owned()).collect()
}

#[test]
fn every_json_and_page_has_what_the_terminal_says() {
    let s = sandbox();
    let commands: [&[&str]; 5] = [
        &["trace", "info", "t.txt", "--json"],
        &["replay", "t.txt", "-p", "lru", "-m", "50%", "--json"],
        &["replay", "t.txt", "-p", "lru", "-m", "50%", "--sample", "50%", "--json"],
        &["replay", "s.toml", "--json"],
        &["size", "t.txt", "--json"],
    ];
    for line in commands {
        let notes = notes(&ok(&s.run(line)));
        assert!(notes.len() == 1 && notes[0].contains(NOTE), "{line:?}: {notes:?}");
    }
    for line in [&["report", "t.txt", "-o", "p.html"][..], &["replay", "t.txt", "-p", "lru", "--html", "p.html"]] {
        ok(&s.run(line));
        let page = std::fs::read_to_string(s.path("p.html")).expect("a page");
        assert!(page.contains(&format!("note: t.txt: {NOTE}")), "{line:?}");
    }
    let settled = ok(&s.run(&["replay", "t.txt", "-p", "lru", "--block-bytes", "1", "--json"]));
    assert_eq!(notes(&settled), Vec::<String>::new());
    assert!(error(&s.run(&["size", "t.txt", "--strict"])).contains(&format!("--strict: {NOTE}")));
}

/// A converted trace had no note on its units any more.
#[test]
fn regression_doubts_stay_with_a_converted_trace() {
    let s = sandbox();
    let said = |done: &std::process::Output| String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said(&s.run(&["trace", "convert", "t.txt", "t.parquet"])).contains(&format!("note: t.txt: {NOTE}")));
    assert!(said(&s.run(&["trace", "convert", "t.parquet", "again.parquet"])).contains(NOTE));
    for file in ["t.parquet", "again.parquet"] {
        let notes = notes(&ok(&s.run(&["replay", file, "-p", "lru", "-m", "50%", "--json"])));
        assert!(notes.len() == 1 && notes[0].contains(NOTE), "{notes:?}");
        assert_eq!(notes[0].matches("when this was converted").count(), 1, "{notes:?}");
        assert!(error(&s.run(&["size", file, "--strict"])).contains(&format!("--strict: {NOTE}")));
    }
    let settled = ["trace", "convert", "t.txt", "t.parquet", "--block-bytes", "1"];
    assert_eq!(said(&s.run(&settled)), "");
    assert_eq!(notes(&ok(&s.run(&["trace", "info", "t.parquet", "--json", "--strict"]))), Vec::<String>::new());
}
