//! Assembled recordings, replayed as `refault verify` does: cold and warm, in limits that are too
//! small, just enough, and none.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refault::recording::{LoadedRecording, Settings, run};
use refault_fuzz::assembled;
use refault_trace::{
    DirectIo, Format, Header, ObjectInfo, ObjectKind, Record, RecordKind, RecordSource, Recording, Series, Snapshot,
    TraceError,
};

/// Records with a header, delivered at once.
struct Source {
    header: Header,
    records: Vec<Record>,
}

impl RecordSource for Source {
    fn name(&self) -> &str {
        "fuzz"
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn next_chunk(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
        *out = std::mem::take(&mut self.records);
        Ok(!out.is_empty())
    }
}

/// Replays a recording on a machine with so many pages, or with what it says of its own.
fn replay(source: &mut Source, memory_pages: Option<u64>) -> Result<(), refault::Failure> {
    let loaded = LoadedRecording::read(source)?;
    let mut settings = Settings::of(&loaded.recording, None, None, false);
    settings.memory_pages = memory_pages.or(settings.memory_pages);
    Ok(run(&loaded, &settings).map(drop)?)
}

/// Pages of a file that is not taken: what exists of a file takes memory in a replay.
const MOST_PAGES: u64 = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let Some((&[flags, size], events)) = bytes.split_first_chunk::<2>() else { return };
    let (mut records, objects) = assembled::records(events);
    records.retain(|record| record.page + u64::from(record.pages) < MOST_PAGES && record.pages < 1 << 12);
    if flags & 1 == 1 {
        let looked = |record: &Record| Record { time_ns: 0, kind: RecordKind::Resident, ..*record };
        let seen: Vec<_> = records.iter().take(3).map(looked).collect();
        records.splice(0..0, seen);
    }
    let mut header = Header::new(Format::Native);
    header.objects = (0..objects)
        .map(|at| ObjectInfo {
            pages: (flags & 2 == 0).then_some(u64::from(size)),
            first_pages: (flags & 4 == 0).then_some(u64::from(at)),
            folio_order: flags >> 5,
            shmem: flags & 8 == 8 && at == 1,
            direct: Some(DirectIo::default()),
            ..ObjectInfo::new(format!("/{at}"), ObjectKind::File)
        })
        .collect();
    let usage = u64::from(size) << 12;
    let names = ["usage", "file", "shmem", "active_file"].map(str::to_owned).to_vec();
    let snapshot =
        |time_ns: u64, part: u64| Snapshot { time_ns, values: vec![usage, usage / part, 0, usage / part / 2] };
    header.recording = Some(Recording {
        group: (flags & 16 == 16).then(|| "/g".to_owned()),
        attached: Some(flags & 1 == 1),
        memory_max: Some(u64::from(size) << 14),
        lru_gen: flags & 32 == 32,
        cgroup_version: Some(1 + (flags >> 6 & 1)),
        series: Series { names, snapshots: vec![snapshot(0, 2), snapshot(1 << 20, 4)] },
        ..Recording::default()
    });
    for memory_pages in [None, Some(u64::from(size)), Some(4096)] {
        let mut source = Source { header: header.clone(), records: records.clone() };
        if let Err(error) = replay(&mut source, memory_pages) {
            assert_eq!(error.to_string().lines().count(), 1, "{error}");
        }
    }
});
