//! `refault report`: the page has the figures of a replay, keeps them, and is drawn by a browser.

use crate::common::command::{Sandbox, error, ok, rows};
use crate::verify::made_up;
use refault_testing::{Need, install, only_long, require};
use refault_trace::{Format, Header, NativeWriter, ObjectInfo, ObjectKind, Op, Record};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes that a page may take at most.
const MOST_BYTES: u64 = 2 << 20;

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// The results that a page carries.
fn carried(page: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(page).expect("a page");
    let start = text.find("id=\"refault-source\">").expect("results") + 20;
    let end = start + text[start..].find("</script>").expect("an end");
    serde_json::from_str(&text[start..end]).expect("JSON")
}

pub fn document(page: &Path) -> Value {
    carried(page)[0]["document"].clone()
}

pub fn report(sandbox: &Sandbox, inputs: &[&Path], name: &str, flags: &[&str]) -> PathBuf {
    let out = sandbox.path(name);
    let mut args = vec!["report".to_owned()];
    args.extend(inputs.iter().map(|path| path.to_str().expect("plain text").to_owned()));
    args.extend(flags.iter().map(|flag| (*flag).to_owned()));
    args.extend(["-o".to_owned(), out.to_str().expect("plain text").to_owned()]);
    ok(&sandbox.run(&args));
    let bytes = std::fs::metadata(&out).expect("the page").len();
    assert!(bytes < MOST_BYTES, "{name} has {bytes} bytes");
    out
}

/// A trace whose names would break a page that takes them for anything but text.
fn hostile(sandbox: &Sandbox, objects: u32) -> PathBuf {
    let path = sandbox.path("hostile.parquet");
    let mut writer = NativeWriter::create(&path).expect("a writer");
    let mut header = Header::new(Format::Native);
    let names = [
        "</script><script>window.hostile = 1</script>".to_owned(),
        "\"><img src=x onerror=\"window.hostile = 1\">".to_owned(),
        "a\nb\r\n\u{2028}c\u{202e}d\u{0}".to_owned(),
        "'\\u003c'&lt;`${window.hostile = 1}`<!--".to_owned(),
        "x".repeat(4000),
        String::new(),
    ];
    for n in 0..objects {
        let name = names.get(n as usize).cloned().unwrap_or_else(|| format!("</script>{n}\"'"));
        let kind = if n % 2 == 0 { ObjectKind::File } else { ObjectKind::Anon };
        header.objects.push(ObjectInfo::new(name, kind));
    }
    header.source = Some("</script><script>window.hostile = 1</script>".into());
    let touch = |n: u32| Record {
        object: n % objects,
        time_ns: u64::from(n) * 1000,
        ..Record::touch(u64::from(n % 3), Op::READ)
    };
    let busy = |n: u32| Record { object: n % 7 % objects, ..touch(n) };
    let all: Vec<Record> = (0..objects).map(touch).chain((0..objects.min(5000)).map(busy)).collect();
    all.chunks(8192).for_each(|chunk| writer.write(chunk).expect("written"));
    writer.finish(&header).expect("finished");
    path
}

