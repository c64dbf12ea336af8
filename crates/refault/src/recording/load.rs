//! A recording in memory: its records and its files.

use super::by_address;
use super::calls::{self, CallPart};
use super::sampled;
use super::settings::{Settings, WarmUp};
use super::start::Start;
use refault_trace::{
    CHUNK, ObjectInfo, ObjectKind, Record, RecordKind, RecordSource, Recording, Series, Snapshot, TraceError, Via,
};
use std::collections::HashMap;

/// Files of no more pages than this are there as a whole; of larger ones what is near to what was
/// touched.
const WHOLE: u64 = 1 << 16;

/// Pages around a touch that readahead may bring in.
const NEAR: u64 = 2048;

/// Share of the bytes read of a file, from which on direct reads get a remark.
const CONSIDERABLE: f64 = 0.1;

/// A file of the recording.
#[derive(Clone, Debug, Default)]
pub struct File {
    /// Its pages that exist in a replay: ranges, ascending and apart, with the pages in front of
    /// each.
    ranges: Vec<(u64, u64, u64)>,
    /// Programs touched it; of others only the kernel said something.
    pub touched: bool,
}

/// A recording.
#[derive(Debug)]
pub struct LoadedRecording {
    /// How it was recorded.
    pub recording: Recording,
    /// The name of the file.
    pub name: String,
    /// Its objects.
    pub objects: Vec<ObjectInfo>,
    /// Files by object.
    pub files: Vec<File>,
    /// Its records, by time.
    pub records: Vec<Record>,
    /// Place of each record in its call that reads.
    pub(super) parts: Vec<CallPart>,
    /// Whether a record is of a stream that comes into a unit of a sample; empty: there is none.
    pub(super) streams: Vec<bool>,
    /// Touches of one page; of a sample, those in it.
    pub accesses: u64,
    /// The state of memory before the recording.
    pub start: Start,
    /// Touches of shared memory: the group is charged for it as for anonymous memory, and they are
    /// none of the accesses.
    pub shmem_touches: u64,
}

impl File {
    /// Pages that exist.
    pub fn indices(&self) -> impl Iterator<Item = u64> + '_ {
        self.ranges.iter().flat_map(|&(start, end, _)| start..end)
    }

    /// Index of a page among the pages that exist, if it is one.
    pub fn place(&self, page: u64) -> Option<u64> {
        let at = self.ranges.partition_point(|&(start, ..)| start <= page).checked_sub(1)?;
        let (start, end, before) = self.ranges[at];
        (page < end).then(|| before + page - start)
    }

    /// Indices of the pages of a range that exist: consecutive numbers.
    pub fn places(&self, pages: std::ops::Range<u64>) -> std::ops::Range<u64> {
        let before = |page: u64| {
            let at = self.ranges.partition_point(|&(start, ..)| start < page);
            at.checked_sub(1).map_or(0, |at| {
                let (start, end, before) = self.ranges[at];
                before + page.min(end) - start
            })
        };
        before(pages.start)..before(pages.end).max(before(pages.start))
    }

    fn new(mut near: Vec<(u64, u64)>, pages: Option<u64>, touched: bool) -> File {
        near.sort_unstable();
        let end = near.iter().map(|r| r.1).max().unwrap_or(0);
        let length = pages.unwrap_or(0).max(end);
        let mut ranges: Vec<(u64, u64, u64)> = Vec::new();
        if length <= WHOLE && end > 0 {
            near = vec![(0, length)];
        }
        for (start, stop) in near {
            // Beyond the end there is nothing to read ahead.
            let stop = if length > WHOLE { (stop + NEAR).min(length) } else { stop };
            match ranges.last_mut() {
                Some(last) if last.1 >= start => last.1 = last.1.max(stop),
                _ => ranges.push((start, stop, 0)),
            }
        }
        File::of_ranges(ranges, touched)
    }

    /// The same of a sample: nothing exists but its units.
    fn of_units(mut near: Vec<(u64, u64)>, pages: Option<u64>, unit: u64, touched: bool) -> File {
        near.sort_unstable();
        let end = near.iter().map(|r| r.1).max().unwrap_or(0).max(pages.unwrap_or(u64::MAX));
        let mut ranges: Vec<(u64, u64, u64)> = Vec::new();
        for (start, stop) in near {
            let (start, stop) = (start / unit * unit, stop.next_multiple_of(unit).min(end));
            match ranges.last_mut() {
                Some(last) if last.1 >= start => last.1 = last.1.max(stop),
                _ => ranges.push((start, stop, 0)),
            }
        }
        File::of_ranges(ranges, touched)
    }

    fn of_ranges(mut ranges: Vec<(u64, u64, u64)>, touched: bool) -> File {
        let mut before = 0;
        for range in &mut ranges {
            range.2 = before;
            before += range.1 - range.0;
        }
        File { ranges, touched }
    }
}

