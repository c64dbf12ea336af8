//! Machines of several nodes for tests: a world where everything is done at once, and short hands.

use refault_mm::{
    Ack, Config, Effect, Engine, Gauge, MappingKind, MemcgId, NodeConfig, NodeId, NumaConfig, Outcome, PageId, Policy,
    Touch,
};
use refault_mm::{LruConfig, MemcgConfig};
use refault_testing::AtOnce;

/// Everything is done at once; kswapd is woken, and runs when the test says so.
pub fn notes() -> AtOnce {
    AtOnce::answering(MIGRATIONS_END)
}

/// The same where migrations end later.
pub fn notes_of_pending_migrations() -> AtOnce {
    AtOnce::answering(MIGRATIONS_PEND)
}

pub const MIGRATIONS_END: Answer = |w, effect| answer(w, effect, Ack::Done);
pub const MIGRATIONS_PEND: Answer = |w, effect| answer(w, effect, Ack::Pending);
pub const MIGRATIONS_FAIL: Answer = |w, effect| answer(w, effect, Ack::Failed);

type Answer = fn(&AtOnce, Effect) -> Option<Ack>;

fn answer(w: &AtOnce, effect: Effect, migration: Ack) -> Option<Ack> {
    match effect {
        // Where every page is held in place there is no kswapd.
        Effect::WakeKswapd { .. } if !w.pinned => Some(Ack::Pending),
        Effect::Migrate { .. } => Some(migration),
        _ => None,
    }
}

/// The nodes whose kswapd was woken, in order.
pub fn woken(w: &AtOnce) -> Vec<u8> {
    let node = |e: &Effect| match *e {
        Effect::WakeKswapd { node } => Some(node.0),
        _ => None,
    };
    w.noted.iter().filter_map(node).collect()
}

/// The pages that were to be moved to another node, in order.
pub fn migrated(w: &AtOnce) -> Vec<PageId> {
    let page = |e: &Effect| match *e {
        Effect::Migrate { page, .. } => Some(page),
        _ => None,
    };
    w.noted.iter().filter_map(page).collect()
}

pub fn node(pages: u64) -> NodeConfig {
    NodeConfig { low_zones: [0, 0], ..NodeConfig::new(pages) }
}

/// A machine with a CPU on each of these nodes, and two more CPUs on the first.
pub fn machine(policy: Policy, sizes: &[u64]) -> Config {
    let cpu_nodes = (0..sizes.len() as u8).map(NodeId).collect();
    let numa = NumaConfig { cpu_nodes, ..NumaConfig::new(sizes.iter().map(|&n| node(n)).collect()) };
    Config {
        cpus: sizes.len() + 2,
        numa: Some(numa),
        lru: LruConfig { batch_folios: 0, ..Config::new(policy).lru },
        memcg: MemcgConfig { charge_batch: 1, charge_kernel: false, ..MemcgConfig::default() },
        ..Config::new(policy)
    }
}

pub fn file(e: &mut Engine, memcg: MemcgId, pages: u64) -> PageId {
    e.add_mapping(MappingKind::File, memcg, 0..pages).expect("a file").1
}

pub fn read(e: &mut Engine, w: &mut AtOnce, first: PageId, pages: std::ops::Range<u32>) {
    for p in pages {
        e.access(w, PageId(first.0 + p), Touch::Read);
        e.validate().unwrap();
    }
}

pub fn gauge(gauges: &[Gauge], name: &str) -> u64 {
    gauges.iter().find(|g| g.name == name).map_or(0, |g| g.value)
}

pub fn on_node(e: &Engine, first: PageId, pages: std::ops::Range<u32>, node: u8) -> usize {
    pages.filter(|p| e.page_node(PageId(first.0 + p)) == Some(NodeId(node))).count()
}

/// Fast memory with the CPUs, and slow memory below it.
pub fn tiers(policy: Policy, sizes: [u64; 2]) -> Config {
    let mut cfg = machine(policy, &sizes);
    cfg.swap.pages = 0;
    let numa = cfg.numa.as_mut().expect("several nodes");
    numa.cpu_nodes = vec![NodeId(0)];
    numa.top_tier = vec![true, false];
    numa.demotion_targets = vec![vec![NodeId(1)], vec![]];
    numa.demotion_allowed = numa.demotion_targets.clone();
    numa.tiering.demotion_enabled = true;
    cfg
}

pub fn anon(e: &mut Engine, memcg: MemcgId, pages: u64) -> PageId {
    e.add_mapping(MappingKind::Anon, memcg, 0..pages).expect("a region").1
}

pub fn access(
    e: &mut Engine,
    w: &mut AtOnce,
    first: PageId,
    pages: std::ops::Range<u32>,
    touch: Touch,
) -> Vec<Outcome> {
    pages
        .map(|p| {
            let outcome = e.access(w, PageId(first.0 + p), touch);
            e.validate().unwrap();
            outcome
        })
        .collect()
}

pub fn count(e: &Engine, name: &str) -> u64 {
    e.vmstat().iter().find(|c| c.0 == name).unwrap_or_else(|| panic!("no counter {name}")).1
}
