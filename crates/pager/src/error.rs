//! What can go wrong when a region is made.

use std::fmt;
use std::io;

/// Why there is no region.
#[derive(Debug)]
pub enum Error {
    /// The configuration is impossible: what, and what to do.
    Config(String),
    /// This machine does not allow it: what is missing, and what to do.
    Unsupported(String),
    /// A system call failed.
    Io {
        /// What was tried.
        what: &'static str,
        /// The error.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { what, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Config(what) | Error::Unsupported(what) => f.write_str(what),
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
