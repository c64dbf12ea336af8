//! Accesses of a recording, as the engine sees them.

use super::calls::CallPart;
use super::count::MissCosts;
use super::run::Run;
use crate::replay::DiskReads;
use crate::replay::cell::Cell;
use crate::replay::machine::MAPPED;
use refault_mm::{Counter, PageId, Touch};
use refault_trace::{PackedAccess, Record, RecordKind, Via};

impl Run<'_> {
    pub(super) fn touch(&mut self, record: &Record, part: CallPart) {
        let via = record.op.via.unwrap_or(Via::Fd);
        let mut missed_before = part.goes_on && self.descriptor(record).1.missed;
        if self.is_stream {
            self.enter_unit(record);
        }
        for i in 0..record.pages {
            let page = record.page + u64::from(i);
            let Some(id) = self.id(record.object, page) else { continue };
            let is_first = !std::mem::replace(&mut self.touched[id as usize], true);
            let before = (is_first && !self.is_settled).then(|| self.costs());
            let missed = self.access(record, page, id, record.pages - i + part.rest);
            // Consecutive missing pages are read together: one wait, so one miss, as the kernel
            // counts them.
            let ours = missed && !missed_before;
            missed_before = missed;
            let kernel = record.kind == RecordKind::Miss && i == 0 && !self.is_stream;
            self.compared.access(record.time_ns, record.object, via, kernel, ours);
            self.count_part(record, page, kernel, ours);
            self.settle(before, missed, ours);
        }
        if part.rest > 0 {
            self.descriptor(record).1.missed = missed_before;
        }
    }

    /// One access to a page; true: the lab did not have the page in memory.
    fn access(&mut self, record: &Record, page: u64, id: u32, asked: u32) -> bool {
        match (record.op.via.unwrap_or(Via::Fd), record.op.write) {
            _ if self.elsewhere.contains(&id) => false,
            (Via::Map, write) if self.faults(id, write) => self.fault(record, id),
            (Via::Map, write) => !self.cell.step(PackedAccess::new(id, write, Via::Map, false)),
            (Via::Fd, false) => self.read(record, page, id, asked),
            (Via::Fd, true) => self.write(id, asked),
        }
    }

    /// Refaults and pages read so far: an access may add to each.
    fn costs(&self) -> MissCosts {
        let refaults = self.cell.engine.vmstat().get(Counter::WorkingsetRefaultFile);
        let DiskReads { read_pages, reads, .. } = self.cell.machine.observer.total();
        MissCosts { refaults, read_pages, reads, misses: 0 }
    }

    /// Notes whether the recording leaves open that an access that missed would have hit in this
    /// size: the first one (`before` says what was spent by then) to a page that was not in memory
    /// when the recording of a warm service began, in a size that would have held more. From the
    /// moment at which the engine has filled that size it does not: the page was out of use for
    /// longer than anything that is in memory then.
    fn settle(&mut self, before: Option<MissCosts>, missed: bool, ours: bool) {
        if !self.is_settled && missed {
            self.is_settled = self.cell.engine.vmstat().get(Counter::PgstealFile) > self.stolen_before;
        }
        if !self.compared.is_measured {
            return;
        }
        if let Some(before) = before.filter(|_| missed && !self.is_settled) {
            let spent = self.costs() - before;
            self.compared.open += MissCosts { misses: u64::from(ours), ..spent };
        }
        if self.is_settled {
            self.compared.settled.0 += 1;
            self.compared.settled.1 += u64::from(ours);
        }
    }

    /// Touches of pages in place, seen by sampling: accessed bits. Where the lab does not have the
    /// page mapped it is a fault.
    pub(super) fn sampled(&mut self, record: &Record) {
        for id in self.ids_of(record) {
            let is_mapped = self.cell.machine.pte[id as usize] & MAPPED != 0;
            let is_hit = match is_mapped {
                _ if self.elsewhere.contains(&id) => true,
                true => self.cell.step(PackedAccess::new(id, record.op.write, Via::Map, false)),
                false => !self.fault(record, id),
            };
            if self.compared.is_measured {
                self.compared.sampled.add(false, !is_hit);
            }
        }
    }

    fn write(&mut self, id: u32, asked: u32) -> bool {
        let Cell { engine, machine, .. } = &mut self.cell;
        !engine.write_file(machine, PageId(id), asked).is_hit()
    }

    /// Whether the engine has to see a fault: the kernel had the page not mapped there. If the lab
    /// has it mapped, the program mapped the file anew (a loader maps a library as a whole, and
    /// then its parts over it), or another program did. In both cases a page touched before is
    /// touched twice.
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
        let opened = self.opened(record.object);
        let readahead = self.mapped.entry(record.object).or_insert(opened);
        let Cell { engine, machine, .. } = &mut self.cell;
        let outcome = engine.fault_file(machine, PageId(id), touch, advice, readahead);
        !outcome.is_hit()
    }

    fn read(&mut self, record: &Record, page: u64, id: u32, asked: u32) -> bool {
        let (cell, descriptor) = self.descriptor(record);
        let goes_on = descriptor.last == Some(page);
        descriptor.last = Some(page);
        let touch = if goes_on { Touch::ReadContinued } else { Touch::Read };
        !cell.engine.read_file(&mut cell.machine, PageId(id), asked, touch, &mut descriptor.readahead).is_hit()
    }
}
