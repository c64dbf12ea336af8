//! Events of scenarios: groups are made, limited, asked for memory and removed while the machine
//! runs; tasks move.

use refault_lab::machine::{EventResult, Machine, MemcgResult, RunResult};
use refault_lab::scenario::Scenario;

/// Two groups: one with memory that is written once and never used again, one that works.
const BASE: &str = r#"
name = "events"
end = "20s"
machine = { cpus = 2, memory = "256M" }
device.swap = { preset = "nvme" }
device.ssd = { preset = "sata-ssd" }
swap = { device = "swap", size = "256M" }
memcg."/idle" = {}
memcg."/work" = {}
object.cold = { kind = "anon", size = "64M" }
object.heap = { kind = "anon", size = "16M" }
object.file = { kind = "file", size = "32M", device = "ssd" }
object.job = { kind = "anon", size = "8M" }
[[task]]
name = "idle"
memcg = "/idle"
phase = [{ write = "cold", passes = 1 }, { until = "end" }]
[[task]]
name = "work"
memcg = "/work"
phase = [{ object = "heap", pattern = "uniform", write_share = 0.5, rate = "2000/s", until = "end" }]
[[task]]
name = "read"
memcg = "/work"
phase = [{ read = "file", rate = "500/s", until = "end" }]
"#;

const JOB: &str = r#"
[[task]]
name = "job"
memcg = "/job"
start = "2s"
phase = [{ write = "job", passes = 1 }, { duration = "3s" }]
[[event]]
at = "2s"
create = "/job"
max = "4M"
swappiness = 100
"#;

fn run(text: &str) -> Result<RunResult, String> {
    let s = Scenario::parse("events.toml", &format!("{BASE}{text}")).map_err(|e| e.to_string())?;
    Machine::new(&s, &s.policy)?.checked().run()
}

fn group<'a>(r: &'a RunResult, path: &str) -> &'a MemcgResult {
    r.memcgs.iter().find(|m| m.path == path).expect("a group")
}

fn event<'a>(r: &'a RunResult, what: &str) -> &'a EventResult {
    r.timeline.iter().find(|e| e.what == what).unwrap_or_else(|| panic!("{what}: {:?}", r.timeline))
}

const S: u64 = 1_000_000_000;

#[test]
fn what_is_asked_for_goes_from_the_group_that_is_asked() {
    let r = run("[[event]]\nat = \"5s\"\nreclaim = \"/idle\"\namount = \"32M\"\n").expect("runs");
    let e = event(&r, "reclaim /idle");
    assert_eq!((e.at_ns, e.times, e.asked_pages, e.short, &e.failed), (Some(5 * S), 1, 8192, 0, &None));
    assert!((8192..9000).contains(&e.reclaimed_pages), "{e:?}");
    let idle = group(&r, "/idle");
    assert!(idle.counter("pswpout") >= 8192 && idle.counter("memory.current") < 16_384 - 8000, "{:?}", idle.counters);
    assert_eq!(group(&r, "/work").counter("pswpout"), 0, "nobody else gives");
    // It is no stall, neither of the group nor of who asks (`data/pressure/README.md`).
    assert_eq!(idle.psi[0].total_us, 0);
    assert_eq!(r.memcgs[0].psi[0].total_us, 0);
}

#[test]
fn a_request_is_made_again_and_again_until_its_time_is_over() {
    let text = "[[event]]\nat = \"5s\"\nreclaim = \"/idle\"\namount = \"1M\"\nevery = \"500ms\"\nuntil = \"10s\"\n";
    let e = &run(text).expect("runs").timeline[0];
    assert_eq!((e.times, e.asked_pages), (11, 11 * 256), "5.0, 5.5, ... 10.0 s");
    let text = "[[event]]\nat = \"5s\"\nreclaim = \"/idle\"\namount = \"64M\"\nevery = \"1s\"\n";
    let r = run(text).expect("runs");
    let e = &r.timeline[0];
    // The first takes most of it, the others find nothing.
    assert!(e.short >= 13 && e.times > 13 && e.reclaimed_pages < 17_000, "{e:?}");
}

