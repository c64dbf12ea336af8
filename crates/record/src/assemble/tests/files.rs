//! Files: what was in memory, how long they are, what bypasses the page cache.

use super::*;

#[test]
fn what_was_in_memory_comes_before_what_became_of_it() {
    let read = |page| (1, EventKind::Read { inode: C, first: page, last: page });
    let came = |page| (99, EventKind::Add { inode: C, page, order: 0 });
    let went = |page| (99, EventKind::Delete { inode: C, page, order: 0 });
    // The look finds pages 2, 5 and 6, after all of this: 5 came, 9 went, 3 came and went.
    let events = [read(2), came(5), went(9), came(3), went(3), read(6)];
    let row = |kind, page| (kind, false, page, 1);
    let was_there = [2, 6, 9].map(|page| row(RecordKind::Resident, page));
    let rest = [
        (RecordKind::Hit, 2),
        (RecordKind::AddOther, 5),
        (RecordKind::Evict, 9),
        (RecordKind::AddOther, 3),
        (RecordKind::Evict, 3),
        (RecordKind::Hit, 6),
    ];
    assert_eq!(records(&events), [&was_there[..], &rest.map(|(kind, page)| row(kind, page))].concat());
}

#[test]
fn rows_wait_for_the_look_at_their_file() {
    let (mut assembler, mut files, mut out) = (Assembler::new(100, []), Ten::default(), Vec::new());
    assert!(assembler.register(C, 1, &mut files) && !assembler.register(C, 1, &mut files));
    assert_eq!((assembler.used(), assembler.is_residency_known(0)), (0, false), "nobody has used it");
    let event = |time_ns, page| {
        let kind = EventKind::Read { inode: C, first: page, last: page };
        Event { time_ns: time_ns + 1_000_000_000, pid: 1, tid: 1, cgroup: 0, kind }
    };
    (0..4).for_each(|page| assembler.take(&event(page * 1_000_000_000, page), true, &mut files));
    assembler.passed(NOW_NS - 1);
    assembler.emit(&mut out, false);
    assert_eq!((out.len(), assembler.used()), (0, 1));
    assembler.passed(NOW_NS);
    assembler.emit(&mut out, false);
    assert_eq!(out.iter().map(|r| (r.kind, r.page)).next(), Some((RecordKind::Resident, 2)));
    assert_eq!((out[0].time_ns, out.is_sorted_by_key(|r| r.time_ns)), (0, true), "as it was at the start");
    assert!(assembler.is_residency_known(0) && assembler.unlooked() == 0);
}

#[test]
fn reads_that_bypass_the_page_cache_are_counted_by_file() {
    let (mut assembler, mut files, mut out) = (Assembler::new(100, []), Ten::default(), Vec::new());
    assert_eq!(assembler.bypass(), None);
    let direct = |inode, bytes, write| {
        let step = EventKind::DirectStep { inode, write };
        // A step for each extent of the file.
        [EventKind::Direct { inode, bytes }, step, step]
    };
    let calls = [direct(B, 8192, false), direct(B, 4096, true), direct(A, 4096, false)];
    for (time_ns, kind) in (100..).zip([read(0, 0)].into_iter().chain(calls.concat())) {
        assembler.take(&Event { time_ns, pid: 1, tid: 1, cgroup: 0, kind }, true, &mut files);
    }
    for kind in direct(B, 4096, true) {
        assembler.take(&Event { time_ns: 200, pid: 2, tid: 2, cgroup: 0, kind }, false, &mut files);
    }
    assembler.emit(&mut out, true);
    let bypass = assembler.bypass().expect("some");
    assert_eq!((bypass.all.reads, bypass.all.read_bytes, bypass.all.writes, bypass.most), (2, 12288, 1, (1, 1.0)));
    assert_eq!(bypass.share, 0.8, "one page of five was in the page cache");
    assert_eq!(assembler.direct(0).map(|io| (io.reads, io.writes)), Some((1, 0)));
    assert_eq!(out.len(), 1, "it is no access to the page cache");
}

#[test]
fn a_file_that_cannot_be_looked_at_is_counted() {
    let (mut assembler, mut files, mut out) = (Assembler::new(100, []), Ten::default(), Vec::new());
    assembler.register(LARGE, 7, &mut files);
    assert_eq!(assembler.to_look(), [(LARGE, 7)]);
    assembler.take(
        &Event { time_ns: 200, pid: 1, tid: 1, cgroup: 0, kind: EventKind::Read { inode: LARGE, first: 0, last: 0 } },
        true,
        &mut files,
    );
    assembler.looked(LARGE, None, 0);
    assembler.emit(&mut out, true);
    assert_eq!(out.iter().map(|r| r.kind).collect::<Vec<_>>(), [RecordKind::Hit]);
    assert_eq!((assembler.is_residency_known(0), assembler.unlooked()), (false, 1));
}

#[test]
fn regression_the_length_of_a_file_is_asked_again_when_it_has_changed_only() {
    let (mut assembler, mut files) = (Assembler::new(100, [99]), Ten::default());
    let mut take = |tid, kind| {
        assembler.take(&Event { time_ns: 200, pid: tid, tid, cgroup: 0, kind }, tid < 50, &mut files);
        files.1
    };
    // A buffer that is larger than the file, and again behind its end.
    assert_eq!((take(1, read(0, 15)), take(1, read(8, 15))), (0, 0));
    assert_eq!(take(1, read(10, 15)), 1, "there is something behind its end");
    assert_eq!((take(77, add(10)), take(1, read(0, 15)), take(1, read(0, 15))), (1, 2, 2), "it has grown");
    take(77, EventKind::Delete { inode: A, page: 3, order: 0 });
    assert_eq!(take(1, read(0, 15)), 3, "it was cut");
    take(99, EventKind::ReclaimBegin);
    take(99, EventKind::Delete { inode: A, page: 2, order: 0 });
    assert_eq!(take(1, read(0, 15)), 3, "a page was evicted");
}
