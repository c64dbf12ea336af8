//! Writeback by age, as a driver sees it whose flusher runs by itself.

use refault_mm::{
    Ack, Config, DirtyConfig, Effect, Engine, FlushStep, MappingKind, MemcgId, NodeConfig, PageId, Policy, Touch,
};
use refault_testing::AtOnce;

const SECOND: u64 = 1_000_000_000;

/// Writes end later. The flusher writes what is beyond a share of the cache, in percent.
fn machine(background_ratio: u64) -> (Engine, PageId, AtOnce) {
    let node = NodeConfig { low_zones: [0, 0], ..NodeConfig::new(4000) };
    let dirty = DirtyConfig { background_ratio, ..DirtyConfig::default() };
    let cfg = Config { node: Some(node), total_pages: 4000, dirty, ..Config::new(Policy::Mglru) };
    let mut engine = Engine::new(cfg).unwrap();
    let group = engine.add_memcg(MemcgId::ROOT, "/file", u64::MAX, 0).unwrap();
    let (_, first) = engine.add_mapping(MappingKind::File, group, 0..100).unwrap();
    let later = |_: &AtOnce, e| matches!(e, Effect::Write { .. } | Effect::WakeFlusher).then_some(Ack::Pending);
    (engine, first, AtOnce::answering(later))
}

/// As in Linux the age is that of the file: it is written whole, by index, and what is dirtied
/// later waits for its own 30 s.
#[test]
fn a_file_is_written_when_it_is_dirty_for_30_s_and_not_before() {
    let (mut engine, first, mut w) = machine(10);
    for i in (0..10).rev() {
        engine.set_now_ns(u64::from(9 - i) * SECOND);
        engine.access(&mut w, PageId(first.0 + i), Touch::Write);
    }
    let mut written = Vec::new();
    for second in 10..70 {
        engine.set_now_ns(second * SECOND);
        if second == 32 {
            engine.access(&mut w, PageId(first.0 + 50), Touch::Write);
        }
        engine.flush_expired(&mut w);
        engine.validate().unwrap();
        for page in w.take_pages() {
            written.push((second, page.0 - first.0));
            engine.write_done(&mut w, page, true);
        }
    }
    // It looks every 5 s.
    let expected: Vec<(u64, u32)> = (0..10).map(|i| (30, i)).chain([(65, 50)]).collect();
    assert_eq!(written, expected);
}

/// The flusher goes on by index where it was, round the file, and stops where few enough are dirty.
#[test]
fn the_flusher_goes_round_a_file() {
    let (mut engine, first, mut w) = machine(0);
    let mut written = Vec::new();
    for round in [&[70, 20, 40][..], &[60, 10, 80]] {
        round.iter().for_each(|i| _ = engine.access(&mut w, PageId(first.0 + i), Touch::Write));
        engine.flush(&mut w);
        for page in w.take_pages() {
            written.push(page.0 - first.0);
            engine.write_done(&mut w, page, true);
        }
        engine.validate().unwrap();
    }
    assert_eq!(written, [20, 40, 70, 80, 10, 60]);
}

/// Two files: as much of one as is written at a time, then of the other.
#[test]
fn files_take_turns() {
    let node = NodeConfig { low_zones: [0, 0], ..NodeConfig::new(40_000) };
    let cfg = Config { node: Some(node), total_pages: 40_000, ..Config::new(Policy::Lru) };
    let mut engine = Engine::new(cfg).unwrap();
    let group = engine.add_memcg(MemcgId::ROOT, "/files", u64::MAX, 0).unwrap();
    let mut files = [PageId(0); 2];
    files.iter_mut().for_each(|f| *f = engine.add_mapping(MappingKind::File, group, 0..10_000).unwrap().1);
    let later = |_: &AtOnce, e| matches!(e, Effect::Write { .. } | Effect::WakeFlusher).then_some(Ack::Pending);
    let mut w = AtOnce::answering(later);
    for i in 0..2900 {
        files.iter().for_each(|f| _ = engine.access(&mut w, PageId(f.0 + i), Touch::Write));
    }
    engine.flush(&mut w);
    let written = w.take_pages();
    // 5800 are dirty of some 3950 that may be; a fifth of 40,000 in eight parts is below 1024, so
    // that 1024 are written of the first, and 1024 of the other.
    let of_first = written.iter().filter(|p| **p < files[1]).count();
    assert_eq!((written.len(), of_first), (2048, 1024));
    assert!(written.is_sorted(), "by index");
}

