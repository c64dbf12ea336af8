//! Reads from disks: pages, and the requests that they come in.
//!
//! A request is a run of consecutive pages of one file that a task brings in with no access between
//! them. Reads of kernel and lab are counted by this rule, so that they can be compared; a device
//! may split a run, or join two.

use super::load::{File, LoadedRecording};
use crate::replay::DiskReads;
use crate::replay::machine::Observer;
use refault_mm::PageId;
use refault_trace::{ObjectInfo, Record, RecordKind, Via};
use std::collections::HashMap;
use std::ops::Range;

/// Bits of the minor in the kernel's number of a device.
const MINOR_BITS: u32 = 20;

/// From where pages of an object come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backing {
    File,
    /// A block device: metadata of the file system on it.
    Device,
    /// Shared memory: from nowhere.
    Memory,
}

impl Backing {
    fn of(info: &ObjectInfo, file: &File) -> Backing {
        // An internal file of a block device has the device's number; files of shared memory count
        // from 1.
        let number = info.name.strip_prefix("internal file ").and_then(|rest| rest.split(' ').next()?.parse().ok());
        let is_device = number.is_some_and(|number: u64| number >= 1 << MINOR_BITS) && !file.touched;
        // Recordings that do not mark shared memory name it.
        let is_named_shmem = ["/dev/zero", "/dev/shm/", "/memfd:", "/SYSV"].iter().any(|n| info.name.starts_with(n));
        match number {
            _ if info.shmem || is_named_shmem => Backing::Memory,
            Some(_) if is_device => Backing::Device,
            Some(_) => Backing::Memory,
            None => Backing::File,
        }
    }
}

/// Counts what is read by runs.
#[derive(Clone, Debug, Default)]
struct Runs {
    total: DiskReads,
    /// Object of the task's last run, and the page behind the run; by task.
    open: HashMap<u32, (u32, u64)>,
}

impl Runs {
    fn read(&mut self, task: u32, object: u32, backing: Backing, pages: Range<u64>) {
        let nr = pages.end.saturating_sub(pages.start);
        if nr == 0 || backing == Backing::Memory {
            return;
        }
        let before = self.open.insert(task, (object, pages.end));
        self.total.reads += u64::from(before != Some((object, pages.start)));
        self.total.read_pages += nr;
        if backing == Backing::Device {
            self.total.metadata_pages += nr;
        }
    }

    fn end_run(&mut self, task: u32) {
        self.open.remove(&task);
    }
}

/// Disk reads of the recorded kernel: pages that it added, without pages that a write filled and
/// pages that no file had yet.
#[derive(Debug)]
pub(super) struct KernelReads {
    runs: Runs,
    backing: Vec<Backing>,
    /// Object and pages that the task writes; by task.
    writes: HashMap<u32, (u32, Range<u64>)>,
}

impl KernelReads {
    pub(super) fn new(loaded: &LoadedRecording) -> KernelReads {
        KernelReads { runs: Runs::default(), backing: backing(loaded), writes: HashMap::new() }
    }

    /// Takes the next record; `length` is that of the file before it, in pages, where it is known.
    pub(super) fn take(&mut self, record: &Record, length: Option<u64>) {
        let pages = record.page..record.page.saturating_add(u64::from(record.pages));
        if record.kind == RecordKind::Add {
            return self.add(record, pages, length.unwrap_or(u64::MAX));
        }
        let is_access = record.kind.is_touch() && record.kind != RecordKind::Sampled;
        if !is_access && !matches!(record.kind, RecordKind::Advise(_)) {
            return;
        }
        self.runs.end_run(record.task);
        if is_access {
            self.writes.remove(&record.task);
        }
        if is_access && record.op.write && record.op.via != Some(Via::Map) {
            self.writes.insert(record.task, (record.object, pages));
        }
    }

    fn add(&mut self, record: &Record, pages: Range<u64>, length: u64) {
        let pages = pages.start.min(length)..pages.end.min(length);
        // A write comes before what it adds.
        let written = self.writes.get(&record.task).filter(|(object, _)| *object == record.object);
        let written = written.map_or(pages.end..pages.end, |(_, written)| written.clone());
        let backing = self.backing[record.object as usize];
        for read in [pages.start..pages.end.min(written.start), pages.start.max(written.end)..pages.end] {
            self.runs.read(record.task, record.object, backing, read);
        }
    }

    pub(super) fn total(&self) -> DiskReads {
        self.runs.total
    }
}

/// Reads of the engine for the records that it is given.
#[derive(Clone, Debug)]
pub(super) struct OfLab {
    runs: Runs,
    backing: Vec<Backing>,
    task: u32,
    object: u32,
    counts: bool,
}

