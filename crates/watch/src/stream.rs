//! Events of the kernel to touches of pages: each cut to the sample and to one unit.
//!
//! A large read comes in batches, of which each names the last page that the call asks for. How far
//! a batch goes is known by the next one, so that a read waits for the next event of its thread.

use crate::group::Touched;
use refault_record::{Event, EventKind, Inode};
use refault_trace::{SpaceSample, Via};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Threads whose reads may wait.
const MOST_WAITING: usize = 1 << 14;

/// Nanoseconds after which a read is over in any case.
const SETTLED_NS: u64 = 50_000_000;

/// Something that became of pages of one unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageEvent {
    /// A program touched them.
    Touch(Touched),
    /// The kernel added them.
    Add(Inode, Range<u64>),
    /// The kernel removed them.
    Delete(Inode, Range<u64>),
    /// The file was deleted.
    Freed(Inode),
}

/// Program that an event is of: process, and number of its group where the kernel says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventTask {
    /// The process.
    pub pid: u32,
    /// Its group of the second version; 0: not known.
    pub cgroup: u64,
}

/// A batch of a read that may be cut by the next.
#[derive(Clone, Debug)]
struct Waiting {
    who: EventTask,
    time_ns: u64,
    inode: Inode,
    pages: Range<u64>,
    last: u64,
    via: Via,
}

/// The reads that wait.
#[derive(Debug)]
pub struct PageStream {
    sample: SpaceSample,
    waiting: FxHashMap<u32, Waiting>,
    /// The page of the last fault of a thread. When it has been read the fault begins anew, and is
    /// told of once more.
    faulted: FxHashMap<u32, (Inode, u64)>,
}

impl PageStream {
    /// Events of this sample.
    pub fn new(sample: SpaceSample) -> PageStream {
        PageStream { sample, waiting: FxHashMap::default(), faulted: FxHashMap::default() }
    }

    /// Events of another sample from now on.
    pub fn set_sample(&mut self, sample: SpaceSample) {
        self.sample = sample;
    }

