//! `refault size`: answers, their forms, and mistakes.

use crate::common::command::{Sandbox, error, ok};
use serde_json::Value;

fn sandbox() -> Sandbox {
    let s = Sandbox::new();
    s.write("groups.toml", include_bytes!("data/groups.toml"));
    s
}

fn size(s: &Sandbox, flags: &[&str]) -> std::process::Output {
    let mut args = vec!["size", "groups.toml"];
    args.extend(flags);
    s.run(&args)
}

fn json(s: &Sandbox, flags: &[&str]) -> Value {
    let mut all = flags.to_vec();
    all.push("--json");
    serde_json::from_str(&ok(&size(s, &all))).expect("JSON")
}

#[test]
fn the_answer_meets_the_target_and_the_size_below_does_not() {
    let s = sandbox();
    let flags = ["--group", "/a/web", "--target", "hit_rate>80%", "--range", "2M..32M", "--resolution", "1M"];
    let found = json(&s, &flags);
    assert_eq!((&found["verdict"], &found["limit"]), (&"found".into(), &"memory.max".into()));
    assert!(found["monotone"] == true && found["warnings"] == Value::Array(vec![]), "{found}");
    let points = found["points"].as_array().expect("points");
    let answer = found["answer_bytes"].as_u64().expect("an answer");
    assert_eq!(answer % (1 << 20), 0, "sizes are multiples of the step");
    assert_eq!(found["answer_pages"].as_u64(), Some(answer / 4096));
    let sizes: Vec<_> = points.iter().map(|p| p["bytes"].as_u64().expect("bytes")).collect();
    assert!(sizes.is_sorted() && sizes[0] == 2 << 20 && sizes[sizes.len() - 1] == 32 << 20, "{sizes:?}");
    let at = |bytes: u64| &points[sizes.iter().position(|&b| b == bytes).expect("it was tried")];
    assert!(at(answer)["met"] == true && at(answer)["value"].as_f64() > Some(0.8));
    assert!(at(answer - (1 << 20))["met"] == false && at(answer - (1 << 20))["value"].as_f64() <= Some(0.8));
    // A plain run with that limit says the same.
    let text = include_str!("data/groups.toml")
        .replace("[memcg.\"/a/web\"]", &format!("[memcg.\"/a/web\"]\nmax = \"{}p\"", answer / 4096));
    let file = s.write("with.toml", text.as_bytes());
    let run: Value = serde_json::from_str(&ok(&s.replay(&file, &["--json"]))).expect("JSON");
    assert_eq!(run["runs"][0]["groups"][3]["tasks"]["hit_rate"], at(answer)["value"]);
    // Any number of threads says the same; text has the answer, the table and the picture.
    let text = ok(&size(&s, &[&flags[..], &["--threads", "1"]].concat()));
    assert_eq!(text, ok(&size(&s, &[&flags[..], &["--threads", "7"]].concat())));
    let answer = format!("answer: memory.max = {}.0M", answer >> 20);
    for part in
        ["the smallest memory.max of /a/web with hit_rate>80%", "in steps of 1.0M", &answer, "is too little", " |- - "]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.lines().skip_while(|l| !l.contains("against")).all(|l| l.chars().count() <= 140), "{text}");
}

#[test]
fn what_cannot_be_met_is_said_with_status_1() {
    let s = sandbox();
    let out = size(&s, &["--group", "/a/web", "--target", "p50<100ns", "--resolution", "8M"]);
    let text = String::from_utf8(out.stdout).expect("text");
    assert_eq!(out.status.code(), Some(1), "{text}");
    assert!(text.contains("no answer: not even memory.max = ") && !text.contains("met  "), "{text}");
    let out = size(&s, &["--group", "/a/web", "--target", "p50<100ns", "--resolution", "8M", "--json"]);
    let all: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert!(out.status.code() == Some(1) && all["verdict"] == "not-met" && all["answer_bytes"].is_null(), "{all}");
}

#[test]
fn what_the_smallest_meets_is_said() {
    let s = sandbox();
    let text = ok(&size(&s, &["--group", "/a/web", "--target", "hit_rate>1%", "--range", "8M..32M"]));
    assert!(text.contains("memory.max = 8.0M") && text.contains("the smallest that was tried, meets"), "{text}");
    assert_eq!(json(&s, &["--group", "/a/web", "--target", "hit_rate>1%"])["verdict"], "met-at-smallest");
}

