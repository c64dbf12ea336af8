//! The documentation is right: what a page shows is run, links lead somewhere, prose is wrapped,
//! and what the code and the pages say of each other exists.
//!
//! A block that begins with three backticks and `console` holds commands, in lines that begin with
//! a dollar sign, each followed by its output. `console long` marks a block that takes longer than
//! a second or two: such blocks run only where `REFAULT_LONG=1` is set, as `.ci/run` does.
//! `console all` marks one that takes a minute: `REFAULT_LONG=all` runs it. Blocks of any other
//! kind are not run.
//!
//! `REFAULT_LONG=all REFAULT_DOCS=overwrite cargo test -p refault-cli --test docs` writes what the
//! commands say into the pages.

#[path = "docs/lengths.rs"]
mod lengths;
#[path = "docs/markdown.rs"]
mod markdown;
#[path = "docs/real_kernels.rs"]
mod real_kernels;
#[path = "docs/run.rs"]
mod run;
#[path = "docs/sentences.rs"]
mod sentences;
#[path = "docs/settings.rs"]
mod settings;

use markdown::{Block, Page};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Folders of pages: of the command, and of the package of `refault run` and the pager.
const FOLDERS: [&str; 2] = ["docs", "crates/run/docs"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// Files below a directory whose names end so, by path from the root of the repository.
fn files(dir: &str, ends: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![root().join(dir)];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
            let path = entry.expect("an entry").path();
            let name = path.to_str().expect("plain text");
            if path.is_dir() && !name.ends_with("/target") {
                open.push(path);
            } else if ends.iter().any(|end| name.ends_with(end)) {
                found.push(path.strip_prefix(root()).expect("below it").to_str().expect("plain text").to_owned());
            }
        }
    }
    found.sort();
    found
}

/// All pages of the documentation.
fn pages() -> Vec<Page> {
    let mut names: Vec<String> = FOLDERS.iter().flat_map(|folder| files(folder, &[".md"])).collect();
    names.extend(["README.md", "CHANGELOG.md", "data/README.md"].map(str::to_owned));
    names.extend(files("examples", &[".md"]));
    names.into_iter().map(|name| Page::read(&root(), name)).collect()
}

fn none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n{} complaints", complaints.join("\n"), complaints.len());
}

#[test]
fn a_page_shows_what_its_commands_say() {
    let pages = pages();
    let commands: usize = pages.iter().map(|page| page.consoles().count()).sum();
    assert!(commands >= 15, "{commands} blocks with commands: were they taken for something else?");
    none(&run::run_all(&root(), &pages));
}

#[test]
fn the_quick_commands_are_not_all_there_is() {
    let is_long = |block: &Block| block.info == "console long";
    assert!(pages().iter().any(|page| page.consoles().any(is_long)), "what REFAULT_LONG=1 is for");
}

#[test]
fn links_lead_somewhere() {
    let pages = pages();
    let mut complaints = Vec::new();
    for page in &pages {
        for (n, target) in page.links() {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = target.split_once('#').map_or((target.as_str(), None), |(p, a)| (p, Some(a)));
            let name = if path.is_empty() { page.name.clone() } else { markdown::resolve(&page.name, path) };
            if !root().join(&name).exists() {
                complaints.push(format!("{}:{n}: there is no {name}", page.name));
            } else if let Some(anchor) = anchor {
                let there = pages.iter().find(|p| p.name == name).is_some_and(|p| p.anchors().contains(anchor));
                if !there {
                    complaints.push(format!("{}:{n}: {name} has no heading #{anchor}", page.name));
                }
            }
        }
    }
    none(&complaints);
}

