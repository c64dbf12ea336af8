//! Scenario files: what they become, what is wrong with them, and that nothing makes the reader
//! panic.

use proptest::prelude::*;
use refault_lab::contention::InterruptCosts;
use refault_lab::scenario::{
    AccessPattern, Action, Band, BandFrom, LoopSpec, MIN_SCALED_SWAP_PAGES, PhaseLimit, PublishedRatio, Scenario, Share,
};
use refault_mm::AccessAdvice;
use refault_trace::Via;
use std::path::Path;

const FULL: &str = include_str!("data/full.toml");
/// Blocks of lines to take out (-), lines to put there (+), and the error.
const ERRORS: &str = include_str!("data/scenario-errors.txt");
/// A small scenario that the tests below add to.
const SMALL: &str = r#"
name = "small"
machine = { memory = "512M" }
device.disk = { preset = "hdd" }
object.file = { kind = "file", size = "768M", device = "disk" }
"#;

fn parse(text: &str) -> Result<Scenario, String> {
    Scenario::parse("f.toml", text).map_err(|e| e.to_string())
}

fn with_tasks(tasks: &str) -> Result<Scenario, String> {
    parse(&format!("{SMALL}{tasks}"))
}

#[test]
fn every_key() {
    let s = parse(FULL).expect("parses");
    assert_eq!((s.machine.memory_pages, s.machine.kernel_pages, s.machine.read_ahead_pages), (4 << 20, 1 << 17, 64));
    assert_eq!((s.end_ns, s.sample_ns, s.seed), (Some(600_000_000_000), 500_000_000, 7));
    assert_eq!(s.machine.costs["read_hit"], 500);
    let contention = s.machine.contention.expect("CPUs wait for each other");
    assert_eq!(contention.interrupts, InterruptCosts { wait_ns: 2_000, each_ns: 100, lost_ns: 500 });
    assert_eq!((contention.handover_ns, contention.mmap_lock_ns, contention.zsmalloc_ns), (200, 250, 300));
    let config = s.policy.config();
    assert_eq!((config.lru.batch_folios, config.fault_around.pages, config.lru.restore_refs), (15, 8, 4));
    assert!(!config.lru.lru_gen.leaf_walk && !config.memcg.charge_kernel);
    let names: Vec<_> = s.devices.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(names, ["disk", "zram0"], "in the order of the file");
    assert_eq!(s.devices[0].overrides.read_bytes_per_s, Some(68_600_000));
    assert_eq!(s.swap.first().map(|swap| (swap.device, swap.pages)), Some((1, 2 << 20)));
    assert_eq!(s.memcgs[2].parent, Some(0));
    assert_eq!((s.memcgs[0].limits.max, s.memcgs[2].limits.max, s.memcgs[2].limits.swap_max), (1 << 20, u64::MAX, 0));
    assert_eq!((s.objects[0].memcg, s.objects[1].memcg), (None, Some(2)), "the heap is charged where its task is");
    let [fill, work] = s.tasks[0].phases.as_slice() else { panic!("two phases") };
    assert_eq!((fill.until, fill.streams[0].write_share, fill.measured), (PhaseLimit::Accesses(25_600), 1.0, false));
    assert_eq!((work.until, work.rate_per_s), (PhaseLimit::Accesses(10_000_000), Some(1000.0)));
    let read = &work.streams[1];
    assert_eq!((read.pattern, read.via), (AccessPattern::Zipf { skew: 1.2, permute: false }, Via::Map));
    assert_eq!((read.first_page, read.pages, read.block_pages), (1 << 18, 10 << 18, 4));
    assert_eq!((read.share, read.advice), (Share::Split, AccessAdvice::Random));
    let backup = &s.tasks[1];
    assert_eq!((backup.after, backup.phases[0].streams.len()), (Some(0), 0));
    assert_eq!(backup.phases[1].until, PhaseLimit::Accesses(1 << 19));
    assert_eq!((backup.phases[1].streams[0].start_page, s.tasks[0].stagger_ns), (3 << 18, 250_000_000));
    assert_eq!((backup.phases[2].until, backup.phases[3].until), (PhaseLimit::Time(540_000_000_000), PhaseLimit::End));
    let churn = &s.tasks[2];
    assert_eq!((s.objects[2].areas.as_slice(), churn.phases.len()), (&[33, 512][..], 4), "steps are phases");
    assert_eq!(churn.loops, [LoopSpec { phases: 1..4, times: 100, record: true }]);
    let steps: Vec<_> =
        churn.phases[1..].iter().map(|p| (p.streams[0].action, p.streams[0].block_pages, p.until)).collect();
    assert_eq!(steps[0], (Action::Renew, 16, PhaseLimit::Accesses(256)));
    // A page table at a time.
    assert_eq!(steps[1], (Action::PageOut, 256, PhaseLimit::Passes(1.0)));
    assert_eq!(steps[2], (Action::Drop, 512, PhaseLimit::Accesses(1024)));
    assert_eq!((churn.phases[2].streams[0].least_pages, churn.phases[2].streams[0].pages), (256, 1024));
    let published = s.published.expect("is there");
    let [before, after] = published.variants.as_slice() else { panic!("two variants") };
    assert_eq!(
        (before.name.as_str(), before.policy.policy.name(), after.name.as_str()),
        ("before", "lru-none", "after")
    );
    assert_eq!(
        (before.policy.settings.get("batch_folios"), after.policy.settings.get("bound")),
        (Some(refault_mm::Value::Number(15)), Some(refault_mm::Value::Word("inclusive")))
    );
    let band = Band { ends: [0.0, f64::INFINITY], from: BandFrom::Given(None) };
    assert_eq!(published.rows[1].ratios, [PublishedRatio { of: 1, to: 0, band: Some(band) }]);
    assert_eq!(published.rows[1].label, "total.seconds");
}

