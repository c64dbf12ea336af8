//! Limits of memory cgroups in a file of their own, under the names of their files in cgroupfs:
//!
//! ```toml
//! [group."/web"]
//! memory.low = "512M"
//! memory.max = "2G"
//! ```

use super::error::{ScenarioError, Source};
use super::read::{Field, Result, Section};
use super::{MAX_FILE_BYTES, not_toml};
use refault_mm::MemcgLimits;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// The most groups of a file.
const MAX_GROUPS: usize = 1 << 15;

/// The limits of one group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupLimits {
    /// Path of the group, such as `/a/b`.
    pub path: String,
    /// Line of the file, from 1, where the group begins.
    pub line: usize,
    /// The limits; what the file does not say is as the kernel has it.
    pub limits: MemcgLimits,
}

impl GroupLimits {
    /// Reads a file. `size` makes pages of a size: its unit may depend on a trace.
    pub fn load(path: impl AsRef<Path>, size: &dyn Fn(&str) -> std::result::Result<u64, String>) -> Result<Vec<Self>> {
        let (file, text) = super::read_text(path.as_ref())?;
        GroupLimits::parse(&file, &text, size)
    }

    /// Reads a text; `file` is what errors call it.
    pub fn parse(
        file: &str,
        text: &str,
        size: &dyn Fn(&str) -> std::result::Result<u64, String>,
    ) -> Result<Vec<GroupLimits>> {
        if text.len() > MAX_FILE_BYTES {
            return Err(ScenarioError::whole(file, "is longer than 1 MiB, the most for limits"));
        }
        let src = Source { file, text };
        let table = DeTable::parse(text).map_err(|e| not_toml(src, &e))?;
        let root = Section::root(src, table.get_ref(), &["group"])?;
        let groups = root.need("group", "[group.\"/web\"]")?.named(&["memory"], MAX_GROUPS)?;
        groups.into_iter().map(|(path, s)| group(path, &s, size)).collect()
    }
}

type SizeOf<'a> = &'a dyn Fn(&str) -> std::result::Result<u64, String>;

fn group(path: &str, s: &Section<'_>, size: SizeOf<'_>) -> Result<GroupLimits> {
    match path.strip_prefix('/') {
        None => {
            let name = if path.is_empty() { "web" } else { path };
            return Err(s.error(format!("is not the path of a group; write [group.\"/{name}\"]")));
        }
        Some("") => {
            let what =
                "the root has no limits; all groups together have --memory of a trace, machine.memory of a scenario";
            return Err(s.error(what));
        }
        Some(rest) if rest.split('/').any(str::is_empty) => {
            return Err(s.error("is not the path of a group; write one / before each name"));
        }
        Some(_) => {}
    }
    let memory = s.need("memory", "memory.max = \"2G\"")?.section(&[
        "min",
        "low",
        "high",
        "max",
        "swap",
        "zswap",
        "oom",
        "swappiness",
    ])?;
    let part = |key: &str, keys: &[&str]| memory.opt(key, |field| field.section(keys));
    let (swap, zswap, oom) =
        (part("swap", &["high", "max"])?, part("zswap", &["max", "writeback"])?, part("oom", &["group"])?);
    let of = |s: &Section<'_>, key: &str| s.opt(key, |field| limit(field, size));
    let below = |s: &Option<Section<'_>>, key: &str| s.as_ref().map_or(Ok(None), |s| of(s, key));
    let none = MemcgLimits::default();
    let limits = MemcgLimits {
        min: of(&memory, "min")?.unwrap_or(none.min),
        low: of(&memory, "low")?.unwrap_or(none.low),
        high: of(&memory, "high")?.unwrap_or(none.high),
        max: of(&memory, "max")?.unwrap_or(none.max),
        swap_high: below(&swap, "high")?.unwrap_or(none.swap_high),
        swap_max: below(&swap, "max")?.unwrap_or(none.swap_max),
        zswap_max: below(&zswap, "max")?.unwrap_or(none.zswap_max),
        zswap_writeback: zswap.as_ref().map_or(Ok(None), |s| s.opt("writeback", flag))?.unwrap_or(none.zswap_writeback),
        swappiness: memory.opt("swappiness", |field| field.int(0..=200))?,
        oom_group: oom.map_or(Ok(None), |s| s.opt("group", flag))?.unwrap_or(none.oom_group),
    };
    Ok(GroupLimits { path: path.to_owned(), line: s.line(), limits })
}

