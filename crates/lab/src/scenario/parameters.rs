//! Where the values of a scenario come from: published, derived, calibrated, or chosen.

use super::read::{Field, Result, Section};
use super::types::{Calibrated, Parameters, PublishedRow};
use std::collections::BTreeMap;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

const MAX_PARAMETERS: usize = 256;

pub(super) fn parameters(field: &Field<'_>, root: &Section<'_>, rows: &[PublishedRow]) -> Result<Parameters> {
    let s = field.section(&["published", "derived", "calibrated", "chosen"])?;
    let texts = |field: &Field<'_>| {
        let entries = field.any_section()?.entries();
        entries.into_iter().map(|(key, text)| Ok((known(&text, key, root)?, text.line()?))).collect()
    };
    let keys = |field: &Field<'_>| {
        let list = field.list(MAX_PARAMETERS)?;
        list.iter().map(|key| known(key, &key.line()?, root)).collect()
    };
    Ok(Parameters {
        published: s.or("published", Vec::new(), keys)?,
        derived: s.or("derived", Default::default(), texts)?,
        calibrated: s.or("calibrated", Default::default(), |field| calibrated(field, root, rows))?,
        chosen: s.or("chosen", Default::default(), texts)?,
    })
}

/// Reads values that numbers of the first variant decided. Each value names the row of its number.
/// There are fewer values than numbers, so that the remaining numbers can disagree.
fn calibrated(field: &Field<'_>, root: &Section<'_>, rows: &[PublishedRow]) -> Result<BTreeMap<String, Calibrated>> {
    let mut all = BTreeMap::new();
    let figures: Vec<_> = rows.iter().filter(|row| row.published.first().is_some_and(Option::is_some)).collect();
    let entries = field.any_section()?.entries();
    for (key, field) in &entries {
        let s = field.section(&["by", "how", "as"])?;
        let origin = match s.get("as") {
            Some(other) => {
                let name = other.line()?;
                if !entries.iter().any(|(key, field)| *key == name && field.value().get("by").is_some()) {
                    return Err(other.bad("is no value that is calibrated by a number; name the key of one"));
                }
                Calibrated::As(name)
            }
            None => {
                let by = s.need("by", "by = \"the label of a row\"")?;
                let row =
                    figures[by.index("a row with a published number", figures.iter().map(|r| r.label.as_str()))?];
                Calibrated::By { row: row.label.clone(), how: s.need("how", "how = \"by bisection\"")?.line()? }
            }
        };
        all.insert(known(field, key, root)?, origin);
    }
    let values = all.values().filter(|origin| matches!(origin, Calibrated::By { .. })).count();
    if values > 0 && values >= figures.len() {
        return Err(field.error(format!(
            "{values} values are calibrated by {} numbers; they must be fewer, or nothing is left to disagree",
            figures.len()
        )));
    }
    Ok(all)
}

/// A key that the scenario has.
fn known(field: &Field<'_>, key: &str, root: &Section<'_>) -> Result<String> {
    if place(root.table(), key).is_some() {
        Ok(key.to_owned())
    } else {
        Err(field.error(format!("{key:?} is no key of this scenario")))
    }
}

/// Parts of a scenario whose origin a benchmark has to name.
const PARTS: [&str; 8] = ["machine", "node", "device", "swap", "policy", "memcg", "object", "task"];

/// Keys that give names, or say which task works on what: they are no quantities, so need no
/// origin.
const STRUCTURE: [&str; 13] = [
    "name", "kind", "device", "memcg", "after", "object", "read", "write", "drop", "page_out", "renew", "measured",
    "record",
];

/// The values of machine and workload, each by its key and with its place in the text.
pub(super) fn values(text: &str) -> Vec<(String, Range<usize>)> {
    values_of(text, &PARTS)
}

fn values_of(text: &str, parts: &[&str]) -> Vec<(String, Range<usize>)> {
    let mut found = Vec::new();
    let Ok(root) = DeTable::parse(text) else { return found };
    for (key, value) in root.get_ref().iter().filter(|(key, _)| parts.contains(&key.get_ref().as_ref())) {
        collect(key.get_ref(), value.get_ref(), &value.span(), &mut found);
    }
    found
}

