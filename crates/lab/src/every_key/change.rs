//! Changes of a scenario, as `keys.txt` has them, and scenarios as text again.

use toml::{Table, Value};

/// A key that changes, and what else is said of both scenarios that are compared.
pub(super) struct Change {
    pub(super) line: String,
    pub(super) base: String,
    pub(super) key: String,
    value: Value,
    both: Vec<(String, Value)>,
}

/// The lines of `keys.txt`: `KEY = VALUE`, and after each `|` what both scenarios have. A line in
/// brackets names the scenario that the following ones change.
pub(super) fn changes(text: &str) -> Vec<Change> {
    let mut base = String::new();
    let mut all = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            base = name.to_owned();
            continue;
        }
        let mut parts = line.split(" | ").map(assignment);
        let (key, value) = parts.next().expect("a change");
        all.push(Change { line: line.to_owned(), base: base.clone(), key, value, both: parts.collect() });
    }
    all
}

fn assignment(text: &str) -> (String, Value) {
    let (key, value) = text.split_once(" = ").unwrap_or_else(|| panic!("{text:?} is not KEY = VALUE"));
    let table: Table = format!("it = {value}").parse().unwrap_or_else(|e| panic!("{text:?}: {e}"));
    (key.trim().to_owned(), table["it"].clone())
}

impl Change {
    /// The same change without one of its additions to both scenarios, each with the key of the
    /// addition. Additions that alter an existing key are amounts, not needs, and stay.
    pub(super) fn without_each(&self, base: &str) -> Vec<(String, Change)> {
        let table: Table = base.parse().expect("TOML");
        let mut all = Vec::new();
        for (at, (key, _)) in self.both.iter().enumerate().filter(|(_, (key, _))| !is_there(&table, key)) {
            let mut both = self.both.clone();
            both.remove(at);
            let lesser = Change {
                line: self.line.clone(),
                base: self.base.clone(),
                key: self.key.clone(),
                value: self.value.clone(),
                both,
            };
            all.push((key.clone(), lesser));
        }
        all
    }

    /// The two scenarios as text.
    pub(super) fn applied_to(&self, base: &str) -> [String; 2] {
        let mut before: Table = base.parse().expect("TOML");
        for (key, value) in &self.both {
            set(&mut before, key, value);
        }
        let mut after = before.clone();
        set(&mut after, &self.key, &self.value);
        assert_ne!(before, after, "{}: nothing is changed", self.line);
        [before, after].map(|table| written(&table))
    }
}

/// Whether a table has a key.
fn is_there(table: &Table, key: &str) -> bool {
    let mut place = Some(Value::Table(table.clone()));
    for part in key.split('.') {
        place = place.and_then(|value| match (&value, part.parse::<usize>()) {
            (Value::Array(items), Ok(at)) => items.get(at).cloned(),
            (Value::Table(table), _) => table.get(part).cloned(),
            _ => None,
        });
    }
    place.is_some()
}

/// Sets a value: `machine.cpus`, `memcg./a.max`, `task.0.phase.1.cpu`.
fn set(table: &mut Table, key: &str, value: &Value) {
    let (first, rest) = key.split_once('.').unwrap_or((key, ""));
    if rest.is_empty() {
        table.insert(first.to_owned(), value.clone());
        return;
    }
    let place = table.entry(first).or_insert_with(|| match rest.starts_with(|c: char| c.is_ascii_digit()) {
        true => Value::Array(Vec::new()),
        false => Value::Table(Table::new()),
    });
    match place {
        Value::Table(inner) => set(inner, rest, value),
        Value::Array(items) => {
            let (at, rest) = rest.split_once('.').unwrap_or((rest, ""));
            let at: usize = at.parse().unwrap_or_else(|_| panic!("{key}: a place in a list"));
            items.resize(items.len().max(at + 1), Value::Table(Table::new()));
            match (&mut items[at], rest) {
                (item, "") => *item = value.clone(),
                (Value::Table(inner), rest) => set(inner, rest, value),
                _ => panic!("{key}: not a table"),
            }
        }
        _ => panic!("{key}: not a table"),
    }
}

/// A table as TOML, a line for each key.
fn written(table: &Table) -> String {
    table.iter().map(|(key, value)| format!("{key} = {}\n", inline(value))).collect()
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        Value::Integer(n) => n.to_string(),
        Value::Float(n) => format!("{n:?}"),
        Value::Boolean(b) => b.to_string(),
        Value::Datetime(d) => d.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Table(table) => {
            let entries: Vec<_> = table.iter().map(|(key, value)| format!("{key:?} = {}", inline(value))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
    }
}
