//! Reading TOML by hand, so that every error knows its line and its key: sections with a fixed set
//! of keys, and fields that are asked for what they must be.

use super::error::{ScenarioError, Source, plain};
use super::units;
use refault_mm::Kernel;
use std::ops::{Range, RangeInclusive};
use std::sync::LazyLock;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(super) type Result<T> = std::result::Result<T, ScenarioError>;

/// A table and where it is.
#[derive(Clone)]
pub(super) struct Section<'s> {
    src: Source<'s>,
    key: String,
    span: Range<usize>,
    table: &'s DeTable<'s>,
}

/// A value and where it is.
#[derive(Clone)]
pub(super) struct Field<'s> {
    src: Source<'s>,
    key: String,
    span: Range<usize>,
    value: &'s DeValue<'s>,
}

impl<'s> Section<'s> {
    /// The whole file, which has only these keys.
    pub(super) fn root(src: Source<'s>, table: &'s DeTable<'s>, keys: &[&str]) -> Result<Section<'s>> {
        Section { src, key: String::new(), span: 0..0, table }.only(keys)
    }

    /// An error at the first key that is not one of these.
    fn only(self, keys: &[&str]) -> Result<Section<'s>> {
        #[cfg(test)]
        super::declared::declare(&self.key, keys);
        let unknown = self.table.keys().filter(|k| !keys.contains(&k.get_ref().as_ref()));
        let Some(first) = unknown.min_by_key(|k| k.span().start) else {
            return Ok(self);
        };
        let name = first.get_ref().as_ref();
        let near = keys.iter().map(|key| (distance(key, name), key)).min();
        let what = match near.filter(|(far, key)| *far <= key.len() / 3) {
            Some((_, near)) => format!("unknown key; did you mean {near}?"),
            None => {
                // Costs are listed without their unit.
                let plain: Vec<_> = keys.iter().copied().filter(|key| !key.ends_with("_ns")).collect();
                format!("unknown key; known are {}", plain.join(", "))
            }
        };
        Err(self.src.error(&first.span(), &self.path(name), what))
    }

    fn path(&self, name: &str) -> String {
        let bare = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        let quoted = if bare { name.to_owned() } else { format!("\"{}\"", plain(name, 64)) };
        if self.key.is_empty() { quoted } else { format!("{}.{quoted}", self.key) }
    }

    /// An error about the section.
    pub(super) fn error(&self, what: impl Into<String>) -> ScenarioError {
        self.src.error(&self.span, &self.key, what)
    }

    /// The line where it begins, from 1.
    pub(super) fn line(&self) -> usize {
        self.error("").line().unwrap_or(1)
    }

