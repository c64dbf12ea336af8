//! A sample beside the whole: the same events, cut to the pages that are kept.

use super::*;
use refault_trace::SpaceSample;

/// A long file, of which nobody knows how long.
struct Endless;

impl Files for Endless {
    fn pages(&mut self, _: Inode, _: u32) -> Option<u64> {
        None
    }
    fn now_ns(&mut self) -> u64 {
        0
    }
    fn of_descriptor(&mut self, _: u32, _: u64) -> Option<Inode> {
        None
    }
    fn of_memory(&mut self, _: u32, _: u64, _: u64) -> Vec<(Inode, u64, u64)> {
        Vec::new()
    }
    fn numbered(&mut self, _: Inode, _: u32, _: u32) -> NewFile {
        NewFile { pages: Some(1 << 40), look: Residency::Never, shmem: false }
    }
    fn memory_numbered(&mut self, _: u32, _: u32) {}
    fn is_anonymous(&mut self, _: u32, _: u64) -> bool {
        false
    }
    fn executable(&mut self, _: u32, _: u64) -> Option<(Inode, u64, u64)> {
        None
    }
    fn memory_ended(&mut self, _: u32) {}
}

/// Touched pages, added ones, and removed ones, in order.
fn pages(sample: Option<SpaceSample>, events: &[EventKind]) -> [Vec<u64>; 3] {
    let mut assembler = Assembler::new(0, []).with_sample(sample);
    let mut out = Vec::new();
    for (time_ns, &kind) in (1..).zip(events) {
        assembler.take(&Event { time_ns, pid: 1, tid: 1, cgroup: 0, kind }, true, &mut Endless);
        assembler.validate().expect("consistent");
        assembler.emit(&mut out, false);
    }
    assembler.emit(&mut out, true);
    let of = |is: fn(RecordKind) -> bool| {
        let records = out.iter().filter(|record| is(record.kind));
        records.flat_map(|record| record.page..record.page + u64::from(record.pages)).collect()
    };
    [of(RecordKind::is_touch), of(|kind| kind == RecordKind::Add), of(|kind| kind == RecordKind::Drop)]
}

#[test]
fn a_sample_has_what_the_whole_has_of_its_pages() {
    let mut random = Rng(7);
    let mut below = |n: u64| random.below(n as usize) as u64;
    for round in 0..200 {
        let sample = SpaceSample::new(1 << (1 + round % 6), 0).expect("a sample");
        let inode = Inode { dev: 1, ino: below(1000) };
        // A file that is not used yet has no records.
        let page = sample.first_of(inode.ino, 0..1 << 20).expect("kept").start;
        let mut events = vec![EventKind::Fault { inode, page }];
        for _ in 0..40 {
            let first = below(3000);
            let last = first + below(if round % 2 == 0 { 4 } else { 300 });
            let bytes = 1 + below(1 << 17);
            match below(4) {
                0 => events.push(EventKind::Write { inode, pos: first << 12 | below(4096), bytes }),
                1 => events.push(EventKind::Fault { inode, page: first }),
                2 => {
                    let order = below(10) as u8;
                    let page = first >> order << order;
                    events.push(EventKind::Delete { inode, page, order });
                    events.push(EventKind::Add { inode, page, order });
                }
                // A call in batches of up to 31 pages.
                _ => {
                    let mut page = first;
                    while page <= last {
                        events.push(EventKind::Read { inode, first: page, last });
                        page += 1 + below(31);
                    }
                }
            }
        }
        let is_kept = |page: &u64| sample.has(inode.ino, *page);
        let whole = pages(None, &events).map(|pages| pages.into_iter().filter(is_kept).collect::<Vec<_>>());
        assert_eq!(pages(Some(sample), &events), whole, "{sample}");
        // The filter of the kernel leaves these reads.
        let unit = |page: u64| page / 64 * 64;
        let comes = |kind: &EventKind| match *kind {
            EventKind::Read { first, last, .. } => {
                is_kept(&first) || is_kept(&last) || is_kept(&(unit(first) + 64)) && unit(first) != unit(last)
            }
            _ => true,
        };
        let filtered: Vec<_> = events.iter().copied().filter(comes).collect();
        assert_eq!(pages(Some(sample), &filtered)[0], whole[0], "{sample}");
    }
}

#[test]
fn a_miss_before_a_unit_is_one_in_it() {
    let sample = SpaceSample::new(2, 1).expect("a sample");
    let inode = Inode { dev: 1, ino: 0 };
    let add = |page| EventKind::Add { inode, page, order: 0 };
    let events =
        [add(64), EventKind::Read { inode, first: 40, last: 90 }, EventKind::Read { inode, first: 60, last: 90 }];
    let (mut assembler, mut out) = (Assembler::new(0, []).with_sample(Some(sample)), Vec::new());
    for (time_ns, kind) in (1..).zip(events) {
        assembler.take(&Event { time_ns, pid: 1, tid: 1, cgroup: 0, kind }, true, &mut Endless);
    }
    assembler.emit(&mut out, true);
    let all: Vec<_> = out.iter().map(|r| (r.kind, r.page, r.pages)).collect();
    assert_eq!(all, [(RecordKind::Add, 64, 1), (RecordKind::Miss, 64, 27)]);
}
