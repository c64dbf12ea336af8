//! `refault replay --stream`: the rows of a trace in memory, whatever the length of the trace.

use crate::common::command::{Sandbox, error, ok};
use refault_testing::{one_in, only_long, short_or_long};
use serde_json::Value;

/// More than a piece of a stream, with writes, mapped and anonymous pages.
const PHASES: [&str; 2] = [
    "900000: A:zipf:60000:permute=yes; S:loop:20000:start=7",
    "500000: A:zipf:60000:permute=yes,op=w; N:zipf:15000:kind=anon,op=w",
];

/// The rows without what varies.
fn rows(json: &str) -> Vec<Value> {
    let mut document: Value = serde_json::from_str(json).expect("JSON");
    let rows = document["rows"].as_array_mut().expect("rows");
    for row in rows.iter_mut() {
        let row = row.as_object_mut().expect("a row");
        assert!(row.remove("maccesses_per_s").is_some());
    }
    std::mem::take(rows)
}

#[test]
fn rows_are_those_of_a_trace_in_memory() {
    let dir = Sandbox::of_release();
    let trace = dir.generate("t.parquet", &PHASES);
    let cases = [
        &["--policy", short_or_long("mglru", "lru,mglru,sieve"), "--windows", "7", "--threads", "2"][..],
        &["--policy", "lru,mglru", "--swap-max", "0", "-m", "1%"],
        &["--policy", "mglru", "--lru-gen", "--threads", "1", "--via", "map"],
        &["--policy", "lru", "--max-accesses", "1048577", "--swap-map"],
    ];
    for flags in cases.into_iter().step_by(one_in(4)) {
        let flags = [flags, &["--json"]].concat();
        let whole = rows(&ok(&dir.replay(&trace, &flags)));
        let stream = rows(&ok(&dir.replay(&trace, &[&flags[..], &["--stream"]].concat())));
        assert_eq!(stream, whole, "{flags:?}");
    }
}

#[test]
fn bits_of_misses_are_the_same() {
    if !only_long("bits_of_misses_are_the_same") {
        return;
    }
    let dir = Sandbox::of_release();
    let trace = dir.generate("t.parquet", &PHASES);
    let flags = ["--policy", "mglru", "-m", "10%", "--miss-bits"];
    ok(&dir.replay(&trace, &[&flags[..], &["whole.bits"]].concat()));
    ok(&dir.replay(&trace, &[&flags[..], &["stream.bits", "--stream"]].concat()));
    let read = |name| std::fs::read(dir.path(name)).expect("bits");
    assert_eq!(read("stream.bits"), read("whole.bits"));
}

/// Without `--policy` there is no OPT; with it, an error says so.
#[test]
fn opt_is_left_out() {
    let dir = Sandbox::new();
    let trace = dir.write("t.txt", b"1\n2\n3\n4\n5\n1\n2\n");
    let rows = rows(&ok(&dir.replay(&trace, &["--stream", "--json", "-m", "2p"])));
    assert_eq!(rows.iter().map(|row| row["policy"].as_str()).collect::<Vec<_>>(), [Some("lru"), Some("mglru")]);
    let complaint = error(&dir.replay(&trace, &["--stream", "--policy", "all"]));
    assert!(complaint.contains("the policy opt must know the future"), "{complaint}");
}

#[test]
fn what_can_be_read_once_is_refused() {
    let dir = Sandbox::new();
    let complaint = error(&dir.run(&["replay", "--stream", "-"]));
    assert!(complaint.contains("so it wants a file"), "{complaint}");
    let trace = dir.write("t.txt", b"1\n2\n3\nx\n");
    let complaint = error(&dir.replay(&trace, &["--stream"]));
    assert!(complaint.contains("t.txt:4: page \"x\" is not a number"), "{complaint}");
    let toml = dir.write("t.toml", b"");
    let complaint = error(&dir.replay(&toml, &["--stream"]));
    assert!(complaint.contains("--stream"), "{complaint}");
}