impl LoadedRecording {
    /// Reads it. A trace that is no recording is an error.
    pub fn read(source: &mut dyn RecordSource) -> Result<LoadedRecording, String> {
        let Some(recording) = source.header().recording.clone() else {
            return Err(format!("{}: is no recording of a kernel: refault record makes one", source.name()));
        };
        LoadedRecording::read_as(source, recording, &mut |_, _| {})
    }

    /// Reads the records of a machine; `change` sees all of it first.
    pub(super) fn read_as(
        source: &mut dyn RecordSource,
        mut recording: Recording,
        change: &mut dyn FnMut(&mut Recording, &mut [Record]),
    ) -> Result<LoadedRecording, String> {
        let name = source.name().to_owned();
        sampled::of_header(&name, recording.sample)?;
        let mut records = Vec::new();
        let mut chunk = Vec::with_capacity(CHUNK);
        let fail = |e: TraceError| e.to_string();
        while source.next_chunk(&mut chunk).map_err(fail)? {
            records.extend_from_slice(&chunk);
        }
        change(&mut recording, &mut records);
        // A text names its objects as it goes.
        let objects = source.header().objects.clone();
        let is_shmem = shmem_objects(&objects, &records);
        let shmem_touches = records.iter().filter(|r| r.kind.is_touch() && is_shmem[r.object as usize]);
        let shmem_touches = shmem_touches.map(|r| u64::from(r.pages)).sum();
        // Memory is there by its size, as the group was charged for it: anonymous, and shared.
        records.retain(|r| objects[r.object as usize].kind == ObjectKind::File && !is_shmem[r.object as usize]);
        let mut near: Vec<Vec<(u64, u64)>> = vec![Vec::new(); objects.len()];
        let mut touched = vec![false; objects.len()];
        let mut accesses = 0;
        for record in &records {
            let at = record.object as usize;
            let (start, end) = (record.page, record.page + u64::from(record.pages));
            if matches!(record.kind, RecordKind::Advise(_)) {
                continue;
            }
            match near[at].last_mut() {
                Some(last) if last.0 <= start && start <= last.1 => last.1 = last.1.max(end),
                _ => near[at].push((start, end)),
            }
            if record.kind.is_touch() {
                touched[at] = true;
                accesses += if record.kind == RecordKind::Sampled { 0 } else { u64::from(record.pages) };
            }
        }
        if accesses == 0 {
            return Err(format!("{name}: holds no access"));
        }
        let file = |((near, info), &touched): ((Vec<_>, &ObjectInfo), _)| match recording.sample {
            Some(sample) => File::of_units(near, info.pages, sample.unit_pages, touched),
            None => File::new(near, info.pages, touched),
        };
        let files: Vec<_> = near.into_iter().zip(&objects).zip(&touched).map(file).collect();
        by_address::page_out(&mut records);
        let start = Start::of(&recording, &records);
        let parts = calls::parts(&records);
        let streams = recording.sample.map_or_else(Vec::new, |sample| sampled::streams(&records, sample));
        Ok(LoadedRecording { recording, name, objects, files, records, parts, streams, accesses, start, shmem_touches })
    }
}

impl LoadedRecording {
    /// Nanoseconds that are compared.
    pub fn measured_ns(&self, warm_up: WarmUp) -> u64 {
        self.recording.duration_ns.saturating_sub(warm_up.end_ns(self))
    }

