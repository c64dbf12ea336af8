//! `refault whatif`: its answers, its refusals, its exit status, and its answers beside what
//! kernels did.

use crate::common::command::{Sandbox, error, ok};
use crate::verify::made_up;
use refault_testing::{is_long, is_whole, oracle, recordings, step};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn sandbox() -> Sandbox {
    let s = Sandbox::new();
    s.generate("loop.parquet", &["20000: A:loop:1000"]);
    s.generate("zipf.parquet", &["60000: A:zipf:4000"]);
    made_up(&s.path("recording.parquet"), 200, |i| i < 100);
    s.write("tiny.toml", include_bytes!("data/tiny.toml"));
    s
}

fn json(s: &Sandbox, words: &[&str]) -> Value {
    serde_json::from_str(&ok(&s.run(&[&["whatif"], words, &["--json"]].concat()))).expect("JSON")
}

/// An effect of the change of this name.
fn effect<'a>(result: &'a Value, name: &str, metric: &str) -> &'a Value {
    let all = result["alternatives"].as_array().expect("alternatives");
    let of = all.iter().find(|of| of["name"] == name).unwrap_or_else(|| panic!("{name}: {result}"));
    let effects = of["effects"].as_array().expect("effects");
    effects.iter().find(|effect| effect["metric"] == metric).unwrap_or_else(|| panic!("{metric}: {of}"))
}

#[test]
fn more_memory_is_better_where_it_matters() {
    let s = sandbox();
    let result = json(&s, &["zipf.parquet"]);
    assert_eq!(effect(&result, "limit 50%", "misses")["verdict"], "worse");
    assert_eq!(effect(&result, "limit 150%", "misses")["verdict"], "better");
    let names: Vec<_> = result["alternatives"].as_array().expect("some").iter().map(|of| &of["name"]).collect();
    assert!(names.contains(&&"kernel 6.18".into()) && names.contains(&&"policy lru".into()), "{names:?}");
    assert!(!names.iter().any(|name| name.as_str().is_some_and(|name| name.contains("6.12"))), "{names:?}");
    // A loop larger than memory misses everywhere.
    let result = json(&s, &["loop.parquet", "--from-policy", "lru", "--limit", "75%,100%,250%"]);
    assert_eq!(effect(&result, "limit 75%", "misses")["verdict"], "same");
    assert_eq!(effect(&result, "limit 100%", "misses")["change"], 0.0);
    assert_eq!(effect(&result, "limit 250%", "misses")["verdict"], "better");
}

#[test]
fn changes_are_crossed_where_they_are_named() {
    let s = sandbox();
    let result = json(&s, &["zipf.parquet", "--kernel", "6.1,6.18", "--limit", "50%,75%", "--starts", "1"]);
    let all = result["alternatives"].as_array().expect("alternatives");
    let names: Vec<_> = all.iter().map(|of| of["name"].as_str().expect("a name")).collect();
    let crossed =
        ["kernel 6.1, limit 50%", "kernel 6.1, limit 75%", "kernel 6.18, limit 50%", "kernel 6.18, limit 75%"];
    assert_eq!(names, crossed);
}

#[test]
fn a_condition_that_holds_is_exit_status_one() {
    let s = sandbox();
    let run = |words: &[&str]| s.run(&[&["whatif", "zipf.parquet"], words].concat());
    let held = run(&["--limit", "50%", "--fail-if", "misses>+5%"]);
    let said = String::from_utf8_lossy(&held.stderr).into_owned();
    assert_eq!(held.status.code(), Some(1), "{said}");
    assert!(said.contains("failed: misses>+5% (% of today's) holds: limit 50%"), "{said}");
    let free = run(&["--limit", "150%", "--fail-if", "misses>+5%", "--fail-if", "hit_rate<-1%"]);
    assert_eq!(free.status.code(), Some(0), "{}", String::from_utf8_lossy(&free.stderr));
    assert!(error(&run(&["--fail-if", "p99>+5%"])).contains("has misses, hit_rate"));
    assert!(error(&run(&["--fail-if", "misses>5%"])).contains("is not a difference"));
}