#[test]
fn defaults() {
    let s = with_tasks("task = [{ name = \"t\", phase = [{ read = \"file\", block = \"128K\", passes = 1.5 }] }]");
    let s = s.expect("parses");
    assert_eq!((s.seed, s.end_ns, s.sample_ns), (1, None, 1_000_000_000));
    let m = &s.machine;
    assert_eq!((m.cpus, m.kernel_pages, m.quantum_ns, m.swappiness, m.min_free_kbytes), (1, 0, 50_000, 60, None));
    assert_eq!((m.watermark_scale_factor, m.page_cluster, m.read_ahead_pages, m.min_ttl_ns), (10, 3, 32, 0));
    assert_eq!((m.dirty_background_ratio, m.dirty_ratio), (10, 20));
    let mut config = refault_mm::Config::new(refault_mm::Policy::Mglru);
    // A machine has caches that a trace has not.
    config.swap.policy.slot_cache = true;
    assert_eq!(s.policy.config(), config);
    let phase = &s.tasks[0].phases[0];
    assert_eq!((phase.until, phase.accesses_per_op, phase.measured), (PhaseLimit::Accesses(294_912), 32, true));
    let stream = &phase.streams[0];
    assert_eq!((stream.pattern, stream.via, stream.pages), (AccessPattern::Sequential, Via::Fd, 196_608));
}

/// The cases of the file: name, what is taken out, what is put there, the error.
fn cases() -> impl Iterator<Item = (String, String, String)> {
    ERRORS.split("\n\n").map(|block| {
        let lines = |mark: &str| {
            let marked = block.lines().filter_map(|line| line.strip_prefix(mark));
            marked.collect::<Vec<_>>().join("\n")
        };
        let error = block.lines().find(|line| line.starts_with("f.toml")).unwrap_or_default();
        (lines("- "), lines("+ "), error.to_owned())
    })
}

