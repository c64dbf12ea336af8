//! Events of a sample of pages: each is cut to the pages that are kept. Events that only begin or
//! end near them come through the filters of the kernel, too.

use super::{Assembler, Files, Kind, Open};
use crate::event::{Event, EventKind, Inode};
use refault_trace::{Op, RecordKind, SpaceSample, Via};
use std::ops::Range;

const PAGE_SHIFT: u32 = 12;

impl Assembler {
    /// Events are of a sample of pages.
    pub fn with_sample(self, sample: Option<SpaceSample>) -> Assembler {
        Assembler { sample, ..self }
    }

    /// The pages of these ranges that are kept, or all.
    pub(super) fn all_kept(&self, inode: Inode, ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
        match self.sample {
            Some(sample) => ranges.into_iter().flat_map(|range| sample.parts(inode.ino, range)).collect(),
            None => ranges,
        }
    }

    /// Takes an event, a kept part at a time. False: it is not of pages.
    pub(super) fn take_kept(&mut self, event: &Event, watched: bool, files: &mut impl Files) -> bool {
        let Some(sample) = self.sample else { return false };
        match event.kind {
            EventKind::Read { inode, first, last } if watched => {
                self.read_kept(event, sample, inode, first..=last, files);
            }
            EventKind::Begin { inode, pos, bytes } if watched => {
                for (pos, bytes) in parts_of_bytes(sample, inode, pos, bytes) {
                    self.begin(event, inode, pos, bytes, files);
                }
            }
            EventKind::Write { inode, pos, bytes } if watched => {
                for (pos, bytes) in parts_of_bytes(sample, inode, pos, bytes) {
                    self.write(event, inode, pos, bytes, files);
                }
            }
            EventKind::Fault { inode, page } if watched => {
                if sample.has(inode.ino, page) {
                    self.fault(event, inode, page, files);
                }
            }
            EventKind::Around { inode, first, last } if watched => {
                self.around_kept(event, sample, inode, first..last + 1, files);
            }
            EventKind::Add { inode, page, order } => {
                for part in sample.parts(inode.ino, page..page + (1 << order)) {
                    self.add(event, inode, part, order, watched, files);
                }
            }
            EventKind::Delete { inode, page, order } => {
                for part in sample.parts(inode.ino, page..page + (1 << order)) {
                    self.delete(event, inode, part);
                }
            }
            EventKind::Read { .. } | EventKind::Begin { .. } | EventKind::Fault { .. } | EventKind::Around { .. } => {}
            _ => return false,
        }
        true
    }

    /// A batch of a read: its record begins where kept pages begin. Batches in front of these say
    /// the same; only the last of them reads the first page.
    fn read_kept(
        &mut self,
        event: &Event,
        sample: SpaceSample,
        inode: Inode,
        pages: std::ops::RangeInclusive<u64>,
        files: &mut impl Files,
    ) {
        let (first, last) = (*pages.start(), *pages.end());
        let end = self.length(event, inode, first, last, files).min(last + 1).max(first + 1);
        let before = self.thread(event.tid).open;
        let before = before.filter(|o| o.kind == Kind::Read && o.inode == inode && o.end == last);
        let missed_before = before.is_some_and(|open| self.cut_kept(open.at, first));
        self.settle(event.tid);
        let Some(part) = sample.first_of(inode.ino, first..end) else { return };
        let missed = self.consume(event.tid, inode, part.start) || missed_before;
        let kind = if missed { RecordKind::Miss } else { RecordKind::Hit };
        let op = Op { write: false, via: Some(Via::Fd) };
        let at = self.push(event, inode, part.start, part.end - part.start, op, kind);
        self.thread(event.tid).open = Some(Open { at, inode, kind: Kind::Read, end: last });
    }

    /// The next batch begins at a page: in front of the record, nothing of it was read. True: the
    /// page with which the record began had to be read all the same.
    fn cut_kept(&mut self, at: u64, next: u64) -> bool {
        let Some(record) = self.queued(at).copied() else { return false };
        if record.page < next {
            self.cut(at, next);
            return false;
        }
        self.void(at);
        record.kind == RecordKind::Miss
    }

    /// Fault-around looked at a block. Where the kernel says where a fault was that event is not
    /// among those of a sample, so that the page may be any of the block: the time says which.
    fn around_kept(
        &mut self,
        event: &Event,
        sample: SpaceSample,
        inode: Inode,
        pages: Range<u64>,
        files: &mut impl Files,
    ) {
        let Some(part) = sample.first_of(inode.ino, pages.clone()) else { return };
        let page = pages.start + (event.time_ns >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) % (pages.end - pages.start);
        if !part.contains(&page) {
            return;
        }
        self.file(inode, event.pid, files);
        self.settle(event.tid);
        let at = self.push(event, inode, page, 1, Op { write: false, via: Some(Via::Map) }, RecordKind::Touch);
        self.thread(event.tid).open = Some(Open { at, inode, kind: Kind::Around, end: pages.end - 1 });
    }
}

/// The bytes of kept pages in a range of bytes.
fn parts_of_bytes(sample: SpaceSample, inode: Inode, pos: u64, bytes: u64) -> Vec<(u64, u64)> {
    let end = pos + bytes.max(1);
    let parts = sample.parts(inode.ino, pos >> PAGE_SHIFT..((end - 1) >> PAGE_SHIFT) + 1);
    let part = |part: Range<u64>| {
        let (from, to) = (pos.max(part.start << PAGE_SHIFT), end.min(part.end << PAGE_SHIFT));
        (from, to - from)
    };
    parts.map(part).collect()
}
