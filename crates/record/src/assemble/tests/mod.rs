//! The state machine, event by event, and with any events.

mod files;
mod in_sample;

use super::*;
use crate::scan::{Memory, Scan};
use refault_testing::Rng;
use refault_trace::AdviceKind;

/// Files of ten pages each.
#[derive(Default)]
struct Ten(
    /// Files that have a number.
    u32,
    /// How often a length was asked for.
    u32,
);

impl Files for Ten {
    fn pages(&mut self, _: Inode, _: u32) -> Option<u64> {
        self.1 += 1;
        Some(10)
    }

    fn now_ns(&mut self) -> u64 {
        NOW_NS
    }

    fn of_descriptor(&mut self, _: u32, fd: u64) -> Option<Inode> {
        (fd == 3).then_some(A)
    }

    fn of_memory(&mut self, _: u32, address: u64, bytes: u64) -> Vec<(Inode, u64, u64)> {
        // A mapping of the file from its page 2 on, at 64 KiB.
        let first = (address.max(0x10000) - 0x10000) >> 12;
        if address < 0x20000 { vec![(A, first + 2, bytes >> 12)] } else { Vec::new() }
    }

    fn numbered(&mut self, inode: Inode, object: u32, pid: u32) -> NewFile {
        self.memory_numbered(object, pid);
        // One file has page 2, and pages that come later, in memory.
        let look = match inode {
            C => Residency::Seen(vec![2..3, 5..7], NOW_NS),
            LARGE => Residency::Later,
            _ => Residency::Never,
        };
        NewFile { pages: Some(10), look, shmem: false }
    }

    /// Anonymous memory is all from 4 GiB on.
    fn is_anonymous(&mut self, _: u32, address: u64) -> bool {
        address >= 1 << 32
    }

    /// The first pages of a file, at 64 KiB.
    fn executable(&mut self, _: u32, address: u64) -> Option<(Inode, u64, u64)> {
        (address >> 12 == 16).then_some((B, 0, 4))
    }

    fn memory_numbered(&mut self, object: u32, _: u32) {
        assert_eq!(object, self.0);
        self.0 += 1;
    }

    fn memory_ended(&mut self, _: u32) {}
}

/// Time at which the length of a file is found, in nanoseconds.
const NOW_NS: u64 = 105;

const A: Inode = Inode { dev: 1, ino: 1 };
const B: Inode = Inode { dev: 1, ino: 2 };
const C: Inode = Inode { dev: 1, ino: 3 };
const LARGE: Inode = Inode { dev: 1, ino: 4 };

/// Records that come out of these events, each by a thread, a nanosecond apart.
fn records(events: &[(u32, EventKind)]) -> Vec<(RecordKind, bool, u64, u32)> {
    let mut assembler = Assembler::new(100, [99]).with_pagers_out([98].into_iter().collect());
    let (mut files, mut out) = (Ten::default(), Vec::new());
    for (time_ns, &(tid, kind)) in (100..).zip(events) {
        assembler.take(&Event { time_ns, pid: tid, tid, cgroup: 0, kind }, tid < 50, &mut files);
        assembler.validate().expect("consistent");
        assembler.passed(time_ns);
        assembler.emit(&mut out, false);
    }
    assembler.passed(u64::MAX);
    assembler.emit(&mut out, true);
    assert!(out.is_sorted_by_key(|r| r.time_ns));
    out.iter().map(|r| (r.kind, r.op.write, r.page, r.pages)).collect()
}

fn read(first: u64, last: u64) -> EventKind {
    EventKind::Read { inode: A, first, last }
}

fn add(page: u64) -> EventKind {
    EventKind::Add { inode: A, page, order: 0 }
}