#[test]
fn swappiness_of_a_request_decides_whether_anything_is_swapped() {
    let of = |swappiness: u32| {
        let text =
            format!("[[event]]\nat = \"10s\"\nreclaim = \"/idle\"\namount = \"8M\"\nswappiness = {swappiness}\n");
        let r = run(&text).expect("runs");
        (event(&r, "reclaim /idle").short, group(&r, "/idle").counter("pswpout"))
    };
    // There is no cache in it.
    assert_eq!(of(0), (1, 0));
    let (short, swapped) = of(1);
    assert!(short == 0 && swapped >= 2048, "{short} {swapped}");
}

#[test]
fn a_lower_max_reclaims_what_is_beyond_it_and_waits_for_the_device() {
    let r = run("[[event]]\nat = \"5s\"\nset = \"/idle\"\nmax = \"16M\"\nhigh = \"12M\"\n").expect("runs");
    let idle = group(&r, "/idle");
    assert_eq!((idle.limits.max, idle.limits.high), (4096, 3072), "those at the end");
    assert!(idle.counter("memory.current") <= 3072 && idle.counter("pswpout") > 12_000, "{:?}", idle.counters);
    assert_eq!((&event(&r, "set /idle").failed, r.oom_kills), (&None, 0));
    assert_eq!(idle.metric("events_oom"), Some(0.0));
}

#[test]
fn where_there_is_no_swap_a_lower_max_kills() {
    let r = run("[[event]]\nat = \"5s\"\nset = \"/idle\"\nmax = \"16M\"\nswap_max = 0\n").expect("runs");
    assert_eq!((r.oom_kills, group(&r, "/idle").metric("events_oom_kill")), (1, Some(1.0)));
    assert_eq!(event(&r, "set /idle").failed, None, "afterwards there is room");
    // Nobody may be killed: the limit stays, and so does what is used.
    let base = BASE.replacen("name = \"idle\"", "name = \"idle\"\noom_score_adj = -1000", 1);
    let text = format!("{base}[[event]]\nat = \"5s\"\nset = \"/idle\"\nmax = \"16M\"\nswap_max = 0\n");
    let s = Scenario::parse("events.toml", &text).expect("parses");
    let r = Machine::new(&s, &s.policy).expect("builds").checked().run().expect("runs");
    let failed = event(&r, "set /idle").failed.clone().unwrap_or_default();
    assert!(failed.contains("still uses 16") && failed.contains("nobody to kill"), "{failed}");
    assert_eq!(r.ending, refault_lab::machine::Ending::Time, "everything else goes on");
}

#[test]
fn a_group_is_made_used_and_removed_and_its_last_figures_stay() {
    let r = run(&format!("{JOB}[[event]]\nafter = \"job\"\nremove = \"/job\"\n")).expect("runs");
    let job = group(&r, "/job");
    assert_eq!((job.made_ns, job.limits.max, job.limits.swappiness), (Some(2 * S), 1024, Some(100)));
    let removed = job.removed_ns.expect("removed");
    assert!((5 * S..6 * S).contains(&removed), "{removed}");
    assert!((2.9..4.0).contains(&job.lived_seconds(r.seconds)), "{}", job.lived_seconds(r.seconds));
    assert_eq!((job.tasks.accesses, job.counter("task_accesses")), (2048, 2048));
    assert!(job.counter("memory.peak") <= 1024 && job.counter("pswpout") > 900, "{:?}", job.counters);
    assert!(job.metric("events_max").expect("an event") > 0.0);
    assert!(r.timeline.iter().all(|e| e.failed.is_none()), "{:?}", r.timeline);
    // Its counts are in the machine's counters, and its memory is free.
    assert!(r.memcgs[0].counter("pswpout") >= job.counter("pswpout"));
    assert_eq!(r.metric("memcg./job.pswpout"), Some(job.counter("pswpout") as f64));
}