impl OfLab {
    pub(super) fn new(loaded: &LoadedRecording) -> OfLab {
        OfLab { runs: Runs::default(), backing: backing(loaded), task: 0, object: 0, counts: false }
    }

    /// From now on it is for this record.
    pub(super) fn take(&mut self, record: &Record) {
        (self.task, self.object, self.counts) = (record.task, record.object, true);
        if record.kind != RecordKind::Add {
            self.runs.end_run(record.task);
        }
    }

    pub(super) fn total(&self) -> DiskReads {
        self.runs.total
    }
}

impl Observer for OfLab {
    fn freed(&mut self, _: PageId, _: u8) {}
    fn missed(&mut self, _: PageId) {}

    fn read(&mut self, page: PageId, order: u8) {
        // Pages in memory at the start were read before.
        if self.counts {
            let first = u64::from(page.0);
            let backing = self.backing[self.object as usize];
            self.runs.read(self.task, self.object, backing, first..first + (1 << order));
        }
    }
}

fn backing(loaded: &LoadedRecording) -> Vec<Backing> {
    loaded.objects.iter().zip(&loaded.files).map(|(info, file)| Backing::of(info, file)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use refault_trace::{ObjectKind, Op};

    fn record(kind: RecordKind, page: u64, pages: u32) -> Record {
        Record { kind, pages, ..Record::touch(page, Op { write: false, via: Some(Via::Fd) }) }
    }

    fn write(page: u64, pages: u32) -> Record {
        Record { op: Op { write: true, via: Some(Via::Fd) }, ..record(RecordKind::Miss, page, pages) }
    }

    fn kernel(backing: Backing) -> KernelReads {
        KernelReads { runs: Runs::default(), backing: vec![backing], writes: HashMap::new() }
    }

    #[test]
    fn runs_of_pages_are_requests() {
        let mut kernel = kernel(Backing::File);
        let miss = record(RecordKind::Miss, 0, 4);
        // Reclaim that comes between two pages does not end a run, nor does another task.
        let other = Record { task: 1, ..record(RecordKind::Add, 90, 2) };
        for record in [
            record(RecordKind::Add, 0, 4),
            record(RecordKind::Evict, 50, 1),
            other,
            record(RecordKind::Add, 4, 8),
            miss,
        ] {
            kernel.take(&record, None);
        }
        assert_eq!(kernel.total(), DiskReads { read_pages: 14, reads: 2, metadata_pages: 0 });
        // An access does, and a gap.
        for record in [record(RecordKind::Add, 12, 4), record(RecordKind::Add, 17, 1)] {
            kernel.take(&record, None);
        }
        assert_eq!(kernel.total(), DiskReads { read_pages: 19, reads: 4, metadata_pages: 0 });
    }

    #[test]
    fn what_is_written_or_not_there_yet_is_not_read() {
        let mut kernel = kernel(Backing::File);
        for record in [write(10, 4), record(RecordKind::Add, 10, 2), record(RecordKind::Add, 12, 4)] {
            kernel.take(&record, Some(15));
        }
        // Two pages lie behind the write; the second is beyond the end of the file.
        assert_eq!(kernel.total(), DiskReads { read_pages: 1, reads: 1, metadata_pages: 0 });
        // The next access is no write of these.
        for record in [record(RecordKind::Hit, 0, 1), record(RecordKind::Add, 10, 2)] {
            kernel.take(&record, Some(15));
        }
        assert_eq!(kernel.total(), DiskReads { read_pages: 3, reads: 2, metadata_pages: 0 });
    }

    #[test]
    fn memory_is_not_read_and_devices_are_metadata() {
        let counts = |backing| {
            let mut kernel = kernel(backing);
            kernel.take(&record(RecordKind::Add, 3, 2), None);
            kernel.total()
        };
        assert_eq!(counts(Backing::Memory), DiskReads::default());
        assert_eq!(counts(Backing::Device), DiskReads { read_pages: 2, reads: 1, metadata_pages: 2 });
        let [mut used, unused] = [File::default(), File::default()];
        used.touched = true;
        let of = |name: &str, file: &File| Backing::of(&ObjectInfo::new(name, ObjectKind::File), file);
        assert_eq!(of("internal file 7340032 of 0:3", &unused), Backing::Device);
        assert_eq!(of("internal file 1598 of 0:1", &used), Backing::Memory);
        assert_eq!(of("internal file 1598 of 0:1", &unused), Backing::Memory);
        assert_eq!(of("/dev/shm/x", &used), Backing::Memory);
        assert_eq!(of("/data/x", &unused), Backing::File);
    }
}
