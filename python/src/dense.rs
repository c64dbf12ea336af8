//! A trace in memory as records again.

use refault::loaded::LoadedTrace;
use refault_trace::{Format, Header, ObjectInfo, Op, Record, RecordSource, TraceError};
use std::sync::Arc;

/// A trace in memory, and what a replay has no use for.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) loaded: LoadedTrace,
    pub(crate) time_ns: Option<Vec<u64>>,
    pub(crate) task: Option<Vec<u32>>,
    /// Whether its source said how pages are touched.
    pub(crate) says_via: bool,
}

/// Reads a trace in memory from front to back.
pub(crate) struct DenseSource {
    memory: Arc<Memory>,
    header: Header,
    at: usize,
}

/// Records of a chunk.
const CHUNK: usize = 1 << 13;

impl DenseSource {
    pub(crate) fn new(memory: Arc<Memory>) -> DenseSource {
        let LoadedTrace { trace, page_size, .. } = &memory.loaded;
        let objects = trace.objects.iter().map(|object| ObjectInfo::new(&*object.name, object.kind)).collect();
        let records_hint = Some(trace.accesses.len() as u64);
        let header = Header { page_size: *page_size, objects, records_hint, ..Header::new(Format::Generated) };
        DenseSource { memory, header, at: 0 }
    }
}

impl RecordSource for DenseSource {
    fn name(&self) -> &str {
        &self.memory.loaded.trace.name
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn next_chunk(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
        out.clear();
        let Memory { loaded: LoadedTrace { trace, .. }, time_ns, task, says_via } = &*self.memory;
        let end = (self.at + CHUNK).min(trace.accesses.len());
        for at in self.at..end {
            let access = trace.accesses[at];
            let object = trace.object_of(access.page());
            let of = &trace.objects[object];
            let page = of.indices[(access.page() - of.first_page) as usize];
            let op = Op { write: access.is_write(), via: says_via.then(|| access.via()) };
            let time_ns = time_ns.as_ref().map_or(0, |times| times[at]);
            let task = task.as_ref().map_or(0, |tasks| tasks[at]);
            out.push(Record { time_ns, task, object: object as u32, ..Record::touch(page, op) });
        }
        self.at = end;
        Ok(!out.is_empty())
    }
}
