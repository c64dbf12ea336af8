//! Events of the kernel, decoded: tracepoints by the layouts that tracefs gives, and what rings say
//! of tasks.

mod filter;
mod sources;

use crate::tracefs::{EventField, EventFormat, Tracefs};
use refault_trace::SpaceSample;
use sources::{OF_SOME, PROBED, SOURCES, Source};

/// A file, as the kernel numbers it: device (major << 20 | minor) and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Inode {
    /// The device of its file system.
    pub dev: u32,
    /// Its number there.
    pub ino: u64,
}

/// Bytes of the name that the kernel has for a thread.
pub const COMM: usize = 16;

/// Kind of an event, with its figures. Pages count from the start of the file; bounds are part of
/// what they bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are what the variants say")]
pub enum EventKind {
    /// A read by descriptor is about to copy pages; `last` is the last page that it asks for. Large
    /// reads come in batches, each with the same `last`.
    Read { inode: Inode, first: u64, last: u64 },
    /// A read by descriptor begins; whether its pages are there is not known yet.
    Begin { inode: Inode, pos: u64, bytes: u64 },
    /// A write by descriptor begins; large ones come in several.
    Write { inode: Inode, pos: u64, bytes: u64 },
    /// A fault on a mapped file that fault-around did not settle.
    Fault { inode: Inode, page: u64 },
    /// Fault-around looked at these pages, and mapped the ones that were in memory.
    Around { inode: Inode, first: u64, last: u64 },
    /// A fault at an address begins.
    Address { address: u64, write: bool },
    /// A folio of 2^order pages was added to the page cache.
    Add { inode: Inode, page: u64, order: u8 },
    /// A folio was removed.
    Delete { inode: Inode, page: u64, order: u8 },
    /// The thread begins to reclaim.
    ReclaimBegin,
    /// The thread ends it.
    ReclaimEnd,
    /// The file is deleted: the number may be that of another one from now on.
    Freed { inode: Inode },
    /// A program says by a descriptor how it will use a part of a file (no bytes: up to its end);
    /// the number of that advice is that of `posix_fadvise`.
    Advise { fd: u64, advice: u64, offset: u64, bytes: u64 },
    /// The same, of a file that is known.
    AdviseFile { inode: Inode, advice: u64, offset: u64, bytes: u64 },
    /// The same of mapped memory, with a number of `madvise`.
    AdviseMemory { address: u64, bytes: u64, advice: u64 },
    /// A program has what is dirty of a file written.
    Sync { inode: Inode },
    /// A read or write by descriptor that bypasses the page cache begins.
    Direct { inode: Inode, bytes: u64 },
    /// The call goes on: only now it is known whether it reads or writes.
    DirectStep { inode: Inode, write: bool },
    /// The process was made by another.
    Fork { parent: u32 },
    /// The thread has this name now, filled up with zeros; `exec`: for it runs another program.
    Comm { name: [u8; COMM], exec: bool },
    /// The process ended.
    Exit,
    /// The recorder looked at the memory of the process.
    Look,
}

/// A file has no more pages than this.
const MOST_PAGES: u64 = 1 << 52;

impl EventKind {
    /// Whether the pages can be pages of a file.
    pub(crate) fn is_possible(&self) -> bool {
        match *self {
            EventKind::Read { first, last, .. } | EventKind::Around { first, last, .. } => {
                first <= last && last < MOST_PAGES
            }
            EventKind::Fault { page, .. } | EventKind::Add { page, .. } | EventKind::Delete { page, .. } => {
                page < MOST_PAGES
            }
            // At the end of a file nothing is read.
            EventKind::Begin { bytes: 0, .. } => false,
            EventKind::Write { pos, bytes, .. } | EventKind::Begin { pos, bytes, .. } => {
                pos.checked_add(bytes).is_some_and(|end| end < MOST_PAGES << 11)
            }
            _ => true,
        }
    }
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Nanoseconds of the clock CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The number of its memory cgroup; of the first version only programs in the kernel know it.
    /// 0: not known.
    pub cgroup: u64,
    /// Event itself.
    pub kind: EventKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Begin,
    Write,
    Fault,
    Around,
    Address,
    Add,
    Delete,
    ReclaimBegin,
    ReclaimEnd,
    Freed,
    Advise,
    ReadAhead,
    AdviseMemory,
    Sync,
    Direct,
    DirectStep,
}

