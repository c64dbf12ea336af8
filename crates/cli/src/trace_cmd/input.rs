//! Options of how a trace is read, shared by every subcommand that reads one.

use crate::flags::memory::MaxMemoryArgs;
use crate::say;
use clap::Args;
use refault::words::printable;
use refault_lab::scenario::Scenario;
use refault_trace::{Header, OpenOptions, Record, RecordSource, TraceError};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// How to read traces
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Reading traces")]
pub struct InputArgs {
    /// Format of the trace [default: seen by content, then by name]: native, oracle-general, vscsi,
    /// msr, plain, arc, lirs, u32le, u32be, u64le, u64be, pgtrace, lackey, address, drmemtrace,
    /// blkparse, blktrace, biosnoop, strace, events, perf-trace, drcachesim-view, io-tracer,
    /// columns:FIELDS such as columns:time:us,object,op=R|W,offset:bytes,size:bytes, or the name of
    /// columns (alibaba, tencent, systor, spc, twitter, meta-kv, ...: docs/reference/formats.md)
    #[arg(long, value_name = "FORMAT", value_parser = format_of)]
    format: Option<OpenOptions>,

    /// columns: what is between fields, one character, tab or space (any number of blanks), or
    /// regex:EXPRESSION, whose groups they are [default: a comma, or that of the named columns]
    #[arg(long, value_name = "CHARACTER", requires = "format")]
    separator: Option<String>,

    /// columns: lines at the front that are passed over [default: 0, and a line of names]
    #[arg(long, value_name = "N", requires = "format")]
    skip_lines: Option<u64>,

    /// oracle-general: take ids as pages as they are [default: fold 512-byte sectors into pages]
    #[arg(long)]
    raw_ids: bool,

    /// Bytes that a number counts, folded into pages [default: of plain, lirs, arc and bare numbers
    /// a page, of ids and sectors 512, of offsets, sizes and addresses 1]
    #[arg(long, value_name = "BYTES")]
    block_bytes: Option<u32>,

    /// Nanoseconds that a time counts [default: of msr 100, of vscsi 1000, of oracle-general a
    /// second]
    #[arg(long, value_name = "NS")]
    tick_ns: Option<u64>,

    /// Bytes a page, for formats that give addresses or sectors [default: 4096]
    #[arg(long, value_name = "BYTES")]
    page_size: Option<u32>,

    /// lackey, drmemtrace and drcachesim-view: count instruction fetches as reads [default: skip
    /// them]
    #[arg(long)]
    instructions: bool,

    /// Refuse a trace whose numbers may be meant in another unit, instead of saying so
    #[arg(long)]
    strict: bool,

    /// Notes on the traces that were opened.
    #[arg(skip)]
    notes: Notes,

    #[command(flatten)]
    max_memory: MaxMemoryArgs,
}

/// Notes on traces, each with the trace it is of, once however often that is opened.
type Notes = Arc<Mutex<BTreeSet<(String, String)>>>;

impl InputArgs {
    /// Opens a trace; once it is read, what is to be known of it is said.
    pub(crate) fn open(&self, path: &Path) -> Result<Box<dyn RecordSource>, TraceError> {
        let source = refault_trace::open(path, &self.open_options()?)?;
        Ok(Box::new(Noted { source, path: path.to_owned(), is_read: false, notes: self.notes.clone() }))
    }

    /// Says what is to be known of the traces that a scenario has, which have no flags: their front
    /// is read once more.
    pub(crate) fn note_traces(&self, scenario: &Scenario) {
        let paths: BTreeSet<_> = scenario.tasks.iter().filter_map(|task| Some(&task.trace.as_ref()?.path)).collect();
        for path in paths {
            // An error in one is told where it runs.
            let Ok(header) = refault_trace::read_header(path, &OpenOptions::default()) else { continue };
            keep(&self.notes, &header, path);
        }
    }

    /// Notes on the traces that have been read, as JSON has them.
    pub(crate) fn notes(&self) -> Vec<String> {
        let notes = self.notes.lock().map(|notes| notes.clone()).unwrap_or_default();
        notes.into_iter().map(|(path, what)| format!("{path}: {what}")).collect()
    }

    /// The same for the library.
    pub fn open_options(&self) -> Result<OpenOptions, TraceError> {
        let given = self.format.clone().unwrap_or_default();
        if given.columns.is_none() && (self.separator.is_some() || self.skip_lines.is_some()) {
            let what = "is for --format columns:FIELDS, or the name of columns";
            let flag = if self.separator.is_some() { "--separator" } else { "--skip-lines" };
            return Err(TraceError::usage(flag, what));
        }
        let columns = given.columns.map(|c| c.with(self.separator.as_deref(), self.skip_lines)).transpose()?;
        Ok(OpenOptions {
            format: given.format,
            columns,
            raw_ids: self.raw_ids,
            block_bytes: self.block_bytes,
            tick_ns: self.tick_ns,
            page_size: self.page_size.unwrap_or(4096),
            instructions: self.instructions,
            strict: self.strict,
        })
    }
}

/// The format by what the flag says.
fn format_of(text: &str) -> Result<OpenOptions, TraceError> {
    let mut options = OpenOptions::default();
    options.set_format(text).map(|()| options)
}

/// A source of which something is said when it was read, and nothing when that failed: an error is
/// one line.
struct Noted {
    source: Box<dyn RecordSource>,
    path: PathBuf,
    is_read: bool,
    notes: Notes,
}

impl RecordSource for Noted {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn header(&self) -> &Header {
        self.source.header()
    }

    fn next_chunk(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
        let more = self.source.next_chunk(out);
        self.is_read = more.is_ok();
        more
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        if self.is_read {
            keep(&self.notes, self.source.header(), &self.path);
        }
    }
}

/// Says what is to be known of a trace, and keeps it for JSON.
fn keep(notes: &Notes, header: &Header, path: &Path) {
    let name = printable(&path.display().to_string());
    if let Ok(mut notes) = notes.lock() {
        notes.extend(header.notes().into_iter().map(|what| (name.clone(), what)));
    }
    note(header, path);
}

/// Says how numbers were read that may be meant otherwise, and that nobody would see damage:
/// once, however often the trace is opened.
pub(crate) fn note(header: &Header, path: &Path) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    for what in header.notes() {
        let line = format!("note: {}: {what}", printable(&path.display().to_string()));
        if SAID.lock().is_ok_and(|mut said| said.insert(line.clone())) {
            say(&line);
        }
    }
}