/// A size, a number of bytes, or `max`.
fn limit(field: &Field<'_>, size: SizeOf<'_>) -> Result<u64> {
    let text = match field.value() {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(_) => field.int(0..=i64::MAX as u64)?.to_string(),
        _ => return Err(field.bad("is not a size; write \"512M\", \"1.5G\" or \"max\"")),
    };
    match text.as_str() {
        "max" => Ok(u64::MAX),
        text => size(text).map_err(|what| field.error(what)),
    }
}

/// 0 or 1, as the kernel writes them, or a boolean.
fn flag(field: &Field<'_>) -> Result<bool> {
    match field.value() {
        DeValue::Integer(_) => Ok(field.int(0..=1)? == 1),
        _ => field.boolean(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> std::result::Result<Vec<GroupLimits>, String> {
        let size = |text: &str| match text.strip_suffix('p') {
            Some(pages) => pages.parse().map_err(|_| format!("{text:?} is not a size")),
            None => text.parse::<u64>().map(|bytes| bytes / 4096).map_err(|_| format!("{text:?} is not a size")),
        };
        GroupLimits::parse("limits.toml", text, &size).map_err(|e| e.to_string())
    }

    #[test]
    fn every_key() {
        let text = r#"
            [group."/web"]
            memory.min = "1p"
            memory.low = "2p"
            memory.high = 12288
            memory.max = "4p"
            memory.swap.high = "5p"
            memory.swap.max = 0
            memory.zswap.max = "max"
            memory.zswap.writeback = 0
            memory.oom.group = 1
            memory.swappiness = 10
            [group."/web/a-b.c@1"]
            memory.max = "max"
        "#;
        let groups = parse(text).expect("parses");
        let want = MemcgLimits {
            min: 1,
            low: 2,
            high: 3,
            max: 4,
            swap_high: 5,
            swap_max: 0,
            zswap_max: u64::MAX,
            zswap_writeback: false,
            swappiness: Some(10),
            oom_group: true,
        };
        assert_eq!(groups[0], GroupLimits { path: "/web".into(), line: 2, limits: want });
        assert_eq!((&*groups[1].path, groups[1].line, groups[1].limits), ("/web/a-b.c@1", 13, MemcgLimits::default()));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, want) in [
            ("", "limits.toml:1: group: is missing; write [group.\"/web\"]"),
            ("[group.web]\nmemory.max = 1", "group.web: is not the path of a group; write [group.\"/web\"]"),
            ("[group.\"\"]\nmemory.max = 1", "group.\"\": is not the path of a group; write [group.\"/web\"]"),
            ("[group.\"/\"]\nmemory.max = 1", "the root has no limits; all groups together have --memory of a trace"),
            ("[group.\"/a//b\"]\nmemory.max = 1", "write one / before each name"),
            ("[group.\"/a\"]\n", "memory: is missing; write memory.max = \"2G\""),
            ("[group.\"/a\"]\nmemory.maxx = 1", "did you mean max?"),
            ("[group.\"/a\"]\nmemory.max = \"2Q\"", "limits.toml:2: group.\"/a\".memory.max: \"2Q\" is not a size"),
            ("[group.\"/a\"]\nmemory.max = true", "true is not a size; write"),
            ("[group.\"/a\"]\nmemory.max = -1", "out of range"),
            ("[group.\"/a\"]\nmemory.swap.min = 1", "unknown key"),
            ("[group.\"/a\"]\nmemory.oom.group = 2", "out of range"),
            ("[group.\"/a\"]\nmemory.swappiness = 201", "out of range"),
            ("[group.\"/a\"]\nmax = 1", "unknown key; known are memory"),
            ("[groups.\"/a\"]\nmemory.max = 1", "did you mean group?"),
            ("group = 1", "is not a table"),
            ("[group.\"/a\"", "not TOML"),
            ("[group.\"/a\"]\nmemory.max = 1\nmemory.max = 2", "duplicate key"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(want) && error.lines().count() == 1, "{text}: {error}");
        }
    }
}