/// Number of `POSIX_FADV_WILLNEED` in `posix_fadvise`, which `readahead` is, too.
const WILL_NEED: u64 = 3;

/// Part of a recording that is lost when the kernel does not have an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Reads by descriptor and the page cache: nothing is recorded without.
    Cache,
    /// Writes by descriptor; each file system has an event of its own.
    Writes,
    /// Faults on mapped files.
    Faults,
    /// Evictions are told from truncation by it.
    Reclaim,
    /// Deleted files.
    Deletion,
    /// Advice of programs on how they will use files and mapped memory.
    Advice,
    /// When programs have files written; each file system has an event of its own.
    Syncs,
    /// Reads and writes that bypass the page cache.
    Direct,
}

impl Feature {
    /// Consequence of its absence, in words.
    pub fn consequence(self) -> &'static str {
        match self {
            Feature::Cache => "nothing can be recorded",
            Feature::Writes => "writes by descriptor on that file system are not recorded",
            Feature::Faults => "faults on mapped files are not recorded, or not exactly",
            Feature::Reclaim => "some evictions may be taken for truncations",
            Feature::Advice => "what programs announce of their accesses that way is not replayed",
            Feature::Syncs => "what programs have written on that file system (fsync) stays dirty in the lab",
            Feature::Direct => "reads and writes that bypass the page cache (O_DIRECT) are not counted",
            Feature::Deletion => "a deleted file on ext4 may be taken for the next with its number",
        }
    }
}

/// An event that recording uses, and whether this kernel has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventSupport {
    /// Its name, such as `filemap/mm_filemap_get_pages`.
    pub event: &'static str,
    /// Part of the recording that it serves.
    pub feature: Feature,
    /// Whether the kernel has it.
    pub is_there: bool,
    /// Whether a probe can stand for it.
    pub has_probe: bool,
}

/// All events that recording uses.
///
/// # Errors
/// tracefs is not mounted, or may not be read.
pub fn survey(tracefs: &Tracefs) -> Result<Vec<EventSupport>, String> {
    let known = |source: &Source| {
        let is_there = tracefs.format(source.event)?.is_some();
        let has_probe = matches!(source.kind, Kind::Read | Kind::Fault | Kind::Around);
        Ok(EventSupport { event: source.event, feature: source.feature, is_there, has_probe })
    };
    SOURCES.iter().map(known).collect()
}

/// Whether the kernel lacks what probes stand for.
pub(crate) fn wants_probes(tracefs: &Tracefs) -> Result<bool, String> {
    Ok(tracefs.format(SOURCES[0].event)?.is_none())
}

/// Layout of one event in its raw data.
#[derive(Clone, Copy, Debug)]
struct Layout {
    kind: Kind,
    inode: Option<(EventField, EventField)>,
    first: Option<EventField>,
    second: Option<EventField>,
    range: Option<(EventField, EventField)>,
    /// The bit of its flags that says that it writes.
    write: u64,
}

/// Turns raw data into events.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    /// Layouts by number of the event.
    layouts: Vec<Option<Layout>>,
    /// The parts that there is an event of, in the order of [`SOURCES`].
    parts: Vec<Feature>,
    /// Filters of events, by their number, as the kernel takes them.
    filters: Vec<(u16, String)>,
    /// Pages by which the last index of a read is beyond its last page.
    pub last_beyond: u64,
    /// Pages whose events are wanted; none: all.
    sample: Option<SpaceSample>,
}

