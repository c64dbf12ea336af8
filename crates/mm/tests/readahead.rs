//! Reading ahead of faults, as a driver sees it that maps what was read at once.

use refault_mm::ReadaheadConfig;
use refault_mm::{
    Ack, Config, Effect, Engine, MappingKind, MemcgId, NodeConfig, Outcome, PageId, Policy, Readahead, Touch,
};
use refault_testing::AtOnce;

/// Reads end later.
fn reads() -> AtOnce {
    AtOnce::answering(|_, e| matches!(e, Effect::Read { .. }).then_some(Ack::Pending))
}

fn machine(pages: u64) -> (Engine, PageId) {
    let node = NodeConfig { low_zones: [0, 0], ..NodeConfig::new(pages) };
    let cfg = Config {
        node: Some(node),
        total_pages: pages,
        readahead: ReadaheadConfig { file_map_ahead: true, ..ReadaheadConfig::default() },
        ..Config::new(Policy::Mglru)
    };
    let mut engine = Engine::new(cfg).unwrap();
    let group = engine.add_memcg(MemcgId::ROOT, "/file", u64::MAX, 0).unwrap();
    let (_, first) = engine.add_mapping(MappingKind::File, group, 0..4000).unwrap();
    (engine, first)
}

/// Touches a page; how many were read for it.
fn touch(engine: &mut Engine, w: &mut AtOnce, page: PageId) -> usize {
    if engine.access(w, page, Touch::MapRead) != Outcome::Waiting {
        return 0;
    }
    let read = w.take_pages();
    assert_eq!(read[0], page, "what is waited for comes first");
    for &p in &read {
        engine.read_done(w, p, true);
        engine.access(w, p, Touch::MapRead);
    }
    engine.validate().unwrap();
    read.len()
}

/// It counted once more when the page had come.
#[test]
fn a_fault_that_waits_for_a_read_counts_once() {
    let (mut engine, first) = machine(4000);
    assert_eq!(touch(&mut engine, &mut reads(), first), 1);
    let counts: Vec<_> = engine.vmstat().iter().filter(|(name, _)| ["pgfault", "pgmajfault"].contains(name)).collect();
    assert_eq!(counts, [("pgfault", 1), ("pgmajfault", 1)]);
}

#[test]
fn a_run_of_faults_on_a_file_reads_ever_more_up_to_the_maximum() {
    let (mut engine, first) = machine(4000);
    let mut w = reads();
    let reads: Vec<usize> =
        (0..200).map(|i| touch(&mut engine, &mut w, PageId(first.0 + i))).filter(|&n| n > 0).collect();
    assert_eq!(reads[..7], [1, 2, 4, 8, 16, 32, 32]);
    // The last window ends with the file, and reads by descriptor go by other rules.
    let near_the_end: Vec<usize> = (3990..4000).map(|i| touch(&mut engine, &mut w, PageId(first.0 + i))).collect();
    assert_eq!(near_the_end, [1, 2, 0, 4, 0, 0, 0, 3, 0, 0]);
}

#[test]
fn faults_at_random_read_a_page_each() {
    let (mut engine, first) = machine(4000);
    let mut w = reads();
    for i in 0..500u32 {
        assert!(touch(&mut engine, &mut w, PageId(first.0 + i.wrapping_mul(2_654_435_761) % 4000)) <= 1);
    }
}

/// Readahead leaves the room below the lowest watermark to reclaim.
#[test]
fn nothing_is_read_ahead_where_there_is_no_room() {
    let (mut engine, first) = machine(1000);
    let mut w = reads();
    let min: u64 = engine.zones().map(|(.., marks)| marks.min).sum();
    for i in 0..1000 {
        touch(&mut engine, &mut w, PageId(first.0 + i));
        assert!(engine.free_pages() >= min, "page {i}: {} free, min {min}", engine.free_pages());
    }
}

