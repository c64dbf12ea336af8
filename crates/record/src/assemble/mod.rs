//! Events to records: a state machine without clock and without files.
//!
//! | event | record |
//! |---|---|
//! | reads of one call, a batch each | what each batch took, cut where the next begins and at the end of the file |
//! | an add by the thread before its read, or after its write, its fault or its call began | that access is a miss |
//! | fault-around, or a fault | a touch of one page by mapping |
//! | a fault on anonymous memory | a touch of its page: a miss if it was in swap |
//! | a look at the memory of a process | what was touched since the last one, and what came and went |
//! | a removal while the thread reclaims | an eviction; else a drop |
//! | a removal by DAMON | advice to page out, and an eviction |
//! | a file is seen for the first time | what of it was in memory then |
//!
//! Whether a write or a fault is a miss is known only by what its thread does next, so that records
//! wait in a queue until those before them are known.

mod advice;
mod direct;
mod fault;
mod file;
mod in_sample;
mod length;
mod removed;
mod resident;
mod sampled;
mod space;

use crate::event::{Event, EventKind, Inode};
use crate::residency::Residency;
use direct::Descriptors;
pub use direct::DirectShare;
use file::File;
use length::FirstLength;
use refault_trace::{Op, Record, RecordKind, SpaceSample, Via};
use resident::ResidencyQueue;
use rustc_hash::{FxHashMap, FxHashSet};
use space::AddressSpace;
use std::collections::VecDeque;
use std::ops::Range;

const PAGE_SHIFT: u32 = 12;

/// Folios that a thread added before it says what for; more is readahead of something else.
const MOST_FRESH: usize = 1 << 14;

/// Nanoseconds without an event of a thread, after which the outcome of its last access is final.
const SETTLED_NS: u64 = 500_000_000;

/// Records in the queue: with more of them the oldest go, known or not.
const MOST_QUEUED: usize = 1 << 20;

/// Facts of files that the machine knows.
pub trait Files {
    /// The length of a file in pages; none: not known.
    fn pages(&mut self, inode: Inode, pid: u32) -> Option<u64>;
    /// Current time on the clock of events, which are read some time after they happened.
    fn now_ns(&mut self) -> u64;
    /// The file that a process has open by this descriptor; `None` if it is closed.
    fn of_descriptor(&mut self, pid: u32, fd: u64) -> Option<Inode>;
    /// The files that a process has mapped in a range of its memory: first page and pages of each.
    fn of_memory(&mut self, pid: u32, address: u64, bytes: u64) -> Vec<(Inode, u64, u64)>;
    /// A file has this number in records from now on.
    fn numbered(&mut self, inode: Inode, object: u32, pid: u32) -> NewFile;
    /// Whether a process has anonymous memory at an address.
    fn is_anonymous(&mut self, pid: u32, address: u64) -> bool;
    /// The pages of a file that a process has mapped executable at an address: the first, and how
    /// many.
    fn executable(&mut self, pid: u32, address: u64) -> Option<(Inode, u64, u64)>;
    /// The anonymous memory of a process has this number in records from now on.
    fn memory_numbered(&mut self, object: u32, pid: u32);
    /// The memory of a process is another one from now on, or none.
    fn memory_ended(&mut self, pid: u32);
}

/// A file that has just got its number.
#[derive(Clone, Debug)]
pub struct NewFile {
    /// Length in pages; none: not known.
    pub pages: Option<u64>,
    /// Pages of it that are in memory now.
    pub look: Residency,
    /// Whether it is shared memory: touches of it are none of the page cache.
    pub shmem: bool,
}

/// An access whose outcome, or length, is still open.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// Number of the record among all that were queued.
    at: u64,
    inode: Inode,
    kind: Kind,
    /// End of what the call asks for: a page of a read, a byte of a write.
    end: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Begin,
    Write,
    Fault,
    Around,
}

/// Pages that a thread added to the page cache.
#[derive(Clone, Debug)]
struct Added {
    inode: Inode,
    pages: Range<u64>,
}

