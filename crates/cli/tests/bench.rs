//! `refault bench` as a user meets it: on a scenario of a second, and the list of those inside of
//! the command.

use crate::common::command::{Sandbox, error, ok};
use refault_lab::machine::Machine;
use refault_lab::scenario::{BandFrom, Parameters, Published, Scenario};
use refault_testing::{is_long, one_in, only_long, short_or_long};
use serde_json::Value;

/// Two sets that fit one by one; with a change that adapts, and one that does not.
const TINY: &str = include_str!("data/tiny.toml");

fn sandbox() -> Sandbox {
    let s = Sandbox::new();
    s.write("tiny.toml", TINY.as_bytes());
    s
}

fn bench(s: &Sandbox, args: &[&str]) -> std::process::Output {
    s.run(&[&["bench"], args].concat())
}

fn json(s: &Sandbox, args: &[&str]) -> Vec<Value> {
    let all: Value = serde_json::from_str(&ok(&bench(s, &[args, &["--json"]].concat()))).expect("JSON");
    assert_eq!(all["refault"], env!("CARGO_PKG_VERSION"));
    all["benchmarks"].as_array().expect("benchmarks").clone()
}

/// Everything but the seconds that it took.
fn timeless(mut all: Vec<Value>) -> Vec<Value> {
    for one in &mut all {
        for variant in one["variants"].as_array_mut().expect("variants") {
            assert!(variant.as_object_mut().expect("a variant").remove("real_seconds").is_some());
        }
    }
    all
}

