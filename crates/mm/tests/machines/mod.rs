//! Machines of several nodes for tests: a world where everything is done at once, and short hands.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};

use refault_mm::{
    Ack, Config, Effect, Engine, Gauge, MappingKind, MemcgId, NodeConfig, NodeId, NumaConfig, Outcome, PageId, Policy,
    Touch, World,
};
use refault_mm::{LruConfig, MemcgConfig};

/// Everything is done at once; kswapd is woken, and runs when the test says so.
#[derive(Default)]
pub struct Notes {
    pub woken: Vec<u8>,
    /// How migrations are answered; none: at once.
    pub migrate: Option<Ack>,
    pub migrated: Vec<PageId>,
    pub mapped: BTreeMap<PageId, bool>,
    pub young: BTreeSet<PageId>,
    pub hottest: Option<PageId>,
    pub shared: Option<PageId>,
    /// Something holds every page in place, and there is no kswapd.
    pub pinned: bool,
}

impl World for Notes {
    fn effect(&mut self, effect: Effect) -> Ack {
        match effect {
            Effect::WakeKswapd { node } if !self.pinned => {
                self.woken.push(node.0);
                Ack::Pending
            }
            Effect::Map { page, young, .. } => {
                self.mapped.insert(page, young);
                Ack::Done
            }
            Effect::Unmap { page } => {
                self.mapped.remove(&page);
                Ack::Done
            }
            Effect::Migrate { page, .. } => {
                self.migrated.push(page);
                self.migrate.unwrap_or(Ack::Done)
            }
            _ => Ack::Done,
        }
    }

    fn test_and_clear_young(&mut self, page: PageId) -> bool {
        self.young.remove(&page)
    }

    fn test_and_clear_dirty(&mut self, _: PageId) -> bool {
        false
    }

    fn is_hottest(&mut self, page: PageId) -> bool {
        self.hottest == Some(page)
    }

    fn is_shared_executable(&self, page: PageId) -> bool {
        self.shared == Some(page)
    }

    fn is_pinned(&self, _: PageId) -> bool {
        self.pinned
    }
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

pub fn read(e: &mut Engine, w: &mut Notes, first: PageId, pages: std::ops::Range<u32>) {
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

pub fn access(e: &mut Engine, w: &mut Notes, first: PageId, pages: std::ops::Range<u32>, touch: Touch) -> Vec<Outcome> {
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
