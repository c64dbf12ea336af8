//! Random machines of several nodes in tiers, under random loads; every invariant after every step.

use std::collections::BTreeMap;

use crate::model::{Contents, Device, Driver, Op};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use refault_mm::tiering::{PromotionPolicy, TieringConfig};
use refault_mm::{Advice, Config, MemcgSelection, NodeConfig, NodeId, NumaConfig, Policy, Touch, ZswapConfig};
use refault_mm::{LruConfig, MemcgConfig, ShadowConfig, SwapConfig};
use refault_testing::{by_length, short_or_long};

fn touch() -> impl Strategy<Value = Touch> {
    prop_oneof![
        4 => Just(Touch::Read),
        1 => Just(Touch::ReadContinued),
        1 => Just(Touch::Write),
        3 => Just(Touch::MapRead),
        3 => Just(Touch::MapWrite),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let page = || prop_oneof![2 => 0u32..20, 1 => 250u32..270, 4 => 0u32..500, 1 => 500u32..700];
    let advice = prop_oneof![Just(Advice::Cold), Just(Advice::Free), Just(Advice::DontNeed), Just(Advice::InUse)];
    prop_oneof![
        60 => (page(), touch()).prop_map(|(p, t)| Op::Access(p, t)),
        1 => (page(), 1u16..40, advice).prop_map(|(p, n, a)| Op::AdviseRange(p, n, a)),
        2 => (page(), 1u16..40).prop_map(|(p, n)| Op::PageOut(p, n)),
        2 => (page(), 1u16..40).prop_map(|(p, n)| Op::DropRange(p, n)),
        10 => (any::<u8>(), prop::bool::weighted(0.9)).prop_map(|(n, ok)| Op::Complete(n, ok)),
        1 => Just(Op::Drain),
        1 => Just(Op::Flush),
        5 => any::<u8>().prop_map(Op::Cpu),
        1 => (0u32..5000).prop_map(Op::Wait),
        10 => (0u8..20).prop_map(Op::Kswapd),
        15 => (page(), 1u16..200).prop_map(|(p, n)| Op::HintMark(p, n)),
        1 => any::<u8>().prop_map(Op::ThrottleEnded),
        1 => (0u8..60).prop_map(Op::External),
        1 => prop::bool::weighted(0.1).prop_map(|exit| if exit { Op::Exit } else { Op::Kswapd(1) }),
        1 => any::<u8>().prop_map(Op::NewGroup),
        1 => any::<u8>().prop_map(Op::RemoveGroup),
        2 => (any::<u8>(), any::<u8>(), 0u16..250).prop_map(|(n, which, pages)| Op::Limit(n, which, pages)),
        1 => (any::<u8>(), 1u8..80).prop_map(|(n, pages)| Op::Reclaim(n, pages)),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(mapping, to)| Op::Move(mapping, to)),
        1 => any::<bool>().prop_map(Op::Age),
        1 => any::<u8>().prop_map(Op::Evict),
        1 => any::<u8>().prop_map(Op::Swapoff),
        1 => (0u8..40).prop_map(Op::Swapon),
    ]
}

prop_compose! {
    fn numa()(
        sizes in prop::collection::vec((64u64..160, any::<bool>()), 2..5),
        cpu_nodes in prop::collection::vec(any::<u8>(), 2),
        min_free_kbytes in prop::option::of(0u64..128),
        watermark_scale_factor in 0u32..300,
        distances in prop::collection::vec(11u32..40, 16),
        tiers in prop::collection::vec(0u8..3, 4),
        (demotion_enabled, tiering) in any::<(bool, bool)>(),
        policy in prop::sample::select(&PromotionPolicy::ALL[..]),
        (limit, threshold, stamp_bits, free_space_pages) in (1u64..200, 8u64..4000, 12u32..=32, 0u64..200),
    ) -> NumaConfig {
        let nr = sizes.len();
        let nodes = sizes.iter().map(|&(pages, low)| NodeConfig {
            min_free_kbytes, watermark_scale_factor,
            low_zones: if low { [pages / 8, pages / 2] } else { [0, 0] }, ..NodeConfig::new(pages)
        });
        let distance = |a: usize, b: usize| if a == b { 10 } else { distances[a.min(b) * 4 + a.max(b)] };
        let cpu_nodes: Vec<NodeId> = cpu_nodes.iter().map(|&n| NodeId(n % nr as u8)).collect();
        // Nodes with CPUs are the top tier here; the others may be, or one of two below.
        let tier = |n: usize| if cpu_nodes.contains(&NodeId(n as u8)) { 0 } else { tiers[n] };
        let in_tier = |t: u8| (0..nr).filter(|&n| tier(n) == t).map(|n| NodeId(n as u8)).collect::<Vec<_>>();
        let next = |n: usize| (tier(n) + 1..3).map(in_tier).find(|l| !l.is_empty()).unwrap_or_default();
        NumaConfig {
            tiering: TieringConfig {
                demotion_enabled, policy, stamp_bits, free_space_pages,
                numa_balancing: if tiering { 2 } else { 0 },
                promote_rate_limit_pages_per_s: limit,
                hot_threshold_ms: threshold,
                scan_period_max_ms: 3000,
                ..TieringConfig::default()
            },
            top_tier: (0..nr).map(|n| tier(n) == 0).collect(),
            demotion_targets: (0..nr).map(next).collect(),
            demotion_allowed: (0..nr).map(|n| (tier(n) + 1..3).flat_map(in_tier).collect()).collect(),
            cpu_nodes,
            distances: (0..nr).map(|a| (0..nr).map(|b| distance(a, b)).collect()).collect(),
            ..NumaConfig::new(nodes.collect())
        }
    }
}

