//! A source whose front is read before it is handed on.

use crate::error::TraceError;
use crate::record::{Header, Record, RecordSource};
use std::collections::VecDeque;

/// Reads another source ahead.
pub struct ReadAhead<S> {
    source: S,
    ahead: VecDeque<Vec<Record>>,
    failed: Option<TraceError>,
}

impl<S: RecordSource> ReadAhead<S> {
    /// A source of which nothing has been read.
    pub fn new(source: S) -> Self {
        Self { source, ahead: VecDeque::new(), failed: None }
    }

    /// Reads on for as long as more is wanted after a chunk; whether the end was reached. A broken
    /// place ends it too, and is an error where it is reached.
    pub fn look(&mut self, mut wants_more: impl FnMut(&[Record]) -> bool) -> bool {
        while self.failed.is_none() {
            let mut chunk = Vec::new();
            match self.source.next_chunk(&mut chunk) {
                Ok(true) => {}
                Ok(false) => return true,
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            }
            let is_enough = !wants_more(&chunk);
            self.ahead.push_back(chunk);
            if is_enough {
                break;
            }
        }
        false
    }
}

impl<S: RecordSource> RecordSource for ReadAhead<S> {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn header(&self) -> &Header {
        self.source.header()
    }

    fn next_chunk(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
        match (self.ahead.pop_front(), &self.failed) {
            (Some(chunk), _) => {
                *out = chunk;
                Ok(true)
            }
            (None, Some(error)) => {
                out.clear();
                Err(error.clone())
            }
            (None, None) => self.source.next_chunk(out),
        }
    }

    fn known_accesses(&self) -> Option<u64> {
        self.source.known_accesses()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ErrorKind, Place};
    use crate::format::Format;
    use crate::record::{ObjectKind, Op};

    /// Chunks of one record, and a broken place behind them.
    struct Broken(Header, u64);

    impl RecordSource for Broken {
        fn name(&self) -> &str {
            "broken"
        }

        fn header(&self) -> &Header {
            &self.0
        }

        fn next_chunk(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
            out.clear();
            if self.1 == 3 {
                return Err(TraceError::new(ErrorKind::Malformed, "broken", Place::Whole, "here"));
            }
            out.push(Record::touch(self.1, Op::READ));
            self.1 += 1;
            Ok(true)
        }
    }

    #[test]
    fn a_broken_place_is_reported_where_it_is_reached() {
        for looked in [1, 2, 9] {
            let header = Header::with_object(Format::Plain, "f", ObjectKind::File);
            let mut source = ReadAhead::new(Broken(header, 0));
            let mut seen = 0;
            let is_end = source.look(|chunk| {
                seen += chunk.len();
                seen < looked
            });
            assert!(!is_end && seen == looked.min(3));
            let mut chunk = Vec::new();
            for page in 0..3 {
                assert!(source.next_chunk(&mut chunk).expect("reads") && chunk[0].page == page);
            }
            assert!(source.next_chunk(&mut chunk).is_err() && chunk.is_empty());
        }
    }
}
