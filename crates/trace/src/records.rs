//! Records in memory as a source, to be read several times.

use crate::error::TraceError;
use crate::record::{CHUNK, Header, Record, RecordSource};
use std::sync::Arc;

/// Records in memory. A clone begins where the original is, and shares them.
#[derive(Clone, Debug)]
pub struct Records {
    name: String,
    header: Header,
    records: Arc<Vec<Record>>,
    at: usize,
}

impl Records {
    /// Takes records; `name` is for messages.
    pub fn new(name: &str, header: Header, records: Vec<Record>) -> Records {
        Records { name: name.to_owned(), header, records: Arc::new(records), at: 0 }
    }

    /// Reads a source to its end.
    ///
    /// # Errors
    /// The source cannot be read.
    pub fn read(source: &mut dyn RecordSource) -> Result<Records, TraceError> {
        let (mut records, mut chunk) = (Vec::new(), Vec::with_capacity(CHUNK));
        while source.next_chunk(&mut chunk)? {
            records.extend_from_slice(&chunk);
        }
        Ok(Records::new(source.name(), source.header().clone(), records))
    }
}

impl RecordSource for Records {
    fn name(&self) -> &str {
        &self.name
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn next_chunk(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
        out.clear();
        let end = (self.at + CHUNK).min(self.records.len());
        out.extend_from_slice(&self.records[self.at..end]);
        self.at = end;
        Ok(!out.is_empty())
    }
}
