//! `--max-memory`: a bound for every command that reads a trace or a recording, and what is said
//! where it is met.

use crate::common::command::{Sandbox, error, ok};
use crate::verify::made_up;
use refault_testing::{one_in, short_or_long};
use std::collections::HashSet;

/// Inputs of each kind in a sandbox: a trace, a recording, a scenario.
fn sandbox() -> Sandbox {
    let s = Sandbox::of_release();
    s.generate("trace.parquet", &["600000: A:uniform:150000"]);
    made_up(&s.path("recording.parquet"), 200, |i| i < 100);
    s.write("tiny.toml", include_bytes!("data/tiny.toml"));
    s
}

/// Small replays were never refused: blocks of less than 8 MiB were not counted.
#[test]
fn regression_every_command_keeps_within_a_small_bound() {
    let s = sandbox();
    let before = s.files();
    for words in [
        &["replay", "trace.parquet", "--memory", "10%", "--output", "out"][..],
        &["replay", "trace.parquet", "--memory", "10%", "--stream"],
        &["replay", "trace.parquet", "--memory", "10%", "--sample", "10%"],
        &["replay", "trace.parquet", "--curve", "--html", "out"],
        &["replay", "recording.parquet"],
        &["replay", "tiny.toml", "--json", "--output", "out"],
        &["size", "trace.parquet"],
        &["size", "recording.parquet", "--output", "out"],
        &["whatif", "trace.parquet"],
        &["whatif", "recording.parquet", "--output", "out"],
        &["verify", "recording.parquet", "--output", "out"],
        &["verify", "recording.parquet", "--beside", "recording.parquet"],
        &["verify", "--play", "trace.parquet", "--memory", "10%"],
        &["report", "trace.parquet", "-o", "out"],
        &["report", "tiny.toml", "-o", "out"],
        &["trace", "info", "trace.parquet"],
        &["trace", "convert", "trace.parquet", "out"],
        &["bench", "db-switch"],
    ] {
        for bound in ["0", "1M"] {
            let said = error(&s.run(&[words, &["--max-memory", bound]].concat()));
            assert!(said.starts_with("error: out of memory: ") && said.contains("give it more"), "{words:?}: {said}");
            assert_eq!(s.files(), before, "{words:?}");
        }
    }
}

/// Errors of a command in bounds that are too small for it.
fn refused(s: &Sandbox, words: &[&str]) -> Vec<String> {
    let mut all = Vec::new();
    for mib in [9, 12, 16, 24, 32, 48, 64] {
        let done = s.run(&[words, &["--max-memory", &format!("{mib}M")]].concat());
        if done.status.success() {
            return all;
        }
        all.push(error(&done));
    }
    panic!("{words:?}: 64M does not suffice: {}", all.last().map_or("", |said| said))
}

/// The need grows with the bound that was too little for it, and the flags that are advised are
/// those that the command takes with such an input: of a scenario it was `--stream`.
#[test]
fn regression_advice_is_taken_by_the_command_that_gives_it() {
    let s = sandbox();
    let mut advised = HashSet::new();
    let lines = [
        &["replay", "trace.parquet", "--memory", "10%"][..],
        &["replay", "trace.parquet", "--memory", "10%", "--vmstat"],
        &["replay", "trace.parquet", "--memory", "10%", "--policy", "opt"],
        &["replay", "trace.parquet", "--memory", "10%", "--stream"],
        &["replay", "trace.parquet", "--memory", "10%", "--sample", "50%"],
        &["size", "trace.parquet", "--target", "hit_rate>10%"],
        &["size", "trace.parquet"],
        &["replay", "tiny.toml"],
        &["report", "trace.parquet", "-o", "out"],
    ];
    for words in lines.into_iter().step_by(one_in(9)) {
        for said in refused(&s, words) {
            assert!(said.contains("are needed, and --max-memory is ") || said.contains("itself has "), "{said}");
            // Flags of the advice with their values, as far as they have some.
            let advice = said.split_once("given); ").map_or("", |(_, advice)| advice);
            let mut parts = advice.split([' ', ',', '\n']).peekable();
            while let Some(flag) = parts.next() {
                let given = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
                let value = parts.next_if(given);
                if flag.starts_with("--") && !words.contains(&flag) && advised.insert((words, flag.to_owned())) {
                    let value = value.into_iter().collect::<Vec<_>>();
                    ok(&s.run(&[words, &[flag], &value].concat()));
                }
            }
        }
    }
    assert!(advised.len() > short_or_long(0, 5), "{advised:?}");
}

/// Streams of long ranges held all accesses of a chunk.
#[test]
fn regression_a_stream_of_long_ranges_takes_little_memory() {
    let s = Sandbox::new();
    let lines: String = (0..short_or_long(16, 40u64)).map(|i| format!("{} 1048576 0 {i}\n", i % 2)).collect();
    let words = ["replay", "ranges.lis", "--memory", "10%", "--policy", "lru", "--max-memory", "100M"];
    s.write("ranges.lis", lines.as_bytes());
    assert!(error(&s.run(&words)).contains("--stream"));
    ok(&s.run(&[&words[..], &["--stream"]].concat()));
}

/// Want of memory for long ranges shows in one line before they are looked at page by page: it took
/// a minute.
#[test]
fn regression_long_ranges_are_refused_before_they_are_read() {
    let s = Sandbox::new();
    let line = |n: u64| format!("{} 16777216 0 {n}\n", n << 24);
    s.write("ranges.lis", (0..20).map(line).collect::<String>().as_bytes());
    for words in [&["replay", "ranges.lis"][..], &["size", "ranges.lis"], &["report", "ranges.lis", "-o", "out"]] {
        let started = std::time::Instant::now();
        let done = s.run(&[words, &["--max-memory", "500M"]].concat());
        let said = error(&done);
        assert!(said.starts_with("error: out of memory: "), "{words:?}: {said}");
        assert!(
            done.status.code() == Some(2) && started.elapsed().as_secs() < 10,
            "{words:?}: {:?}",
            started.elapsed()
        );
        assert_eq!(s.files(), ["ranges.lis"]);
    }
}