#[test]
fn a_page_has_the_figures_of_a_replay() {
    let sandbox = Sandbox::new();
    let trace = root().join("data/sqlite.parquet");
    let page = report(&sandbox, &[&trace], "page.html", &["--max-accesses", "100000", "--limit", "4M"]);
    let document = document(&page);
    let (accesses, pages) = (100_000, document["detail_pages"].as_u64().expect("a size"));
    assert_eq!((document["trace"]["accesses"].as_u64(), pages), (Some(accesses), 1024));
    let replayed = sandbox
        .replay(&trace, &["--max-accesses", "100000", "--memory", "1024p", "--json", "--policy", "lru,mglru,opt"]);
    for row in rows(&ok(&replayed)) {
        let of =
            |all: &Value| all.as_array().and_then(|all| all.iter().find(|one| one["policy"] == row["policy"])).cloned();
        let detail = of(&document["details"]).expect("a policy");
        assert_eq!(detail["misses"], row["misses"]);
        let sum = |all: &Value| all.as_array().map(|all| all.iter().filter_map(Value::as_u64).sum::<u64>());
        assert_eq!(sum(&detail["window_misses"]), row["misses"].as_u64());
        assert_eq!(sum(&detail["object_misses"]), row["misses"].as_u64());
        let curve = of(&document["curves"]).expect("a curve");
        let at = curve["pages"].as_array().and_then(|all| all.iter().position(|p| p == pages)).expect("the size");
        let ratio = row["misses"].as_f64().expect("misses") / accesses as f64;
        assert!((curve["miss_ratio"][at].as_f64().expect("a ratio") - ratio).abs() < 1e-5);
        // Resident pages are those on lists, but for those that wait in batches.
        let Some(resident) = detail["object_resident"].as_array().filter(|all| !all.is_empty()) else { continue };
        let last: u64 = resident.iter().filter_map(|all| all.as_array()?.last()?.as_u64()).sum();
        let lists = ["active_anon", "inactive_anon", "active_file", "inactive_file"];
        let listed: u64 = lists.iter().filter_map(|name| row["gauges"][name].as_u64()).sum();
        assert!(last.abs_diff(listed) <= 64, "{}: {last} resident, {listed} on lists", row["policy"]);
        // Refaults are pages that came back: each has a distance, also those without a shadow any
        // more.
        let distances =
            detail["distance_bins"].as_array().expect("bins").iter().filter_map(|bin| bin[1].as_u64()).sum::<u64>();
        let refaults: u64 = ["workingset_refault_anon", "workingset_refault_file"]
            .iter()
            .filter_map(|name| row["counters"][name].as_u64())
            .sum();
        assert!(distances >= refaults, "{distances} came back, {refaults} refaults");
    }
    let heat: u64 = document["heat"]["counts"].as_array().expect("cells").iter().filter_map(Value::as_u64).sum();
    assert_eq!(heat, accesses);
}

#[test]
fn a_page_is_read_back_and_stands_beside_another() {
    let sandbox = Sandbox::new();
    let trace = sandbox.generate("t.parquet", &["20000: A:zipf:500"]);
    let old = report(&sandbox, &[&trace], "old.html", &[]);
    let again = report(&sandbox, &[&old], "again.html", &[]);
    assert_eq!(carried(&old), carried(&again));
    let other = report(&sandbox, &[&trace], "other.html", &["--policy", "lru,opt"]);
    let both = report(&sandbox, &[&old, &other], "both.html", &[]);
    let names = carried(&both).iter().map(|one| one["name"].clone()).collect::<Vec<_>>();
    assert_eq!(names, ["t.parquet (1)", "t.parquet (2)"]);
    let text = std::fs::read_to_string(&both).expect("a page");
    assert!(text.contains("What is different?") && text.contains("id=\"i2-memory\""));
    // The same input and flags give the same page.
    let twice = report(&sandbox, &[&trace], "old.html", &[]);
    assert_eq!(carried(&twice), carried(&again));
}

#[test]
fn what_is_no_result_is_told_so() {
    let sandbox = Sandbox::new();
    for (name, text, said) in [
        ("a.json", "{\"x\": 1}", "but not of refault"),
        ("b.json", "{\"rows\": [", "is no JSON"),
        ("c.json", "{\"refault\": 1, \"rows\": [{\"misses\": \"many\"}]}", "has no \"trace\" in rows[0]"),
        (
            "many.json",
            r#"{"refault": "1", "rows": [{"trace": "t", "policy": "lru", "memory_pages": 1, "footprint_pages": 1,
                "page_size": 4096, "accesses": 1, "misses": "many"}]}"#,
            "is not what refault writes",
        ),
        ("empty.json", "{\"refault\": \"1\", \"rows\": []}", "has nothing in \"rows\""),
        ("d.html", "<html></html>", "no page of refault report"),
        ("e.html", "<script type=\"application/json\" id=\"refault-source\">[{]</script></html>", "broken"),
    ] {
        let path = sandbox.write(name, text.as_bytes());
        let complaint = error(&sandbox.run(&["report".as_ref(), path.as_os_str(), "-o".as_ref(), "out.html".as_ref()]));
        assert!(complaint.contains(said) && complaint.contains(name), "{complaint}");
    }
    assert!(!sandbox.files().contains(&"out.html".to_owned()));
    let complaint = error(&sandbox.run(&["report", "a.json", "-o", "a.json"]));
    assert!(complaint.contains("is an input"), "{complaint}");
}