/// The kernel of a recording is beside its own machine, whichever is today's.
#[test]
fn regression_doubts_of_a_recording_stay_whatever_today_is() {
    let s = Sandbox::new();
    let orders = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/orders.parquet");
    let of = |from: &[&str]| ok(&s.run(&[&["whatif", orders, "--starts", "1", "--limit", "75%"], from].concat()));
    let [as_recorded, other] = [of(&[]), of(&["--from-kernel", "6.12"])];
    let line = |text: &str, start: &str| text.lines().find(|line| line.starts_with(start)).map(str::to_owned);
    assert!(line(&as_recorded, "the recorded kernel: ").is_some(), "{as_recorded}");
    assert_eq!(line(&other, "the recorded kernel: "), line(&as_recorded, "the recorded kernel: "));
    assert!(other.contains("Linux 6.12 in 24.0M (its limit as recorded)"), "{other}");
}

#[test]
fn regression_a_change_that_is_none_is_refused_or_said() {
    let s = sandbox();
    let same = ["whatif", "zipf.parquet", "--kernel", "6.12", "--fail-if", "misses>+5%"];
    assert!(error(&s.run(&same)).contains("kernel 6.12: is as today's machine, so that nothing changes"));
    let both = ok(&s.run(&["whatif", "zipf.parquet", "--kernel", "6.12,6.18", "--starts", "1"]));
    assert!(both.lines().any(|line| line.starts_with("kernel 6.12 ") && line.ends_with("today's machine")), "{both}");
}

#[test]
fn a_change_that_an_input_cannot_show_is_refused_with_a_reason() {
    let s = sandbox();
    for (words, want) in [
        (&["zipf.parquet", "--swappiness", "10"][..], "--swappiness: does nothing of a trace without anonymous memory"),
        (&["zipf.parquet", "--read-ahead", "0"], "page by page, without readahead"),
        (&["zipf.parquet", "--limit", "max"], "nothing is reclaimed"),
        (&["zipf.parquet", "--limit", "0%"], "is less than a page"),
        (&["zipf.parquet", "--group", "/a"], "--group: is for a scenario"),
        (&["zipf.parquet", "--scale", "2"], "--scale: is for a scenario"),
        (&["zipf.parquet", "--swap", "floppy"], "is no kind of swap"),
        (&["recording.parquet", "--swap", "zram"], "is not known of a recording"),
        (&["recording.parquet", "--via", "map"], "--via: "),
        (&["tiny.toml", "--limit", "50%"], "name the group"),
        (&["tiny.toml", "--memory", "50M"], "which says it itself"),
        (&["none.parquet"], "none.parquet"),
    ] {
        let said = error(&s.run(&[&["whatif"], words].concat()));
        assert!(said.contains(want), "{words:?}: {said}");
    }
}

#[test]
fn a_scenario_has_operations_and_their_latency() {
    let s = sandbox();
    let result = json(&s, &["tiny.toml", "--kernel", "6.18", "--starts", "2"]);
    let values = result["today"]["values"].as_object().expect("values");
    assert!(["ops_per_s", "p99", "some"].iter().all(|name| values.contains_key(*name)), "{values:?}");
}

/// Inputs, flags of today's machine, a change, and hits of all accesses before and after it, in the
/// runs of a kernel.
struct Truth {
    name: String,
    input: PathBuf,
    words: Vec<String>,
    change: String,
    today: Vec<f64>,
    then: Vec<f64>,
}

