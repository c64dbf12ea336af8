//! The formats, by name.

use crate::columns::Columns;
use crate::error::{TraceError, quote};
use std::fmt;
use std::str::FromStr;

/// A format that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// The native format: Parquet with zstd.
    Native,
    /// oracleGeneral: 24-byte records of time, id, size and next access.
    OracleGeneral,
    /// vscsi version 1 or 2: SCSI commands of a virtual disk.
    Vscsi,
    /// MSR Cambridge csv.
    Msr,
    /// Text, one page or block a line, optionally `r` or `w`.
    Plain,
    /// ARC `.lis`: text, `start count ignored number`.
    Arc,
    /// LIRS: text, one block a line, `*` marks.
    Lirs,
    /// Bare little-endian u32.
    U32Le,
    /// Bare big-endian u32.
    U32Be,
    /// Bare little-endian u64.
    U64Le,
    /// Bare big-endian u64.
    U64Be,
    /// `PGTRACE1`: 32-bit accesses to a file and an anonymous region.
    PgTrace,
    /// `valgrind --tool=lackey --trace-mem=yes`.
    Lackey,
    /// Text, `l|s 0xADDRESS n`.
    Address,
    /// drmemtrace entries, usually in a zip.
    Drmemtrace,
    /// Text of blkparse.
    Blkparse,
    /// Binary records of blktrace.
    Blktrace,
    /// Output of biosnoop.
    Biosnoop,
    /// Output of strace.
    Strace,
    /// Events of the kernel as text of perf script, trace-cmd report or tracefs.
    Events,
    /// Output of `perf trace -F`.
    PerfTrace,
    /// Output of drcachesim's view tool.
    DrcachesimView,
    /// Page cache events of io-tracer.
    IoTracer,
    /// Text in columns, which [`crate::Columns`] describe.
    Columns,
    /// Made by a generator, not read from a file.
    Generated,
}

/// Every format with the name that `--format` takes and what it is.
const NAMES: [(Format, &str, &str); 23] = [
    (Format::Native, "native", "refault's own: Parquet with zstd"),
    (Format::OracleGeneral, "oracle-general", "24-byte records: time, id, size, next access"),
    (Format::Vscsi, "vscsi", "SCSI commands, version 1 or 2"),
    (Format::Msr, "msr", "MSR Cambridge csv: time,host,disk,Read|Write,offset,size,response"),
    (Format::Plain, "plain", "text, one page a line, optionally r or w"),
    (Format::Arc, "arc", "text, four decimals a line: start count ignored number"),
    (Format::Lirs, "lirs", "text, one block a line, * marks are skipped"),
    (Format::U32Le, "u32le", "bare little-endian 32-bit numbers"),
    (Format::U32Be, "u32be", "bare big-endian 32-bit numbers"),
    (Format::U64Le, "u64le", "bare little-endian 64-bit numbers"),
    (Format::U64Be, "u64be", "bare big-endian 64-bit numbers"),
    (Format::PgTrace, "pgtrace", "PGTRACE1: accesses to a file and an anonymous region"),
    (Format::Lackey, "lackey", "valgrind --tool=lackey --trace-mem=yes"),
    (Format::Address, "address", "text: l|s 0xADDRESS instructions"),
    (Format::Drmemtrace, "drmemtrace", "DynamoRIO memory trace entries, usually in a zip"),
    (Format::Blkparse, "blkparse", "text of blkparse: requests to block devices"),
    (Format::Blktrace, "blktrace", "binary records of blktrace"),
    (Format::Biosnoop, "biosnoop", "output of biosnoop"),
    (Format::Strace, "strace", "output of strace: reads and writes of files"),
    (Format::Events, "events", "text of perf script, trace-cmd report or ftrace: filemap, block, faults, pread64"),
    (Format::PerfTrace, "perf-trace", "output of perf trace -F: page faults"),
    (Format::DrcachesimView, "drcachesim-view", "output of drcachesim's view tool"),
    (Format::IoTracer, "io-tracer", "page cache events of io-tracer, csv"),
];

impl Format {
    /// Every format that a file can have, with its name and what it is.
    pub fn all() -> impl Iterator<Item = (Format, &'static str, &'static str)> {
        NAMES.into_iter()
    }

    /// The name that `--format` takes.
    pub fn name(self) -> &'static str {
        let other = if self == Format::Columns { "columns" } else { "generated" };
        NAMES.iter().find(|(format, ..)| *format == self).map_or(other, |(_, name, _)| name)
    }

    /// The names that `--format` takes, for messages.
    pub fn list() -> String {
        let names: Vec<_> = names().collect();
        format!("{} and columns:FIELDS", names.join(", "))
    }
}

/// Every name that `--format` takes: of formats with a reader of their own, then of columns.
fn names() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().map(|(_, name, _)| name).chain(Columns::all_named().map(|(name, ..)| name))
}

/// The name that was meant by one with a letter or two wrong; its description is kept.
fn nearest(text: &str) -> Option<String> {
    let (name, fields) = text.split_once(':').map_or((text, None), |(name, fields)| (name, Some(fields)));
    let name = name.to_ascii_lowercase().replace('_', "-");
    let columns = std::iter::once("columns");
    let near = names().chain(columns).map(|known| (strsim::levenshtein(known, &name), known)).min()?;
    match near {
        (far, "columns") if far <= 2 => Some(format!("columns:{}", fields.unwrap_or("FIELDS"))),
        (far, known) if far <= known.len() / 3 => Some(known.to_owned()),
        _ => None,
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        NAMES.iter().find(|(_, name, _)| *name == text).map(|(format, ..)| *format).ok_or_else(|| {
            let meant = nearest(text).map_or(String::new(), |name| format!("did you mean {name}? "));
            let what = format!("is not known; {meant}there are {}", Format::list());
            TraceError::usage(format!("format {}", quote(text.as_bytes())), what)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list had some of the names only, and a slip of a letter was not told.
    #[test]
    fn regression_a_name_that_is_not_known_has_all_that_are_and_the_nearest() {
        for (text, near) in [
            ("alibba", Some("alibaba")),
            ("colums:time:s", Some("columns:time:s")),
            ("column:page,op=r|w", Some("columns:page,op=r|w")),
            ("columns", Some("columns:FIELDS")),
            ("oracleGeneral", Some("oracle-general")),
            ("oracle_general", Some("oracle-general")),
            ("MSR", Some("msr")),
            ("blkpars", Some("blkparse")),
            ("furlong", None),
            ("", None),
        ] {
            let error = text.parse::<Format>().unwrap_err().to_string();
            assert!(names().all(|name| error.contains(name)) && error.contains("columns:FIELDS"), "{error}");
            let said = error.split_once("did you mean ").and_then(|(_, rest)| rest.split_once("? "));
            assert_eq!(said.map(|(name, _)| name), near, "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
