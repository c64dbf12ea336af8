//! Calls of programs that are not the command, by the words of a command line.

use refault_cli::Watch;
use refault_cli::api::size;

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