/// Limits of recordings, and what was true in others (README of the recordings).
fn of_limits(folder: &Path) -> Vec<Truth> {
    // Recording, its hit rate in percent, another limit, and the hit rate there.
    const ROWS: [(&str, f64, &str, f64); 20] = [
        ("postgres-zipf-256M-attached", 68.67, "192M", 60.42),
        ("postgres-zipf-256M-attached", 68.67, "384M", 78.64),
        ("postgres-zipf-256M-attached", 68.67, "704M", 89.22),
        ("postgres-zipf-192M", 60.42, "256M", 68.67),
        ("postgres-zipf-192M", 60.42, "384M", 78.64),
        ("postgres-zipf-192M", 60.42, "704M", 89.22),
        ("postgres-zipf-384M", 78.64, "192M", 60.42),
        ("postgres-zipf-384M", 78.64, "256M", 68.67),
        ("postgres-zipf-384M", 78.64, "704M", 89.22),
        ("postgres-zipf-704M", 89.22, "192M", 60.42),
        ("postgres-zipf-704M", 89.22, "256M", 68.67),
        ("postgres-zipf-704M", 89.22, "384M", 78.64),
        ("rocksdb-128M", 60.70, "320M", 72.78),
        ("rocksdb-128M", 60.70, "384M", 75.84),
        ("rocksdb-384M", 75.84, "320M", 72.78),
        ("rocksdb-384M", 75.84, "128M", 60.70),
        ("rocksdb-320M", 72.78, "128M", 60.70),
        ("rocksdb-320M", 72.78, "384M", 75.84),
        ("nginx-128M", 95.67, "256M", 96.85),
        ("nginx-256M", 96.85, "128M", 95.67),
    ];
    let truth = |(name, today, limit, then): &(&str, f64, &str, f64)| Truth {
        name: (*name).to_owned(),
        input: folder.join(format!("{name}.parquet")),
        words: vec!["--limit".into(), (*limit).into()],
        change: format!("limit {limit}"),
        today: vec![today / 100.0],
        then: vec![then / 100.0],
    };
    ROWS.iter().map(truth).collect()
}

/// Switches of kernel and lists of traces that kernels played.
fn of_rules(folder: &Path) -> Vec<Truth> {
    let read = |path: PathBuf| -> Vec<Value> {
        serde_json::from_str(&std::fs::read_to_string(path).expect("cases")).expect("JSON")
    };
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/kernels/cases.json");
    let cases: Vec<Value> = [folder.join("cases.json"), own].into_iter().flat_map(read).collect();
    let rates = |workload: &str, access: &str, kernel: &str, policy: &str| -> Option<Vec<f64>> {
        let is_it = |of: &&Value| {
            of["workload"] == workload && of["access"] == access && of["kernel"] == kernel && of["policy"] == policy
        };
        let of = cases.iter().filter(is_it).find(|of| of["limit_pages"] == 16_384)?;
        let accesses = of["accesses"].as_f64()?;
        Some(of["misses"].as_array()?.iter().filter_map(|misses| Some(1.0 - misses.as_f64()? / accesses)).collect())
    };
    const SWITCHES: [[&str; 4]; 3] =
        [["6.12", "lru", "6.12", "mglru"], ["6.12", "mglru", "6.18", "mglru"], ["6.18", "mglru", "7.2", "mglru"]];
    let files = ["db-switch", "hot-warm-cold", "scan", "uniform-2x", "zipf-1.2", "loop-1.5x"];
    let workloads = files.iter().flat_map(|of| [(*of, "fd"), (*of, "map")]).chain([("anon-zipf", "anon")]);
    let mut all = Vec::new();
    for (workload, access) in workloads {
        for [kernel, policy, to, to_policy] in SWITCHES {
            let pair = rates(workload, access, kernel, policy).zip(rates(workload, access, to, to_policy));
            let Some((today, then)) = pair else { continue };
            let (flag, value, change) = match kernel == to {
                true => ("--policy", to_policy, format!("policy {to_policy}")),
                false => ("--kernel", to, format!("kernel {to}")),
            };
            let via = if access == "map" { "map" } else { "fd" };
            let from = ["--memory", "16384p", "--from-kernel", kernel, "--from-policy", policy];
            all.push(Truth {
                name: format!("{workload}, {access}, {policy} of {kernel}"),
                input: folder.join(format!("traces/{workload}.trace.zst")),
                words: [&from[..], &[flag, value, "--via", via]].concat().into_iter().map(str::to_owned).collect(),
                change,
                today,
                then,
            });
        }
    }
    all
}

