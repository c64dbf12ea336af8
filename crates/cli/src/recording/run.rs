//! The engine, fed with a recording as the kernel was.

use super::cache::Cache;
use super::count::{Compared, Costs};
use super::length::Lengths;
use super::load::Loaded;
use super::reads::{OfKernel, OfLab};
use super::settings::Settings;
use super::start::Start;
use crate::replay::cell::Cell;
use crate::replay::machine::{EXECUTABLE, MAPPED};
use refault_mm::{AccessAdvice, Advice, Counter, MappingId, MemcgLimits, PageId, Readahead, Touch};
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
    /// Ids of pages that stand for what was in memory at the start and is not known.
    stand_ins: Range<u32>,
    /// Pages that were accessed.
    touched: Vec<bool>,
    /// Whether the recording says of each page that is not in memory that it would not be there in
    /// this size, either.
    is_settled: bool,
    /// Pages that were reclaimed on the way to the state at the start.
    stolen_before: u64,
    /// What the kernel reads from disks.
    kernel_reads: OfKernel,
    compared: Compared,
}

/// Replays the recording, and compares every access.
pub(crate) fn run(loaded: &Loaded, settings: &Settings) -> Result<Compared, String> {
    let limit = settings.memory_pages.unwrap_or(u64::MAX);
    // A warm service has come to where it is in the limit that it had then.
    let recorded = loaded.recording.memory_max.map(|bytes| bytes / 4096);
    let first_limit = recorded.filter(|_| loaded.start.is_warm).unwrap_or(limit);
    let mut cell = Cell::empty(settings.config.clone(), first_limit, u64::MAX, OfLab::new(loaded))?;
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
    let stand_ins = next..next.saturating_add(u32::try_from(loaded.start.stand_ins).unwrap_or(u32::MAX >> 1));
    if !stand_ins.is_empty() {
        cell.add_file(0..loaded.start.stand_ins, 0)?;
    }
    cell.end_of_objects();
    let compared = Compared::new(loaded);
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
        stand_ins,
        touched: vec![false; next as usize],
        stolen_before: 0,
        is_settled: !settings.is_larger_than_recorded(loaded),
        kernel_reads: OfKernel::new(loaded),
        compared,
    };
    for (object, info) in (0..).zip(&loaded.objects) {
        run.set_length(object, info.first_pages);
    }
    let mut snapshots = loaded.recording.series.snapshots.iter().peekable();
    // The first look at the group came before the program ran.
    if let Some(snapshot) = snapshots.peek().filter(|_| loaded.start.is_warm) {
        run.charge(snapshot)?;
    }
    run.warm();
    if first_limit != limit {
        run.set_limit(limit)?;
    }
    let before = run.cell.engine.vmstat();
    run.stolen_before = before.get(Counter::PgstealFile);
    for record in &loaded.records {
        while let Some(snapshot) = snapshots.next_if(|s| s.time_ns <= record.time_ns) {
            run.cell.engine.set_now_ns(snapshot.time_ns);
            run.cell.engine.flush_memcg_stats(run.cell.group);
            run.charge(snapshot)?;
        }
        run.cell.engine.set_now_ns(record.time_ns);
        run.cell.engine.flush_expired(&mut run.cell.machine);
        run.take(record);
    }
    // Programs also grow when they do not look at files any more.
    snapshots.try_for_each(|snapshot| run.charge(snapshot))?;
    run.compared.is_out_of_memory |= run.cell.machine.oom.is_some();
    let after = run.cell.engine.vmstat();
    let since = after.iter().zip(before.iter()).map(|((name, after), (_, before))| (name.to_owned(), after - before));
    run.compared.ours = since.collect();
    (run.compared.kernel_reads, run.compared.lab_reads) = (run.kernel_reads.total(), run.cell.machine.observer.total());
    Ok(run.compared)
}