#[test]
fn json_has_the_documented_fields() {
    let s = sandbox();
    let all = json(&s, &["tiny.toml", "--check"]);
    assert_eq!(all.len(), 1);
    let one = &all[0];
    assert_eq!((one["name"].as_str(), one["scale"].as_f64()), (Some("tiny"), Some(1.0)));
    assert_eq!(one["seeds"], serde_json::json!([1]));
    assert_eq!(one["notes"], serde_json::json!(["It is made up."]));
    assert!(one["about"].is_string() && one["source"].is_null());
    for (at, (name, policy)) in [("before", "lru-none"), ("after", "lru-2013")].into_iter().enumerate() {
        let variant = &one["variants"][at];
        assert_eq!((variant["name"].as_str(), variant["policy"].as_str()), (Some(name), Some(policy)));
        assert!(variant["ending"] == "tasks-done" && variant["virtual_seconds"].as_f64() > Some(1.0), "{variant}");
        assert!(variant["events"].as_u64() > Some(0) && variant["oom_kills"] == 0, "{variant}");
        assert!(variant["overrides"].is_object() && variant["real_seconds"].is_number(), "{variant}");
    }
    let rows = one["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 5);
    let has = |value: &Value, fields: &[&str]| assert!(fields.iter().all(|f| value.get(f).is_some()), "{value}");
    for row in rows {
        has(row, &["metric", "label", "unit", "scaled", "better", "numbers", "ratios"]);
        for number in row["numbers"].as_array().expect("numbers") {
            has(number, &["variant", "published", "number", "numbers", "band", "band_from", "within", "missing"]);
            assert_eq!(number["numbers"][0], number["number"]);
        }
        let [r] = row["ratios"].as_array().expect("ratios").as_slice() else { panic!("{row}") };
        has(r, &["of", "to", "published", "ratio", "ratios", "band", "band_from", "within", "missing"]);
        assert_eq!((r["of"].as_str(), r["to"].as_str()), (Some("after"), Some("before")));
        let [before, after] = [0, 1].map(|n| row["numbers"][n]["number"].as_f64());
        if let Some(ratio) = r["ratio"].as_f64().filter(|_| before > Some(0.0)) {
            let of_numbers = after.zip(before).map_or(0.0, |(after, before)| after / before);
            assert!((ratio / of_numbers - 1.0).abs() < 1e-12 || ratio == of_numbers, "{row}");
        }
    }
    let ratio = |n: usize| &rows[n]["ratios"][0];
    assert_eq!(
        (&ratio(0)["published"], &ratio(0)["band"]),
        (&serde_json::json!(1.0), &serde_json::json!([0.98, 1.02]))
    );
    assert_eq!((ratio(0)["within"].as_bool(), rows[0]["better"].as_str()), (Some(true), Some("higher")));
    assert_eq!(rows[0]["numbers"][1]["published"], 100.0);
    // No upper end; nothing published.
    assert_eq!(ratio(1)["band"], serde_json::json!([2.0, null]));
    assert!(ratio(1)["within"] == true && ratio(1)["published"].is_null(), "{}", rows[1]);
    // Out of nothing there is no ratio.
    assert!(rows[2]["numbers"][0]["number"] == 0.0 && ratio(2)["ratio"].is_null(), "{}", rows[2]);
    assert!(ratio(2)["within"].is_null());
    assert_eq!(one["variants"][1]["virtual_seconds"], rows[3]["numbers"][1]["number"]);
    // Nothing on both sides is no change.
    assert!(ratio(4)["ratio"] == 1.0 && ratio(4)["within"] == true, "{}", rows[4]);
}

/// Three of them, ratios between any two, bands of numbers, and seeds that the scenario asks for.
#[test]
fn variants_have_names_and_bands() {
    let s = Sandbox::new();
    let (scenario, _) = TINY.split_once("[published]").expect("a part");
    let published = "[published]\nseeds = 2\n[published.variant.none]\npolicy = \"lru-none\"\n\
        [published.variant.old]\npolicy = \"lru-2013\"\n[published.variant.now]\npolicy = \"lru\"\n\
        [[published.row]]\nmetric = \"vmstat.workingset_refault_file\"\npublished = { old = 7 }\n\
        ratio = [{ of = \"now\", to = \"old\", band = [0.5, 2] }, { of = \"old\", to = \"none\" }]\n\
        [[published.row]]\nmetric = \"total.seconds\"\n";
    s.write("three.toml", format!("{scenario}{published}").as_bytes());
    let one = &json(&s, &["three.toml"])[0];
    assert_eq!(one["seeds"], serde_json::json!([1, 2]));
    assert_eq!(json(&s, &["three.toml", "--seed", "7"])[0]["seeds"], serde_json::json!([7]));
    let names: Vec<_> = one["variants"].as_array().expect("variants").iter().map(|v| v["name"].clone()).collect();
    assert_eq!(names, ["none", "old", "now"]);
    let row = &one["rows"][0];
    assert!(row["numbers"][0]["number"] == 0.0 && row["numbers"][1]["published"] == 7.0, "{row}");
    let [first, second] = row["ratios"].as_array().expect("ratios").as_slice() else { panic!("{row}") };
    assert_eq!(
        (first["of"].as_str(), first["to"].as_str(), &first["within"]),
        (Some("now"), Some("old"), &true.into())
    );
    assert!(second["ratio"].is_null() && second["to"] == "none", "{second}");
    assert_eq!(one["rows"][1]["ratios"], serde_json::json!([]));
    let text = ok(&bench(&s, &["three.toml"]));
    for part in ["none     lru-none: ", "now / old", "old / none", "1 of 1 bands are met"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Bands of numbers: of the mean of the seeds.
    let banded =
        published.replace("{ old = 7 }", "{ old = 7 }\nbands = { none = [0, 0], old = [1, inf], now = [0, 0] }");
    s.write("three.toml", format!("{scenario}{banded}").as_bytes());
    let row = &json(&s, &["three.toml"])[0]["rows"][0];
    let within: Vec<_> = (0..3).map(|n| row["numbers"][n]["within"].clone()).collect();
    assert_eq!(within, [true, true, false].map(Value::from));
    assert_eq!(row["numbers"][1]["band"], serde_json::json!([1.0, null]));
    let text = ok(&bench(&s, &["three.toml"]));
    for part in ["0  ok", ">= 1  ok", "0  MISS", "over the seeds", "3 of 4 bands are met"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(bench(&s, &["three.toml", "--strict"]).status.code(), Some(1));
}

#[test]
fn threads_and_repeats_change_nothing() {
    let s = sandbox();
    s.write(
        "again.toml",
        TINY.replace("\"tiny\"", "\"again\"")
            .replace("second\"\nafter", "second\"\nstart = \"10ms\"\nafter")
            .as_bytes(),
    );
    let run = |threads: &str| timeless(json(&s, &["tiny.toml", "again.toml", "--seeds", "2", "--threads", threads]));
    let one = run("1");
    assert_eq!(one.iter().map(|b| b["name"].as_str().expect("a name")).collect::<Vec<_>>(), ["tiny", "again"]);
    assert_ne!(one[0]["rows"][3], one[1]["rows"][3]);
    assert_eq!(one, run("2"));
    if is_long() {
        assert_eq!(one, run("1"));
        assert_eq!(one, run("7"));
    }
}

#[test]
fn several_seeds_have_a_ratio_each() {
    let s = Sandbox::new();
    s.write("tiny.toml", TINY.replace("passes = 8", "passes = 4\npattern = \"uniform\"").as_bytes());
    let all = json(&s, &["tiny.toml", "--seeds", "3"]);
    assert_eq!(all[0]["seeds"], serde_json::json!([1, 2, 3]));
    let row = &all[0]["rows"][1];
    let each = &row["ratios"][0]["ratios"];
    let ratios: Vec<f64> = each.as_array().expect("ratios").iter().filter_map(Value::as_f64).collect();
    assert!(ratios.len() == 3 && ratios[0] != ratios[1], "{row}");
    // Each is what the seed gives alone, and the numbers are their mean.
    let alone: Vec<_> = ["1", "2", "3"].map(|n| json(&s, &["tiny.toml", "--seed", n])[0]["rows"][1].clone()).to_vec();
    assert_eq!(alone.iter().filter_map(|row| row["ratios"][0]["ratio"].as_f64()).collect::<Vec<_>>(), ratios);
    let mean = alone.iter().filter_map(|row| row["numbers"][0]["number"].as_f64()).sum::<f64>() / 3.0;
    assert!((row["numbers"][0]["number"].as_f64().expect("a number") / mean - 1.0).abs() < 1e-12);
    assert!(ok(&bench(&s, &["tiny.toml", "--seeds", "3"])).contains("over the"));
}

#[test]
fn text_names_every_row_and_verdict() {
    let s = sandbox();
    let text = ok(&bench(&s, &["tiny.toml"]));
    for part in [
        "tiny: One file set",
        "lru-none: ",
        "lru-2013: ",
        "s virtual",
        "first, bytes/s",
        "x1.000     0.98..1.02  ok",
        "not published",
        ">= 2  ok",
        "from 0",
        "note: It is made up.",
        "3 of 3 bands are met",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("MISS") && text.lines().all(|line| line.chars().count() <= 140), "{text}");
}

#[test]
fn a_miss_is_told_and_strict_fails() {
    let s = Sandbox::new();
    s.write("tiny.toml", TINY.replace("[2.0, inf]", "[20.0, inf]").as_bytes());
    assert!(ok(&bench(&s, &["tiny.toml"])).contains(">= 20  MISS"));
    assert_eq!(json(&s, &["tiny.toml"])[0]["rows"][1]["ratios"][0]["within"], false);
    let strict = bench(&s, &["tiny.toml", "--strict"]);
    assert_eq!(strict.status.code(), Some(1));
    assert!(strict.stderr.is_empty() && String::from_utf8_lossy(&strict.stdout).contains("MISS"));
    s.write("tiny.toml", TINY.as_bytes());
    ok(&bench(&s, &["tiny.toml", "--strict"]));
    assert_eq!(s.files(), ["tiny.toml"]);
}

/// Two published numbers are a band: half to double of the change; out of nothing, of the
/// difference, in full size. A number that the publication counted has its own.
#[test]
fn bands_follow_from_what_was_published() {
    let s = Sandbox::new();
    let rows = "metric = \"total.seconds\"\nscaled = true\nbefore = 3\nafter = 1\n\
        [[published.row]]\nmetric = \"task.second.hit_rate\"\nbefore = 100\nafter = 104\nspread = [0.5, 1.05]\n\
        [[published.row]]\nmetric = \"vmstat.workingset_refault_file / vmstat.pgscan_file\"\n\
        [[published.row]]\nmetric = \"vmstat.workingset_refault_file\"\nscaled = true\nbefore = 0\nafter = 7\n\
        [[published.row]]\nmetric = \"task.second.ops\"\nbefore = 1000\nafter = 1001\n";
    let tiny = TINY.replace("metric = \"total.seconds\"\nbefore = 3\n", rows);
    let tiny = tiny.replace("metric = \"vmstat.workingset_refault_file\"\nafter = 7", "metric = \"psi.some_us\"");
    s.write("tiny.toml", tiny.as_bytes());
    let all = json(&s, &["tiny.toml"]);
    let ratio = |n: usize| all[0]["rows"][n]["ratios"][0].clone();
    let band = |n: usize| {
        let band = ratio(n)["band"].as_array().map(|ends| ends.iter().filter_map(Value::as_f64).collect::<Vec<_>>());
        (ratio(n)["band_from"].clone(), band.unwrap_or_default())
    };
    assert_eq!(band(3), ("change".into(), vec![0.2, 0.5]));
    assert_eq!(band(4), ("change".into(), vec![0.5, 1.08]));
    assert_eq!(band(5), (Value::Null, vec![]));
    assert_eq!(band(6), ("difference".into(), vec![3.5, 14.0]));
    assert_eq!(band(7), ("no-change".into(), vec![0.99, 1.01]));
    assert_eq!(ratio(0)["band_from"], "given");
    // Thousands of pages more, not seven.
    assert_eq!(ratio(6)["within"], false);
    let text = ok(&bench(&s, &["tiny.toml"]));
    for part in ["not published", "+3.500..+14  MISS", "not known to miss: tiny: vmstat.workingset_refault_file\n"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let summary = ok(&bench(&s, &["tiny.toml", "--summary"]));
    assert!(summary.contains("tiny: second") || summary.contains("tiny: task.second.bytes_per_s"), "{summary}");
    assert!(!summary.contains("psi.some_us") && summary.contains("have no band"), "{summary}");
}

/// Every row of the benchmarks that are compiled in has a band with two ends if both numbers were
/// published, and every row that is known to miss exists.
#[test]
fn every_published_number_has_a_band() {
    let mut rows = Vec::new();
    for (name, text) in refault::bench::BUILTIN {
        let scenario = Scenario::parse(name, text).expect(name);
        let Some(published) = scenario.published else { continue };
        assert!(published.seeds >= Some(3), "{name}: fewer than three seeds");
        let variants: Vec<_> = published.variants.iter().map(|v| v.name.as_str()).collect();
        for row in &published.rows {
            let bands = row.bands.iter().flatten().chain(row.ratios.iter().filter_map(|r| r.band.as_ref()));
            for band in bands.clone() {
                assert!(band.ends[1].is_finite(), "{name}: {}: one end", row.label);
                let BandFrom::Given(why) = &band.from else { continue };
                assert!(why.is_some(), "{name}: {}: a band that nobody published", row.label);
            }
            assert!(
                bands.count() > 0 || row.published.iter().all(Option::is_none),
                "{name}: {}: published, and no band",
                row.label
            );
            rows.extend(variants.iter().map(|variant| format!("{name}: {}, {variant}", row.label)));
            for r in &row.ratios {
                let which = match variants.len() {
                    2 => String::new(),
                    _ => format!(", {} / {}", variants[r.of], variants[r.to]),
                };
                rows.push(format!("{name}: {}{which}", row.label));
            }
        }
    }
    let mut known: Vec<_> = refault::bench::KNOWN.iter().flat_map(|missing| missing.rows).collect();
    let unknown: Vec<_> = known.iter().filter(|row| !rows.iter().any(|r| r == **row)).collect();
    assert!(unknown.is_empty(), "no such rows: {unknown:?}");
    let all = known.len();
    known.sort();
    known.dedup();
    assert_eq!(known.len(), all, "a row is known twice");
}

/// Waits of CPUs for each other are contention, and none of it is hidden in another cost.
#[test]
fn no_benchmark_sets_what_it_costs_to_unmap_a_page() {
    for (name, text) in refault::bench::BUILTIN {
        let scenario = Scenario::parse(name, text).expect(name);
        assert!(!scenario.machine.costs.contains_key("unmap_page"), "{name}");
    }
}

/// Each value of machine and workload of a benchmark is said once to be published, derived,
/// calibrated or chosen.
#[test]
fn every_value_of_a_benchmark_has_an_origin() {
    let mut without = Vec::new();
    for (name, text) in refault::bench::BUILTIN {
        let Some(Published { parameters, .. }) = Scenario::parse(name, text).expect(name).published else { continue };
        without
            .extend(Scenario::values_without_origin(text, &parameters).into_iter().map(|key| format!("{name}: {key}")));
        let Parameters { published, derived, calibrated, chosen } = &parameters;
        let said = published.iter().chain(derived.keys()).chain(calibrated.keys()).chain(chosen.keys());
        let mut keys: Vec<_> = said.collect();
        let all = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), all, "{name}: a key has two origins");
        assert!(derived.values().chain(chosen.values()).all(|why| why.len() > 3), "{name}: an origin without a reason");
    }
    assert!(without.is_empty(), "no origin is said of\n{}", without.join("\n"));
}

#[test]
fn a_name_may_be_the_beginning_of_several() {
    if !only_long("a_name_may_be_the_beginning_of_several") {
        return;
    }
    let s = Sandbox::new();
    let all = json(&s, &["thp-swap", "--seeds", "1"]);
    let names: Vec<_> = all.iter().map(|one| one["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["thp-swap-a", "thp-swap-a-s", "thp-swap-none", "thp-swap-s"]);
    // The test with aligned swap-in always finds ranges after the change, and none to speak of
    // before.
    let row = |metric: &str| {
        let rows = all[0]["rows"].as_array().expect("rows");
        rows.iter().find(|row| row["metric"].as_str().is_some_and(|m| m.contains(metric))).expect("a row")["numbers"]
            .clone()
    };
    assert_eq!(row("1-100.max")[1]["number"], 0.0);
    assert_eq!(row("2-100.min")[0]["number"], 100.0);
    let error = error(&bench(&s, &["thp-swa"]));
    assert!(error.contains("unknown benchmark \"thp-swa\""), "{error}");
}

#[test]
fn list_names_every_benchmark_of_the_repository() {
    let s = Sandbox::new();
    let text = ok(&bench(&s, &["--list"]));
    for (name, _) in refault::bench::BUILTIN {
        assert!(text.lines().any(|line| line.split_whitespace().next() == Some(name)), "{name}: {text}");
    }
}

/// The beginning of each of them, as small as it gets, has every number that was published.
#[test]
fn every_benchmark_has_its_numbers() {
    for (name, text) in refault::bench::BUILTIN {
        let scenario = Scenario::parse(name, text).expect(name);
        let Some(published) = &scenario.published else { continue };
        let mut small =
            [512, 256, 128, 64, 32, 1].into_iter().find_map(|k| scenario.scale(f64::from(k)).ok()).expect(name);
        // A loop's change is known at its end, which takes a while.
        if !published.rows.iter().any(|row| row.metric.starts_with("iteration")) {
            small.end_ns = Some(short_or_long(10_000_000, 100_000_000));
        } else if !is_long() {
            continue;
        }
        for variant in published.variants.iter().step_by(one_in(published.variants.len())) {
            let result = Machine::new(&small, &variant.policy).expect(name).checked().run().expect(name);
            for row in &published.rows {
                assert!(result.metric(&row.metric).is_some(), "{name}: {}", row.metric);
            }
        }
    }
}

#[test]
fn mistakes() {
    let s = sandbox();
    let change = |name: &str, from: &str, to: &str| {
        assert!(TINY.contains(from), "{from}");
        s.write(name, TINY.replace(from, to).as_bytes());
    };
    change("key.toml", "passes", "pases");
    change("size.toml", "64M", "64Q");
    change("cost.toml", "cpus = 2", "cpus = 2\ncosts = { thinking = \"1us\" }");
    change("counter.toml", "vmstat.workingset_refault_file", "vmstat.no_such");
    s.write("bare.toml", TINY.split("[published]").next().expect("a part").as_bytes());
    s.write("broken.toml", b"name = \"a\nb\"");
    let before = s.files();
    let cases: &[(&[&str], &str)] = &[
        (&["no-such"], "unknown benchmark \"no-such\"; known are "),
        (&["missing.toml"], "missing.toml: cannot be opened: No such file or directory; name a scenario file, or a"),
        (&["./missing"], "./missing: cannot be opened"),
        (&["."], ".: is a directory; name a scenario file, or a benchmark that refault bench --list has"),
        (&["bare.toml"], "bare.toml: published: is missing"),
        (&["key.toml"], "key.toml:30: task[1].phase[1].pases: unknown key; did you mean passes?"),
        (&["size.toml"], "size.toml:7: machine.memory: \"64Q\" is not a size"),
        (&["cost.toml"], "cost.toml:7: machine.costs.thinking: unknown key; known are read_hit, write_hit, "),
        (&["counter.toml"], "tiny: published.row: vmstat.no_such is not a result"),
        (&["broken.toml"], "broken.toml:2: not TOML"),
        (&["tiny.toml", "--scale", "0.5"], "\"0.5\" is not a scale"),
        (&["tiny.toml", "--scale", "nan"], "\"nan\" is not a scale"),
        (&["tiny.toml", "--scale", "1000"], "tiny.toml: --scale 1000: memory"),
        (&["tiny.toml", "--seeds", "0"], "--seeds"),
        (&["tiny.toml", "--seed", "-1"], "'-1' for '--seed <N>': is not a whole number, 0 or more"),
        (&["tiny.toml", "--seed", "1", "--seeds", "2"], "--seeds"),
        (&["tiny.toml", "--threads", "0"], "--threads"),
        (&["--list", "--json"], "--json"),
        // The first is good, the second is not: nothing is printed of either.
        (&["tiny.toml", "key.toml"], "key.toml:30"),
    ];
    for (args, want) in cases {
        println!("{args:?}"); // shown when it fails
        let line = error(&bench(&s, args));
        assert!(line.contains(want), "{args:?}: {line}");
    }
    assert_eq!(s.files(), before);
}

/// Seeds would change nothing beside `--vary`, which has one.
#[test]
fn regression_seeds_do_not_go_with_vary() {
    let said = error(&bench(&Sandbox::new(), &["db-switch", "--vary", "--seeds", "5"]));
    assert!(said.contains("--vary") && said.contains("--seeds"), "{said}");
}