#[test]
fn a_busy_group_is_not_removed() {
    let r = run(&format!("{JOB}[[event]]\nat = \"3s\"\nremove = \"/job\"\n")).expect("runs");
    assert_eq!(event(&r, "remove /job").failed.as_deref(), Some("busy: task job runs in it"));
    assert_eq!(group(&r, "/job").removed_ns, None);
    let text = format!(
        "{JOB}[[event]]\nat = \"9s\"\ncreate = \"/job/below\"\n[[event]]\nafter = \"job\"\nat = \"9s\"\nremove = \"/job\"\n"
    );
    let r = run(&text).expect("runs");
    assert_eq!(event(&r, "remove /job").failed.as_deref(), Some("busy: /job/below is below it"));
}

#[test]
fn what_remains_of_a_removed_group_is_reclaimed_later() {
    // Half of the file is read in a group that is removed; then somebody reads it elsewhere, and
    // then it is all taken away.
    let text = r#"
[[task]]
name = "first"
memcg = "/gone"
start = "1s"
phase = [{ read = "archive", size = "16M", passes = 1 }]
[[task]]
name = "second"
memcg = "/work"
after = "first"
start = "2s"
phase = [{ read = "archive", passes = 2 }]
[object.archive]
kind = "file"
size = "32M"
device = "ssd"
memcg = "/gone"
[[event]]
at = "500ms"
create = "/gone"
max = "24M"
[[event]]
after = "first"
at = "1s"
remove = "/gone"
[[event]]
at = "19900ms"
reclaim = "/"
amount = "200M"
"#;
    let r = run(text).expect("runs");
    let gone = group(&r, "/gone");
    assert!(gone.removed_ns.is_some() && gone.counter("memory.current") >= 4096, "{:?}", gone.counters);
    assert!(r.timeline[..2].iter().all(|e| e.failed.is_none()) && r.oom_kills == 0, "{:?}", r.timeline);
    // 32M of each file, and no page of them twice: what the first one read was there for the
    // second.
    let read = r.metric("device.ssd.read_bytes").expect("a device");
    assert!((f64::from(64 << 20)..f64::from(65 << 20)).contains(&read), "{read}");
    let e = event(&r, "reclaim /");
    assert!(e.reclaimed_pages > 8192 + 16_000, "{e:?}");
}

#[test]
fn who_moves_takes_figures_and_charges_along() {
    let text = "[[event]]\nat = \"10s\"\nmove = \"work\"\nto = \"/idle\"\n";
    let r = run(text).expect("runs");
    let (work, idle) = (group(&r, "/work"), group(&r, "/idle"));
    // 2,000 operations a second for 10 s in each of them.
    let of_reader = r.tasks[2].ops as f64 / 2.0;
    let ops = work.tasks.ops as f64 - 2.0 * of_reader;
    assert!((19_000.0..21_000.0).contains(&ops), "{ops}");
    let all: u64 = r.tasks.iter().map(|t| t.ops).sum();
    assert_eq!(r.memcgs[0].tasks.ops, all);
    assert_eq!(work.tasks.ops + idle.tasks.ops, all, "nothing is counted twice");
    assert!((idle.tasks.ops as f64 - 16_384.0 - 20_000.0).abs() < 1000.0, "{}", idle.tasks.ops);
    // The heap went along; the file, which its neighbour reads, stayed.
    assert!((20_400..20_900).contains(&idle.counter("memory.current")), "{:?}", idle.counters);
    assert!(work.counter("memory.current") < 8700 && work.counter("inactive_anon") + work.counter("active_anon") == 0);
    let text = format!("{text}charges = false\n");
    let r = run(&text).expect("runs");
    assert!(group(&r, "/idle").counter("memory.current") < 16_700);
    assert!(group(&r, "/work").counter("memory.current") > 12_000, "what is charged stays charged there");
    assert!((group(&r, "/idle").tasks.ops as f64 - 36_384.0).abs() < 1000.0);
}

