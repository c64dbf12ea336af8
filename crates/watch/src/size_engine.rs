//! One size of a group: an engine with a sample of its memory.

use refault::replay::cell::Cell;
use refault::replay::machine::{MAPPED, Observer};
use refault_mm::{AccessAdvice, Config, Counter, MemcgLimits, PageId, Readahead, Touch};
use refault_trace::{PackedAccess, Via};

/// Pages of a unit.
pub(crate) const UNIT: u32 = 64;

/// Pages that were read from disk and not touched since, a bit a page.
#[derive(Clone, Debug, Default)]
struct Fresh {
    units: Vec<u64>,
    read_pages: u64,
}

impl Fresh {
    fn take(&mut self, page: u32) -> bool {
        let (unit, bit) = (&mut self.units[(page / UNIT) as usize], 1u64 << (page % UNIT));
        let was = *unit & bit != 0;
        *unit &= !bit;
        was
    }
}

impl Observer for Fresh {
    fn freed(&mut self, page: PageId, order: u8) {
        (page.0..page.0 + (1 << order)).for_each(|page| _ = self.take(page));
    }

    fn missed(&mut self, _: PageId) {}

    fn read(&mut self, page: PageId, order: u8) {
        self.read_pages += 1 << order;
        for page in page.0..page.0 + (1 << order) {
            self.units[(page / UNIT) as usize] |= 1 << (page % UNIT);
        }
    }
}

/// A touch of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageTouch {
    /// Id of the page in the engine.
    pub(crate) page: u32,
    /// Pages from it on that the call wants.
    pub(crate) asked: u32,
    pub(crate) via: Via,
    pub(crate) write: bool,
    /// The thread read the same page just before.
    pub(crate) goes_on: bool,
}

/// An engine of one size.
#[derive(Debug)]
pub(crate) struct SizeEngine {
    /// Pages of the whole that it stands for.
    pub(crate) pages: u64,
    one_in: u64,
    cell: Cell<Fresh>,
    /// State of readahead, by unit.
    readahead: Vec<Readahead>,
    /// Pages of the whole that the group has besides files.
    besides: u64,
}

impl SizeEngine {
    pub(crate) fn new(config: &Config, one_in: u64, pages: u64) -> Result<SizeEngine, String> {
        let own = part(pages, one_in);
        let cell = Cell::empty(config.clone().sampled(one_in, own), own, u64::MAX, Fresh::default())?;
        Ok(SizeEngine { pages, one_in, cell, readahead: Vec::new(), besides: 0 })
    }

    /// Makes room for one more unit: its pages follow the last.
    pub(crate) fn add_unit(&mut self) -> Result<(), String> {
        let end = self.cell.add_file(0..u64::from(UNIT), 0)?;
        self.cell.machine.pte.resize(end as usize, 0);
        self.cell.machine.observer.units.resize((end / UNIT) as usize, 0);
        self.readahead.push(Readahead::default());
        Ok(())
    }

    /// The pages of a unit are gone: it may become another.
    pub(crate) fn clear_unit(&mut self, unit: u32) {
        let Cell { engine, machine, .. } = &mut self.cell;
        engine.truncate_range(machine, PageId(unit * UNIT), UNIT);
        machine.observer.units[unit as usize] = 0;
        self.readahead[unit as usize] = Readahead::default();
    }

    /// The time, in nanoseconds.
    pub(crate) fn set_now_ns(&mut self, now_ns: u64) {
        self.cell.engine.set_now_ns(now_ns);
        self.cell.engine.flush_expired(&mut self.cell.machine);
    }

    /// Pages that the group has besides files, of the whole.
    pub(crate) fn set_besides(&mut self, pages: u64) {
        self.besides = pages;
        if self.fits() {
            let pages = if pages == 0 { 0 } else { part(pages, self.one_in) };
            let set = self.cell.engine.set_memcg_external_pages(self.cell.group, pages);
            debug_assert_eq!(set, Ok(()));
        }
    }

    /// Another size.
    pub(crate) fn set_pages(&mut self, pages: u64) -> Result<(), String> {
        self.pages = pages;
        let Cell { engine, machine, group, .. } = &mut self.cell;
        let limits = MemcgLimits { max: part(pages, self.one_in), ..engine.memcg_limits(*group) };
        engine.set_memcg_limits(machine, *group, &limits)?;
        self.set_besides(self.besides);
        Ok(())
    }

    /// Another rate of the sample: its memory is as much of the whole.
    pub(crate) fn set_one_in(&mut self, one_in: u64) -> Result<(), String> {
        self.one_in = one_in;
        self.set_pages(self.pages)
    }

    /// Whether it has room for more than the group has besides files.
    pub(crate) fn fits(&self) -> bool {
        part(self.pages, self.one_in) > part(self.besides, self.one_in) + 4 && self.cell.machine.oom.is_none()
    }

    /// Whether it has ever been full.
    pub(crate) fn is_filled(&self) -> bool {
        self.cell.engine.vmstat().get(Counter::PgstealFile) > 0
    }

    /// Pages that it has read, of the sample.
    pub(crate) fn read_pages(&self) -> u64 {
        self.cell.machine.observer.read_pages
    }

    /// A touch; true: the page had to be read for it.
    pub(crate) fn touch(&mut self, touch: PageTouch) -> bool {
        let PageTouch { page, asked, via, write, goes_on } = touch;
        let id = PageId(page);
        let Cell { engine, machine, .. } = &mut self.cell;
        let readahead = &mut self.readahead[(page / UNIT) as usize];
        match (via, write) {
            (Via::Fd, true) => _ = engine.write_file(machine, id, asked),
            (Via::Fd, false) => {
                let touch = if goes_on { Touch::ReadContinued } else { Touch::Read };
                engine.read_file(machine, id, asked, touch, readahead);
            }
            (Via::Map, _) => {
                let is_mapped = machine.pte[page as usize] & MAPPED != 0;
                if is_mapped && !write {
                    engine.unmap_range(machine, id, 1);
                }
                if is_mapped && write {
                    self.cell.step(PackedAccess::new(page, true, Via::Map, false));
                } else {
                    let touch = if write { Touch::MapWrite } else { Touch::MapRead };
                    engine.fault_file(machine, id, touch, AccessAdvice::default(), readahead);
                }
            }
        }
        self.cell.machine.observer.take(page)
    }

    /// Checks the invariants.
    pub(crate) fn validate(&self, units: usize) -> Result<(), String> {
        self.cell.engine.validate()?;
        let pages = units * UNIT as usize;
        let counts = [self.cell.engine.registered_pages(), self.cell.machine.pte.len()];
        if counts != [pages; 2] || self.readahead.len() != units || self.cell.machine.observer.units.len() != units {
            return Err(format!("{units} units, and pages {counts:?}"));
        }
        let absent = |page: &u32| !self.cell.engine.is_resident(PageId(*page));
        let is_fresh = |page: &u32| self.cell.machine.observer.units[(page / UNIT) as usize] >> (page % UNIT) & 1 == 1;
        match (0..pages as u32).filter(is_fresh).find(absent) {
            Some(page) => Err(format!("page {page} was read and is not in memory")),
            None => Ok(()),
        }
    }

    /// Bytes that its engine takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let (a, b, c) = self.cell.engine.memory_bytes();
        a + b + c + self.readahead.len() * (size_of::<Readahead>() + UNIT as usize + 8)
    }
}

/// Pages of a sample for so many.
pub(crate) fn part(pages: u64, one_in: u64) -> u64 {
    (pages.saturating_add(one_in / 2) / one_in).max(1)
}
