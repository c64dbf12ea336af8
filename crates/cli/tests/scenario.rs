//! `refault replay` of scenarios: results and their forms.

use crate::common::command::{Sandbox, error, ok};
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
        "98.19%",
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

/// CPU time is in every form, and so are the settings of the machine.
#[test]
fn cpu_time_and_settings_are_said() {
    let s = sandbox();
    let text = TINY.replace("[machine]\n", "[machine]\nwatermark_scale_factor = 30\n");
    assert_ne!(text, TINY);
    let file = s.write("set.toml", text.as_bytes());
    let shown = ok(&s.replay(&file, &[]));
    assert!(shown.contains("of memory, seed 1; watermark_scale_factor 30\n"), "{shown}");
    let line = shown.lines().find(|line| line.starts_with("CPU time: kswapd0 ")).unwrap_or_else(|| panic!("{shown}"));
    assert!(line.contains(" % of a CPU, at most ") && line.contains("of that direct reclaim "), "{line}");
    let [run] = &runs(&ok(&s.replay(&file, &["--json"])))[..] else { panic!("one run") };
    assert_eq!(run["settings"]["machine.watermark_scale_factor"], 30);
    let kswapd = &run["cpu"]["kthreads"][0];
    assert!(kswapd["name"] == "kswapd0" && kswapd["seconds"].as_f64() > Some(0.0), "{kswapd}");
    assert!(run["tasks"][0]["iowait_seconds"].as_f64() > Some(0.0), "{}", run["tasks"][0]);
    assert!(run["mthp"]["64kB.swpout"].is_u64() && run["swap_slots"]["calls"].is_u64());
    let series = run["series"].as_object().expect("series");
    assert!(series.contains_key("pgsteal_file") && series.contains_key("kswapd_us"), "{:?}", series.keys());
    let page = s.path("page.html");
    ok(&s.replay(&file, &["--html", page.to_str().expect("plain"), "-o", "out.txt"]));
    let page = std::fs::read_to_string(page).expect("written");
    assert!(page.contains("CPU time of reclaim") && page.contains("pgsteal_file"), "charts of them");
}

/// Two programs with several threads, whose memory goes to a zram: they wait for its locks, and
/// flush each other's TLBs.
const CONTENDED: &str = r#"
name = "contended"
[machine]
cpus = 4
memory = "64M"
[machine.contention]
[device.zram0]
preset = "zram"
[[swap]]
device = "zram0"
size = "256M"
[object.heap]
kind = "anon"
size = "96M"
[[task]]
name = "writer"
count = 4
[[task.phase]]
write = "heap"
passes = 3
cpu = "1us"
"#;

#[test]
fn waits_of_cpus_for_each_other_are_shown_where_the_scenario_has_them() {
    let s = sandbox();
    let file = s.write("contended.toml", CONTENDED.as_bytes());
    let text = ok(&s.replay(&file, &[]));
    let line = text.lines().find(|line| line.starts_with("waits: for locks ")).unwrap_or_else(|| panic!("{text}"));
    let [run] = &runs(&ok(&s.replay(&file, &["--json"])))[..] else { panic!("one run") };
    let waits = &run["contention"];
    let locks = waits["locks"].as_array().expect("locks");
    assert!(locks.iter().any(|lock| lock["contended"].as_u64() > Some(0)), "{waits}");
    for lock in locks {
        let of = |field: &str| lock[field].as_f64().unwrap_or_else(|| panic!("{field}: {lock}"));
        assert!(
            of("contended") <= of("acquisitions") && (of("wait_seconds") > 0.0) == (of("contended") > 0.0),
            "{lock}"
        );
        let name = lock["name"].as_str().expect("a name");
        assert_eq!(line.contains(&format!(" {name} ")), of("contended") > 0.0, "{line} {lock}");
    }
    assert!(waits["flushes"].as_u64() > Some(0) && waits["flush_seconds"].as_f64() > Some(0.0), "{waits}");
    assert!(waits["interrupts"].as_u64() >= waits["flushes"].as_u64(), "{waits}");
    let without = s.write("alone.toml", CONTENDED.replace("[machine.contention]\n", "").as_bytes());
    assert!(!ok(&s.replay(&without, &[])).contains("waits:"));
    assert!(runs(&ok(&s.replay(&without, &["--json"])))[0].get("contention").is_none());
}

