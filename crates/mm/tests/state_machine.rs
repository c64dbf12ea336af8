//! Random operations against a model of the contents; every invariant after every step.

use crate::model::{Contents, Device, Driver, Op};
use proptest::prelude::*;
use refault_mm::{
    AccessAdvice, Advice, Config, HugeAdvice, Kernel, MemcgSelection, NodeConfig, Policy, SwapAllocator,
    SwapDeviceConfig, ThpConfig, ThpDefrag, ThpMode, ThpSize, Touch, ZswapConfig,
};
use refault_mm::{FaultAroundConfig, LruConfig, MemcgConfig, ReadaheadConfig, ShadowConfig, SwapConfig};
use refault_testing::by_length;

fn touch() -> impl Strategy<Value = Touch> {
    prop_oneof![
        4 => Just(Touch::Read),
        1 => Just(Touch::ReadContinued),
        1 => Just(Touch::Write),
        3 => Just(Touch::MapRead),
        3 => Just(Touch::MapWrite),
    ]
}

/// Pages with a hot set, so that some are touched often.
fn page() -> impl Strategy<Value = u32> + Clone {
    // Beyond 300 there is something only in trees of groups.
    prop_oneof![2 => 0u32..20, 1 => 150u32..170, 3 => 0u32..300, 1 => 300u32..500]
}

fn advice() -> impl Strategy<Value = Advice> {
    prop_oneof![Just(Advice::Cold), Just(Advice::Free), Just(Advice::DontNeed), Just(Advice::InUse)]
}

fn op(page: impl Strategy<Value = u32> + Clone + 'static) -> impl Strategy<Value = Op> {
    // Small ranges, and such that hold folios of any size.
    let range = || prop_oneof![3 => 1u16..20, 2 => 1u16..700];
    prop_oneof![
        60 => (page.clone(), touch()).prop_map(|(p, t)| Op::Access(p, t)),
        1 => (page.clone(), range(), advice()).prop_map(|(p, n, a)| Op::AdviseRange(p, n, a)),
        2 => (page.clone(), range()).prop_map(|(p, n)| Op::PageOut(p, n)),
        2 => (page.clone(), range()).prop_map(|(p, n)| Op::DropRange(p, n)),
        1 => (any::<u8>(), prop::sample::select(&AccessAdvice::ALL[..])).prop_map(|(n, a)| Op::AdviseAccess(n, a.1)),
        1 => prop_oneof![Just(HugeAdvice::None), Just(HugeAdvice::Huge), Just(HugeAdvice::NoHuge)].prop_map(Op::Huge),
        8 => (any::<u8>(), prop::bool::weighted(0.9)).prop_map(|(n, ok)| Op::Complete(n, ok)),
        2 => (page, advice()).prop_map(|(p, a)| Op::Advise(p, a)),
        1 => Just(Op::Drain),
        1 => Just(Op::Flush),
        1 => any::<u8>().prop_map(Op::Cpu),
        1 => (0u32..5000).prop_map(Op::Wait),
        12 => (0u32..150, 1u8..5).prop_map(|(p, n)| Op::ReadFile(p, n)),
        6 => (0u8..20).prop_map(Op::Kswapd),
        1 => any::<u8>().prop_map(Op::ThrottleEnded),
        1 => (0u8..60).prop_map(Op::External),
        1 => (64u16..600).prop_map(Op::Resize),
        1 => prop::bool::weighted(0.1).prop_map(|exit| if exit { Op::Exit } else { Op::Kswapd(1) }),
        2 => prop::bool::weighted(0.5).prop_flat_map(|new| any::<u8>().prop_map(move |n| if new { Op::NewGroup(n) } else { Op::RemoveGroup(n) })),
        2 => (any::<u8>(), any::<u8>(), 0u16..250).prop_map(|(n, which, pages)| Op::Limit(n, which, pages)),
        1 => (any::<u8>(), 1u8..80).prop_map(|(n, pages)| Op::Reclaim(n, pages)),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(mapping, to)| Op::Move(mapping, to)),
        1 => any::<bool>().prop_map(Op::Age),
        1 => any::<u8>().prop_map(Op::Evict),
        4 => (0u8..5).prop_map(Op::Zswap),
        1 => (prop::sample::select(vec![0u64, 1, 10, u64::MAX]), prop::bool::weighted(0.8))
            .prop_map(|(max, writeback)| Op::ZswapLimit(max, writeback)),
        1 => (0u8..40).prop_map(Op::Swapon),
        1 => any::<u8>().prop_map(Op::Swapoff),
    ]
}