#[test]
fn a_size_at_which_a_task_is_killed_meets_nothing() {
    let s = sandbox();
    // The leak has 64 MB, of which 24 may be in swap: with less than 40 it cannot live.
    let found =
        json(&s, &["--group", "/b", "--target", "refaults_per_s<1000000", "--range", "8M..80M", "--resolution", "4M"]);
    let answer = found["answer_bytes"].as_u64().expect("an answer") >> 20;
    assert!((40..=72).contains(&answer), "{answer}");
    let first = &found["points"][0];
    assert!(
        first["oom_kills"] == 1 && first["met"] == false && first["failed"] == "killed for lack of memory",
        "{first}"
    );
    let text = ok(&size(
        &s,
        &["--group", "/b", "--target", "refaults_per_s<1000000", "--range", "8M..80M", "--resolution", "4M"],
    ));
    assert!(text.contains("is too little (killed for lack of memory)"), "{text}");
}

#[test]
fn seeds_policies_scales_and_files() {
    let s = sandbox();
    let base = ["--group", "/a/web", "--target", "some<50%", "--range", "16M..32M"];
    let with = |more: &[&str]| json(&s, &[&base[..], more].concat());
    let plain = with(&[]);
    assert!(plain["policy"] == "mglru" && plain["seed"] == 1 && plain["scale"] == 1.0 && plain["metric"] == "some");
    let other = with(&["--seed", "9", "--policy", "lru"]);
    assert!(other["policy"] == "lru" && other["seed"] == 9 && other["points"] != plain["points"]);
    ok(&size(&s, &[&base[..], &["--output", "out.txt"]].concat()));
    let written = std::fs::read_to_string(s.path("out.txt")).expect("written");
    assert_eq!(written, ok(&size(&s, &base)));
}

#[test]
fn mistakes_are_one_line() {
    let s = sandbox();
    s.write("plain.txt", b"1\n2\n");
    let base = ["--group", "/a/web", "--target", "some.avg60<1%"];
    for (flags, want) in [
        (&["--group", "/a/web"][..], "--target"),
        (
            &["--group", "/c", "--target", "some<1%"],
            "--group \"/c\" is not a group of the scenario; it has /a, /b, /a/web",
        ),
        (&["--group", "/", "--target", "some<1%"], "is not a group of the scenario"),
        (&["--target", "some<1%"], "--group PATH is missing: a group of the scenario; it has /a"),
        (&[&base[..], &["--memory", "1G"]].concat(), "--memory: is for a trace, and groups.toml is a scenario"),
        (&[&base[..], &["--swappiness", "1"]].concat(), "--swappiness: is for a trace"),
        (&[&base[..], &["--warm-up", "10%"]].concat(), "--warm-up: is for a recording, and groups.toml is a scenario"),
        (&["--group", "/a/web", "--target", "sum<1%"], "\"sum\" is not a metric"),
        (&["--group", "/a/web", "--target", "some.avg60<1"], "write 1%"),
        (&[&base[..], &["--range", "32M"]].concat(), "is not a range; write 64M..1G"),
        (&[&base[..], &["--range", "32M..16M"]].concat(), "is empty; write the smaller size first"),
        (&[&base[..], &["--range", "1M..16X"]].concat(), "is not a size"),
        (&[&base[..], &["--range", "1M..1G"]].concat(), "1G is more than there is, 96.0M"),
        (&[&base[..], &["--range", "0..16M"]].concat(), "memory.max of nothing holds nothing"),
        (&[&base[..], &["--resolution", "0"]].concat(), "--resolution 0: is less than a page"),
        (&[&base[..], &["--policy", "opt"]].concat(), "opt knows no groups"),
        (&[&base[..], &["--policy", "belady"]].concat(), "unknown policy"),
        (&[&base[..], &["--limit", "most"]].concat(), "possible values"),
        (&[&base[..], &["--scale", "1000"]].concat(), "--scale 1000"),
        (&[&base[..], &["--output", "groups.toml"]].concat(), "give --output another name"),
        (&[&base[..], &["--output", "no/such/file"]].concat(), "cannot be written"),
    ] {
        let complaint = error(&size(&s, flags));
        assert!(complaint.contains(want), "{flags:?}: {complaint}");
    }
    let none = error(&s.run(&["size", "none.toml", "--group", "/a", "--target", "some<1%"]));
    assert!(none.contains("none.toml: cannot be opened"), "{none}");
    s.write("tiny.toml", include_bytes!("data/tiny.toml"));
    let none = error(&s.run(&["size", "tiny.toml", "--group", "/a", "--target", "some<1%"]));
    assert!(none.contains("it has none; write [memcg.\"/...\"]"), "{none}");
}

const ZIPF: [&str; 1] = ["400000: A:zipf:60000:permute=yes"];

/// Pages, and the value of the metric, in millionths, of each size.
fn points(report: &Value) -> Vec<(u64, u64)> {
    let millionths = |value: &Value| (value.as_f64().expect("a value") * 1e6).round() as u64;
    let of = |point: &Value| (point["pages"].as_u64().expect("pages"), millionths(&point["value"]));
    report["points"].as_array().expect("points").iter().map(of).collect()
}

