//! A recording that is read several times.

use crate::Failure;
use refault_trace::{CHUNK, Header, Record, RecordSource, TraceError};
use std::sync::Arc;

/// The records of a recording, to be read several times.
#[derive(Clone, Debug)]
pub struct Kept {
    name: String,
    header: Header,
    records: Arc<Vec<Record>>,
    at: usize,
}

impl Kept {
    /// Reads all records.
    ///
    /// # Errors
    /// The source cannot be read.
    pub fn read(mut source: Box<dyn RecordSource>) -> Result<Kept, Failure> {
        let (mut records, mut chunk) = (Vec::new(), Vec::with_capacity(CHUNK));
        while source.next_chunk(&mut chunk)? {
            records.extend_from_slice(&chunk);
        }
        let (name, header) = (source.name().to_owned(), source.header().clone());
        Ok(Kept { name, header, records: Arc::new(records), at: 0 })
    }
}

impl RecordSource for Kept {
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
