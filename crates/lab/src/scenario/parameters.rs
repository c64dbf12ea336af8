//! Where the values of a scenario come from: published, derived, or chosen.

use super::read::{Field, Result, Section};
use super::types::Parameters;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

const MAX_PARAMETERS: usize = 256;

pub(super) fn parameters(field: &Field<'_>, root: &Section<'_>) -> Result<Parameters> {
    let s = field.section(&["published", "derived", "chosen"])?;
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
        chosen: s.or("chosen", Default::default(), texts)?,
    })
}

/// A key that the scenario has.
fn known(field: &Field<'_>, key: &str, root: &Section<'_>) -> Result<String> {
    if place(root.table(), key).is_some() {
        Ok(key.to_owned())
    } else {
        Err(field.error(format!("{key:?} is no key of this scenario")))
    }
}

/// Where in the text of a scenario the value of a key stands, to have another one there.
pub(super) fn span(text: &str, key: &str) -> Option<Range<usize>> {
    place(DeTable::parse(text).ok()?.get_ref(), key)
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
    use super::span;

    #[test]
    fn keys_lead_to_their_values() {
        let text = "machine = { memory = \"1G\" }\nmemcg.\"/a.b\".max = \"2G\"\n[[task]]\nname = \"x\"\n\
            [[task.phase]]\ncpu = \"1us\"\n[[task.phase]]\nskew = 1.2\n";
        for (key, value) in [
            ("machine.memory", "\"1G\""),
            ("memcg./a.b.max", "\"2G\""),
            ("task.x.phase[1].cpu", "\"1us\""),
            ("task[1].phase[2].skew", "1.2"),
        ] {
            assert_eq!(span(text, key).map(|place| &text[place]), Some(value), "{key}");
        }
        for key in ["machine.cpus", "task.y", "task.x.phase[3]", "task.x.phase[0]", "memcg./a", "machine.memory.x", ""]
        {
            assert_eq!(span(text, key), None, "{key}");
        }
    }
}