#[test]
fn who_moves_is_killed_for_its_new_group() {
    // The group is too small for what moves in, and there is no swap for it.
    let text = "[[event]]\nat = \"5s\"\nset = \"/idle\"\nmax = \"66M\"\nswap_max = 0\n[[event]]\nat = \"10s\"\nmove = \"work\"\nto = \"/idle\"\n";
    let r = run(text).expect("runs");
    assert!(r.oom_kills >= 1 && group(&r, "/idle").metric("events_oom_kill") >= Some(1.0), "{}", r.oom_kills);
    assert_eq!(group(&r, "/work").metric("events_oom_kill"), Some(0.0));
}

#[test]
fn what_comes_too_late_or_to_nobody_says_so() {
    let text = format!(
        "{JOB}[[event]]\nafter = \"job\"\nremove = \"/job\"\n[[event]]\nafter = \"job\"\nat = \"1s\"\nreclaim = \"/job\"\namount = \"1M\"\n\
         [[event]]\nafter = \"job\"\nat = \"1s\"\nset = \"/job\"\nmax = \"1M\"\n[[event]]\nafter = \"job\"\nmove = \"job\"\nto = \"/work\"\n\
         [[event]]\nafter = \"job\"\nat = \"1s\"\nmove = \"work\"\nto = \"/job\"\n[[event]]\nafter = \"job\"\nat = \"1h\"\nset = \"/work\"\nmin = \"1M\"\n"
    );
    let r = run(&text).expect("runs");
    let failed: Vec<_> = r.timeline.iter().map(|e| e.failed.as_deref()).collect();
    let gone = Some("it is not there");
    assert_eq!(failed, [None, None, gone, gone, Some("task job has ended"), Some("/job is not there"), None]);
    assert_eq!(r.timeline[6].at_ns, None, "the run was over");
    let text = "[[task]]\nname = \"late\"\nafter = \"early\"\nmemcg = \"/g\"\nphase = [{ duration = \"1s\" }]\n\
                [[task]]\nname = \"early\"\nphase = [{ duration = \"1s\" }]\n[[event]]\nafter = \"early\"\nat = \"1s\"\ncreate = \"/g\"\n";
    let error = run(text).expect_err("a task without a group");
    assert!(error.starts_with("task late starts at 1.0000"), "{error}");
    assert!(error.ends_with(" s in the group /g, which is not there yet; change event or start"), "{error}");
}

#[test]
fn scaled_events_happen_earlier_and_ask_for_less() {
    let text = "[[event]]\nat = \"4s\"\nreclaim = \"/idle\"\namount = \"32M\"\nevery = \"2s\"\nuntil = \"10s\"\n\
                [[event]]\nat = \"8s\"\nset = \"/work\"\nmax = \"64M\"\nlow = \"32M\"\n";
    let s = Scenario::parse("events.toml", &format!("{BASE}{text}")).expect("parses");
    let s = s.scale(2.0).expect("scales");
    let r = Machine::new(&s, &s.policy).expect("builds").checked().run().expect("runs");
    let e = &r.timeline[0];
    assert_eq!((e.at_ns, e.times, e.asked_pages), (Some(2 * S), 4, 4 * 4096));
    assert_eq!((group(&r, "/work").limits.max, group(&r, "/work").limits.low), (8192, 4096));
    let text = text.replace("64M", "16M");
    let error =
        Scenario::parse("events.toml", &format!("{BASE}{text}")).expect("parses").scale(4.0).expect_err("small");
    assert!(error.contains("event[2]: memcg /work: max of 16M becomes 1024 pages"), "{error}");
}