    /// Share of added pages, 0 to 1, that came in for programs that were not recorded; only files
    /// in use count.
    pub fn others_part(&self) -> f64 {
        let used = |record: &&Record| self.files[record.object as usize].touched;
        let pages = |kind: RecordKind| -> u64 {
            let of = self.records.iter().filter(used).filter(|record| record.kind == kind);
            of.map(|record| u64::from(record.pages)).sum()
        };
        let (own, others) = (pages(RecordKind::Add), pages(RecordKind::AddOther));
        others as f64 / (own + others).max(1) as f64
    }

    /// Remark on reads that bypass the page cache, where they are a considerable part of all reads
    /// of a file.
    pub fn direct_io_in_words(&self) -> Option<String> {
        let mut cached = vec![0u64; self.objects.len()];
        for record in self.records.iter().filter(|r| r.kind.is_touch() && !r.op.write) {
            cached[record.object as usize] += u64::from(record.pages) * 4096;
        }
        let direct = |(object, cached): (&ObjectInfo, u64)| {
            let direct = object.direct?;
            let share = direct.read_bytes as f64 / (direct.read_bytes + cached).max(1) as f64;
            (share >= CONSIDERABLE).then(|| (direct, share, object.name.clone()))
        };
        let all = self.objects.iter().zip(cached).filter_map(direct);
        let (direct, share, name) = all.max_by_key(|(direct, ..)| direct.read_bytes)?;
        Some(format!(
            "{} ({:.0} % of what is read of {name}) bypass the page cache: the limit does not matter for them; \
             the buffers of the program do",
            crate::words::counted(direct.reads, "read", "reads"),
            100.0 * share,
        ))
    }

    /// The largest window of readahead, in pages, of most accesses: files may be on several
    /// devices.
    pub fn read_ahead_pages(&self, settings: &Settings) -> u32 {
        let mut accesses: HashMap<u32, u64> = HashMap::new();
        for record in self.records.iter().filter(|record| record.kind.is_touch()) {
            let pages = settings.read_ahead_pages(&self.objects[record.object as usize]);
            *accesses.entry(pages).or_default() += u64::from(record.pages);
        }
        let most = accesses.into_iter().max_by_key(|&(pages, accesses)| (accesses, pages));
        most.map_or(settings.config.readahead.file_pages, |(pages, _)| pages)
    }

    /// Pages that programs touched, each once.
    pub fn footprint_pages(&self) -> u64 {
        self.distinct_pages(|record| record.kind.is_touch())
    }

    /// Pages of files that programs have mapped, of which a recording has no touch after the fault.
    pub fn mapped_pages(&self) -> u64 {
        self.distinct_pages(|record| record.kind.is_touch() && record.op.via == Some(Via::Map))
    }

    fn distinct_pages(&self, is_counted: impl Fn(&Record) -> bool) -> u64 {
        let mut touched: Vec<Vec<bool>> = self.files.iter().map(|file| vec![false; file.indices().count()]).collect();
        for record in self.records.iter().filter(|record| is_counted(record)) {
            let file = &self.files[record.object as usize];
            for page in record.page..record.page + u64::from(record.pages) {
                if let Some(place) = file.place(page) {
                    touched[record.object as usize][place as usize] = true;
                }
            }
        }
        touched.iter().flatten().filter(|&&touched| touched).count() as u64 * self.one_in()
    }

    /// The most that the group was charged for besides files.
    pub fn besides_files_pages(&self) -> u64 {
        let snapshots = self.recording.series.snapshots.iter();
        snapshots.filter_map(|snapshot| self.besides_files_at(snapshot)).max().unwrap_or(0)
    }

    /// Pages that the group was charged for besides files. None: there is no group, or it is
    /// gone.
    pub fn besides_files_at(&self, snapshot: &Snapshot) -> Option<u64> {
        let series = &self.recording.series;
        let (usage, file) = series.column("usage").zip(series.column("file"))?;
        let values = Some(&snapshot.values).filter(|values| values.len() == series.names.len())?;
        let is_there = self.recording.group.is_some() && values[usage] > 0;
        // The kernel counts shared memory and tmpfs among files, but no file here has these pages.
        let files = values[file].saturating_sub(shmem(series, values).unwrap_or(0));
        is_there.then(|| values[usage].saturating_sub(files) / 4096)
    }
}

