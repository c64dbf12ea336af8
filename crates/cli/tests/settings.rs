//! A result says the settings that it was made with, in each of its forms.

use crate::common::command::{Sandbox, error, ok};
use clap::{Args, Command};
use refault_cli::replay::ReplayArgs;
use refault_testing::one_in;
use serde_json::Value;
use std::collections::BTreeSet;

/// Flags of `replay` that no result has to say, and why.
const UNSAID: [(&str, &str); 19] = [
    ("memory", "a column of its own"),
    ("policy", "a column of its own"),
    ("json", "form"),
    ("csv", "form"),
    ("output", "place"),
    ("html", "place"),
    ("metrics", "place"),
    ("series", "place"),
    ("miss-bits", "place"),
    ("curve", "a drawing of the rows"),
    ("windows", "the same misses by part"),
    ("vmstat", "more of the same counters"),
    ("lru-gen", "the state at the end"),
    ("swap-map", "the state at the end"),
    ("threads", "figures are the same with any number"),
    ("max-memory", "ends with an error, or changes nothing"),
    ("check", "ends with an error, or changes nothing"),
    ("strict", "ends with an error, or changes nothing"),
    ("page-by-page", "of recordings alone; the table says it in words of its own"),
];

/// A flag with a value that is not its default, the input that it is for, other flags that it
/// needs, and the text of a table that says it.
const CASES: [(&str, &str, &str, &[&str], &str); 27] = [
    ("kernel", "6.1", "t.parquet", &[], "rules: kernel 6.1\n"),
    ("swap-max", "40%", "t.parquet", &[], "settings: --swap-max 40%\n"),
    ("swap", "zram:2G", "t.parquet", &[], "settings: --swap zram:2G\n"),
    ("compression", "ratio=3", "t.parquet", &["--swap", "zram"], "--compression ratio=3"),
    ("swappiness", "7", "t.parquet", &[], "rules: kernel 6.12, swappiness=7\n"),
    ("via", "map", "plain.txt", &["--format", "plain"], "--via map"),
    ("seed", "3", "t.parquet", &[], "settings: --seed 3\n"),
    ("max-accesses", "9000", "t.parquet", &[], "settings: --max-accesses 9000\n"),
    ("stream", "", "t.parquet", &["--policy", "lru"], "settings: --stream\n"),
    ("beyond-footprint", "", "t.parquet", &[], "settings: --beyond-footprint\n"),
    ("set", "batch_folios=15", "t.parquet", &[], "rules: kernel 6.12, batch_folios=15\n"),
    ("thp", "64k=always,2m=always", "t.parquet", &[], "settings: --thp 64k=always,2m=always\n"),
    ("memcg-column", "", "t.parquet", &[], "settings: --memcg-column\n"),
    ("memcg-limits", "limits.toml", "t.parquet", &["--memcg-column"], "--memcg-limits limits.toml"),
    ("sample", "50%", "t.parquet", &[], "settings: --sample 50%\n"),
    ("sample-unit", "node", "t.parquet", &["--sample", "50%"], "--sample-unit node"),
    ("salts", "2", "t.parquet", &["--sample", "50%"], "--salts 2"),
    ("scale", "2", "s.toml", &[], ", scale 2\n"),
    ("promotion", "mru", "t.parquet", &["--tier", "dram=25%", "--tier", "cxl=100%"], "mru"),
    ("tier", "dram=25%", "t.parquet", &["--tier", "cxl=100%"], "--tier dram=25%"),
    ("access-ns", "50", "t.parquet", &["--tier", "dram=25%", "--tier", "cxl=100%"], "--access-ns 50"),
    ("format", "plain", "plain.txt", &[], "settings: --format plain\n"),
    ("separator", "tab", "tab.txt", &["--format", "columns:page,_"], "--separator tab"),
    ("skip-lines", "1", "tab.txt", &["--format", "columns:page,_", "--separator", "tab"], "--skip-lines 1"),
    ("block-bytes", "512", "plain.txt", &["--format", "plain"], "--block-bytes 512"),
    ("page-size", "8192", "plain.txt", &["--format", "plain"], "--page-size 8192"),
    ("instructions", "", "lackey.txt", &["--format", "lackey"], "--instructions"),
];

