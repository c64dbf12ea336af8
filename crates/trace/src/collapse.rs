//! Leaving out accesses to the pages touched last, as a TLB keeps them from the page tables.

use crate::record::Record;

/// Drops an access to one of the `window` most recently touched distinct pages.
///
/// A window of 1 merges runs; 64 acts like the first level of a TLB, which is what stands between a
/// program and the accessed bits of its page tables. A write after reads is kept, since it makes
/// the page dirty.
#[derive(Debug)]
pub struct Collapser {
    window: usize,
    /// Most recent last: object, page and whether it was written since it came in.
    recent: Vec<(u32, u64, bool)>,
    dropped: u64,
}

impl Collapser {
    /// A window of `window` pages.
    pub fn new(window: u32) -> Self {
        Self { window: window as usize, recent: Vec::new(), dropped: 0 }
    }

    /// The number of accesses dropped so far.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Replaces a chunk by what stays of it. Records of several pages are taken apart.
    pub fn apply(&mut self, chunk: &mut Vec<Record>) {
        let old = std::mem::take(chunk);
        for record in &old {
            if !record.kind.is_touch() {
                chunk.push(*record);
                continue;
            }
            for page in record.page..record.page + u64::from(record.pages) {
                if self.keeps(record.object, page, record.op.write) {
                    chunk.push(Record { page, pages: 1, ..*record });
                }
            }
        }
    }

    fn keeps(&mut self, object: u32, page: u64, write: bool) -> bool {
        let found = self.recent.iter().rposition(|&(o, p, _)| (o, p) == (object, page));
        let Some(at) = found else {
            if self.recent.len() == self.window && self.window > 0 {
                self.recent.remove(0);
            }
            if self.window > 0 {
                self.recent.push((object, page, write));
            }
            return true;
        };
        let (.., written) = self.recent.remove(at);
        self.recent.push((object, page, written || write));
        let keep = write && !written;
        self.dropped += u64::from(!keep);
        keep
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Op;

    fn pages(window: u32, touched: &[(u64, Op)]) -> (Vec<u64>, u64) {
        let mut collapser = Collapser::new(window);
        let mut chunk: Vec<_> = touched.iter().map(|(p, op)| Record::touch(*p, *op)).collect();
        collapser.apply(&mut chunk);
        (chunk.iter().map(|r| r.page).collect(), collapser.dropped())
    }

    #[test]
    fn one_merges_runs() {
        let touched = [1, 1, 2, 2, 1].map(|p| (p, Op::READ));
        assert_eq!(pages(1, &touched), (vec![1, 2, 1], 2));
        assert_eq!(pages(0, &touched), (vec![1, 1, 2, 2, 1], 0));
        assert_eq!(pages(2, &touched), (vec![1, 2], 3));
    }

    #[test]
    fn the_first_write_stays() {
        let touched = [(1, Op::READ), (1, Op::WRITE), (1, Op::WRITE), (1, Op::READ)];
        assert_eq!(pages(4, &touched), (vec![1, 1], 2));
    }
}
