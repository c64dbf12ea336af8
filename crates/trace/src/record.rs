//! Form that every format is read into: a header and a stream of records.

use crate::error::TraceError;
use crate::format::Format;
use crate::recording::{Recording, Touches};
use crate::seen::Seen;
use serde::{Deserialize, Serialize};

/// Backing of the pages of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObjectKind {
    /// A file (or a block device): a page that is evicted is read again from it.
    File,
    /// Anonymous memory: a page that is evicted goes to swap.
    Anon,
}

/// How a page is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Via {
    /// By a file descriptor: `read`, `write`.
    Fd,
    /// By a mapping: a load or a store.
    Map,
}

/// Operation on the pages of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Op {
    /// A write; a read otherwise.
    pub write: bool,
    /// How the pages are touched; `None` when the trace does not say.
    pub via: Option<Via>,
}

impl Op {
    /// A read of which the trace does not say how.
    pub const READ: Op = Op { write: false, via: None };
    /// A write of which the trace does not say how.
    pub const WRITE: Op = Op { write: true, via: None };
}

/// Kind of a record: a touch, or what the kernel did in a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// A touch. Whether the recorded kernel had the pages in memory is not known.
    #[default]
    Touch,
    /// A touch of pages that the recorded kernel had in memory.
    Hit,
    /// A touch for whose first page the recorded kernel had to read; it had the other pages by
    /// then.
    Miss,
    /// A touch of pages in place that was seen by sampling, at the end of its interval: an accessed
    /// bit, and no fault.
    Sampled,
    /// The pages left the page cache, and not by reclaim: truncation, deletion, `drop_caches`. A
    /// replay does it, too.
    Drop,
    /// The kernel added the pages to the page cache. Not replayed.
    Add,
    /// Reclaim took the pages from the page cache. Not replayed.
    Evict,
    /// A program said how it will use the object, or these pages of it. `refault verify` does what
    /// Linux does then.
    Advise(AdviceKind),
    /// The pages were in the page cache when the recorder first looked at the object. Not replayed
    /// as an access: a warm start is made of it.
    Resident,
    /// The kernel added the pages to the page cache for a process that is not recorded, and charged
    /// its group. As long as they are there, a replay finds them in memory.
    AddOther,
}

/// Advice of a program on an open file (`fadvise`, `readahead`) or on mapped memory (`madvise`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdviceKind {
    /// Nothing in particular is said of the open file.
    Normal,
    /// The open file is read at random.
    Random,
    /// From beginning to end.
    Sequential,
    /// Each page once.
    NoReuse,
    /// These pages are wanted soon. Pages that the kernel then brings in are records of their own.
    WillNeed,
    /// These pages are not wanted any more. Pages that the kernel then drops are records of their
    /// own.
    DontNeed,
    /// Nothing in particular is said of these pages where they are mapped.
    MapNormal,
    /// These pages are touched at random.
    MapRandom,
    /// From beginning to end.
    MapSequential,
    /// These pages are not in use at present.
    Cold,
    /// These pages shall be reclaimed now.
    PageOut,
    /// Nothing that a program says, but what reclaim makes a difference by: they are mapped
    /// executable.
    MapExecutable,
    /// Dirty pages of the file are to be written (`fsync`, `fdatasync`).
    Sync,
}

impl AdviceKind {
    /// All of them.
    pub const ALL: [AdviceKind; 13] = [
        AdviceKind::Normal,
        AdviceKind::Random,
        AdviceKind::Sequential,
        AdviceKind::NoReuse,
        AdviceKind::WillNeed,
        AdviceKind::DontNeed,
        AdviceKind::MapNormal,
        AdviceKind::MapRandom,
        AdviceKind::MapSequential,
        AdviceKind::Cold,
        AdviceKind::PageOut,
        AdviceKind::MapExecutable,
        AdviceKind::Sync,
    ];
}

impl RecordKind {
    /// Whether it is a touch.
    #[inline]
    pub fn is_touch(self) -> bool {
        matches!(self, RecordKind::Touch | RecordKind::Hit | RecordKind::Miss | RecordKind::Sampled)
    }
}

/// One line of a trace: `pages` consecutive pages of one object, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Nanoseconds since the start of the trace; 0 when the trace has no time.
    pub time_ns: u64,
    /// The first page.
    pub page: u64,
    /// The task, an index; 0 when the trace has no tasks.
    pub task: u32,
    /// The memory cgroup, an index; 0 when the trace has none.
    pub memcg: u32,
    /// The object, an index into [`Header::objects`].
    pub object: u32,
    /// The number of pages, at least 1.
    pub pages: u32,
    /// Operation; of no meaning unless it is a touch.
    pub op: Op,
    /// Whether it is a touch, or what the kernel did.
    pub kind: RecordKind,
}

impl Record {
    /// A touch of one page of object 0, without time, task or memcg.
    pub fn touch(page: u64, op: Op) -> Self {
        Record { time_ns: 0, page, task: 0, memcg: 0, object: 0, pages: 1, op, kind: RecordKind::Touch }
    }
}

/// The most pages that one record may name: 64 GiB of 4 KiB pages. More is taken for a broken file.
pub const MAX_PAGES_PER_RECORD: u32 = 1 << 24;

/// The most objects a trace may have.
pub const MAX_OBJECTS: u32 = 1 << 22;