fn sandbox() -> Sandbox {
    let s = Sandbox::new();
    s.generate("t.parquet", &["20000: A:zipf:3000:memcg=/a; B:uniform:1000:kind=anon,op=w,memcg=/b"]);
    let numbers: Vec<String> = (0..20_000u64).map(|n| (n * n % 1009).to_string()).collect();
    s.write("plain.txt", numbers.join("\n").as_bytes());
    s.write("tab.txt", numbers.iter().map(|n| format!("{n}\tx\n")).collect::<String>().as_bytes());
    let lines =
        (0..20_000u64).map(|n| format!("{} {:x},4\n", if n % 3 == 0 { "I " } else { " L" }, n * n % 1009 * 4096));
    s.write("lackey.txt", lines.collect::<String>().as_bytes());
    s.write("limits.toml", b"[group.\"/a\"]\nmemory.max = \"4M\"\n");
    s.write("s.toml", include_bytes!("data/tiny.toml"));
    s
}

/// A table, and the settings of JSON and CSV.
fn results(s: &Sandbox, words: &[&str]) -> (String, Value, BTreeSet<String>) {
    let run = |form: &[&str]| ok(&s.run(&[words, form].concat()));
    let all: Value = serde_json::from_str(&run(&["--json"])).expect("JSON");
    let csv = run(&["--csv"]);
    let heads: Vec<&str> = csv.lines().next().expect("a heading").split(',').collect();
    let at = heads.iter().position(|head| *head == "settings").expect("a column") + 1;
    assert!(heads.contains(&"kernel") && at == heads.len(), "{heads:?}");
    let last = |line: &str| line.splitn(at, ',').last().expect("a field").trim_matches('"').to_owned();
    (run(&[]), all["settings"].clone(), csv.lines().skip(1).map(last).collect())
}

/// The list of flags is that of the command: a new one is in a list, with a value or a reason.
#[test]
fn every_flag_is_in_a_list() {
    let command = ReplayArgs::augment_args(Command::new("replay"));
    let all: BTreeSet<_> = command.get_arguments().filter_map(|arg| arg.get_long().map(str::to_owned)).collect();
    let said = CASES.iter().map(|case| case.0).chain(["raw-ids", "tick-ns"]);
    let listed: BTreeSet<_> = said.chain(UNSAID.iter().map(|(flag, _)| *flag)).map(str::to_owned).collect();
    assert_eq!(all, listed);
}

/// Each flag that changes a result is in it: in the table, in JSON and in every line of CSV.
#[test]
fn regression_a_result_says_its_settings_in_each_form() {
    let s = sandbox();
    for (flag, value, input, others, want) in CASES.into_iter().step_by(one_in(2)) {
        let long = format!("--{flag}");
        let own: Vec<&str> = [long.as_str(), value].into_iter().filter(|word| !word.is_empty()).collect();
        let memory: &[&str] = if input == "s.toml" || others.contains(&"--tier") { &[] } else { &["--memory", "25%"] };
        let (text, json, csv) = results(&s, &[&["replay", input], &own[..], others, memory].concat());
        assert!(text.contains(want), "{own:?}: {want:?} is not in {text}");
        let in_json = &json[flag];
        let is_said = match value {
            "" => in_json == true,
            value => in_json == value || in_json.as_array().is_some_and(|all| all.contains(&value.into())),
        };
        assert!(is_said, "{own:?}: JSON has {json}");
        assert!(!csv.is_empty() && csv.iter().all(|settings| settings.contains(&own.join(" "))), "{own:?}: {csv:?}");
    }
}

/// Settings of the file of a scenario are in its table, in JSON and in every line of CSV.
#[test]
fn regression_a_scenario_says_the_settings_of_its_file_in_each_form() {
    let s = sandbox();
    let text = include_str!("data/tiny.toml")
        .replace("[machine]\n", "[machine]\nwatermark_scale_factor = 30\n")
        .replace("name = \"lru\"", "name = \"lru\"\nbatch_folios = 15");
    s.write("set.toml", text.as_bytes());
    let (table, _, csv) = results(&s, &["replay", "set.toml"]);
    assert!(table.contains("watermark_scale_factor 30") && table.contains("batch_folios=15"), "{table}");
    let all: Value = serde_json::from_str(&ok(&s.run(&["replay", "set.toml", "--json"]))).expect("JSON");
    let run = all["runs"][0].to_string();
    assert!(run.contains("\"machine.watermark_scale_factor\":30") && run.contains("\"batch_folios\":15"), "{run}");
    let said =
        |line: &String| line.contains("policy.batch_folios=15") && line.contains("machine.watermark_scale_factor=30");
    assert!(!csv.is_empty() && csv.iter().all(said), "{csv:?}");
}

