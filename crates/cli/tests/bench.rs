//! `refault bench` as a user meets it: on a scenario of a second, and the list of those inside of the command.

#[path = "common/command.rs"]
mod command;

use command::{Sandbox, error, ok};
use refault_sim::machine::Machine;
use refault_sim::scenario::Scenario;
use serde_json::Value;

/// Two sets that fit one by one; with a change that adapts, and one that does not.
const TINY: &str = include_str!("data/tiny.toml");

fn sandbox() -> Sandbox {
    let s = Sandbox::new();
    s.write("tiny.toml", TINY.as_bytes());
    s
}

fn bench(s: &Sandbox, args: &[&str]) -> std::process::Output {
    s.run(&[&["bench"], args].concat())
}

fn json(s: &Sandbox, args: &[&str]) -> Vec<Value> {
    let all: Value = serde_json::from_str(&ok(&bench(s, &[args, &["--json"]].concat()))).expect("JSON");
    assert_eq!(all["refault"], env!("CARGO_PKG_VERSION"));
    all["benchmarks"].as_array().expect("benchmarks").clone()
}

/// Everything but the seconds that it took.
fn timeless(mut all: Vec<Value>) -> Vec<Value> {
    for side in ["before", "after"] {
        for one in &mut all {
            assert!(one[side].as_object_mut().expect("a side").remove("real_seconds").is_some());
        }
    }
    all
}