/// Pages that reads by descriptor bring in, as ranges, of a file of 1000 pages with `history`.
fn brings(reads: &[(u32, u32)]) -> Vec<Vec<u32>> {
    let readahead = ReadaheadConfig { history: true, ..ReadaheadConfig::default() };
    let mut engine = Engine::new(Config { readahead, ..Config::new(Policy::Lru) }).unwrap();
    let group = engine.add_memcg(MemcgId::ROOT, "/file", u64::MAX, 0).unwrap();
    engine.add_mapping(MappingKind::File, group, 0..1000).unwrap();
    let (mut w, mut ra) =
        (AtOnce::answering(|_, e| matches!(e, Effect::Read { .. }).then_some(Ack::Done)), Readahead::default());
    let mut all = Vec::new();
    for &(page, asked) in reads {
        w.noted.clear();
        engine.read_file(&mut w, PageId(page), asked, Touch::Read, &mut ra);
        engine.validate().unwrap();
        let pages = w.noted.iter().filter_map(|e| if let Effect::Read { page, .. } = e { Some(page.0) } else { None });
        all.push(pages.collect());
    }
    all
}

#[test]
fn pages_in_front_of_a_miss_are_worth_a_window() {
    let pages = |range: std::ops::Range<u32>| range.collect::<Vec<_>>();
    // Reads by themselves bring what they ask for, at once.
    assert_eq!(brings(&[(500, 1), (700, 3)]), [pages(500..501), pages(700..703)]);
    // Two pages lie in front of the third: two more than it.
    assert_eq!(brings(&[(500, 2), (900, 1), (502, 1)])[2], pages(502..505));
    // From the beginning of the file on, and after a detour: twice as many.
    assert_eq!(brings(&[(0, 4), (900, 1), (8, 1)]), [pages(0..8), pages(900..901), pages(8..25)]);
}

#[test]
fn the_mark_is_on_the_page() {
    let pages = |range: std::ops::Range<u32>| range.collect::<Vec<_>>();
    // The window of the first stream is 0..4 with a mark at 1; another stream takes the state of
    // the file in between.
    let of_two = brings(&[(0, 1), (600, 1), (601, 1), (1, 1)]);
    assert_eq!(of_two[0], pages(0..4));
    assert_eq!(of_two[3], pages(4..12), "what is missing behind the mark, twice as much");
}

/// Files in tmpfs are anonymous memory that is read by descriptor: a second read makes a page
/// active, and nothing is read ahead.
#[test]
fn shared_memory_is_read_by_descriptor_as_it_is() {
    let readahead = ReadaheadConfig { file_pages: 32, ..ReadaheadConfig::default() };
    let mut engine = Engine::new(Config { readahead, ..Config::new(Policy::Lru) }).unwrap();
    let group = engine.add_memcg(MemcgId::ROOT, "/shm", u64::MAX, 0).unwrap();
    let (_, first) = engine.add_mapping(MappingKind::Anon, group, 0..256).unwrap();
    let mut w = AtOnce::default();
    let pages = (first.0..first.0 + 62).map(PageId);
    pages.clone().for_each(|p| assert_eq!(engine.access(&mut w, p, Touch::MapWrite), Outcome::Fresh));
    for _ in 0..2 {
        let mut ra = Readahead::default();
        pages.clone().for_each(|p| assert_eq!(engine.read_file(&mut w, p, 1, Touch::Read, &mut ra), Outcome::Hit));
    }
    let active = |e: &Engine| e.memcg_gauges(group).iter().find(|g| g.name == "active_anon").expect("a gauge").value;
    assert_eq!(active(&engine), 62, "two batches of 31");
    // Past the end of what was written, one by one.
    let mut ra = Readahead::default();
    for p in (first.0 + 62..first.0 + 78).map(PageId) {
        assert_eq!(engine.read_file(&mut w, p, 1, Touch::Read, &mut ra), Outcome::Fresh);
    }
    assert_eq!((active(&engine), w.take_pages()), (62, vec![]));
    engine.validate().unwrap();
}