#[test]
fn advice_on_a_descriptor_is_of_its_file() {
    let advise = |fd, advice| EventKind::Advise { fd, advice, offset: 0, bytes: 0 };
    // Number 7 is none, 9 is open no more, 99 is not recorded.
    let events = [(1, advise(3, 1)), (1, advise(3, 7)), (1, advise(9, 1)), (99, advise(3, 2)), (1, advise(3, 0))];
    let want = [AdviceKind::Random, AdviceKind::Normal].map(|advised| (RecordKind::Advise(advised), false, 0, 1));
    assert_eq!(records(&events), want);
}

#[test]
fn an_add_after_a_call_began_is_a_miss() {
    let begin = |pos, bytes| (1, EventKind::Begin { inode: A, pos, bytes });
    let events = [begin(4096, 8192), (1, add(1)), (1, add(2)), begin(8192, 1), begin(8192, 0), begin(12288, 1)];
    let (miss, hit) = ((RecordKind::Miss, false, 1, 2), |page| (RecordKind::Hit, false, page, 1));
    assert_eq!(records(&events), [miss, (RecordKind::Add, false, 1, 2), hit(2), hit(3)]);
}

#[test]
fn regression_a_page_that_is_read_ahead_evicted_and_read_again_is_a_miss() {
    let gone = |page| (99, EventKind::Delete { inode: A, page, order: 0 });
    // The page that is read goes while those behind it come in, and is read by itself.
    let ahead = [(1, add(4)), (1, add(5)), gone(4), (1, add(6)), (1, add(4)), (1, read(2, 2))];
    let kernel = |kind, page, pages| (kind, false, page, pages);
    let want = [
        kernel(RecordKind::Add, 4, 2),
        kernel(RecordKind::Evict, 4, 1),
        kernel(RecordKind::Add, 6, 1),
        kernel(RecordKind::Add, 4, 1),
        kernel(RecordKind::Miss, 4, 1),
        kernel(RecordKind::Hit, 2, 1),
    ];
    assert_eq!(records(&ahead), want);
    // After a read that went on, pages that are added later are of the next one.
    let later = [(1, add(4)), (1, read(4, 4)), gone(4), (1, add(4)), (1, read(4, 4))];
    assert_eq!(records(&later).iter().filter(|(kind, ..)| *kind == RecordKind::Miss).count(), 2);
}

#[test]
fn advice_on_a_range_is_of_its_pages() {
    let advise = |advice, offset, bytes| (1, EventKind::Advise { fd: 3, advice, offset, bytes });
    let (will, dont) = (RecordKind::Advise(AdviceKind::WillNeed), RecordKind::Advise(AdviceKind::DontNeed));
    let events = [
        // Ranges that are wanted, with the pages in which they begin and end.
        advise(3, 4095, 2),
        // Ranges that are not wanted, without: there is no whole page in the second.
        advise(4, 4095, 8194),
        advise(4, 4095, 2),
        // The file has ten pages; no length is up to its end.
        advise(4, 4096, 0),
        advise(4, 8192, 8 * 4096 - 100),
        advise(3, 40960, 4096),
    ];
    let want = [(will, 0, 2), (dont, 1, 2), (dont, 1, 9), (dont, 2, 8)];
    assert_eq!(records(&events), want.map(|(kind, first, pages)| (kind, false, first, pages)));
}

#[test]
fn advice_on_memory_is_of_what_is_mapped_there() {
    let advise = |advice, address| (1, EventKind::AdviseMemory { address, bytes: 8192, advice });
    // 4 and 8 are of anonymous memory, and nothing of a file is at the last address.
    let events = [advise(1, 0x11000), advise(4, 0x11000), advise(8, 0x11000), advise(20, 0x10000), advise(3, 0x30000)];
    let want = [(RecordKind::Advise(AdviceKind::MapRandom), 3), (RecordKind::Advise(AdviceKind::Cold), 2)];
    assert_eq!(records(&events), want.map(|(kind, first)| (kind, false, first, 2)));
}

