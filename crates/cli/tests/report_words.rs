//! `refault report`: whose rules the figures follow, what the words say, and what is refused.

use crate::common::command::{Sandbox, error, ok, rows};
use crate::report::{document, report, root};
use crate::verify::made_up;
use serde_json::Value;
use std::path::Path;

fn text(page: &Path) -> String {
    std::fs::read_to_string(page).expect("a page")
}

/// Text that people read of a page: no data, no footer.
fn body(page: &Path) -> String {
    let text = text(page);
    let (from, to) = (text.find("<main>").expect("a begin"), text.find("</main>").expect("an end"));
    text[from..to].to_owned()
}

fn of_policy(all: &Value, policy: &str) -> Value {
    all.as_array().and_then(|all| all.iter().find(|one| one["policy"] == policy)).cloned().expect("the policy")
}

#[test]
fn a_recording_has_the_rules_of_its_kernel_as_in_a_replay() {
    let sandbox = Sandbox::new();
    let recording = root().join("data/orders.parquet");
    let mut of_mglru = Vec::new();
    for kernel in [&[][..], &["--kernel", "6.12"]] {
        let flags = [&["--policy", "lru,mglru"], kernel].concat();
        let few = [&flags[..], &["--memory", "60%"]].concat();
        let page = report(&sandbox, &[&recording], "page.html", &few);
        let document = document(&page);
        for row in rows(&ok(&sandbox.replay(&recording, &[&flags[..], &["--memory", "24M", "--json"]].concat()))) {
            let detail = of_policy(&document["details"], row["policy"].as_str().expect("a name"));
            assert_eq!(detail["misses"], row["misses"], "{kernel:?} {}", row["policy"]);
        }
        of_mglru.push(of_policy(&document["details"], "mglru")["misses"].clone());
        let name = if kernel.is_empty() { "6.18" } else { "6.12" };
        assert_eq!(document["kernel"], name);
        // The two lists were recorded: the page tells of them, not of multi-gen LRU.
        assert_eq!(document["recorded_policy"], "lru");
        let text = text(&page);
        assert!(text.contains(&format!("rules of Linux {name}")) && text.contains("Charges, lru"));
    }
    assert_ne!(of_mglru[0], of_mglru[1], "the two kernels have different rules");
}

#[test]
fn the_kernel_page_says_that_others_have_its_misses() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("r.parquet");
    made_up(&path, 60, |i| i < 100 || i % 3 == 0);
    let page = report(&sandbox, &[&path], "r.html", &[]);
    assert!(text(&page).contains("The other pages are of the same machine, with its readahead"));
    let curves = document(&page)["curves"].clone();
    assert!(curves.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(|one| one["policy"] != "opt")));
    let from = document(&page)["verify"]["window_from_s"].clone();
    let from: Vec<f64> = from.as_array().expect("times").iter().filter_map(Value::as_f64).collect();
    assert_eq!((from.len(), from[0]), (64, 0.0));
    assert!(from.is_sorted() && (from[63] - 0.000_985).abs() < 1e-9, "{from:?}");
    let verdict = document(&page)["verify"]["verdict"]["text"].as_str().expect("text").to_owned();
    assert!(verdict.to_lowercase().starts_with("trust it for ") && !verdict.contains("within"), "{verdict}");
    // The line that answers begins with the doubt.
    let (_, why) = verdict.split_once("not for hit rate: ").expect("no trust in hit rates");
    let why = why.split([',', ';']).next().expect("a reason");
    assert!(text(&page).contains(&format!("<p class=\"lead\">Not to be trusted for hit rates: {why}. ")), "{why}");
}

