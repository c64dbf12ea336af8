//! Lengths of pages: lines of each, of all together, and columns of prose.

use super::{FOLDERS, markdown, none, pages};

/// Most columns of prose.
const COLUMNS: usize = 100;

/// Most columns of what a command prints on a page: `fold -sw 110` keeps within it.
const OUTPUT_COLUMNS: usize = 120;

/// Most lines of all pages together.
const LINES: usize = 8_500;

/// Most lines of the page, or of all pages below the folder, that a name begins with.
const MOST: [(&str, usize); 12] = [
    ("README.md", 120),
    ("docs/architecture.md", 240),
    ("docs/explanation/", 370),
    ("docs/glossary.md", 130),
    ("docs/how-to/", 1400),
    ("docs/kernels.md", 180),
    ("docs/measurements/", 1535),
    ("docs/mechanisms.md", 1090),
    ("docs/reference/", 2500),
    ("docs/tutorial", 300),
    ("crates/run/docs/measurements/", 150),
    ("crates/run/docs/", 740),
];

/// Lines of the pages whose names begin so.
fn lines(lead: &str) -> usize {
    pages().iter().filter(|page| page.name.starts_with(lead)).map(|page| page.lines).sum()
}

#[test]
fn pages_are_short() {
    let mut complaints = Vec::new();
    for (lead, most) in MOST {
        let lines = lines(lead);
        if !(1..=most).contains(&lines) {
            complaints.push(format!("{lead}: {lines} lines, {most} at most"));
        }
    }
    none(&complaints);
}

#[test]
fn all_pages_together_are_short() {
    let lines: usize = FOLDERS.iter().map(|folder| lines(&format!("{folder}/"))).sum();
    assert!(lines <= LINES, "{lines} lines below {}, {LINES} at most", FOLDERS.join(" and "));
}

#[test]
fn prose_is_wrapped() {
    let mut complaints = Vec::new();
    for page in pages() {
        for (n, line) in page.prose() {
            let columns = line.chars().count();
            if columns > COLUMNS && !markdown::is_one_word(line) {
                complaints.push(format!("{}:{n}: {columns} columns, {COLUMNS} at most", page.name));
            }
        }
    }
    none(&complaints);
}

/// Commands may be longer, and so may patterns, of which a reader sees a part.
#[test]
fn output_fits_a_window() {
    let mut complaints = Vec::new();
    for page in pages() {
        let lines = page.consoles().flat_map(|block| &block.lines);
        let is_output = |line: &&String| !line.starts_with("$ ") && !line.starts_with("    ") && !line.contains("[..]");
        for line in lines.filter(is_output).filter(|line| line.chars().count() > OUTPUT_COLUMNS) {
            complaints.push(format!("{}: {OUTPUT_COLUMNS} columns at most: {line}", page.name));
        }
    }
    none(&complaints);
}

/// A table that was wrapped as if it were prose shows as a line of bars.
#[test]
fn tables_have_a_row_a_line() {
    let mut complaints = Vec::new();
    for page in pages() {
        for (n, line) in page.text.iter().filter(|(_, line)| line.contains("| |---")) {
            complaints.push(format!("{}:{n}: a table in one line: {line}", page.name));
        }
    }
    none(&complaints);
}
