//! Nouns behind numbers: a count that can be one goes through `words::counted`, so that nobody
//! reads of "1 processes".

use super::crates::{root, rust_files};
use std::fs;
use std::path::Path;

/// The crates that speak to people.
const SPEAKING: [&str; 5] = ["cli", "record", "refault", "pager", "run"];

/// Nouns of what there is often one of.
const PLURALS: [&str; 16] = [
    "clusters",
    "copies",
    "events",
    "files",
    "groups",
    "kills",
    "OOM kills",
    "processes",
    "reads",
    "requests",
    "runs",
    "samples",
    "tasks",
    "threads",
    "touches",
    "writes",
];

/// Texts in which a placeholder before such a noun is no count, or one of many, and why.
const EXCEPTIONS: [(&str, &str); 4] = [
    ("more than {MAX_GROUPS} groups", "a constant"),
    ("process {pid} runs without a limit", "the number of a process"),
    ("{} files may be open here", "a limit of the machine, of a dozen or more"),
    ("and to {threads} threads", "said of more than one alone"),
];

/// The places of a text in which a plural follows a placeholder, by line.
fn found(text: &str) -> Vec<(usize, String)> {
    let is_plural = |rest: &str| {
        PLURALS.iter().any(|noun| {
            rest.strip_prefix(noun)
                .is_some_and(|after| !after.starts_with(|c: char| c.is_alphanumeric() || "_/".contains(c)))
        })
    };
    // A line that tells one from several has done so.
    let is_code = |line: &str| !line.trim_start().starts_with("//") && !line.contains(" == 1 {");
    let lines = text.lines().zip(1..).filter(|(line, _)| is_code(line));
    let found = lines.filter(|(line, _)| line.match_indices("} ").any(|(at, _)| is_plural(&line[at + 2..])));
    found.map(|(line, number)| (number, line.trim().to_owned())).collect()
}

fn in_file(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    // Tests speak to programmers.
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let is_told = |line: &str| !EXCEPTIONS.iter().any(|(known, _)| line.contains(known));
    let found = found(text).into_iter().filter(|(_, line)| is_told(line));
    found.map(|(number, line)| format!("{}:{number}: {line}", path.display())).collect()
}

#[test]
fn plurals_behind_a_number_are_counted() {
    let files = SPEAKING.iter().flat_map(|name| rust_files(&root().join("crates").join(name).join("src")));
    let is_test = |path: &Path| path.components().any(|part| part.as_os_str() == "simulation");
    let all: Vec<_> = files.filter(|path| !is_test(path)).flat_map(|path| in_file(&path)).collect();
    assert!(all.is_empty(), "write words::counted(n, \"one\", \"many\"), or an exception:\n{}", all.join("\n"));
}

#[test]
fn plurals_are_found() {
    for text in ["format!(\"{} processes\")", "\"{n:>3} files,\"", "\"{} OOM kills\""] {
        assert_eq!(found(text).len(), 1, "{text}");
    }
    for text in ["// {} processes", "format!(\"{} process\")", "\"{} filesystem\"", "\"{} events/s\""] {
        assert!(found(text).is_empty(), "{text}");
    }
}
