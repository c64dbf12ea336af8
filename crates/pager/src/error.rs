//! Errors when memory is asked for, or something is asked of it.

use std::borrow::Cow;
use std::fmt;
use std::io;

/// Why it could not be done.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The configuration is impossible: what, and what to do.
    Config(String),
    /// This machine does not allow it: what is missing, and what to do.
    Unsupported(String),
    /// A limit cannot be met: what is in the way. It is as it was.
    Limit(String),
    /// There are no such bytes, or not whole pages where whole pages are needed.
    Range(String),
    /// A system call failed.
    Io {
        /// Action that was tried.
        what: Cow<'static, str>,
        /// The error.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { what: what.into(), source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Config(what) | Error::Unsupported(what) | Error::Limit(what) | Error::Range(what) => {
                f.write_str(what)
            }
            Error::Io { what, source } => write!(f, "{what}: {source}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
