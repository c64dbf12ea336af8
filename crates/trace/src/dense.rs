//! The dense form of a trace: 4 bytes an access, pages numbered without gaps.

use crate::error::{ErrorKind, Place, TraceError};
use crate::interner::PageIds;
use crate::memcg::Groups;
use crate::open::{empty, stem};
use crate::record::{CHUNK, MAX_OBJECTS, ObjectKind, Record, RecordKind, RecordSource, Via};
use crate::sample::Sample;
use rustc_hash::FxHashMap;

/// The most distinct pages: what the id of a [`PackedAccess`] can hold.
pub const MAX_DISTINCT_PAGES: u32 = 1 << 29;

/// Accesses for which memory is reserved on the word of a header, at most.
const MAX_RESERVED: u64 = 1 << 26;

/// One access in 32 bits.
///
/// Bits 0 to 28 are the dense page id, bit 29 is a write, bit 30 a touch by mapping (by descriptor
/// otherwise). Bit 31, *continues*, is set on a read by descriptor when the last read on the same
/// descriptor was of the same page: Linux does not mark a page accessed again when a read goes on
/// in the page where the last one ended. There is one descriptor for each (object, task).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct PackedAccess(u32);

impl PackedAccess {
    const ID: u32 = MAX_DISTINCT_PAGES - 1;
    const WRITE: u32 = 1 << 29;
    const MAP: u32 = 1 << 30;
    const CONTINUES: u32 = 1 << 31;

    /// Packs an access; of `page` the low 29 bits count.
    #[inline]
    pub fn new(page: u32, write: bool, via: Via, continues: bool) -> Self {
        Self(
            (page & Self::ID)
                | if write { Self::WRITE } else { 0 }
                | if via == Via::Map { Self::MAP } else { 0 }
                | if continues { Self::CONTINUES } else { 0 },
        )
    }

    /// The dense page id.
    #[inline]
    pub fn page(self) -> u32 {
        self.0 & Self::ID
    }

    /// Whether it writes.
    #[inline]
    pub fn is_write(self) -> bool {
        self.0 & Self::WRITE != 0
    }

    /// Whether it is by mapping; by descriptor otherwise.
    #[inline]
    pub fn is_map(self) -> bool {
        self.0 & Self::MAP != 0
    }

    /// How the page is touched.
    #[inline]
    pub fn via(self) -> Via {
        if self.is_map() { Via::Map } else { Via::Fd }
    }

    /// Whether a read by descriptor goes on in the page of the last one.
    #[inline]
    pub fn continues(self) -> bool {
        self.0 & Self::CONTINUES != 0
    }

    /// Whether it is a read by descriptor that does not go on in the page of the last one.
    #[inline]
    pub fn is_plain(self) -> bool {
        self.0 & !Self::ID == 0
    }

    /// The 32 bits.
    #[inline]
    pub fn bits(self) -> u32 {
        self.0
    }
}

/// An object of a dense trace: it owns the page ids `first_page..first_page + indices.len()`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its name, for people.
    pub name: String,
    /// Backing of the object.
    pub kind: ObjectKind,
    /// The id of its first page.
    pub first_page: u32,
    /// The page index in the object of each of its pages, ascending.
    pub indices: Vec<u64>,
    /// Memory cgroup that its pages belong to, an index into [`Trace::groups`]; 0 if groups were
    /// not kept.
    pub group: u16,
}

/// Options of loading: what to keep of a trace, and what to assume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// How pages of files are touched where the trace does not say. Anonymous memory is always
    /// mapped.
    pub default_via: Via,
    /// Keep the time of every access (8 bytes each).
    pub keep_time: bool,
    /// Keep the task of every access (4 bytes each).
    pub keep_task: bool,
    /// Keep the memory cgroup of every access (2 bytes each). A page belongs to the one that
    /// touches it first; an object that belongs to several becomes several.
    pub keep_memcg: bool,
    /// Number of accesses after which loading stops.
    pub max_accesses: Option<u64>,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self { default_via: Via::Fd, keep_time: false, keep_task: false, keep_memcg: false, max_accesses: None }
    }
}

