//! A regular expression for the lines of a text: its groups are the columns.

use crate::columns::Field;
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
    /// The expression for these columns. Named groups are of the column of that name, others of the
    /// columns in their order.
    pub(crate) fn new(text: &str, fields: &[Field]) -> Result<LinePattern, TraceError> {
        let error = |what: String| TraceError::usage(format!("separator \"regex:{text}\""), what);
        let built = RegexBuilder::new(text).unicode(false).size_limit(MOST_BYTES).build();
        let expression = built.map_err(|e| {
            let said = e.to_string();
            let last = said.lines().last().unwrap_or_default().trim().trim_start_matches("error: ");
            error(format!("is no regular expression: {last}"))
        })?;
        let names: Vec<&str> = expression.capture_names().flatten().collect();
        let wanted: Vec<Option<&str>> = fields.iter().map(Field::group).collect();
        let groups = if names.is_empty() {
            let (there, columns) = (expression.captures_len() - 1, fields.len());
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

impl Field {
    /// Name of the group that a column is; none: it needs no text.
    fn group(&self) -> Option<&'static str> {
        match self {
            Field::Skip | Field::Rest => None,
            Field::Time(_) => Some("time"),
            Field::Op { .. } => Some("op"),
            Field::Rwbs => Some("rwbs"),
            Field::Is(_) => Some("is"),
            Field::Offset(crate::columns::Unit::Pages) => Some("page"),
            Field::Offset(_) => Some("offset"),
            Field::Size(_) => Some("size"),
            Field::Key => Some("key"),
            Field::Count => Some("count"),
            Field::Object => Some("object"),
            Field::Task => Some("task"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::columns::Columns;

    fn columns(fields: &str, pattern: &str) -> Result<Columns, String> {
        Columns::new(fields, &format!("regex:{pattern}"), 0).map_err(|e| e.to_string())
    }

    #[test]
    fn groups_are_columns_in_their_order_or_by_name() {
        let fields = |fields: &str, pattern: &str, line: &str| {
            let columns = columns(fields, pattern).expect("columns");
            let found = columns.pattern.as_ref().expect("a pattern").fields(line.as_bytes());
            found.map(|all| all.iter().map(|part| String::from_utf8_lossy(part).into_owned()).collect::<Vec<_>>())
        };
        let line = "[12:30] read(fd=3) at 4096 len 512";
        let in_order = fields("op=read|write,offset:bytes,size:bytes", r"(\w+)\(.* at (\d+) len (\d+)", line);
        assert_eq!(in_order, Some(vec!["read".into(), "4096".into(), "512".into()]));
        let named = r"(?<op>\w+)\(fd=(?<object>\d+)\) at (?<offset>\d+)";
        assert_eq!(fields("offset:bytes,op=read|write,object", named, line).expect("a match"), ["4096", "read", "3"]);
        assert_eq!(fields("offset:bytes,op=read|write,object", named, "close(3)"), None);
    }

    #[test]
    fn mistakes_are_named() {
        for (fields, pattern, what) in [
            ("page", r"(\d+", "is no regular expression: unclosed group"),
            ("page,op=R|W", r"(\d+)", "has 1 groups, and there are 2 columns"),
            ("page", r"(?<offset>\d+)", "has a group offset, and no column of that name"),
            ("page,op=R|W", r"(?<page>\d+)", "has no group op: (?<op>...)"),
            ("page", r"(\w{1000000000})", "is no regular expression"),
        ] {
            let error = columns(fields, pattern).expect_err(pattern);
            assert!(error.contains(what), "{pattern}: {error}");
        }
    }
}