#[test]
fn regression_results_of_one_policy_each_name_the_policies_and_are_compared() {
    let sandbox = Sandbox::new();
    let trace = sandbox.generate("t.parquet", &["20000: A:zipf:500"]);
    let pages = ["lru", "mglru"].map(|policy| {
        let name = format!("{policy}.html");
        report(&sandbox, &[&trace], &name, &["--policy", policy, "--memory", "20%,50%", "--at", "20%"])
    });
    let alone = text(&pages[0]);
    assert!(alone.contains("Under lru with ") && !alone.contains(" is best: "));
    assert!(text(&report(&sandbox, &[&trace], "many.html", &["--memory", "20%,50%"])).contains(" is best: "));
    let replays = ["lru", "mglru"].map(|policy| {
        let json = ok(&sandbox.replay(&trace, &["--policy", policy, "--memory", "20%,50%", "--json"]));
        sandbox.write(&format!("{policy}.json"), json.as_bytes())
    });
    for ([a, b], names) in [(&pages, ["t.parquet (1)", "t.parquet (2)"]), (&replays, ["lru.json", "mglru.json"])] {
        let text = text(&report(&sandbox, &[a, b], "both.html", &[]));
        let [a, b] = names;
        assert!(text.contains(&format!("Differs in policy lru in {a}, mglru in {b}.")), "{names:?}");
        assert!(text.contains(&format!("{b} (mglru) is ")) && text.contains(&format!(" than {a} (lru) in ")));
        assert!(text.contains("Rows of mglru stand beside those of lru with the same memory."));
        assert!(!text.contains("it is of other work"));
    }
}

#[test]
fn regression_results_of_two_commands_on_one_trace_are_not_called_other_work() {
    let sandbox = Sandbox::new();
    let trace = sandbox.generate("t.parquet", &["20000: A:zipf:500"]);
    let replay = ok(&sandbox.replay(&trace, &["--memory", "20%,50%", "--kernel", "6.12", "--json"]));
    let replay = sandbox.write("replay.json", replay.as_bytes());
    let whatif = ok(&sandbox.run(&["whatif", "t.parquet", "--limit", "50%,150%", "--json"]));
    let whatif = sandbox.write("whatif.json", whatif.as_bytes());
    let text = text(&report(&sandbox, &[&replay, &whatif], "both.html", &[]));
    assert!(
        text.contains("it is a result of refault whatif, and replay.json of refault replay of a trace; their figures")
    );
    assert!(!text.contains("it is of other work") && !text.contains("<p class=\"differs\">"));
}

/// Actions of the kernel on pages are in a recording as well, and take no place among its accesses.
#[test]
fn the_time_of_a_recording_is_that_of_its_accesses() {
    let sandbox = Sandbox::new();
    let few = ["--policy", "lru", "--memory", "50%"];
    let document = document(&report(&sandbox, &[&root().join("data/orders.parquet")], "r.html", &few));
    let seconds = |all: &Value| all.as_array().expect("times").iter().filter_map(Value::as_f64).collect::<Vec<_>>();
    let (of_replay, of_verify) = (seconds(&document["window_s"]), seconds(&document["verify"]["window_from_s"]));
    let end = *of_replay.last().expect("an end");
    assert_eq!(document["trace"]["duration_s"], end);
    for (n, at) in of_verify.iter().enumerate() {
        // The same moment in both: one of 64 windows, and one of up to 200.
        let place = n as f64 / of_verify.len() as f64 * (of_replay.len() - 1) as f64;
        let (low, high) =
            (of_replay[(place as usize).saturating_sub(2)], of_replay[(place as usize + 2).min(of_replay.len() - 1)]);
        assert!((low..=high).contains(at), "window {n} begins at {at} s, others at {low} to {high}");
    }
}