impl Decoder {
    /// Looks up what this kernel has, and the probes of a group. Without the events of the page
    /// cache there is an error. Events in `told` are told by programs in the kernel.
    pub(crate) fn new(
        tracefs: &Tracefs,
        probes: Option<&str>,
        sample: Option<SpaceSample>,
        told: &[&str],
    ) -> Result<Decoder, String> {
        let mut decoder = Decoder { sample, ..Decoder::default() };
        for source in &PROBED {
            let Some(group) = probes else { break };
            let event = format!("{group}/{}", source.event);
            let format = tracefs.format(&event)?.ok_or_else(|| format!("the probe {event} is gone"))?;
            decoder.learn(source, &format)?;
        }
        for source in &SOURCES {
            if told.contains(&source.event) {
                decoder.parts.push(source.feature);
                continue;
            }
            let Some(format) = tracefs.format(source.event)? else {
                if source.feature == Feature::Cache && (probes.is_none() || source.kind != Kind::Read) {
                    return Err(format!(
                        "this kernel has no event {}: recording takes Linux 6.12 or later with tracepoints \
                         (uname -r: {})",
                        source.event,
                        release()
                    ));
                }
                continue;
            };
            decoder.learn(source, &format)?;
        }
        Ok(decoder)
    }

    fn learn(&mut self, source: &Source, format: &EventFormat) -> Result<(), String> {
        if let Some(sample) = self.sample {
            if !filter::is_wanted(source.kind, source.feature) {
                return Ok(());
            }
            let inode = format.name(&["i_ino", "ino"]).unwrap_or_default();
            let [begin, length] = source.range;
            let first = format.name(if begin.is_empty() { source.first } else { std::slice::from_ref(&begin) });
            let second = format.name(if length.is_empty() { source.second } else { std::slice::from_ref(&length) });
            let (first, second) = (first.unwrap_or_default(), second.unwrap_or_default());
            let filter = filter::filter(source.kind, sample, filter::Fields { inode, first, second });
            self.filters.extend(filter.map(|filter| (format.id, filter)));
        }
        if source.kind == Kind::DirectStep {
            // The bits of flags are others in other kernels: without the name of one nothing is
            // known.
            let Some((_, direct)) = format.bit("WRITE").zip(format.bit("DIRECT")) else { return Ok(()) };
            // Some file systems have this event of all that they do.
            self.filters.push((format.id, format!("flags & {direct}")));
        }
        let layout = layout(source, format).ok_or_else(|| format!("{}: fields are missing", source.event))?;
        self.add(format.id, layout);
        self.parts.push(source.feature);
        Ok(())
    }

    fn add(&mut self, id: u16, layout: Layout) {
        let at = usize::from(id);
        if self.layouts.len() <= at {
            self.layouts.resize(at + 1, None);
        }
        self.layouts[at] = Some(layout);
    }

    /// The numbers of all events.
    pub fn ids(&self) -> impl Iterator<Item = u16> {
        self.layouts.iter().enumerate().filter(|(_, layout)| layout.is_some()).map(|(id, _)| id as u16)
    }

    /// Filter of an event, as the kernel takes it; `None`: all are wanted.
    pub(crate) fn filter(&self, id: u16) -> Option<&str> {
        self.filters.iter().find(|(of, _)| *of == id).map(|(_, filter)| filter.as_str())
    }

    /// Events of pages and of deleted files alone.
    pub(crate) fn of_pages(mut self) -> Decoder {
        let is_of_pages = |kind: Kind| {
            let pages = [Kind::Read, Kind::Begin, Kind::Write, Kind::Fault, Kind::Around, Kind::Add, Kind::Delete];
            pages.contains(&kind) || kind == Kind::Freed
        };
        self.layouts.iter_mut().for_each(|layout| *layout = layout.filter(|layout| is_of_pages(layout.kind)));
        self
    }

