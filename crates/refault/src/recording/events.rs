//! A trace of page cache events of another tool, as a recording: the kernel's hits and misses are
//! in it, its machine is not.

use super::LoadedRecording;
use crate::memory_size::Size;
use refault_mm::Policy;
use refault_trace::{Format, Record, RecordKind, RecordSource, Recording};
use std::collections::HashMap;

/// Whether a source has page cache events, and nothing of the machine.
pub fn has_cache_events(source: &dyn RecordSource) -> bool {
    source.header().recording.is_none() && source.header().format == Format::IoTracer
}

impl LoadedRecording {
    /// Reads page cache events of a machine, of whose page cache the size must be given: `verify`
    /// compares their hits and misses with the lab. Without a policy its kernel had multi-gen LRU.
    ///
    /// # Errors
    /// No size, a damaged file, or one without an access.
    pub fn of_cache_events(
        source: &mut dyn RecordSource,
        memory: Option<&Size>,
        policy: Option<Policy>,
    ) -> Result<LoadedRecording, String> {
        let memory = memory.filter(|size| !size.is_share() && !size.is_max()).ok_or_else(|| {
            let name = source.name();
            format!(
                "{name}: has page cache events of another tool, and no size: give --memory SIZE, what the page cache of \
                 that machine had, and --policy lru if it had no multi-gen LRU"
            )
        })?;
        let recording = Recording {
            target: format!("page cache events of {}", source.name()),
            kernel: "of unknown release".into(),
            memory_max: Some(memory.pages(4096, 0).saturating_mul(4096)),
            lru_gen: policy.is_none_or(|policy| policy == Policy::Mglru),
            ..Recording::default()
        };
        LoadedRecording::read_as(source, recording, &mut |recording, records| {
            tell_misses(records);
            recording.events = records.len() as u64;
            recording.duration_ns = records.last().map_or(0, |record| record.time_ns);
        })
    }
}

/// Tells additions and touches apart: in the events a page that is added is a miss, also by
/// readahead, and each touch is a hit. A read that finds nothing adds pages from its own on, and
/// then touches it: the first touch of a task in a file after it added pages is a miss if it is of
/// the first of them.
fn tell_misses(records: &mut [Record]) {
    // By task and object: the first page that was added since the last touch.
    let mut added: HashMap<(u32, u32), u64> = HashMap::new();
    for record in records {
        let key = (record.task, record.object);
        match record.kind {
            RecordKind::Miss => {
                record.kind = RecordKind::Add;
                added.entry(key).or_insert(record.page);
            }
            RecordKind::Hit | RecordKind::Touch => {
                let is_first = added.remove(&key).is_some_and(|first| first == record.page);
                record.kind = if is_first { RecordKind::Miss } else { RecordKind::Hit };
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refault_trace::Op;

    /// A read of page 5 that finds nothing and reads four pages ahead, a read of page 6, which
    /// readahead brought in, a read of page 7 that has pages 9 to 12 read ahead, and a write of a
    /// new page by another task.
    #[test]
    fn a_miss_is_a_touch_of_the_first_page_that_was_added() {
        use RecordKind::{Add, Hit, Miss, Touch};
        let events = [(1, 5, Miss), (1, 6, Miss), (1, 7, Miss), (1, 8, Miss), (1, 5, Hit), (1, 6, Hit)];
        let events =
            events.into_iter().chain([(1, 9, Miss), (1, 10, Miss), (1, 7, Hit), (2, 20, Miss), (2, 20, Touch)]);
        let mut records: Vec<Record> =
            events.map(|(task, page, kind)| Record { task, kind, ..Record::touch(page, Op::READ) }).collect();
        tell_misses(&mut records);
        let kinds: Vec<RecordKind> = records.iter().map(|record| record.kind).collect();
        assert_eq!(kinds, [Add, Add, Add, Add, Miss, Hit, Add, Add, Hit, Add, Miss]);
    }
}
