//! One file per format, and the native one in a folder of its own.
//!
//! Each says what a line or record means (`LineFormat` of `text`, `BinaryFormat` of `binary`);
//! reading, checking and errors with their places are there. `open` calls [`reader`] once it knows
//! the format.

mod address;
mod arc;
mod bare;
pub(crate) mod biosnoop;
pub(crate) mod blkparse;
pub(crate) mod blktrace;
mod block_request;
mod columns;
pub(crate) mod drcachesim_view;
pub(crate) mod drmemtrace;
pub(crate) mod events;
pub(crate) mod io_tracer;
mod lackey;
mod lirs;
pub(crate) mod msr;
pub mod native;
pub(crate) mod oracle_general;
pub(crate) mod perf_trace;
pub(crate) mod pgtrace;
mod plain;
pub(crate) mod strace;
pub(crate) mod vscsi;

use crate::binary::BinarySource;
use crate::error::{ErrorKind, Place, TraceError};
use crate::format::Format;
use crate::input::Input;
use crate::options::OpenOptions;
use crate::record::RecordSource;
use crate::text::TextSource;
use crate::units;

/// The reader of a format over an input at its front.
pub(crate) fn reader(format: Format, input: Input, opts: &OpenOptions) -> Result<Box<dyn RecordSource>, TraceError> {
    opts.check_format(format)?;
    let source = of_format(format, input, opts)?;
    if opts.strict { units::strict(source) } else { Ok(source) }
}

fn of_format(format: Format, input: Input, opts: &OpenOptions) -> Result<Box<dyn RecordSource>, TraceError> {
    Ok(match format {
        Format::Native => native::from_input(input)?,
        Format::OracleGeneral => {
            let format = oracle_general::OracleGeneral::new(opts);
            binary(input, format)
        }
        Format::Vscsi => {
            let format = vscsi::Vscsi::new(&input, opts)?;
            binary(input, format)
        }
        Format::U32Le | Format::U32Be | Format::U64Le | Format::U64Be => {
            let format = bare::Bare::new(format, opts);
            binary(input, format)
        }
        Format::PgTrace => {
            let mut input = input;
            let format = pgtrace::PgTrace::new(&mut input)?;
            binary(input, format)
        }
        Format::Msr => text(input, msr::Msr::new(opts)),
        Format::Plain => text(input, plain::Plain::new(opts)),
        Format::Arc => text(input, arc::Arc::new(opts)),
        Format::Lirs => text(input, lirs::Lirs::new(opts)),
        Format::Lackey => text(input, lackey::Lackey::new(opts)),
        Format::Address => text(input, address::Address::new(opts)),
        Format::Drmemtrace => binary(input, drmemtrace::Drmemtrace::new(opts)),
        Format::Columns => match opts.columns.clone() {
            Some(columns) => text(input, columns::ColumnLines::new(columns, opts)),
            None => return Err(TraceError::usage("format columns", "needs its columns: columns:time:us,offset:bytes")),
        },
        Format::Blkparse => {
            let format = blkparse::Blkparse::new(input.head(), opts);
            text(input, format)
        }
        Format::Events => {
            let format = events::Events::new(input.head(), opts);
            text(input, format)
        }
        Format::Blktrace => Box::new(blktrace::Blktrace::new(input, opts)),
        Format::Biosnoop => text(input, biosnoop::Biosnoop::new(opts)),
        Format::DrcachesimView => text(input, drcachesim_view::DrcachesimView::new(opts)),
        Format::IoTracer => text(input, io_tracer::IoTracer::new(opts)),
        Format::PerfTrace => text(input, perf_trace::PerfTrace::new(opts)),
        Format::Strace => text(input, strace::Strace::new(opts)),
        Format::Generated => {
            let what = format!("format {format} cannot be read from a file");
            return Err(TraceError::new(ErrorKind::Unsupported, input.name(), Place::Whole, what));
        }
    })
}

fn binary<F: crate::binary::BinaryFormat + 'static>(input: Input, format: F) -> Box<dyn RecordSource> {
    Box::new(BinarySource::new(input, format))
}

fn text<F: crate::text::LineFormat + 'static>(input: Input, format: F) -> Box<dyn RecordSource> {
    Box::new(TextSource::new(input, format))
}
