//! Results per memory cgroup of a scenario.

use crate::common::command::{Sandbox, error, ok};
use serde_json::Value;

const GROUPS: &str = include_str!("data/groups.toml");

fn sandbox() -> Sandbox {
    let s = Sandbox::new();
    s.write("groups.toml", GROUPS.as_bytes());
    s
}

#[test]
fn a_table_of_groups_stands_below_the_tasks() {
    let s = sandbox();
    let text = ok(&s.replay(&s.path("groups.toml"), &["--check"]));
    let line = |start: &str| {
        let found = text.lines().find(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("{start}: {text}")).split_whitespace().collect::<Vec<_>>()
    };
    assert!(line("group ").contains(&"peak"), "{text}");
    // The group above a group has what the group has; the machine has all.
    assert_eq!(line("/a ")[1..], line("/a/web ")[1..]);
    // It goes on below with what a line of 100 columns has no room for.
    let leak = text.lines().rfind(|line| line.starts_with("/b ")).expect("a line");
    let words: Vec<_> = leak.split_whitespace().collect();
    assert!(words.join(" ").ends_with("1 1 max 16.0M, swap.max 24.0M"), "one kill, and its limits: {leak:?}");
    assert_eq!(line("/ ")[1], "-", "the machine has no memory.peak");
    // Without groups there is no such table.
    s.write("tiny.toml", include_bytes!("data/tiny.toml"));
    assert!(!ok(&s.replay(&s.path("tiny.toml"), &[])).contains("group "));
}

#[test]
fn json_has_what_groups_did_and_suffered() {
    let s = sandbox();
    let text = ok(&s.replay(&s.path("groups.toml"), &["--json"]));
    let all: Value = serde_json::from_str(&text).expect("JSON");
    let run = &all["runs"][0];
    let groups = run["groups"].as_array().expect("groups");
    let paths: Vec<_> = groups.iter().map(|g| g["path"].as_str().expect("a path")).collect();
    assert_eq!(paths, ["/", "/a", "/b", "/a/web"]);
    let [machine, _, leak, web] = &groups[..] else { panic!("four groups") };
    assert_eq!(leak["limits"], serde_json::json!({"memory.max": 4096, "memory.swap.max": 6144}));
    assert_eq!((&web["limits"], &machine["memory.events"]), (&serde_json::json!({}), &serde_json::json!({})));
    assert!(leak["memory.events"]["max"].as_u64() > Some(0) && leak["memory.events"]["oom_kill"] == 1, "{leak}");
    assert!(leak["reclaimed_pages"].as_u64() >= Some(2048) && leak["tasks"]["oom_kills"] == 1);
    assert!(leak["counters"]["memory.peak"].as_u64() <= Some(4096));
    let task = &run["tasks"][0];
    for field in ["ops", "ops_per_s", "accesses", "hits", "hit_rate", "errors", "latency_ns"] {
        assert_eq!(web["tasks"][field], task[field], "{field}");
    }
    let sum = |field: &str| web["tasks"][field].as_u64().unwrap() + leak["tasks"][field].as_u64().unwrap();
    assert_eq!(machine["tasks"]["accesses"].as_u64(), Some(sum("accesses")));
    for group in groups {
        for kind in ["some", "full"] {
            let line = &group["memory.pressure"][kind];
            for window in ["avg10", "avg60", "avg300"] {
                assert!(line["highest"][window].as_f64() >= line[window].as_f64(), "{line}");
            }
        }
    }
}

#[test]
fn numbers_of_groups_are_metrics() {
    let s = sandbox();
    let metrics = [
        "psi_some_us",
        "psi_full_avg10",
        "psi_some_avg60_max",
        "events_max",
        "events_oom_kill",
        "task_hit_rate",
        "task_p99_ns",
        "task_reclaim_us",
        "task_oom_kills",
        "pgsteal_anon",
    ];
    let mut text = format!("{GROUPS}\n[published.before]\npolicy = \"lru\"\n[published.after]\npolicy = \"mglru\"\n");
    for metric in metrics {
        text += &format!("[[published.row]]\nmetric = \"memcg./b.{metric}\"\n");
    }
    let file = s.write("published.toml", text.as_bytes());
    let out = ok(&s.run(&["bench", file.to_str().expect("plain"), "--scale", "1"]));
    assert!(metrics.iter().all(|metric| out.contains(metric)), "{out}");
    let wrong = text.replace("memcg./b.events_max", "memcg./b.events_maximum");
    let file = s.write("wrong.toml", wrong.as_bytes());
    let error = error(&s.run(&["bench", file.to_str().expect("plain"), "--scale", "1"]));
    assert!(error.contains("memcg./b.events_maximum is not a result of a run"), "{error}");
}