/// A file or an anonymous region that a trace names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectInfo {
    /// Its name, for people.
    pub name: String,
    /// Backing of the object.
    pub kind: ObjectKind,
    /// The length in pages, where a recording knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<u64>,
    /// The length in pages when it was first seen, where a recording knows it: what is written
    /// raises it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_pages: Option<u64>,
    /// The largest order of a folio of it, where a recording saw one of more than a page.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub folio_order: u8,
    /// `read_ahead_kb` of its device in pages, where a recording knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ahead_pages: Option<u32>,
    /// Sampling of touches in place, where a recording did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub touches: Option<Touches>,
    /// Shared memory, tmpfs or a memfd: its pages are swap-backed, and a group is charged for them
    /// besides files (`shmem` of `memory.stat`).
    #[serde(default, skip_serializing_if = "is_false")]
    pub shmem: bool,
    /// Whether a recording looked which pages of it were in memory when it began, so that a page
    /// without a [`RecordKind::Resident`] row was not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub residency_known: bool,
    /// Reads and writes that bypassed the page cache (`O_DIRECT`), where a recording saw some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct: Option<DirectIo>,
}

/// Reads and writes of one object that bypassed the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DirectIo {
    /// Calls that read.
    pub reads: u64,
    /// Bytes that they asked for.
    pub read_bytes: u64,
    /// Calls that wrote.
    pub writes: u64,
    /// Bytes that they wrote.
    pub write_bytes: u64,
}

fn is_zero(order: &u8) -> bool {
    *order == 0
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl ObjectInfo {
    /// An object of that name and kind.
    pub fn new(name: impl Into<String>, kind: ObjectKind) -> Self {
        Self {
            name: name.into(),
            kind,
            pages: None,
            first_pages: None,
            folio_order: 0,
            read_ahead_pages: None,
            touches: None,
            shmem: false,
            residency_known: false,
            direct: None,
        }
    }
}

/// Accesses that `--collapse` left out of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collapse {
    /// The number of most recently touched distinct pages whose accesses were dropped.
    pub window: u32,
    /// The number of accesses dropped.
    pub dropped: u64,
}

/// Header of a trace: what it says about itself.
///
/// Formats that are read as a stream learn of objects on the way: the list may grow until the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The format it was read in.
    pub format: Format,
    /// Bytes a page.
    pub page_size: u32,
    /// The objects, in the order of [`Record::object`].
    pub objects: Vec<ObjectInfo>,
    /// Names of the tasks, if the trace has them.
    pub tasks: Vec<String>,
    /// Names of the memory cgroups, if the trace has them.
    pub memcgs: Vec<String>,
    /// Source that it was made from, for people.
    pub source: Option<String>,
    /// Where it was recorded, for people.
    pub recorded_on: Option<String>,
    /// Accesses that were left out when it was converted.
    pub collapse: Option<Collapse>,
    /// Facts that a recording of a kernel says of itself.
    pub recording: Option<Recording>,
    /// The number of records, if the format says so in advance. A hint: never trust it with memory.
    pub records_hint: Option<u64>,
    /// Whether what is read is checked against checksums that the file carries.
    pub has_checksums: bool,
    /// Reasons why numbers read so far may be meant in another unit than they are read in, and the
    /// flags for it.
    pub doubts: Vec<String>,
    /// Accesses that it has of those that were made, where its format says it.
    pub seen: Option<Seen>,
    /// Other remarks on how it was read.
    pub remarks: Vec<String>,
    /// Why nothing has been read so far, where all lines were passed over.
    pub passed_over: Option<String>,
}

impl Header {
    /// A header of 4 KiB pages that says nothing else.
    pub fn new(format: Format) -> Self {
        Self {
            format,
            page_size: 4096,
            objects: Vec::new(),
            tasks: Vec::new(),
            memcgs: Vec::new(),
            source: None,
            recorded_on: None,
            collapse: None,
            recording: None,
            records_hint: None,
            has_checksums: false,
            doubts: Vec::new(),
            seen: None,
            remarks: Vec::new(),
            passed_over: None,
        }
    }

    /// Notes on a trace that was read: doubts, other remarks, and that nobody would see damage.
    pub fn notes(&self) -> Vec<String> {
        let without = self.format == Format::Native && !self.has_checksums;
        let without = without
            .then(|| "carries no checksums, so that damage is not seen; refault trace convert adds them".to_owned());
        let seen = self.seen.map(|seen| seen.note().to_owned());
        self.doubts.iter().cloned().chain(seen).chain(self.remarks.iter().cloned()).chain(without).collect()
    }

    /// The same with one object, which is what formats without objects have.
    pub fn with_object(format: Format, name: &str, kind: ObjectKind) -> Self {
        let mut header = Self::new(format);
        header.objects.push(ObjectInfo::new(name, kind));
        header
    }
}

/// The number of records that a source aims to deliver in one chunk: small enough for the
/// second-level cache.
pub const CHUNK: usize = 8192;

/// A trace that is read from front to back.
pub trait RecordSource {
    /// Name of the file, for messages.
    fn name(&self) -> &str;

    /// Header of the trace, as far as it has been read.
    fn header(&self) -> &Header;

    /// Replaces `out` by the next records; `false` when there are no more, and `out` is then empty.
    ///
    /// Records before a broken place are delivered first; the call after that returns the error.
    fn next_chunk(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError>;

    /// Accesses in all, once every record has been read ahead; none: nobody knows.
    fn known_accesses(&self) -> Option<u64> {
        None
    }
}

impl<S: RecordSource + ?Sized> RecordSource for &mut S {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn header(&self) -> &Header {
        (**self).header()
    }

    fn next_chunk(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
        (**self).next_chunk(out)
    }

    fn known_accesses(&self) -> Option<u64> {
        (**self).known_accesses()
    }
}

impl<S: RecordSource + ?Sized> RecordSource for Box<S> {
    #[inline]
    fn name(&self) -> &str {
        (**self).name()
    }

    #[inline]
    fn header(&self) -> &Header {
        (**self).header()
    }

    fn next_chunk(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
        (**self).next_chunk(out)
    }

    fn known_accesses(&self) -> Option<u64> {
        (**self).known_accesses()
    }
}
