//! A recording in memory: its records, its files, and which pages were in memory when it began.

use super::by_address;
use refault_trace::{
    Act, CHUNK, ObjectInfo, ObjectKind, Record, RecordSource, Recording, Series, Snapshot, TraceError, Via,
};
use std::collections::HashSet;

/// Files of no more pages than this are there as a whole; of larger ones what is near to what was
/// touched.
const WHOLE: u64 = 1 << 16;

/// Pages around a touch that readahead may bring in.
const NEAR: u64 = 2048;

/// One file.
#[derive(Clone, Debug, Default)]
pub(crate) struct File {
    /// Its pages that exist in a replay: ranges, ascending and apart, with the pages in front of
    /// each.
    ranges: Vec<(u64, u64, u64)>,
    /// Programs touched it; of others only the kernel said something.
    pub(crate) touched: bool,
}

/// A recording.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) recording: Recording,
    pub(crate) name: String,
    pub(crate) objects: Vec<ObjectInfo>,
    pub(crate) files: Vec<File>,
    pub(crate) records: Vec<Record>,
    /// Pages that were in memory before the recording, in the order of their first touch.
    pub(crate) warm: Vec<(u32, u64)>,
    /// Touches of one page.
    pub(crate) accesses: u64,
}

impl File {
    /// Pages that exist.
    pub(crate) fn indices(&self) -> impl Iterator<Item = u64> + '_ {
        self.ranges.iter().flat_map(|&(start, end, _)| start..end)
    }

    /// The place of a page among those that exist.
    pub(crate) fn place(&self, page: u64) -> Option<u64> {
        let at = self.ranges.partition_point(|&(start, ..)| start <= page).checked_sub(1)?;
        let (start, end, before) = self.ranges[at];
        (page < end).then(|| before + page - start)
    }

    /// The places of those of these pages that exist: they follow one another.
    pub(crate) fn places(&self, pages: std::ops::Range<u64>) -> std::ops::Range<u64> {
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
        let mut before = 0;
        for range in &mut ranges {
            range.2 = before;
            before += range.1 - range.0;
        }
        File { ranges, touched }
    }
}

impl Loaded {
    /// Reads it. A trace that is no recording is an error.
    pub(crate) fn read(source: &mut dyn RecordSource) -> Result<Loaded, String> {
        let name = source.name().to_owned();
        let Some(recording) = source.header().recording.clone() else {
            return Err(format!("{name}: is no recording of a kernel: refault record makes one"));
        };
        let objects = source.header().objects.clone();
        let mut records = Vec::new();
        let mut chunk = Vec::with_capacity(CHUNK);
        let fail = |e: TraceError| e.to_string();
        while source.next_chunk(&mut chunk).map_err(fail)? {
            records.extend_from_slice(&chunk);
        }
        let mut near: Vec<Vec<(u64, u64)>> = vec![Vec::new(); objects.len()];
        let mut touched = vec![false; objects.len()];
        let mut accesses = 0;
        for record in &records {
            let at = record.object as usize;
            let (start, end) = (record.page, record.page + u64::from(record.pages));
            if matches!(record.act, Act::Advise(_)) || objects[at].kind == ObjectKind::Anon {
                continue;
            }
            match near[at].last_mut() {
                Some(last) if last.0 <= start && start <= last.1 => last.1 = last.1.max(end),
                _ => near[at].push((start, end)),
            }
            if record.act.is_touch() {
                touched[at] = true;
                accesses += if record.act == Act::Sampled { 0 } else { u64::from(record.pages) };
            }
        }
        if accesses == 0 {
            return Err(format!("{name}: holds no access"));
        }
        let files: Vec<_> = near
            .into_iter()
            .zip(&objects)
            .zip(&touched)
            .map(|((near, info), &touched)| File::new(near, info.pages, touched))
            .collect();
        // Anonymous memory is there by its size, as the group was charged for it.
        records.retain(|record| objects[record.object as usize].kind == ObjectKind::File);
        by_address::page_out(&mut records);
        let warm = warm(&records);
        Ok(Loaded { recording, name, objects, files, records, warm, accesses })
    }
}