#[test]
fn limits_of_a_file_replace_those_of_the_scenario() {
    let s = sandbox();
    s.write("limits.toml", b"[group.\"/b\"]\nmemory.max = \"20M\"\n[group.\"/a/web\"]\nmemory.min = \"8M\"\n");
    let flags = ["--memcg-limits", "limits.toml", "--json"];
    let all: Value = serde_json::from_str(&ok(&s.replay(&s.path("groups.toml"), &flags))).expect("JSON");
    let groups = &all["runs"][0]["groups"];
    // Limits that the file does not name are the kernel's defaults, not the scenario's.
    assert_eq!(groups[2]["limits"], serde_json::json!({"memory.max": 5120}));
    assert_eq!(groups[3]["limits"], serde_json::json!({"memory.min": 2048}));
    assert_eq!(groups[1]["limits"], serde_json::json!({}));
    let size = ["size", "groups.toml", "--memcg-limits", "limits.toml", "--group", "/a/web", "--target", "hit_rate>1%"];
    assert!(ok(&s.run(&size)).contains("answer: memory.max = "));
    s.write("typo.toml", b"\n[group.\"/c\"]\nmemory.max = \"20M\"\n");
    for args in [
        &["replay", "groups.toml", "--memcg-limits", "typo.toml"][..],
        &size.map(|word| word.replace("limits.t", "typo.t")).each_ref().map(|w| w.as_str())[..],
    ] {
        let complaint = error(&s.run(args));
        assert!(
            complaint.contains("typo.toml:2: group \"/c\" is not in the scenario groups, which has /a, /b, /a/web"),
            "{complaint}"
        );
    }
}

/// Two groups that write more than they may have, with zswap before the disk.
const SWAPPING: &str = r#"
name = "swapping"
end = "2s"
[machine]
cpus = 2
memory = "64M"
[device.disk]
preset = "nvme"
[swap]
device = "disk"
size = "128M"
[zswap]
[object.left]
kind = "anon"
size = "40M"
[object.right]
kind = "anon"
size = "30M"
[[task]]
name = "left"
memcg = "/left"
[[task.phase]]
write = "left"
pattern = "uniform"
until = "end"
[[task]]
name = "right"
memcg = "/right"
[[task.phase]]
write = "right"
pattern = "uniform"
until = "end"
"#;

/// Limits of theirs as a scenario has them, and the same as a file has them.
const OWN_LIMITS: &str = "[memcg.\"/left\"]\nmin = \"1M\"\nlow = \"2M\"\nhigh = \"20M\"\nmax = \"24M\"\nswap_high = \"8M\"\n\
    swap_max = \"100M\"\nzswap_max = \"2M\"\nswappiness = 100\noom_group = true\n\
    [memcg.\"/right\"]\nhigh = \"16M\"\nzswap_writeback = false\n";
const FILE_LIMITS: &str = "[group.\"/left\"]\nmemory.min = \"1M\"\nmemory.low = \"2M\"\nmemory.high = \"20M\"\n\
    memory.max = \"24M\"\nmemory.swap.high = \"8M\"\nmemory.swap.max = \"100M\"\nmemory.zswap.max = \"2M\"\n\
    memory.swappiness = 100\nmemory.oom.group = 1\n\
    [group.\"/right\"]\nmemory.high = \"25%\"\nmemory.zswap.writeback = 0\n";

#[test]
fn every_limit_has_the_name_of_its_file_and_is_kept() {
    let s = Sandbox::new();
    let own = s.write("own.toml", format!("{SWAPPING}{OWN_LIMITS}").as_bytes());
    let bare = s.write("bare.toml", format!("{SWAPPING}[memcg.\"/left\"]\n[memcg.\"/right\"]\n").as_bytes());
    s.write("limits.toml", FILE_LIMITS.as_bytes());
    let groups = |file: &std::path::Path, flags: &[&str]| {
        let all: Value = serde_json::from_str(&ok(&s.replay(file, &[flags, &["--json"]].concat()))).expect("JSON");
        all["runs"][0]["groups"].clone()
    };
    let found = groups(&own, &["--check"]);
    assert_eq!(
        found,
        groups(&bare, &["--memcg-limits", "limits.toml"]),
        "a file of limits is the same as a scenario's"
    );
    let (left, right) = (&found[1], &found[2]);
    let limits = serde_json::json!({
        "memory.min": 256, "memory.low": 512, "memory.high": 5120, "memory.max": 6144, "memory.swap.high": 2048,
        "memory.swap.max": 25600, "memory.zswap.max": 512, "memory.swappiness": 100, "memory.oom.group": 1,
    });
    assert_eq!(left["limits"], limits);
    assert_eq!(right["limits"], serde_json::json!({"memory.high": 4096, "memory.zswap.writeback": 0}));
    let n = |value: &Value| value.as_u64().expect("a number");
    // Swap beyond swap.high is said; what zswap holds beyond zswap.max is written back, but where
    // that is forbidden.
    assert!(n(&left["memory.swap.events"]["high"]) > 0 && n(&right["memory.swap.events"]["high"]) == 0, "{found}");
    // As in Linux the limit is looked at before a page is stored, so the last one may reach beyond
    // it.
    assert!(n(&left["counters"]["zswap_bytes"]) < (2 << 20) + 4096 && n(&left["counters"]["zswpwb"]) > 0, "{left}");
    assert!(n(&right["counters"]["zswpout"]) > 0 && n(&right["counters"]["pswpout"]) == 0, "{right}");
    assert!(n(&left["memory.peak"]) <= 24 << 20 && n(&right["memory.events"]["high"]) > 0, "{found}");
}

#[test]
fn mistakes_in_limits_of_a_scenario_speak_of_its_machine() {
    let s = sandbox();
    for (text, want) in [
        ("[group.\"/b\"]\nmemory.max = \"2Q\"\n", "or 25% (of the machine's memory)"),
        ("[group.\"/\"]\nmemory.max = \"2M\"\n", "machine.memory of a scenario"),
    ] {
        s.write("limits.toml", text.as_bytes());
        let complaint = error(&s.replay(&s.path("groups.toml"), &["--memcg-limits", "limits.toml"]));
        assert!(complaint.contains(want), "{complaint}");
    }
}