/// A trace in memory, ready for any number of replays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The file name without suffixes.
    pub name: String,
    /// The objects, in the order of their page ids. An object that was never touched owns none.
    pub objects: Vec<Object>,
    /// The accesses in order.
    pub accesses: Vec<PackedAccess>,
    /// The time of every access in nanoseconds, if kept.
    pub time_ns: Option<Vec<u64>>,
    /// The task of every access, if kept.
    pub task: Option<Vec<u32>>,
    /// The memory cgroup of every access, an index into `groups`, if kept.
    pub memcg: Option<Vec<u16>>,
    /// The paths of the memory cgroups in the order of the alphabet, if kept.
    pub groups: Vec<String>,
    /// Pages that leave memory though they are in use, in order: before which access, and which.
    pub drops: Vec<(u64, u32)>,
    /// Whether [`LoadOptions::max_accesses`] was reached, so that the file may hold more.
    pub cut: bool,
    /// Whether an access to a file did not say how it was made, so that it has
    /// [`LoadOptions::default_via`].
    pub has_default_via: bool,
}

impl Trace {
    /// Reads a source to its end. An empty trace is an error.
    pub fn load(source: &mut dyn RecordSource, opts: &LoadOptions) -> Result<Self, TraceError> {
        let mut loader = Loader::new(source, opts, None);
        let mut chunk = Vec::with_capacity(CHUNK);
        let mut is_first = true;
        while !loader.trace.cut && source.next_chunk(&mut chunk)? {
            if std::mem::take(&mut is_first) {
                // Want of memory shows before minutes are spent on long ranges.
                let all = source.known_accesses().and_then(|all| usize::try_from(all).ok());
                loader.trace.accesses.reserve_exact(all.unwrap_or(0));
            }
            loader.add_chunk(source, &chunk)?;
        }
        if loader.trace.accesses.is_empty() {
            return Err(empty(source.name(), source.header().passed_over.as_deref()));
        }
        Ok(loader.finish(source))
    }

    /// The number of distinct pages.
    pub fn footprint_pages(&self) -> u32 {
        self.objects.last().map_or(0, |last| last.first_page + last.indices.len() as u32)
    }

    /// Whether a page of a file is touched.
    pub fn has_files(&self) -> bool {
        self.objects.iter().any(|object| object.kind == ObjectKind::File && !object.indices.is_empty())
    }

    /// The object that owns a page id.
    pub fn object_of(&self, page: u32) -> usize {
        self.objects.partition_point(|object| object.first_page <= page).saturating_sub(1)
    }
}

/// The last page read on the descriptors of one object.
#[derive(Default)]
struct Descriptors {
    task: u32,
    /// The last page of `task`, plus 1; 0 before the first read.
    last: u32,
    /// The same for other tasks, by task.
    others: FxHashMap<u32, u32>,
}

impl Descriptors {
    /// Notes a read; tells whether it goes on in the page of the last one.
    #[inline]
    fn read(&mut self, task: u32, page: u32) -> bool {
        if task != self.task {
            self.switch(task);
        }
        std::mem::replace(&mut self.last, page + 1) == page + 1
    }

    /// Notes a read of a page that is not kept.
    #[inline]
    fn read_other(&mut self, task: u32) {
        if task != self.task {
            self.switch(task);
        }
        self.last = 0;
    }

    #[cold]
    fn switch(&mut self, task: u32) {
        let last = self.others.remove(&task).unwrap_or(0);
        self.others.insert(self.task, self.last);
        (self.task, self.last) = (task, last);
    }
}

/// One object while the trace is read.
pub(crate) struct LoadingObject {
    pub(crate) kind: ObjectKind,
    pub(crate) pages: PageIds,
    descriptors: Descriptors,
}

/// A trace whose page ids are still in the order of first sight.
pub(crate) struct Loader {
    pub(crate) trace: Trace,
    pub(crate) loading: Vec<LoadingObject>,
    groups: Groups,
    /// The group of every page, by provisional id, if groups are kept.
    owners: Vec<u16>,
    pub(crate) distinct: u32,
    /// Accesses that were here and moved elsewhere; `trace.accesses` follow them.
    pub(crate) gone: u64,
    default_via: Via,
    max_accesses: u64,
    /// Accesses so far, also of pages that are not kept.
    pub(crate) seen: u64,
    /// Pages that are kept; none: all.
    sample: Option<Sample>,
    /// Whether any optional column is kept.
    keeps: bool,
}

