//! One file per format, and the native one in a folder of its own.
//!
//! Each says what a line or record means (`LineFormat` of `text`, `BinaryFormat` of `binary`);
//! reading, checking and errors with their places are there. `open` calls [`reader`] once it knows
//! the format.

mod address;
mod arc;
mod bare;
pub(crate) mod drmemtrace;
mod lackey;
mod lirs;
mod msr;
pub mod native;
pub(crate) mod oracle_general;
pub(crate) mod pgtrace;
mod plain;
pub(crate) mod vscsi;

use crate::binary::BinarySource;
use crate::error::{ErrorKind, Place, TraceError};
use crate::format::Format;
use crate::input::Input;
use crate::options::OpenOptions;
use crate::record::RecordSource;
use crate::text::TextSource;

/// The reader of a format over an input at its front.
pub(crate) fn reader(format: Format, input: Input, opts: &OpenOptions) -> Result<Box<dyn RecordSource>, TraceError> {
    let source = of_format(format, input, opts)?;
    match &source.header().doubt {
        Some(doubt) if opts.strict => {
            Err(TraceError::new(ErrorKind::Unsupported, source.name(), Place::Whole, format!("--strict: {doubt}")))
        }
        _ => Ok(source),
    }
}

fn of_format(format: Format, input: Input, opts: &OpenOptions) -> Result<Box<dyn RecordSource>, TraceError> {
    Ok(match format {
        Format::Native => native::from_input(input)?,
        Format::OracleGeneral => {
            let format = oracle_general::OracleGeneral::new(&input, opts);
            binary(input, format)
        }
        Format::Vscsi => {
            let format = vscsi::Vscsi::new(&input, opts)?;
            binary(input, format)
        }
        Format::U32Le | Format::U32Be | Format::U64Le | Format::U64Be => {
            let format = bare::Bare::new(format, &input, opts);
            binary(input, format)
        }
        Format::PgTrace => {
            let mut input = input;
            let format = pgtrace::PgTrace::new(&mut input)?;
            binary(input, format)
        }
        Format::Msr => text(input, |_| msr::Msr::new(opts)),
        Format::Plain => text(input, |input| plain::Plain::new(input, opts)),
        Format::Arc => text(input, |input| arc::Arc::new(input, opts)),
        Format::Lirs => text(input, |input| lirs::Lirs::new(input, opts)),
        Format::Lackey => text(input, |_| lackey::Lackey::new(opts)),
        Format::Address => text(input, |_| address::Address::new(opts)),
        Format::Drmemtrace => binary(input, drmemtrace::Drmemtrace::new(opts)),
        Format::Generated => {
            let what = format!("format {format} cannot be read from a file");
            return Err(TraceError::new(ErrorKind::Unsupported, input.name(), Place::Whole, what));
        }
    })
}

fn binary<F: crate::binary::BinaryFormat + 'static>(input: Input, format: F) -> Box<dyn RecordSource> {
    Box::new(BinarySource::new(input, format))
}

fn text<F: crate::text::LineFormat + 'static>(input: Input, of: impl Fn(&Input) -> F) -> Box<dyn RecordSource> {
    let format = of(&input);
    Box::new(TextSource::new(input, format))
}