#[test]
fn csv_has_a_line_a_task() {
    let s = sandbox();
    let text = replay(&s, &["--csv", "--policy", "lru,mglru"]);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[0],
        "scenario,policy,scale,seed,task,copies,seconds,ops,ops_per_s,bytes_per_s,accesses,hits,hit_rate,p50_ns,p99_ns,\
         errors,user_seconds,system_seconds,reclaim_seconds,run_delay_seconds,iowait_seconds,throttled_seconds,\
         virtual_seconds,refaults,swap_ins,swap_outs,free_pages,psi_some_us,psi_full_us,oom_kills,kswapd_seconds,\
         direct_reclaim_seconds,ending,real_seconds,kernel,settings"
    );
    assert_eq!(lines.len(), 5);
    assert!(lines[1].starts_with("tiny,lru,1,1,first,1,") && lines[4].starts_with("tiny,mglru,1,1,second,1,"));
    let wide = replay(&s, &["--csv", "--vmstat"]);
    let heads: Vec<_> = wide.lines().next().expect("a head").split(',').collect();
    let names: std::collections::BTreeSet<_> = heads.iter().collect();
    assert_eq!(names.len(), heads.len(), "no two columns have one name");
    for name in ["pgscan_kswapd", "mthp.64kB.swpout", "swap.calls", "cpu.kswapd0.highest_percent"] {
        assert!(names.contains(&name), "{name}: {heads:?}");
    }
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
        "\nmthp.64kB.swpout ",
        "\nswap.calls ",
        "\ncpu.kswapd0.seconds ",
        "# tiny mglru: lru_gen\nmemcg     0 /",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let said = error(&s.run(&["replay", "tiny.toml", "--lru-gen"]));
    assert!(said.contains("--lru-gen: does nothing under lru; it acts on mglru"), "{said}");
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

/// Two swap devices that a group fills one after the other, and then is out of memory.
const TWO_SWAPS: &str = r#"
name = "two"
policy = { swap_slot_cache = false }
machine = { memory = "256M" }
device.a = { preset = "zram" }
device.b = { preset = "nvme" }
object.heap = { kind = "anon", size = "200M" }
[[swap]]
device = "b"
size = "32M"
priority = 1
[[swap]]
device = "a"
size = "16M"
priority = 2
[memcg."/g"]
max = "64M"
[[task]]
name = "t"
memcg = "/g"
phase = [{ write = "heap", passes = 1 }]
[[task]]
name = "rest"
phase = [{ duration = "1s" }]
"#;

#[test]
fn regression_a_task_that_was_killed_is_marked_and_said() {
    let s = Sandbox::new();
    let replay = |text: &str| ok(&s.replay(&s.write("killed.toml", text.as_bytes()), &[]));
    let lines = |text: &str| text.lines().filter(|line| line.contains("killed")).map(str::to_owned).collect::<Vec<_>>();
    let [row, line] = &lines(&replay(TWO_SWAPS))[..] else { panic!("a row and a line") };
    assert!(row.starts_with("t (OOM-killed) "), "{row}");
    assert_eq!(line, "t: it was killed for want of memory once; its figures are of the time before");
    // As much swap as it needs: nobody is killed, and nothing is said of it.
    let calm = TWO_SWAPS.replace("max = \"64M\"", "max = \"512M\"");
    assert_eq!(lines(&replay(&calm)), [""; 0]);
    // By a daemon: no OOM kill, and just as dead. Conditions that never hold are said to.
    let calm = calm.replace("passes = 1 }]", "passes = 1 }, { duration = \"5s\" }]");
    let event = "[[event]]\nkill = \"/g\"\nwhen = { available_below = ";
    let killed = replay(&format!("{calm}{event}\"200M\" }}\n"));
    assert!(killed.contains("\nt (killed) ") && killed.contains("\nt: it was killed by an event; "), "{killed}");
    let never = replay(&format!("{calm}{event}\"1M\" }}\n"));
    assert!(never.contains(": its conditions did not hold\n") && !never.contains("(killed)"), "{never}");
}

