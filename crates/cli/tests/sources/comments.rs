//! Citations in comments: a mechanism by its name or by a heading of `docs/mechanisms.md`, never a
//! section number of a document that is not in the repository.

use super::crates::{crates, root, rust_files};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The comments of a file: line number and text.
fn comments(path: &Path) -> Vec<(usize, String)> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let comment =
        |line: &str| line.find("//").filter(|&at| !line[..at].ends_with([':', '"'])).map(|at| line[at..].to_owned());
    text.lines().zip(1..).filter_map(|(line, n)| Some((n, comment(line)?))).collect()
}

/// Sources of all crates, of the fuzz targets and of the Python glue.
pub(super) fn checked_files() -> Vec<std::path::PathBuf> {
    let parts = ["src", "tests", "benches", "examples"];
    let folders = crates().into_iter().flat_map(|name| parts.map(|part| format!("crates/{name}/{part}")));
    let beside = ["fuzz/src", "fuzz/fuzz_targets", "python/src"].map(str::to_owned);
    folders.chain(beside).flat_map(|folder| rust_files(&root().join(folder))).collect()
}

/// A section number: one or two parts of one or two digits. A number that ends with `.0` is a
/// figure.
fn is_section(word: &str) -> bool {
    let mut parts = word.split('.');
    let is_part = |part: &str| (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    parts.clone().count() <= 2 && parts.all(is_part) && !word.ends_with(".0")
}

/// Parts of a comment that cite a section: numbers with points alone in brackets, the word and a
/// number, steps of a number. The test below has examples.
fn cited_sections(comment: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in comment.match_indices('(') {
        let Some((inside, _)) = comment[at + 1..].split_once(')') else { continue };
        let mut parts = inside.split([',', ';']).map(str::trim);
        // Behind the name of a kernel it is a version.
        let before = comment[..at].to_lowercase();
        let version =
            ["linux", "kernel", "version", "since", "before"].iter().any(|word| before.trim_end().ends_with(word));
        if !version && parts.clone().next().is_some_and(|first| first.contains('.')) && parts.all(is_section) {
            found.push(format!("({inside})"));
        }
    }
    let words: Vec<&str> =
        comment.split_whitespace().map(|word| word.trim_matches(['(', ')', ',', ';', '.', ':'])).collect();
    for pair in words.windows(2) {
        let key = pair[0].to_lowercase();
        if matches!(key.as_str(), "section" | "sections" | "§") && is_section(pair[1]) || key.starts_with('§') {
            found.push(pair.join(" "));
        }
    }
    for four in words.windows(4) {
        if four[0] == "step" && is_section(four[1]) && four[2] == "of" && is_section(four[3]) {
            found.push(four.join(" "));
        }
    }
    found
}

#[test]
fn comments_cite_no_sections() {
    let mut wrong = Vec::new();
    for path in checked_files() {
        for (line, comment) in comments(&path) {
            let cited = cited_sections(&comment);
            wrong.extend(cited.iter().map(|what| format!("{}:{line}: {what}", path.display())));
        }
    }
    assert!(wrong.is_empty(), "name the mechanism, or a heading of docs/mechanisms.md:\n  {}", wrong.join("\n  "));
}

/// The anchor of a heading, as the web shows it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase().replace(' ', "-");
    kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
}

/// The places in the document that a comment names: an anchor behind its name, or a heading behind
/// its name and a colon.
fn named_places(comment: &str) -> Vec<String> {
    let is_anchor = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    let mut found = Vec::new();
    for (at, name) in comment.match_indices("mechanisms.md") {
        let rest = &comment[at + name.len()..];
        if let Some(place) = rest.strip_prefix('#') {
            found.push(place.chars().take_while(|&c| is_anchor(c)).collect());
        } else if let Some(heading) = rest.trim_start_matches('`').strip_prefix(": ") {
            let end = heading.find(['.', ',', ';', ')']).unwrap_or(heading.len());
            found.push(anchor(&heading[..end]));
        }
    }
    found
}

