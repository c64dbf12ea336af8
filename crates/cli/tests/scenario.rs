//! `refault replay` of scenarios: results and their forms.

#[path = "common/command.rs"]
mod command;

use command::{Sandbox, ok};
use serde_json::Value;

const TINY: &str = include_str!("data/tiny.toml");

fn sandbox() -> Sandbox {
    let s = Sandbox::new();
    s.write("tiny.toml", TINY.as_bytes());
    s
}

fn replay(s: &Sandbox, flags: &[&str]) -> String {
    ok(&s.replay(&s.path("tiny.toml"), flags))
}

fn runs(text: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(all["refault"], env!("CARGO_PKG_VERSION"));
    all["runs"].as_array().expect("runs").clone()
}

#[test]
fn a_table_of_tasks_and_a_line_for_the_machine() {
    let s = sandbox();
    let text = replay(&s, &[]);
    assert!(text.starts_with("tiny: One file set in a loop"), "{text}");
    // The policy is the scenario's own.
    for part in [
        "2 CPUs, 64.0M of memory, seed 1\n",
        "\nlru ",
        "\nfirst ",
        "\nsecond ",
        "81,920",
        "\nmachine: ",
        "all tasks done",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let all = replay(&s, &["--policy", "all", "--threads", "3"]);
    let machines = all.lines().filter(|line| line.starts_with("machine: ")).count();
    // OPT has no place here.
    assert_eq!(machines, 6);
    assert!(all.contains(text.split_once("\n\n").expect("a caption").1), "the same run gives the same text");
}

#[test]
fn json_has_the_documented_fields() {
    let s = sandbox();
    let text = replay(&s, &["--policy", "lru-none,mglru", "--json", "--lru-gen", "--check", "--seed", "7"]);
    let [before, after] = &runs(&text)[..] else { panic!("two runs") };
    for (run, policy) in [(before, "lru-none"), (after, "mglru")] {
        assert_eq!((run["scenario"].as_str(), run["policy"].as_str()), (Some("tiny"), Some(policy)));
        assert!(run["scale"] == 1.0 && run["seed"] == 7 && run["ending"] == "tasks-done" && run["oom_kills"] == 0);
        assert!(run["virtual_seconds"].as_f64() > Some(1.0) && run["real_seconds"].is_number());
        let task = &run["tasks"][1];
        assert!(task["name"] == "second" && task["count"] == 1 && task["accesses"] == 81_920 && task["errors"] == 0);
        let [hits, rate, seconds, bytes] =
            ["hits", "hit_rate", "seconds", "bytes_per_s"].map(|f| task[f].as_f64().expect(f));
        assert!((hits / 81_920.0 - rate).abs() < 1e-12 && (bytes * seconds / 4096.0 - 81_920.0).abs() < 1e-3);
        let latency = ["p50", "p90", "p99", "p999", "max"].map(|f| task["latency_ns"][f].as_u64().expect(f));
        assert!(latency.is_sorted() && latency[0] > 0, "{latency:?}");
        let machine = &run["groups"][0];
        assert!(machine["path"] == "/" && machine["counters"]["pgsteal_file"].as_u64() > Some(0));
        let total = |kind: &str| machine["memory.pressure"][kind]["total_us"].as_u64().expect(kind);
        assert!(total("some") >= total("full") && machine["memory.pressure"]["some"]["avg10"].is_number());
        assert!(run["devices"][0]["name"] == "disk" && run["devices"][0]["read_bytes"].as_u64() > Some(80 << 20));
        assert!(run["node"]["free_pages"].as_u64() < run["node"]["managed_pages"].as_u64());
    }
    assert!(before.get("lru_gen").is_none() && after["lru_gen"].is_string());
}

#[test]
fn csv_has_a_line_a_task() {
    let s = sandbox();
    let text = replay(&s, &["--csv", "--policy", "lru,mglru"]);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[0],
        "scenario,policy,scale,seed,task,copies,seconds,ops,ops_per_s,bytes_per_s,accesses,hits,hit_rate,p50_ns,p99_ns,\
         errors,virtual_seconds,refaults,swap_ins,swap_outs,free_pages,psi_some_us,psi_full_us,oom_kills,ending,real_seconds"
    );
    assert_eq!(lines.len(), 5);
    assert!(lines[1].starts_with("tiny,lru,1,1,first,1,") && lines[4].starts_with("tiny,mglru,1,1,second,1,"));
    let wide = replay(&s, &["--csv", "--vmstat"]);
    let columns: Vec<_> = wide.lines().map(|line| line.split(',').count()).collect();
    assert!(columns[0] > 60 && columns.iter().all(|&n| n == columns[0]), "{columns:?}");
}

#[test]
fn counters_pressure_and_generations() {
    let s = sandbox();
    let text = replay(&s, &["--vmstat", "--lru-gen", "--policy", "mglru"]);
    for part in [
        "# tiny mglru /: counters and sizes\n",
        "\nworkingset_refault_file ",
        "\nsome avg10=",
        "\nfull avg10=",
        " avg300=",
        "# tiny mglru device disk\n",
        "\nread_bytes ",
        "# tiny mglru: lru_gen\nmemcg     0 /",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!replay(&s, &["--lru-gen"]).contains("lru_gen"), "two lists have none");
}

#[test]
fn the_series_goes_whole_into_a_file() {
    let s = sandbox();
    let shown = replay(&s, &["--series", "series.csv", "--output", "table.txt"]);
    assert!(shown.is_empty(), "{shown}");
    let series = std::fs::read_to_string(s.path("series.csv")).expect("written");
    assert!(series.starts_with("seconds,") && series.lines().next().is_some_and(|line| line.contains(",free_pages,")));
    // One sample every 100 ms and one at the end.
    assert!(series.lines().count() > 10, "{series}");
    assert!(std::fs::read_to_string(s.path("table.txt")).expect("written").contains("machine: "));
    assert_eq!(s.files(), ["series.csv", "table.txt", "tiny.toml"]);
}

#[test]
fn a_scenario_is_known_by_its_content_too() {
    let s = sandbox();
    let path = s.write("scenario", format!("\n# A scenario.\n{TINY}").as_bytes());
    assert!(ok(&s.replay(&path, &[])).starts_with("tiny: "));
}

#[test]
fn a_smaller_machine() {
    let s = sandbox();
    let text = replay(&s, &["--scale", "4"]);
    assert!(text.contains("16.0M of memory, seed 1, scale 4\n") && text.contains("20,480"), "{text}");
}

#[test]
fn threads_change_nothing() {
    let s = sandbox();
    let run = |threads: &str| {
        let mut all = runs(&replay(&s, &["--policy", "all", "--json", "--threads", threads]));
        assert!(all.iter_mut().all(|run| run.as_object_mut().and_then(|run| run.remove("real_seconds")).is_some()));
        all
    };
    let one = run("1");
    assert_eq!(one.len(), 6);
    assert_eq!(one, run("4"));
}