/// Bytes of shared memory and tmpfs in a snapshot. Recordings that do not have the counter have the
/// lists of anonymous memory, which hold it, too.
pub(super) fn shmem(series: &Series, values: &[u64]) -> Option<u64> {
    let value = |name| series.column(name).map(|column| values[column]);
    value("shmem").or_else(|| Some((value("inactive_anon")? + value("active_anon")?).saturating_sub(value("anon")?)))
}

/// How the kernel names shared memory in a list of mappings: anonymous, of System V, of `memfd`,
/// and files of `/dev/shm`.
const SHMEM_NAMES: [&str; 4] = ["/dev/zero (deleted)", "/SYSV", "/memfd:", "/dev/shm/"];

/// Objects that are shared memory, by number. Older recordings do not say: there its name tells,
/// or it is what the kernel keeps in an internal file that is only ever mapped (block devices, the
/// other internal files, are read).
fn shmem_objects(objects: &[ObjectInfo], records: &[Record]) -> Vec<bool> {
    let mut mapped_only: Vec<_> = objects.iter().map(|o| o.name.starts_with("internal file ")).collect();
    let mut touched = vec![false; objects.len()];
    for record in records.iter().filter(|record| !matches!(record.kind, RecordKind::Advise(_))) {
        let at = record.object as usize;
        touched[at] |= record.kind.is_touch();
        mapped_only[at] &= record.kind.is_touch() && record.op.via == Some(Via::Map);
    }
    let by_name = |object: &ObjectInfo| SHMEM_NAMES.iter().any(|name| object.name.starts_with(name));
    let is_shmem =
        |(at, object): (usize, &ObjectInfo)| object.shmem || by_name(object) || mapped_only[at] && touched[at];
    objects.iter().enumerate().map(is_shmem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use refault_trace::Op;

    #[test]
    fn pages_of_a_file_are_numbered() {
        let file = File::new(vec![(5, 7), (0, 1)], Some(10), true);
        assert_eq!(file.indices().collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
        assert_eq!((file.place(0), file.place(9), file.place(10)), (Some(0), Some(9), None));
        // Near pages alone of a large one.
        let file = File::new(vec![(5, 7), (1_000_000, 1_000_001)], Some(1_000_100), true);
        assert_eq!(file.indices().count() as u64, 2 + NEAR + 100);
        assert_eq!(file.place(1_000_000), Some(2 + NEAR));
        assert_eq!((file.place(4), file.place(500_000)), (None, None));
        let places = [0..5, 0..6, 5..7, 6..1_000_001, 0..u64::MAX, 9_000_000..9_000_001];
        let all = 2 + NEAR + 100;
        assert_eq!(places.map(|p| file.places(p)), [0..0, 0..1, 0..2, 1..3 + NEAR, 0..all, all..all]);
        assert_eq!(File::new(Vec::new(), Some(10), false).indices().count(), 0);
    }

    #[test]
    fn regression_shared_memory_is_no_file() {
        let object = |name: &str| ObjectInfo::new(name, ObjectKind::File);
        let marked = ObjectInfo { shmem: true, ..object("/dev/shm/x") };
        let objects = [
            object("/f"),
            object("internal file 7 of 0:1"),
            object("internal file 9 of 7:0"),
            marked,
            object("/dev/zero (deleted)"),
        ];
        let touch = |object, via| Record {
            object,
            kind: RecordKind::Hit,
            ..Record::touch(0, Op { write: true, via: Some(via) })
        };
        let records =
            [touch(0, Via::Map), touch(1, Via::Map), touch(2, Via::Map), touch(2, Via::Fd), touch(3, Via::Map)];
        assert_eq!(shmem_objects(&objects, &records), [false, true, false, true, true]);
        let read_in = Record { object: 1, kind: RecordKind::Add, ..Record::touch(0, Op::READ) };
        assert_eq!(shmem_objects(&objects, &[touch(1, Via::Map), read_in]), [false, false, false, true, true]);
    }
}