#[test]
fn places_in_the_document_exist() {
    let text = fs::read_to_string(root().join("docs/mechanisms.md")).expect("docs/mechanisms.md");
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| anchor(line.trim_start_matches('#')));
    let headings: BTreeSet<String> = headings.collect();
    let mut wrong = Vec::new();
    for path in checked_files() {
        for (line, comment) in comments(&path) {
            let missing = named_places(&comment).into_iter().filter(|place| !headings.contains(place));
            wrong.extend(missing.map(|place| format!("{}:{line}: #{place}", path.display())));
        }
    }
    assert!(wrong.is_empty(), "docs/mechanisms.md has no such heading:\n  {}", wrong.join("\n  "));
}

#[test]
fn citations_are_told_from_numbers() {
    let cited = |text: &str| !cited_sections(text).is_empty();
    assert!(["// as in (2.7)", "// (8.2, 8.4): x", "/// Section 9.", "// step 4 of 2.4"].into_iter().all(cited));
    let fine = [
        "// 6.1 and 6.12 differ",
        "// Linux (6.1)",
        "// f(2)",
        "// (1.5 times)",
        "// a section",
        "// x3.5 (of 2)",
        "// (0.5..1.5)",
    ];
    assert!(!fine.into_iter().any(cited));
    assert_eq!(anchor("memory.high"), "memoryhigh");
    assert_eq!(named_places("// see docs/mechanisms.md#two-lists."), ["two-lists"]);
    assert_eq!(named_places("// `docs/mechanisms.md`: Two lists, and"), ["two-lists"]);
}

/// A comment of its own line is not wider, but for tables and code.
const COLUMNS: usize = 100;

#[test]
fn comments_are_wrapped() {
    let mut wrong = Vec::new();
    for path in checked_files() {
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut code = false;
        for (line, n) in text.lines().zip(1..) {
            let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
            let said = comment.trim_start_matches(['/', '!']).trim_start();
            code ^= said.starts_with("```");
            if line.chars().count() > COLUMNS && !code && !said.starts_with('|') {
                wrong.push(format!("{}:{n}: {} columns", path.display(), line.chars().count()));
            }
        }
    }
    assert!(wrong.is_empty(), "wider than {COLUMNS} columns:\n  {}", wrong.join("\n  "));
}

/// First words that leave the reader without a noun or a verb to begin with.
const VAGUE: [&str; 9] = ["What", "Which", "Who", "Whose", "Of", "Those", "That", "Whatever", "Whoever"];

/// First words that no later sentence of a comment has either.
const NEVER: [&str; 5] = ["What", "Who", "Of", "Whatever", "Whoever"];

/// Text of a comment on a line of its own.
fn own_line(line: &str) -> Option<&str> {
    let comment = line.trim_start().strip_prefix("//")?;
    Some(comment.trim_start_matches(['/', '!']).trim_start())
}

/// First words of the sentences that a line of a comment goes on with.
fn later_words(said: &str) -> impl Iterator<Item = &str> {
    said.match_indices(". ").filter_map(|(at, _)| said[at + 2..].split_whitespace().next())
}

/// Lines, from 1, at which a comment or one of its sentences begins with a vague word; the comment
/// of a flag is its help.
fn vague_starts(text: &str) -> Vec<(usize, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    let above = |at: usize| if at == 0 { None } else { own_line(lines[at - 1]) };
    let has_first = |said: &str, words: &[&str]| said.split_whitespace().next().is_some_and(|w| words.contains(&w));
    let is_vague = |at: usize, said: &str| match above(at) {
        None => has_first(said, &VAGUE),
        Some(above) => above.ends_with('.') && has_first(said, &NEVER),
    };
    let goes_on = |said: &str| later_words(said).any(|word| NEVER.contains(&word));
    let said = |at: usize| own_line(lines[at]).filter(|said| is_vague(at, said) || goes_on(said));
    (0..lines.len()).filter_map(|at| Some((at + 1, said(at)?))).collect()
}