prop_compose! {
    fn config()(
        policy in prop::sample::select(&Policy::ALL[..]),
        batch_folios in prop::sample::select(vec![0usize, 1, 5, 31]),
        swap_cluster_max in prop::sample::select(vec![1u64, 8, 32]),
        charge_batch in prop::sample::select(vec![1u64, 64]),
        (charge_kernel, swap_synchronous, leaf_walk, thp) in any::<(bool, bool, bool, bool)>(),
        swappiness in prop::sample::select(vec![0u32, 1, 60, 100, 200]),
        swap_pages in prop::sample::select(vec![0u64, 20, 1000]),
        eviction_bits_max in prop::sample::select(vec![8u32, 12, 64]),
        seed in any::<u64>(),
        numa in numa(),
        memcgs in prop::sample::select(vec![MemcgSelection::Iterate, MemcgSelection::First, MemcgSelection::MemcgLru]),
        stat_flush_interval_ns in prop::sample::select(vec![0u64, 2_000_000_000]),
        zswap in prop::option::of(prop::sample::select(vec![1u64, 20, 100])),
    ) -> Config {
        let mut cfg = Config::new(policy);
        cfg.lru.lru_gen.leaf_walk = leaf_walk;
        if thp {
            for size in ["16k=always", "64k=always", "swap-in=on"] {
                cfg.thp.set(size).expect("a size");
            }
        }
        let zswap = zswap.map(|max_pool_percent| ZswapConfig { max_pool_percent, ..ZswapConfig::default() });
        Config { swappiness, seed, zswap, numa: Some(numa), cpus: 2, total_pages: 4096, lru: LruConfig { batch_folios, swap_cluster_max, stat_flush_interval_ns, ..cfg.lru }, memcg: MemcgConfig { charge_batch, charge_kernel, selection: memcgs, ..cfg.memcg }, swap: SwapConfig { synchronous: swap_synchronous, pages: swap_pages, ..cfg.swap.clone() }, shadow: ShadowConfig { eviction_bits_max, ..cfg.shadow }, ..cfg }
    }
}

fn run(cfg: Config, device: Device, memory: u64, ops: &[Op]) -> Result<Driver, TestCaseError> {
    let mut driver = Driver::new(cfg, device, 250, 250, memory, u64::MAX);
    driver.world.kind = (!memory.is_multiple_of(3)).then_some(Contents::mixed);
    driver.world.may_be_empty |= !memory.is_multiple_of(3);
    for (i, &op) in ops.iter().enumerate() {
        driver.step(op).map_err(|e| TestCaseError::fail(format!("step {i}, {op:?}: {e}")))?;
    }
    Ok(driver)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: by_length(30, 100, 200), ..ProptestConfig::default() })]

    /// Frames are conserved on every node, folios are on lists of their nodes, and what was written
    /// is read.
    #[test]
    fn contents_survive_on_several_nodes(
        cfg in config(),
        device in prop::sample::select(vec![Device::Instant, Device::Slow, Device::Flaky]),
        memory in 40u64..800,
        ops in prop::collection::vec(op(), 1..500),
    ) {
        run(cfg, device, memory, &ops)?;
    }

    /// The same configuration and the same events give the same state.
    #[test]
    fn runs_are_repeatable(cfg in config(), memory in 40u64..800, ops in prop::collection::vec(op(), 1..150)) {
        let a = run(cfg.clone(), Device::Flaky, memory, &ops)?;
        let b = run(cfg, Device::Flaky, memory, &ops)?;
        prop_assert_eq!(a.engine.vmstat(), b.engine.vmstat());
        prop_assert_eq!(a.engine.node_gauges(), b.engine.node_gauges());
        prop_assert_eq!(a.engine.lru_gen_full_text(), b.engine.lru_gen_full_text());
    }
}

/// The random machines do what they are there for: pages move down and up, and some moves fail.
#[test]
fn random_loads_move_pages_between_tiers() {
    let mut runner = TestRunner::deterministic();
    let load = (config(), 40u64..800, prop::collection::vec(op(), 600..700));
    let mut moved = BTreeMap::new();
    for device in [Device::Instant, Device::Flaky].repeat(short_or_long(20, 25)) {
        let (mut cfg, memory, ops) = load.new_tree(&mut runner).unwrap().current();
        let tiering = &mut cfg.numa.as_mut().unwrap().tiering;
        (tiering.demotion_enabled, tiering.numa_balancing) = (true, 2);
        let driver = run(cfg, device, memory, &ops).unwrap();
        for (name, n) in driver.engine.vmstat().iter() {
            *moved.entry(name).or_insert(0) += n;
        }
    }
    for name in ["pgpromote_success", "pgpromote_candidate", "numa_hint_faults", "pgmigrate_success", "pgmigrate_fail"]
    {
        assert!(moved[name] > 50, "{name}: {}", moved[name]);
    }
    for (name, least) in [("pgdemote_kswapd", 10), ("pgdemote_direct", 50), ("pgdemote_proactive", 50)] {
        assert!(moved[name] > least, "{name}: {}", moved[name]);
    }
}