#[test]
fn samples_of_a_trace_answer_as_the_whole() {
    let dir = Sandbox::new();
    let trace = dir.generate("t.parquet", &ZIPF);
    let size = |flags: &[&str]| -> Value {
        let all = [&["size", trace.to_str().expect("text"), "-t", "hit_rate>75%", "--json"], flags].concat();
        serde_json::from_str(&ok(&dir.run(&all))).expect("JSON")
    };
    let whole = size(&[]);
    // All pages, once: the same sizes with the same values.
    let all = size(&["--sample", "100%", "--salts", "1"]);
    assert_eq!(points(&all), points(&whole));
    assert_eq!((&all["answer_pages"], &all["sample"]["samples"]), (&whole["answer_pages"], &1.into()));
    // A tenth of them: within a step or two.
    let tenth = size(&["--sample", "10%"]);
    let answer = |report: &Value| report["answer_pages"].as_f64().expect("an answer");
    let ratio = answer(&tenth) / answer(&whole);
    assert!((0.85..1.15).contains(&ratio), "{ratio}");
    assert!(tenth["points"][0]["standard_error"].as_f64().expect("an error") > 0.0);
}

/// An answer that other samples might change is said to be one.
#[test]
fn an_estimate_near_the_target_is_warned_of() {
    let dir = Sandbox::new();
    let trace = dir.generate("t.parquet", &ZIPF);
    let flags = ["size", trace.to_str().expect("text"), "-t", "hit_rate>75%", "--sample", "2%", "--resolution", "60p"];
    let text = ok(&dir.run(&flags));
    assert!(text.contains("estimated by 5 samples of 1 in 50 of the pages"), "{text}");
    assert!(text.contains("is within two standard errors of the target"), "{text}");
}

#[test]
fn what_samples_cannot_tell_is_refused() {
    let dir = Sandbox::new();
    let trace = dir.generate("t.parquet", &ZIPF);
    let refused = |flags: &[&str]| {
        error(&dir.run(&[&["size", trace.to_str().expect("text"), "--sample", "10%"], flags].concat()))
    };
    assert!(refused(&["-t", "refaults_per_access<1%"]).contains("samples estimate hit_rate alone"));
    assert!(refused(&["-t", "hit_rate>75%", "-g", "/web"]).contains("--group: the groups of a trace"));
    assert!(refused(&["-t", "hit_rate>75%", "-l", "high"]).contains("--limit: the groups of a trace"));
}

/// It answered that no refaults are few.
#[test]
fn regression_a_policy_that_counts_no_refaults_has_no_answer_about_them() {
    let s = Sandbox::new();
    let trace = s.generate("loop.parquet", &["900: A:loop:300"]);
    let trace = trace.to_str().expect("text");
    let asked = ["size", trace, "--target", "refaults_per_access<1%", "--policy"];
    let said = error(&s.run(&[&asked[..], &["lru-none"]].concat()));
    assert!(said.contains("--target refaults_per_access: lru-none keeps no shadows"), "{said}");
    ok(&s.run(&[&asked[..], &["lru"]].concat()));
}

/// Requests to a disk are what a page cache let through: no size of one follows, unless it is said
/// that they are all.
#[test]
fn a_trace_that_lacks_hits_is_sized_only_when_told() {
    let s = Sandbox::new();
    let line = |n: u64| format!("  8,0 0 {n} 0.{n:06} 7 Q R {} + 8 [app]\n", n * 7 % 400 * 8);
    s.write("sda.txt", (1..2000).map(line).collect::<String>().as_bytes());
    s.write("pages.txt", (1..2000).map(|n| format!("{}\n", n * 7 % 400)).collect::<String>().as_bytes());
    let said = error(&s.run(&["size", "sda.txt"]));
    assert!(said.contains("sda.txt: requests to a block device are what a page cache let through"), "{said}");
    assert!(said.contains("--as-page-cache sizes") && said.lines().count() == 1, "{said}");
    ok(&s.run(&["size", "sda.txt", "--as-page-cache"]));
    let said = error(&s.run(&["size", "pages.txt", "--as-page-cache"]));
    assert!(said.contains("--as-page-cache: is for traces that lack hits"), "{said}");
    // A converted trace is no other.
    ok(&s.run(&["trace", "convert", "sda.txt", "sda.parquet"]));
    let said = error(&s.run(&["size", "sda.parquet"]));
    assert!(said.contains("no size of a page cache follows"), "{said}");
    // Other commands say it, and go on.
    let replayed = s.run(&["replay", "sda.parquet", "--memory", "50%"]);
    assert!(String::from_utf8_lossy(&replayed.stderr).contains("its hits are not here"), "{replayed:?}");
    ok(&replayed);
}