/// Real programs that a guest of Linux 6.12 ran under both lists, each recorded in one limit: each
/// recording says what the other lists would do.
fn of_lists() -> Vec<Truth> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/lists");
    let rate = |path: &Path| {
        let said = Sandbox::new().run(&["verify", path.to_str().expect("plain text"), "--json"]);
        let result: Value = serde_json::from_slice(&said.stdout).expect("JSON");
        result["kernel_hit_rate"].as_f64().expect("a rate")
    };
    let mut all = Vec::new();
    for program in ["sqlite-10M", "rocksdb-24M", "git-16M"] {
        let of = |policy: &str| folder.join(format!("{program}-{policy}.parquet"));
        for [from, to] in [["lru", "mglru"], ["mglru", "lru"]] {
            all.push(Truth {
                name: format!("{program}, {from} of 6.12"),
                input: of(from),
                words: vec!["--policy".into(), to.into()],
                change: format!("policy {to}"),
                today: vec![rate(&of(from))],
                then: vec![rate(&of(to))],
            });
        }
    }
    all
}

/// Hits, in percentage points, from which a difference has a row of its own.
const SHOWN: f64 = 0.5;

/// A row of the page, and whether the truth is inside of the bounds.
struct Predicted {
    line: String,
    is_inside: bool,
    is_shown: bool,
}

/// Predicted beside true.
fn row(truth: &Truth) -> Predicted {
    let s = Sandbox::of_release();
    let words: Vec<&str> = truth.words.iter().map(String::as_str).collect();
    let result = json(&s, &[&[truth.input.to_str().expect("plain text")], &words[..]].concat());
    let of = effect(&result, &truth.change, "hit_rate");
    let number = |key: &str| 100.0 * of[key].as_f64().expect("a number");
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len().max(1) as f64;
    let difference = 100.0 * (mean(&truth.then) - mean(&truth.today));
    // Runs of one kernel are as far apart as they are.
    let end = |all: &[f64], of: fn(f64, f64) -> f64| all.iter().copied().reduce(of).unwrap_or(0.0);
    let spread = |all: &[f64]| end(all, f64::max) - end(all, f64::min);
    let repeats = 100.0 * (spread(&truth.today) + spread(&truth.then)) / 2.0;
    let is_inside = (number("low") - repeats..=number("high") + repeats).contains(&difference);
    let bold = if is_inside { "" } else { "**" };
    let line = format!(
        "| {} | {} | {:+.2} ({:+.2} to {:+.2}) | {bold}{difference:+.2}{bold} | {} |",
        truth.name,
        truth.change,
        number("change"),
        number("low"),
        number("high"),
        of["verdict"].as_str().expect("a word"),
    );
    let is_shown = !is_inside || number("change").abs().max(difference.abs()) >= SHOWN;
    Predicted { line, is_inside, is_shown }
}