#[test]
fn a_page_is_opened_or_it_is_said_that_it_was_not() {
    let sandbox = Sandbox::new();
    let trace = sandbox.generate("t.parquet", &["2000: A:zipf:300"]);
    let before = std::env::var("PATH").unwrap_or_default();
    let run = |opener: &str| {
        install(&sandbox.write("xdg-open.sh", opener.as_bytes()), &sandbox.path("xdg-open"));
        let path = format!("{}:{before}", sandbox.path(".").display());
        let mut command = Command::new(env!("CARGO_BIN_EXE_refault"));
        command.args(["report", "--open", "-o", "out.html"]).arg(&trace).current_dir(sandbox.path("."));
        command.env("PATH", path).output().expect("the command")
    };
    ok(&run("#!/bin/sh\necho \"$1\" > opened\n"));
    assert_eq!(std::fs::read_to_string(sandbox.path("opened")).expect("what was opened"), "out.html\n");
    let complaint = error(&run("#!/bin/sh\nexit 3\n"));
    assert!(complaint.contains("out.html is written, but xdg-open found nothing"), "{complaint}");
}

#[test]
fn a_recording_has_the_kernel_beside_us() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("r.parquet");
    made_up(&path, 400, |i| i < 100 || i % 7 == 0);
    let page = report(&sandbox, &[&path], "recording.html", &[]);
    let verified = &document(&page)["verify"];
    assert_eq!(verified["windows"].as_array().map(Vec::len), Some(64));
    let sum =
        |key: &str| verified["windows"].as_array().into_iter().flatten().filter_map(|w| w[key].as_u64()).sum::<u64>();
    assert_eq!((sum("accesses"), sum("kernel_misses"), sum("lab_misses")), (1000, 100 + 128, 100));
    assert_eq!(verified["objects"][0]["kernel_misses"], 228);
    // The JSON of the command alone gives the same page.
    let json = ok(&sandbox.run(&["verify", "r.parquet", "--json"]));
    let page = report(&sandbox, &[&sandbox.write("v.json", json.as_bytes())], "verify.html", &[]);
    assert_eq!(&document(&page)["windows"], &verified["windows"]);
    assert!(std::fs::read_to_string(&page).expect("a page").contains("What did the kernel do?"));
}

#[test]
fn the_limit_of_a_recording_is_a_line_and_its_details_are_of_it() {
    let sandbox = Sandbox::new();
    let recording = root().join("data/orders.parquet");
    let limits = |flags: &[&str]| {
        let few = ["--policy", "lru", "--memory", "10%"];
        let document = document(&report(&sandbox, &[&recording], "limit.html", &[&few, flags].concat()));
        (document["limit_pages"].clone(), document["detail_pages"].clone())
    };
    let pages = |mib: u64| Value::from(mib * 256);
    assert_eq!(limits(&[]), (pages(24), pages(24)));
    assert_eq!(limits(&["--limit", "16M"]), (pages(16), pages(16)));
}

#[test]
fn a_page_has_the_groups_of_a_replay() {
    let sandbox = Sandbox::new();
    let trace = sandbox.generate(
        "t.parquet",
        &["40000: web:zipf:2000:memcg=/web/front,weight=4; heap:zipf:1000:kind=anon,memcg=/web/back; log:loop:9000:memcg=/log"],
    );
    let page = report(&sandbox, &[&trace], "groups.html", &["--at", "2000p", "--policy", "lru,mglru,opt"]);
    let document = document(&page);
    let under = document["groups"].as_array().expect("policies");
    let flags = ["--memcg-column", "--json", "-m", "2000p", "--policy", "lru,mglru"];
    let replayed = rows(&ok(&sandbox.replay(&trace, &flags)));
    assert_eq!(under.len(), replayed.len());
    for (under, row) in under.iter().zip(&replayed) {
        assert_eq!((&under["policy"], &under["memory_pages"]), (&row["policy"], &row["memory_pages"]));
        for group in under["groups"].as_array().expect("groups") {
            let rows = row["groups"].as_array().expect("groups");
            let same = rows.iter().find(|g| g["path"] == group["path"]).expect("the group");
            for key in ["accesses", "misses", "refaults"] {
                assert_eq!(group[key], same[key], "{key} of {}", group["path"]);
            }
            let sum = |key: &str| group[key].as_array().into_iter().flatten().filter_map(Value::as_u64).sum::<u64>();
            assert_eq!(Some(sum("window_misses")), same["misses"].as_u64());
            assert_eq!(Some(sum("window_refaults")), same["refaults"].as_u64());
            let last = group["window_resident"].as_array().and_then(|all| all.last()?.as_u64());
            let lists = ["active_anon", "inactive_anon", "active_file", "inactive_file"];
            assert_eq!(last, Some(lists.iter().filter_map(|name| same["gauges"][name].as_u64()).sum()));
        }
    }
    let text = std::fs::read_to_string(&page).expect("a page");
    assert!(text.contains("Which group takes the memory") && text.contains("Refaults by group"));
    // With limits of their own and nothing else, groups have those alone.
    sandbox.write("limits.toml", b"[group.\"/web\"]\nmemory.max = \"6M\"\n[group.\"/log\"]\nmemory.max = \"2M\"\n");
    let limited = ["--policy", "mglru", "--memcg-limits", "limits.toml"];
    let page = report(&sandbox, &[&trace], "limits.html", &limited);
    let under = &self::document(&page)["groups"][0];
    assert!(under["memory_pages"].is_null() && under["groups"][0]["limits"] == "max 2.0M", "{}", under["groups"]);
    let plain = sandbox.generate("plain.parquet", &["900: A:loop:300"]);
    let args = ["report", plain.to_str().expect("text"), "--memcg-limits", "limits.toml"];
    assert!(error(&sandbox.run(&args)).contains("says nothing of memory cgroups"));
}