#[test]
fn what_is_paged_out_is_evicted_until_the_thread_does_something_else() {
    let advise = (1, EventKind::AdviseMemory { address: 0x10000, bytes: 4096, advice: 21 });
    let gone = |page| (1, EventKind::Delete { inode: A, page, order: 0 });
    let all = records(&[advise, gone(2), (1, read(5, 5)), gone(7)]);
    let acts: Vec<_> = all.iter().map(|&(kind, ..)| kind).collect();
    assert_eq!(acts, [RecordKind::Advise(AdviceKind::PageOut), RecordKind::Evict, RecordKind::Hit, RecordKind::Drop]);
}

#[test]
fn regression_what_damon_reclaims_is_paged_out_and_not_dropped() {
    let delete = |page| EventKind::Delete { inode: A, page, order: 0 };
    let all = records(&[(1, read(5, 5)), (98, delete(8)), (1, delete(9))]);
    let acts: Vec<_> = all.iter().map(|&(kind, _, page, _)| (kind, page)).collect();
    assert_eq!(
        acts,
        [
            (RecordKind::Hit, 5),
            (RecordKind::Advise(AdviceKind::PageOut), 8),
            (RecordKind::Evict, 8),
            (RecordKind::Drop, 9)
        ]
    );
}

#[test]
fn the_largest_folio_of_each_file_is_known() {
    let (mut assembler, mut files) = (Assembler::new(100, []), Ten::default());
    let adds = [(A, 0, 0), (B, 4, 2), (B, 0, 1), (A, 1, 0), (B, 8, 0)];
    for (time_ns, (inode, page, order)) in (100..).zip(adds) {
        let kind = EventKind::Add { inode, page, order };
        assembler.take(&Event { time_ns, pid: 1, tid: 1, cgroup: 0, kind }, true, &mut files);
    }
    assert_eq!([0, 1, 2].map(|object| assembler.folio_order(object)), [0, 2, 0]);
}

#[test]
fn an_add_before_a_read_is_a_miss() {
    let events = [(1, add(0)), (1, add(1)), (1, read(0, 0)), (1, read(1, 1)), (1, read(0, 0))];
    let want = [
        (RecordKind::Add, false, 0, 2),
        (RecordKind::Miss, false, 0, 1),
        // It came with the read before.
        (RecordKind::Hit, false, 1, 1),
        (RecordKind::Hit, false, 0, 1),
    ];
    assert_eq!(records(&events), want);
    // Another thread brought it in.
    let events = [(2, add(0)), (1, read(0, 0))];
    assert_eq!(records(&events), [(RecordKind::Add, false, 0, 1), (RecordKind::Hit, false, 0, 1)]);
}

#[test]
fn batches_of_one_read_are_cut_where_the_next_begins() {
    let events =
        [(1, read(0, 8)), (1, EventKind::Address { address: 0, write: false }), (1, read(3, 8)), (1, read(6, 8))];
    let want = [(RecordKind::Hit, false, 0, 3), (RecordKind::Hit, false, 3, 3), (RecordKind::Hit, false, 6, 3)];
    assert_eq!(records(&events), want);
    // Two reads, each to its end.
    let events = [(1, read(0, 2)), (1, read(3, 5))];
    assert_eq!(records(&events), [(RecordKind::Hit, false, 0, 3), (RecordKind::Hit, false, 3, 3)]);
}

#[test]
fn a_read_ends_with_its_file() {
    assert_eq!(records(&[(1, read(8, 300))]), [(RecordKind::Hit, false, 8, 2)]);
    // A page that was written is there.
    let write = EventKind::Write { inode: A, pos: 11 * 4096, bytes: 10 };
    assert_eq!(records(&[(1, write), (1, read(11, 300))])[1], (RecordKind::Hit, false, 11, 1));
}

