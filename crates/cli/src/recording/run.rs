//! The engine, fed with a recording as the kernel was.

use super::cache::Cache;
use super::count::Compared;
use super::length::Lengths;
use super::load::Loaded;
use super::reads::{OfKernel, OfLab};
use super::settings::Settings;
use crate::replay::cell::Cell;
use crate::replay::machine::{EXECUTABLE, MAPPED};
use crate::replay::{After, EngineFigures};
use refault_mm::{AccessAdvice, Advice, Engine, MappingId, MemcgId, PageId, Readahead, Touch};
use refault_trace::{Act, Advised, PackedAccess, Record, Snapshot, Via};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// What is remembered of a descriptor: there is one for each file and thread.
struct Descriptor {
    readahead: Readahead,
    /// The page that was read last.
    last: Option<u64>,
}

struct Run<'a> {
    loaded: &'a Loaded,
    settings: &'a Settings,
    cell: Cell<OfLab>,
    /// By object: the id of its first page, and what the engine knows it by.
    first: Vec<u32>,
    mappings: Vec<Option<MappingId>>,
    descriptors: HashMap<(u32, u32), Descriptor>,
    /// What programs said of how they will read a file, by object.
    advice: HashMap<u32, AccessAdvice>,
    /// The same of pages where they are mapped, by object; the last holds.
    mapped_advice: HashMap<u32, Vec<(Range<u64>, AccessAdvice)>>,
    /// What the kernel has in memory.
    cache: Cache,
    /// How long files are.
    lengths: Lengths,
    /// Pages in memory that another group is charged for: there until the kernel removes them.
    elsewhere: HashSet<u32>,
    /// What the kernel reads from disks.
    kernel_reads: OfKernel,
    compared: Compared,
}

/// Replays the recording, and compares every access.
pub(crate) fn run(loaded: &Loaded, settings: &Settings) -> Result<Compared, String> {
    run_with(loaded, settings, &|_, _| Ok(()), &mut |_, _, _| {})
}

/// The same, with something done to the engine and the group before it begins, and someone who
/// looks at them after each record.
pub(super) fn run_with(
    loaded: &Loaded,
    settings: &Settings,
    attach: &dyn Fn(&mut Engine, MemcgId) -> Result<(), String>,
    after: &mut After<'_>,
) -> Result<Compared, String> {
    let mut cell =
        Cell::empty(settings.config.clone(), settings.memory_pages.unwrap_or(u64::MAX), u64::MAX, OfLab::new(loaded))?;
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
    cell.end_of_objects();
    attach(&mut cell.engine, cell.group)?;
    let compared = Compared::new(loaded, &settings.keep);
    let mut run = Run {
        loaded,
        settings,
        cell,
        first,
        mappings,
        descriptors: HashMap::new(),
        advice: HashMap::new(),
        mapped_advice: HashMap::new(),
        cache: Cache::new(next as usize),
        lengths: Lengths::new(&loaded.objects),
        elsewhere: HashSet::new(),
        kernel_reads: OfKernel::new(loaded),
        compared,
    };
    for (object, info) in (0..).zip(&loaded.objects) {
        run.set_length(object, info.first_pages);
    }
    let mut snapshots = loaded.recording.series.snapshots.iter().peekable();
    run.check_room();
    // The first look at the group came before the program ran.
    if !run.compared.is_out_of_memory {
        run.warm();
    }
    for record in &loaded.records {
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
        run.take(record);
        run.note_oom();
        after(&run.cell.engine, run.cell.group, run.compared.total.accesses);
    }
    // Programs also grow when they do not look at files any more.
    snapshots.try_for_each(|snapshot| run.charge(snapshot))?;
    run.note_oom();
    Ok(run.finish())
}