/// Prints the table of the page, and compares: every second row, or all with `REFAULT_LONG=all`.
#[test]
fn predicted_beside_true() {
    if !is_long() {
        return;
    }
    let (Some(recorded), Some(played)) = (recordings(), oracle()) else { return };
    let truths = of_limits(&recorded).into_iter().chain(of_lists()).chain(of_rules(&played));
    let all: Vec<Predicted> = truths.step_by(step(2, 2)).map(|truth| row(&truth)).collect();
    let inside = all.iter().filter(|of| of.is_inside).count();
    let mut table = String::new();
    for of in all.iter().filter(|of| of.is_shown) {
        let _ = writeln!(table, "{}", of.line);
    }
    println!("{table}\n{inside} of {} inside", all.len());
    let page = include_str!("../../../docs/measurements/whatif.md");
    let lines = table.lines().filter(|line| !page.contains(line)).collect::<Vec<_>>();
    assert!(lines.is_empty(), "docs/measurements/whatif.md lacks\n{}", lines.join("\n"));
    if !is_whole() {
        return;
    }
    assert!(page.contains(&format!("{inside} of {}", all.len())), "{inside} of {} are inside", all.len());
}

#[test]
fn swap_of_a_trace_is_changed() {
    let s = Sandbox::new();
    s.generate("heap.parquet", &["60000: A:zipf:4000:kind=anon,op=w,via=map"]);
    let result = json(&s, &["heap.parquet", "--swap", "none,zswap,disk", "--starts", "3"]);
    // Devices that answer at once have the same misses; zswap takes room of the group.
    assert_eq!(effect(&result, "swap disk", "misses")["change"], 0.0);
    assert_eq!(effect(&result, "swap zswap", "misses")["verdict"], "worse");
    let of = |name: &str| {
        let all = result["alternatives"].as_array().expect("alternatives");
        all.iter().find(|of| of["name"] == name).cloned().expect("a row")
    };
    assert_eq!(of("swap none")["failed"], "out of memory");
    let remark = of("swap zswap")["remark"].as_str().expect("a remark").to_owned();
    assert!(remark.starts_with("pool ") && remark.ends_with(" of CPU"), "{remark}");
    assert!(result["unknown"].to_string().contains("what pages shrink to"), "{result}");
    // The better pages shrink, the less is lost.
    let flags = ["heap.parquet", "--swap", "zswap", "--starts", "1", "--compression", "ratio=8"];
    let lost = |result: &Value| effect(result, "swap zswap", "misses")["change"].as_f64().expect("a number");
    assert!(lost(&json(&s, &flags)) < lost(&result));
    let today = json(&s, &["heap.parquet", "--from-swap", "zswap", "--limit", "150%"]);
    assert!(today["today"]["machine"].as_str().is_some_and(|machine| machine.ends_with("swap zswap")), "{today}");
}

#[test]
fn advice_is_of_recordings_and_min_ttl_of_scenarios() {
    let s = sandbox();
    let result = json(&s, &["recording.parquet", "--advice", "random", "--starts", "1"]);
    assert!(effect(&result, "advice random", "misses")["change"].as_f64().is_some(), "{result}");
    for (words, want) in [
        (&["zipf.parquet", "--advice", "random"][..], "page by page, without readahead"),
        (&["zipf.parquet", "--min-ttl", "1s"], "a scenario has kswapd"),
        (&["recording.parquet", "--min-ttl", "1s"], "a scenario has kswapd"),
        (&["zipf.parquet", "--swap", "zram"], "--swap: does nothing of a trace without anonymous memory"),
        (&["zipf.parquet", "--from-swap", "zram"], "--from-swap: does nothing of a trace without"),
        (&["zipf.parquet", "--compression", "ratio=3"], "--compression: does nothing without zram"),
        (&["zipf.parquet", "--page-by-page"], "is no recording"),
        (&["recording.parquet", "--page-by-page", "--swap", "zram"], "without anonymous memory"),
        (&["recording.parquet", "--from-swap", "zram"], "add --page-by-page"),
        (&["zipf.parquet", "--advice", "sequential"], "write random"),
        (&["tiny.toml", "--from-swap", "zram"], "is for a trace"),
        (&["tiny.toml", "--advice", "random"], "is said by phases of a scenario"),
    ] {
        let said = error(&s.run(&[&["whatif"], words].concat()));
        assert!(said.contains(want), "{words:?}: {said}");
    }
}