impl Added {
    fn holds(&self, inode: Inode, page: u64) -> bool {
        self.inode == inode && self.pages.contains(&page)
    }
}

/// A thread.
#[derive(Debug, Default)]
struct Thread {
    number: u32,
    group: u32,
    open: Option<Open>,
    /// Pages that it added to the page cache since its last access.
    fresh: Vec<Added>,
    /// Depth of reclaim.
    reclaims: u32,
    /// The address of the fault that began last, until the kernel says what it does about it.
    address: Option<u64>,
    /// File that it reads or writes without the page cache: it is not known yet which.
    direct: Option<(Inode, u64)>,
    /// Whether it asked for reclaim of pages, and does that itself.
    pages_out: bool,
}

/// The machine.
#[derive(Debug, Default)]
pub struct Assembler {
    start_ns: u64,
    files: FxHashMap<Inode, File>,
    objects: u32,
    /// Files that nobody has used yet.
    unused: u32,
    residents: ResidencyQueue,
    descriptors: Descriptors,
    /// Length of a file when it was first seen, by object.
    first_lengths: FxHashMap<u32, FirstLength>,
    /// Largest order of a folio that was added, by object.
    orders: Vec<u8>,
    threads: FxHashMap<u32, Thread>,
    /// Anonymous memory of processes, and its number in records, where it is recorded.
    memory: FxHashMap<u32, (u32, AddressSpace)>,
    /// Whether anonymous memory is recorded.
    with_memory: bool,
    /// The kernel says where faults begin.
    has_addresses: bool,
    /// The objects that are memory: anonymous, or shared.
    of_memory: FxHashSet<u32>,
    /// Pages of files that are known to be mapped executable, by the first of each range.
    executable: FxHashSet<(Inode, u64, u64)>,
    /// Objects whose touches sampling would see.
    in_view: FxHashSet<u32>,
    /// Threads that only ever reclaim.
    reclaimers: FxHashSet<u32>,
    /// Threads that reclaim pages by their addresses, though there is room.
    pagers_out: FxHashSet<u32>,
    /// Pages whose events are taken; none: all.
    sample: Option<SpaceSample>,
    /// Records that turned out to be of no page, among those that are queued.
    void: FxHashSet<u64>,
    queue: VecDeque<Record>,
    /// Number of records that left the queue.
    gone: u64,
    /// Pages touched in records that left the queue, and how many of these missed.
    pub accesses: u64,
    /// See `accesses`.
    pub misses: u64,
    /// Touches found by sampling, and faults on anonymous or shared memory: not among `accesses`.
    pub touches: u64,
    last_ns: u64,
}

impl Assembler {
    /// A machine that starts at this time; `reclaimers` are threads that only
    /// reclaim.
    pub fn new(start_ns: u64, reclaimers: impl IntoIterator<Item = u32>) -> Assembler {
        Assembler { start_ns, reclaimers: reclaimers.into_iter().collect(), ..Assembler::default() }
    }

    /// The number of a thread and of its group, in records from now on.
    pub fn set_thread(&mut self, tid: u32, number: u32, group: u32) {
        let thread = self.threads.entry(tid).or_default();
        (thread.number, thread.group) = (number, group);
    }

