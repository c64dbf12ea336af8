//! The engine, fed with a recording as the kernel was.

use super::cache::Cache;
use super::calls::CallPart;
use super::count::Compared;
use super::in_use::InUse;
use super::length::Lengths;
use super::load::LoadedRecording;
use super::machine::RecordObserver;
use super::reads::{KernelReads, OfLab};
use super::settings::Settings;
use crate::replay::cell::Cell;
use crate::replay::{DiskReads, EngineFigures};
use refault_mm::{AccessAdvice, Counter, Engine, MappingId, MemcgId, PageId, Readahead, Stats};
use refault_trace::{AdviceKind, PackedAccess, Record, RecordKind, Snapshot, Via};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// State of a descriptor: there is one for each file and thread.
pub(super) struct Descriptor {
    pub(super) readahead: Readahead,
    /// The page that was read last.
    pub(super) last: Option<u64>,
    /// The last page of the call so far was missing.
    pub(super) missed: bool,
}

pub(super) struct Run<'a> {
    pub(super) loaded: &'a LoadedRecording,
    pub(super) settings: &'a Settings,
    pub(super) cell: Cell<OfLab>,
    /// Id of the object's first page, and its mapping in the engine; by object.
    pub(super) first: Vec<u32>,
    pub(super) mappings: Vec<Option<MappingId>>,
    pub(super) descriptors: HashMap<(u32, u32), Descriptor>,
    /// Readahead state of mapped files, by object: threads share a mapping, and a recording does
    /// not say which threads are of one process.
    pub(super) mapped: HashMap<u32, Readahead>,
    /// Advice of programs on how they will read a file, by object.
    pub(super) advice: HashMap<u32, AccessAdvice>,
    /// The same of pages where they are mapped, by object; the last holds.
    pub(super) mapped_advice: HashMap<u32, Vec<(Range<u64>, AccessAdvice)>>,
    /// Page cache of the kernel.
    pub(super) cache: Cache,
    /// Lengths of files over time.
    pub(super) lengths: Lengths,
    /// Pages in memory that another group is charged for: there until the kernel removes them.
    pub(super) elsewhere: HashSet<u32>,
    /// Ids of pages that stand for what was in memory at the start and is not known.
    pub(super) stand_ins: Range<u32>,
    /// Pages that were accessed.
    pub(super) touched: Vec<bool>,
    /// Whether the recording shows of every page not in memory that this size would not have the
    /// page, either.
    pub(super) is_settled: bool,
    /// Pages that were reclaimed on the way to the state at the start.
    pub(super) stolen_before: u64,
    /// Reads of the kernel from disks.
    pub(super) kernel_reads: KernelReads,
    /// Touches of mapped pages; none: as recorded, which is their faults alone.
    pub(super) in_use: Option<InUse>,
    /// Whether the row is of a stream that comes into a unit of a sample.
    pub(super) is_stream: bool,
    /// Units of a sample that were accessed.
    pub(super) units: HashSet<(u32, u64)>,
    /// When accesses begin to count.
    pub(super) warm_up_ns: u64,
    pub(super) before: CountersBefore,
    pub(super) compared: Compared,
}

/// Counters at the moment when the comparison begins.
#[derive(Default)]
pub(super) struct CountersBefore {
    vmstat: Stats,
    /// Disk reads of the kernel, and of the lab.
    reads: (DiskReads, DiskReads),
}

/// Replays the recording, and compares every access.
pub fn run(loaded: &LoadedRecording, settings: &Settings) -> Result<Compared, String> {
    run_with(loaded, settings, &|_, _| Ok(()), &mut |_, _, _| {})
}

