//! Descriptions of columns as they are written, and the flags that read a trace by them.

use crate::columns::{Columns, Field, Unit};
use std::fmt;

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unit::Bytes(1) => f.write_str("bytes"),
            Unit::Bytes(bytes) => write!(f, "{bytes}"),
            Unit::Hex(1) => f.write_str("hex"),
            Unit::Hex(bytes) => write!(f, "hex{bytes}"),
            Unit::Pages => f.write_str("pages"),
        }
    }
}

/// Name of a unit of times that is `unit_ns` nanoseconds long.
pub(crate) fn time_unit_name(unit_ns: u64) -> &'static str {
    match unit_ns {
        1 => "ns",
        100 => "100ns",
        1000 => "us",
        1_000_000 => "ms",
        _ => "s",
    }
}

fn op(reads: &[String], writes: &[String], passed: &[String]) -> String {
    let (reads, writes) = (reads.join("+"), writes.join("+"));
    let passed = if passed.is_empty() { String::new() } else { format!("|{}", passed.join("+")) };
    format!("op={reads}|{writes}{passed}")
}

impl Columns {
    /// A field as it is written.
    pub(crate) fn field_text(&self, field: &Field) -> String {
        let mark = |is_sure: bool| if is_sure { "!" } else { "" };
        match field {
            Field::Skip => "_".into(),
            Field::Rest => "*".into(),
            Field::Time(unit_ns) => format!("time:{}{}", time_unit_name(*unit_ns), mark(self.sure.time)),
            Field::Op { reads, writes, passed } => op(reads, writes, passed),
            Field::Rwbs => "rwbs".into(),
            Field::Is(word) => format!("is={word}"),
            Field::Offset(Unit::Pages) => format!("page{}", mark(self.sure.place)),
            Field::Offset(unit) => format!("offset:{unit}{}", mark(self.sure.place)),
            Field::Size(unit) => format!("size:{unit}{}", mark(self.sure.size)),
            Field::Key => "key".into(),
            Field::Object => "object".into(),
            Field::Task => "task".into(),
            Field::Count => "count".into(),
        }
    }

    /// The flags of a command that reads a trace so.
    pub(crate) fn flags(&self) -> String {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
        let separator = match self.separator {
            _ if self.pattern.is_some() => {
                let text = self.pattern.as_ref().map_or("", |pattern| pattern.text());
                format!(" --separator {}", quoted(&format!("regex:{text}")))
            }
            Some(b',') => String::new(),
            Some(b'\t') => " --separator tab".into(),
            Some(byte) => format!(" --separator {}", quoted(&char::from(byte).to_string())),
            None => " --separator space".into(),
        };
        let lines = if self.skip_lines == 0 { String::new() } else { format!(" --skip-lines {}", self.skip_lines) };
        format!("--format {}{separator}{lines}", quoted(&format!("columns:{self}")))
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields: Vec<_> = self.fields.iter().map(|field| self.field_text(field)).collect();
        f.write_str(&fields.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_as_the_same() {
        let named = Columns::all_named().map(|(name, ..)| Columns::named(name).expect("a name"));
        let more = ["time:100ns!,page!,size:512!", "offset:hex4096!,_", "object,op=|w,key"];
        for columns in named.chain(more.map(|text| text.parse().expect("columns"))) {
            let again: Columns = columns.to_string().parse().expect("columns");
            assert_eq!((&again.fields, again.sure), (&columns.fields, columns.sure), "{columns}");
        }
        let columns = Columns::new("is=it's,page", ";", 2).expect("columns");
        assert_eq!(columns.flags(), r"--format 'columns:is=it'\''s,page' --separator ';' --skip-lines 2");
    }
}