#[test]
fn every_page_is_found_from_the_readme() {
    let pages = pages();
    let mut seen = BTreeSet::from(["README.md".to_owned(), "CHANGELOG.md".to_owned(), "data/README.md".to_owned()]);
    let mut open: Vec<String> = seen.iter().cloned().collect();
    while let Some(name) = open.pop() {
        let page = pages.iter().find(|p| p.name == name).expect("a page");
        for (_, target) in page.links() {
            let path = target.split('#').next().unwrap_or_default();
            let to = markdown::resolve(&name, path);
            if pages.iter().any(|p| p.name == to) && seen.insert(to.clone()) {
                open.push(to);
            }
        }
    }
    let lost: Vec<String> = pages.iter().filter(|p| !seen.contains(&p.name)).map(|p| p.name.clone()).collect();
    none(&lost);
}

/// Pages and headings of the documentation that sources, scenarios and data name are there.
#[test]
fn sources_name_pages_and_headings_that_exist() {
    let pages = pages();
    let mut complaints = Vec::new();
    let mut named = 0;
    let mut sources = files("crates", &[".rs", ".toml", ".h", ".c"]);
    sources.extend(files("scenarios", &[".toml"]));
    sources.extend(files("data", &[".toml"]));
    for source in sources {
        let text = std::fs::read_to_string(root().join(&source)).expect("text");
        for (n, line) in text.lines().enumerate() {
            for (path, anchor) in markdown::pages_named(line) {
                named += 1;
                let page = pages.iter().find(|p| p.name == path);
                let is_there = page.is_some_and(|p| anchor.as_ref().is_none_or(|a| p.anchors().contains(a.as_str())));
                if !is_there {
                    let anchor = anchor.map(|a| format!("#{a}")).unwrap_or_default();
                    complaints.push(format!("{source}:{}: there is no {path}{anchor}", n + 1));
                }
            }
        }
    }
    assert!(named > 10, "{named} names: were they taken for something else?");
    none(&complaints);
}

/// Pages and headings of the documentation that the figures of a report name are there, and the
/// page carries them. They are named from `docs`, or from the root.
#[test]
fn reports_name_pages_and_headings_that_exist() {
    let pages = pages();
    let carried = std::fs::read_to_string(root().join("crates/report/src/documentation.rs")).expect("text");
    let (mut complaints, mut named) = (Vec::new(), 0);
    for source in files("crates/report/src", &[".rs"]) {
        let text = std::fs::read_to_string(root().join(&source)).expect("text");
        for word in text.split('"').skip(1).step_by(2) {
            let is_page =
                ["reference/", "how-to/", "mechanisms.md", "crates/"].iter().any(|lead| word.starts_with(lead));
            if !is_page || !word.contains(".md") {
                continue;
            }
            named += 1;
            let (path, anchor) = word.split_once('#').map_or((word, None), |(path, anchor)| (path, Some(anchor)));
            let file = if path.starts_with("crates/") { path.to_owned() } else { format!("docs/{path}") };
            let page = pages.iter().find(|page| page.name == file);
            if !page.is_some_and(|page| anchor.is_none_or(|anchor| page.anchors().contains(anchor))) {
                complaints.push(format!("{source}: there is no {word} ({file})"));
            }
            if !carried.contains(&format!("/{file}\")")) {
                complaints.push(format!("{source}: documentation.rs does not carry {file}"));
            }
        }
    }
    assert!(named > 10, "{named} names: were they taken for something else?");
    none(&complaints);
}