#[test]
fn every_mistake_is_one_line_that_names_the_key() {
    let mut wrong = String::new();
    for (old, new, want) in cases() {
        assert!(old.is_empty() || FULL.contains(&old), "{old}");
        let text = if old.is_empty() { format!("{new}\n{FULL}") } else { FULL.replacen(&old, &new, 1) };
        let got = parse(&text).map(|_| "no error".to_owned()).unwrap_or_else(|e| e);
        if got != want {
            wrong += &format!("- {old}\n+ {new}\nwant {want}\ngot  {got}\n\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_scenario_must_end() {
    let cases = [
        (
            "[[task]]\nname = \"t\"\n[[task.phase]]\nread = \"file\"",
            "f.toml:6: task[1]: the last phase has no end, nor has the scenario; write passes, accesses or duration, or end",
        ),
        (
            "[[task]]\nname = \"t\"\nbackground = true\n[[task.phase]]\nread = \"file\"",
            "f.toml:1: every task is in the background, so that nothing ends the scenario; write end",
        ),
        (
            "task = [{ name = \"a\", after = \"b\", phase = [{ read = \"file\", passes = 1 }] },\n\
             { name = \"b\", after = \"a\", phase = [{ read = \"file\", passes = 1 }] }]",
            "f.toml:6: task[1].after: \"b\" waits, in the end, for itself",
        ),
        (
            "[[task]]\nname = \"t\"\ncount = 4096\n[[task.phase]]\nread = \"file\"\npasses = 1\n\
             [[task]]\nname = \"u\"\n[[task.phase]]\nread = \"file\"\npasses = 1",
            "f.toml:12: task[2]: there are more than 4096 tasks, copies counted",
        ),
        (
            "[[task]]\nname = \"t\"\n[[task.phase]]\npasses = 1\nstream = [{ read = \"file\", weight = 0 }]",
            "f.toml:10: task[1].phase[1].stream: no stream has a weight above 0",
        ),
        ("task = []", "f.toml:6: task: there is no task; write [[task]]"),
        ("task = [{ name = \"t\", phase = [] }]", "f.toml:6: task[1].phase: there is no phase; write [[task.phase]]"),
        (
            "[[task]]\nname = \"t\"\ncount = 200000\n",
            "f.toml:8: task[1].count: 200000 is out of range; write 1 to 4096",
        ),
        ("", "f.toml:1: task: is missing; write [[task]]"),
    ];
    for (tasks, want) in cases {
        assert_eq!(with_tasks(tasks).expect_err(tasks), want);
    }
}

#[test]
fn a_mapped_object_has_one_advice_at_a_time() {
    let task = |name: &str, advices: [&str; 2]| {
        let phases = advices.map(|a| format!("{{ read = \"file\", via = \"map\", passes = 1{a} }}"));
        format!("{{ name = \"{name}\", phase = [{}] }}", phases.join(", "))
    };
    let [normal, random] = ["", ", advice = \"random\""];
    // One after the other, or by descriptor, is no contradiction.
    with_tasks(&format!("task = [{}]", task("a", [normal, random]))).expect("by turns");
    let fd = "task = [{ name = \"a\", phase = [{ read = \"file\", advice = \"random\", passes = 1 }] },\n\
              { name = \"b\", phase = [{ read = \"file\", via = \"map\", passes = 1 }] }]";
    with_tasks(fd).expect("of the mapping alone");
    let both = format!("task = [{},\n{}]", task("a", [normal, normal]), task("b", [random, random]));
    let want =
        "f.toml:5: object.file: is mapped with advice = \"normal\" and \"random\" at once; give all its streams one";
    assert_eq!(with_tasks(&both).expect_err("at once"), want);
}

#[test]
fn a_policy_names_its_kernel_and_keys_go_on_top() {
    let task = "task = [{ name = \"a\", phase = [{ read = \"file\", passes = 1 }] }]\n";
    let of = |policy: &str| with_tasks(&format!("{task}[policy]\n{policy}")).map(|s| s.policy.config());
    let cfg = of("kernel = \"6.1\"\nbatch_folios = 7").expect("a policy");
    assert_eq!((cfg.lru.batch_folios, cfg.memcg.selection), (7, refault_mm::MemcgSelection::First));
    assert_eq!(of("name = \"lru\""), of("name = \"lru\"\nkernel = \"6.12\""));
    let error = of("kernel = \"5.4\"").expect_err("no such profile");
    assert!(error.contains("\"5.4\" is not known; nearest to it is 6.1; known are 2022-v14, 6.1,"), "{error}");
}

#[test]
fn a_private_object_has_one_task() {
    let tasks = "object.heap = { kind = \"anon\", size = \"1M\", private = true }\n\
                 task = [{ name = \"a\", phase = [{ write = \"heap\", passes = 1 }] },\n\
                 { name = \"b\", phase = [{ write = \"heap\", passes = 1 }] }]";
    let want = "f.toml:6: object.heap: is private, but a and b use it; a private object has one task";
    assert_eq!(with_tasks(tasks).expect_err("is an error"), want);
}

#[test]
fn files() {
    let dir = tempfile::tempdir().expect("a directory");
    let error = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).expect("writes");
        let error = Scenario::load(&path).expect_err("is broken").to_string();
        error.replace(&dir.path().display().to_string(), "DIR")
    };
    assert_eq!(error("latin.toml", b"name = \"\xe4\""), "DIR/latin.toml: is not text in UTF-8");
    let long = vec![b'\n'; (1 << 20) + 1];
    assert_eq!(error("long.toml", &long), "DIR/long.toml: is longer than 1 MiB, the most for a scenario");
    let missing = Scenario::load(dir.path().join("none.toml")).expect_err("is missing").to_string();
    assert!(missing.contains("none.toml: cannot be opened: "), "{missing}");
    let folder = Scenario::load(dir.path()).expect_err("is a directory").to_string();
    assert_eq!(folder.lines().count(), 1, "{folder}");
}

#[test]
fn deep_and_long_files_are_errors() {
    let texts = [
        format!("{}x = 1", "a.".repeat(400_000)),
        format!("[{}x]\ny = 1", "a.".repeat(400_000)),
        format!("a = {}", "[".repeat(1_000_000)),
        format!("a = {}", "{a=".repeat(300_000)),
        format!("[[task]]\n{}", "[[task.phase]]\n".repeat(60_000)),
        "[[task]]\n".repeat(100_000),
        format!("{} = 1", "x".repeat(1_000_000)),
        format!("name = \"{}\"", "x".repeat(1_000_000)),
        (0..40_000).map(|n| format!("[object.o{n}]\n")).collect(),
        (0..40_000).map(|n| format!("[memcg.\"/o{n}\"]\n")).collect(),
    ];
    for text in texts {
        let error = parse(&text).expect_err("is too much");
        assert!(error.len() < 1500 && error.lines().count() == 1, "{error}");
    }
}

/// The scenarios of the repository.
fn published() -> Vec<(String, String)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut all: Vec<_> = std::fs::read_dir(dir)
        .expect("there are scenarios")
        .map(|entry| entry.expect("can be read").path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .map(|path| {
            let name = path.file_stem().and_then(|n| n.to_str()).expect("has a name").to_owned();
            (name, std::fs::read_to_string(&path).expect("can be read"))
        })
        .collect();
    all.sort();
    all
}

#[test]
fn the_scenarios_of_the_repository() {
    let all = published();
    assert!(all.len() >= 12, "{}", all.len());
    for (name, text) in all {
        let scenario = parse(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(scenario.name, name, "is called like its file");
        let published = scenario.published.as_ref().expect("something was published");
        assert!(
            published
                .rows
                .iter()
                .any(|row| { row.bands.iter().any(Option::is_some) || row.ratios.iter().any(|r| r.band.is_some()) }),
            "{name}: nothing is compared"
        );
        // A machine that has only so many clusters of swap runs as it is.
        let small = scenario.swap.iter().any(|s| s.pages < 8 * MIN_SCALED_SWAP_PAGES);
        assert_eq!(scenario.scale(8.0).is_err(), small, "{name}");
    }
}

/// Values of the machine and of what runs on it, by key.
fn leaves(value: &toml::Value, key: &str, found: &mut Vec<String>) {
    match value {
        toml::Value::Table(table) => table.iter().for_each(|(name, v)| leaves(v, &format!("{key}.{name}"), found)),
        toml::Value::Array(items) if items.first().is_some_and(toml::Value::is_table) => {
            for (n, item) in items.iter().enumerate() {
                // Tasks have names.
                let name = item.get("name").and_then(|name| name.as_str()).filter(|_| key == "task");
                let at = name.map_or_else(|| format!("{key}[{}]", n + 1), |name| format!("{key}.{name}"));
                leaves(item, &at, found);
            }
        }
        _ => found.push(key.to_owned()),
    }
}

/// Every value that a published scenario gives is said to be published, derived, or chosen.
#[test]
fn published_scenarios_say_where_their_values_come_from() {
    // Keys that name things, and that say what belongs to what.
    let plain = ["name", "kind", "device", "memcg", "measured", "record", "after", "background", "private"];
    let verbs = ["read", "write", "object", "page_out", "drop", "renew"];
    let mut complaints = Vec::new();
    for (name, text) in published() {
        let parameters = parse(&text).expect("parses").published.expect("something was published").parameters;
        let keys = parameters.published.iter().chain(parameters.derived.keys());
        let keys = keys.chain(parameters.calibrated.keys()).chain(parameters.chosen.keys());
        let keys: Vec<_> = keys.collect();
        let mut found = Vec::new();
        let table: toml::Table = text.parse().expect("TOML");
        for room in ["machine", "node", "device", "swap", "memcg", "object", "task"] {
            table.get(room).into_iter().for_each(|value| leaves(value, room, &mut found));
        }
        found.retain(|key| key.rsplit('.').next().is_some_and(|last| !plain.contains(&last) && !verbs.contains(&last)));
        let covers =
            |key: &str, leaf: &str| leaf.strip_prefix(key).is_some_and(|r| r.is_empty() || r.starts_with(['.', '[']));
        let open = found.iter().filter(|leaf| !keys.iter().any(|key| covers(key, leaf)));
        complaints.extend(open.map(|leaf| format!("{name}: {leaf}")));
        let twice = keys.iter().enumerate().filter(|(n, key)| keys[..*n].contains(key));
        complaints.extend(twice.map(|(_, key)| format!("{name}: {key} twice")));
    }
    assert!(complaints.is_empty(), "{complaints:#?}");
}

#[test]
fn the_documentation_names_every_key() {
    let doc = include_str!("../../../docs/reference/scenario-keys.md");
    let key = |line: &str| Some(line.split_once(" = ")?.0.trim().to_owned());
    for key in FULL.lines().filter(|line| !line.starts_with('#')).filter_map(key) {
        assert!(doc.contains(&format!("`{key}`")), "{key} is not described");
    }
    let example = doc.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    parse(example).expect("the example of the documentation parses");
}

#[test]
fn scaling() {
    let full = parse(FULL).expect("parses");
    assert_eq!(full.scale(1.0).expect("is as it was"), full);
    let s = full.scale(4.0).expect("scales");
    assert_eq!((s.machine.memory_pages, s.machine.kernel_pages), (1 << 20, 1 << 15));
    assert_eq!((s.machine.min_free_kbytes, s.machine.min_ttl_ns), (Some(16_384), 250_000_000));
    assert_eq!((s.end_ns, s.sample_ns, s.tasks[0].start_ns), (Some(150_000_000_000), 125_000_000, 250_000_000));
    assert_eq!(s.swap.first().map(|swap| swap.pages), Some(1 << 19));
    assert_eq!((s.memcgs[0].limits.max, s.memcgs[2].limits.max, s.memcgs[2].limits.swap_max), (1 << 18, u64::MAX, 0));
    assert_eq!((s.objects[0].pages, s.objects[1].pages), (3 << 18, 6400));
    let work = &s.tasks[0].phases[1];
    assert_eq!((work.until, work.accesses_per_op, work.think_ns), (PhaseLimit::Accesses(2_500_000), 10, 1_000_000));
    assert_eq!(work.burst.map(|b| (b.on_ns, b.off_ns)), Some((250_000_000, 1_000_000_000)));
    assert_eq!((work.streams[1].first_page, work.streams[1].pages, work.streams[1].block_pages), (1 << 16, 5 << 17, 4));
    assert_eq!((s.machine.cpus, s.tasks[0].count, s.devices[0].overrides.rpm), (4, 3, Some(7200)));
    assert_eq!(s.devices[0].overrides.spike_ns, full.devices[0].overrides.spike_ns);
    for (k, want) in [
        (0.5, "scale 0.5: a scale is 1 or more"),
        (f64::NAN, "scale NaN: a scale is 1 or more"),
        (500.0, "scale 500: swap of 8G becomes 4194 pages, and 16384 are the least; use 128 or less"),
        (
            5000.0,
            "scale 5000: memory less kernel of 15872M becomes 813 pages, and 3200 are the least; use 1269 or less",
        ),
    ] {
        assert_eq!(full.scale(k).expect_err("is impossible"), want);
    }
    let tiny = FULL
        .replace("size = \"100M\"", "size = \"1M\"")
        .replace("write = \"heap\"", "write = \"heap\"\nblock = \"64K\"");
    let error = parse(&tiny).expect("parses").scale(100.0).expect_err("is too small");
    assert_eq!(
        error,
        "scale 100: task db: object heap: 3 pages are left, less than a block of 16; use a smaller scale"
    );
}

/// Edits of a valid file: bytes, lines, values.
fn mutated() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "0",
        "-1",
        "1e400",
        "nan",
        "inf",
        "\"\"",
        "\"0\"",
        "\"max\"",
        "\"/\"",
        "\"16T\"",
        "[]",
        "{}",
        "true",
        "[[task]]",
        "\"99999999999999999999h\"",
        "9223372036854775807",
        "\"db\"",
        "\"end\"",
        "\n",
        "=",
        "\u{2028}",
        "\"\\u0000\"",
        "1979-05-27",
        "[task]",
        "'''",
        "\"1ns\"",
        "\"1p\"",
        "\"0.000001/s\"",
    ]);
    let edit = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), words, 0..5u8);
    let text = prop::sample::select(
        published().into_iter().map(|(_, text)| text).chain([FULL.to_owned()]).collect::<Vec<_>>(),
    );
    (text, prop::collection::vec(edit, 1..6)).prop_map(|(text, edits)| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (at, other, word, how) in edits {
            let (at, other) = (at.index(lines.len()), other.index(lines.len()));
            match how {
                0 => lines[at] = lines[other].clone(),
                1 => lines.insert(at, word.to_owned()),
                2 => lines.swap(at, other),
                3 => lines[at] = lines[at].chars().rev().collect(),
                _ => {
                    let key = lines[at].split_once('=').map(|(key, _)| format!("{key}= {word}"));
                    lines[at] = key.unwrap_or_default();
                }
            }
        }
        lines.join("\n")
    })
}