    /// The same events, of one thread alone and of all pages.
    pub(crate) fn of_thread(&self, tid: u32) -> Decoder {
        let filters = self.ids().map(|id| (id, format!("common_pid == {tid}"))).collect();
        Decoder { filters, ..self.clone() }
    }

    /// Whether events beyond what a filter lets through are more than can be taken.
    pub(crate) fn is_filtered(&self) -> bool {
        self.sample.is_some()
    }

    /// Whether there is an event of a part.
    pub fn has(&self, feature: Feature) -> bool {
        self.parts.contains(&feature)
    }

    /// Decodes raw data; `None`: they are not of these events, or cut.
    #[inline]
    pub fn decode(&self, raw: &[u8]) -> Option<EventKind> {
        let id = u16::from_ne_bytes([*raw.first()?, *raw.get(1)?]);
        let layout = self.layouts.get(usize::from(id))?.as_ref()?;
        let number = |field: Option<EventField>| field?.read(raw);
        let inode = || {
            let (dev, ino) = layout.inode?;
            Some(Inode { dev: dev.read(raw)? as u32, ino: ino.read(raw)? })
        };
        let range = || layout.range.and_then(|(first, length)| first.read(raw).zip(length.read(raw)));
        Some(match layout.kind {
            Kind::Read => {
                let first = number(layout.first)?;
                let last = number(layout.second)?.saturating_sub(self.last_beyond).max(first);
                EventKind::Read { inode: inode()?, first, last }
            }
            Kind::Begin => {
                let ((pos, bytes), size) = (range()?, number(layout.first)?);
                EventKind::Begin { inode: inode()?, pos, bytes: bytes.min(size.saturating_sub(pos)) }
            }
            Kind::Write => {
                EventKind::Write { inode: inode()?, pos: number(layout.first)?, bytes: number(layout.second)? }
            }
            Kind::Fault => EventKind::Fault { inode: inode()?, page: number(layout.first)? },
            Kind::Around => {
                let first = number(layout.first)?;
                EventKind::Around { inode: inode()?, first, last: number(layout.second)?.max(first) }
            }
            Kind::Address => {
                // Bit 1 of what x86 says of a fault.
                let write = number(layout.second).is_some_and(|code| code & 2 != 0);
                EventKind::Address { address: number(layout.first)?, write }
            }
            Kind::Add | Kind::Delete => {
                let (inode, page) = (inode()?, number(layout.first)?);
                // Kernels without large folios in files do not say how large one is.
                let order = number(layout.second).unwrap_or(0).min(20) as u8;
                match layout.kind {
                    Kind::Add => EventKind::Add { inode, page, order },
                    _ => EventKind::Delete { inode, page, order },
                }
            }
            Kind::ReclaimBegin => EventKind::ReclaimBegin,
            Kind::ReclaimEnd => EventKind::ReclaimEnd,
            Kind::Sync => EventKind::Sync { inode: inode()? },
            Kind::Direct => EventKind::Direct { inode: inode()?, bytes: number(layout.first)? },
            Kind::DirectStep => {
                EventKind::DirectStep { inode: inode()?, write: number(layout.first)? & layout.write != 0 }
            }
            Kind::Freed => EventKind::Freed { inode: inode()? },
            Kind::Advise | Kind::ReadAhead => {
                let (offset, bytes) = range()?;
                let advice = if layout.kind == Kind::Advise { number(layout.second)? } else { WILL_NEED };
                EventKind::Advise { fd: number(layout.first)?, advice, offset, bytes }
            }
            Kind::AdviseMemory => {
                let (address, bytes) = range()?;
                EventKind::AdviseMemory { address, bytes, advice: number(layout.first)? }
            }
        })
    }
}