#[test]
fn a_tenth_more_and_less_are_replayed() {
    let sandbox = Sandbox::new();
    let trace = root().join("data/sqlite.parquet");
    let some = ["--max-accesses", "60000"];
    let flags = [&some[..], &["--limit", "1000p", "--policy", "mglru,opt"]].concat();
    let page = report(&sandbox, &[&trace], "page.html", &flags);
    let tenths = document(&page)["tenths"].clone();
    let pages = tenths["pages"].as_array().expect("sizes").clone();
    assert!(pages.contains(&900.into()) && pages.contains(&1100.into()) && pages.len() == 4, "{pages:?}");
    let sizes = pages.iter().map(|n| format!("{n}p")).collect::<Vec<_>>().join(",");
    let flags = [&some[..], &["--memory", &sizes, "--policy", "mglru", "--json"]].concat();
    for (row, ratio) in
        rows(&ok(&sandbox.replay(&trace, &flags))).iter().zip(tenths["miss_ratio"].as_array().expect("ratios"))
    {
        let misses = row["misses"].as_f64().expect("misses") / 60_000.0;
        assert!((misses - ratio.as_f64().expect("a ratio")).abs() < 1e-5, "{row}");
    }
    let text = text(&page);
    assert!(
        text.contains(" A tenth more (4.30 MiB) changes that by ") && text.contains(", a tenth less (3.52 MiB) by ")
    );
    assert!(!text.contains("estimated between"));
    // JSON of a replay has only the sizes that it has.
    let json = ok(&sandbox.replay(&trace, &[&some[..], &["--memory", "200p,700p,2000p,3200p", "--json"]].concat()));
    let page = report(&sandbox, &[&sandbox.write("r.json", json.as_bytes())], "r.html", &[]);
    assert!(self::text(&page).contains(", estimated between the sizes that were replayed)"));
}

#[test]
fn flags_that_no_input_has_a_use_for_are_refused() {
    let sandbox = Sandbox::new();
    let trace = sandbox.generate("t.parquet", &["2000: A:zipf:300"]);
    let scenario = root().join("data/tenants.toml");
    let json = sandbox.write("run.json", include_bytes!("report/run.json"));
    for (input, flag, value, said) in [
        (&trace, "--scale", "4", "--scale: is for a scenario, and no input is one"),
        (&scenario, "--limit", "4M", "--limit: is for a trace, and no input is one"),
        (&scenario, "--format", "plain", "--format: is for a trace"),
        (&json, "--policy", "lru", "--policy: is for a trace or a scenario"),
        (&json, "--kernel", "6.18", "--kernel: is for a trace or a scenario"),
    ] {
        let complaint = error(&sandbox.run(&["report", input.to_str().expect("text"), flag, value, "-o", "no.html"]));
        assert!(complaint.contains(said), "{complaint}");
    }
    assert!(!sandbox.files().contains(&"no.html".to_owned()));
    // Beside an input that has one it is taken.
    report(&sandbox, &[&trace, &json], "both.html", &["--limit", "800K"]);
    let complaint = error(&sandbox.run(&["report", "--kernel", "6.18"]));
    assert!(complaint.contains("required") && complaint.contains("<INPUT>"), "{complaint}");
}

#[test]
fn a_finished_report_says_where_it_is() {
    let sandbox = Sandbox::new();
    let trace = sandbox.generate("t.parquet", &["2000: A:zipf:300"]);
    let output = sandbox.run(&["report", trace.to_str().expect("text"), "-o", "out.html"]);
    assert_eq!(ok(&output), "");
    let said = String::from_utf8(output.stderr).expect("text");
    let bytes = std::fs::metadata(sandbox.path("out.html")).expect("a page").len().to_string();
    let digits: String =
        said.chars().skip_while(|&c| c != ':').take_while(|&c| c != 's').filter(char::is_ascii_digit).collect();
    assert!(said.starts_with("out.html: ") && said.ends_with(" s\n") && digits.starts_with(&bytes), "{said}");
}

#[test]
fn a_page_that_is_read_back_has_the_same_digits() {
    let sandbox = Sandbox::new();
    let scenario = root().join("scenarios/db-switch.toml");
    ok(&sandbox.run(&["bench", scenario.to_str().expect("text"), "--scale", "512", "--json", "-o", "bench.json"]));
    let run = include_str!("report/run.json")
        .replace("16777216", "745253993")
        .replace("\"faults\": 19944", "\"faults\": 12345678");
    sandbox.write("run.json", run.as_bytes());
    for json in ["bench.json", "run.json"] {
        let old = report(&sandbox, &[&sandbox.path(json)], "old.html", &[]);
        let again = report(&sandbox, &[&old], "again.html", &[]);
        assert_eq!(body(&old), body(&again), "{json}");
    }
    assert!(text(&sandbox.path("old.html")).contains("12,345,678"));
}
