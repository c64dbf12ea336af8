//! Advice of programs on how they will use files and mapped memory.

use super::{Assembler, Files, PAGE_SHIFT};
use crate::event::{Event, Inode};
use refault_trace::{AdviceKind, Op, RecordKind};

/// Pages that advice on a range of bytes is for: the first, and how many. With `inward`, only pages
/// that lie in the range as a whole, or end the file.
fn advised_pages((offset, bytes): (u64, u64), inward: bool, length: Option<u64>) -> Option<(u64, u64)> {
    const PAGE: u64 = 1 << PAGE_SHIFT;
    let end = if bytes == 0 { u64::MAX } else { offset.saturating_add(bytes) };
    let (first, last) = match inward {
        true => (offset.div_ceil(PAGE), end >> PAGE_SHIFT),
        false => (offset >> PAGE_SHIFT, end.div_ceil(PAGE)),
    };
    // In its last page a file may end anywhere.
    let end = match length {
        Some(length) if end.div_ceil(PAGE) >= length => length,
        _ => last,
    };
    let pages = end.checked_sub(first).filter(|&pages| pages > 0)?;
    (first < 1 << (64 - PAGE_SHIFT)).then_some((first, pages))
}

impl Assembler {
    pub(super) fn advise(
        &mut self,
        event: &Event,
        inode: Option<Inode>,
        advice: u64,
        range: (u64, u64),
        files: &mut impl Files,
    ) {
        // The numbers of `posix_fadvise`.
        let advised = match advice {
            0 => AdviceKind::Normal,
            1 => AdviceKind::Random,
            2 => AdviceKind::Sequential,
            3 => AdviceKind::WillNeed,
            4 => AdviceKind::DontNeed,
            5 => AdviceKind::NoReuse,
            _ => return,
        };
        let Some(inode) = inode else { return };
        let length = self.file(inode, event.pid, files).pages;
        self.settle(event.tid);
        let range = match advised {
            AdviceKind::WillNeed | AdviceKind::DontNeed => {
                advised_pages(range, advised == AdviceKind::DontNeed, length)
            }
            // These are of the open file as a whole.
            _ => Some((0, 1)),
        };
        if let Some((first, pages)) = range {
            self.push(event, inode, first, pages, Op::READ, RecordKind::Advise(advised));
        }
    }

    pub(super) fn sync(&mut self, event: &Event, inode: Inode, files: &mut impl Files) {
        self.file(inode, event.pid, files);
        self.settle(event.tid);
        self.push(event, inode, 0, 1, Op::READ, RecordKind::Advise(AdviceKind::Sync));
    }

    pub(super) fn advise_memory(
        &mut self,
        event: &Event,
        address: u64,
        bytes: u64,
        advice: u64,
        files: &mut impl Files,
    ) {
        // The numbers of `madvise`. The others are about anonymous memory, or about page tables.
        let advised = match advice {
            0 => AdviceKind::MapNormal,
            1 => AdviceKind::MapRandom,
            2 => AdviceKind::MapSequential,
            3 => AdviceKind::WillNeed,
            20 => AdviceKind::Cold,
            21 => AdviceKind::PageOut,
            _ => return,
        };
        self.settle(event.tid);
        for (inode, first, pages) in files.of_memory(event.pid, address, bytes) {
            self.file(inode, event.pid, files);
            self.push(event, inode, first, pages.max(1), Op::READ, RecordKind::Advise(advised));
            self.thread(event.tid).pages_out = advised == AdviceKind::PageOut;
        }
    }
}
