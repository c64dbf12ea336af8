//! Events of the machine: sysctls, swap that comes and goes, memory that is added, daemons.

use refault_lab::machine::{EventResult, Machine, RunResult};
use refault_lab::scenario::Scenario;

const BASE: &str = r#"
name = "machine-events"
end = "30s"
policy = { name = "lru" }
machine = { cpus = 2, memory = "256M" }
device.swap = { preset = "zram" }
device.ssd = { preset = "sata-ssd" }
memcg."/pod-a" = {}
memcg."/pod-b" = {}
object.file = { kind = "file", size = "320M", device = "ssd", memcg = "/" }
object.heap-a = { kind = "anon", size = "96M" }
object.heap-b = { kind = "anon", size = "64M" }
[[task]]
name = "a"
memcg = "/pod-a"
phase = [{ write = "heap-a", passes = 1 }, { object = "heap-a", pattern = "uniform", write_share = 0.5, rate = "3000/s", until = "end" }]
[[task]]
name = "b"
memcg = "/pod-b"
phase = [{ write = "heap-b", passes = 1 }, { until = "end" }]
[[task]]
name = "read"
phase = [{ read = "file", rate = "10000/s", until = "end" }]
"#;

const SWAP: &str = "swap = { device = \"swap\", size = \"256M\" }\n";

/// With swap, unless it is for pages that would have room, the tasks have more than the machine.
fn parse(head: &str, text: &str) -> Result<Scenario, String> {
    let base = if head.is_empty() || head.contains("200") {
        BASE.to_owned()
    } else {
        BASE.replace("\"96M\"", "\"160M\"").replace("\"64M\"", "\"96M\"")
    };
    Scenario::parse("events.toml", &format!("{head}{base}{text}")).map_err(|e| e.to_string())
}

fn run(head: &str, text: &str) -> RunResult {
    let s = parse(head, text).expect("a scenario");
    Machine::new(&s, &s.policy).expect("a machine").checked().run().expect("runs")
}

fn event<'a>(r: &'a RunResult, what: &str) -> &'a EventResult {
    r.timeline.iter().find(|e| e.what == what).unwrap_or_else(|| panic!("{what}: {:?}", r.timeline))
}

fn at(r: &RunResult, column: &str, second: u64) -> f64 {
    let place = r.series.columns().iter().position(|c| c == column).expect("a column");
    let row = r.series.rows().find(|(ns, _)| *ns == second * 1_000_000_000).expect("a row");
    row.1[place]
}

fn event_at(what: &str) -> String {
    format!("[[event]]\nat = \"10500ms\"\n{what}\n")
}

#[test]
fn sysctls_change_what_the_machine_does() {
    let r = run("", &event_at("sysctl = { drop_caches = 1 }"));
    assert_eq!(event(&r, "sysctl vm.drop_caches=1").failed, None);
    let files = |second| at(&r, "file_pages", second);
    assert!(files(11) < files(10) - 3000.0, "{} {}", files(11), files(10));
    let r = run(SWAP, &event_at("sysctl = { min_free_kbytes = 40000, watermark_scale_factor = 300 }"));
    assert_eq!(event(&r, "sysctl vm.min_free_kbytes=40000 vm.watermark_scale_factor=300").failed, None);
    assert!(at(&r, "free_pages", 10) < 10_000.0 && at(&r, "free_pages", 15) > 10_000.0);
    let outs = |swappiness: u32| {
        let set = event_at(&format!("sysctl = {{ swappiness = {swappiness} }}"));
        let r = run(SWAP, &format!("{set}[[event]]\nat = \"12s\"\nreclaim = \"/\"\namount = \"30M\"\n"));
        at(&r, "pswpout", 20) - at(&r, "pswpout", 11)
    };
    assert!(outs(200) > 2.0 * outs(0).max(100.0), "{} {}", outs(200), outs(0));
}

#[test]
fn swap_comes_and_goes() {
    let roomy = "swap = { device = \"swap\", size = \"200M\" }\n";
    let off = roomy.replace("device =", "enabled = false, device =");
    let ask = |s: &str| format!("[[event]]\nat = \"{s}s\"\nreclaim = \"/pod-b\"\namount = \"20M\"\n");
    let r = run(&off, &format!("{}{}{}", ask("3"), event_at("swapon = \"swap\""), ask("12")));
    assert_eq!((at(&r, "pswpout", 10), &event(&r, "swapon swap").failed), (0.0, &None));
    assert!(at(&r, "pswpout", 15) >= 5000.0);
    let on = "[[event]]\nat = \"20500ms\"\nswapon = \"swap\"\n";
    let r = run(roomy, &format!("{}{}{on}{}", ask("3"), event_at("swapoff = \"swap\""), ask("22")));
    assert_eq!((&event(&r, "swapoff swap").failed, &event(&r, "swapon swap").failed), (&None, &None));
    assert!(at(&r, "swap_pages", 10) >= 5000.0);
    assert_eq!((at(&r, "swap_pages", 15), r.oom_kills), (0.0, 0));
    assert!(at(&r, "swap_pages", 30) >= 5000.0);
    let twice = run(roomy, &event_at("swapon = \"swap\""));
    assert_eq!(twice.timeline[0].failed.as_deref(), Some("it is on already"));
}