/// The page of a command has each of its flags.
#[test]
fn the_reference_has_every_flag() {
    let mut complaints = Vec::new();
    for (command, pages) in [
        ("replay", &["reference/replay.md", "reference/replay-scenario.md"][..]),
        ("size", &["reference/size.md", "reference/formats.md"]),
        ("whatif", &["reference/whatif.md", "reference/formats.md"]),
        ("explain", &["reference/explain.md"]),
        ("bench", &["reference/bench.md"]),
        ("report", &["reference/report.md", "reference/formats.md"]),
        ("run", &["../crates/run/docs/run.md"]),
        ("top", &["../crates/run/docs/top.md"]),
        ("record", &["reference/record.md"]),
        ("watch", &["reference/watch.md"]),
        ("verify", &["reference/record.md"]),
        ("doctor", &["reference/doctor.md"]),
        ("trace info", &["reference/trace.md", "reference/formats.md"]),
        ("trace convert", &["reference/trace.md", "reference/formats.md"]),
        ("trace generate", &["reference/trace.md"]),
    ] {
        if ["run", "top"].contains(&command) && !run::has_run() {
            continue;
        }
        let text: String = pages
            .iter()
            .map(|page| std::fs::read_to_string(root().join("docs").join(page)).expect("a page of the reference"))
            .collect();
        let flags = run::flags(command);
        assert!(flags.len() > 1, "{command}: {flags:?}");
        for flag in flags.iter().filter(|flag| !["--help", "--version"].contains(&flag.as_str())) {
            if !markdown::has_word(&text, flag) {
                complaints.push(format!("docs/{}: nothing of {flag} of refault {command}", pages[0]));
            }
        }
    }
    none(&complaints);
}

/// The page of a command has each key of its JSON.
#[test]
fn the_reference_has_every_key_of_json() {
    let sqlite = "data/sqlite.parquet";
    let tenants = ["replay", "data/tenants.toml", "--scale", "2", "--json", "--swap-map"];
    let mut complaints = Vec::new();
    for (page, args, objects) in [
        ("doctor.md", &["doctor", "--json"][..], &[""][..]),
        ("formats.md", &["trace", "info", sqlite, "--json"], &["", "/via", "/collapse", "/objects/0"]),
        ("replay.md", &["replay", sqlite, "--memory", "50%", "--json", "--swap-map"], &["/rows/0", "/rows/0/swap/0"]),
        (
            "../../crates/run/docs/run.md",
            &["run", "--memory-max", "64M", "--quiet", "--json", "-", "--", "true"],
            &[""],
        ),
        (
            "whatif.md",
            &["whatif", sqlite, "--kernel", "6.18", "--starts", "1", "--json"],
            &["", "/today", "/alternatives/0", "/alternatives/0/effects/0"],
        ),
        ("size.md", &["size", sqlite, "--target", "hit_rate>95%", "--json"], &[""]),
        (
            "bench.md",
            &["bench", "db-switch", "--scale", "512", "--json"],
            &["/benchmarks/0", "/benchmarks/0/variants/0", "/benchmarks/0/rows/1"],
        ),
        (
            "replay-scenario.md",
            &tenants,
            &["/runs/0", "/runs/0/tasks/0", "/runs/0/groups/1", "/runs/0/devices/0", "/runs/0/node", "/runs/0/swap/0"],
        ),
    ] {
        if page == "doctor.md" && !run::has_run() {
            continue;
        }
        if page.ends_with("/run.md") && !run::can_run() {
            println!("{page}: skipped, this machine does not allow refault run");
            continue;
        }
        let text = std::fs::read_to_string(root().join("docs/reference").join(page)).expect("a page");
        let json = run::json(&root(), args);
        for object in objects {
            let keys = json.pointer(object).and_then(|v| v.as_object()).unwrap_or_else(|| panic!("{args:?}: {object}"));
            for key in
                keys.keys().filter(|key| !text.contains(&format!("`{key}`")) && !text.contains(&format!("\"{key}\"")))
            {
                complaints.push(format!("docs/reference/{page}: nothing of {key} in {object}"));
            }
        }
    }
    none(&complaints);
}

