//! Output of `refault replay TRACE --json`.

use super::{MOST_POINTS, MOST_ROWS, binned};
use crate::names::shown;
use crate::replay::Row;
use crate::replay::groups::{self, GroupRow};
use crate::units::counted;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// All rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplayDocument {
    /// The version of refault.
    pub refault: String,
    /// A row for each trace, size and policy, and with groups for each of these.
    pub rows: Vec<ReplayRow>,
    /// Rows that were left out.
    pub left_out: usize,
    /// The kernel, and flags that were given, by name: comparisons say in what they differ.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Remarks on the traces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct ReplayRow {
    pub trace: String,
    pub policy: String,
    pub group: Option<String>,
    pub memory_pages: Option<u64>,
    pub page_size: u64,
    pub footprint_pages: u64,
    pub seed: u64,
    pub accesses: u64,
    pub misses: u64,
    pub oom_at: Option<u64>,
    pub window_misses: Vec<u64>,
    pub counters: BTreeMap<String, u64>,
}

impl ReplayRow {
    /// Share of the accesses that missed.
    pub fn miss_ratio(&self) -> f64 {
        self.misses as f64 / self.accesses.max(1) as f64
    }

    /// The sum of the counters with these names.
    pub fn sum(&self, names: &[&str]) -> u64 {
        names.iter().filter_map(|name| self.counters.get(*name)).sum()
    }
}

#[derive(Deserialize)]
struct Printed {
    #[serde(default)]
    refault: String,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default)]
    settings: BTreeMap<String, Value>,
    rows: Vec<Value>,
}

/// A value of a setting as it was typed.
fn typed(value: &Value) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    shown(&match value {
        Value::Array(all) => all.iter().map(text).collect::<Vec<_>>().join(", "),
        one => text(one),
    })
}

pub(super) fn read(value: Value) -> Result<ReplayDocument, serde_json::Error> {
    let printed: Printed = serde_json::from_value(value)?;
    let kernel = printed.rows.iter().find_map(|row| row.get("kernel")?.as_str().map(str::to_owned));
    let given = printed.settings.iter().map(|(flag, value)| (shown(flag), typed(value)));
    let settings = given.chain(kernel.map(|kernel| ("kernel".to_owned(), shown(&kernel)))).collect();
    let mut rows = Vec::new();
    for row in printed.rows {
        let groups = row.get("groups").and_then(Value::as_array).cloned().unwrap_or_default();
        let whole: ReplayRow = serde_json::from_value(row)?;
        if groups.is_empty() {
            rows.push(whole);
            continue;
        }
        for group in groups {
            let of = |key: &str| group.get(key).cloned().unwrap_or(Value::Null);
            rows.push(ReplayRow {
                group: of("path").as_str().map(shown),
                accesses: of("accesses").as_u64().unwrap_or(0),
                misses: of("misses").as_u64().unwrap_or(0),
                counters: serde_json::from_value(of("counters")).unwrap_or_default(),
                ..whole.clone()
            });
        }
    }
    Ok(ReplayDocument { settings, ..ReplayDocument::cut(rows, printed.refault, printed.notes) })
}

impl ReplayRow {
    fn of(row: &Row) -> ReplayRow {
        let counters = row.inside.iter().flat_map(|inside| inside.counters.iter());
        ReplayRow {
            trace: row.trace.clone(),
            policy: row.plug_in.clone().unwrap_or_else(|| row.policy.name().to_owned()),
            group: None,
            memory_pages: Some(row.memory_pages),
            page_size: row.page_size,
            footprint_pages: row.footprint_pages,
            seed: row.seed,
            accesses: row.accesses,
            misses: row.misses,
            oom_at: row.oom_at,
            window_misses: row.window_misses.clone().unwrap_or_default(),
            counters: counters.map(|(name, n)| (name.to_owned(), n)).collect(),
        }
    }

    fn of_group(row: &groups::GroupedRow, group: &GroupRow) -> ReplayRow {
        ReplayRow {
            trace: row.trace.clone(),
            policy: row.policy.name().to_owned(),
            group: Some(shown(&group.path)),
            memory_pages: Some(row.memory_pages).filter(|&pages| pages != u64::MAX),
            page_size: row.page_size,
            footprint_pages: row.footprint_pages,
            seed: row.seed,
            accesses: group.count.accesses,
            misses: group.count.misses,
            oom_at: row.oom_at,
            window_misses: Vec::new(),
            counters: group.counters.iter().map(|(name, n)| (name.to_owned(), n)).collect(),
        }
    }
}

impl ReplayDocument {
    /// Makes it of rows; `notes` are remarks on their traces.
    pub fn of(rows: &[Row], notes: Vec<String>) -> ReplayDocument {
        ReplayDocument::cut(rows.iter().map(ReplayRow::of).collect(), env!("CARGO_PKG_VERSION").to_owned(), notes)
    }

    /// Makes it of rows with memory cgroups.
    pub fn of_groups(rows: &[groups::GroupedRow], notes: Vec<String>) -> ReplayDocument {
        let of = |row: &groups::GroupedRow| {
            row.groups.iter().map(|group| ReplayRow::of_group(row, group)).collect::<Vec<_>>()
        };
        ReplayDocument::cut(rows.iter().flat_map(of).collect(), env!("CARGO_PKG_VERSION").to_owned(), notes)
    }

    fn cut(mut rows: Vec<ReplayRow>, refault: String, notes: Vec<String>) -> ReplayDocument {
        let left_out = rows.len().saturating_sub(MOST_ROWS);
        rows.truncate(MOST_ROWS);
        for row in &mut rows {
            (row.trace, row.policy) = (shown(&row.trace), shown(&row.policy));
            row.counters.retain(|_, n| *n > 0);
            row.window_misses = binned(&row.window_misses, 120);
        }
        // Many rows with many windows each: fewer of them.
        if rows.iter().map(|row| row.window_misses.len()).sum::<usize>() > 40 * MOST_POINTS {
            rows.iter_mut().for_each(|row| row.window_misses = binned(&row.window_misses, 40));
        }
        ReplayDocument { refault, rows, left_out, settings: BTreeMap::new(), notes }
    }

    /// The traces, in the order of the rows.
    pub fn traces(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !all.contains(&row.trace.as_str()) {
                all.push(&row.trace);
            }
        }
        all
    }

    /// Summary in a line.
    pub fn facts(&self) -> String {
        let mut out = format!("{} of refault replay, refault {}", counted(self.rows.len() as u64, "row"), self.refault);
        if let Some(row) = self.rows.first() {
            out += &format!(", seed {}", row.seed);
        }
        if self.left_out > 0 {
            out += &format!("; {} more left out", counted(self.left_out as u64, "row"));
        }
        out
    }
}
