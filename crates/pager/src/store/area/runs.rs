//! Pages in slots that follow one another: written and read in one go, if the store gains by it.

use super::{Kind, SwapArea, checksum, repeated_word};
use crate::store::{Page, PageBuf, StoreError};

impl SwapArea {
    /// Whether the store gains by slots that follow one another.
    pub fn takes_runs(&self) -> bool {
        self.store.takes_runs()
    }

    /// As [`SwapArea::write`], of several: slot, page of the owner, content. In the order of their slots it is fastest.
    pub fn write_several(&self, items: &[(u32, u32, &Page)]) -> Vec<Result<(), StoreError>> {
        if !self.takes_runs() || items.len() < 2 {
            return items.iter().map(|&(slot, page, content)| self.write(slot, page, content)).collect();
        }
        let prepared: Vec<_> = items.iter().map(|&(slot, ..)| self.prepare(slot)).collect();
        let goes_on = |i: usize| prepared[i].0 + 1 == prepared[i + 1].0 && repeated_word(items[i + 1].2).is_none();
        let mut results = Vec::with_capacity(items.len());
        while results.len() < items.len() {
            let from = results.len();
            let more = (from..items.len() - 1).take_while(|&i| goes_on(i)).count();
            let run = from..from + 1 + more;
            let pages: Vec<&Page> = items[run.clone()].iter().map(|i| i.2).collect();
            let at_once =
                more > 0 && repeated_word(pages[0]).is_none() && self.store.write_run(prepared[from].0, &pages).is_ok();
            for i in run {
                let ((cell, before), (_, page, content)) = (prepared[i], items[i]);
                results.push(match at_once {
                    true => {
                        let turn = before.turn.wrapping_add(1);
                        let word = checksum(page, turn, content);
                        self.set(cell, page, turn, word, Kind::Stored);
                        Ok(())
                    }
                    // What failed together may be well one by one.
                    false => self.write_cell(cell, before, page, content),
                });
            }
        }
        results
    }

    /// As [`SwapArea::read`], of several: slot and page of the owner. What fails is tried once more.
    pub fn read_several(&self, items: &[(u32, u32)], contents: &mut [Box<PageBuf>]) -> Vec<Result<(), StoreError>> {
        let metas: Vec<_> = {
            let mut cells = self.cells();
            items.iter().map(|&(slot, _)| cells.of(slot).map(|cell| (cell, *cells.meta(cell)))).collect()
        };
        // One of the store, of the page that it should be.
        let whole = |i: usize| metas[i].filter(|(_, m)| m.kind == Kind::Stored && m.page == items[i].1).map(|(c, _)| c);
        let goes_on = |i: usize| whole(i).is_some_and(|c| whole(i + 1) == Some(c + 1));
        let mut results = Vec::with_capacity(items.len());
        while results.len() < items.len() {
            let from = results.len();
            let more = (from..items.len() - 1).take_while(|&i| goes_on(i)).count();
            let run = from..from + 1 + more;
            let mut pages: Vec<&mut Page> = contents[run.clone()].iter_mut().map(|b| &mut b.0).collect();
            let at_once = match whole(from) {
                Some(cell) if more > 0 && self.takes_runs() => self.store.read_run(cell, &mut pages).is_ok(),
                _ => false,
            };
            for i in run {
                let (slot, page) = items[i];
                let content = &mut contents[i].0;
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