/// The same, with something done to the engine and the group before it begins, and someone who
/// looks at them after each record.
pub(super) fn run_with(
    loaded: &LoadedRecording,
    settings: &Settings,
    attach: &dyn Fn(&mut Engine, MemcgId) -> Result<(), String>,
    after: &mut RecordObserver<'_>,
) -> Result<Compared, String> {
    let mut run = Run::new(loaded, settings)?;
    attach(&mut run.cell.engine, run.cell.group)?;
    run.check_room();
    let mut snapshots = loaded.recording.series.snapshots.iter().peekable();
    if !run.compared.is_out_of_memory {
        // The first look at the group came before the program ran.
        run.begin(snapshots.peek().copied())?;
    }
    for (at, (record, &part)) in loaded.records.iter().zip(&loaded.parts).enumerate() {
        run.is_stream = loaded.streams.get(at).copied().unwrap_or(false);
        run.end_warm_up(record.time_ns);
        if run.compared.is_out_of_memory {
            run.count_kernel(record);
            continue;
        }
        while let Some(snapshot) = snapshots.next_if(|s| s.time_ns <= record.time_ns) {
            run.cell.engine.set_now_ns(snapshot.time_ns);
            run.cell.engine.flush_memcg_stats(run.cell.group);
            run.charge(snapshot)?;
        }
        run.cell.engine.set_now_ns(record.time_ns);
        run.cell.engine.flush_expired(&mut run.cell.machine);
        run.take(record, part);
        run.touch_mapped();
        run.note_oom();
        after(&run.cell.engine, run.cell.group, run.compared.total.accesses);
    }
    // Programs also grow when they do not look at files any more.
    snapshots.try_for_each(|snapshot| run.charge(snapshot))?;
    run.note_oom();
    Ok(run.end())
}

impl<'a> Run<'a> {
    fn new(loaded: &'a LoadedRecording, settings: &'a Settings) -> Result<Run<'a>, String> {
        let first_limit = settings.first_limit(loaded);
        let config = loaded.scaled(settings.config.clone(), settings.memory_pages.unwrap_or(u64::MAX));
        let mut cell = Cell::empty(config, loaded.part(first_limit), u64::MAX, OfLab::new(loaded))?;
        let (mut first, mut mappings) = (Vec::new(), Vec::new());
        let mut next = 0;
        for (file, info) in loaded.files.iter().zip(&loaded.objects) {
            first.push(next);
            mappings.push(None);
            if file.indices().next().is_some() {
                next = cell.add_file(file.indices(), settings.file_order(info))?;
                mappings.pop();
                mappings.push(cell.last_mapping());
            }
        }
        let mut stand_ins = next..next;
        if loaded.start.stand_ins > 0 {
            stand_ins.end = cell.add_file(0..loaded.start.stand_ins, 0)?;
        }
        cell.end_of_objects();
        let warm_up_ns = settings.warm_up.end_ns(loaded);
        let mut run = Run {
            loaded,
            settings,
            cell,
            first,
            mappings,
            descriptors: HashMap::new(),
            mapped: HashMap::new(),
            advice: HashMap::new(),
            mapped_advice: HashMap::new(),
            cache: Cache::new(next as usize),
            lengths: Lengths::new(&loaded.objects),
            elsewhere: HashSet::new(),
            stand_ins,
            touched: vec![false; next as usize],
            is_settled: !settings.is_larger_than_recorded(loaded),
            stolen_before: 0,
            kernel_reads: KernelReads::new(loaded),
            in_use: settings.mapped_in_use.then(|| InUse::new(loaded.part(first_limit))),
            is_stream: false,
            units: HashSet::new(),
            warm_up_ns,
            before: CountersBefore::default(),
            compared: Compared::new(loaded, &settings.keep, warm_up_ns),
        };
        for (object, info) in (0..).zip(&loaded.objects) {
            run.set_length(object, info.first_pages);
        }
        Ok(run)
    }

    /// Brings memory into the state that it had when the recording began, then sets the limit that
    /// is tried.
    fn begin(&mut self, snapshot: Option<&Snapshot>) -> Result<(), String> {
        if let Some(snapshot) = snapshot.filter(|_| self.loaded.start.is_warm) {
            self.charge(snapshot)?;
        }
        self.warm();
        if let Some(limit) = self.settings.limit_after_start(self.loaded) {
            self.set_limit(limit)?;
        }
        self.stolen_before = self.cell.engine.vmstat().get(Counter::PgstealFile);
        self.note_counters();
        Ok(())
    }

    /// Counters so far are of the time that is not compared.
    fn note_counters(&mut self) {
        let reads = (self.kernel_reads.total(), self.cell.machine.observer.total());
        self.before = CountersBefore { vmstat: self.cell.engine.vmstat(), reads };
    }

    /// From the time on at which the warm-up ends accesses count.
    fn end_warm_up(&mut self, now_ns: u64) {
        if !self.compared.is_measured && now_ns >= self.warm_up_ns {
            self.compared.is_measured = true;
            self.note_counters();
        }
    }

    fn end(mut self) -> Compared {
        let CountersBefore { vmstat, reads } = &self.before;
        let lru_gen = self.settings.keep.lru_gen;
        let mut inside = EngineFigures::of(&self.cell, &self.settings.config, self.settings.kernel, lru_gen);
        inside.counters = inside.counters.since(vmstat);
        self.compared.ours = inside.counters.iter().map(|(name, value)| (name.to_owned(), value)).collect();
        self.compared.inside = Some(inside);
        self.compared.kernel_reads = self.kernel_reads.total() - reads.0;
        self.compared.lab_reads = self.cell.machine.observer.total() - reads.1;
        self.compared.stand_for(self.loaded.one_in());
        self.add_counted();
        self.compared
    }
}