/// Commands that are not run (they need a program, a right or a network) have flags that exist, at
/// least.
#[test]
fn commands_that_are_not_run_have_flags_that_exist() {
    let mut complaints = Vec::new();
    let has_run = run::has_run();
    let known: Vec<(&str, BTreeSet<String>)> = [
        "replay",
        "report",
        "size",
        "bench",
        "run",
        "top",
        "record",
        "watch",
        "whatif",
        "explain",
        "verify",
        "doctor",
        "trace info",
        "trace convert",
        "trace generate",
    ]
    .map(|command| (command, run::flags(command)))
    .to_vec();
    for page in pages() {
        for block in page.blocks.iter().filter(|block| block.info == "sh") {
            for command in run::refault_commands(&block.lines.join("\n")) {
                let Some((name, flags)) =
                    known.iter().find(|(name, _)| command.starts_with(&format!("refault {name}")))
                else {
                    complaints.push(format!("{}:{}: no such command: {command}", page.name, block.line));
                    continue;
                };
                if ["run", "top"].contains(name) && !has_run {
                    continue;
                }
                let own = command.split(" -- ").next().unwrap_or_default();
                for word in own.split_whitespace().filter(|word| word.starts_with("--") && word.len() > 2) {
                    let flag = word.split('=').next().unwrap_or_default();
                    if !flags.contains(flag) {
                        complaints.push(format!("{}:{}: refault {name} has no {flag}", page.name, block.line));
                    }
                }
            }
        }
    }
    none(&complaints);
}

/// Files that pages name exist. Measurements are of their time.
#[test]
fn pages_name_files_that_exist() {
    let mut complaints = Vec::new();
    let is_dated = |name: &str| name.contains("/measurements/") || name == "CHANGELOG.md";
    for page in pages().iter().filter(|page| !is_dated(&page.name)) {
        for (n, span) in page.code_spans() {
            let is_path = ["crates/", "data/", "scenarios/", "fuzz/"].iter().any(|lead| span.starts_with(lead));
            if is_path && !span.contains(['*', ' ']) && !root().join(&span).exists() {
                complaints.push(format!("{}:{n}: there is no {span}", page.name));
            }
        }
    }
    none(&complaints);
}

/// "23 published benchmarks" is how many there are.
#[test]
fn benchmarks_are_counted() {
    // Reports, in a folder of their own, are not published.
    let there = files("scenarios", &[".toml"]).iter().filter(|name| name.matches('/').count() == 1).count();
    let mut said = 0;
    let mut complaints = Vec::new();
    for page in pages() {
        for (n, line) in page.prose() {
            let words: Vec<&str> = line.split_whitespace().collect();
            for three in words.windows(3).filter(|w| w[1] == "published" && w[2].starts_with("benchmarks")) {
                let Ok(number) = three[0].parse::<usize>() else { continue };
                said += 1;
                if number != there {
                    complaints.push(format!("{}:{n}: {number} published benchmarks; there are {there}", page.name));
                }
            }
        }
    }
    assert!(said > 0, "no page says how many benchmarks there are");
    none(&complaints);
}

/// `docs/architecture.md` has every crate, and every folder of sources opens with a map: a comment
/// that says what is in it, as the page promises.
#[test]
fn every_crate_is_named_and_every_folder_has_a_map() {
    let page = std::fs::read_to_string(root().join("docs/architecture.md")).expect("the page");
    let mut complaints = Vec::new();
    for krate in std::fs::read_dir(root().join("crates")).expect("the crates").map(|e| e.expect("an entry").path()) {
        let name = krate.file_name().and_then(|n| n.to_str()).expect("plain text").to_owned();
        if krate.is_dir() && !page.contains(&format!("crates/{name}")) {
            complaints.push(format!("docs/architecture.md: nothing of crates/{name}"));
        }
    }
    let sources = files("crates", &[".rs"]);
    let folders: BTreeSet<&str> = sources
        .iter()
        .filter(|name| name.contains("/src/"))
        .filter_map(|name| Some(name.rsplit_once('/')?.0))
        .collect();
    for folder in folders.iter().filter(|folder| !folder.ends_with("/src") && !folder.ends_with("/bin")) {
        let heads = [format!("{folder}/mod.rs"), format!("{folder}.rs")];
        let opens =
            |head: &String| std::fs::read_to_string(root().join(head)).is_ok_and(|text| text.starts_with("//! "));
        if !heads.iter().any(opens) {
            complaints.push(format!("{folder}: neither its mod.rs nor {folder}.rs opens with a comment"));
        }
    }
    assert!(folders.len() > 50, "{folders:?}");
    none(&complaints);
}