impl Run<'_> {
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

    /// The group is charged for what it had besides files. Where that alone is more than the limit,
    /// no page of a file that is dropped makes room for it.
    fn charge(&mut self, snapshot: &Snapshot) -> Result<(), String> {
        let Some(pages) = self.loaded.besides_files_at(snapshot).filter(|_| !self.settings.files_only) else {
            return Ok(());
        };
        self.compared.is_out_of_memory |= self.settings.memory_pages.is_some_and(|limit| pages > limit);
        self.cell.engine.set_memcg_external_pages(self.cell.group, pages)
    }

    /// Brings in pages that the group had had before the recording and had lost by then: what follows
    /// drives them out, and leaves their shadows.
    fn bring_in_the_evicted(&mut self) {
        for &(object, page) in &self.loaded.start.evicted {
            if let Some(id) = self.id(object, page) {
                self.bring_in(id, false);
            }
        }
    }

    /// Brings in what was in memory before the recording, if the group is charged for it.
    fn warm(&mut self) {
        self.bring_in_the_evicted();
        let Start { pages, is_own, active, stand_ins, .. } = &self.loaded.start;
        let mut by_touches: Vec<_> = pages.iter().map(|page| page.touches).collect();
        by_touches.sort_unstable_by_key(|&touches| std::cmp::Reverse(touches));
        // The pages that are used most are the active ones; pages that nobody used come after them.
        let active = active.unwrap_or(0);
        let least = by_touches.get(active.saturating_sub(1) as usize).copied().unwrap_or(0).max(2);
        let known_active = pages.iter().filter(|page| active > 0 && page.touches >= least).count() as u64;
        let mut idle_active = active.saturating_sub(known_active).min(*stand_ins);
        let first_touched = pages.partition_point(|page| page.touches == 0);
        for (at, resident) in pages.iter().enumerate() {
            if at == first_touched {
                self.bring_in_stand_ins(&mut idle_active);
            }
            let Some(id) = self.id(resident.object, resident.page) else { continue };
            self.cache.set(id..id + 1, true);
            if *is_own {
                self.bring_in(id, active > 0 && resident.touches >= least);
            } else {
                self.elsewhere.insert(id);
            }
        }
        if first_touched == pages.len() {
            self.bring_in_stand_ins(&mut idle_active);
        }
        self.compared.warm = pages.len() as u64;
    }

    fn set_limit(&mut self, pages: u64) -> Result<(), String> {
        let Cell { engine, machine, group, .. } = &mut self.cell;
        let limits = MemcgLimits { max: pages, ..engine.memcg_limits(*group) };
        engine.set_memcg_limits(machine, *group, &limits)?;
        Ok(())
    }

    fn bring_in_stand_ins(&mut self, active: &mut u64) {
        for id in self.stand_ins.clone() {
            self.bring_in(id, *active > 0);
            *active = active.saturating_sub(1);
        }
    }

    fn bring_in(&mut self, id: u32, is_active: bool) {
        for _ in 0..1 + u32::from(is_active) * 2 {
            self.cell.step(PackedAccess::new(id, false, Via::Fd, false));
        }
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
        let mut missed_before = false;
        for i in 0..record.pages {
            let page = record.page + u64::from(i);
            let Some(id) = self.id(record.object, page) else { continue };
            let is_first = !std::mem::replace(&mut self.touched[id as usize], true);
            let before = (is_first && !self.is_settled).then(|| self.costs());
            let missed = self.access(record, page, id, record.pages - i);
            // Pages that are missing one after the other are read together: one wait, as the kernel
            // counts them.
            let ours = missed && !missed_before;
            missed_before = missed;
            self.compared.access(record.time_ns, record.object, via, record.act == Act::Miss && i == 0, ours);
            self.settle(before, missed, ours);
        }
    }

    /// One access to a page; true: the lab did not have it.
    fn access(&mut self, record: &Record, page: u64, id: u32, asked: u32) -> bool {
        match (record.op.via.unwrap_or(Via::Fd), record.op.write) {
            _ if self.elsewhere.contains(&id) => false,
            (Via::Map, write) if self.faults(id, write) => self.fault(record, id),
            (Via::Map, write) => !self.cell.step(PackedAccess::new(id, write, Via::Map, false)),
            (Via::Fd, false) => self.read(record, page, id, asked),
            (Via::Fd, true) => self.write(id, asked),
        }
    }

    /// Refaults and pages read so far: an access may cost some of both.
    fn costs(&self) -> Costs {
        let refaults = self.cell.engine.vmstat().get(Counter::WorkingsetRefaultFile);
        Costs { refaults, read_pages: self.cell.machine.observer.total().read_pages, misses: 0 }
    }

    /// Notes whether the recording leaves open that an access that missed would have hit in this
    /// size: the first one (`before` says what was spent by then) to a page that was not in memory
    /// when the recording of a warm service began, in a size that would have held more. From the
    /// moment at which the engine has filled that size it does not: the page was out of use for
    /// longer than anything that is in memory then.
    fn settle(&mut self, before: Option<Costs>, missed: bool, ours: bool) {
        if !self.is_settled && missed {
            self.is_settled = self.cell.engine.vmstat().get(Counter::PgstealFile) > self.stolen_before;
        }
        if let Some(before) = before.filter(|_| missed && !self.is_settled) {
            let spent = self.costs() - before;
            self.compared.open += Costs { misses: u64::from(ours), ..spent };
        }
        if self.is_settled {
            self.compared.settled.0 += 1;
            self.compared.settled.1 += u64::from(ours);
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
