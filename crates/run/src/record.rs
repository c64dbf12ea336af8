//! `--record`: what was touched, as a trace.

use refault::words::counted;
use refault_cli::Failure;
use refault_pager::Policy;
use refault_pager::tree::TouchRecording;
use refault_trace::{Format, Header, NativeWriter, ObjectInfo, ObjectKind, Op, Record, RecordKind, TraceError, Via};
use serde::Serialize;
use std::collections::HashSet;
use std::path::Path;

/// Records that are handed on at a time.
const CHUNK: usize = 8192;

/// Starts the trace, so that a name that cannot be written is known before the program runs.
pub(crate) fn start(path: Option<&Path>) -> Result<Option<NativeWriter>, Failure> {
    // It says which addresses a program used, and when.
    Ok(path.map(NativeWriter::create_private).transpose()?)
}

/// The error of a record for which there was no room while the program ran.
pub(crate) fn cannot_be_written(path: Option<&Path>, e: &std::io::Error) -> Failure {
    let name = path.unwrap_or(Path::new("--record")).display().to_string();
    TraceError::io(name, "cannot be written", e).into()
}

/// Figures of a record, for comparison with a replay of it.
#[derive(Serialize)]
pub(crate) struct Recorded {
    /// Touches that were seen.
    pub accesses: u64,
    /// Share of them that found their page in place: all but first touches and pages that were read
    /// back.
    pub hit_rate: Option<f64>,
    /// Memory that pages had while there was reclaim, on average; null: none left memory.
    pub memory_bytes: Option<u64>,
}

impl Recorded {
    /// For people.
    pub(crate) fn line(&self, path: &Path, policy: Policy) -> String {
        let Some(hit_rate) = self.hit_rate else {
            let why = "the program stayed far enough below its limit that no touch had to be seen";
            return format!("refault: nothing was recorded, and {} is not written: {why}", path.display());
        };
        let how = match self.memory_bytes {
            Some(bytes) => {
                // Not a flag, whatever it begins with.
                let before = if path.as_os_str().as_encoded_bytes().starts_with(b"-") { "./" } else { "" };
                let path = quoted(&format!("{before}{}", path.display()));
                format!("refault replay {path} --policy {} --memory {}K", policy.name(), bytes >> 10)
            }
            None => "no page left memory".into(),
        };
        format!(
            "refault: recorded {}, {:.2} % of them hits; {how}",
            counted(self.accesses, "touch", "touches"),
            hit_rate * 100.0
        )
    }
}

/// As a word of a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./+,:=@%".contains(c);
    match word.chars().all(is_plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Writes what was touched. Each process is an object and a task. `read_back`: pages that had left
/// memory and came back.
pub(crate) fn write(
    mut writer: NativeWriter,
    recording: TouchRecording,
    read_back: u64,
    command: &str,
) -> Result<Recorded, Failure> {
    let memory_bytes = recording.in_place_pages.map(|pages| pages * 4096);
    let (mut accesses, mut pages) = (0, HashSet::new());
    let mut header = Header::new(Format::Native);
    for i in 0..recording.processes {
        header.objects.push(ObjectInfo::new(format!("process {i}"), ObjectKind::Anon));
        header.tasks.push(format!("process {i}"));
    }
    header.source = Some(format!("refault run: faults, pages found in place and pages found written of: {command}"));
    header.recorded_on =
        std::fs::read_to_string("/proc/sys/kernel/osrelease").ok().map(|r| format!("Linux {}", r.trim()));
    let mut chunk = Vec::with_capacity(CHUNK);
    for touched in recording.touches() {
        let t = touched.map_err(|e| format!("--record: cannot be read back: {e}"))?;
        accesses += 1;
        pages.insert((t.process, t.page));
        chunk.push(Record {
            time_ns: t.time_ns,
            page: t.page,
            task: t.process,
            memcg: 0,
            object: t.process,
            pages: 1,
            op: Op { write: t.write, via: Some(Via::Map) },
            kind: RecordKind::Touch,
        });
        if chunk.len() == CHUNK {
            writer.write(&chunk)?;
            chunk.clear();
        }
    }
    writer.write(&chunk)?;
    if accesses > 0 {
        writer.finish(&header)?;
    }
    // A run without a touch missed nothing; pages that were read ahead and never touched are among
    // those that came back.
    let missed = accesses.min(pages.len() as u64 + read_back);
    let hit_rate = (accesses > 0).then(|| 1.0 - missed as f64 / accesses as f64);
    Ok(Recorded { accesses, hit_rate, memory_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_replay_that_is_named_is_a_command_with_the_policy_of_the_run() {
        let r = Recorded { accesses: 10, hit_rate: Some(0.5), memory_bytes: Some(3 << 20) };
        let line = r.line(Path::new("my 'own' trace.parquet"), Policy::Lru);
        assert!(
            line.ends_with(r"; refault replay 'my '\''own'\'' trace.parquet' --policy lru --memory 3072K"),
            "{line}"
        );
        assert!(r.line(Path::new("-t.parquet"), Policy::Mglru).contains(" replay ./-t.parquet "));
        assert!(r.line(Path::new("t.parquet"), Policy::Mglru).contains(" replay t.parquet --policy mglru "));
    }
}