#[test]
fn swap_devices_fill_by_priority_and_full_swap_is_a_result() {
    let s = Sandbox::new();
    let path = s.write("two.toml", TWO_SWAPS.as_bytes());
    let text = ok(&s.replay(&path, &[]));
    assert!(text.contains(", 1 OOM kill, "), "{text}");
    // Multi-gen LRU swaps no more where fewer than 64 slots are free.
    let full = "at most 99.2%, priority 1, first used with 100.0% of higher ones in use\n";
    assert!(text.contains("swap 0 b: 0 of 8,191 pages used (0.0%), ") && text.contains(full), "{text}");
    assert!(text.contains("swap 1 a: 0 of 4,095 pages used (0.0%), at most 100.0%, priority 2\n"), "{text}");
    let run = runs(&ok(&s.replay(&path, &["--json"]))).remove(0);
    let [b, a] = [&run["swap"][0], &run["swap"][1]];
    assert_eq!((&b["device"], &b["peak_pages"], &b["higher_used_percent"]), (&"b".into(), &8128.into(), &100.0.into()));
    assert_eq!((&a["device"], &a["peak_pages"], &a["higher_used_percent"]), (&"a".into(), &4095.into(), &Value::Null));
    let (events, of_swap) = (&run["groups"][1]["memory.events"], &run["groups"][1]["memory.swap.events"]);
    assert!(of_swap["fail"] == 0 && of_swap["max"] == 0 && events["oom_kill"] == 1, "{events} {of_swap}");
    // A limit is met before the device is full. Multi-gen LRU stops 64 pages before it and never
    // asks for what is not there.
    let limited = TWO_SWAPS.replace("max = \"64M\"", "max = \"64M\"\nswap_max = \"8M\"");
    let flags = ["--json", "--policy", "lru"];
    let run = runs(&ok(&s.replay(&s.write("limited.toml", limited.as_bytes()), &flags))).remove(0);
    assert_eq!((&run["swap"][0]["peak_pages"], &run["swap"][1]["peak_pages"]), (&0.into(), &2048.into()));
    assert!(run["groups"][1]["memory.swap.events"]["max"].as_u64() > Some(0), "{run}");
}

/// Folios of 64 KiB and single pages share a device; the task ends with half of them in swap.
const FRAGMENTED: &str = r#"
name = "fragmented"
policy = { swap_slot_cache = false }
machine = { memory = "64M", thp = { 64K = "always" } }
device.z = { preset = "zram" }
swap = { device = "z", size = "64M" }
object.heap = { kind = "anon", size = "96M" }
[[task]]
name = "t"
phase = [{ write = "heap", passes = 1 }, { object = "heap", write_share = 0.5, pattern = "uniform", accesses = 20_000 }]
"#;