impl Loader {
    pub(crate) fn new(source: &dyn RecordSource, opts: &LoadOptions, sample: Option<Sample>) -> Self {
        let max_accesses = opts.max_accesses.unwrap_or(u64::MAX);
        let expected = source.header().records_hint.unwrap_or(0);
        let kept = expected.min(max_accesses) / sample.as_ref().map_or(1, Sample::one_in);
        let reserved = kept.min(MAX_RESERVED) as usize;
        Self {
            trace: Trace {
                name: stem(source.name()),
                objects: Vec::new(),
                accesses: Vec::with_capacity(reserved),
                time_ns: opts.keep_time.then(Vec::new),
                task: opts.keep_task.then(Vec::new),
                memcg: opts.keep_memcg.then(Vec::new),
                groups: Vec::new(),
                drops: Vec::new(),
                cut: max_accesses == 0,
                has_default_via: false,
            },
            loading: Vec::new(),
            groups: Groups::default(),
            owners: Vec::new(),
            distinct: 0,
            gone: 0,
            default_via: opts.default_via,
            max_accesses,
            seen: 0,
            sample,
            keeps: opts.keep_time || opts.keep_task || opts.keep_memcg,
        }
    }

    /// Takes over the objects that the source has met since.
    pub(crate) fn load_new_objects(&mut self, source: &dyn RecordSource) {
        let known = self.loading.len();
        for object in source.header().objects.iter().skip(known) {
            self.loading.push(LoadingObject {
                kind: object.kind,
                pages: PageIds::default(),
                descriptors: Descriptors::default(),
            });
        }
        debug_assert!(self.loading.len() <= MAX_OBJECTS as usize);
    }

