//! What a publication measured, and the names of results.

use super::machine::variant;
use super::read::{Field, Result, Section};
use super::types::{Better, Published, PublishedRow, Scenario};

const MAX_ROWS: usize = 256;
const ROW_KEYS: [&str; 7] = ["metric", "label", "unit", "before", "after", "band", "better"];
const TASK_METRICS: [&str; 8] =
    ["ops_per_s", "bytes_per_s", "accesses_per_s", "seconds", "ops", "p50_ns", "p99_ns", "hit_rate"];

pub(super) fn published(field: &Field<'_>, scenario: &Scenario) -> Result<Published> {
    let s = field.section(&["before", "after", "row", "notes"])?;
    let side = |key, example: &str| variant(&s.need(key, example)?, &scenario.policy);
    let rows = s.need("row", "[[published.row]]")?;
    let sections = rows.sections(&ROW_KEYS, MAX_ROWS)?;
    let mut published = Published {
        before: side("before", "[published.before] policy = \"mglru\"")?,
        after: side("after", "[published.after] policy = \"mglru-shadow\"")?,
        rows: Vec::new(),
        notes: s.or("notes", Vec::new(), |f| f.list(MAX_ROWS)?.iter().map(Field::line).collect())?,
    };
    for section in &sections {
        let row = row(section, scenario)?;
        if published.rows.iter().any(|other| other.metric == row.metric) {
            return Err(section.error(format!("{} has a row already", row.metric)));
        }
        published.rows.push(row);
    }
    if published.rows.is_empty() {
        return Err(rows.error("there is no row; write [[published.row]]"));
    }
    Ok(published)
}

fn row(s: &Section<'_>, scenario: &Scenario) -> Result<PublishedRow> {
    let metric = s.need("metric", "metric = \"total.seconds\"")?;
    let name = metric.line()?;
    check_metric(&name, scenario).map_err(|what| metric.bad(&what))?;
    let number = |f: &Field<'_>| f.float(0.0..=1e18);
    Ok(PublishedRow {
        label: s.or("label", name.clone(), Field::line)?,
        metric: name,
        unit: s.or("unit", String::new(), Field::line)?,
        before: s.opt("before", number)?,
        after: s.opt("after", number)?,
        band: s.opt("band", band)?,
        better: s.opt("better", |f| f.choice(&[("higher", Better::Higher), ("lower", Better::Lower)]))?,
    })
}

fn band(field: &Field<'_>) -> Result<[f64; 2]> {
    let ends = field.list(2)?;
    let [low, high] = ends.as_slice() else {
        return Err(field.bad("is not a band; write [0.98, 1.02], and inf for no upper end"));
    };
    let band = [low.float(0.0..=f64::MAX)?, high.float(0.0..=f64::INFINITY)?];
    if band[0] <= band[1] { Ok(band) } else { Err(field.error("the band ends before it begins")) }
}

/// Whether a metric can be a result of the scenario; else what is wrong with it.
fn check_metric(metric: &str, scenario: &Scenario) -> std::result::Result<(), String> {
    let (prefix, rest) = metric.split_once('.').unwrap_or((metric, ""));
    let counter = |name: &str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    let (name, last) = rest.rsplit_once('.').unwrap_or(("", rest));
    let one_of = |known: &[&str], name: &str| match known.contains(&name) {
        true => Ok(()),
        false => Err(format!("is not a result; after {prefix}. comes {}", known.join(", "))),
    };
    let declared = |found: bool| match found {
        true => Ok(()),
        false => Err(format!("is about the {prefix} {name:?}, which is not declared")),
    };
    match prefix {
        "task" => {
            declared(scenario.tasks.iter().any(|t| t.name == name))?;
            one_of(&TASK_METRICS, last).map_err(|_| format!("is not a result; known are {}", TASK_METRICS.join(", ")))
        }
        "device" => {
            declared(scenario.devices.iter().any(|d| d.name == name))?;
            one_of(&["read_bytes", "write_bytes"], last)
        }
        "memcg" => {
            declared(scenario.memcgs.iter().any(|m| m.path == name))?;
            if counter(last) { Ok(()) } else { Err("does not end in the name of a counter".to_owned()) }
        }
        "total" => one_of(&["seconds", "ops_per_s"], rest),
        "swap" => one_of(&["used_pages"], rest),
        "psi" => one_of(&["some_us", "full_us"], rest),
        "vmstat" | "node" if counter(rest) => Ok(()),
        "vmstat" | "node" => Err("does not end in the name of a counter".to_owned()),
        _ => {
            Err("is not a result; write task.NAME., total., vmstat., memcg.PATH., device.NAME., node., swap. or psi. \
                  and what of it"
                .to_owned())
        }
    }
}