#[test]
fn json_of_a_scenario_has_its_time_series() {
    if !only_long("json_of_a_scenario_has_its_time_series") {
        return;
    }
    let sandbox = Sandbox::new();
    let scenario = root().join("data/tenants.toml");
    let of_scenario = report(&sandbox, &[&scenario], "a.html", &["--scale", "2"]);
    let json = ok(&sandbox.replay(&scenario, &["--scale", "2", "--json"]));
    let of_json = report(&sandbox, &[&sandbox.write("b.json", json.as_bytes())], "b.html", &[]);
    let series = |page: &Path| document(page)["runs"][0]["series"].clone();
    assert!(series(&of_json)["seconds"].as_array().is_some_and(|all| all.len() > 2 && all.len() <= 481));
    assert_eq!(series(&of_scenario), series(&of_json));
    // JSON of an older version has none, and the page says so.
    let mut old: Value = serde_json::from_str(&json).expect("JSON");
    old["runs"][0].as_object_mut().expect("a run").remove("series");
    let old = report(&sandbox, &[&sandbox.write("c.json", old.to_string().as_bytes())], "c.html", &[]);
    assert!(std::fs::read_to_string(&old).expect("a page").contains("This JSON has no time series"));
}

/// Chromium, and the folder of the script that drives it.
fn browser() -> Result<(PathBuf, PathBuf), String> {
    let found = |name: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
    };
    let chromium = found("chromium").or_else(|| found("chromium-browser")).ok_or("there is no chromium")?;
    found("node").ok_or("there is no node")?;
    let folder = root().join("crates/report/tests/browser");
    match folder.join("node_modules/playwright-core").is_dir() {
        true => Ok((chromium, folder)),
        false => Err("npm ci --prefix crates/report/tests/browser was not run".into()),
    }
}

