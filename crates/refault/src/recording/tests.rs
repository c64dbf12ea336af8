//! Recordings that are made up, on the engine.

use super::{LoadedRecording, Settings, run};
use refault_trace::{
    Format, Header, ObjectInfo, ObjectKind, Op, Record, RecordKind, Recording, Records, Series, Snapshot, Via,
};

/// A file of `pages` pages, read page by page in strides. `besides`: times in nanoseconds, and
/// pages that its group is charged for besides files then.
fn made(pages: u64, besides: &[(u64, u64)]) -> LoadedRecording {
    let mut header = Header::new(Format::Native);
    header.objects = vec![ObjectInfo { pages: Some(pages), ..ObjectInfo::new("/f", ObjectKind::File) }];
    let look = |&(time_ns, pages): &(u64, u64)| Snapshot { time_ns, values: vec![4096 * pages, 0] };
    header.recording = Some(Recording {
        group: Some("/g".to_owned()),
        memory_max: Some(4096 * 1000),
        read_ahead_pages: Some(0),
        series: Series {
            names: vec!["usage".to_owned(), "file".to_owned()],
            snapshots: besides.iter().map(look).collect(),
        },
        ..Recording::default()
    });
    let op = Op { write: false, via: Some(Via::Fd) };
    let read = |i: u64| Record { time_ns: i * 1000, kind: RecordKind::Hit, ..Record::touch(i * 37 % pages, op) };
    let add =
        |record: Record| [Record { kind: RecordKind::Add, ..record }, Record { kind: RecordKind::Miss, ..record }];
    let first = (0..pages).flat_map(|i| add(read(i)));
    let mut source = Records::new("made", header, first.chain((pages..1000).map(read)).collect());
    LoadedRecording::read(&mut source).expect("a recording")
}

#[test]
fn regression_impossible_sizes_are_known_without_a_replay() {
    // The last look comes after the last access.
    let loaded = made(100, &[(0, 50), (2_000_000, 300)]);
    let settings = |pages| Settings { memory_pages: Some(pages), ..Settings::of(&loaded.recording, None, None, false) };
    let small = run(&loaded, &settings(299)).expect("a result");
    assert!(small.is_out_of_memory);
    assert_eq!(small.replayed, 0);
    // The kernel is counted all the same.
    let large = run(&loaded, &settings(1000)).expect("a result");
    assert_eq!((large.is_out_of_memory, large.replayed), (false, 1000));
    assert_eq!((small.total.accesses, small.total.kernel_misses), (1000, 100));
    assert_eq!(large.total.kernel_misses, 100);
    assert_eq!(small.kernel_reads, large.kernel_reads);
    assert_eq!((large.kernel_reads.read_pages, large.lab_reads.read_pages), (100, 100));
    // Files alone fit.
    let files = Settings { files_only: true, ..settings(299) };
    assert_eq!(run(&loaded, &files).expect("a result").total.lab_misses, 100);
}

#[test]
fn regression_a_lab_with_nothing_to_reclaim_stops() {
    let loaded = made(1000, &[(0, 0), (500_000, 200)]);
    // There is room for what is not of files, and for not one page more.
    let settings = Settings { memory_pages: Some(200), ..Settings::of(&loaded.recording, None, None, false) };
    let compared = run(&loaded, &settings).expect("a result");
    assert!(compared.is_out_of_memory);
    assert!((500..=510).contains(&compared.replayed), "{}", compared.replayed);
    assert_eq!((compared.total.accesses, compared.total.kernel_misses), (1000, 1000));
}

#[test]
fn regression_pages_that_another_group_brings_in_are_found_and_take_no_room() {
    let op = Op { write: false, via: Some(Via::Fd) };
    let at = |time_ns: u64, kind: RecordKind, page: u64, pages: u32| Record {
        time_ns,
        kind,
        pages,
        ..Record::touch(page, op)
    };
    let mut header = Header::new(Format::Native);
    header.objects = vec![ObjectInfo { pages: Some(100), ..ObjectInfo::new("/f", ObjectKind::File) }];
    header.recording = Some(Recording { read_ahead_pages: Some(0), ..Recording::default() });
    let records = vec![
        at(1, RecordKind::Add, 0, 1),
        at(2, RecordKind::Miss, 0, 1),
        at(3, RecordKind::AddOther, 10, 20),
        at(4, RecordKind::Hit, 15, 1),
        at(5, RecordKind::Hit, 25, 1),
        at(6, RecordKind::Evict, 10, 20),
        at(7, RecordKind::Add, 15, 1),
        at(8, RecordKind::Miss, 15, 1),
    ];
    let loaded = LoadedRecording::read(&mut Records::new("made", header, records)).expect("a recording");
    let compared = run(&loaded, &Settings::of(&loaded.recording, None, None, false)).expect("a result");
    assert_eq!((compared.total.lab_misses, compared.total.same, compared.ours["pgalloc"]), (2, 4, 2));
}

/// A warm service that touches each of its 1000 pages once. Half the memory would have held half of
/// the pages, and not just the ones that are touched first.
#[test]
fn regression_a_smaller_limit_does_not_know_what_is_touched_next() {
    let op = Op { write: false, via: Some(Via::Fd) };
    let mut header = Header::new(Format::Native);
    header.objects = vec![ObjectInfo { pages: Some(1000), ..ObjectInfo::new("/f", ObjectKind::File) }];
    header.recording = Some(Recording {
        group: Some("/g".to_owned()),
        memory_max: Some(4096 * 1000),
        attached: Some(true),
        read_ahead_pages: Some(0),
        series: Series {
            names: vec!["usage".to_owned(), "file".to_owned()],
            snapshots: vec![Snapshot { time_ns: 0, values: vec![4096 * 1000, 4096 * 1000] }],
        },
        ..Recording::default()
    });
    let read =
        |i: u64, factor: u64| Record { time_ns: i, kind: RecordKind::Hit, ..Record::touch(i * factor % 1000, op) };
    let records = (0..1000).map(|i| read(i, 333)).collect();
    let loaded = LoadedRecording::read(&mut Records::new("made", header, records)).expect("a recording");
    let missed = |pages| {
        let mut settings = Settings::of(&loaded.recording, None, None, false);
        (settings.memory_pages, settings.keep.windows) = (Some(pages), 2);
        let windows = run(&loaded, &settings).expect("a result").windows;
        windows.iter().map(|window| window.lab_misses).collect::<Vec<_>>()
    };
    assert_eq!(missed(1000), [0, 0]);
    let half = missed(500);
    assert!((150..450).contains(&half[0]), "{half:?}");
}