/// Events (`|` stands for a new line), and the error: the line from the first of the event on, the
/// key, what to do.
const MISTAKES: [(&str, &str); 34] = [
    ("at = 1|remove = \"/idle\"", "+1: event[1].at: 1 is not a time; write 50us, 1.5s or 15m"),
    ("at = \"1s\"", "+0: event[1]: nothing happens; write one of create, set, move"),
    ("remove = \"/idle\"", "+0: event[1].at: is missing; write at = \"30s\""),
    ("at = \"20s\"|remove = \"/idle\"", "+1: event[1].at: \"20s\" is not before the end of the scenario"),
    ("at = \"1s\"|remove = \"/x\"", "+2: event[1].remove: \"/x\" is not a memcg; declared are /idle, /work"),
    ("at = \"1s\"|remove = 5", "+2: event[1].remove: 5 is not a text; write it in quotes"),
    ("at = \"1s\"|remove = \"/\"", "+2: event[1].remove: the root cannot be removed"),
    (
        "at = \"1s\"|remove = \"/idle\"|amount = \"1M\"",
        "+3: event[1].amount: amount is not a key of remove; leave it out",
    ),
    (
        "at = \"1s\"|remove = \"/idle\"|set = \"/idle\"",
        "+0: event[1]: an event is one thing; write set or remove, and another event",
    ),
    ("at = \"1s\"|deleted = \"/idle\"", "+2: event[1].deleted: unknown key; known are at, after, when, create"),
    ("at = \"1s\"|remov = \"/idle\"", "+2: event[1].remov: unknown key; did you mean remove?"),
    (
        "at = \"1s\"|create = \"job\"",
        "+2: event[1].create: is not the path of a group; write a / before each name: \"/a/b\"",
    ),
    ("at = \"1s\"|create = \"/\"", "+2: event[1].create: the root has no limits and is not declared"),
    (
        "at = \"1s\"|create = \"/idle\"",
        "+2: event[1].create: there is a group /idle already; give this one another name",
    ),
    ("at = \"1s\"|create = \"/x/y\"", "+2: event[1].create: the group above it is not declared; write [memcg.\"/x\"]"),
    ("at = \"1s\"|create = \"/x\"|max = \"2Q\"", "+3: event[1].max: \"2Q\" is not a size; write 512M, 1.5G or 4096p"),
    ("at = \"1s\"|create = \"/x\"|to = \"/idle\"", "+3: event[1].to: to is not a key of create; leave it out"),
    ("at = \"1s\"|set = \"/idle\"", "+0: event[1]: nothing is set; write max = \"2G\", or another limit"),
    ("at = \"1s\"|set = \"/\"|max = \"1M\"", "+2: event[1].set: the root has no limits"),
    ("at = \"1s\"|set = \"/idle\"|swappiness = 201", "+3: event[1].swappiness: 201 is out of range; write 0 to 200"),
    ("at = \"1s\"|set = \"/idle\"|every = \"1s\"", "+3: event[1].every: every is not a key of set; leave it out"),
    ("at = \"1s\"|move = \"work\"", "+0: event[1].to: is missing; write to = \"/...\", the group that it moves to"),
    (
        "at = \"1s\"|move = \"/work\"|to = \"/\"",
        "+2: event[1].move: \"/work\" is not a task; declared are idle, work, read",
    ),
    ("at = \"1s\"|move = \"work\"|to = \"/nowhere\"", "+3: event[1].to: \"/nowhere\" is not a memcg"),
    ("at = \"1s\"|move = \"work\"|to = \"/\"|charges = 1", "+4: event[1].charges: 1 is neither true nor false"),
    ("at = \"1s\"|reclaim = \"/\"", "+0: event[1].amount: is missing; write amount = \"512M\""),
    ("at = \"1s\"|reclaim = \"/\"|amount = 0", "+3: event[1].amount: 0 is out of range; write 1p to 2T"),
    (
        "at = \"1s\"|reclaim = \"/\"|amount = \"1M\"|until = \"5s\"",
        "+4: event[1].until: it is asked for once; write every = \"10s\", or leave this out",
    ),
    (
        "at = \"5s\"|reclaim = \"/\"|amount = \"1M\"|every = \"1s\"|until = \"5s\"",
        "+5: event[1].until: \"5s\" is not after at",
    ),
    (
        "at = \"5s\"|reclaim = \"/\"|amount = \"1M\"|every = \"1us\"",
        "+4: event[1].every: \"1us\" is out of range; write 1ms to 87600h",
    ),
    (
        "after = \"nobody\"|remove = \"/idle\"",
        "+1: event[1].after: \"nobody\" is not a task; declared are idle, work, read",
    ),
    (
        "after = \"work\"|remove = \"/idle\"",
        "+1: event[1].after: \"work\" never ends by itself; give its last phase passes, accesses or duration",
    ),
    (
        "at = \"2s\"|remove = \"/idle\"|[[event]]|at = \"3s\"|reclaim = \"/idle\"|amount = \"1M\"",
        "+5: event[2].reclaim: /idle is removed at 2s",
    ),
    (
        "at = \"2s\"|remove = \"/idle\"|[[event]]|at = \"3s\"|remove = \"/idle\"",
        "+5: event[2].remove: \"/idle\" is removed twice",
    ),
];

