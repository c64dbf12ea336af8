//! Promises of the pages about results of scenarios, kept in JSON, in text and on pages.

use crate::common::command::{Sandbox, ok};
use serde_json::Value;

const KEYS: &str = include_str!("../../../docs/reference/scenario-keys.md");

/// A machine with events that repeat, kill, and fail.
const EVENTFUL: &str = r#"
name = "eventful"
end = "4s"
machine = { cpus = 1, memory = "512M", thp = { enabled = "madvise" } }
memcg."/a" = { max = "64M" }
object.x = { kind = "anon", size = "8M" }
object.y = { kind = "anon", size = "8M" }
[[task]]
name = "loop"
[[task.phase]]
step = [{ read = "x", passes = 1 }]
repeat = 3
record = true
[[task.phase]]
read = "x"
think = "10ms"
until = "3500ms"
[[task]]
name = "victim"
memcg = "/a"
phase = [{ write = "y", think = "10ms" }]
[[event]]
at = "500ms"
remove = "/a"
[[event]]
at = "1s"
kill = "/a"
[[event]]
at = "1s"
reclaim = "/"
amount = "64K"
every = "1s"
"#;

fn eventful(s: &Sandbox, flags: &[&str]) -> String {
    ok(&s.replay(&s.write("eventful.toml", EVENTFUL.as_bytes()), flags))
}

fn json(s: &Sandbox) -> Value {
    let all: Value = serde_json::from_str(&eventful(s, &["--json"])).expect("JSON");
    all["runs"][0].clone()
}

/// Whether a run keeps a promise.
type Kept = fn(&Value) -> bool;

/// Promises of the page about keys, by words of theirs.
const PROMISES: [(&str, Kept); 4] = [
    ("which the result says", |run| run["node"]["min_free_kbytes"].as_u64() > Some(11_000)),
    ("results say why", |run| run["timeline"][0]["failed"].as_str().is_some_and(|why| why.contains("victim"))),
    ("Results have a line for each event", |run| run["timeline"].as_array().is_some_and(|all| all.len() == 3)),
    ("is a result (`iteration.TASK...`", |run| {
        run["iterations"][0]["counters"].as_array().is_some_and(|times| times.len() == 3)
    }),
];

#[test]
fn what_the_page_of_keys_promises_of_results_is_in_json() {
    let run = json(&Sandbox::new());
    let page = KEYS.split_whitespace().collect::<Vec<_>>().join(" ");
    for (words, kept) in PROMISES {
        assert!(page.contains(words), "{words:?} is promised no more: take it out here");
        assert!(kept(&run), "{words}: {run}");
    }
    let promised =
        ["result says", "results say", "Results have", "is a result ("].map(|said| page.matches(said).count());
    assert_eq!(promised.iter().sum::<usize>(), PROMISES.len(), "each promise has a check here");
}

#[test]
fn the_marks_in_force_are_a_result() {
    let run = json(&Sandbox::new());
    let zones = run["node"]["zones"].as_array().expect("zones");
    let sum = |what: &str| zones.iter().map(|z| z[what].as_u64().expect("a number")).sum::<u64>();
    let kbytes = run["node"]["min_free_kbytes"].as_u64().expect("a number");
    assert!((kbytes - 12..=kbytes).contains(&(4 * sum("min"))), "{kbytes}: {zones:?}");
    assert!(sum("min") < sum("low") && sum("low") < sum("high") && sum("high") < sum("managed_pages"));
}

#[test]
fn events_say_every_time_and_tasks_who_killed_them() {
    let s = Sandbox::new();
    let run = json(&s);
    let reclaim = &run["timeline"][2];
    assert_eq!(reclaim["happened_at_seconds"].as_array().map(Vec::len), reclaim["times"].as_u64().map(|n| n as usize));
    assert!(reclaim["last_at_seconds"].as_f64() >= Some(3.0), "{reclaim}");
    let victim = &run["tasks"][1];
    assert_eq!((&victim["killed"], &victim["oom_kills"]), (&1.into(), &0.into()));
    assert_eq!((&run["groups"][1]["tasks"]["killed"], &run["tasks"][0]["killed"]), (&1.into(), &0.into()));
    let text = eventful(&s, &["--html", s.path("page.html").to_str().expect("a name")]);
    assert!(text.contains(", the last at 3.") || text.contains(", the last at 4."), "{text}");
    let page = std::fs::read_to_string(s.path("page.html")).expect("a page");
    for part in ["1 kill by events", "killed by events", "kill in /a"] {
        assert!(page.contains(part), "{part}");
    }
}

/// One of a thing has no plural.
#[test]
fn one_is_no_plural() {
    let s = Sandbox::new();
    let text = eventful(&s, &[]) + &eventful(&s, &["--swap-map"]);
    let words: Vec<&str> = text.split([' ', '\n', ',', '(']).collect();
    let wrong = |pair: &&[&str]| pair[0] == "1" && pair[1].len() > 2 && pair[1].ends_with('s') && pair[1] != "pass";
    let wrong: Vec<_> = words.windows(2).filter(wrong).collect();
    assert!(wrong.is_empty(), "{wrong:?}: {text}");
}
