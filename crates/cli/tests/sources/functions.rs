//! Length of functions: what does not fit on a screen is split.

use super::crates::{crates, root, rust_files};
use std::fs;

/// Lines of a function at most, from its name to its closing brace.
const MOST: usize = 70;

/// Functions that may be longer, and why.
const EXCEPTIONS: [(&str, &str, &str); 5] = [
    ("lab/src/scenario/machine.rs", "overridden", "a list of keys, one a line"),
    ("pager/src/process/fill.rs", "fill_or_drop", "cases of one order, which must be read together"),
    ("pager/src/process/fork.rs", "fork", "steps under one lock, in the order in which they must come"),
    (
        "pager/src/region/mod.rs",
        "with_faults",
        "a constructor: one resource after the other, each undone by those before",
    ),
    ("preload/src/agent.rs", "set_up", "a constructor in another program: no step may come before the one above"),
];

/// Functions of a file that are too long, with the line of each and its lines. The sources are
/// formatted, so that a function ends at the first brace that stands below its first word.
fn long(text: &str) -> Vec<(usize, String, usize)> {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let name = |line: &str| -> Option<String> {
        let (before, after) = line.split_once("fn ")?;
        let is_head = before.split_whitespace().all(|word| {
            word.starts_with("pub")
                || ["const", "unsafe", "extern", "\"C\"", "async"].contains(&word)
                || word.ends_with(')')
        });
        let name: String = after.chars().take_while(|&c| c.is_alphanumeric() || c == '_').collect();
        (is_head && !name.is_empty()).then_some(name)
    };
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = name(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let is_declared =
            |line: &&str| line.ends_with(';') && !line.contains('{') && line.trim_start().starts_with([')', 'f', 'p']);
        if line.ends_with('}') || is_declared(line) {
            continue;
        }
        let end = format!("{indent}}}");
        let length = lines[at..]
            .iter()
            .position(|line| *line == end || line.starts_with(&format!("{indent})")) && is_declared(line));
        let length = length.map_or(0, |last| last + 1);
        if length > MOST {
            found.push((at + 1, name, length));
        }
    }
    found
}

#[test]
fn functions_fit_on_a_screen() {
    let mut wrong = Vec::new();
    for name in crates() {
        for path in rust_files(&root().join("crates").join(&name).join("src")) {
            let place = path.strip_prefix(root().join("crates")).expect("a crate's file").display().to_string();
            let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{place}: {e}"));
            let is_excepted = |name: &str| EXCEPTIONS.iter().any(|(file, known, _)| *file == place && *known == name);
            let long = long(&text).into_iter().filter(|(_, name, _)| !is_excepted(name));
            wrong.extend(long.map(|(line, name, length)| format!("{place}:{line}: {name} has {length} lines")));
        }
    }
    assert!(wrong.is_empty(), "split what is over {MOST} lines, or except it and say why:\n  {}", wrong.join("\n  "));
}

#[test]
fn a_long_function_is_found() {
    let body = |lines: usize| "        step();\n".repeat(lines);
    let text = |lines: usize| {
        format!("impl A {{\n    pub(crate) fn run(\n        a: u8,\n    ) {{\n{}    }}\n}}\n", body(lines))
    };
    assert!(long(&text(MOST - 4)).is_empty());
    assert_eq!(long(&text(MOST - 3)), [(2, "run".to_owned(), MOST + 1)]);
    let declared = format!(
        "trait B {{\n    fn short(&self);\n    fn wide(\n        a: u8,\n    );\n}}\nfn one() {{}}\n{}",
        "\n".repeat(99)
    );
    assert!(long(&declared).is_empty());
    assert!(long(&format!("#[cfg(test)]\nmod tests {{\n    fn f() {{\n{}    }}\n}}\n", body(99))).is_empty());
}