/// Settings of a scenario's machine, in the words of its text: every key but those of workload.
pub(super) fn settings(text: &str) -> Vec<(String, String)> {
    const PARTS: [&str; 6] = ["machine", "node", "device", "swap", "zswap", "memcg"];
    values_of(text, &PARTS).into_iter().map(|(key, place)| (key, text[place].to_owned())).collect()
}

/// The line of every value of machine and workload, from 1.
pub(super) fn lines(text: &str) -> Vec<(String, usize)> {
    let line = |place: Range<usize>| text.as_bytes()[..place.start].iter().filter(|b| **b == b'\n').count() + 1;
    values(text).into_iter().map(|(key, place)| (key, line(place))).collect()
}

fn collect(key: &str, value: &DeValue<'_>, span: &Range<usize>, found: &mut Vec<(String, Range<usize>)>) {
    let is_table = |item: &DeValue<'_>| matches!(item, DeValue::Table(_));
    match value {
        DeValue::Table(table) => {
            for (name, value) in table.iter() {
                let is_structure = STRUCTURE.contains(&name.get_ref().as_ref()) && !is_table(value.get_ref());
                if !is_structure {
                    collect(&format!("{key}.{}", name.get_ref()), value.get_ref(), &value.span(), found);
                }
            }
        }
        DeValue::Array(items) if items.iter().any(|item| is_table(item.get_ref())) => {
            for (at, item) in items.iter().enumerate() {
                let name = item.get_ref().get("name").and_then(|n| n.get_ref().as_str()).filter(|_| key == "task");
                let key = name.map_or_else(|| format!("{key}[{}]", at + 1), |name| format!("{key}.{name}"));
                collect(&key, item.get_ref(), &item.span(), found);
            }
        }
        _ => found.push((key.to_owned(), span.clone())),
    }
}

