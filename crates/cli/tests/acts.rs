//! Flags by policies: where one is accepted it changes a result, and elsewhere it is refused.

use crate::common::command::{Sandbox, error, ok};
use serde_json::Value;

const POLICIES: [&str; 10] =
    ["lru", "lru-2013", "lru-none", "lru-shadow", "mglru", "mglru-shadow", "opt", "s3fifo", "mglru-ext", "get-scan"];

/// Flags that change how a trace is replayed, each with a value that is not its default.
const FLAGS: [[&str; 2]; 8] = [
    ["--kernel", "6.1"],
    ["--swap-max", "1p"],
    ["--swap", "zswap"],
    ["--swappiness", "3"],
    ["--via", "map"],
    ["--seed", "3"],
    ["--thp", "64k=always"],
    ["--set", "charge_kernel=false"],
];

/// Flags that are accepted and change nothing here, and why.
const EXCEPTIONS: [(&str, &str); 1] =
    [("--seed", "salts of Bloom filters: they matter where tables are so many that filters err")];

/// The numbers of a row: all but times, and settings that it repeats.
fn numbers(text: &str) -> Value {
    let mut all: Value = serde_json::from_str(text).expect("JSON");
    let row = all["rows"][0].as_object_mut().expect("a row");
    for key in ["seed", "seconds", "maccesses_per_s", "kernel", "swappiness", "swap_max_pages", "config", "rules"] {
        row.remove(key);
    }
    all["rows"].take()
}