    /// Adds the records of a chunk that are accesses, or drop pages.
    pub(crate) fn add_chunk(&mut self, source: &dyn RecordSource, chunk: &[Record]) -> Result<(), TraceError> {
        self.load_new_objects(source);
        let name = source.name();
        for record in chunk {
            match record.kind {
                kind if kind.is_touch() => self.add(name, record)?,
                RecordKind::Drop => self.drop_pages(record),
                _ => continue,
            }
            if self.keeps {
                self.keep_columns(source, record)?;
            }
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn add(&mut self, name: &str, record: &Record) -> Result<(), TraceError> {
        let room = self.max_accesses - self.seen;
        let pages = u64::from(record.pages).min(room);
        self.seen += pages;
        self.trace.cut |= room <= u64::from(record.pages) && self.max_accesses != u64::MAX;
        let Some(loading) = self.loading.get_mut(record.object as usize) else {
            let what = format!("object {} is not in the header", record.object);
            return Err(TraceError::new(ErrorKind::Malformed, name, Place::Whole, what));
        };
        let via = match loading.kind {
            ObjectKind::Anon => Via::Map,
            ObjectKind::File => record.op.via.unwrap_or_else(|| {
                self.trace.has_default_via = true;
                self.default_via
            }),
        };
        let write = record.op.write;
        let reads = via == Via::Fd && !write;
        if self.sample.is_none() {
            // The entries of a long range are known before its pages are looked at one by one.
            self.trace.accesses.reserve(pages as usize);
        }
        for page in record.page..record.page + pages {
            if self.sample.as_ref().is_some_and(|sample| !sample.has(record.object, page)) {
                if reads {
                    loading.descriptors.read_other(record.task);
                }
                continue;
            }
            let id = loading.pages.id(page, self.distinct);
            if id == self.distinct {
                self.distinct += 1;
                if self.distinct > MAX_DISTINCT_PAGES {
                    return Err(too_many_pages(name));
                }
            }
            let continues = reads && loading.descriptors.read(record.task, id);
            self.trace.accesses.push(PackedAccess::new(id, write, via, continues));
        }
        Ok(())
    }

    /// Notes pages that leave memory. Only pages touched before count; the others are not there.
    pub(crate) fn drop_pages(&mut self, record: &Record) {
        let at = self.gone + self.trace.accesses.len() as u64;
        let Some(loading) = self.loading.get(record.object as usize) else { return };
        let pages = record.page..record.page + u64::from(record.pages);
        let known = pages.filter_map(|page| loading.pages.known(page));
        self.trace.drops.extend(known.map(|id| (at, id)));
    }

    /// Brings the columns that are kept up to what was added.
    fn keep_columns(&mut self, source: &dyn RecordSource, record: &Record) -> Result<(), TraceError> {
        let accesses = self.trace.accesses.len();
        if let Some(times) = &mut self.trace.time_ns {
            times.resize(accesses, record.time_ns);
        }
        if let Some(tasks) = &mut self.trace.task {
            tasks.resize(accesses, record.task);
        }
        if let Some(memcgs) = &mut self.trace.memcg {
            let group = self.groups.number(source.name(), &source.header().memcgs, record.memcg)?;
            memcgs.resize(accesses, group);
            self.owners.resize(self.distinct as usize, group);
        }
        Ok(())
    }

    /// The groups in the order of the alphabet.
    fn sort_groups(&mut self) {
        let Some(memcgs) = &mut self.trace.memcg else { return };
        let mut order: Vec<u16> = (0..self.groups.paths.len() as u16).collect();
        order.sort_by_key(|&number| &self.groups.paths[usize::from(number)]);
        let mut renamed = vec![0; order.len()];
        for (new, &old) in (0..).zip(&order) {
            renamed[usize::from(old)] = new;
        }
        memcgs.iter_mut().chain(&mut self.owners).for_each(|group| *group = renamed[usize::from(*group)]);
        self.trace.groups = std::mem::take(&mut self.groups.paths);
        self.trace.groups.sort();
    }

    /// Numbers the pages by (object, group, index) and renames them in place.
    pub(crate) fn finish(mut self, source: &dyn RecordSource) -> Trace {
        let renamed = self.number(source);
        self.renamed(&renamed)
    }

    /// Makes the objects, with their pages numbered by (object, group, index): the id of each page
    /// by its provisional one.
    pub(crate) fn number(&mut self, source: &dyn RecordSource) -> Vec<u32> {
        self.sort_groups();
        let mut renamed = vec![0u32; self.distinct as usize];
        let mut first_page = 0u32;
        let owners = std::mem::take(&mut self.owners);
        let owner = |&(_, provisional): &(u64, u32)| owners.get(provisional as usize).copied().unwrap_or(0);
        for (loading, info) in self.loading.iter_mut().zip(&source.header().objects) {
            let mut seen = std::mem::take(&mut loading.pages.by_first_access);
            seen.sort_unstable_by_key(|page| (owner(page), page.0));
            for (id, (_, provisional)) in (first_page..).zip(&seen) {
                renamed[*provisional as usize] = id;
            }
            let mut object = |pages: &[(u64, u32)]| {
                let indices: Vec<u64> = pages.iter().map(|(page, _)| *page).collect();
                let next = first_page + indices.len() as u32;
                let group = pages.first().map_or(0, owner);
                self.trace.objects.push(Object {
                    name: info.name.clone(),
                    kind: info.kind,
                    first_page,
                    indices,
                    group,
                });
                first_page = next;
            };
            match seen.is_empty() {
                true => object(&seen),
                false => seen.chunk_by(|a, b| owner(a) == owner(b)).for_each(object),
            }
        }
        renamed
    }

    /// Begins at the start of the same source again: pages have the ids that `renamed` gives them.
    pub(crate) fn begin_again(&mut self, renamed: &[u32]) {
        for object in &mut self.loading {
            object.pages.rename(renamed);
            object.descriptors = Descriptors::default();
        }
        (self.seen, self.gone) = (0, 0);
        self.trace.cut = self.max_accesses == 0;
    }

    /// The trace, with the id of each page in the place of its provisional one.
    pub(crate) fn renamed(mut self, renamed: &[u32]) -> Trace {
        for access in &mut self.trace.accesses {
            let flags = access.0 & !PackedAccess::ID;
            access.0 = renamed[access.page() as usize] | flags;
        }
        for (_, page) in &mut self.trace.drops {
            *page = renamed[*page as usize];
        }
        self.trace.accesses.shrink_to_fit();
        self.trace
    }
}

fn too_many_pages(name: &str) -> TraceError {
    let what = format!("more than {MAX_DISTINCT_PAGES} distinct pages; cut the trace or use larger pages");
    TraceError::new(ErrorKind::TooLarge, name, Place::Whole, what)
}