fn layout(source: &Source, format: &EventFormat) -> Option<Layout> {
    let inode = format.field(&["s_dev", "dev"]).zip(format.field(&["i_ino", "ino"]));
    let (first, second) = (format.field(source.first), format.field(source.second));
    let range = format.field(&source.range[..1]).zip(format.field(&source.range[1..]));
    let is_advice = matches!(source.kind, Kind::Advise | Kind::ReadAhead | Kind::AdviseMemory);
    let wants_inode = !is_advice && !matches!(source.kind, Kind::Address | Kind::ReclaimBegin | Kind::ReclaimEnd);
    let whole = (!wants_inode || inode.is_some())
        && (source.first.is_empty() || first.is_some())
        && (source.second.is_empty() || second.is_some() || source.second == OF_SOME)
        && (source.range == [""; 2] || range.is_some());
    let write = format.bit("WRITE").unwrap_or(0);
    whole.then_some(Layout { kind: source.kind, inode, first, second, range, write })
}

/// The release of the kernel.
pub fn release() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoder() -> Decoder {
        let format = |id: u16, fields: &str| EventFormat::parse(&format!("ID: {id}\n{fields}")).expect("a format");
        let read = format(
            7,
            "field:u64 i_ino;\toffset:8;\tsize:8;\nfield:dev_t s_dev;\toffset:16;\tsize:4;\n\
             field:u64 index;\toffset:24;\tsize:8;\nfield:u64 last_index;\toffset:32;\tsize:8;",
        );
        let mut decoder = Decoder::default();
        decoder.add(7, layout(&SOURCES[0], &read).expect("whole"));
        assert!(layout(&SOURCES[1], &read).is_some(), "an order may be missing");
        assert!(layout(&SOURCES[7], &read).is_none());
        decoder
    }

    fn raw(id: u16, ino: u64, dev: u32, first: u64, last: u64) -> Vec<u8> {
        let mut raw = vec![0; 40];
        raw[..2].copy_from_slice(&id.to_ne_bytes());
        raw[8..16].copy_from_slice(&ino.to_ne_bytes());
        raw[16..20].copy_from_slice(&dev.to_ne_bytes());
        raw[24..32].copy_from_slice(&first.to_ne_bytes());
        raw[32..].copy_from_slice(&last.to_ne_bytes());
        raw
    }

    #[test]
    fn a_read_is_decoded_by_its_layout() {
        let mut decoder = decoder();
        let inode = Inode { dev: 9, ino: 42 };
        assert_eq!(decoder.decode(&raw(7, 42, 9, 3, 5)), Some(EventKind::Read { inode, first: 3, last: 5 }));
        decoder.last_beyond = 1;
        assert_eq!(decoder.decode(&raw(7, 42, 9, 3, 5)), Some(EventKind::Read { inode, first: 3, last: 4 }));
        assert_eq!(decoder.decode(&raw(7, 42, 9, 3, 3)), Some(EventKind::Read { inode, first: 3, last: 3 }));
    }

    #[test]
    fn other_or_cut_data_are_nothing() {
        let decoder = decoder();
        assert_eq!(decoder.decode(&raw(8, 42, 9, 3, 5)), None);
        assert_eq!(decoder.decode(&raw(6, 42, 9, 3, 5)), None);
        let whole = raw(7, 42, 9, 3, 5);
        assert!((0..whole.len()).all(|length| decoder.decode(&whole[..length]).is_none()));
        assert_eq!(decoder.ids().collect::<Vec<_>>(), [7]);
    }
    #[test]
    fn what_programs_announce_is_decoded() {
        let parse = |fields: &str| EventFormat::parse(&format!("ID: 9\n{fields}")).expect("a format");
        let field = |name: &str, at: usize| format!("field:int {name};\toffset:{at};\tsize:8;\n");
        let mut raw = vec![0; 48];
        raw[..2].copy_from_slice(&9u16.to_ne_bytes());
        for (at, value) in [(16, 3u64), (24, 8192), (32, 4096), (40, 4)] {
            raw[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        let decoded = |event: &str, fields: &str| {
            let source = SOURCES.iter().find(|source| source.event == event).expect("known");
            let mut decoder = Decoder::default();
            decoder.add(9, layout(source, &parse(fields)).expect("whole"));
            assert!((0..40).all(|length| decoder.decode(&raw[..length]).is_none()));
            decoder.decode(&raw)
        };
        let fadvise = [field("fd", 16), field("offset", 24), field("len", 32), field("advice", 40)].concat();
        let want = EventKind::Advise { fd: 3, advice: 4, offset: 8192, bytes: 4096 };
        assert_eq!(decoded("syscalls/sys_enter_fadvise64", &fadvise), Some(want));
        let readahead = [field("fd", 16), field("offset", 24), field("count", 32)].concat();
        let want = EventKind::Advise { fd: 3, advice: WILL_NEED, offset: 8192, bytes: 4096 };
        assert_eq!(decoded("syscalls/sys_enter_readahead", &readahead), Some(want));
        let madvise = [field("start", 24), field("len_in", 32), field("behavior", 16)].concat();
        let want = EventKind::AdviseMemory { address: 8192, bytes: 4096, advice: 3 };
        assert_eq!(decoded("syscalls/sys_enter_madvise", &madvise), Some(want));
    }
    #[test]
    fn a_direct_write_is_told_from_a_read_by_the_bit_that_the_format_names() {
        let fields = [("dev", 8, 4), ("ino", 16, 8), ("length", 24, 8), ("flags", 32, 4)];
        let text: String =
            fields.map(|(name, at, size)| format!("field:u64 {name};\toffset:{at};\tsize:{size};\n")).concat();
        let flags = "print fmt: \"%s\", { (1 << 0), \"WRITE\" }, { (1 << 4), \"DIRECT\" }";
        let source = SOURCES.iter().find(|source| source.kind == Kind::DirectStep).expect("known");
        let mut decoder = Decoder::default();
        let nameless = EventFormat::parse(&format!("ID: 7\n{text}")).expect("a format");
        decoder.learn(source, &nameless).expect("left out");
        assert!(!decoder.has(Feature::Direct));
        decoder.learn(source, &EventFormat::parse(&format!("ID: 7\n{text}{flags}")).expect("a format")).expect("whole");
        assert_eq!(decoder.filter(7), Some("flags & 16"));
        let mut raw = vec![0; 36];
        (raw[0], raw[16]) = (7, 42);
        for (byte, write) in [(16, false), (17, true)] {
            raw[32] = byte;
            let inode = Inode { dev: 0, ino: 42 };
            assert_eq!(decoder.decode(&raw), Some(EventKind::DirectStep { inode, write }));
        }
    }
    #[test]
    fn a_read_that_begins_ends_with_the_file() {
        let fields = [("i_ino", 8, 8), ("s_dev", 16, 4), ("pos", 20, 8), ("bytes", 28, 8), ("size", 36, 8)];
        let text: String =
            fields.map(|(name, at, size)| format!("field:u64 {name};\toffset:{at};\tsize:{size};\n")).concat();
        let mut decoder = Decoder::default();
        decoder.learn(&PROBED[0], &EventFormat::parse(&format!("ID: 7\n{text}")).expect("a format")).expect("whole");
        let decoded = |pos: u64, bytes: u64| {
            let mut raw = vec![0; 44];
            raw[..2].copy_from_slice(&7u16.to_ne_bytes());
            raw[8] = 42;
            for (at, value) in [(20, pos), (28, bytes), (36, 5000)] {
                raw[at..at + 8].copy_from_slice(&value.to_ne_bytes());
            }
            decoder.decode(&raw).expect("known")
        };
        let inode = Inode { dev: 0, ino: 42 };
        assert_eq!(decoded(4096, 100), EventKind::Begin { inode, pos: 4096, bytes: 100 });
        assert_eq!(decoded(4096, 1 << 20), EventKind::Begin { inode, pos: 4096, bytes: 904 });
        assert!(decoded(4096, 1).is_possible() && !decoded(5000, 1 << 20).is_possible());
    }
}