#[test]
fn an_add_after_a_write_or_a_fault_is_a_miss() {
    let write = |pos, bytes| EventKind::Write { inode: A, pos, bytes };
    let events = [(1, write(4096, 4096)), (1, add(1)), (1, write(4096, 10)), (1, add(5)), (1, read(5, 5))];
    let want = [
        (RecordKind::Miss, true, 1, 1),
        (RecordKind::Add, false, 1, 1),
        (RecordKind::Hit, true, 1, 1),
        (RecordKind::Add, false, 5, 1),
        (RecordKind::Miss, false, 5, 1),
    ];
    assert_eq!(records(&events), want);
    // Folio after folio of one call.
    let events = [(1, write(0, 12288)), (1, write(4096, 8192)), (1, write(8192, 4096))];
    assert_eq!(
        records(&events),
        [(RecordKind::Hit, true, 0, 1), (RecordKind::Hit, true, 1, 1), (RecordKind::Hit, true, 2, 1)]
    );
    let fault = EventKind::Fault { inode: A, page: 4 };
    let events = [(1, fault), (1, add(4)), (1, fault)];
    assert_eq!(
        records(&events),
        [(RecordKind::Miss, false, 4, 1), (RecordKind::Add, false, 4, 1), (RecordKind::Hit, false, 4, 1)]
    );
}

#[test]
fn fault_around_says_which_block_and_the_address_which_page() {
    let (address, around) =
        (EventKind::Address { address: 0x7000_3123, write: false }, EventKind::Around { inode: A, first: 0, last: 9 });
    assert_eq!(records(&[(1, address), (1, around)]), [(RecordKind::Hit, false, 3, 1)]);
    // The page itself was not there: the fault says it.
    let fault = EventKind::Fault { inode: A, page: 7 };
    let events = [(1, address), (1, around), (1, fault), (1, add(7))];
    assert_eq!(records(&events), [(RecordKind::Miss, false, 7, 1), (RecordKind::Add, false, 7, 1)]);
}

/// Each was recorded as a hit more, or took the place of the hit before.
#[test]
fn regression_a_fault_that_begins_anew_is_one_access() {
    let address = |page: u64| EventKind::Address { address: 0x7000_0000 + (page << 12), write: false };
    let (around, fault) =
        (EventKind::Around { inode: A, first: 0, last: 9 }, |page| EventKind::Fault { inode: A, page });
    let miss = |page| [(RecordKind::Miss, false, page, 1), (RecordKind::Add, false, page, 1)];
    let hit = (RecordKind::Hit, false, 3, 1);
    // Nothing was in the block: fault-around tells of it when the page has been read.
    let missed = [(1, address(7)), (1, fault(7)), (1, add(7)), (1, around)];
    assert_eq!(records(&missed), miss(7));
    // So does the fault, where the page is being read still.
    assert_eq!(records(&[&missed[..], &[(1, fault(7))]].concat()), miss(7));
    // The fault before was on a page that was there, or is on another one.
    let hits = [(1, address(3)), (1, around)];
    assert_eq!(records(&[&hits[..], &missed, &hits].concat()), [&[hit][..], &miss(7), &[hit]].concat());
    let next = [(1, address(8)), (1, fault(8)), (1, add(8)), (1, around)];
    assert_eq!(records(&[missed, next].concat()), [miss(7), miss(8)].concat());
}

#[test]
fn removals_are_evictions_in_reclaim_and_drops_otherwise() {
    let delete = |page| EventKind::Delete { inode: A, page, order: 0 };
    let events = [
        (1, read(0, 5)),
        (1, EventKind::ReclaimBegin),
        (1, delete(0)),
        (1, EventKind::ReclaimEnd),
        (1, delete(1)),
        (99, delete(2)),
        (60, delete(3)),
        (1, EventKind::Delete { inode: B, page: 0, order: 0 }),
    ];
    let want = [
        (RecordKind::Hit, false, 0, 6),
        (RecordKind::Evict, false, 0, 1),
        (RecordKind::Drop, false, 1, 1),
        (RecordKind::Evict, false, 2, 1),
        (RecordKind::Drop, false, 3, 1),
    ];
    assert_eq!(records(&events), want);
}

#[test]
fn others_are_not_recorded_but_for_what_they_do_to_the_same_files() {
    let events = [(60, read(0, 0)), (60, add(1)), (1, read(0, 0)), (60, add(2)), (60, read(2, 2))];
    assert_eq!(records(&events), [(RecordKind::Hit, false, 0, 1), (RecordKind::AddOther, false, 2, 1)]);
}

