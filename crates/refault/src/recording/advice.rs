//! Advice of programs, as the engine takes it.

use super::reads::OfLab;
use super::run::{Descriptor, Run};
use crate::replay::cell::Cell;
use crate::replay::machine::EXECUTABLE;
use refault_mm::{AccessAdvice, Advice, PageId, Readahead};
use refault_trace::{AdviceKind, Record};
use std::ops::Range;

impl Run<'_> {
    pub(super) fn advise(&mut self, record: &Record, advised: AdviceKind) {
        let ids = self.ids_of(record);
        let (first, nr) = (PageId(ids.start), ids.end - ids.start);
        match advised {
            AdviceKind::Normal => self.advise_file(record.object, AccessAdvice::Normal),
            AdviceKind::Random => self.advise_file(record.object, AccessAdvice::Random),
            AdviceKind::Sequential => self.advise_file(record.object, AccessAdvice::Sequential),
            AdviceKind::NoReuse => self.advise_file(record.object, AccessAdvice::NoReuse),
            // Its effects in the kernel follow as records.
            AdviceKind::WillNeed => self.cache.begin_reading(record),
            AdviceKind::DontNeed => {
                self.lengths.gives_up(record);
                self.drop_what_the_kernel_lacks(ids);
                // A dirty or mapped page stays, as one of the next to go.
                self.cell.engine.advise_range(first, nr, Advice::DontNeed);
            }
            AdviceKind::MapRandom => self.advise_mapped(record, AccessAdvice::Random),
            AdviceKind::MapSequential => self.advise_mapped(record, AccessAdvice::Sequential),
            AdviceKind::MapNormal => self.advise_mapped(record, AccessAdvice::Normal),
            AdviceKind::MapExecutable => self.map_executable(ids),
            AdviceKind::Sync => {
                if let Some(mapping) = self.mappings[record.object as usize] {
                    self.cell.engine.fsync(&mut self.cell.machine, mapping);
                }
            }
            AdviceKind::Cold => self.cell.engine.advise_range(first, nr, Advice::Cold),
            AdviceKind::PageOut => _ = self.cell.engine.page_out(&mut self.cell.machine, first, nr),
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

    /// A recording does not say which descriptor it is of: it holds for all.
    fn advise_file(&mut self, object: u32, advice: AccessAdvice) {
        self.advice.insert(object, advice);
        let of_file = self.descriptors.iter_mut().filter(|((of, _), _)| *of == object);
        of_file.for_each(|(_, descriptor)| descriptor.readahead.advise(advice));
        if let Some(readahead) = self.mapped.get_mut(&object) {
            readahead.advise(advice);
        }
    }

    fn advise_mapped(&mut self, record: &Record, advice: AccessAdvice) {
        let pages = record.page..record.page.saturating_add(u64::from(record.pages));
        // Recency of accessed bits is a matter of a whole file in the engine.
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

    /// A file that was just opened.
    pub(super) fn opened(&self, object: u32) -> Readahead {
        let mut readahead = self.settings.readahead(&self.loaded.objects[object as usize]);
        readahead.advise(self.advice.get(&object).copied().unwrap_or_default());
        readahead
    }

    pub(super) fn descriptor(&mut self, record: &Record) -> (&mut Cell<OfLab>, &mut Descriptor) {
        let opened = Descriptor { readahead: self.opened(record.object), last: None, missed: false };
        (&mut self.cell, self.descriptors.entry((record.object, record.task)).or_insert(opened))
    }
}
