//! What a publication measured, and the names of results.

use super::machine::variant;
use super::read::{self, Field, Result, Section};
use super::types::{Better, Published, PublishedRatio, PublishedRow, PublishedVariant, Scenario};
use super::{COLUMNS, TIER_COLUMNS};
use crate::device::ZramStats;
use crate::results::SwapResult;
use refault_mm::ThpConfig;

const MAX_ROWS: usize = 256;
const MAX_VARIANTS: usize = 16;
const MAX_RATIOS: usize = 64;
/// The most seeds that a scenario asks for.
pub const MAX_SEEDS: u64 = 1000;
const ROW_KEYS: [&str; 10] =
    ["metric", "label", "unit", "before", "after", "band", "published", "bands", "ratio", "better"];
/// What several times through a loop become.
const FOLDS: [&str; 4] = ["mean", "min", "max", "nonzero"];
/// Of a node, what it did in the phases that count.
pub(super) const TIER_METRICS: [&str; 6] =
    ["accesses", "share", "mean_access_ns", "promoted_bytes_per_s", "demoted_bytes_per_s", "utilization"];
const TASK_METRICS: [&str; 10] = [
    "ops_per_s",
    "bytes_per_s",
    "accesses_per_s",
    "seconds",
    "user_seconds",
    "system_seconds",
    "ops",
    "p50_ns",
    "p99_ns",
    "hit_rate",
];
const SWAP_METRICS: [&str; 6] = ["used_pages", "calls", "clusters", "probes", "reclaimed", "steps"];

