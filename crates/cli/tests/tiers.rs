//! Machines with tiers from the command line: what is wrong is said in a line, and text and JSON
//! say the same.

use crate::common::command::Sandbox;
use serde_json::Value;

/// Touches of anonymous memory of 2,000 pages, mostly of a few.
fn trace(s: &Sandbox) -> std::path::PathBuf {
    s.generate("t.parquet", &["100000: A:zipf:2000:skew=0.9,permute=yes,kind=anon,via=map,op=w"])
}

#[test]
fn bad_tiers_end_in_one_line() {
    let s = Sandbox::new();
    let trace = trace(&s);
    for (flags, want) in [
        (&["--tier", "dram=25%"][..], "--tier: 1 given"),
        (&["--tier", "cxl=100%", "--tier", "dram=25%"], "--tier dram=25%: is faster than cxl"),
        (&["--tier", "dram=0", "--tier", "cxl=100%"], "is 0 pages"),
        (&["--tier", "dram=1%", "--tier", "cxl=100%"], "256 are the least"),
        (&["--tier", "dram=-1", "--tier", "cxl=100%"], "is not a size"),
        (&["--tier", "dram=NaN%", "--tier", "cxl=100%"], "is not a size"),
        (&["--tier", "dram=99999999999999999999G", "--tier", "cxl=1G"], "is not a size"),
        (&["--tier", "hbm=25%", "--tier", "cxl=100%"], "unknown kind of memory"),
        (&["--tier", "dram", "--tier", "cxl=100%"], "NAME=SIZE"),
        (&["--tier", "dram=25%", "--tier", "cxl=100%", "--promotion", "MRU"], "unknown promotion policy"),
        (&["--tier", "dram=25%", "--tier", "cxl=100%", "--promotion", ""], "unknown promotion policy"),
        (&["--tier", "dram=25%", "--tier", "cxl=100%", "--scale", "1.5"], "whole number"),
        (&["--tier", "dram=25%", "--tier", "cxl=100%", "--scale", "1e30"], "at most 1000000"),
        (&["--tier", "dram=25%", "--tier", "cxl=100%", "--memory", "1G"], "--memory"),
        (&["--promotion", "mru"], "--promotion"),
    ] {
        let out = s.replay(&trace, flags);
        let error = String::from_utf8(out.stderr).expect("text");
        assert_eq!((out.status.code(), error.lines().count()), (Some(2), 1), "{flags:?}: {error}");
        assert!(error.starts_with("error: ") && error.contains(want), "{flags:?}: {error}");
        assert!(out.stdout.is_empty(), "{flags:?}");
    }
}

/// The first number after a word.
fn after(text: &str, word: &str) -> f64 {
    let rest = &text[text.find(word).unwrap_or_else(|| panic!("{word} in {text}")) + word.len()..];
    let number = rest.split_whitespace().next().expect("a number");
    number.trim_end_matches(['%', ',']).replace(',', "").parse().unwrap_or_else(|e| panic!("{number}: {e}"))
}

#[test]
fn text_and_json_say_the_same() {
    let s = Sandbox::new();
    let trace = trace(&s);
    let flags =
        ["--tier", "dram=25%", "--tier", "cxl=100%", "--policy", "lru", "--scale", "1000", "--promotion", "mru,oracle"];
    let text = String::from_utf8(s.replay(&trace, &flags).stdout).expect("text");
    let json = s.replay(&trace, &[&flags[..], &["--json"]].concat());
    let json: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let runs = json["runs"].as_array().expect("runs");
    let parts: Vec<&str> = text.split("\nlru (").skip(1).collect();
    assert_eq!((runs.len(), parts.len()), (2, 2), "{text}");
    for (part, run) in parts.iter().zip(runs) {
        let tiers = &run["tiers"];
        let near = |shown: f64, exact: f64| (shown - exact).abs() <= 0.0051 * exact.abs().max(1.0);
        let number = |v: &Value| v.as_f64().expect("a number");
        assert!(near(after(part, "tiers: mean access "), number(&tiers["mean_access_ns"])), "{part}\n{tiers}");
        assert!(near(after(part, "at best "), number(&tiers["best_share"]) * 100.0), "{part}\n{tiers}");
        for node in tiers["nodes"].as_array().expect("nodes") {
            let name = node["name"].as_str().expect("a name");
            let row: Vec<&str> =
                part.lines().find(|l| l.starts_with(name)).expect("a row").split_whitespace().collect();
            let accesses: f64 = row[3].replace(',', "").parse().expect("accesses");
            assert_eq!(accesses, number(&node["reads"]) + number(&node["writes"]), "{row:?}");
            assert!(
                near(row[4].trim_end_matches('%').parse().expect("a share"), number(&node["share"]) * 100.0),
                "{row:?} {node}"
            );
        }
    }
}

/// The first scenario of docs/how-to/memory-tiers.md has no [machine].
#[test]
fn nodes_need_no_machine() {
    let s = Sandbox::new();
    let scenario = r#"
name = "n"
node.dram = { preset = "dram", size = "32M", cpus = 2 }
node.cxl = { preset = "cxl", size = "64M" }
object.heap = { kind = "anon", size = "40M" }
[[task]]
name = "t"
phase = [{ write = "heap", passes = 1 }]
"#;
    let file = s.write("n.toml", scenario.as_bytes());
    let out = s.replay(&file, &["--promotion", "mru"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let lines: Vec<&str> = scenario.lines().filter(|l| !l.starts_with("node.")).collect();
    let without = s.write("m.toml", lines.join("\n").as_bytes());
    let out = s.replay(&without, &[]);
    assert!(String::from_utf8_lossy(&out.stderr).contains("m.toml:1: machine: is missing"));
}
