//! The table of outcomes of each failure, `outcomes.md`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::catalogue;
use crate::runner::{ENDED, ERROR_VALUE, LOST, RIGHT};

const WORDS: [(u32, &str); 4] =
    [(RIGHT, "right bytes"), (ERROR_VALUE, "error value"), (LOST, "page lost"), (ENDED, "process ends")];
const BEGIN: &str = "<!-- injected: begin -->";
const END: &str = "<!-- injected: end -->";
/// The columns.
pub const SCENARIOS: [&str; 4] = ["`Region`", "`Region` by signal", "`MappedFile`", "`refault run`"];

type Row = [u32; SCENARIOS.len()];

/// Results of failures: by call and failure, for each column.
#[derive(Default)]
pub struct Cells(BTreeMap<(&'static str, String), Row>);

impl Cells {
    pub fn add(&mut self, call: &'static str, fault: String, column: usize, outcome: u32) {
        self.0.entry((call, fault)).or_default()[column] |= outcome;
    }
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/inject/outcomes.md")
}

fn cell(outcome: u32) -> String {
    let words: Vec<&str> = WORDS.iter().filter(|w| outcome & w.0 != 0).map(|w| w.1).collect();
    if words.is_empty() { "–".into() } else { words.join(" or ") }
}

/// One line for all failures of a call of which the same came.
fn render(cells: &Cells, columns: &[&str]) -> String {
    let mut text = format!("| call | failure | {} |\n", columns.join(" | "));
    text.push_str(&format!("|---|---|{}\n", "---|".repeat(columns.len())));
    for (call, faults) in catalogue::rows() {
        let mut lines: Vec<(Row, Vec<&str>)> = Vec::new();
        for fault in faults {
            let Some((key, row)) = cells.0.get_key_value(&(call, fault)) else { continue };
            match lines.iter_mut().find(|l| l.0 == *row) {
                Some(line) => line.1.push(&key.1),
                None => lines.push((*row, vec![&key.1])),
            }
        }
        for (row, faults) in lines {
            let outcomes: Vec<String> = row[..columns.len()].iter().map(|&o| cell(o)).collect();
            text.push_str(&format!("| {call} | {} | {} |\n", faults.join(", "), outcomes.join(" | ")));
        }
    }
    text
}

fn parse(text: &str, columns: usize) -> Cells {
    let mut cells = Cells::default();
    for line in text.lines().filter(|l| l.starts_with('|')).skip(2) {
        let fields: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(fields.len(), columns + 2, "{line}");
        let row = catalogue::rows().into_iter().find(|r| r.0 == fields[0]);
        let (call, faults) = row.unwrap_or_else(|| panic!("the table names a call that there is not: {line}"));
        for fault in fields[1].split(", ") {
            assert!(faults.iter().any(|f| f == fault), "the table names a failure that is not tried: {line}");
            let row = cells.0.entry((call, fault.to_string())).or_default();
            for (to, words) in row.iter_mut().zip(&fields[2..]) {
                for word in words.split(" or ").filter(|w| *w != "–") {
                    *to |= WORDS.iter().find(|w| w.1 == word).unwrap_or_else(|| panic!("what is {word}?")).0;
                }
            }
        }
    }
    cells
}

/// Compares with the stored table, or writes it.
/// An error: outcomes that are not in it.
pub fn settle(found: &Cells, columns: &[&str]) -> Result<(), String> {
    let text = std::fs::read_to_string(path()).expect("the table");
    let (before, rest) = text.split_once(BEGIN).expect("the beginning of the table");
    let (old, after) = rest.split_once(END).expect("the end of the table");
    if let Some(how) = std::env::var_os("REFAULT_INJECT_WRITE") {
        let mut all = if how == "add" { parse(old, columns.len()) } else { Cells::default() };
        for (key, row) in &found.0 {
            let known = all.0.entry(key.clone()).or_default();
            known.iter_mut().zip(row).for_each(|(k, r)| *k |= r);
        }
        let new = format!("{before}{BEGIN}\n\n{}\n{END}{after}", render(&all, columns));
        std::fs::write(path(), new).expect("the table can be written");
        println!("written: {}", path().display());
        return Ok(());
    }
    let known = parse(old, columns.len());
    let mut news = Vec::new();
    for ((call, fault), row) in &found.0 {
        let old = known.0.get(&(*call, fault.clone())).copied().unwrap_or_default();
        for (column, (&now, &then)) in columns.iter().zip(row.iter().zip(&old)) {
            // Right bytes are never wrong: the failure did not matter this time.
            if now & !then & !RIGHT != 0 {
                news.push(format!("{column}, {call}, {fault}: {}; in the table: {}", cell(now), cell(then)));
            }
        }
    }
    let is_there = |call: &str| known.0.keys().any(|k| k.0 == call);
    let missing: Vec<&str> = found.0.keys().map(|k| k.0).filter(|call| !is_there(call)).collect();
    if !missing.is_empty() {
        return Err(format!("tests/inject/outcomes.md says nothing of: {}", missing.join(", ")));
    }
    // The explicit error that a failure ends in depends on what else happens at the time, and on
    // how busy the machine is.
    if std::env::var_os("REFAULT_INJECT").is_none() && !news.is_empty() {
        println!("tests/inject/outcomes.md does not say so:\n{}", news.join("\n"));
        news.clear();
    }
    // All of these are explicit errors, but the table says which of them a failure ends in.
    if news.is_empty() {
        Ok(())
    } else {
        Err(format!("tests/inject/outcomes.md does not say so:\n{}", news.join("\n")))
    }
}