    pub(super) fn get(&self, key: &str) -> Option<Field<'s>> {
        let value = self.table.get(key)?;
        Some(Field { src: self.src, key: self.path(key), span: value.span(), value: value.get_ref() })
    }

    /// The table as the parser has it.
    pub(super) fn table(&self) -> &'s DeTable<'s> {
        self.table
    }

    /// A table that may be left out, as if it were empty.
    pub(super) fn table_or_empty(&self, key: &str, keys: &[&str]) -> Result<Section<'s>> {
        static EMPTY: LazyLock<DeTable<'static>> = LazyLock::new(DeTable::new);
        match self.get(key) {
            Some(field) => field.section(keys),
            None => Ok(Section { src: self.src, key: self.path(key), span: self.span.clone(), table: &EMPTY }),
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// A key that must be there; `example` is a line that would do.
    pub(super) fn need(&self, key: &str, example: &str) -> Result<Field<'s>> {
        let missing = || self.src.error(&self.span, &self.path(key), format!("is missing; write {example}"));
        self.get(key).ok_or_else(missing)
    }

    pub(super) fn opt<T>(&self, key: &str, read: impl FnOnce(&Field<'s>) -> Result<T>) -> Result<Option<T>> {
        self.get(key).map(|field| read(&field)).transpose()
    }

    pub(super) fn or<T>(&self, key: &str, default: T, read: impl FnOnce(&Field<'s>) -> Result<T>) -> Result<T> {
        Ok(self.opt(key, read)?.unwrap_or(default))
    }

    /// The entries of the table in the order of the file.
    pub(super) fn entries(&self) -> Vec<(&'s str, Field<'s>)> {
        let mut all: Vec<_> = self.table.iter().collect();
        all.sort_by_key(|(name, _)| name.span().start);
        let field = |value: &'s Spanned<DeValue<'s>>, name: &str| Field {
            src: self.src,
            key: self.path(name),
            span: value.span(),
            value: value.get_ref(),
        };
        all.into_iter().map(|(name, value)| (name.get_ref().as_ref(), field(value, name.get_ref()))).collect()
    }
}

impl<'s> Field<'s> {
    /// An error about the value, which is shown.
    pub(super) fn bad(&self, what: &str) -> ScenarioError {
        let shown = match self.value {
            DeValue::Table(_) => "a table".to_owned(),
            DeValue::Array(_) => "a list".to_owned(),
            _ => self.src.shown(&self.span),
        };
        self.error(format!("{shown} {what}"))
    }

    /// An error at the field.
    pub(super) fn error(&self, what: impl Into<String>) -> ScenarioError {
        self.src.error(&self.span, &self.key, what)
    }

    pub(super) fn value(&self) -> &'s DeValue<'s> {
        self.value
    }

    pub(super) fn text(&self) -> Result<&'s str> {
        match self.value {
            DeValue::String(text) => Ok(text),
            _ => Err(self.bad("is not a text; write it in quotes")),
        }
    }

    /// A text that prints as one line of bounded length.
    pub(super) fn line(&self) -> Result<String> {
        let text = self.text()?.trim();
        match plain(text, MAX_TEXT) == text {
            true => Ok(text.to_owned()),
            false => Err(self.bad(&format!("is not one line of at most {MAX_TEXT} characters"))),
        }
    }

    /// A name: letters, digits, `-` and `_`.
    pub(super) fn name(&self) -> Result<String> {
        let text = self.text()?;
        name(text).map_err(|what| self.bad(what))?;
        Ok(text.to_owned())
    }

    /// A text with a unit, or a plain 0.
    fn with_unit<T>(&self, read: impl Fn(&str) -> Option<T>, want: &str) -> Result<T> {
        let text = match self.value {
            DeValue::String(text) => text.as_ref(),
            DeValue::Integer(n) if n.as_str() == "0" => "0",
            _ => "",
        };
        read(text).ok_or_else(|| self.bad(want))
    }

    pub(super) fn pages(&self, range: RangeInclusive<u64>) -> Result<u64> {
        let pages = self.with_unit(units::pages, "is not a size; write 512M, 1.5G or 4096p")?;
        self.within(pages, range, units::size_text)
    }

    /// A size, or two between which it is: the least and the most.
    pub(super) fn pages_or_range(&self, range: RangeInclusive<u64>) -> Result<[u64; 2]> {
        if !matches!(self.value, DeValue::Array(_)) {
            return self.pages(range).map(|pages| [pages; 2]);
        }
        let [least, most] = self.list(2)?.iter().map(|f| f.pages(range.clone())).collect::<Result<Vec<_>>>()?[..]
        else {
            return Err(self.bad("is not a size; write 512M, or [\"16M\", \"512M\"] for one between"));
        };
        if least <= most { Ok([least, most]) } else { Err(self.error("the range ends before it begins")) }
    }

    /// A size, or `max` for none.
    pub(super) fn limit(&self) -> Result<u64> {
        match self.value {
            DeValue::String(text) if text == "max" => Ok(u64::MAX),
            _ => self.pages(0..=super::MAX_PAGES),
        }
    }

    pub(super) fn time(&self, range: RangeInclusive<u64>) -> Result<u64> {
        let ns = self.with_unit(units::time_ns, "is not a time; write 50us, 1.5s or 15m")?;
        self.within(ns, range, units::time_text)
    }

    pub(super) fn bytes_per_s(&self) -> Result<u64> {
        let rate = self.with_unit(units::bytes_per_s, "is not a bandwidth; write 68.6MB/s or 64MiB/s")?;
        self.within(rate, 1000..=1_000_000_000_000_000, |n| format!("{n}B/s"))
    }

    pub(super) fn per_s(&self) -> Result<f64> {
        let rate = self.with_unit(units::per_s, "is not a rate; write 1000/s or 90/m")?;
        match rate > 0.0 && rate <= 1e9 {
            true => Ok(rate),
            false => Err(self.bad("is out of range; write above 0 and up to 1000000000/s")),
        }
    }

    /// A whole number; `1e9` is one.
    pub(super) fn int<T>(&self, range: RangeInclusive<T>) -> Result<T>
    where
        T: Copy + PartialOrd + std::fmt::Display + TryFrom<i128>,
    {
        let number = match self.value {
            DeValue::Integer(n) => i128::from_str_radix(n.as_str(), n.radix()).ok(),
            DeValue::Float(x) => x.as_str().parse().ok().filter(|x: &f64| x.fract() == 0.0).map(|x| x as i128),
            _ => None,
        };
        let number = number.ok_or_else(|| self.bad("is not a whole number"))?;
        // A number that does not fit the type is outside of the range.
        match T::try_from(number) {
            Ok(n) => self.within(n, range, |n| n.to_string()),
            Err(_) => Err(self.bad(&format!("is out of range; write {} to {}", range.start(), range.end()))),
        }
    }

    pub(super) fn float(&self, range: RangeInclusive<f64>) -> Result<f64> {
        let number = match self.value {
            DeValue::Integer(n) => i128::from_str_radix(n.as_str(), n.radix()).ok().map(|n| n as f64),
            DeValue::Float(x) => x.as_str().parse().ok(),
            _ => None,
        };
        let number = number.ok_or_else(|| self.bad("is not a number"))?;
        self.within(number, range, |n| n.to_string())
    }

    fn within<T: PartialOrd + Copy>(&self, n: T, range: RangeInclusive<T>, show: impl Fn(T) -> String) -> Result<T> {
        if range.contains(&n) {
            return Ok(n);
        }
        Err(self.bad(&format!("is out of range; write {} to {}", show(*range.start()), show(*range.end()))))
    }

    pub(super) fn boolean(&self) -> Result<bool> {
        match self.value {
            DeValue::Boolean(b) => Ok(*b),
            _ => Err(self.bad("is neither true nor false")),
        }
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T> {
        let text = self.text()?;
        let found = choices.iter().find(|(word, _)| *word == text);
        let words = || choices.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        found.map(|(_, value)| *value).ok_or_else(|| self.bad(&format!("is not known; known are {}", words())))
    }

    /// A profile of kernels; one that is not known has its nearest named.
    pub(super) fn kernel(&self) -> Result<Kernel> {
        let found = self.text()?.parse::<Kernel>();
        found.map_err(|e| self.bad(&format!("is not known; {}", e.split_once("; ").map_or(&*e, |(_, rest)| rest))))
    }

    /// The index of a thing that is declared elsewhere.
    pub(super) fn index<'n>(&self, what: &str, names: impl Iterator<Item = &'n str>) -> Result<usize> {
        let text = self.text()?;
        let names: Vec<_> = names.collect();
        names.iter().position(|name| *name == text).ok_or_else(|| match names.is_empty() {
            true => self.bad(&format!("is not {what}; none is declared")),
            false => self.bad(&format!("is not {what}; declared are {}", names.join(", "))),
        })
    }

    /// A table that has only these keys.
    pub(super) fn section(&self, keys: &[&str]) -> Result<Section<'s>> {
        self.open("is not a table")?.only(keys)
    }

    fn open(&self, complaint: &str) -> Result<Section<'s>> {
        match self.value {
            DeValue::Table(table) => {
                Ok(Section { src: self.src, key: self.key.clone(), span: self.span.clone(), table })
            }
            _ => Err(self.bad(complaint)),
        }
    }

    /// A table of any keys.
    pub(super) fn any_section(&self) -> Result<Section<'s>> {
        self.open("is not a table")
    }

    /// Tables by name, in the order of the file.
    pub(super) fn named(&self, keys: &[&str], max: usize) -> Result<Vec<(&'s str, Section<'s>)>> {
        let example = format!("is not a table; write [{}.NAME]", self.key);
        let entries = self.open(&example)?.entries();
        if entries.len() > max {
            return Err(self.error(format!("there are {}; at most {max} are possible", entries.len())));
        }
        entries.into_iter().map(|(name, field)| Ok((name, field.open(&example)?.only(keys)?))).collect()
    }

    /// A list.
    pub(super) fn list(&self, max: usize) -> Result<Vec<Field<'s>>> {
        let DeValue::Array(items) = self.value else {
            return Err(self.bad("is not a list"));
        };
        if items.len() > max {
            return Err(self.error(format!("there are {}; at most {max} are possible", items.len())));
        }
        let field = |(value, n): (&'s Spanned<DeValue<'s>>, usize)| Field {
            src: self.src,
            key: format!("{}[{n}]", self.key),
            span: value.span(),
            value: value.get_ref(),
        };
        Ok(items.iter().zip(1..).map(field).collect())
    }

    /// A table, or a list of them.
    pub(super) fn one_or_more(&self, keys: &[&str], max: usize) -> Result<Vec<Section<'s>>> {
        match self.value {
            DeValue::Table(_) => Ok(vec![self.section(keys)?]),
            _ => self.sections(keys, max),
        }
    }

    /// A list of tables that have only these keys.
    pub(super) fn sections(&self, keys: &[&str], max: usize) -> Result<Vec<Section<'s>>> {
        if !matches!(self.value, DeValue::Array(_)) {
            let last = self.key.replace(|c: char| c == '[' || c == ']' || c.is_ascii_digit(), "");
            return Err(self.bad(&format!("is not a list of tables; write [[{last}]]")));
        }
        self.list(max)?.iter().map(|item| item.section(keys)).collect()
    }
}

/// Characters of the longest text of one value.
const MAX_TEXT: usize = 1000;

/// Whether a text is a name; else what it should be.
pub(super) fn name(text: &str) -> std::result::Result<(), &'static str> {
    let good = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    match good && (1..=64).contains(&text.len()) {
        true => Ok(()),
        false => Err("is not a name; write up to 64 letters, digits, - and _"),
    }
}

/// Letters that must be added, dropped or changed to make one key of another; a key that is longer
/// by more than two is none that was meant, and is not looked at.
fn distance(a: &str, b: &str) -> usize {
    if a.len().abs_diff(b.len()) > 2 { usize::MAX } else { strsim::levenshtein(a, b) }
}
