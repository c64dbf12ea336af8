//! How much may be dirty: of a machine, as Linux computes it, and of a group.

use refault_mm::{Ack, Config, Effect, Engine, MappingKind, MemcgId, MemcgLimits, NodeConfig, PageId, Policy, Touch};
use refault_testing::AtOnce;

/// Pages of the machine, one zone.
const MACHINE: u64 = 40_000;

fn machine() -> Engine {
    let node = NodeConfig { low_zones: [0, 0], ..NodeConfig::new(MACHINE) };
    Engine::new(Config { node: Some(node), total_pages: MACHINE, ..Config::new(Policy::Lru) }).unwrap()
}

/// How many pages a file of a group has dirty when the flusher is woken.
fn dirty_when_flushed(engine: &mut Engine, group: MemcgId) -> u64 {
    let (_, first) = engine.add_mapping(MappingKind::File, group, 0..10_000).unwrap();
    let mut w = AtOnce::answering(|_, e| matches!(e, Effect::WakeFlusher).then_some(Ack::Pending));
    for i in 0..10_000 {
        engine.access(&mut w, PageId(first.0 + i), Touch::Write);
        if w.noted.contains(&Effect::WakeFlusher) {
            return u64::from(i) + 1;
        }
    }
    panic!("nothing was flushed");
}

/// `dirty_background_ratio` is of the cache and of free pages beyond those that zones keep, in
/// 4096ths.
#[test]
fn regression_what_zones_keep_cannot_become_dirty() {
    let mut engine = machine();
    let kept: u64 = engine.zones().map(|zone| zone.3.high).sum();
    let group = engine.add_memcg(MemcgId::ROOT, "/g", u64::MAX, 0).unwrap();
    let at = dirty_when_flushed(&mut engine, group);
    // Nodes of the page cache's tree are no cache.
    let most = (MACHINE - kept) * 409 / 4096 + 1;
    assert!((most - 8..=most).contains(&at), "{at}, at most {most}");
}

/// A group cannot have more dirty than its share of what it may grow to: below `memory.high`, too,
/// and below the limits of the groups above it.
#[test]
fn regression_a_groups_dirty_limit_follows_high_and_the_limits_above() {
    let shares = |above: u64, high: u64| {
        let mut engine = machine();
        let parent = engine.add_memcg(MemcgId::ROOT, "/p", above, 0).unwrap();
        let group = engine.add_memcg(parent, "/p/g", 8192, 0).unwrap();
        let limits = MemcgLimits { high, ..engine.memcg_limits(group) };
        engine.set_memcg_limits(&mut AtOnce::default(), group, &limits).unwrap();
        dirty_when_flushed(&mut engine, group)
    };
    let (by_max, by_high, by_parent) = (shares(u64::MAX, u64::MAX), shares(u64::MAX, 4096), shares(4096, u64::MAX));
    assert!((750..=819).contains(&by_max), "{by_max}");
    assert!((360..=410).contains(&by_high), "{by_high}");
    assert!((360..=410).contains(&by_parent), "{by_parent}");
}
