//! `refault replay --memcg-column`: traces with memory cgroups.

use crate::common::command::{Sandbox, error, ok, rows};
use serde_json::Value;
use std::path::PathBuf;

/// A service with a hot set in two groups, one that streams, one that leaks.
const PHASES: [&str; 2] = [
    "1000: idle:loop:500:memcg=/cron",
    "60000: web:zipf:2000:memcg=/web/front,weight=4; heap:zipf:1000:kind=anon,memcg=/web/back; \
     log:loop:9000:memcg=/stream; leak:seq:30000:kind=anon,op=w,memcg=/batch",
];

fn sandbox() -> (Sandbox, PathBuf) {
    let s = Sandbox::new();
    let trace = s.generate("tenants.parquet", &PHASES);
    (s, trace)
}

fn groups(row: &Value) -> Vec<&Value> {
    row["groups"].as_array().expect("groups").iter().collect()
}

fn of<'a>(row: &'a Value, path: &str) -> &'a Value {
    groups(row).into_iter().find(|g| g["path"] == path).unwrap_or_else(|| panic!("{path}: {row}"))
}

fn n(group: &Value, field: &str) -> u64 {
    group[field].as_u64().unwrap_or_else(|| panic!("{field}: {group}"))
}

#[test]
fn every_group_has_its_own_figures_and_those_above_the_sum() {
    let (s, trace) = sandbox();
    let all = rows(&ok(&s.replay(&trace, &["--memcg-column", "--json", "-m", "2000p,4000p", "--policy", "lru,mglru"])));
    assert_eq!(all.len(), 4);
    let json = |flags: &[&str]| ok(&s.run(&[&["trace", "info", "tenants.parquet", "--json"], flags].concat()));
    let info: Value = serde_json::from_str(&json(&[])).expect("JSON");
    for row in &all {
        let paths: Vec<_> = groups(row).iter().map(|g| g["path"].as_str().expect("a path")).collect();
        assert_eq!(paths, ["/", "/batch", "/cron", "/stream", "/web", "/web/back", "/web/front"]);
        for field in ["accesses", "hits", "misses", "refaults", "evicted_anon", "evicted_file", "swap_ins", "swap_outs"]
        {
            let sum = |paths: &[&str]| paths.iter().map(|path| n(of(row, path), field)).sum::<u64>();
            assert_eq!(n(of(row, "/web"), field), sum(&["/web/back", "/web/front"]), "{field}");
            assert_eq!(n(of(row, "/"), field), sum(&["/batch", "/cron", "/stream", "/web"]), "{field}");
        }
        for group in groups(row) {
            assert_eq!(n(group, "hits") + n(group, "misses"), n(group, "accesses"));
            assert!(group["gauges"]["memory.peak"].as_u64() <= row["memory_pages"].as_u64(), "{group}");
        }
        for known in info["groups"].as_array().expect("groups") {
            assert_eq!(n(of(row, known["path"].as_str().expect("a path")), "accesses"), n(known, "accesses"));
        }
        assert_eq!(of(row, "/")["accesses"], row["trace_accesses"]);
        // Under the two lists someone has taken memory from the idle one; multi-gen LRU may spare a
        // whole group.
        assert!(row["policy"] == "mglru" || n(of(row, "/cron"), "evicted_file") > 0);
        assert!(n(of(row, "/"), "refaults") > 0);
    }
    // Any number of threads gives the same, but for how long it took.
    let csv = |threads: &str| {
        let flags = ["--memcg-column", "--csv", "-m", "2000p,4000p", "--policy", "lru,mglru", "--threads", threads];
        let text = ok(&s.replay(&trace, &flags));
        // The speed is followed by the kernel and the settings.
        text.lines().map(|l| l.rsplitn(4, ',').last().expect("columns").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(csv("1"), csv("5"));
    assert_eq!(csv("1").len(), 1 + 4 * 7);
    assert!(csv("1")[0].starts_with("trace,policy,memory_pages,memory_bytes,footprint_pages,group,accesses,hits,"));
    assert!(csv("1")[0].contains(
        ",events_low,events_high,events_max,events_oom,events_oom_kill,events_oom_group_kill,swap_events_high,"
    ));
}

#[test]
fn one_group_is_what_a_plain_replay_is() {
    let s = Sandbox::new();
    let phase = |memcg: &str| {
        format!(
            "90000: a:zipf:3000{memcg}; b:loop:1500:op=w{}; h:zipf:900:kind=anon,op=w{}",
            memcg.replace(':', ","),
            memcg.replace(':', ",")
        )
    };
    let plain = s.generate("plain.parquet", &[&phase("")]);
    let grouped = s.generate("grouped.parquet", &[&phase(":memcg=/x")]);
    let limits = s.write("limits.toml", b"[group.\"/x\"]\nmemory.max = \"30%\"\n");
    let flags = ["--policy", "lru,mglru,lru-shadow,mglru-shadow", "--json"];
    let before = rows(&ok(&s.replay(&plain, &[&flags[..], &["-m", "30%"]].concat())));
    let file = ["--memcg-column", "--memcg-limits", limits.to_str().expect("plain")];
    let after = rows(&ok(&s.replay(&grouped, &[&flags[..], &file].concat())));
    assert_eq!((before.len(), after.len()), (4, 4));
    for (plain, grouped) in before.iter().zip(&after) {
        let group = of(grouped, "/x");
        assert!(grouped["memory_pages"].is_null() && group["limits"]["memory.max"] == plain["memory_pages"]);
        for field in ["accesses", "hits", "misses"] {
            assert_eq!(plain[field], group[field], "{field} of {}", plain["policy"]);
        }
        assert_eq!(plain["counters"], group["counters"]);
    }
}

#[test]
fn limits_are_kept_and_protect() {
    let (s, trace) = sandbox();
    let run = |limits: &str, flags: &[&str]| {
        s.write("limits.toml", limits.as_bytes());
        let flags =
            [&["--memcg-column", "--json", "--memcg-limits", "limits.toml", "--policy", "mglru"], flags].concat();
        rows(&ok(&s.replay(&trace, &flags))).remove(0)
    };
    // The leak is bounded, in memory and in swap; then it is killed and the others go on.
    let row = run("[group.\"/batch\"]\nmemory.max = \"1000p\"\nmemory.swap.max = \"2000p\"\n", &[]);
    assert!(row["memory_pages"].is_null(), "the limits of the file alone: {row}");
    let leak = of(&row, "/batch");
    assert!(n(leak, "killed_at") > 0 && n(leak, "skipped") > 0 && leak["memory.events"]["oom_kill"] == 1, "{leak}");
    assert!(leak["gauges"]["memory.peak"].as_u64() <= Some(1000) && leak["gauges"]["swap.current"] == 0);
    let info: Value = serde_json::from_str(&ok(&s.run(&["trace", "info", "tenants.parquet", "--json"]))).expect("JSON");
    let batch = info["groups"].as_array().expect("groups").iter().find(|g| g["path"] == "/batch").expect("there");
    assert_eq!(n(leak, "accesses") + n(leak, "skipped"), n(batch, "accesses"));
    assert!(of(&row, "/web")["killed_at"].is_null() && n(of(&row, "/web"), "refaults") == 0);
    // Protection keeps what plain pressure takes.
    let memory = ["-m", "3500p"];
    let bare = run("[group.\"/web\"]\nmemory.low = 0\n", &memory);
    let low = run("[group.\"/web\"]\nmemory.low = \"3200p\"\n", &memory);
    let rate = |row: &Value| of(row, "/web")["hit_rate"].as_f64().expect("a rate");
    assert!(rate(&low) > rate(&bare) + 0.02, "{} {}", rate(&low), rate(&bare));
    assert!(n(of(&low, "/web"), "refaults") < n(of(&bare, "/web"), "refaults"));
    // Beyond memory.high tasks would sleep, if reclaim does not help: here it does.
    let high = run("[group.\"/stream\"]\nmemory.high = \"500p\"\n", &[]);
    assert!(of(&high, "/stream")["memory.events"]["high"].as_u64() > Some(0), "{high}");
    assert!(of(&high, "/stream")["gauges"]["memory.current"].as_u64() <= Some(600));
    // A group that cannot reclaim sleeps.
    let slow = run("[group.\"/batch\"]\nmemory.high = \"500p\"\nmemory.swap.max = 0\n", &[]);
    assert!(n(of(&slow, "/batch"), "high_sleep_ns") > 1_000_000_000, "{}", of(&slow, "/batch"));
    let text =
        ok(&s.replay(&trace, &["--memcg-column", "--memcg-limits", "limits.toml", "--policy", "mglru", "--vmstat"]));
    assert!(text.contains("high 2.0M, swap.max 0; slept ") && text.contains("/batch: memory.events\n"), "{text}");
}

#[test]
fn defaults_of_memory_and_policies() {
    let (s, trace) = sandbox();
    s.write("low.toml", b"[group.\"/web\"]\nmemory.low = \"1M\"\n");
    s.write("max.toml", b"[group.\"/web\"]\nmemory.max = \"1M\"\n");
    let sizes = |flags: &[&str]| {
        let all = rows(&ok(&s.replay(&trace, &[&["--memcg-column", "--json"], flags].concat())));
        assert!(all.iter().all(|row| row["policy"] != "opt"));
        let mut sizes: Vec<_> = all.iter().map(|row| row["memory_pages"].as_u64()).collect();
        sizes.dedup();
        sizes
    };
    // Without a limit of their own groups share the usual three sizes; with one there is no other
    // limit.
    assert_eq!(sizes(&[]).len(), 3);
    assert_eq!(sizes(&["--memcg-limits", "low.toml", "--policy", "mglru"]).len(), 3);
    assert_eq!(sizes(&["--memcg-limits", "max.toml"]), [None]);
    assert_eq!(sizes(&["--memcg-limits", "max.toml", "-m", "2000p", "--policy", "all"]), [Some(2000)]);
    assert_eq!(sizes(&["-m", "max,2000p"]), [None, Some(2000)]);
}

#[test]
fn sizes_of_groups_of_traces() {
    let (s, trace) = sandbox();
    let size = |flags: &[&str]| s.run(&[&["size", trace.to_str().expect("plain")], flags].concat());
    let json =
        |flags: &[&str]| -> Value { serde_json::from_str(&ok(&size(&[flags, &["--json"]].concat()))).expect("JSON") };
    let found = json(&["--group", "/web", "--target", "hit_rate>85%"]);
    let answer = found["answer_pages"].as_u64().expect("an answer");
    assert!(found["limit"] == "memory.max" && found["group"] == "/web" && answer > 500, "{found}");
    // A replay with that limit says the same.
    s.write("limits.toml", format!("[group.\"/web\"]\nmemory.max = \"{answer}p\"\n").as_bytes());
    let row = &rows(&ok(
        &s.replay(&trace, &["--memcg-column", "--memcg-limits", "limits.toml", "--json", "--policy", "mglru"])
    ))[0];
    let points = found["points"].as_array().expect("points");
    let at = |pages: u64| points.iter().find(|p| p["pages"] == pages).expect("it was tried");
    assert_eq!(at(answer)["value"], of(row, "/web")["hit_rate"]);
    // Protection against the others; all of a trace; another policy.
    let low = json(&["--group", "/web", "--limit", "low", "--memory", "3500p", "--target", "refaults_per_access<1%"]);
    assert!(low["verdict"] == "found" && low["limit"] == "memory.low" && low["low_bytes"] == 0, "{low}");
    let whole = json(&["--target", "hit_rate>60%", "--policy", "lru", "--swap-max", "max"]);
    assert!(whole["group"] == "/" && whole["policy"] == "lru" && whole["answer_pages"].as_u64() > Some(100), "{whole}");
    // One that is killed meets nothing.
    let killed =
        size(&["--group", "/batch", "--target", "swap_ins_per_access<1%", "--swap-max", "0", "--range", "64p..512p"]);
    assert_eq!(killed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&killed.stdout).contains("killed for lack of memory"), "{killed:?}");
}

#[test]
fn a_trace_with_times_has_rates() {
    let s = Sandbox::new();
    let mut text = String::new();
    // Windows ticks: 10 ms apart; a loop of 40 pages.
    for i in 0..2000u64 {
        text += &format!("{},host,0,Read,{},4096,1\n", 128_166_372_000_000_000 + i * 100_000, i % 40 * 4096);
    }
    s.write("disk.csv", text.as_bytes());
    let msr = ["size", "disk.csv", "--format", "msr", "--as-page-cache", "--policy", "lru", "--json", "--target"];
    let run = |target: &str| s.run(&[&msr[..], &[target]].concat());
    let found: Value = serde_json::from_str(&ok(&run("refaults_per_s<1"))).expect("JSON");
    assert!(found["answer_pages"].as_u64() >= Some(40), "{found}");
    assert!(
        found["points"][0]["value"].as_f64() > Some(90.0),
        "100 accesses a second, and next to none a hit: {found}"
    );
}

#[test]
fn mistakes_are_one_line() {
    let (s, trace) = sandbox();
    let plain = s.generate("plain.parquet", &["900: A:loop:300"]);
    s.write("typo.toml", b"# limits\n[group.\"/wbe\"]\nmemory.max = \"2M\"\n");
    s.write("bad.toml", b"[group.\"/web\"]\nmemory.max = \"2Q\"\n");
    s.write("good.toml", b"[group.\"/web\"]\nmemory.max = \"2M\"\n");
    let before = s.files();
    let column = ["--memcg-column"];
    for (flags, want) in [
        (&["--memcg-limits", "good.toml"][..], "--memcg-limits good.toml: of a trace wants --memcg-column"),
        (&[&column[..], &["--memcg-limits", "none.toml"]].concat(), "none.toml: cannot be opened"),
        (
            &[&column[..], &["--memcg-limits", "typo.toml"]].concat(),
            "typo.toml:2: group \"/wbe\" is not in the trace, which has /batch, /cron, /stream, /web, /web/back, /web/front",
        ),
        (
            &[&column[..], &["--memcg-limits", "bad.toml"]].concat(),
            "bad.toml:2: group.\"/web\".memory.max: \"2Q\" is not a size",
        ),
        (&[&column[..], &["--policy", "opt"]].concat(), "--policy opt: knows no groups"),
        (&[&column[..], &["--policy", "lru,opt"]].concat(), "--policy opt: knows no groups"),
        (&[&column[..], &["--curve"]].concat(), "--curve: is not for --memcg-column; `refault size`"),
        (&[&column[..], &["--windows", "3"]].concat(), "--windows: is not for --memcg-column"),
        (&[&column[..], &["--lru-gen"]].concat(), "--lru-gen: is not for --memcg-column"),
        (&[&column[..], &["--miss-bits", "x"]].concat(), "--miss-bits: is not for --memcg-column"),
        (&[&column[..], &["--memory", "200%"]].concat(), "--beyond-footprint"),
        (&[&column[..], &["--output", "no/out"]].concat(), "cannot be written"),
        (&["--memory", "max"], "--memory max: with no limit nothing is reclaimed"),
    ] {
        let complaint = error(&s.replay(&trace, flags));
        assert!(complaint.contains(want), "{flags:?}: {complaint}");
    }
    let complaint = error(&s.replay(&plain, &column));
    assert!(complaint.contains("plain.parquet: says nothing of memory cgroups"), "{complaint}");
    s.write("tiny.toml", include_bytes!("data/tiny.toml"));
    let complaint = error(&s.replay(&s.path("tiny.toml"), &column));
    assert!(complaint.contains("what it has instead is memcg of a task"), "{complaint}");
    std::fs::remove_file(s.path("tiny.toml")).expect("there");
    let hit = ["--target", "hit_rate>50%"];
    for (flags, want) in [
        (
            &["--target", "some.avg60<1%"][..],
            "so a trace has no some.avg60; it has refaults_per_s, refaults_per_access",
        ),
        (&["--target", "p99<1ms"], "so a trace has no p99"),
        (&["--target", "refaults_per_s<1"], "has no times; ask for refaults_per_access"),
        (&[&hit[..], &["--group", "/wbe"]].concat(), "--group \"/wbe\" is not a group of the trace, which has /batch"),
        (
            &[&hit[..], &["--memory", "4M"]].concat(),
            "--memory 4M: is of all groups together, and without a --group that is what is looked for",
        ),
        (&[&hit[..], &["--limit", "high"]].concat(), "--limit high: all of the trace has only max"),
        (&[&hit[..], &["--group", "/web", "--limit", "low"]].concat(), "nothing to protect from; give --memory"),
        (&[&hit[..], &["--group", "/web", "--memory", "0"]].concat(), "--memory 0: is less than one page"),
        (&[&hit[..], &["--range", "1M..max"]].concat(), "max is no size"),
        (&[&hit[..], &["--resolution", "max"]].concat(), "--resolution max: is not a size"),
        (
            &[&hit[..], &["--group", "/web", "--memory", "4M", "--range", "1M..8M"]].concat(),
            "8M is more than there is, 4.0M",
        ),
        (&[&hit[..], &["--scale", "2"]].concat(), "--scale: is for a scenario"),
        (&[&hit[..], &["--memcg-limits", "typo.toml"]].concat(), "typo.toml:2: group \"/wbe\" is not in the trace"),
        (&[&hit[..], &["--set", "recency=9"]].concat(), "it takes"),
    ] {
        let complaint = error(&s.run(&[&["size", "tenants.parquet"], flags].concat()));
        assert!(complaint.contains(want), "{flags:?}: {complaint}");
    }
    assert_eq!(s.files(), before, "nothing is left behind");
}
