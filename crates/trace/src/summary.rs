//! Content of a trace, counted in one pass without keeping the accesses.

use crate::error::TraceError;
use crate::memcg::Groups;
use crate::open::{empty, stem};
use crate::page_set::PageSet;
use crate::record::{CHUNK, Collapse, Header, ObjectKind, Op, Record, RecordKind, RecordSource, Via};
use crate::recording::Recording;
use rustc_hash::FxHashSet;
use serde::Serialize;

/// The figures of `refault trace info`. Serialized, it is the documented JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The file name without suffixes.
    pub trace: String,
    /// The format it was read in.
    pub format: String,
    /// Whether what was read was checked against checksums of the file.
    pub checksums: bool,
    /// Bytes a page.
    pub page_size: u32,
    /// Touches of one page.
    pub accesses: u64,
    /// Records; each touches one page or several.
    pub records: u64,
    /// Distinct pages.
    pub distinct_pages: u64,
    /// Distinct pages in bytes.
    pub footprint_bytes: u64,
    /// Accesses that read.
    pub reads: u64,
    /// Accesses that write.
    pub writes: u64,
    /// Accesses by how pages are touched.
    pub via: ViaCounts,
    /// From the first to the last access, in nanoseconds; `None` when the trace has no time.
    pub time_span_ns: Option<u64>,
    /// Distinct tasks.
    pub tasks: u64,
    /// Distinct memory cgroups.
    pub memcgs: u64,
    /// Counts of the kernel, of a recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelCounts>,
    /// Facts that a recording of a kernel says of itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<Recording>,
    /// Accesses that were left out when the trace was converted.
    pub collapse: Option<Collapse>,
    /// Source that it was made from.
    pub source: Option<String>,
    /// Where it was recorded.
    pub recorded_on: Option<String>,
    /// Notes on it: numbers that may be meant in another unit, no checksums.
    pub notes: Vec<String>,
    /// The memory cgroups in the order of the alphabet; none if the trace does not name any and has
    /// one at most.
    pub groups: Vec<GroupSummary>,
    /// The objects, in the order of the trace.
    pub objects: Vec<ObjectSummary>,
}

/// Accesses by how they touch pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ViaCounts {
    /// Accesses by descriptor.
    pub fd: u64,
    /// Accesses by mapping.
    pub map: u64,
    /// Accesses of which the trace does not say.
    pub unspecified: u64,
}

/// Counts of the recorded kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KernelCounts {
    /// Accesses whose page the kernel had in memory.
    pub hits: u64,
    /// Accesses that had to wait for a read that they caused.
    pub misses: u64,
    /// Pages that were found touched in place, by sampling: neither of these.
    #[serde(skip_serializing_if = "is_zero")]
    pub sampled: u64,
    /// Pages that it added to the page cache.
    pub added: u64,
    /// Pages that reclaim took from the page cache.
    pub evicted: u64,
    /// Pages that left the page cache otherwise: truncation, deletion, `drop_caches`.
    pub dropped: u64,
}

/// One memory cgroup of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupSummary {
    /// Its path.
    pub path: String,
    /// Distinct pages that it touched first, and so is charged for.
    pub pages: u64,
    /// Accesses of its tasks.
    pub accesses: u64,
}

/// One object of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ObjectSummary {
    /// Its name.
    pub name: String,
    /// Backing of the object.
    pub kind: ObjectKind,
    /// Its distinct pages.
    pub pages: u64,
    /// Accesses to it.
    pub accesses: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl KernelCounts {
    fn add(&mut self, record: &Record) {
        let pages = u64::from(record.pages);
        match record.kind {
            RecordKind::Touch | RecordKind::Advise(_) | RecordKind::Resident => {}
            RecordKind::Hit => self.hits += pages,
            RecordKind::Sampled => self.sampled += pages,
            RecordKind::Miss => {
                self.misses += 1;
                self.hits += pages - 1;
            }
            RecordKind::Drop => self.dropped += pages,
            RecordKind::Add | RecordKind::AddOther => self.added += pages,
            RecordKind::Evict => self.evicted += pages,
        }
    }
}