proptest! {
    #[test]
    fn no_edit_makes_it_panic(text in mutated(), k in 1.0..1e6f64) {
        match Scenario::parse("f.toml", &text) {
            Ok(scenario) => {
                if let Err(error) = scenario.scale(k) {
                    prop_assert_eq!(error.lines().count(), 1);
                }
            }
            Err(error) => {
                let line = error.to_string();
                prop_assert_eq!(line.lines().count(), 1, "{}", line);
                prop_assert!(line.starts_with("f.toml:") && error.line().is_some(), "{}", line);
            }
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,200}") {
        let error = Scenario::parse("f.toml", &text).expect_err("is no scenario").to_string();
        prop_assert_eq!(error.lines().count(), 1);
    }
}

/// Linux's defaults that would stand for more on a divided machine are off there, unless the file
/// says them.
#[test]
fn a_divided_machine_has_no_batches_for_more_memory() {
    let at = |machine: &str, nodes: &str, k: f64| {
        let text = format!(
            "name = \"s\"\n{nodes}machine = {{ {machine} }}\npolicy.name = \"lru\"\nobject.h = {{ kind = \"anon\", size = \"64M\" }}\n[[task]]\nname = \"t\"\nphase = [{{ write = \"h\", passes = 1 }}]\n"
        );
        let m = Scenario::parse("s.toml", &text).map(|s| s.scale(k).expect("a scale").machine);
        let m = m.unwrap_or_else(|e| panic!("{e}"));
        (m.per_cpu_lists, m.page_blocks, m.tick_ns)
    };
    let nodes = "node.n = { preset = \"dram\", size = \"1G\", cpus = 2 }\n";
    assert_eq!(at("memory = \"1G\"", "", 1.0), (true, true, 4_000_000));
    assert_eq!(at("memory = \"1G\"", "", 4.0), (false, false, 4_000_000));
    assert_eq!(at("swappiness = 60", nodes, 1.0), (true, true, 4_000_000));
    assert_eq!(at("swappiness = 60", nodes, 4.0), (false, false, 0), "nodes have no ticks");
    let all = "per_cpu_lists = true, page_blocks = true, tick = \"1ms\"";
    assert_eq!(at(all, nodes, 4.0), (true, true, 1_000_000));
    assert_eq!(at("memory = \"1G\", watermark_boost_factor = 1", "", 4.0), (false, true, 4_000_000));
}
