//! Options of how a trace is read, shared by every subcommand that reads one.

use crate::flags::memory::MaxMemoryArgs;
use crate::say;
use clap::Args;
use refault_trace::{Format, Header, OpenOptions, Record, RecordSource, TraceError};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// How to read traces
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Reading traces")]
pub struct InputArgs {
    /// Format of the trace [default: seen by content, then by name]: native, oracle-general, vscsi,
    /// msr, plain, arc, lirs, u32le, u32be, u64le, u64be, pgtrace, lackey, address or drmemtrace
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,

    /// oracle-general: take ids as pages as they are [default: fold 512-byte sectors into pages]
    #[arg(long)]
    raw_ids: bool,

    /// plain, lirs, arc and bare numbers: bytes a block, folded into pages [default: a block is a
    /// page]; oracle-general: bytes that an id counts [default: 512]
    #[arg(long, value_name = "BYTES")]
    block_bytes: Option<u32>,

    /// Bytes a page, for formats that give addresses or sectors [default: 4096]
    #[arg(long, value_name = "BYTES")]
    page_size: Option<u32>,

    /// lackey and drmemtrace: count instruction fetches as reads [default: skip them]
    #[arg(long)]
    instructions: bool,

    /// Refuse a trace whose numbers may be meant in another unit, instead of saying so
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    max_memory: MaxMemoryArgs,
}

impl InputArgs {
    /// Opens a trace; once it is read, what is to be known of it is said.
    pub(crate) fn open(&self, path: &Path) -> Result<Box<dyn RecordSource>, TraceError> {
        let source = refault_trace::open(path, &self.open_options())?;
        Ok(Box::new(Noted { source, path: path.to_owned(), is_read: false }))
    }

    /// The same for the library.
    pub fn open_options(&self) -> OpenOptions {
        OpenOptions {
            format: self.format,
            raw_ids: self.raw_ids,
            block_bytes: self.block_bytes,
            page_size: self.page_size.unwrap_or(4096),
            instructions: self.instructions,
            strict: self.strict,
        }
    }
}

/// A source of which something is said when it was read, and nothing when that failed: an error is
/// one line.
struct Noted {
    source: Box<dyn RecordSource>,
    path: PathBuf,
    is_read: bool,
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
            note(self.source.header(), &self.path);
        }
    }
}

/// Says how numbers were read that may be meant otherwise, and that nobody would see damage:
/// once, however often the trace is opened.
pub(crate) fn note(header: &Header, path: &Path) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let without = header.format == Format::Native && !header.has_checksums;
    let without =
        without.then_some("carries no checksums, so that damage is not seen; refault trace convert adds them");
    for what in header.doubt.as_deref().into_iter().chain(without) {
        let line = format!("note: {}: {what}", path.display());
        if SAID.lock().is_ok_and(|mut said| said.insert(line.clone())) {
            say(&line);
        }
    }
}
