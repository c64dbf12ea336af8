//! The files that have dirty pages, in the order in which the flusher comes to them, and where it
//! goes on in each.

use std::collections::VecDeque;
use std::ops::Range;

use crate::ids::{MappingId, PageId};

/// A file, as the flusher knows it.
#[derive(Clone, Copy, Debug, Default)]
struct DirtyFile {
    /// Number of its dirty folios.
    dirty: u64,
    /// Time since which the file has had dirty pages, or when it was last written for its age.
    since_ns: u64,
    /// `writeback_index`: the page after the last that was written.
    next: u32,
    queued: bool,
}

/// Files with dirty pages: one is written for a while, by index from where the flusher left it,
/// then it is the turn of the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct DirtyFiles {
    /// A bit a page: the first of a dirty folio.
    bits: Vec<u64>,
    /// By mapping, up to the last one that was ever dirty. Read by `file`, for which a file beyond
    /// the end is clean, such as one that nobody wrote when `fsync` asks.
    files: Vec<DirtyFile>,
    /// Files in the order in which they are written. A file that was cleaned otherwise stays until
    /// its turn.
    queue: VecDeque<MappingId>,
    /// Dirty folios of all.
    total: u64,
}

impl DirtyFiles {
    /// Dirty folios of files.
    pub(crate) fn nr_dirty(&self) -> u64 {
        self.total
    }

    pub(crate) fn is_dirty(&self, page: PageId) -> bool {
        self.bits.get(page.index() / 64).is_some_and(|word| word >> (page.0 % 64) & 1 == 1)
    }

    /// A folio of a file has become dirty.
    pub(crate) fn add(&mut self, file: MappingId, page: PageId, now_ns: u64) {
        debug_assert!(!self.is_dirty(page), "{page:?} becomes dirty twice");
        let word = page.index() / 64;
        if self.bits.len() <= word {
            self.bits.resize((word + 1).next_power_of_two(), 0);
        }
        self.bits[word] |= 1 << (page.0 % 64);
        self.total += 1;
        let entry = self.file_mut(file);
        if entry.dirty == 0 {
            entry.since_ns = now_ns;
        }
        entry.dirty += 1;
        if !std::mem::replace(&mut entry.queued, true) {
            self.queue.push_back(file);
        }
    }

    fn file(&self, file: MappingId) -> DirtyFile {
        self.files.get(file.index()).copied().unwrap_or_default()
    }

    fn file_mut(&mut self, file: MappingId) -> &mut DirtyFile {
        if self.files.len() <= file.index() {
            self.files.resize(file.index() + 1, DirtyFile::default());
        }
        &mut self.files[file.index()]
    }

    /// A folio of a file is clean again.
    pub(crate) fn remove(&mut self, file: MappingId, page: PageId) {
        debug_assert!(self.is_dirty(page), "{page:?} becomes clean twice");
        self.bits[page.index() / 64] &= !(1 << (page.0 % 64));
        self.file_mut(file).dirty -= 1;
        self.total -= 1;
    }

    /// The file to write next; drops files without dirty pages from the queue.
    pub(crate) fn first(&mut self) -> Option<MappingId> {
        while let Some(&file) = self.queue.front() {
            if self.file(file).dirty > 0 {
                return Some(file);
            }
            self.file_mut(file).queued = false;
            self.queue.pop_front();
        }
        None
    }

    /// Moves the first file of the queue to its end.
    pub(crate) fn rotate(&mut self) {
        if !self.queue.is_empty() {
            self.queue.rotate_left(1);
        }
    }

    pub(crate) fn nr_files(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn dirty_of(&self, file: MappingId) -> u64 {
        self.file(file).dirty
    }

    /// Files that have had dirty pages since that time or longer.
    pub(crate) fn older_than(&self, then_ns: u64) -> Vec<MappingId> {
        let is_old = |f: &&MappingId| {
            let file = self.file(**f);
            file.dirty > 0 && file.since_ns <= then_ns
        };
        self.queue.iter().filter(is_old).copied().collect()
    }

    /// Notes that a file was written for its age: pages still dirty, or dirty again, count as dirty
    /// from now on.
    pub(crate) fn set_since(&mut self, file: MappingId, now_ns: u64) {
        self.file_mut(file).since_ns = now_ns;
    }

    /// The next dirty page of a file with these pages, from where the flusher left it, round the
    /// file.
    pub(crate) fn next_of(&mut self, file: MappingId, pages: Range<u32>) -> Option<PageId> {
        let next = self.file(file).next.clamp(pages.start, pages.end);
        let found = self.find(next..pages.end).or_else(|| self.find(pages.start..next))?;
        self.file_mut(file).next = found + 1;
        Some(PageId(found))
    }

    /// The first bit in a range.
    fn find(&self, range: Range<u32>) -> Option<u32> {
        let mut at = range.start;
        while at < range.end {
            let rest = self.bits.get(at as usize / 64)? >> (at % 64);
            if rest != 0 {
                let found = at + rest.trailing_zeros();
                return (found < range.end).then_some(found);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    /// Checks that there are as many bits as dirty folios, by file and in all, and that each file
    /// with dirty folios is in the queue once.
    pub(crate) fn validate(&self, pages: impl Fn(MappingId) -> Range<u32>) -> Result<(), String> {
        let mut queued = vec![0; self.files.len()];
        self.queue.iter().for_each(|f| queued[f.index()] += 1);
        let mut total = 0;
        for (i, file) in self.files.iter().enumerate() {
            let bits = pages(MappingId(i as u32)).filter(|&p| self.is_dirty(PageId(p))).count() as u64;
            total += bits;
            if bits != file.dirty || queued[i] != usize::from(file.queued) || (bits > 0 && !file.queued) {
                return Err(format!("file {i}: {bits} dirty pages, queued {} times: {file:?}", queued[i]));
            }
        }
        match total == self.total {
            true => Ok(()),
            false => Err(format!("{total} dirty pages, {} are known", self.total)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regression_a_file_that_was_never_dirty_is_clean_whatever_its_number() {
        let mut files = DirtyFiles::default();
        let never = MappingId(u32::MAX - 1);
        assert_eq!((files.dirty_of(never), files.next_of(never, 0..64)), (0, None));
        files.add(MappingId(0), PageId(3), 5);
        assert_eq!((files.dirty_of(never), files.next_of(never, 64..70)), (0, None));
        assert_eq!(files.next_of(MappingId(0), 0..64), Some(PageId(3)));
    }
}
