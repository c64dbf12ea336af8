//! A regular expression for the lines of a text: its groups are the columns.

use crate::error::TraceError;
use regex::bytes::{Regex, RegexBuilder};

/// The most bytes that the compiled expression may take.
const MOST_BYTES: usize = 1 << 20;

/// An expression, and which of its groups each column is.
#[derive(Clone, Debug)]
pub(crate) struct LinePattern {
    expression: Regex,
    /// By column: the number of its group; none: the column needs none.
    groups: Vec<Option<usize>>,
}

impl PartialEq for LinePattern {
    fn eq(&self, other: &LinePattern) -> bool {
        self.text() == other.text() && self.groups == other.groups
    }
}

impl Eq for LinePattern {}

impl LinePattern {
    /// The expression for columns of these names, of which some need no text. Named groups are of
    /// the column of that name, others of the columns in their order.
    pub(crate) fn new(text: &str, wanted: &[Option<&str>]) -> Result<LinePattern, TraceError> {
        let error = |what: String| TraceError::usage(format!("separator \"regex:{text}\""), what);
        let built = RegexBuilder::new(text).unicode(false).size_limit(MOST_BYTES).build();
        let expression = built.map_err(|e| {
            let said = e.to_string();
            let last = said.lines().last().unwrap_or_default().trim().trim_start_matches("error: ");
            error(format!("is no regular expression: {last}"))
        })?;
        let names: Vec<&str> = expression.capture_names().flatten().collect();
        let groups = if names.is_empty() {
            let (there, columns) = (expression.captures_len() - 1, wanted.len());
            if there != columns {
                return Err(error(format!("has {there} groups, and there are {columns} columns: each is a group")));
            }
            (1..=columns).map(Some).collect()
        } else {
            if let Some(name) = names.iter().find(|name| !wanted.contains(&Some(**name))) {
                return Err(error(format!("has a group {name}, and no column of that name")));
            }
            let number = |name: &str| expression.capture_names().position(|of| of == Some(name));
            let group = |name: &Option<&str>| match name {
                None => Ok(None),
                Some(name) => {
                    number(name).map(Some).ok_or_else(|| error(format!("has no group {name}: (?<{name}>...)")))
                }
            };
            wanted.iter().map(group).collect::<Result<Vec<_>, _>>()?
        };
        Ok(LinePattern { expression, groups })
    }

    /// The expression as it was given.
    pub(crate) fn text(&self) -> &str {
        self.expression.as_str()
    }

    /// Columns of a line; none: it does not match. A group that has no part in the match is empty.
    pub(crate) fn fields<'l>(&self, line: &'l [u8]) -> Option<Vec<&'l [u8]>> {
        let found = self.expression.captures(line)?;
        let text = |group: &Option<usize>| group.and_then(|at| found.get(at)).map_or(&b""[..], |part| part.as_bytes());
        Some(self.groups.iter().map(text).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_columns_in_their_order_or_by_name() {
        let fields = |wanted: &[Option<&str>], pattern: &str, line: &str| {
            let pattern = LinePattern::new(pattern, wanted).expect("a pattern");
            let found = pattern.fields(line.as_bytes());
            found.map(|all| all.iter().map(|part| String::from_utf8_lossy(part).into_owned()).collect::<Vec<_>>())
        };
        let line = "[12:30] read(fd=3) at 4096 len 512";
        let in_order = fields(&[Some("op"), Some("offset"), Some("size")], r"(\w+)\(.* at (\d+) len (\d+)", line);
        assert_eq!(in_order.expect("a match"), ["read", "4096", "512"]);
        let named = r"(?<op>\w+)\(fd=(?<object>\d+)\) at (?<offset>\d+)";
        let wanted = [Some("offset"), Some("op"), Some("object")];
        assert_eq!(fields(&wanted, named, line).expect("a match"), ["4096", "read", "3"]);
        assert_eq!(fields(&wanted, named, "close(3)"), None);
    }

    #[test]
    fn mistakes_are_named() {
        for (wanted, pattern, what) in [
            (&[Some("page")][..], r"(\d+", "is no regular expression: unclosed group"),
            (&[Some("page"), Some("op")], r"(\d+)", "has 1 groups, and there are 2 columns"),
            (&[Some("page")], r"(?<offset>\d+)", "has a group offset, and no column of that name"),
            (&[Some("page"), Some("op")], r"(?<page>\d+)", "has no group op: (?<op>...)"),
            (&[Some("page")], r"(\w{1000000000})", "is no regular expression"),
        ] {
            let error = LinePattern::new(pattern, wanted).expect_err(pattern).to_string();
            assert!(error.contains(what), "{pattern}: {error}");
        }
    }
}
