//! The commands of docs/tenants.md, in small: they run, and say what the page shows.

use crate::common::command::Sandbox;
use std::path::Path;

/// The indented or fenced blocks of a page: those between ``` lines.
fn blocks(page: &str) -> Vec<&str> {
    page.split("```").skip(1).step_by(2).map(|block| block.split_once('\n').map_or("", |(_, text)| text)).collect()
}

/// Words of a shell line; only single quotes are known.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (n, part) in line.split('\'').enumerate() {
        match n % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

/// A table without its figures: its words.
fn names(line: &str) -> Vec<&str> {
    line.split_whitespace().filter(|word| !word.contains(|c: char| c.is_ascii_digit())).collect()
}

#[test]
fn the_page_shows_what_its_commands_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/tenants.md")).expect("the page");
    let s = Sandbox::new();
    std::fs::create_dir(s.path("data")).expect("a directory");
    for file in ["tenants.toml", "tenants-max.toml", "tenants-min.toml"] {
        let text = std::fs::read_to_string(root.join("data").join(file)).expect("readable");
        // A few seconds of each tenant are enough to run everything.
        let small = text.replace("end = \"3m\"", "end = \"24s\"").replace("sample = \"1s\"", "sample = \"100ms\"");
        assert!(file != "tenants.toml" || small != text, "the end is where it was");
        s.write(&format!("data/{file}"), small.as_bytes());
    }
    // What happens between 30 s and 80 s of the page happens earlier, too.
    let events = std::fs::read_to_string(root.join("data/tenants-events.toml")).expect("readable");
    let mut day = std::fs::read_to_string(s.path("data/tenants.toml")).expect("readable") + &events;
    for (late, early) in [
        ("\"30s\"", "\"3s\""),
        ("\"5s\"", "\"500ms\""),
        ("\"80s\"", "\"8s\""),
        ("\"40s\"", "\"21s\""),
        ("\"60s\"", "\"22s\""),
    ] {
        assert!(events.contains(late), "the events are where they were");
        day = day.replace(late, early);
    }
    s.write("day.toml", day.as_bytes());
    let generate =
        page.split('`').find(|code| code.starts_with("refault trace generate ")).expect("how the trace is made");
    assert_eq!(s.run(&words(generate)[1..]).status.code(), Some(0), "{generate}");
    let blocks = blocks(&page);
    let mut commands = 0;
    for pair in blocks.windows(2).filter(|pair| pair[0].starts_with("refault ")) {
        let args = words(pair[0].replace("\\\n", " ").trim());
        let output = s.run(&args[1..]);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some_and(|code| code < 2), "{args:?}: {complaint}");
        let text = String::from_utf8(output.stdout).expect("text");
        // The same captions and the same tables, whatever their figures.
        let first = |text: &str| text.lines().next().map(str::to_owned);
        assert_eq!(first(&text), first(pair[1]), "{args:?}");
        for head in ["task ", "group ", "memory.m", "/web ", "/batch ", "/backup ", "/cron "] {
            let find = |text: &str| {
                let line = text.lines().find(|line| line.trim_start().starts_with(head));
                line.map(|line| names(line).into_iter().map(str::to_owned).collect::<Vec<_>>())
            };
            assert_eq!(find(&text).is_some(), find(pair[1]).is_some(), "{head}: {args:?}: {text}");
            // What came of each event: the same words.
            let happened = |text: &str| {
                text.lines()
                    .filter(|line| line.starts_with("at "))
                    .map(|line| names(line)[..3].join(" "))
                    .collect::<Vec<_>>()
            };
            assert_eq!(happened(&text), happened(pair[1]), "{args:?}");
            if head.ends_with("p ") || head == "task " {
                assert_eq!(find(&text), find(pair[1]), "{head}: {args:?}");
            }
        }
        commands += 1;
    }
    assert!(commands >= 6, "{commands} commands");
}