#[test]
fn json_has_the_documented_fields() {
    let s = sandbox();
    let all = json(&s, &["tiny.toml", "--check"]);
    assert_eq!(all.len(), 1);
    let one = &all[0];
    assert_eq!((one["name"].as_str(), one["scale"].as_f64()), (Some("tiny"), Some(1.0)));
    assert_eq!(one["seeds"], serde_json::json!([1]));
    assert_eq!(one["notes"], serde_json::json!(["It is made up."]));
    assert!(one["about"].is_string() && one["source"].is_null());
    for (side, policy) in [("before", "lru-none"), ("after", "lru-2013")] {
        let side = &one[side];
        assert_eq!((side["policy"].as_str(), side["ending"].as_str()), (Some(policy), Some("tasks-done")));
        assert!(side["virtual_seconds"].as_f64() > Some(1.0) && side["real_seconds"].is_number());
        assert!(side["events"].as_u64() > Some(0) && side["oom_kills"] == 0 && side["overrides"].is_object());
    }
    let rows = one["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 5);
    let fields = [
        "metric",
        "label",
        "unit",
        "better",
        "published_before",
        "published_after",
        "before",
        "after",
        "published_ratio",
        "ratio",
        "ratios",
        "band",
        "within",
    ];
    for row in rows {
        assert!(fields.iter().all(|field| row.get(field).is_some()), "{row}");
        let [before, after, ratio] = ["before", "after", "ratio"].map(|field| row[field].as_f64());
        if let Some(ratio) = ratio.filter(|_| before > Some(0.0)) {
            assert_eq!(Some(ratio), after.zip(before).map(|(after, before)| after / before));
        }
    }
    let [first, second, refaults, seconds, swap] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!(
        (&first["published_ratio"], &first["band"]),
        (&serde_json::json!(1.0), &serde_json::json!([0.98, 1.02]))
    );
    assert_eq!((first["within"].as_bool(), first["better"].as_str()), (Some(true), Some("higher")));
    // No upper end; nothing published.
    assert_eq!(second["band"], serde_json::json!([2.0, null]));
    assert!(second["within"] == true && second["published_ratio"].is_null(), "{second}");
    // Out of nothing there is no ratio.
    assert!(refaults["before"] == 0.0 && refaults["ratio"].is_null() && refaults["within"].is_null(), "{refaults}");
    assert_eq!(one["after"]["virtual_seconds"], seconds["after"]);
    // Nothing on both sides is no change.
    assert!(swap["before"] == 0.0 && swap["ratio"] == 1.0 && swap["within"] == true, "{swap}");
}

#[test]
fn threads_and_repeats_change_nothing() {
    let s = sandbox();
    s.write(
        "again.toml",
        TINY.replace("\"tiny\"", "\"again\"")
            .replace("second\"\nafter", "second\"\nstart = \"10ms\"\nafter")
            .as_bytes(),
    );
    let run = |threads: &str| timeless(json(&s, &["tiny.toml", "again.toml", "--seeds", "2", "--threads", threads]));
    let one = run("1");
    assert_eq!(one.iter().map(|b| b["name"].as_str().expect("a name")).collect::<Vec<_>>(), ["tiny", "again"]);
    assert_ne!(one[0]["rows"][3], one[1]["rows"][3]);
    assert_eq!(one, run("1"));
    assert_eq!(one, run("2"));
    assert_eq!(one, run("7"));
}

#[test]
fn several_seeds_have_a_ratio_each() {
    let s = Sandbox::new();
    s.write("tiny.toml", TINY.replace("passes = 8", "passes = 4\npattern = \"uniform\"").as_bytes());
    let all = json(&s, &["tiny.toml", "--seeds", "3"]);
    assert_eq!(all[0]["seeds"], serde_json::json!([1, 2, 3]));
    let row = &all[0]["rows"][1];
    let ratios: Vec<f64> = row["ratios"].as_array().expect("ratios").iter().filter_map(Value::as_f64).collect();
    assert!(ratios.len() == 3 && ratios[0] != ratios[1], "{row}");
    // Each is what the seed gives alone, and the numbers are their mean.
    let alone: Vec<_> = ["1", "2", "3"].map(|n| json(&s, &["tiny.toml", "--seed", n])[0]["rows"][1].clone()).to_vec();
    assert_eq!(alone.iter().filter_map(|row| row["ratio"].as_f64()).collect::<Vec<_>>(), ratios);
    let mean = alone.iter().filter_map(|row| row["before"].as_f64()).sum::<f64>() / 3.0;
    assert!((row["before"].as_f64().expect("a number") / mean - 1.0).abs() < 1e-12);
    assert!(ok(&bench(&s, &["tiny.toml", "--seeds", "3"])).contains("over the"));
}

#[test]
fn text_names_every_row_and_verdict() {
    let s = sandbox();
    let text = ok(&bench(&s, &["tiny.toml"]));
    for part in [
        "tiny: One file set",
        "lru-none: ",
        "lru-2013: ",
        "s virtual",
        "first, bytes/s",
        "x1.000  0.98..1.02  ok",
        ">= 2  ok",
        "from 0",
        "note: It is made up.",
        "3 of 3 ratios with a band are in it",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("MISS") && text.lines().all(|line| line.chars().count() <= 140), "{text}");
}

#[test]
fn a_miss_is_told_and_strict_fails() {
    let s = Sandbox::new();
    s.write("tiny.toml", TINY.replace("[2.0, inf]", "[20.0, inf]").as_bytes());
    assert!(ok(&bench(&s, &["tiny.toml"])).contains(">= 20  MISS"));
    assert_eq!(json(&s, &["tiny.toml"])[0]["rows"][1]["within"], false);
    let strict = bench(&s, &["tiny.toml", "--strict"]);
    assert_eq!(strict.status.code(), Some(1));
    assert!(strict.stderr.is_empty() && String::from_utf8_lossy(&strict.stdout).contains("MISS"));
    s.write("tiny.toml", TINY.as_bytes());
    ok(&bench(&s, &["tiny.toml", "--strict"]));
    assert_eq!(s.files(), ["tiny.toml"]);
}

#[test]
fn list_names_every_benchmark_of_the_repository() {
    let s = Sandbox::new();
    let text = ok(&bench(&s, &["--list"]));
    for (name, _) in refault_cli::bench::BUILTIN {
        assert!(text.lines().any(|line| line.split_whitespace().next() == Some(name)), "{name}: {text}");
    }
}

/// The beginning of each of them, as small as it gets, has every number that was published.
#[test]
fn every_benchmark_has_its_numbers() {
    for (name, text) in refault_cli::bench::BUILTIN {
        let scenario = Scenario::parse(name, text).expect(name);
        let Some(published) = &scenario.published else { continue };
        let mut small =
            [512, 256, 128, 64, 32, 1].into_iter().find_map(|k| scenario.scale(f64::from(k)).ok()).expect(name);
        small.end_ns = Some(100_000_000);
        for policy in [&published.before, &published.after] {
            let result = Machine::new(&small, policy).expect(name).checked().run().expect(name);
            for row in &published.rows {
                assert!(result.metric(&row.metric).is_some(), "{name}: {}", row.metric);
            }
        }
    }
}

#[test]
fn mistakes() {
    let s = sandbox();
    let change = |name: &str, from: &str, to: &str| {
        assert!(TINY.contains(from), "{from}");
        s.write(name, TINY.replace(from, to).as_bytes());
    };
    change("key.toml", "passes", "pases");
    change("size.toml", "64M", "64Q");
    change("cost.toml", "cpus = 2", "cpus = 2\ncosts = { thinking = \"1us\" }");
    change("counter.toml", "vmstat.workingset_refault_file", "vmstat.no_such");
    s.write("bare.toml", TINY.split("[published]").next().expect("a part").as_bytes());
    s.write("broken.toml", b"name = \"a\nb\"");
    let before = s.files();
    let cases: &[(&[&str], &str)] = &[
        (&["no-such"], "unknown benchmark \"no-such\"; known are "),
        (&["missing.toml"], "missing.toml: cannot be opened"),
        (&["./missing"], "./missing: cannot be opened"),
        (&["bare.toml"], "bare.toml: published: is missing"),
        (&["key.toml"], "key.toml:30: task[1].phase[1].pases: unknown key; did you mean passes?"),
        (&["size.toml"], "size.toml:7: machine.memory: \"64Q\" is not a size"),
        (&["cost.toml"], "tiny, before, seed 1: machine.costs.thinking"),
        (&["counter.toml"], "tiny: published.row: vmstat.no_such is not a result"),
        (&["broken.toml"], "broken.toml:2: not TOML"),
        (&["tiny.toml", "--scale", "0.5"], "\"0.5\" is not a scale"),
        (&["tiny.toml", "--scale", "nan"], "\"nan\" is not a scale"),
        (&["tiny.toml", "--scale", "1000"], "tiny.toml: --scale 1000: memory"),
        (&["tiny.toml", "--seeds", "0"], "--seeds"),
        (&["tiny.toml", "--seed", "-1"], "-1"),
        (&["tiny.toml", "--seed", "1", "--seeds", "2"], "--seeds"),
        (&["tiny.toml", "--threads", "0"], "--threads"),
        (&["--list", "--json"], "--json"),
        // The first is good, the second is not: nothing is printed of either.
        (&["tiny.toml", "key.toml"], "key.toml:30"),
    ];
    for (args, want) in cases {
        println!("{args:?}"); // shown when it fails
        let line = error(&bench(&s, args));
        assert!(line.contains(want), "{args:?}: {line}");
    }
    assert_eq!(s.files(), before);
}