/// Whether `key` is `table`, or lies within the table that `table` names.
pub(super) fn is_within(key: &str, table: &str) -> bool {
    key.strip_prefix(table).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The place of `machine.memory`, `task.NAME.phase[2].cpu` or `memcg./PATH.max`. Names may have
/// dots in them, so the longest that is there is taken.
fn place(table: &DeTable<'_>, key: &str) -> Option<Range<usize>> {
    let fits = |name: &str| key.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
    let entries = table.iter().filter_map(|(name, value)| Some((name.get_ref().len(), fits(name.get_ref())?, value)));
    let (_, rest, value) = entries.max_by_key(|(length, ..)| *length)?;
    within(value.get_ref(), value.span(), rest)
}

fn within(value: &DeValue<'_>, span: Range<usize>, rest: &str) -> Option<Range<usize>> {
    let inner = rest.strip_prefix('.');
    match value {
        _ if rest.is_empty() => Some(span),
        DeValue::Table(table) => place(table, inner?),
        DeValue::Array(items) => {
            let (at, rest) = match inner {
                // Tasks have names.
                Some(named) => {
                    let (name, _) = named.split_once(['.', '[']).unwrap_or((named, ""));
                    let is_it = |item: &DeValue<'_>| item.get("name").and_then(|n| n.get_ref().as_str()) == Some(name);
                    (items.iter().position(|item| is_it(item.get_ref()))?, &named[name.len()..])
                }
                None => {
                    let (number, rest) = rest.strip_prefix('[')?.split_once(']')?;
                    (number.parse::<usize>().ok()?.checked_sub(1)?, rest)
                }
            };
            let item = items.get(at)?;
            within(item.get_ref(), item.span(), rest)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{is_within, place, values};
    use crate::scenario::{Calibrated, Scenario};
    use toml::de::DeTable;

    const TEXT: &str = "name = \"n\"\nmachine = { memory = \"1G\" }\nmemcg.\"/a.b\".max = \"2G\"\n[[task]]\n\
        name = \"x\"\nmemcg = \"/a.b\"\n[[task.phase]]\nread = \"f\"\ncpu = \"1us\"\n[[task.phase]]\nskew = 1.2\n\
        [published]\nseeds = 3\n";

    #[test]
    fn keys_lead_to_their_values() {
        let root = DeTable::parse(TEXT).expect("TOML");
        for (key, value) in [
            ("machine.memory", "\"1G\""),
            ("memcg./a.b.max", "\"2G\""),
            ("task.x.phase[1].cpu", "\"1us\""),
            ("task[1].phase[2].skew", "1.2"),
        ] {
            assert_eq!(place(root.get_ref(), key).map(|place| &TEXT[place]), Some(value), "{key}");
        }
        for key in ["machine.cpus", "task.y", "task.x.phase[3]", "task.x.phase[0]", "memcg./a", "machine.memory.x", ""]
        {
            assert_eq!(place(root.get_ref(), key), None, "{key}");
        }
    }

    #[test]
    fn values_are_quantities_of_machine_and_workload() {
        let found = values(TEXT);
        let found: Vec<_> = found.iter().map(|(key, place)| (key.as_str(), &TEXT[place.clone()])).collect();
        let want = [
            ("machine.memory", "\"1G\""),
            ("memcg./a.b.max", "\"2G\""),
            ("task.x.phase[1].cpu", "\"1us\""),
            ("task.x.phase[2].skew", "1.2"),
        ];
        assert_eq!(found, want);
        assert!(is_within("task.x.phase[1].cpu", "task.x") && is_within("task.x", "task.x"));
        assert!(!is_within("task.xy.cpu", "task.x") && !is_within("task.x", "task.x.phase[1]"));
    }

    /// The calibrated values of a scenario with two published numbers of its first variant.
    fn calibrated(values: &str) -> Result<Vec<(String, Calibrated)>, String> {
        let row = |metric: &str, label: &str, side: &str| {
            format!("[[published.row]]\nmetric = \"{metric}\"\nlabel = \"{label}\"\n{side} = 3\n")
        };
        let text = "name = \"n\"\nmachine = { memory = \"1G\" }\npolicy.name = \"lru\"\ndevice.d.preset = \"nvme\"\n\
            [object.f]\nkind = \"file\"\nsize = \"1M\"\ndevice = \"d\"\n[[task]]\nname = \"t\"\n\
            [[task.phase]]\nread = \"f\"\npasses = 1\ncpu = \"1us\"\n[published]\nbefore = {}\nafter = {}\n"
            .to_owned();
        let text = text
            + &row("task.t.seconds", "real", "before")
            + &row("task.t.ops_per_s", "rate", "before")
            + &row("total.seconds", "all", "after")
            + "[published.parameters.calibrated]\n"
            + values;
        let scenario = Scenario::parse("f.toml", &text).map_err(|e| e.to_string())?;
        let calibrated = scenario.published.map(|published| published.parameters.calibrated);
        Ok(calibrated.unwrap_or_default().into_iter().collect())
    }

    #[test]
    fn a_calibrated_value_names_a_number_of_the_first_variant() {
        let by = "\"task.t.phase[1].cpu\" = { by = \"rate\", how = \"by bisection\" }\n";
        let same = "\"machine.memory\" = { as = \"task.t.phase[1].cpu\" }\n";
        let found = calibrated(&format!("{by}{same}")).expect("one value of two numbers");
        let origin = Calibrated::By { row: "rate".to_owned(), how: "by bisection".to_owned() };
        assert_eq!(found[1], ("task.t.phase[1].cpu".to_owned(), origin));
        assert_eq!(found[0].1, Calibrated::As("task.t.phase[1].cpu".to_owned()));
        // A number of the side after, a value that is none, and as many values as numbers.
        let wrong = |values: &str| calibrated(values).expect_err(values);
        let after = wrong(&by.replace("rate", "all"));
        assert!(after.ends_with("\"all\" is not a row with a published number; declared are real, rate"), "{after}");
        assert!(wrong(same).contains("is no value that is calibrated by a number"), "{}", wrong(same));
        let two = wrong(&format!("{by}\"machine.memory\" = {{ by = \"real\", how = \"too\" }}\n"));
        assert!(two.contains("2 values are calibrated by 2 numbers; they must be fewer"), "{two}");
    }
}