impl Run<'_> {
    /// Memory of the group besides files does not fit at some time: nothing need be replayed to
    /// know that, since no page of a file that is dropped makes room for it.
    fn check_room(&mut self) {
        let besides = self.loaded.besides_files_pages();
        let is_beyond = self.settings.memory_pages.is_some_and(|limit| besides > limit);
        self.compared.is_out_of_memory = is_beyond && !self.settings.files_only;
    }

    fn note_oom(&mut self) {
        if !self.compared.is_out_of_memory {
            self.compared.is_out_of_memory = self.cell.machine.oom.is_some();
            self.compared.replayed = self.compared.total.accesses;
        }
    }

    /// Counts what the kernel did, once the lab is out of memory and does nothing any more.
    fn count_kernel(&mut self, record: &Record) {
        self.kernel_reads.take(record, self.lengths.of(record.object));
        self.lengths.reached(record);
        match record.kind {
            RecordKind::Drop => {
                let passed = self.cache.passed_dropping(record);
                self.lengths.dropped(record, passed.start);
            }
            RecordKind::Advise(advised) => {
                self.cache.end_pass(record.task);
                if advised == AdviceKind::DontNeed {
                    self.lengths.gives_up(record);
                }
            }
            RecordKind::Touch | RecordKind::Hit | RecordKind::Miss => {
                self.cache.end_pass(record.task);
                let (via, missed) = (record.op.via.unwrap_or(Via::Fd), record.kind == RecordKind::Miss);
                for i in 0..record.pages {
                    self.compared.access(record.time_ns, record.object, via, missed && i == 0, false);
                }
            }
            _ => {}
        }
        self.compared.count(record, 0);
    }

    pub(super) fn id(&self, object: u32, page: u64) -> Option<u32> {
        Some(self.first[object as usize] + self.loaded.files[object as usize].place(page)? as u32)
    }

    /// Ids of the pages of a range that exist.
    pub(super) fn ids(&self, object: u32, pages: Range<u64>) -> Range<u32> {
        let first = self.first[object as usize];
        let places = self.loaded.files[object as usize].places(pages);
        first + places.start as u32..first + places.end as u32
    }

    pub(super) fn ids_of(&self, record: &Record) -> Range<u32> {
        self.ids(record.object, record.page..record.page.saturating_add(u64::from(record.pages)))
    }

    /// The group is charged for what it had besides files.
    fn charge(&mut self, snapshot: &Snapshot) -> Result<(), String> {
        let Some(pages) = self.loaded.besides_files_at(snapshot).filter(|_| !self.settings.files_only) else {
            return Ok(());
        };
        let pages = if pages == 0 { 0 } else { self.loaded.part(pages) };
        self.cell.engine.set_memcg_external_pages(self.cell.group, pages)
    }

    /// Readahead stops where a file ends at this time; none: as before.
    fn set_length(&mut self, object: u32, pages: Option<u64>) {
        if let (Some(pages), Some(mapping)) = (pages, self.mappings[object as usize]) {
            let end = self.ids(object, 0..pages).end;
            self.cell.engine.set_i_size(mapping, PageId(end));
        }
    }

    fn take(&mut self, record: &Record, part: CallPart) {
        self.kernel_reads.take(record, self.lengths.of(record.object));
        self.cell.machine.observer.take(record);
        let length = self.lengths.reached(record);
        self.set_length(record.object, length);
        let mut others = 0;
        match record.kind {
            RecordKind::Add => self.add(record),
            RecordKind::AddOther => self.add_other(record),
            RecordKind::Evict => {
                self.cache.set(self.ids_of(record), false);
                if !self.elsewhere.is_empty() {
                    others = self.ids_of(record).filter(|id| self.elsewhere.remove(id)).count() as u64;
                }
            }
            RecordKind::Drop => {
                let passed = self.cache.passed_dropping(record);
                let length = self.lengths.dropped(record, passed.start);
                self.set_length(record.object, length);
                self.drop_what_the_kernel_lacks(self.ids(record.object, passed));
                self.cache.set(self.ids_of(record), false);
                for id in self.ids_of(record) {
                    self.elsewhere.remove(&id);
                    self.drop_page(id);
                }
            }
            RecordKind::Advise(advised) => {
                self.cache.end_pass(record.task);
                self.advise(record, advised);
            }
            RecordKind::Sampled => self.sampled(record),
            RecordKind::Resident => {}
            RecordKind::Touch | RecordKind::Hit | RecordKind::Miss => {
                self.cache.end_pass(record.task);
                self.cache.set(self.ids_of(record), true);
                self.touch(record, part);
            }
        }
        self.compared.count(record, others);
    }

    /// Somebody else brings pages in, and is charged for them. A page that only the lab has stays
    /// with the group.
    fn add_other(&mut self, record: &Record) {
        let ids = self.ids_of(record);
        self.cache.set(ids.clone(), true);
        for id in ids.filter(|&id| self.cell.engine.folio_order(PageId(id)).is_none()) {
            self.elsewhere.insert(id);
        }
    }

    fn add(&mut self, record: &Record) {
        let passed = self.cache.passed_reading(record);
        self.cache.set(self.ids_of(record), true);
        if let Some(passed) = passed {
            // Pages that the kernel passed over were in memory there.
            for id in self.ids(record.object, passed) {
                if self.cache.has(id) {
                    self.read_ahead(id);
                }
            }
            self.ids_of(record).for_each(|id| self.read_ahead(id));
        } else if !self.loaded.files[record.object as usize].touched {
            // Pages of files that no program touched itself, such as folders and the block device:
            // additions by the kernel are all that is known of their use.
            for id in self.ids_of(record) {
                self.cell.step(PackedAccess::new(id, false, Via::Fd, false));
            }
        }
    }

    fn read_ahead(&mut self, id: u32) {
        let Cell { engine, machine, .. } = &mut self.cell;
        engine.will_need(machine, PageId(id), 1);
    }

    fn drop_page(&mut self, id: u32) {
        let Cell { engine, machine, .. } = &mut self.cell;
        engine.truncate_range(machine, PageId(id), 1);
    }

    pub(super) fn drop_what_the_kernel_lacks(&mut self, ids: Range<u32>) {
        for id in ids {
            if !self.cache.has(id) {
                self.drop_page(id);
            }
        }
    }
}
