//! Pages in slots that follow one another: written and read in one go, if the store gains by it.

use std::borrow::BorrowMut;

use super::{Kind, SwapArea, checksum, repeated_word};
use crate::store::{Page, PageBuf, StoreError};

impl SwapArea {
    /// Whether the store gains by slots that follow one another.
    pub fn takes_runs(&self) -> bool {
        self.store.takes_runs()
    }

    /// Writes several pages as (slot, page of the owner, content), no slot twice; what became of
    /// each is as of [`SwapArea::write`].
    pub fn write_many(&self, pages: &[(u32, u32, &Page)]) -> Vec<Result<(), StoreError>> {
        let mut results: Vec<Result<(), StoreError>> = Vec::with_capacity(pages.len());
        let mut stored = Vec::with_capacity(pages.len());
        for (i, &(slot, page, content)) in pages.iter().enumerate() {
            results.push(Ok(()));
            if self.holds(slot, page, content) {
                continue;
            }
            let claim = self.claim(slot);
            match repeated_word(content) {
                Some(word) => self.note_filled(claim, page, word),
                None => stored.push((i, claim, checksum(page, claim.turn, content))),
            }
        }
        let batch: Vec<(u32, &Page)> = stored.iter().map(|&(i, claim, _)| (claim.cell, pages[i].2)).collect();
        for (&(i, claim, word), result) in stored.iter().zip(self.store.write_many(&batch)) {
            results[i] = self.note_written(claim, pages[i].1, word, result);
        }
        results
    }

    /// As [`SwapArea::read`], of several pages, each given by its slot and the page of its owner. A
    /// read that fails is tried once more.
    pub fn read_several<B: BorrowMut<PageBuf>>(
        &self,
        items: &[(u32, u32)],
        contents: &mut [B],
    ) -> Vec<Result<(), StoreError>> {
        let metas: Vec<_> = {
            let cells = self.cells();
            items.iter().map(|&(slot, _)| cells.of(slot).map(|cell| (cell, cells.cells.get(cell)))).collect()
        };
        // One of the store, of the page that it should be.
        let whole = |i: usize| metas[i].filter(|(_, m)| m.kind == Kind::Stored && m.page == items[i].1).map(|(c, _)| c);
        let goes_on = |i: usize| whole(i).is_some_and(|c| whole(i + 1) == Some(c + 1));
        let mut results = Vec::with_capacity(items.len());
        while results.len() < items.len() {
            let from = results.len();
            let more = (from..items.len() - 1).take_while(|&i| goes_on(i)).count();
            let run = from..from + 1 + more;
            let mut pages: Vec<&mut Page> = contents[run.clone()].iter_mut().map(|b| &mut b.borrow_mut().0).collect();
            let at_once = match whole(from) {
                Some(cell) if more > 0 && self.takes_runs() => self.store.read_run(cell, &mut pages).is_ok(),
                _ => false,
            };
            for i in run {
                let (slot, page) = items[i];
                let content = &mut contents[i].borrow_mut().0;
                let right = at_once && metas[i].is_some_and(|(_, m)| checksum(page, m.turn, content) == m.word);
                results.push(match right {
                    true => Ok(()),
                    false => self.read(slot, page, content).or_else(|_| self.read(slot, page, content)),
                });
            }
        }
        results
    }
}