pub(super) fn published(field: &Field<'_>, scenario: &Scenario) -> Result<Published> {
    let s = field.section(&["before", "after", "variant", "row", "notes", "seeds"])?;
    let rows = s.need("row", "[[published.row]]")?;
    let sections = rows.sections(&ROW_KEYS, MAX_ROWS)?;
    let mut published = Published {
        variants: variants(&s, scenario)?,
        rows: Vec::new(),
        notes: s.or("notes", Vec::new(), |f| f.list(MAX_ROWS)?.iter().map(Field::line).collect())?,
        seeds: s.opt("seeds", |f| f.int(1..=MAX_SEEDS))?,
    };
    // Where bands are of numbers, ratios are nothing that anyone asked for.
    let numbers_count = sections.iter().any(|row| row.has("bands"));
    for section in &sections {
        let mut row = row(section, scenario, &published.variants)?;
        if numbers_count && !section.has("ratio") && !section.has("band") {
            row.ratios.clear();
        }
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

/// What is compared: `before` and `after`, or any number by name.
fn variants(s: &Section<'_>, scenario: &Scenario) -> Result<Vec<PublishedVariant>> {
    let one = |name: &str, field: &Field<'_>| {
        Ok(PublishedVariant { name: name.to_owned(), policy: variant(field, &scenario.policy)? })
    };
    let Some(list) = s.get("variant") else {
        let side = |key, example: &str| one(key, &s.need(key, example)?);
        let before = side("before", "[published.before] policy = \"mglru\"")?;
        return Ok(vec![before, side("after", "[published.after] policy = \"mglru-shadow\"")?]);
    };
    if let Some(field) = s.get("before").or(s.get("after")) {
        return Err(field.error("there are variants; write it as one of them, [published.variant.NAME]"));
    }
    let entries = list.any_section()?.entries();
    if entries.is_empty() || entries.len() > MAX_VARIANTS {
        return Err(list.error(format!("there are {}; write 1 to {MAX_VARIANTS}", entries.len())));
    }
    let named = |(name, field): &(&str, Field<'_>)| {
        read::name(name).map_err(|what| field.error(what))?;
        one(name, field)
    };
    entries.iter().map(named).collect()
}

fn row(s: &Section<'_>, scenario: &Scenario, variants: &[PublishedVariant]) -> Result<PublishedRow> {
    let metric = s.need("metric", "metric = \"total.seconds\"")?;
    let name = metric.line()?;
    check_metric(&name, scenario).map_err(|what| metric.bad(&what))?;
    Ok(PublishedRow {
        label: s.or("label", name.clone(), Field::line)?,
        metric: name,
        unit: s.or("unit", String::new(), Field::line)?,
        published: numbers(s, variants)?,
        bands: by_variant(s, "bands", variants, band)?,
        ratios: ratios(s, variants)?,
        better: s.opt("better", |f| f.choice(&[("higher", Better::Higher), ("lower", Better::Lower)]))?,
    })
}

/// The published numbers: in a table, or by keys of their own for variants that are called `before`
/// and `after`.
fn numbers(s: &Section<'_>, variants: &[PublishedVariant]) -> Result<Vec<Option<f64>>> {
    let mut all = by_variant(s, "published", variants, number)?;
    for key in ["before", "after"] {
        let Some(field) = s.get(key) else { continue };
        let Some(at) = variants.iter().position(|v| v.name == key) else {
            return Err(field.error(format!("no variant is called {key}; write published = {{ NAME = ... }}")));
        };
        if all[at].replace(number(&field)?).is_some() {
            return Err(field.error(format!("published.{key} says it already; write one of them")));
        }
    }
    Ok(all)
}

fn number(field: &Field<'_>) -> Result<f64> {
    field.float(0.0..=1e18)
}

/// A table with a value for some of the variants.
fn by_variant<T: Copy>(
    s: &Section<'_>,
    key: &str,
    variants: &[PublishedVariant],
    read: impl Fn(&Field<'_>) -> Result<T>,
) -> Result<Vec<Option<T>>> {
    let mut all = vec![None; variants.len()];
    let Some(field) = s.get(key) else { return Ok(all) };
    let names: Vec<_> = variants.iter().map(|v| v.name.as_str()).collect();
    let section = field.section(&names)?;
    for (at, name) in names.iter().enumerate() {
        all[at] = section.opt(name, &read)?;
    }
    Ok(all)
}

/// The ratios that a row lists; of two variants that of the second to the first.
fn ratios(s: &Section<'_>, variants: &[PublishedVariant]) -> Result<Vec<PublishedRatio>> {
    let own = s.get("band");
    if let Some(list) = s.get("ratio") {
        if let Some(band) = own {
            return Err(band.error("the row lists its ratios; write this into one of them"));
        }
        return list.sections(&["of", "to", "band"], MAX_RATIOS)?.iter().map(|s| ratio(s, variants)).collect();
    }
    match (variants.len(), own) {
        (2, own) => Ok(vec![PublishedRatio { of: 1, to: 0, band: own.map(|f| band(&f)).transpose()? }]),
        (_, None) => Ok(Vec::new()),
        (n, Some(band)) => Err(band.error(format!(
            "of which ratio? There are {n} variants; write ratio = [{{ of = \"...\", to = \"...\", band = [0.9, 1.1] }}]"
        ))),
    }
}

fn ratio(s: &Section<'_>, variants: &[PublishedVariant]) -> Result<PublishedRatio> {
    let index = |f: &Field<'_>| f.index("a variant", variants.iter().map(|v| v.name.as_str()));
    let of = index(&s.need("of", "of = \"after\"")?)?;
    let to = s.need("to", "to = \"before\"")?;
    let ratio = PublishedRatio { of, to: index(&to)?, band: s.opt("band", band)? };
    if ratio.to == of { Err(to.bad("is what the ratio is of; name another variant")) } else { Ok(ratio) }
}

fn band(field: &Field<'_>) -> Result<[f64; 2]> {
    let ends = field.list(2)?;
    let [low, high] = ends.as_slice() else {
        return Err(field.bad("is not a band; write [0.98, 1.02], and inf for no upper end"));
    };
    let band = [low.float(0.0..=f64::MAX)?, high.float(0.0..=f64::INFINITY)?];
    if band[0] <= band[1] { Ok(band) } else { Err(field.error("the band ends before it begins")) }
}

/// Whether this says which times of a recorded loop, and what of them.
fn iterations(one: bool, rest: &str, times: u64) -> std::result::Result<(), String> {
    let (which, rest) = rest.split_once('.').unwrap_or((rest, ""));
    let number = |n: &str| n.parse::<u64>().ok().filter(|n| (1..=times).contains(n));
    let (fold, counter, good) = match one {
        true => ("mean", rest, number(which).is_some()),
        false => {
            let (fold, counter) = rest.split_once('.').unwrap_or((rest, ""));
            let ends = which.split_once('-').and_then(|(from, to)| number(from).zip(number(to)));
            (fold, counter, ends.is_some_and(|(from, to)| from <= to))
        }
    };
    let name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    match () {
        _ if !good && one => Err(format!("is of no time through the loop; write 1 to {times}")),
        _ if !good => Err(format!("is of no times through the loop; write 1-{times}, or a part of it")),
        _ if !FOLDS.contains(&fold) => Err(format!("is not a result; after the times comes {}", FOLDS.join(", "))),
        _ if counter.is_empty() || !counter.chars().all(name) => {
            Err("does not end in the name of a counter".to_owned())
        }
        _ => Ok(()),
    }
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
            let device = scenario.devices.iter().position(|d| d.name == name);
            declared(device.is_some())?;
            let has_swap = |i: &usize| scenario.swap.iter().any(|s| s.device == *i);
            let zram = device.filter(has_swap).is_some_and(|i| scenario.devices[i].preset == "zram");
            let figures = ZramStats::default().named().map(|(figure, _)| figure);
            let stored = figures.into_iter().filter(|_| zram);
            one_of(&["read_bytes", "write_bytes"].into_iter().chain(stored).collect::<Vec<_>>(), last)
        }
        "memcg" => {
            declared(scenario.memcgs.iter().any(|m| m.path == name))?;
            if counter(last) { Ok(()) } else { Err("does not end in the name of a counter".to_owned()) }
        }
        "mthp" => {
            let sizes = (ThpConfig::MIN_ORDER..=ThpConfig::MAX_ORDER).map(|order| format!("{}kB", 4u32 << order));
            let sizes: Vec<_> = sizes.collect();
            one_of(&sizes.iter().map(String::as_str).collect::<Vec<_>>(), name)?;
            if counter(last) { Ok(()) } else { Err("does not end in the name of a counter".to_owned()) }
        }
        "tier" => {
            declared(scenario.machine.nodes.iter().any(|n| n.name == name))?;
            one_of(&TIER_METRICS, last)
        }
        "series" => {
            let tiers = TIER_COLUMNS.iter().filter(|_| !scenario.machine.nodes.is_empty());
            one_of(&COLUMNS.iter().chain(tiers).copied().collect::<Vec<_>>(), name)?;
            one_of(&FOLDS[..3], last).map_err(|_| format!("is not a result; after the column comes {}", FOLDS[..3].join(", ")))
        }
        "total" if !scenario.machine.nodes.is_empty() => {
            one_of(&["seconds", "ops_per_s", "promoted_bytes_per_s", "demoted_bytes_per_s", "mean_access_ns"], rest)
        }
        "total" => one_of(&["seconds", "ops_per_s"], rest),
        "swap" if name.is_empty() => one_of(&SWAP_METRICS, rest).map_err(|e| e + ", or a device"),
        "swap" => {
            declared(scenario.swap.iter().any(|s| scenario.devices[s.device].name == name))?;
            let known = SwapResult::METRICS.join(", ");
            one_of(&SwapResult::METRICS, last).map_err(|_| format!("is not a result; after the device comes {known}"))
        }
        "psi" => one_of(&["some_us", "full_us"], rest),
        "iteration" | "iterations" => {
            let (task, rest) = rest.split_once('.').unwrap_or((rest, ""));
            declared(scenario.tasks.iter().any(|t| t.name == task))?;
            let recorded =
                scenario.tasks.iter().find(|t| t.name == task).and_then(|t| t.loops.iter().find(|l| l.record));
            let Some(recorded) = recorded else {
                return Err(format!("is about a loop, and {task} records none; write record = true"));
            };
            iterations(prefix == "iteration", rest, recorded.times)
        }
        "vmstat" | "node" if counter(rest) => Ok(()),
        "vmstat" | "node" => Err("does not end in the name of a counter".to_owned()),
        _ => Err("is not a result; write task.NAME., total., tier.NODE., vmstat., mthp.SIZE., memcg.PATH., device.NAME., node., swap., psi., series.COLUMN., \
                  iteration.TASK.N. or iterations.TASK.FROM-TO.FOLD. and what of it"
            .to_owned()),
    }
}