/// Opens pages and has all of them looked at; what was seen.
fn look(pages: &[PathBuf]) -> Option<Value> {
    let (chromium, folder) = require(Need::Browser, browser())?;
    let output =
        Command::new("node").arg(folder.join("check.mjs")).arg(chromium).args(pages).output().expect("node runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text.lines().last().map(|line| serde_json::from_str(line).expect("what was seen"))
}

/// The JSON of a program that ran in less memory than it wants.
fn a_run(sandbox: &Sandbox) -> Option<PathBuf> {
    let script = "head -c 40000000 /dev/zero | tr '\\0' x | sort >/dev/null";
    let flags =
        ["run", "--memory-max", "16M", "--swap-max", "256M", "--json", "run.json", "-q", "--", "sh", "-c", script];
    let output = sandbox.run(&flags);
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(2) {
        refault_testing::absent(Need::Uffd, said.trim());
        return None;
    }
    assert!(output.status.success(), "{said}");
    Some(sandbox.path("run.json"))
}

#[test]
fn a_browser_draws_every_chart() {
    if require(Need::Browser, browser()).is_none() {
        return;
    }
    let sandbox = Sandbox::new();
    let data = |name: &str| root().join("data").join(name);
    let sqlite = report(&sandbox, &[&data("sqlite.parquet")], "sqlite.html", &["--limit", "4M"]);
    let mixed = sandbox.generate(
        "mixed.parquet",
        &[
            "60000: A:zipf:3000:memcg=/a; B:loop:2000:op=w,memcg=/b",
            "40000: A:zipf:3000:memcg=/a; C:uniform:800:kind=anon,via=map,memcg=/c",
        ],
    );
    let mixed = report(&sandbox, &[&mixed], "mixed.html", &["--policy", "lru,mglru,opt,lru-none"]);
    let oltp = refault_testing::traces().map(|root| {
        let flags = ["--max-accesses", "200000", "--memory", "1000p,2000p,5000p,10000p,20000p"];
        report(&sandbox, &[&root.join("arc/OLTP.lis.zst")], "oltp.html", &flags)
    });
    let recording = sandbox.path("recording.parquet");
    made_up(&recording, 60, |i| i < 100 || i % 3 == 0);
    let recording = report(&sandbox, &[&recording], "recording.html", &[]);
    let tenants = report(&sandbox, &[&data("tenants.toml")], "tenants.html", &["--scale", "2"]);
    let json = ok(&sandbox.run(&["bench", "db-switch", "--scale", "64", "--json"]));
    let bench = report(&sandbox, &[&sandbox.write("bench.json", json.as_bytes())], "bench.html", &[]);
    let kept = sandbox.write("kept.json", include_bytes!("report/run.json"));
    let kept = report(&sandbox, &[&kept], "kept.html", &[]);
    let run = a_run(&sandbox).map(|json| report(&sandbox, &[&json], "run.html", &[]));
    let json = ok(&sandbox.replay(
        &data("sqlite.parquet"),
        &["--max-accesses", "50000", "--windows", "20", "--json", "--html", "replay.html"],
    ));
    let replay = report(&sandbox, &[&sandbox.write("replay.json", json.as_bytes())], "replay-json.html", &[]);
    let few =
        ["whatif", data("sqlite.parquet").to_str().expect("text"), "--limit", "50%,150%", "--json"].map(str::to_owned);
    let json = ok(&sandbox.run(&few.each_ref().map(String::as_str)));
    let whatif = report(&sandbox, &[&sandbox.write("whatif.json", json.as_bytes())], "whatif.html", &[]);
    let both = report(&sandbox, &[&sqlite, &mixed], "both.html", &[]);
    let names = report(&sandbox, &[&hostile(&sandbox, 300)], "hostile.html", &[]);
    let mut pages =
        vec![sqlite, mixed, recording, tenants, bench, kept, replay, sandbox.path("replay.html"), both, names, whatif];
    pages.extend(oltp.into_iter().chain(run));
    let Some(seen) = look(&pages) else { return };
    assert_eq!(seen["pages"], pages.len());
    for (what, least) in [
        ("charts", 60),
        ("heats", 5),
        ("ranges", 10),
        ("hovers", 60),
        ("toggles", 60),
        ("zooms", 60),
        ("searches", 5),
        ("passages", 5),
        ("words", 5),
        ("logs", 5),
        ("widths", 33),
    ] {
        assert!(seen[what].as_u64() >= Some(least), "{what}: {seen}");
    }
}

#[test]
fn hostile_names_and_100_000_objects_do_not_break_a_page() {
    let sandbox = Sandbox::new();
    let page = report(&sandbox, &[&hostile(&sandbox, 100_000)], "hostile.html", &["--memory", "10%,30%,60%"]);
    let text = std::fs::read_to_string(&page).expect("a page");
    // The page's own scripts and data, and nothing else.
    assert_eq!(text.matches("<script").count(), 4);
    assert_eq!(text.matches("</script").count(), 4);
    assert!(!text.contains("<img"));
    let document = document(&page);
    assert_eq!(document["trace"]["objects"], 100_000);
    let objects = document["objects"].as_array().expect("objects");
    assert_eq!(objects.len(), 201);
    assert_eq!(objects[200]["name"], "</ (99800 others)");
    assert!(
        objects
            .iter()
            .all(|o| o["name"].as_str().is_some_and(|name| name.chars().count() <= 221 && !name.contains('\n')))
    );
    look(&[page]);
    // Names in results of other commands, too.
    let evil = "</script><script>window.hostile=1</script>";
    let rows = format!(
        r#"{{"refault":"{evil}","rows":[{{"trace":"{evil}","policy":"{evil}","memory_pages":1,"page_size":4096,"footprint_pages":9,"accesses":9,"misses":4}}]}}"#
    );
    let json = sandbox.write("evil.json", rows.as_bytes());
    let page = report(&sandbox, &[&json], "evil.html", &[]);
    assert_eq!(std::fs::read_to_string(&page).expect("a page").matches("<script").count(), 4);
}

/// How many samples a parser of OpenMetrics finds; `None`: there is no parser.
fn parsed(file: &Path) -> Option<u64> {
    const PARSE: &str = "import sys; from prometheus_client.openmetrics.parser import text_string_to_metric_families as p; \
                         print(sum(len(f.samples) for f in p(open(sys.argv[1]).read())))";
    let output = Command::new("python3").args(["-c", PARSE]).arg(file).output();
    let found = output.map_err(|e| format!("there is no python3: {e}")).and_then(|o| {
        let said = String::from_utf8_lossy(&o.stderr).into_owned();
        if said.contains("No module named") { Err(said.trim().replace('\n', " ")) } else { Ok((o, said)) }
    });
    let (output, said) = require(Need::Prometheus, found)?;
    assert!(output.status.success(), "{said}");
    Some(String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number"))
}

#[test]
fn a_parser_reads_the_metrics_of_a_replay() {
    let sandbox = Sandbox::new();
    let trace = sandbox.generate("a\"b\\.parquet", &["5000: A:zipf:200"]);
    ok(&sandbox.replay(&trace, &["--metrics", "m.prom", "--memory", "20%,40%"]));
    let text = std::fs::read_to_string(sandbox.path("m.prom")).expect("metrics");
    assert!(text.contains("refault_replay_misses_total{trace=\"a\\\"b\\\\\",policy=\"opt\","), "{text}");
    let samples = text.lines().filter(|line| !line.starts_with('#')).count() as u64;
    if let Some(found) = parsed(&sandbox.path("m.prom")) {
        assert_eq!(found, samples);
    }
}

#[test]
fn a_run_writes_its_metrics_each_second_and_is_found() {
    let sandbox = Sandbox::new();
    let runtime = sandbox.path("runtime");
    std::fs::create_dir(&runtime).expect("writable");
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_refault"));
        command.args(args).current_dir(sandbox.path("")).env("XDG_RUNTIME_DIR", &runtime);
        command
    };
    let complaint = error(&run(&["top"]).output().expect("runs"));
    if complaint.contains("refault-run: not found") {
        refault_testing::absent(Need::RefaultRun, complaint.trim());
        return;
    }
    assert!(complaint.contains("no run is under way"), "{complaint}");
    let script = "head -c 40000000 /dev/zero | tr '\\0' x | sort >/dev/null; sleep 3";
    let flags =
        ["run", "--memory-max", "16M", "--swap-max", "256M", "--metrics", "m.prom", "-q", "--", "sh", "-c", script];
    let mut child = run(&flags).stderr(std::process::Stdio::piped()).spawn().expect("runs");
    let live = runtime.join("refault").join(format!("{}.prom", child.id()));
    // It is written for the first time after a second.
    let empty = || std::fs::metadata(&live).map_or(0, |file| file.len()) == 0;
    while empty() && child.try_wait().expect("a child").is_none() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let text = std::fs::read_to_string(&live);
    let complaint = run(&["top"]).output().map(|o| String::from_utf8_lossy(&o.stderr).into_owned());
    let output = child.wait_with_output().expect("ends");
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(2) {
        refault_testing::absent(Need::Uffd, said.trim());
        return;
    }
    assert!(output.status.success(), "{said}");
    let text = text.expect("a run that lasts seconds is found");
    assert!(text.contains("refault_run_memory_max_bytes 16777216\n") && text.ends_with("# EOF\n"), "{text}");
    // Standard output is no terminal here; more than one run is not asked about.
    assert!(complaint.expect("runs").contains("no terminal"));
    assert!(!live.exists(), "the file is gone with the run");
    let text = std::fs::read_to_string(sandbox.path("m.prom")).expect("metrics");
    let pages = |text: &str| {
        text.lines().find_map(|line| line.strip_prefix("refault_run_swapped_out_pages_total ")?.parse::<u64>().ok())
    };
    assert!(pages(&text) > Some(1000), "{text}");
    if let Some(found) = parsed(&sandbox.path("m.prom")) {
        assert!(found > 80, "{found} samples");
    }
}
