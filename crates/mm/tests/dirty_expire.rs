//! Writeback by age, as a driver sees it whose flusher runs by itself.

use refault_mm::{Ack, Config, Effect, Engine, MappingKind, MemcgId, NodeConfig, PageId, Policy, Touch};
use refault_testing::AtOnce;

const SECOND: u64 = 1_000_000_000;

/// Writes end later.
fn machine() -> (Engine, PageId, AtOnce) {
    let node = NodeConfig { low_zones: [0, 0], ..NodeConfig::new(4000) };
    let cfg = Config { node: Some(node), total_pages: 4000, ..Config::new(Policy::Mglru) };
    let mut engine = Engine::new(cfg).unwrap();
    let group = engine.add_memcg(MemcgId::ROOT, "/file", u64::MAX, 0).unwrap();
    let (_, first) = engine.add_mapping(MappingKind::File, group, 0..100).unwrap();
    let later = |_: &AtOnce, e| matches!(e, Effect::Write { .. } | Effect::WakeFlusher).then_some(Ack::Pending);
    (engine, first, AtOnce::answering(later))
}

#[test]
fn pages_are_written_when_they_are_dirty_for_30_s_and_not_before() {
    let (mut engine, first, mut w) = machine();
    for i in 0..10 {
        engine.set_now_ns(u64::from(i) * SECOND);
        engine.access(&mut w, PageId(first.0 + i), Touch::Write);
    }
    let mut written = Vec::new();
    for second in 10..60 {
        engine.set_now_ns(second * SECOND);
        engine.flush_expired(&mut w);
        engine.validate().unwrap();
        for page in w.take_pages() {
            written.push((second, page.0 - first.0));
            engine.write_done(&mut w, page, true);
        }
    }
    // It looks every 5 s: at 10, 15, ... so pages dirtied at 0, then at 1 to 5, then 6 to 9.
    let expected: Vec<(u64, u32)> = (0..10)
        .map(|i| {
            (
                if i == 0 {
                    30
                } else if i < 6 {
                    35
                } else {
                    40
                },
                i,
            )
        })
        .collect();
    assert_eq!(written, expected);
}

/// The flusher met it while it was being written, and forgot it.
#[test]
fn a_page_dirtied_again_during_its_write_is_written_again() {
    let (mut engine, first, mut w) = machine();
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