/// It showed empty devices: the task had ended, and its memory was free.
#[test]
fn the_swap_map_is_from_before_the_last_task_gives_its_memory_back() {
    let s = Sandbox::new();
    let path = s.write("fragmented.toml", FRAGMENTED.as_bytes());
    let run = runs(&ok(&s.replay(&path, &["--json", "--swap-map", "--check"]))).remove(0);
    assert_eq!(
        (&run["ending"], &run["node"]["swap_used_pages"]),
        (&"tasks-done".into(), &0.into()),
        "the end is later"
    );
    let device = &run["swap"][0];
    let n = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{value} of {device}"));
    // Pages beyond 64 MiB of memory are in swap.
    assert!(n(&device["used_pages"]) > 4096 && n(&device["used_pages"]) <= n(&device["peak_pages"]), "{device}");
    assert_eq!(n(&device["free_places"][0]), 16_383 - n(&device["used_pages"]), "{device}");
    let in_use =
        n(&device["clusters"]["full"]) + n(&device["clusters"]["nonfull"][4]) + n(&device["clusters"]["frag"][4]);
    assert!(in_use > 0 && n(&device["clusters"]["free"]) < 24, "{device}");
    let text = ok(&s.replay(&path, &["--swap-map"]));
    assert!(!text.contains("swap 0 z: 0 of"), "{text}");
    // Where `end` comes first it is the end.
    let earlier = FRAGMENTED.replace("name = \"fragmented\"", "name = \"fragmented\"\nend = \"50ms\"");
    let run = runs(&ok(&s.replay(&s.write("earlier.toml", earlier.as_bytes()), &["--json"]))).remove(0);
    assert_eq!((&run["ending"], &run["swap"][0]["used_pages"]), (&"time".into(), &run["node"]["swap_used_pages"]));
}

#[test]
fn a_swap_map_without_swap_says_so() {
    let s = sandbox();
    assert!(replay(&s, &["--swap-map"]).ends_with("\n# tiny lru: swap\nno swap device\n"));
}

/// A line says how much zswap held, of a scenario that has it.
#[test]
fn regression_zswap_is_in_the_table() {
    let s = sandbox();
    let heap = "zswap = { max_pool_percent = 20 }\nobject.h = { kind = \"anon\", size = \"80M\" }\n";
    let task = "[[task]]\nname = \"heap\"\nphase = [{ write = \"h\", passes = 1 }]\n";
    let swap = "name = \"z\"\nmachine = { memory = \"48M\" }\ndevice.d = { preset = \"nvme\" }\n\
        swap = { device = \"d\", size = \"64M\" }\n";
    let shown = ok(&s.replay(&s.write("z.toml", format!("{swap}{heap}{task}").as_bytes()), &[]));
    let line = shown.lines().find(|line| line.starts_with("zswap: ")).unwrap_or_else(|| panic!("{shown}"));
    assert!(
        line.contains(" stored, ") && line.contains(" written back; at the end ") && !line.starts_with("zswap: 0 "),
        "{line}"
    );
    assert!(!replay(&s, &[]).contains("\nzswap: "), "without it there is no line");
}

/// Pages that went out from different tiers come back as large folios, all of them by the shadow of
/// the first.
const MIXED_TIERS: &str = r#"
name = "mixed-tiers"
machine = { memory = "48M", cpus = 2, thp = { 16K = "always", 64K = "inherit", 256K = "always", defrag = "never", swap_in = true } }
policy = { name = "mglru", swap_slot_cache = true }
device.d = { preset = "ramdisk" }
swap = { device = "d", size = "14102p" }
memcg."/g" = { swap_max = "1M" }
object.h = { kind = "anon", size = "26M", content = { zero = 0.1, same = 0.1, incompressible = 0.2, ratio = 3 } }
object.g = { kind = "anon", size = "25M", private = true }
[[task]]
name = "a"
phase = [
    { object = "h", write_share = 0.5, pattern = "uniform", accesses = 12_000 },
    { page_out = "h", passes = 1 },
    { read = "h", passes = 1 },
]
[[task]]
name = "b"
count = 2
memcg = "/g"
phase = [{ object = "g", write_share = 0.7, pattern = "zipf", accesses = 9_000 }]
"#;

/// `--check` took that for an error of the engine (I4.4).
#[test]
fn large_swap_in_of_pages_from_several_tiers_is_no_violation() {
    let s = Sandbox::new();
    let path = s.write("mixed.toml", MIXED_TIERS.as_bytes());
    let run = runs(&ok(&s.replay(&path, &["--json", "--check"]))).remove(0);
    assert!(run["groups"][0]["counters"]["pswpin"].as_u64() > Some(0), "{run}");
}