#[test]
fn memory_is_added() {
    let r = run(SWAP, &event_at("add_memory = \"512M\""));
    assert_eq!(event(&r, "add 512 MiB of memory").failed, None);
    assert_eq!(r.node.managed_pages, (256 + 512) << 8);
    let taken = |from: u64| at(&r, "pgsteal_file", from + 1) - at(&r, "pgsteal_file", from);
    assert!(taken(29) < 100.0 && taken(9) > 1000.0, "{} {}: the file has room then", taken(29), taken(9));
}

#[test]
fn a_daemon_kills_once_its_conditions_hold() {
    let r = run("", "[[event]]\ndaemon = \"earlyoom\"\nwhen = { available_below = \"128M\" }\n");
    let e = event(&r, "earlyoom: kill in /");
    assert_eq!((e.killed, &e.victims[..], r.oom_kills), (1, &["a".to_owned()][..], 0));
    let first = e.at_ns.expect("it happened");
    // By group the same, below that which is named; and only when it has held for long enough.
    let text = "[[event]]\nkill = \"/pod-b\"\nvictim = \"largest-group\"\nwhen = { available_below = \"128M\" }\nhold = \"3s\"\n";
    let e = &run("", text).timeline[0];
    assert_eq!(e.victims, ["/pod-b"]);
    assert!(e.at_ns.expect("it happened") >= first + 2_900_000_000);
}

#[test]
fn conditions_on_pressure_and_counters() {
    let conditions = [
        ("{ counter = \"pswpout\", rises_above = 10 }", true),
        ("{ counter = \"pgpromote_success\" }", false),
        ("{ some_stall_above = \"10us\" }", true),
        ("{ memcg = \"/pod-b\", full_avg10_above = 90 }", false),
        ("[{ full_avg10_above = 99 }, { free_swap_below = \"100%\" }]", true),
    ];
    // The value that it has: no event changes what the others see.
    let text = conditions.map(|(when, _)| format!("[[event]]\nwhen = {when}\nsysctl = {{ swappiness = 60 }}\n"));
    let happened = run(SWAP, &text.concat()).timeline.iter().map(|event| event.at_ns.is_some()).collect::<Vec<_>>();
    assert_eq!(happened, conditions.map(|(_, happens)| happens));
}

#[test]
fn each_preset_can_be_had() {
    let daemons = ["kubelet", "systemd-oomd", "earlyoom", "lmkd"];
    let text = daemons.map(|daemon| format!("[[event]]\ndaemon = \"{daemon}\"\nwithin = \"/\"\n"));
    let r = run("", &text.concat());
    assert_eq!(r.timeline.len(), daemons.len());
    assert!(r.timeline.iter().all(|event| event.failed.is_none()), "{:?}", r.timeline);
}

#[test]
fn mistakes_are_named() {
    for (event, want) in [
        ("at = \"1s\"\nsysctl = {}", "nothing is set; write swappiness = 100"),
        ("at = \"1s\"\nsysctl = { drop_caches = 2 }", "is for slabs"),
        ("at = \"1s\"\nswapoff = \"ssd\"", "is not a swap device; declared are swap"),
        ("at = \"1s\"\nkill = \"/\"\npoll = \"1s\"", "poll is not a key of kill"),
        ("kill = \"/\"\nwhen = {}", "nothing is a condition"),
        ("kill = \"/\"\nwhen = []", "nothing is a condition"),
        (
            "kill = \"/\"\nwhen = { rises_above = 1, available_below = \"1M\" }",
            "means nothing by itself; write counter",
        ),
        ("kill = \"/\"\nwhen = { available_below = \"110%\" }", "is no share"),
        ("kill = \"/\"\nwhen = { counter = \"pgscan\" }", "is no counter"),
        ("daemon = \"oomd\"", "kubelet"),
        ("swapon = \"swap\"", "at: is missing"),
    ] {
        let error = parse(SWAP, &format!("[[event]]\n{event}\n")).expect_err(event);
        assert!(error.contains(want), "{event}: {error}");
    }
}

/// A task that starts later was killed by events before it began, and the one that was there lived.
#[test]
fn regression_nobody_kills_a_task_that_has_not_begun() {
    let later =
        "[[task]]\nname = \"later\"\nstart = \"20s\"\noom_score_adj = 900\nphase = [{ read = \"file\", passes = 1 }]\n";
    let r = run("", &format!("{later}[[event]]\nkill = \"/\"\nat = \"5s\"\n"));
    let e = event(&r, "kill in /");
    assert!(e.killed == 1 && e.victims != ["later"], "{e:?}");
    let of = |name: &str| r.tasks.iter().find(|t| t.name == name).expect("the task");
    assert!(of("later").accesses > 0, "it begins after that");
}