fn thp() -> impl Strategy<Value = ThpConfig> {
    let mode = || prop::sample::select(vec![ThpMode::Always, ThpMode::Madvise, ThpMode::Never]);
    let size = prop::sample::select(vec![ThpSize::Always, ThpSize::Inherit, ThpSize::Madvise, ThpSize::Never]);
    let defrag = prop::sample::select(ThpDefrag::ALL.to_vec());
    (mode(), defrag, any::<bool>(), prop::array::uniform10(size)).prop_map(|(enabled, defrag, swap_in, mut sizes)| {
        sizes[..usize::from(ThpConfig::MIN_ORDER)].fill(ThpSize::Never);
        ThpConfig { enabled, sizes, defrag, swap_in }
    })
}

/// Policies and devices by the bits of a number.
fn set_up_swap(cfg: &mut Config, setup: u8) {
    let bit = |n: u8| setup >> n & 1 == 1;
    cfg.swap.policy.allocator = SwapAllocator::ALL[usize::from(setup & 3)];
    cfg.swap.policy.slot_cache = bit(2);
    cfg.swap.policy.cluster_pages = if bit(3) { 256 } else { 512 };
    if bit(4) {
        let first = SwapDeviceConfig { priority: Some(1), synchronous: bit(7), ..SwapDeviceConfig::new(30) };
        let second = SwapDeviceConfig { discard: bit(5), rotational: bit(6), ..SwapDeviceConfig::new(700) };
        cfg.swap.devices = vec![first, second];
    }
}

prop_compose! {
    fn config(most_pages: u64)(
        (policy, kernel) in (prop::sample::select(Policy::every().collect::<Vec<_>>()), prop::sample::select(&Kernel::ALL[..])),
        batch_folios in prop::sample::select(vec![0usize, 1, 5, 31]),
        swap_cluster_max in prop::sample::select(vec![1u64, 8, 32]),
        charge_batch in prop::sample::select(vec![1u64, 64]),
        (charge_kernel, swap_synchronous, fault_around_young, leaf_walk, one_list) in any::<(bool, bool, bool, bool, bool)>(),
        swappiness in prop::sample::select(vec![0u32, 1, 60, 100, 200]),
        // Without a whole cluster, with one, and with several.
        (swap_pages, swap_setup) in (prop::sample::select(vec![0u64, 20, 1000, 1100, 4000]), any::<u8>()),
        fault_around_pages in prop::sample::select(vec![1u64, 16]),
        eviction_bits_max in prop::sample::select(vec![8u32, 12, 64]),
        (writeback_next, recent_only, literal) in any::<(bool, bool, bool)>(),
        seed in any::<u64>(),
        node in prop::option::of((64u64..most_pages, prop::option::of(0u64..64), 0u32..500)),
        thp in prop_oneof![Just(ThpConfig::default()), thp()],
        memcgs in prop::sample::select(vec![MemcgSelection::Iterate, MemcgSelection::First, MemcgSelection::MemcgLru]),
        stat_flush_interval_ns in prop::sample::select(vec![0u64, 2_000_000_000]),
        (page_cluster, read_ahead_pages) in (0u32..4, prop::sample::select(vec![0u32, 4, 32])),
        zswap in prop::option::of(
            (prop::sample::select(vec![0u64, 1, 2, 20, 100]), prop::sample::select(vec![0u64, 50, 90, 100]), any::<bool>())),
    ) -> Config {
        let mut cfg = Config::new(policy);
        kernel.apply(&mut cfg);
        cfg.lru.writeback_sort =
            if writeback_next { refault_mm::WritebackSort::NextGeneration } else { refault_mm::WritebackSort::None };
        cfg.lru.refault_counting =
            if recent_only { refault_mm::RefaultCounting::RecentOnly } else { refault_mm::RefaultCounting::All };
        cfg.lru.recency = if literal { refault_mm::Recency::Literal } else { refault_mm::Recency::ThreeBit };
        cfg.lru.lru_gen.leaf_walk = leaf_walk;
        set_up_swap(&mut cfg, swap_setup);
        let node = node.map(|(pages, min_free_kbytes, watermark_scale_factor)| NodeConfig {
            min_free_kbytes, watermark_scale_factor, low_zones: [pages / 8, pages / 2], ..NodeConfig::new(pages)
        });
        let zswap = zswap.map(|(max_pool_percent, accept_threshold_percent, same_filled)|
            ZswapConfig {
                max_pool_percent,
                max_pool_pages: if seed & 4 > 0 { 8 } else { u64::MAX },
                accept_threshold_percent,
                same_filled,
            });
        Config {
            memcg: MemcgConfig { selection: memcgs, charge_batch, charge_kernel, ..cfg.memcg },
            lru: LruConfig {
                stat_flush_interval_ns,
                batch_folios,
                swap_cluster_max,
                one_list: one_list && batch_folios == 0,
                ..cfg.lru
            },
            readahead: ReadaheadConfig {
                page_cluster,
                file_pages: read_ahead_pages,
                swap_map_ahead: seed & 1 > 0,
                file_map_ahead: seed & 2 > 0,
                history: seed & 8 > 0,
                file_order: if seed & 16 > 0 { 9 } else { 0 },
                order_growth: kernel.order_growth(),
                mmap_hits: kernel.mmap_hits(),
            },
            swap: SwapConfig {
                synchronous: swap_synchronous,
                pages: swap_pages,
                reclaim_cache: seed & 4 > 0,
                ..cfg.swap.clone()
            },
            fault_around: FaultAroundConfig { young: fault_around_young, pages: fault_around_pages },
            shadow: ShadowConfig { eviction_bits_max, ..cfg.shadow },
            zswap,
            node,
            swappiness,
            cpus: 2,
            seed,
            total_pages: 4096,
            thp,
            ..cfg
        }
    }
}