#[test]
fn regression_a_flag_changes_a_result_or_is_refused() {
    let s = Sandbox::new();
    s.generate("t.parquet", &["30000: A:zipf:3000; B:uniform:1000:kind=anon,op=w"]);
    let mut wrong = Vec::new();
    for policy in POLICIES {
        let run = |flags: &[&str]| {
            let words = [&["replay", "t.parquet", "-p", policy, "-m", "25%", "--json"], flags].concat();
            s.run(&words)
        };
        let plain = numbers(&ok(&run(&[])));
        for flag in FLAGS {
            let done = run(&flag);
            if done.status.success() {
                let changes = numbers(&ok(&done)) != plain;
                let is_excepted = EXCEPTIONS.iter().any(|(name, _)| *name == flag[0]);
                if !changes && !is_excepted {
                    wrong.push(format!("{} is accepted under {policy} and changes nothing", flag[0]));
                }
            } else {
                let said = error(&done);
                let names =
                    said.contains(flag[0]) && said.contains("does nothing under") && said.contains("it acts on");
                if !names || (policy != "opt" && flag[0] != "--seed") {
                    wrong.push(format!("{} under {policy}: {said}", flag[0]));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A flag that does nothing is refused with what it acts on, of whatever it lacks.
#[test]
fn regression_idle_flags_are_refused() {
    let s = Sandbox::new();
    s.generate("files.parquet", &["9000: A:zipf:900; B:uniform:300"]);
    s.generate("anon.parquet", &["9000: A:zipf:900:kind=anon"]);
    s.generate("both.parquet", &["9000: A:zipf:900:kind=anon; B:zipf:900"]);
    s.generate("said.parquet", &["9000: A:zipf:900:via=fd; B:zipf:900:kind=anon"]);
    s.generate("part.parquet", &["9000: A:zipf:900:via=fd; B:zipf:900"]);
    for (words, want) in [
        (
            &["both.parquet", "-p", "opt", "--kernel", "6.1"][..],
            "--kernel: does nothing under opt; it acts on lru, mglru",
        ),
        (&["both.parquet", "-p", "lru,opt", "--seed", "3"], "--seed: does nothing under lru, opt; it acts on mglru"),
        (&["both.parquet", "-p", "opt", "--vmstat"], "--vmstat: does nothing under opt"),
        (
            &["both.parquet", "-p", "opt", "--sample", "50%", "--swappiness", "3"],
            "--swappiness: does nothing under opt",
        ),
        (&["both.parquet", "--thp", "64k=madvise"], "no memory of a trace is madvised; write 64k=always"),
        (&["both.parquet", "--set", "memcgs=first"], "--set memcgs: does nothing of one group"),
        (&["files.parquet", "--swap-max", "10%"], "files.parquet, which has no anonymous memory to swap"),
        (&["files.parquet", "--thp", "64k=always"], "files.parquet, which has no anonymous memory"),
        (&["anon.parquet", "--via", "map"], "anon.parquet, which has no pages of files"),
        (&["said.parquet", "--via", "map"], "said.parquet, where every access to a file says its own"),
        (&["said.parquet", "-p", "lru", "--stream", "--via", "map"], "where every access to a file says its own"),
        (
            &["said.parquet", "-p", "lru", "--sample", "50%", "--via", "map"],
            "where every access to a file says its own",
        ),
    ] {
        let said = error(&s.run(&[&["replay"], words].concat()));
        assert!(said.contains(want), "{words:?}: {said}");
    }
    // Where one access leaves it open the flag acts.
    ok(&s.run(&["replay", "part.parquet", "-p", "lru", "-m", "25%", "--via", "map"]));
    let said = error(&s.run(&["size", "both.parquet", "--policy", "lru", "--seed", "3"]));
    assert!(said.contains("--seed: does nothing under lru; it acts on mglru, mglru-shadow"), "{said}");
    // Beside a policy on which it acts a flag may be there for another.
    ok(&s.run(&["replay", "both.parquet", "-p", "mglru,opt", "-m", "25%", "--seed", "3", "--kernel", "6.1"]));
}

/// Flags that `replay` refuses as they do nothing of a trace, `size` and `report` refuse in the
/// same words.
#[test]
fn regression_size_and_report_refuse_idle_flags_as_replay_does() {
    let s = Sandbox::new();
    s.generate("files.parquet", &["9000: A:zipf:900; B:uniform:300"]);
    s.generate("anon.parquet", &["9000: A:zipf:900:kind=anon"]);
    s.generate("said.parquet", &["9000: A:zipf:900:via=map"]);
    for flags in [
        &["files.parquet", "--swap-max", "0"][..],
        &["files.parquet", "--swap-max", "1M"],
        &["anon.parquet", "--via", "map"],
        &["said.parquet", "--via", "fd"],
        &["files.parquet", "--policy", "lru", "--seed", "3"],
    ] {
        let said = error(&s.run(&[&["replay"], flags].concat()));
        assert!(said.contains("does nothing"), "{flags:?}: {said}");
        for form in [&["size", "--target", "hit_rate>50%"][..], &["size"], &["report", "-o", "page.html"]] {
            assert_eq!(error(&s.run(&[form, flags].concat())), said, "{form:?} {flags:?}");
        }
    }
    let recording = crate::report::root().join("data/orders.parquet");
    let said = error(&s.run(&["report", recording.to_str().expect("text"), "--swap-max", "1M"]));
    assert!(said.contains("--swap-max: ") && said.contains("is a recording"), "{said}");
}

/// Sizes that hold everything are possible, and said to be such.
#[test]
fn regression_sizes_above_the_footprint_are_remarked() {
    let s = Sandbox::new();
    s.generate("t.parquet", &["9000: A:zipf:900; B:uniform:300"]);
    let want = "is above the footprint, ";
    let text = ok(&s.run(&["size", "t.parquet", "--range", "1M..1G"]));
    assert!(text.contains("--range 1M..1G: ") && text.contains(want), "{text}");
    assert!(!ok(&s.run(&["size", "t.parquet", "--range", "1M..2M"])).contains(want));
    let done = s.run(&["report", "t.parquet", "--at", "999G", "-o", "page.html"]);
    ok(&done);
    let page = std::fs::read_to_string(s.path("page.html")).expect("a page");
    assert!(page.contains("--at 999G: ") && page.contains(want), "the page");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(said.contains("--at 999G: ") && said.contains(want), "{said}");
}
