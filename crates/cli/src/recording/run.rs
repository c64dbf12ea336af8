//! The engine, fed with a recording as the kernel was.

use super::count::Compared;
use super::load::Loaded;
use super::settings::Settings;
use crate::replay::cell::Cell;
use crate::replay::machine::MAPPED;
use refault_mm::{AccessAdvice, PageId, Readahead, Touch};
use refault_trace::{Act, Advised, PackedAccess, Record, Via};
use std::collections::{HashMap, HashSet};

/// What is remembered of a descriptor: there is one for each file and thread.
struct Descriptor {
    readahead: Readahead,
    /// The page that was read last.
    last: Option<u64>,
}

struct Run<'a> {
    loaded: &'a Loaded,
    settings: &'a Settings,
    cell: Cell,
    /// By object: the id of its first page.
    first: Vec<u32>,
    descriptors: HashMap<(u32, u32), Descriptor>,
    /// What programs said of how they will read a file, by object.
    advice: HashMap<u32, AccessAdvice>,
    /// Pages in memory that another group is charged for: there until the kernel removes them.
    elsewhere: HashSet<u32>,
    compared: Compared,
}

/// Replays the recording, and compares every access.
pub(crate) fn run(loaded: &Loaded, settings: &Settings) -> Result<Compared, String> {
    let mut cell = Cell::empty(settings.config.clone(), settings.memory_pages.unwrap_or(u64::MAX), u64::MAX, ())?;
    let mut first = Vec::new();
    let mut next = 0;
    for (file, info) in loaded.files.iter().zip(&loaded.objects) {
        first.push(next);
        if file.indices().next().is_some() {
            next = cell.add_file(file.indices(), settings.file_order(info))?;
        }
    }
    cell.end_of_objects();
    let compared = Compared::new(loaded);
    let mut run = Run {
        loaded,
        settings,
        cell,
        first,
        descriptors: HashMap::new(),
        advice: HashMap::new(),
        elsewhere: HashSet::new(),
        compared,
    };
    let series = &loaded.recording.series;
    let columns = (series.column("usage"), series.column("file"));
    let mut snapshots = series.snapshots.iter().peekable();
    // The first look at the group came before the program ran.
    let others = |values: &[u64]| match columns {
        (Some(usage), Some(file)) => values[usage].saturating_sub(values[file]) / 4096,
        _ => 0,
    };
    run.warm();
    for record in &loaded.records {
        while let Some(snapshot) = snapshots.next_if(|s| s.time_ns <= record.time_ns) {
            // A group that is gone has nothing.
            let is_there = columns.0.is_some_and(|usage| snapshot.values.get(usage).is_some_and(|&bytes| bytes > 0));
            if !settings.files_only && is_there && snapshot.values.len() == series.names.len() {
                run.cell.engine.set_memcg_external_pages(run.cell.group, others(&snapshot.values))?;
            }
        }
        run.cell.engine.set_now_ns(record.time_ns);
        run.take(record);
    }
    run.compared.is_out_of_memory = run.cell.machine.oom.is_some();
    run.compared.ours = run.cell.engine.vmstat().iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Ok(run.compared)
}

impl Run<'_> {
    fn id(&self, object: u32, page: u64) -> Option<u32> {
        Some(self.first[object as usize] + self.loaded.files[object as usize].place(page)? as u32)
    }

    /// Brings in what was in memory before the recording, if the group is charged for it.
    fn warm(&mut self) {
        let is_own = self.loaded.is_warm_own();
        for &(object, page) in &self.loaded.warm {
            let Some(id) = self.id(object, page) else { continue };
            if is_own {
                self.cell.step(PackedAccess::new(id, false, Via::Fd, false));
            } else {
                self.elsewhere.insert(id);
            }
        }
        self.compared.warm = self.loaded.warm.len() as u64;
    }

    fn take(&mut self, record: &Record) {
        match record.act {
            act if act.is_touch() => self.touch(record),
            Act::Advise(advised) => self.advise(record.object, advised),
            Act::Evict if !self.elsewhere.is_empty() => self.each(record, |run, id| {
                run.elsewhere.remove(&id);
            }),
            Act::Drop => self.each(record, |run, id| {
                run.elsewhere.remove(&id);
                run.cell.engine.truncate_range(&mut run.cell.machine, PageId(id), 1);
            }),
            // Of files that no program touched by themselves, such as folders and the block device:
            // that the kernel brings them in is all that is known of their use.
            Act::Add if !self.loaded.files[record.object as usize].touched => self.each(record, |run, id| {
                run.cell.step(PackedAccess::new(id, false, Via::Fd, false));
            }),
            _ => {}
        }
        self.compared.count(record);
    }

    fn each(&mut self, record: &Record, mut what: impl FnMut(&mut Self, u32)) {
        for page in record.page..record.page + u64::from(record.pages) {
            if let Some(id) = self.id(record.object, page) {
                what(self, id);
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
            let mapped = self.cell.machine.pte[id as usize] & MAPPED != 0;
            let missed = match reads {
                _ if self.elsewhere.contains(&id) => false,
                false if via == Via::Map && !mapped => self.fault(record, id),
                true => self.read(record, page, id, record.pages - i),
                false if via == Via::Fd => self.write(id, record.pages - i),
                false => !self.cell.step(PackedAccess::new(id, record.op.write, via, false)),
            };
            // Pages that are missing one after the other are read together: one wait, as the kernel
            // counts them.
            let ours = missed && !missed_before;
            missed_before = missed;
            self.compared.access(record.object, via, record.act == Act::Miss && i == 0, ours);
        }
    }

    fn write(&mut self, id: u32, asked: u32) -> bool {
        let Cell { engine, machine, .. } = &mut self.cell;
        !engine.write_file(machine, PageId(id), asked).is_hit()
    }

    /// A fault on a mapped file.
    fn fault(&mut self, record: &Record, id: u32) -> bool {
        let touch = if record.op.write { Touch::MapWrite } else { Touch::MapRead };
        let (cell, descriptor) = self.descriptor(record);
        !cell.engine.fault_file(&mut cell.machine, PageId(id), touch, &mut descriptor.readahead).is_hit()
    }

    fn read(&mut self, record: &Record, page: u64, id: u32, asked: u32) -> bool {
        let (cell, descriptor) = self.descriptor(record);
        let goes_on = descriptor.last == Some(page);
        descriptor.last = Some(page);
        let touch = if goes_on { Touch::ReadOn } else { Touch::Read };
        !cell.engine.read_file(&mut cell.machine, PageId(id), asked, touch, &mut descriptor.readahead).is_hit()
    }

    /// Who has the file open is not known: it holds for all.
    fn advise(&mut self, object: u32, advised: Advised) {
        let advice = match advised {
            Advised::Normal => AccessAdvice::Normal,
            Advised::Random => AccessAdvice::Random,
            Advised::Sequential => AccessAdvice::Sequential,
            Advised::NoReuse => AccessAdvice::NoReuse,
        };
        self.advice.insert(object, advice);
        let of_file = self.descriptors.iter_mut().filter(|((of, _), _)| *of == object);
        of_file.for_each(|(_, descriptor)| descriptor.readahead.advise(advice));
    }

    fn descriptor(&mut self, record: &Record) -> (&mut Cell, &mut Descriptor) {
        let file = &self.loaded.objects[record.object as usize];
        let opened = || {
            let mut readahead = self.settings.readahead(file);
            readahead.advise(self.advice.get(&record.object).copied().unwrap_or_default());
            Descriptor { readahead, last: None }
        };
        (&mut self.cell, self.descriptors.entry((record.object, record.task)).or_insert_with(opened))
    }
}