/// The flusher met it while it was being written, and forgot it.
#[test]
fn a_page_dirtied_again_during_its_write_is_written_again() {
    let (mut engine, first, mut w) = machine(0);
    engine.access(&mut w, first, Touch::Write);
    engine.write_page(&mut w, first);
    assert_eq!(w.take_pages(), [first]);
    engine.access(&mut w, first, Touch::Write);
    engine.flush(&mut w);
    assert!(w.take_pages().is_empty(), "one write at a time");
    engine.write_done(&mut w, first, true);
    engine.flush(&mut w);
    assert_eq!(w.take_pages(), [first]);
    engine.validate().unwrap();
}

/// Pages that are written while 200 of a group of 1000 become dirty, and then by `fsync`.
fn written(cgroup_writeback: bool) -> (usize, Vec<PageId>) {
    let dirty = DirtyConfig { cgroup_writeback, ..DirtyConfig::default() };
    let mut engine = Engine::new(Config { dirty, ..Config::new(Policy::Lru) }).unwrap();
    let group = engine.add_memcg(MemcgId::ROOT, "/file", 1000, 0).unwrap();
    let (_, first) = engine.add_mapping(MappingKind::File, group, 0..1000).unwrap();
    let (other, second) = engine.add_mapping(MappingKind::File, group, 0..10).unwrap();
    let mut w = AtOnce::answering(|_, e| match e {
        Effect::WakeFlusher => Some(Ack::Done),
        Effect::Write { .. } => Some(Ack::Pending),
        _ => None,
    });
    engine.access(&mut w, second, Touch::Write);
    for i in 0..200 {
        engine.access(&mut w, PageId(first.0 + i), Touch::Write);
        engine.validate().unwrap();
    }
    let flushed = w.take_pages().len();
    engine.fsync(&mut w, other);
    engine.validate().unwrap();
    (flushed, w.take_pages())
}

#[test]
fn regression_without_cgroup_writeback_nobody_looks_at_the_dirty_pages_of_a_group() {
    let (with, _) = written(true);
    assert!(with > 0, "more than a tenth of the group is dirty");
    let (without, by_fsync) = written(false);
    assert_eq!((without, by_fsync.len()), (0, 1), "and fsync writes that file only");
}

/// Two files that are old are written in chunks, one and the other in turn; pages that become dirty
/// meanwhile are not old.
#[test]
fn old_files_are_written_in_chunks() {
    let node = NodeConfig { low_zones: [0, 0], ..NodeConfig::new(400_000) };
    let cfg = Config { node: Some(node), total_pages: 400_000, ..Config::new(Policy::Lru) };
    let mut engine = Engine::new(cfg).unwrap();
    let group = engine.add_memcg(MemcgId::ROOT, "/files", u64::MAX, 0).unwrap();
    let mut files = [PageId(0); 2];
    files.iter_mut().for_each(|f| *f = engine.add_mapping(MappingKind::File, group, 0..20_000).unwrap().1);
    let later = |_: &AtOnce, e| matches!(e, Effect::Write { .. } | Effect::WakeFlusher).then_some(Ack::Pending);
    let mut w = AtOnce::answering(later);
    for i in 0..15_000 {
        files.iter().for_each(|f| _ = engine.access(&mut w, PageId(f.0 + i), Touch::Write));
    }
    engine.set_now_ns(31 * SECOND);
    let mut steps = Vec::new();
    loop {
        let step = engine.flush_expired_step(&mut w);
        let written = w.take_pages();
        steps.push((written.len(), written.iter().filter(|p| **p < files[1]).count()));
        engine.access(&mut w, PageId(files[0].0 + 15_000 + steps.len() as u32), Touch::Write);
        engine.validate().unwrap();
        if step == FlushStep::Sleep {
            break;
        }
    }
    // An eighth of a fifth of 400,000 pages, in multiples of 1024; then the rest of each.
    assert_eq!(steps, [(10_240, 10_240), (10_240, 0), (4760, 4760), (4760, 0)]);
}