/// Where nothing is given that changes a result, nothing is said.
#[test]
fn defaults_are_not_said() {
    let s = sandbox();
    let (text, json, csv) = results(&s, &["replay", "t.parquet", "--memory", "25%", "--threads", "1"]);
    assert!(!text.contains("settings:") && !text.contains("rules:"), "{text}");
    assert_eq!((json, csv), (serde_json::json!({}), BTreeSet::from([String::new()])));
}

/// The default kernel is named where it is in the place of a recorded one.
#[test]
fn regression_a_kernel_in_the_place_of_a_recorded_one_is_named() {
    let s = sandbox();
    let recording = crate::report::root().join("data/orders.parquet");
    let recording = recording.to_str().expect("text");
    for form in [&[][..], &["--page-by-page"], &["--page-by-page", "--sample", "50%"]] {
        let words = [&["replay", recording, "--memory", "24M", "--policy", "lru", "--kernel", "6.12"], form].concat();
        let text = ok(&s.run(&words));
        assert!(text.contains("rules: kernel 6.12"), "{form:?}: {text}");
    }
    assert!(!ok(&s.run(&["replay", "t.parquet", "--memory", "25%", "--kernel", "6.12"])).contains("rules:"));
}

#[test]
fn sizes_say_their_settings() {
    let s = sandbox();
    for words in [&["--target", "hit_rate>50%"][..], &[]] {
        let words = [&["size", "t.parquet", "--swap-max", "40%", "--policy", "lru"], words].concat();
        let text = ok(&s.run(&words));
        assert!(text.contains("\nsettings: --swap-max 40%\n"), "{text}");
        let all: Value = serde_json::from_str(&ok(&s.run(&[&words[..], &["--json"]].concat()))).expect("JSON");
        assert_eq!(all["settings"], serde_json::json!({ "swap-max": "40%" }));
    }
}

/// Pages of HTML say them, too: those that a command writes, and those of its JSON.
#[test]
fn pages_say_their_settings() {
    let s = sandbox();
    let words = ["replay", "t.parquet", "--swap-max", "40%", "--json", "-o", "r.json", "--html", "a.html"];
    ok(&s.run(&words));
    ok(&s.run(&["report", "r.json", "-o", "b.html"]));
    for page in ["a.html", "b.html"] {
        let text = std::fs::read_to_string(s.path(page)).expect("a page");
        assert!(text.contains("settings: --swap-max 40%"), "{page}");
    }
}

/// Flags without anything that they act on are refused with a line that says what they act on.
#[test]
fn regression_flags_that_do_nothing_are_refused() {
    let s = sandbox();
    for (flags, want) in [
        (&["--page-by-page"][..], "is a trace and no recording"),
        (&["--thp", "swap-in=on"], "--thp swap-in=on: does nothing, for no size is on"),
        (&["--thp", "defrag=always,2m=never"], "add one, such as 64k=always"),
        (
            &["--lru-gen", "--policy", "lru,opt"],
            "--lru-gen: does nothing under lru, opt; it acts on mglru, mglru-shadow",
        ),
        (&["--policy", "lru", "--set", "leaf_walk=true"], "does nothing under lru; it acts on mglru, mglru-shadow"),
        (&["--policy", "mglru,opt", "--set", "clock=evictions"], "under mglru, opt; it acts on lru, lru-2013"),
        (&["--memcg-column", "--policy", "mglru", "--set", "backoff=any-priority"], "with memcgs=first"),
        (&["--set", "kswapd_revival=progress"], "does nothing of a trace, which has no kswapd"),
    ] {
        let error = error(&s.replay(&s.path("t.parquet"), flags));
        assert!(error.contains(want), "{flags:?}: {error}");
    }
    let words = ["size", "t.parquet", "--policy", "lru", "--set", "leaf_walk=true"];
    assert!(error(&s.run(&words)).contains("--set leaf_walk: does nothing under lru"));
    let text = include_str!("data/tiny.toml").replace("name = \"lru\"", "name = \"lru\"\nleaf_walk = true");
    let file = s.write("generations.toml", text.as_bytes());
    let refused = error(&s.replay(&file, &[]));
    assert!(refused.contains("generations.toml:11: policy.leaf_walk: does nothing under lru"), "{refused}");
    ok(&s.replay(&file, &["--policy", "lru,mglru"]));
}