#[test]
fn a_deleted_file_is_another_one_afterwards() {
    let (mut assembler, mut files, mut out) = (Assembler::new(0, []), Ten::default(), Vec::new());
    for (time_ns, kind) in [(1, read(0, 0)), (2, EventKind::Freed { inode: A }), (3, read(0, 0))] {
        assembler.take(&Event { time_ns, pid: 1, tid: 1, cgroup: 0, kind }, true, &mut files);
    }
    assembler.emit(&mut out, true);
    assert_eq!(out.iter().map(|r| r.object).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn code_is_known_before_it_is_touched_once() {
    let (address, around) =
        (EventKind::Address { address: 0x10000, write: false }, EventKind::Around { inode: B, first: 0, last: 3 });
    let seen = records(&[(1, address), (1, around), (2, address), (2, around)]);
    let code = (RecordKind::Advise(AdviceKind::MapExecutable), false, 0, 4);
    assert_eq!(seen, [code, (RecordKind::Hit, false, 0, 1), (RecordKind::Hit, false, 0, 1)]);
}

/// One object stands for the memory of a process, until it ends or runs another program.
#[test]
fn memory_of_a_process_is_an_object() {
    let (mut assembler, mut files, mut out) = (Assembler::new(0, []), Ten::default(), Vec::new());
    assembler.record_memory();
    let event = |time_ns, kind| Event { time_ns, pid: 1, tid: 1, cgroup: 0, kind };
    let page = |n: u64| (1 << 32) + (n << 12);
    let memory = |first, pages, is_there, touched| Memory { first: page(first) >> 12, pages, is_there, touched };
    assembler.take(&event(1, EventKind::Address { address: page(3), write: true }), true, &mut files);
    // A file's fault, and one of another program.
    assembler.take(&event(2, EventKind::Address { address: 4096, write: true }), true, &mut files);
    assembler.take(&event(2, EventKind::Address { address: page(9), write: true }), false, &mut files);
    let scan = Scan {
        files: vec![(A, 5, 2)],
        in_view: vec![A, B],
        memory: vec![memory(2, 1, true, true), memory(3, 1, false, false)],
        writes: false,
    };
    assembler.look(&event(3, EventKind::Look), &scan, &mut files);
    assembler.take(&event(4, EventKind::Address { address: page(3), write: false }), true, &mut files);
    assembler.take(&event(5, EventKind::Comm { name: [0; 16], exec: true }), true, &mut files);
    assembler.take(&event(6, EventKind::Address { address: page(3), write: false }), true, &mut files);
    assembler.take(&event(7, EventKind::Exit), true, &mut files);
    assembler.take(&event(8, EventKind::Exit), true, &mut files);
    assembler.validate().expect("consistent");
    assembler.emit(&mut out, true);
    let of = |r: &Record| (r.object, r.kind, r.op.write, r.page & 0xffff, r.pages);
    let want = [
        (0, RecordKind::Hit, true, 3, 1),
        (1, RecordKind::Sampled, false, 5, 2),
        (0, RecordKind::Sampled, true, 2, 1),
        (0, RecordKind::Evict, false, 3, 1),
        (0, RecordKind::Miss, false, 3, 1),
        (0, RecordKind::Drop, false, 2, 2),
        (2, RecordKind::Hit, false, 3, 1),
        (2, RecordKind::Drop, false, 3, 1),
    ];
    assert_eq!(out.iter().map(of).collect::<Vec<_>>(), want);
    assert_eq!((assembler.accesses, assembler.touches), (0, 6), "they are counted by themselves");
    assert_eq!([0, 1, 2].map(|object| assembler.is_in_view(object)), [true, true, false]);
}

/// Any sequence of events gives records in the order of time, of files that are known.
#[test]
fn nothing_breaks_it() {
    for seed in 0..200 {
        let (mut rng, mut files) = (Rng(seed), Ten::default());
        let (mut assembler, mut out) = (Assembler::new(0, [5]), Vec::new());
        let mut time_ns = 0;
        if seed % 2 == 0 {
            assembler.record_memory();
        }
        for _ in 0..500 {
            time_ns += if rng.one_in(20) { SETTLED_NS } else { rng.below(3) as u64 };
            let inode = Inode { dev: 1, ino: rng.below(3) as u64 };
            let huge = if rng.one_in(50) { u64::MAX >> rng.below(30) } else { 0 };
            let (page, span) = ((rng.below(12) as u64) | huge, rng.below(40) as u64);
            if rng.one_in(9) {
                let memory =
                    Memory { first: page, pages: span.max(1), is_there: rng.one_in(2), touched: rng.one_in(2) };
                let scan = Scan {
                    files: vec![(inode, page, span.max(1))],
                    in_view: vec![inode],
                    memory: if rng.one_in(4) { Vec::new() } else { vec![memory] },
                    writes: rng.one_in(2),
                };
                let tid = rng.below(6) as u32;
                assembler.look(&Event { time_ns, pid: tid, tid, cgroup: 0, kind: EventKind::Look }, &scan, &mut files);
            }
            let kind = match rng.below(13) {
                0 | 1 => EventKind::Read { inode, first: page, last: page.saturating_add(span) },
                2 => EventKind::Write { inode, pos: page.wrapping_mul(3000), bytes: span * 2000 },
                3 => EventKind::Fault { inode, page },
                4 => EventKind::Around { inode, first: page, last: page.saturating_add(span) },
                5 => EventKind::Address { address: rng.next() >> (rng.next() % 64), write: rng.next() & 1 == 0 },
                6 => EventKind::Add { inode, page, order: rng.below(5) as u8 },
                7 => EventKind::Delete { inode, page, order: rng.below(5) as u8 },
                8 => EventKind::ReclaimBegin,
                9 => EventKind::ReclaimEnd,
                10 => EventKind::Exit,
                11 => EventKind::Comm { name: [b'x'; 16], exec: rng.one_in(2) },
                _ => EventKind::Freed { inode },
            };
            let tid = rng.below(6) as u32;
            assembler.take(&Event { time_ns, pid: tid, tid, cgroup: 0, kind }, tid != 4, &mut files);
            assembler.validate().unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            assembler.emit(&mut out, false);
        }
        assembler.emit(&mut out, true);
        assert!(out.is_sorted_by_key(|r| r.time_ns), "seed {seed}");
        assert!(out.iter().all(|r| r.object < files.0 && r.pages > 0 && r.kind != RecordKind::Touch), "seed {seed}");
    }
}

#[test]
fn the_length_of_a_file_is_that_at_its_first_event() {
    let first_pages = |writes: &[(u64, u64)]| {
        let (mut assembler, mut files) = (Assembler::new(100, []), Ten::default());
        for &(time_ns, pos) in writes {
            let kind = EventKind::Write { inode: A, pos, bytes: 4096 };
            assembler.take(&Event { time_ns, pid: 1, tid: 1, cgroup: 0, kind }, true, &mut files);
        }
        (assembler.first_pages(0), assembler.first_pages(1))
    };
    assert_eq!(first_pages(&[(100, 4096)]), (Some(10), None));
    // The tenth page is there when the file is asked for its length, for the second write made it.
    assert_eq!(first_pages(&[(100, 8 * 4096), (104, 9 * 4096), (106, 10 * 4096)]), (Some(8), None));
    // It was there before: the file grows later.
    assert_eq!(first_pages(&[(100, 0), (106, 9 * 4096), (107, 10 * 4096)]), (Some(10), None));
}

#[test]
fn a_file_that_is_written_out_is_told() {
    let sync = |tid| (tid, EventKind::Sync { inode: A });
    assert_eq!(records(&[sync(99), sync(1)]), [(RecordKind::Advise(AdviceKind::Sync), false, 0, 1)]);
}
