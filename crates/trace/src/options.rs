//! How a trace is to be read.

use crate::columns::Columns;
use crate::error::TraceError;
use crate::format::Format;
use std::str::FromStr;

/// Formats of tools whose numbers have one unit.
const OF_TRACERS: [Format; 7] = [
    Format::Blkparse,
    Format::Blktrace,
    Format::Biosnoop,
    Format::Strace,
    Format::Events,
    Format::PerfTrace,
    Format::DrcachesimView,
];

/// How a trace is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// The format; seen by content first and by name second when `None`.
    pub format: Option<Format>,
    /// Description of the columns, of [`Format::Columns`].
    pub columns: Option<Columns>,
    /// oracleGeneral only: take the object id as a page as it is and ignore the size.
    pub raw_ids: bool,
    /// Bytes that a number counts, folded into pages. `None`: a page in plain, LIRS, ARC and bare
    /// numbers, a sector of 512 in oracleGeneral and vscsi, 1 in MSR and formats of addresses.
    pub block_bytes: Option<u32>,
    /// Nanoseconds that a time counts. `None`: 100 in MSR, 1000 in vscsi, a second in
    /// oracleGeneral.
    pub tick_ns: Option<u64>,
    /// Bytes a page, for formats that give addresses. A power of two from 512 to 2 MiB.
    pub page_size: u32,
    /// lackey, drmemtrace and drcachesim-view only: instruction fetches count as reads.
    pub instructions: bool,
    /// Refuse numbers that may be meant in another unit, instead of saying so in
    /// [`Header::doubts`](crate::Header::doubts).
    pub strict: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            format: None,
            columns: None,
            raw_ids: false,
            block_bytes: None,
            tick_ns: None,
            page_size: 4096,
            instructions: false,
            strict: false,
        }
    }
}

impl OpenOptions {
    /// Takes the format by what `--format` takes: a name, the name of a format of others that is
    /// columns, or `columns:` with a description.
    pub fn set_format(&mut self, text: &str) -> Result<(), TraceError> {
        let described = text.strip_prefix("columns:").map(Columns::from_str).transpose()?;
        self.columns = described.or_else(|| Columns::named(text));
        self.format = Some(match self.columns {
            Some(_) => Format::Columns,
            None => text.parse()?,
        });
        Ok(())
    }

    /// Refuses options that a format has no use for, so that none is accepted and ignored.
    pub(crate) fn check_format(&self, format: Format) -> Result<(), TraceError> {
        use Format::{DrcachesimView, Drmemtrace, IoTracer, Lackey, Msr, Native, OracleGeneral, PgTrace, Vscsi};
        let has_pages = matches!(format, Native | PgTrace | IoTracer);
        let has_units = has_pages || OF_TRACERS.contains(&format);
        let misplaced = [
            (self.raw_ids && format != OracleGeneral, "--raw-ids"),
            (self.instructions && !matches!(format, Lackey | Drmemtrace | DrcachesimView), "--instructions"),
            (self.tick_ns.is_some() && !matches!(format, Msr | Vscsi | OracleGeneral), "--tick-ns"),
            (self.block_bytes.is_some() && has_units, "--block-bytes"),
            (self.page_size != OpenOptions::default().page_size && has_pages, "--page-size"),
        ];
        match misplaced.into_iter().find(|(is_misplaced, _)| *is_misplaced) {
            Some((_, flag)) => {
                Err(TraceError::usage(flag, format!("changes nothing in a trace of {format}; leave it out")))
            }
            None => Ok(()),
        }
    }

    pub(crate) fn check(&self) -> Result<(), TraceError> {
        let page = self.page_size;
        if !page.is_power_of_two() || !(512..=2 << 20).contains(&page) {
            return Err(TraceError::usage(format!("page size {page}"), "is not a power of two from 512 to 2097152"));
        }
        if self.columns.is_some() && (self.block_bytes.is_some() || self.tick_ns.is_some() || self.raw_ids) {
            let what =
                "say their own units, such as offset:512 and time:us; leave --block-bytes, --tick-ns and --raw-ids out";
            return Err(TraceError::usage("columns", what));
        }
        match (self.block_bytes, self.tick_ns) {
            (Some(0), _) => Err(TraceError::usage("block size 0", "is not at least 1 byte")),
            (_, Some(0)) => Err(TraceError::usage("tick 0", "is not at least 1 ns")),
            _ => Ok(()),
        }
    }
}