    /// Takes an event; times do not go back. Accesses are recorded of threads that are `watched`,
    /// what the page cache does of all, for files that a watched one uses.
    pub fn take(&mut self, event: &Event, watched: bool, files: &mut impl Files) {
        if !event.kind.is_possible() {
            return;
        }
        self.last_ns = self.last_ns.max(event.time_ns);
        if self.take_kept(event, watched, files) {
            return;
        }
        match event.kind {
            EventKind::Read { inode, first, last } if watched => self.read(event, inode, first, last, files),
            EventKind::Begin { inode, pos, bytes } if watched => self.begin(event, inode, pos, bytes, files),
            EventKind::Write { inode, pos, bytes } if watched => self.write(event, inode, pos, bytes, files),
            EventKind::Fault { inode, page } if watched => self.fault(event, inode, page, files),
            EventKind::Around { inode, first, last } if watched => self.around(event, inode, first, last, files),
            // In the middle of a read or a write, too: of the memory that is copied to or from.
            EventKind::Address { address, write } if watched => self.address(event, address, write, files),
            EventKind::Comm { exec: true, .. } | EventKind::Exit => self.end_memory(event, files),
            EventKind::Add { inode, page, order } => {
                self.add(event, inode, page..page + (1 << order), order, watched, files)
            }
            EventKind::Delete { inode, page, order } => self.delete(event, inode, page..page + (1 << order)),
            EventKind::ReclaimBegin => self.thread(event.tid).reclaims += 1,
            EventKind::ReclaimEnd => {
                let thread = self.thread(event.tid);
                thread.reclaims = thread.reclaims.saturating_sub(1);
            }
            EventKind::Advise { fd, advice, offset, bytes } if watched => {
                let inode = files.of_descriptor(event.pid, fd);
                self.advise(event, inode, advice, (offset, bytes), files);
            }
            EventKind::AdviseFile { inode, advice, offset, bytes } if watched => {
                self.advise(event, Some(inode), advice, (offset, bytes), files);
            }
            EventKind::AdviseMemory { address, bytes, advice } if watched => {
                self.advise_memory(event, address, bytes, advice, files);
            }
            EventKind::Direct { inode, bytes } if watched && bytes > 0 => {
                self.thread(event.tid).direct = Some((inode, bytes))
            }
            EventKind::DirectStep { inode, write } if watched => self.direct_step(event, inode, write, files),
            EventKind::Sync { inode } if watched => self.sync(event, inode, files),
            EventKind::Write { inode, pos, bytes } => {
                self.doubt(inode, pos.saturating_add(bytes).div_ceil(1 << PAGE_SHIFT))
            }
            EventKind::Freed { inode } => {
                self.files.remove(&inode);
                self.residents.freed(inode);
                self.executable.retain(|(of, ..)| *of != inode);
            }
            _ => {}
        }
    }

    fn thread(&mut self, tid: u32) -> &mut Thread {
        self.threads.entry(tid).or_default()
    }

    fn read(&mut self, event: &Event, inode: Inode, first: u64, last: u64, files: &mut impl Files) {
        let end = self.length(event, inode, first, last, files);
        let before = self.thread(event.tid).open;
        if let Some(open) = before.filter(|o| o.kind == Kind::Read && o.inode == inode && o.end == last) {
            self.cut(open.at, first);
        }
        self.settle(event.tid);
        let missed = self.consume(event.tid, inode, first);
        let pages = (last + 1).min(end).saturating_sub(first).max(1);
        let kind = if missed { RecordKind::Miss } else { RecordKind::Hit };
        let at = self.push(event, inode, first, pages, Op { write: false, via: Some(Via::Fd) }, kind);
        self.thread(event.tid).open = Some(Open { at, inode, kind: Kind::Read, end: last });
    }

    /// A call that reads: what it adds comes after.
    fn begin(&mut self, event: &Event, inode: Inode, pos: u64, bytes: u64, files: &mut impl Files) {
        let (first, last) = (pos >> PAGE_SHIFT, (pos + bytes - 1) >> PAGE_SHIFT);
        self.file(inode, event.pid, files);
        self.settle(event.tid);
        self.grown(inode, last + 1);
        let op = Op { write: false, via: Some(Via::Fd) };
        let at = self.push(event, inode, first, last - first + 1, op, RecordKind::Touch);
        let thread = self.thread(event.tid);
        thread.fresh.clear();
        thread.open = Some(Open { at, inode, kind: Kind::Begin, end: last });
    }