fn run(cfg: Config, device: Device, memory: u64, ops: &[Op]) -> Result<Driver, TestCaseError> {
    run_with(cfg, device, [150, 150], memory, ops)
}

fn run_with(
    cfg: Config,
    device: Device,
    [files, anons]: [u32; 2],
    memory: u64,
    ops: &[Op],
) -> Result<Driver, TestCaseError> {
    let mut driver = Driver::new(cfg, device, files, anons, memory, u64::MAX);
    driver.world.kind = (!memory.is_multiple_of(3)).then_some(Contents::mixed);
    driver.world.may_be_empty |= !memory.is_multiple_of(3);
    driver.world.keeps_copies = memory.is_multiple_of(2);
    for (i, &op) in ops.iter().enumerate() {
        driver.step(op).map_err(|e| TestCaseError::fail(format!("step {i}, {op:?}: {e}")))?;
    }
    Ok(driver)
}

/// More with `REFAULT_LONG`; `PROPTEST_CASES` sets another number.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(by_length(50, 200, 500))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn contents_survive_and_invariants_hold(
        cfg in config(320),
        device in prop::sample::select(vec![Device::Instant, Device::Slow, Device::Flaky]),
        memory in 40u64..220,
        ops in prop::collection::vec(op(page()), 1..400),
    ) {
        run(cfg, device, memory, &ops)?;
    }

    /// The same with more anonymous memory: folios of all sizes.
    #[test]
    fn large_folios_are_whole_or_split(
        (cfg, thp) in (config(2000), thp()),
        device in prop::sample::select(vec![Device::Instant, Device::Slow, Device::Flaky]),
        memory in 100u64..1400,
        ops in prop::collection::vec(op(prop_oneof![1 => 0u32..30, 4 => 0u32..1200]), 1..200),
    ) {
        run_with(Config { thp, ..cfg }, device, [30, 1170], memory, &ops)?;
    }

    /// The same configuration and the same events give the same state.
    #[test]
    fn runs_are_repeatable(cfg in config(320), memory in 40u64..220, ops in prop::collection::vec(op(page()), 1..200)) {
        let a = run(cfg.clone(), Device::Flaky, memory, &ops)?;
        let b = run(cfg, Device::Flaky, memory, &ops)?;
        prop_assert_eq!(a.engine.vmstat(), b.engine.vmstat());
        prop_assert_eq!(a.engine.memcg_gauges(a.group), b.engine.memcg_gauges(b.group));
        prop_assert_eq!(a.engine.lru_gen_full_text(), b.engine.lru_gen_full_text());
    }
}
