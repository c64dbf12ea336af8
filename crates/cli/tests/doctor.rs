//! `refault doctor` as a user meets it: what the recorder finds, and the pager's findings where
//! `refault-run` is there.

use crate::common::command::{Sandbox, error};
use refault_testing::{Need, absent, install};
use serde_json::Value;
use std::process::{Command, Output, Stdio};

/// Runs a copy of the command in a folder of its own, where `refault-run` is what is put there.
fn alone(s: &Sandbox, args: &[&str]) -> Output {
    let copy = s.path("bin/refault");
    if !copy.exists() {
        std::fs::create_dir_all(s.path("bin")).expect("ours");
        install(env!("CARGO_BIN_EXE_refault").as_ref(), &copy);
    }
    let mut command = Command::new(copy);
    command.args(args).env("PATH", "/nowhere").stdin(Stdio::null()).output().expect("it runs")
}

fn put_run(s: &Sandbox, script: &str) {
    let file = s.write("bin/refault-run.sh", format!("#!/bin/sh\n{script}\n").as_bytes());
    install(&file, &s.path("bin/refault-run"));
}

#[test]
fn a_program_that_is_not_installed_is_named_with_what_to_do() {
    let s = Sandbox::new();
    for words in
        [&["run", "--memory-max", "24M", "--", "true"][..], &["run"], &["run", "--help"], &["help", "run"], &["top"]]
    {
        let line = error(&alone(&s, words));
        let bin = s.path("bin").display().to_string();
        assert!(line.starts_with(&format!("error: refault-run: not found in {bin} or in PATH; ")), "{line}");
        assert!(line.contains("cargo build --release -p refault-run"), "{line}");
    }
    let help = String::from_utf8(alone(&s, &["--help"]).stdout).expect("text");
    assert!(help.contains("  run ") && help.contains("Run a program in less memory than it wants"), "{help}");

    let json = alone(&s, &["doctor", "--json"]);
    let found: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert!(found["verdict"] == "not-installed" && found["refault"] == env!("CARGO_PKG_VERSION"), "{found}");
    assert_eq!(json.status.code(), Some(i32::from(found["recording"]["works"] != true)));
    let text = String::from_utf8(alone(&s, &["doctor"]).stdout).expect("text");
    assert!(text.starts_with("refault record "), "{text}");
    assert!(text.contains("\nThe pager is not installed here: refault-run: not found in "), "{text}");
}

/// All words go on as they are, and the program is this process: it has its number and its status.
#[test]
fn a_program_beside_the_command_gets_all_words() {
    let s = Sandbox::new();
    alone(&s, &["--version"]);
    put_run(&s, "printf '%s|' \"$@\"; exit 7");
    let done = alone(&s, &["run", "--memory-max", "1M", "--", "a b", "--", "-x"]);
    assert_eq!((done.status.code(), &done.stdout[..]), (Some(7), &b"--memory-max|1M|--|a b|--|-x|"[..]));
    assert_eq!(alone(&s, &["run", "--", "x"]).stdout, b"--|x|");
    assert_eq!(alone(&s, &["run", "--help"]).stdout, b"--help|");
    assert_eq!(alone(&s, &["help", "run"]).stdout, b"--help|");
    assert_eq!(alone(&s, &["run"]).stdout, b"|");
    assert_eq!(alone(&s, &["top", "7"]).stdout, b"top|7|");
    assert_eq!(alone(&s, &["help", "top"]).stdout, b"top|--help|");
    put_run(&s, "echo 'error: --swap-file x: no' >&2; exit 2");
    assert!(error(&alone(&s, &["doctor"])).starts_with("error: --swap-file x: no"));
}

#[test]
fn both_findings_are_in_one_answer() {
    let s = Sandbox::new();
    let dir = s.path(".");
    let args = ["doctor", "--swap-file", dir.to_str().expect("plain text")];
    let json = s.run(&[&args[..], &["--json"]].concat());
    let found: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert!(found["recording"]["works"].is_boolean() && found["recording_events"].is_object(), "{found}");
    if found["verdict"] == "not-installed" {
        absent(Need::RefaultRun, &found["why"]);
        return;
    }
    let works = found["verdict"] != "nothing";
    assert_eq!(json.status.code(), Some(if works { 0 } else { 1 }));
    assert_eq!(found["moves"]["works"], works);
    let text = String::from_utf8(s.run(&args).stdout).expect("text");
    assert_eq!(text.contains("The pager works here"), works, "{text}");
    assert!(text.contains("refault record "), "{text}");
}

#[test]
fn a_place_for_swap_files_that_is_none() {
    let s = Sandbox::new();
    let line = error(&s.run(&["doctor", "--swap-file", "not/there"]));
    assert!(line.contains("not/there") && line.contains("no directory"), "{line}");
}