impl Summary {
    /// Reads a source to its end. An empty trace is an error.
    pub fn of(source: &mut dyn RecordSource) -> Result<Self, TraceError> {
        let mut counts = Counts::default();
        let mut chunk = Vec::with_capacity(CHUNK);
        while source.next_chunk(&mut chunk)? {
            for record in &chunk {
                counts.add(&*source, record)?;
            }
        }
        if counts.records == 0 {
            return Err(empty(source.name(), source.header().passed_over.as_deref()));
        }
        Ok(counts.summary(source))
    }
}

#[derive(Default)]
struct Counts {
    records: u64,
    reads: u64,
    writes: u64,
    via: ViaCounts,
    kernel: KernelCounts,
    times: Option<(u64, u64)>,
    tasks: FxHashSet<u32>,
    groups: Groups,
    /// Pages touched first, and accesses; by group.
    of_group: Vec<(u64, u64)>,
    objects: Vec<(PageSet, u64)>,
}

impl Counts {
    fn add(&mut self, source: &dyn RecordSource, record: &Record) -> Result<(), TraceError> {
        let accesses = u64::from(record.pages);
        // Anonymous and shared memory are no page cache.
        let info = source.header().objects.get(record.object as usize);
        if record.kind == RecordKind::Sampled || info.is_none_or(|info| info.kind == ObjectKind::File && !info.shmem) {
            self.kernel.add(record);
        }
        if !record.kind.is_touch() {
            return Ok(());
        }
        self.records += 1;
        let Op { write, via } = record.op;
        *(if write { &mut self.writes } else { &mut self.reads }) += accesses;
        *(match via {
            Some(Via::Fd) => &mut self.via.fd,
            Some(Via::Map) => &mut self.via.map,
            None => &mut self.via.unspecified,
        }) += accesses;
        let (first, last) = self.times.get_or_insert((record.time_ns, record.time_ns));
        *first = record.time_ns.min(*first);
        *last = record.time_ns.max(*last);
        self.tasks.insert(record.task);
        let object = record.object as usize;
        if self.objects.len() <= object {
            self.objects.resize_with(object + 1, Default::default);
        }
        let (pages, touched) = &mut self.objects[object];
        *touched += accesses;
        let new = pages.add(record.page, record.pages);
        let group = self.groups.number(source.name(), &source.header().memcgs, record.memcg)?;
        self.of_group.resize(self.groups.paths.len(), (0, 0));
        let of_group = &mut self.of_group[usize::from(group)];
        *of_group = (of_group.0 + new, of_group.1 + accesses);
        Ok(())
    }

    fn groups(&mut self, header: &Header) -> Vec<GroupSummary> {
        if header.memcgs.is_empty() && self.of_group.len() < 2 {
            return Vec::new();
        }
        let paths = std::mem::take(&mut self.groups.paths);
        let both = paths.into_iter().zip(&self.of_group);
        let mut groups: Vec<_> =
            both.map(|(path, &(pages, accesses))| GroupSummary { path, pages, accesses }).collect();
        groups.sort_by(|a, b| a.path.cmp(&b.path));
        groups
    }

    fn summary(mut self, source: &dyn RecordSource) -> Summary {
        let header = source.header();
        let groups = self.groups(header);
        self.objects.resize_with(header.objects.len(), Default::default);
        let objects: Vec<_> = header
            .objects
            .iter()
            .zip(self.objects)
            .map(|(info, (pages, accesses))| ObjectSummary {
                name: info.name.clone(),
                kind: info.kind,
                pages: pages.len(),
                accesses,
            })
            .collect();
        let distinct_pages = objects.iter().map(|object| object.pages).sum();
        let timed = self.times.filter(|(_, last)| *last != 0);
        Summary {
            trace: stem(source.name()),
            format: header.format.to_string(),
            checksums: header.has_checksums,
            page_size: header.page_size,
            accesses: self.reads + self.writes,
            records: self.records,
            distinct_pages,
            footprint_bytes: distinct_pages * u64::from(header.page_size),
            reads: self.reads,
            writes: self.writes,
            via: self.via,
            time_span_ns: timed.map(|(first, last)| last - first),
            tasks: self.tasks.len() as u64,
            memcgs: self.of_group.len() as u64,
            kernel: (self.kernel != KernelCounts::default()).then_some(self.kernel),
            recording: header.recording.clone(),
            collapse: header.collapse,
            source: header.source.clone(),
            recorded_on: header.recorded_on.clone(),
            notes: header.notes(),
            groups,
            objects,
        }
    }
}