/// More of them: what only the order of several events shows.
const WRONG_ORDER: [(&str, &str); 7] = [
    (
        "at = \"2s\"|remove = \"/work\"|[[task]]|name = \"t\"|start = \"2s\"|memcg = \"/work\"|phase = [{ duration = \"1s\" }]",
        "+6: task[4].memcg: when it starts, at 2s, /work is removed at 2s",
    ),
    (
        "at = \"3s\"|create = \"/x\"|[[event]]|at = \"2s\"|set = \"/x\"|max = \"1M\"",
        "+5: event[2].set: /x is not there before 3s",
    ),
    (
        "at = \"3s\"|create = \"/x\"|[[event]]|at = \"2s\"|create = \"/x/y\"",
        "+5: event[2].create: /x is not there before 3s",
    ),
    (
        "at = \"3s\"|create = \"/x\"|[[event]]|at = \"2s\"|remove = \"/x\"",
        "+5: event[2].remove: /x is not there before 3s",
    ),
    (
        "at = \"3s\"|create = \"/idle/y\"|[[event]]|at = \"4s\"|remove = \"/idle\"",
        "+5: event[2].remove: \"/idle\" has /idle/y below it; remove that first",
    ),
    (
        "at = \"3s\"|create = \"/x\"|[[event]]|at = \"2s\"|move = \"work\"|to = \"/x\"",
        "+6: event[2].to: /x is not there before 3s",
    ),
    (
        "at = \"3s\"|create = \"/x\"|[[task]]|name = \"t\"|start = \"2s\"|memcg = \"/x\"|phase = [{ duration = \"1s\" }]",
        "+6: task[4].memcg: when it starts, at 2s, /x is not there before 3s",
    ),
];

#[test]
fn mistakes_name_line_and_key_and_what_to_do() {
    let before = BASE.lines().count() + 1;
    let mut wrong = String::new();
    for (event, want) in MISTAKES.into_iter().chain(WRONG_ORDER) {
        let text = format!("{BASE}[[event]]\n{}\n", event.replace('|', "\n"));
        let error = Scenario::parse("events.toml", &text).map(|_| String::new()).unwrap_or_else(|e| e.to_string());
        let (line, what) = want.trim_start_matches('+').split_once(':').expect("a line");
        let line = before + line.parse::<usize>().expect("a number");
        let want = format!("events.toml:{line}:{what}");
        if !error.starts_with(&want) || error.lines().count() != 1 {
            wrong += &format!("{event}\nwant {want}\ngot  {error}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let error = Scenario::parse("f.toml", &format!("{BASE}[event]\nat = \"1s\"\n")).expect_err("one table").to_string();
    assert!(error.contains("event: a table is not a list of tables; write [[event]]"), "{error}");
    let every = "[[event]]\nat = \"1s\"\nreclaim = \"/\"\namount = \"1M\"\nevery = \"1s\"\n";
    let endless = BASE.replacen("end = \"20s\"\n", "", 1).replace("until = \"end\"", "duration = \"9s\"");
    let error = Scenario::parse("f.toml", &format!("{endless}{every}")).expect_err("for ever").to_string();
    assert!(error.contains("event[1].every: it never ends; write until, or end of the scenario"), "{error}");
}
