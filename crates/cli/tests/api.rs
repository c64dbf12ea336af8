//! Calls of programs that are not the command, by the words of a command line.

use refault_cli::Watch;
use refault_cli::api::{load_trace, replay, size};
use refault_trace::OpenOptions;

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn mistakes_are_told_as_by_the_command() {
    let error = size(&words("x --target hit_rate>2x"), &Watch::default()).expect_err("no target").to_string();
    assert!(error.starts_with("invalid value 'hit_rate>2x' for '--target <TARGET>'"), "{error}");
    assert!(!error.contains('\n') && error.ends_with("--help says more"), "{error}");
    let error = size(&words("x --threads -1"), &Watch::default()).expect_err("negative").to_string();
    let want = "invalid value '-1' for '--threads <N>': -1 is not in 1..=1024; --help says more";
    assert_eq!(error, want);
    let error = size(&words("x --kernel list"), &Watch::default()).expect_err("no result").to_string();
    assert_eq!(error, "a list of values is for the command to print");
}

#[test]
fn a_stopped_replay_is_no_result() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/sqlite.parquet");
    let source = || refault_trace::open(path.as_ref(), &OpenOptions::default()).expect("a trace");
    let go = Watch::default();
    let loaded = load_trace(&words("--max-accesses 20000"), source(), &go).expect("a trace");
    let rows = replay(&words("--memory 25% --policy lru,opt"), &[], &loaded, true, path, &go).expect("rows");
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|(row, bits)| row.accesses == 20_000 && bits.is_some()));
    go.stop();
    let error = replay(&words("--memory 25% --policy lru,opt"), &[], &loaded, false, "t", &go).expect_err("stopped");
    assert_eq!(error.to_string(), "t: interrupted");
    assert!(load_trace(&[], source(), &go).is_err());
}

/// Found by a test of the Python package: the last page table of all overflowed.
#[test]
fn the_last_pages_of_all_are_replayed() {
    let text = "0\n18446744073709551614\n0\n";
    let input = refault_trace::Input::from_reader("far", Box::new(text.as_bytes())).expect("text");
    let source = refault_trace::open_input(input, &OpenOptions::default()).expect("a trace");
    let go = Watch::default();
    let loaded = load_trace(&words("--via map"), source, &go).expect("a trace");
    let rows = replay(&words("--memory 100p --beyond-footprint --policy all"), &[], &loaded, false, "far", &go);
    assert!(rows.expect("rows").iter().all(|(row, _)| (row.accesses, row.misses) == (3, 2)));
}