    fn write(&mut self, event: &Event, inode: Inode, pos: u64, bytes: u64, files: &mut impl Files) {
        let end = pos.saturating_add(bytes.max(1));
        let (first, last) = (pos >> PAGE_SHIFT, (end - 1) >> PAGE_SHIFT);
        let object = self.file(inode, event.pid, files).object;
        if let Some(first) = self.first_lengths.get_mut(&object) {
            first.write(event.time_ns, pos..end);
        }
        let before = self.thread(event.tid).open;
        if let Some(open) = before.filter(|o| o.kind == Kind::Write && o.inode == inode && o.end == end) {
            self.cut(open.at, first);
        }
        self.settle(event.tid);
        self.grown(inode, last + 1);
        let op = Op { write: true, via: Some(Via::Fd) };
        let at = self.push(event, inode, first, last - first + 1, op, RecordKind::Touch);
        let thread = self.thread(event.tid);
        thread.fresh.clear();
        thread.open = Some(Open { at, inode, kind: Kind::Write, end });
    }

    /// Pages of a folio of an order are added: all, or those that are kept.
    fn add(
        &mut self,
        event: &Event,
        inode: Inode,
        pages: Range<u64>,
        order: u8,
        watched: bool,
        files: &mut impl Files,
    ) {
        if watched {
            self.file(inode, event.pid, files);
        }
        if !self.files.contains_key(&inode) {
            return;
        }
        let page = pages.start;
        self.residents.changed(inode, pages.clone(), false);
        self.doubt(inode, pages.end);
        self.note_order(self.files[&inode].object, order);
        self.kernel(event, inode, pages.clone(), if watched { RecordKind::Add } else { RecordKind::AddOther });
        if !watched {
            return;
        }
        let open = self.thread(event.tid).open.filter(|o| o.kind != Kind::Read && o.inode == inode);
        if let Some(record) = open.and_then(|open| self.queued(open.at))
            && record.kind == RecordKind::Touch
            && pages.contains(&record.page)
        {
            record.kind = RecordKind::Miss;
            return;
        }
        if watched && order == 0 && self.is_read_again(event.tid, inode, page) {
            self.settle(event.tid);
            self.thread(event.tid).fresh.clear();
            self.push(event, inode, page, 1, Op { write: false, via: Some(Via::Fd) }, RecordKind::Miss);
            return;
        }
        let fresh = &mut self.thread(event.tid).fresh;
        if fresh.len() < MOST_FRESH {
            fresh.push(Added { inode, pages });
        }
    }

    /// Whether a page that is being added is one that the thread read ahead for this read, and that
    /// was evicted before it came to it. Such a page is read by itself (`filemap_create_folio`),
    /// and no event tells of the read.
    fn is_read_again(&self, tid: u32, inode: Inode, page: u64) -> bool {
        let Some(thread) = self.threads.get(&tid) else { return false };
        let in_read = thread.open.is_none_or(|open| open.kind == Kind::Read);
        // Readahead goes on from page to page.
        let goes_on = thread.fresh.last().is_some_and(|last| last.pages.end == page);
        in_read && !goes_on && thread.fresh.iter().any(|added| added.holds(inode, page))
    }

    /// Whether the thread added the page since its last access; what else it added is forgotten.
    fn consume(&mut self, tid: u32, inode: Inode, page: u64) -> bool {
        let fresh = std::mem::take(&mut self.thread(tid).fresh);
        fresh.iter().any(|added| added.holds(inode, page))
    }

    /// Queues what the kernel did, joined with the last record where that goes on.
    fn kernel(&mut self, event: &Event, inode: Inode, range: Range<u64>, kind: RecordKind) {
        let (page, pages) = (range.start, range.end - range.start);
        let object = self.files[&inode].object;
        let task = self.threads.get(&event.tid).map_or(0, |t| t.number);
        if let Some(last) = self.queue.back_mut()
            && (last.kind, last.object, last.task) == (kind, object, task)
            && last.page + u64::from(last.pages) == page
            && last.pages < 1 << 20
        {
            last.pages += pages as u32;
            return;
        }
        self.push(event, inode, page, pages, Op::READ, kind);
    }

    fn push(&mut self, event: &Event, inode: Inode, page: u64, pages: u64, op: Op, kind: RecordKind) -> u64 {
        self.push_to(event, self.files[&inode].object, page, pages, op, kind)
    }

