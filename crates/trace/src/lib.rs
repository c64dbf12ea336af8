//! Page-access traces: one stream of [`Record`]s whatever the format, and the dense [`Trace`] that
//! a replay walks.
//!
//! - [`open`] finds out which format and compression a file has and reads it as a [`RecordSource`];
//! - [`Trace::load`] makes page ids dense, once, so that nobody hashes on a hit;
//! - [`PageNumbers::read`] numbers the pages of a trace larger than memory, to be read in pieces;
//! - [`Samples::load`] keeps the accesses of a few pages, chosen by hash;
//! - [`NativeWriter`] writes the native format (Parquet with zstd), all of it or nothing;
//! - [`generate`] makes workloads out of a seed.
//!
//! Every error is a [`TraceError`]: one line that names the file and the line, byte or row.

mod ahead;
mod atomic;
mod binary;
mod collapse;
mod column_text;
mod columns;
mod dense;
mod destination;
mod error;
mod foreign;
mod format;
mod formats;
pub mod generate;
mod guess;
mod input;
mod interner;
mod line_pattern;
mod marks;
mod memcg;
mod named;
mod names;
mod open;
mod options;
mod page_set;
mod pages;
mod record;
mod recording;
mod records;
mod sample;
mod samples;
mod seen;
mod shape;
mod space_sample;
mod stream;
mod summary;
mod tar;
mod text;
mod units;
mod unknown;
mod zip;

pub use ahead::ReadAhead;
pub use atomic::{AtomicFile, PartFile, WholeFile};
pub use collapse::Collapser;
pub use columns::Columns;
pub use dense::{LoadOptions, Object, PackedAccess, Trace};
pub use error::{ErrorKind, Place, TraceError};
pub use format::Format;
pub use formats::native::{NativeWriter, VERSION as NATIVE_VERSION};
pub use input::Input;
pub use memcg::{MAX_GROUPS, group_path};
pub use open::{open, open_input, read_header};
pub use options::OpenOptions;
pub use record::{
    AdviceKind, CHUNK, Collapse, DirectIo, Header, MAX_OBJECTS, MAX_PAGES_PER_RECORD, ObjectInfo, ObjectKind, Op,
    Record, RecordKind, RecordSource, Via,
};
pub use recording::{Recording, Series, Snapshot, TouchMethod, Touches};
pub use records::Records;
pub use sample::{Sample, SampleUnit};
pub use samples::Samples;
pub use seen::Seen;
pub use space_sample::SpaceSample;
pub use stream::{PageNumbers, Piece, Pieces};
pub use summary::{GroupSummary, KernelCounts, ObjectSummary, Summary, ViaCounts};