impl Loaded {
    /// Pages that programs touched, each once.
    pub(crate) fn footprint_pages(&self) -> u64 {
        let mut touched: Vec<Vec<bool>> = self.files.iter().map(|file| vec![false; file.indices().count()]).collect();
        for record in self.records.iter().filter(|record| record.act.is_touch()) {
            let file = &self.files[record.object as usize];
            for page in record.page..record.page + u64::from(record.pages) {
                if let Some(place) = file.place(page) {
                    touched[record.object as usize][place as usize] = true;
                }
            }
        }
        touched.iter().flatten().filter(|&&touched| touched).count() as u64
    }

    /// The most that the group was charged for besides files.
    pub(crate) fn besides_files_pages(&self) -> u64 {
        let snapshots = self.recording.series.snapshots.iter();
        snapshots.filter_map(|snapshot| self.besides_files_at(snapshot)).max().unwrap_or(0)
    }

    /// What the group was charged for besides files, in pages. None: there is no group, or it is
    /// gone.
    pub(crate) fn besides_files_at(&self, snapshot: &Snapshot) -> Option<u64> {
        let series = &self.recording.series;
        let (usage, file) = series.column("usage").zip(series.column("file"))?;
        let values = Some(&snapshot.values).filter(|values| values.len() == series.names.len())?;
        let is_there = self.recording.group.is_some() && values[usage] > 0;
        // The kernel counts shared memory and tmpfs among files, but no file here has these pages.
        let files = values[file].saturating_sub(shmem(series, values).unwrap_or(0));
        is_there.then(|| values[usage].saturating_sub(files) / 4096)
    }

    /// Whether the group is charged for the pages that were in memory at the start: what it had in
    /// files then says so. A page belongs to the group that brought it in.
    pub(crate) fn is_warm_own(&self) -> bool {
        let series = &self.recording.series;
        let files = series.ends("file").filter(|_| self.recording.group.is_some());
        files.is_none_or(|(first, _)| first / 4096 >= self.warm.len() as u64 / 2)
    }
}

/// Bytes of shared memory and tmpfs in a snapshot. Recordings that do not have the counter have the
/// lists of anonymous memory, which hold it, too.
fn shmem(series: &Series, values: &[u64]) -> Option<u64> {
    let value = |name| series.column(name).map(|column| values[column]);
    value("shmem").or_else(|| Some((value("inactive_anon")? + value("active_anon")?).saturating_sub(value("anon")?)))
}

/// Pages whose first touch was a hit of the kernel, though it had not added them since the
/// recording began: they were in memory before.
fn warm(records: &[Record]) -> Vec<(u32, u64)> {
    let (mut seen, mut warm) = (HashSet::new(), Vec::new());
    // What programs say of pages says nothing of where these are.
    for record in records.iter().filter(|record| !matches!(record.act, Act::Advise(_))) {
        let pages = record.page..record.page + u64::from(record.pages);
        for (i, page) in pages.enumerate() {
            let is_new = seen.insert((record.object, page));
            // What a write adds, it adds after it began; of reads the pages come before.
            let in_place = match record.act {
                Act::Hit | Act::Sampled => true,
                Act::Miss => i > 0 && record.op.via == Some(Via::Fd) && !record.op.write,
                _ => false,
            };
            if is_new && in_place {
                warm.push((record.object, page));
            }
        }
    }
    warm
}

#[cfg(test)]
mod tests {
    use super::*;
    use refault_trace::{Advised, Op};

    #[test]
    fn pages_of_a_file_are_numbered() {
        let file = File::new(vec![(5, 7), (0, 1)], Some(10), true);
        assert_eq!(file.indices().collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
        assert_eq!((file.place(0), file.place(9), file.place(10)), (Some(0), Some(9), None));
        // Of a large one only what is near.
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
    fn regression_advice_on_pages_in_place_does_not_hide_them() {
        let record = |act, page, pages| Record { act, pages, ..Record::touch(page, Op::READ) };
        let records = [record(Act::Advise(Advised::MapExecutable), 0, 10), record(Act::Hit, 3, 1)];
        assert_eq!(warm(&records), [(0, 3)]);
    }

    #[test]
    fn what_was_in_place_is_warm() {
        let op = Op { write: false, via: Some(Via::Fd) };
        let record = |act, page, pages| Record { act, pages, ..Record::touch(page, op) };
        let records = [
            record(Act::Hit, 1, 2),
            record(Act::Add, 5, 2),
            record(Act::Miss, 5, 2),
            record(Act::Hit, 1, 1),
            record(Act::Hit, 6, 2),
        ];
        assert_eq!(warm(&records), [(0, 1), (0, 2), (0, 7)]);
    }
}