impl Run<'_> {
    /// What came of it.
    fn finish(mut self) -> Compared {
        self.compared.ours = self.cell.engine.vmstat().iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let settings = self.settings;
        let lru_gen = settings.keep.lru_gen;
        self.compared.inside = Some(EngineFigures::of(&self.cell, &settings.config, settings.kernel, lru_gen));
        (self.compared.kernel_reads, self.compared.lab_reads) =
            (self.kernel_reads.total(), self.cell.machine.observer.total());
        self.compared
    }

    /// What the group has besides files does not fit at some time: nothing need be replayed to know
    /// that, since no page of a file that is dropped makes room for it.
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
        match record.act {
            Act::Drop => {
                let passed = self.cache.passed_dropping(record);
                self.lengths.dropped(record, passed.start);
            }
            Act::Advise(advised) => {
                self.cache.end_pass(record.task);
                if advised == Advised::DontNeed {
                    self.lengths.gives_up(record);
                }
            }
            Act::Touch | Act::Hit | Act::Miss => {
                self.cache.end_pass(record.task);
                let (via, missed) = (record.op.via.unwrap_or(Via::Fd), record.act == Act::Miss);
                for i in 0..record.pages {
                    self.compared.access(record.time_ns, record.object, via, missed && i == 0, false);
                }
            }
            _ => {}
        }
        self.compared.count(record);
    }

    fn id(&self, object: u32, page: u64) -> Option<u32> {
        Some(self.first[object as usize] + self.loaded.files[object as usize].place(page)? as u32)
    }

    /// The ids of those of these pages that exist.
    fn ids(&self, object: u32, pages: Range<u64>) -> Range<u32> {
        let first = self.first[object as usize];
        let places = self.loaded.files[object as usize].places(pages);
        first + places.start as u32..first + places.end as u32
    }

    fn ids_of(&self, record: &Record) -> Range<u32> {
        self.ids(record.object, record.page..record.page.saturating_add(u64::from(record.pages)))
    }

    /// The group is charged for what it had besides files.
    fn charge(&mut self, snapshot: &Snapshot) -> Result<(), String> {
        let Some(pages) = self.loaded.besides_files_at(snapshot).filter(|_| !self.settings.files_only) else {
            return Ok(());
        };
        self.cell.engine.set_memcg_external_pages(self.cell.group, pages)
    }

    /// Brings in what was in memory before the recording, if the group is charged for it.
    fn warm(&mut self) {
        let is_own = self.loaded.is_warm_own();
        for &(object, page) in &self.loaded.warm {
            let Some(id) = self.id(object, page) else { continue };
            self.cache.set(id..id + 1, true);
            if is_own {
                self.cell.step(PackedAccess::new(id, false, Via::Fd, false));
            } else {
                self.elsewhere.insert(id);
            }
        }
        self.compared.warm = self.loaded.warm.len() as u64;
    }

    /// Readahead stops where a file ends at this time; none: as before.
    fn set_length(&mut self, object: u32, pages: Option<u64>) {
        if let (Some(pages), Some(mapping)) = (pages, self.mappings[object as usize]) {
            let end = self.ids(object, 0..pages).end;
            self.cell.engine.set_i_size(mapping, PageId(end));
        }
    }

    fn take(&mut self, record: &Record) {
        self.kernel_reads.take(record, self.lengths.of(record.object));
        self.cell.machine.observer.take(record);
        let length = self.lengths.reached(record);
        self.set_length(record.object, length);
        match record.act {
            Act::Add => self.add(record),
            Act::Evict => {
                self.cache.set(self.ids_of(record), false);
                if !self.elsewhere.is_empty() {
                    self.ids_of(record).for_each(|id| _ = self.elsewhere.remove(&id));
                }
            }
            Act::Drop => {
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
            Act::Advise(advised) => {
                self.cache.end_pass(record.task);
                self.advise(record, advised);
            }
            Act::Sampled => self.sampled(record),
            Act::Resident => {}
            Act::Touch | Act::Hit | Act::Miss => {
                self.cache.end_pass(record.task);
                self.cache.set(self.ids_of(record), true);
                self.touch(record);
            }
        }
        self.compared.count(record);
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
            // Of files that no program touched by themselves, such as folders and the block device:
            // that the kernel brings them in is all that is known of their use.
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

    fn drop_what_the_kernel_lacks(&mut self, ids: Range<u32>) {
        for id in ids {
            if !self.cache.has(id) {
                self.drop_page(id);
            }
        }
    }

    fn touch(&mut self, record: &Record) {
        let via = record.op.via.unwrap_or(Via::Fd);
        let reads = via == Via::Fd && !record.op.write;
        let mut missed_before = false;
        for i in 0..record.pages {
            let page = record.page + u64::from(i);
            let Some(id) = self.id(record.object, page) else { continue };
            let missed = match reads {
                _ if self.elsewhere.contains(&id) => false,
                false if via == Via::Map && self.faults(id, record.op.write) => self.fault(record, id),
                true => self.read(record, page, id, record.pages - i),
                false if via == Via::Fd => self.write(id, record.pages - i),
                false => !self.cell.step(PackedAccess::new(id, record.op.write, via, false)),
            };
            // Pages that are missing one after the other are read together: one wait, as the kernel
            // counts them.
            let ours = missed && !missed_before;
            missed_before = missed;
            self.compared.access(record.time_ns, record.object, via, record.act == Act::Miss && i == 0, ours);
        }
    }

    /// Touches of pages in place, seen by sampling: accessed bits. Where the lab does not have the
    /// page mapped it is a fault.
    fn sampled(&mut self, record: &Record) {
        for id in self.ids_of(record) {
            let is_hit =
                self.elsewhere.contains(&id) || self.cell.step(PackedAccess::new(id, record.op.write, Via::Map, false));
            self.compared.sampled.add(false, !is_hit);
        }
    }

    fn write(&mut self, id: u32, asked: u32) -> bool {
        let Cell { engine, machine, .. } = &mut self.cell;
        !engine.write_file(machine, PageId(id), asked).is_hit()
    }

    /// Whether the engine has to see a fault. The kernel had the page not mapped there. Where the
    /// lab has, the program mapped the file anew (a loader maps a library as a whole, and then its
    /// parts over it), or another one did: either way the page was touched twice if it was touched
    /// before.
    fn faults(&mut self, id: u32, writes: bool) -> bool {
        let Cell { engine, machine, .. } = &mut self.cell;
        let is_mapped = machine.pte[id as usize] & MAPPED != 0;
        if is_mapped && !writes {
            engine.unmap_range(machine, PageId(id), 1);
        }
        // The first write to a page that was read so far is no fault of the engine's.
        !is_mapped || !writes
    }

    /// A fault on a mapped file.
    fn fault(&mut self, record: &Record, id: u32) -> bool {
        let touch = if record.op.write { Touch::MapWrite } else { Touch::MapRead };
        let said = self.mapped_advice.get(&record.object).into_iter().flatten().rev();
        let said = said.filter(|(pages, _)| pages.contains(&record.page)).map(|(_, advice)| *advice).next();
        let advice = said.unwrap_or_default();
        let (cell, Descriptor { readahead, .. }) = self.descriptor(record);
        let outcome = cell.engine.fault_file(&mut cell.machine, PageId(id), touch, advice, readahead);
        !outcome.is_hit()
    }

    fn read(&mut self, record: &Record, page: u64, id: u32, asked: u32) -> bool {
        let (cell, descriptor) = self.descriptor(record);
        let goes_on = descriptor.last == Some(page);
        descriptor.last = Some(page);
        let touch = if goes_on { Touch::ReadOn } else { Touch::Read };
        !cell.engine.read_file(&mut cell.machine, PageId(id), asked, touch, &mut descriptor.readahead).is_hit()
    }

    fn advise(&mut self, record: &Record, advised: Advised) {
        let ids = self.ids_of(record);
        let (first, nr) = (PageId(ids.start), ids.end - ids.start);
        match advised {
            Advised::Normal => self.advise_file(record.object, AccessAdvice::Normal),
            Advised::Random => self.advise_file(record.object, AccessAdvice::Random),
            Advised::Sequential => self.advise_file(record.object, AccessAdvice::Sequential),
            Advised::NoReuse => self.advise_file(record.object, AccessAdvice::NoReuse),
            // What this changes in the kernel follows.
            Advised::WillNeed => self.cache.begin_reading(record),
            Advised::DontNeed => {
                self.lengths.gives_up(record);
                self.drop_what_the_kernel_lacks(ids);
                // What is dirty or mapped stays, as one of the next to go.
                self.cell.engine.advise_range(first, nr, Advice::DontNeed);
            }
            Advised::MapRandom => self.advise_mapped(record, AccessAdvice::Random),
            Advised::MapSequential => self.advise_mapped(record, AccessAdvice::Sequential),
            Advised::MapNormal => self.advise_mapped(record, AccessAdvice::Normal),
            Advised::MapExecutable => self.map_executable(ids),
            Advised::Sync => {
                if let Some(mapping) = self.mappings[record.object as usize] {
                    self.cell.engine.fsync(&mut self.cell.machine, mapping);
                }
            }
            Advised::Cold => self.cell.engine.advise_range(first, nr, Advice::Cold),
            Advised::PageOut => _ = self.cell.engine.page_out(&mut self.cell.machine, first, nr),
        }
    }

    /// A program maps pages as code. The first time that takes the place of what a loader mapped of
    /// them before.
    fn map_executable(&mut self, ids: Range<u32>) {
        let Cell { engine, machine, .. } = &mut self.cell;
        if ids.clone().all(|id| machine.pte[id as usize] & EXECUTABLE == 0) {
            engine.unmap_range(machine, PageId(ids.start), ids.end - ids.start);
        }
        let pages = &mut machine.pte[ids.start as usize..ids.end as usize];
        pages.iter_mut().for_each(|pte| *pte |= EXECUTABLE);
    }

    /// Who has the file open is not known: it holds for all.
    fn advise_file(&mut self, object: u32, advice: AccessAdvice) {
        self.advice.insert(object, advice);
        let of_file = self.descriptors.iter_mut().filter(|((of, _), _)| *of == object);
        of_file.for_each(|(_, descriptor)| descriptor.readahead.advise(advice));
    }

    fn advise_mapped(&mut self, record: &Record, advice: AccessAdvice) {
        let pages = record.page..record.page.saturating_add(u64::from(record.pages));
        // What reclaim makes of accessed bits the engine knows for a file as a whole.
        let file = &self.loaded.files[record.object as usize];
        if let Some(mapping) = self.mappings[record.object as usize]
            && file.indices().all(|page| pages.contains(&page))
        {
            self.cell.engine.advise_access(mapping, advice);
        }
        let all = self.mapped_advice.entry(record.object).or_default();
        all.retain(|(before, _)| before.start < pages.start || before.end > pages.end);
        all.push((pages, advice));
    }

    fn descriptor(&mut self, record: &Record) -> (&mut Cell<OfLab>, &mut Descriptor) {
        let file = &self.loaded.objects[record.object as usize];
        let opened = || {
            let mut readahead = self.settings.readahead(file);
            readahead.advise(self.advice.get(&record.object).copied().unwrap_or_default());
            Descriptor { readahead, last: None }
        };
        (&mut self.cell, self.descriptors.entry((record.object, record.task)).or_insert_with(opened))
    }
}