    fn push_to(&mut self, event: &Event, object: u32, page: u64, pages: u64, op: Op, kind: RecordKind) -> u64 {
        let (task, memcg) = self.threads.get(&event.tid).map_or((0, 0), |t| (t.number, t.group));
        let time_ns = event.time_ns.saturating_sub(self.start_ns);
        let pages = pages.min(u64::from(refault_trace::MAX_PAGES_PER_RECORD)) as u32;
        self.queue.push_back(Record { time_ns, page, task, memcg, object, pages, op, kind });
        self.gone + self.queue.len() as u64 - 1
    }

    fn queued(&mut self, at: u64) -> Option<&mut Record> {
        self.queue.get_mut(usize::try_from(at.checked_sub(self.gone)?).ok()?)
    }

    /// A batch ended where the next one begins.
    fn cut(&mut self, at: u64, next: u64) {
        if let Some(record) = self.queued(at)
            && let Some(pages) = next.checked_sub(record.page)
        {
            // Another batch goes on in the page where the last one ended: both touched that page.
            record.pages = (pages.max(1) as u32).min(record.pages);
        }
    }

    /// A record turned out to be of no page.
    fn void(&mut self, at: u64) {
        if at >= self.gone {
            self.void.insert(at);
        }
    }

    /// The thread does something else: what it last did met no page that had to be read, unless it
    /// is known to have.
    fn settle(&mut self, tid: u32) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        thread.pages_out = false;
        if let Some(open) = thread.open.take()
            && let Some(record) = self.queued(open.at)
            && record.kind == RecordKind::Touch
        {
            record.kind = RecordKind::Hit;
        }
    }

    /// Appends the records that nothing will change any more; `all`: appends all.
    pub fn emit(&mut self, out: &mut Vec<Record>, all: bool) {
        let until = self.last_ns.saturating_sub(self.start_ns).saturating_sub(SETTLED_NS);
        let first_open = self.threads.values().filter_map(|t| t.open).map(|o| o.at).min().unwrap_or(u64::MAX);
        while let Some(record) = self.queue.front() {
            let is_open = self.gone >= first_open && record.time_ns > until;
            let wait = (is_open || self.residents.waits(self.gone)) && self.queue.len() < MOST_QUEUED;
            // The last record may be joined with what comes next.
            if !all && (wait || self.queue.len() == 1) {
                break;
            }
            let mut record = *record;
            if record.kind == RecordKind::Resident {
                self.residents.emit(self.gone, &record, out);
                self.queue.pop_front();
                self.gone += 1;
                continue;
            }
            if self.void.remove(&self.gone) {
                self.queue.pop_front();
                self.gone += 1;
                continue;
            }
            if record.kind == RecordKind::Touch {
                record.kind = RecordKind::Hit;
            }
            self.descriptors.cached(&record);
            if record.kind == RecordKind::Sampled || record.kind.is_touch() && self.is_memory(record.object) {
                self.touches += u64::from(record.pages);
            } else if record.kind.is_touch() {
                self.accesses += u64::from(record.pages);
                self.misses += u64::from(record.kind == RecordKind::Miss);
            }
            self.queue.pop_front();
            self.gone += 1;
            out.push(record);
        }
    }

    /// Checks the invariants.
    ///
    /// # Errors
    /// The invariant that does not hold.
    pub fn validate(&self) -> Result<(), String> {
        if !self.queue.iter().is_sorted_by_key(|r| r.time_ns) {
            return Err("records are not in the order of time".to_owned());
        }
        if let Some(wrong) = self.queue.iter().find(|r| r.pages == 0 || r.object >= self.objects) {
            return Err(format!("a record that cannot be: {wrong:?}"));
        }
        let end = self.gone + self.queue.len() as u64;
        match self.threads.values().filter_map(|t| t.open).find(|open| open.at >= end) {
            Some(open) => Err(format!("an open access that was never queued: {open:?}")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
