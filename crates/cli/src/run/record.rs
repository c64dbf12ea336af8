//! `--record`: what was touched, as a trace.

use crate::Failure;
use refault_pager::tree::Recording;
use refault_trace::{Format, Header, NativeWriter, ObjectInfo, ObjectKind, Op, Record, Via};
use std::ffi::OsString;
use std::path::Path;

/// Records that are handed on at a time.
const CHUNK: usize = 8192;

/// Starts the trace, so that a name that cannot be written is known before the program runs.
pub(super) fn start(path: Option<&Path>) -> Result<Option<NativeWriter>, Failure> {
    Ok(path.map(NativeWriter::create).transpose()?)
}

/// Writes what was touched. Each process is an object and a task.
pub(super) fn write(mut writer: NativeWriter, recording: Recording, command: &[OsString]) -> Result<(), Failure> {
    let mut header = Header::new(Format::Native);
    for i in 0..recording.processes {
        header.objects.push(ObjectInfo::new(format!("process {i}"), ObjectKind::Anon));
        header.tasks.push(format!("process {i}"));
    }
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    header.source = Some(format!("refault run: faults and pages found in place of: {}", words.join(" ")));
    header.recorded_on =
        std::fs::read_to_string("/proc/sys/kernel/osrelease").ok().map(|r| format!("Linux {}", r.trim()));
    let mut chunk = Vec::with_capacity(CHUNK);
    for touched in recording.touches() {
        let t = touched.map_err(|e| format!("--record: reading back what was recorded: {e}"))?;
        chunk.push(Record {
            time_ns: t.time_ns,
            page: t.page,
            task: t.process,
            memcg: 0,
            object: t.process,
            pages: 1,
            op: Op { write: t.write, via: Some(Via::Map) },
        });
        if chunk.len() == CHUNK {
            writer.write(&chunk)?;
            chunk.clear();
        }
    }
    writer.write(&chunk)?;
    writer.finish(&header)?;
    Ok(())
}