    /// Takes an event, and appends what is known by it. `length` tells the pages of a file.
    pub fn take(
        &mut self,
        event: &Event,
        length: &mut dyn FnMut(Inode, u32) -> Option<u64>,
        out: &mut Vec<(EventTask, PageEvent)>,
    ) {
        let who = EventTask { pid: event.pid, cgroup: event.cgroup };
        let touched = |inode, pages, via, write| PageEvent::Touch(Touched { inode, pages, via, write, tid: event.tid });
        match event.kind {
            EventKind::Read { inode, first, last } => {
                self.end_read(event.tid, Some((inode, first, last)), out);
                let end = length(inode, event.pid).map_or(first + 1, |end| end.clamp(first + 1, last + 1));
                if let Some(pages) = self.sample.first_of(inode.ino, first..end) {
                    let waiting = Waiting { who, time_ns: event.time_ns, inode, pages, last, via: Via::Fd };
                    self.waiting.insert(event.tid, waiting);
                }
                if self.waiting.len() > MOST_WAITING {
                    self.settle(u64::MAX, out);
                }
            }
            EventKind::Begin { inode, pos, bytes } | EventKind::Write { inode, pos, bytes } => {
                self.end_read(event.tid, None, out);
                let pages = pos >> 12..((pos + bytes.max(1) - 1) >> 12) + 1;
                let write = matches!(event.kind, EventKind::Write { .. });
                for part in self.sample.parts(inode.ino, pages) {
                    out.push((who, touched(inode, part, Via::Fd, write)));
                }
            }
            EventKind::Fault { inode, page } => {
                // Fault-around did not settle it: this is the page.
                let around = self.waiting.get(&event.tid).filter(|w| w.via == Via::Map && w.inode == inode);
                if around.is_some() {
                    self.waiting.remove(&event.tid);
                }
                self.end_read(event.tid, None, out);
                let is_told = self.faulted.remove(&event.tid) == Some((inode, page));
                if !is_told && self.sample.has(inode.ino, page) {
                    out.push((who, touched(inode, page..page + 1, Via::Map, false)));
                }
                self.note_fault(event.tid, (!is_told).then_some((inode, page)));
            }
            EventKind::Around { inode, first, last } => {
                self.end_read(event.tid, None, out);
                let is_told = |&(of, page): &(Inode, u64)| of == inode && (first..=last).contains(&page);
                if self.faulted.remove(&event.tid).as_ref().is_some_and(is_told) {
                    return;
                }
                // Any page of the block; the time says which.
                let mixed = (event.time_ns >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let page = first + mixed % (last - first + 1);
                if self.sample.has(inode.ino, page) {
                    let (time_ns, pages) = (event.time_ns, page..page + 1);
                    self.waiting.insert(event.tid, Waiting { who, time_ns, inode, pages, last, via: Via::Map });
                }
            }
            EventKind::Add { inode, page, order } => {
                let parts = self.sample.parts(inode.ino, page..page + (1 << order));
                out.extend(parts.map(|part| (who, PageEvent::Add(inode, part))));
            }
            EventKind::Delete { inode, page, order } => {
                let parts = self.sample.parts(inode.ino, page..page + (1 << order));
                out.extend(parts.map(|part| (who, PageEvent::Delete(inode, part))));
            }
            EventKind::Freed { inode } => out.push((who, PageEvent::Freed(inode))),
            _ => {}
        }
    }

    /// The thread does something else: a batch of the same call, or not.
    fn end_read(&mut self, tid: u32, next: Option<(Inode, u64, u64)>, out: &mut Vec<(EventTask, PageEvent)>) {
        let Some(mut read) = self.waiting.remove(&tid) else { return };
        if let Some((inode, first, last)) = next
            && (inode, last, Via::Fd) == (read.inode, read.last, read.via)
        {
            // Another batch goes on in the page where the last one ended: both touched that page.
            let least = if first > read.pages.start { read.pages.start + 1 } else { read.pages.start };
            read.pages.end = read.pages.end.min(first.max(least));
        }
        self.put(tid, read, out);
    }

    fn put(&self, tid: u32, read: Waiting, out: &mut Vec<(EventTask, PageEvent)>) {
        if !read.pages.is_empty() {
            let Waiting { who, inode, pages, via, .. } = read;
            out.push((who, PageEvent::Touch(Touched { inode, pages, via, write: false, tid })));
        }
    }

    fn note_fault(&mut self, tid: u32, page: Option<(Inode, u64)>) {
        if self.faulted.len() > MOST_WAITING {
            self.faulted.clear();
        }
        self.faulted.extend(page.map(|page| (tid, page)));
    }

    /// Reads are over that began a while before this time.
    pub fn settle(&mut self, now_ns: u64, out: &mut Vec<(EventTask, PageEvent)>) {
        let is_over = |read: &Waiting| read.time_ns.saturating_add(SETTLED_NS) <= now_ns;
        let mut over: Vec<_> = self.waiting.iter().filter(|(_, read)| is_over(read)).map(|(&tid, _)| tid).collect();
        over.sort_unstable();
        for tid in over {
            if let Some(read) = self.waiting.remove(&tid) {
                self.put(tid, read, out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: Inode = Inode { dev: 1, ino: 1 };

    fn touches(events: &[EventKind]) -> Vec<Range<u64>> {
        // Units 1, 3, 5 of inode 1.
        let mut stream = PageStream::new(SpaceSample::new(2, 0).expect("a sample"));
        let mut out = Vec::new();
        for (time_ns, &kind) in (1..).zip(events) {
            let event = Event { time_ns, pid: 1, tid: 1, cgroup: 0, kind };
            stream.take(&event, &mut |_, _| Some(1000), &mut out);
        }
        stream.settle(u64::MAX, &mut out);
        let pages = out.into_iter().filter_map(|(_, event)| match event {
            PageEvent::Touch(touched) => Some(touched.pages),
            _ => None,
        });
        pages.collect()
    }

    #[test]
    fn batches_are_cut_where_the_next_begins() {
        let read = |first, last| EventKind::Read { inode: FILE, first, last };
        assert_eq!(touches(&[read(64, 64), read(70, 71)]), [64..65, 70..72]);
        // One call: the first batch ends in front of the unit.
        assert_eq!(touches(&[read(20, 120), read(50, 120), read(81, 120)]), [64..81, 81..121]);
        assert_eq!(touches(&[read(70, 300), read(100, 300), read(200, 300)]), [70..100, 100..128, 200..256]);
        assert_eq!(touches(&[read(990, 5000)]).first(), Some(&(990..1000)), "the file ends");
        assert_eq!(touches(&[read(0, 5), read(130, 140)]), []);
    }

    #[test]
    fn a_fault_is_told_once() {
        let fault = |page| EventKind::Fault { inode: FILE, page };
        let around = |first| EventKind::Around { inode: FILE, first, last: first + 15 };
        let add = |page| EventKind::Add { inode: FILE, page, order: 0 };
        assert_eq!(touches(&[around(64), fault(70), add(70), around(64), fault(71)]), [70..71, 71..72]);
        assert_eq!(touches(&[fault(70), add(70), fault(70), fault(70)]), [70..71, 70..71]);
        let settled = touches(&[around(64), around(80)]);
        assert!(settled.len() == 2 && (64..80).contains(&settled[0].start) && (80..96).contains(&settled[1].start));
    }
}