/// Files beside the crates' sources, as git keeps them: settings, scenarios, scripts, C and Python.
fn other_files() -> Vec<std::path::PathBuf> {
    let kept = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output();
    let Some(kept) = kept.ok().filter(|kept| kept.status.success()) else { return Vec::new() };
    let kept = String::from_utf8(kept.stdout).expect("names are text");
    let is_other = |name: &&str| {
        let ending = Path::new(name).extension().and_then(|e| e.to_str()).unwrap_or_default();
        ["toml", "c", "h", "py", "pyi", "sh", "service", "yaml", "yml"].contains(&ending)
            || [".ci/run", "fuzz/run-all"].contains(name)
    };
    kept.split('\0').filter(is_other).map(|name| root().join(name)).filter(|path| path.is_file()).collect()
}

#[test]
fn comments_begin_with_a_noun_or_a_verb() {
    let mut wrong = Vec::new();
    let folders = crates().into_iter().map(|name| root().join("crates").join(name));
    let folders = folders.chain(["fuzz/src", "fuzz/fuzz_targets", "python/src"].map(|folder| root().join(folder)));
    for path in folders.flat_map(|folder| rust_files(&folder)).chain(other_files()) {
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let text = match path.extension().and_then(|e| e.to_str()) {
            Some("rs") => text,
            Some("c" | "h") => text.replace("/* ", "// "),
            _ => text.replace("# ", "// "),
        };
        wrong.extend(vague_starts(&text).iter().map(|(line, said)| format!("{}:{line}: {said}", path.display())));
    }
    assert!(wrong.is_empty(), "begin with a noun or a verb, and give the unit:\n  {}", wrong.join("\n  "));
}

/// First words of a question. A comment of no more than three words that begins so has no noun.
const ASKS: [&str; 4] = ["How", "Where", "When", "There"];

/// Whether a doc comment of one line asks in a few words, such as "How many.", and says no noun.
fn asks(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let first = words.first().map(|word| word.trim_end_matches('.'));
    let begins = first.is_some_and(|word| ASKS.contains(&word)) || text.starts_with("By how ");
    text.ends_with('.') && words.len() <= 3 && begins
}

#[test]
fn comments_have_a_noun() {
    let mut wrong = Vec::new();
    for path in crates().iter().flat_map(|name| rust_files(&root().join("crates").join(name))) {
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for (line, n) in text.lines().zip(1..) {
            let said = line.trim_start().strip_prefix("/// ").filter(|said| asks(said));
            wrong.extend(said.map(|said| format!("{}:{n}: {said}", path.display())));
        }
    }
    assert!(wrong.is_empty(), "name the thing, and its unit:\n  {}", wrong.join("\n  "));
    assert!(asks("How many.") && asks("By how much.") && !asks("Number of pages.") && !asks("How it is read"));
}

#[test]
fn vague_starts_are_told_from_later_lines() {
    let lines = |text| vague_starts(text).into_iter().map(|(line, _)| line).collect::<Vec<_>>();
    assert_eq!(lines("//! What it is.\n\n    // Of those, misses.\nfn f() {} // That\n/// Who asks."), [1, 3, 5]);
    assert!(lines("/// Pages of it.\n/// That is all.\n//! All of it.\n\n/// Often.").is_empty());
    assert_eq!(lines("/// Pages. Of these, some.\n\n/// One.\n/// Whatever it is.\n/// One\n/// Who.\n"), [1, 4]);
    assert_eq!(lines("    /// What to do\n    #[arg(long)]\n/// x\n"), [1]);
    assert_eq!(lines("/// What only traces have.\n#[derive(Debug, Args)]\n"), [1]);
    assert_eq!(lines("/// What came.\n#[derive(Debug)]\n"), [1]);
}