/// The calls and effects that `docs/architecture.md` lists exist in the engine.
#[test]
fn formats_of_columns_are_in_their_table() {
    let page = std::fs::read_to_string(root().join("docs/reference/formats.md")).expect("the page");
    let row =
        |(name, fields, of): (&str, &str, &str)| format!("| `{name}` | `{}` | {of} |", fields.replace('|', "\\|"));
    let missing: Vec<_> = refault_trace::Columns::all_named().map(row).filter(|row| !page.contains(row)).collect();
    none(&missing);
}

#[test]
fn the_boundary_is_that_of_the_engine() {
    let page = std::fs::read_to_string(root().join("docs/architecture.md")).expect("the page");
    let sources: String = files("crates/mm/src", &[".rs"])
        .iter()
        .map(|name| std::fs::read_to_string(root().join(name)).expect("text"))
        .collect();
    let mut complaints = Vec::new();
    let mut named = 0;
    for (from, to, before) in [
        ("### Calls of a driver", "An access is one of", &["fn "][..]),
        ("### The world's answers", "### Drivers", &["fn ", "\n    ", "struct "]),
    ] {
        let part = page.split_once(from).and_then(|(_, rest)| rest.split_once(to)).expect("the headings are there").0;
        for line in part.lines().filter(|line| line.starts_with("| `")) {
            let cell = line.trim_start_matches("| ").split(" | ").next().unwrap_or_default();
            for name in cell.split('`').skip(1).step_by(2) {
                let name = name.split(['(', ' ']).next().unwrap_or_default().rsplit("::").next().unwrap_or_default();
                named += 1;
                if !before.iter().any(|lead| markdown::has_word(&sources, &format!("{lead}{name}"))) {
                    complaints.push(format!("docs/architecture.md: the engine has no {name}"));
                }
            }
        }
    }
    assert!(named > 40, "{named} names: were they taken for something else?");
    none(&complaints);
}

/// Tests that pages tell the reader to run exist: `--test NAME` is a test program of some crate,
/// and `--test all FILE::` a file of its tests.
#[test]
fn tests_that_pages_name_exist() {
    let mut programs: BTreeSet<String> = ["abi", "c", "layout"].map(str::to_owned).into();
    let mut modules = BTreeSet::new();
    for name in files("crates", &["Cargo.toml"]) {
        let manifest = std::fs::read_to_string(root().join(&name)).expect("a manifest");
        for section in manifest.split("[[test]]").skip(1) {
            let program = section.split('"').nth(1).expect("a test has a name");
            programs.insert(program.to_owned());
        }
    }
    for name in files("crates", &["/tests/all.rs"]) {
        let list = std::fs::read_to_string(root().join(name)).expect("the list of tests");
        modules.extend(list.lines().filter_map(|l| Some(l.strip_prefix("mod ")?.strip_suffix(';')?.to_owned())));
    }
    let mut complaints = Vec::new();
    for page in pages().iter().filter(|page| page.name != "CHANGELOG.md") {
        let text = std::fs::read_to_string(root().join(&page.name)).expect("a page");
        for after in text.split("--test ").skip(1) {
            let mut words = after.split(|c: char| c.is_whitespace() || c == '`').filter(|word| !word.is_empty());
            let program = words.next().unwrap_or_default();
            if !programs.contains(program) {
                complaints.push(format!("{}: there is no test program {program}", page.name));
            }
            let module = words.next().and_then(|word| word.split_once("::")).map(|(module, _)| module);
            if program == "all" && !module.is_some_and(|module| modules.contains(module)) {
                complaints.push(format!("{}: {program} has no {module:?}", page.name));
            }
        }
    }
    assert!(programs.len() > 5 && modules.len() > 30, "found {programs:?} and {modules:?}");
    none(&complaints);
}
