//! Rules that kernel profiles change, seen from outside.

use crate::machines::{access, anon, count, file, machine, notes, read, woken};
use refault_mm::{
    Ack, Advice, Backoff, Config, Effect, Engine, Kernel, KswapdStep, LruConfig, MappingKind, MemcgId, NodeConfig,
    PageId, Policy, SwapDeviceConfig, Touch,
};
use refault_testing::AtOnce;

fn config(kernel: Kernel, policy: Policy) -> Config {
    let mut cfg = Config::new(policy);
    kernel.apply(&mut cfg);
    cfg
}

/// Sizes of the generations of files, the oldest first, of the one group.
fn generations(e: &Engine) -> Vec<u64> {
    let text = e.lru_gen_text();
    let of_group = text.split_once("/g\n").expect("the group").1;
    let line = |l: &str| l.split_whitespace().nth(3).and_then(|n| n.parse().ok());
    of_group.lines().filter_map(line).collect()
}

#[test]
fn cold_file_pages_begin_in_the_oldest_generation_before_6_7() {
    for (kernel, first) in
        [(Kernel::V2022V14, 0), (Kernel::V6_6Rc, 0), (Kernel::V6_1, 1), (Kernel::V6_6, 1), (Kernel::V6_12, 1)]
    {
        let mut cfg = config(kernel, Policy::Mglru);
        cfg.lru.batch_folios = 0;
        let mut e = Engine::new(cfg).unwrap();
        let group = e.add_memcg(MemcgId::ROOT, "/g", u64::MAX, 0).unwrap();
        let (_, page) = e.add_mapping(MappingKind::File, group, 0..10).unwrap();
        let mut w = AtOnce::default();
        (0..10).for_each(|p| _ = e.access(&mut w, PageId(page.0 + p), Touch::Read));
        let mut expected = vec![0; 4];
        expected[first] = 10;
        assert_eq!(generations(&e), expected, "{kernel}");
        e.validate().unwrap();
    }
}

const PAGES: u64 = 40_000;

/// Files in one group, anonymous memory in another, both more than fits.
fn two_groups(mut cfg: Config) -> Engine {
    // kswapd has so much to do that groups are scanned for more than a batch.
    cfg.node = Some(NodeConfig { low_zones: [0, 0], watermark_scale_factor: 1000, ..NodeConfig::new(PAGES) });
    cfg.total_pages = PAGES;
    cfg.swap.devices = vec![SwapDeviceConfig::new(100_000)];
    let mut e = Engine::new(cfg).unwrap();
    let files = e.add_memcg(MemcgId::ROOT, "/files", u64::MAX, u64::MAX).unwrap();
    let heap = e.add_memcg(MemcgId::ROOT, "/heap", u64::MAX, u64::MAX).unwrap();
    let (_, f) = e.add_mapping(MappingKind::File, files, 0..3 * PAGES).unwrap();
    let (_, a) = e.add_mapping(MappingKind::Anon, heap, 0..PAGES).unwrap();
    let mut w = AtOnce::answering(|_, e| {
        matches!(e, refault_mm::Effect::WakeKswapd { .. }).then_some(refault_mm::Ack::Pending)
    });
    for i in 0..3 * PAGES as u32 / 4 {
        e.access(&mut w, PageId(a.0 + i), Touch::MapWrite);
    }
    // Nothing of it is used again, and it is old: it can go without aging.
    for seq in [3, 4] {
        e.lru_gen_command(&mut w, &format!("+ {} 0 {seq}", heap.0)).unwrap();
    }
    for i in 0..PAGES as u32 {
        e.access(&mut w, PageId(f.0 + i), Touch::Read);
        e.run_kswapd(&mut w, 100);
    }
    e.validate().unwrap();
    e
}

/// Pages swapped out where kswapd visits all groups, by when it leaves one.
#[test]
fn version_14_of_the_series_leaves_a_group_that_swaps() {
    let swapped = |backoff, swappiness| {
        let mut cfg = Config { swappiness, ..config(Kernel::V2022V14, Policy::Mglru) };
        cfg.memcg.backoff = backoff;
        let e = two_groups(cfg);
        assert!(count(&e, "pgsteal_file") > PAGES / 4, "there are easy pages");
        count(&e, "pswpout")
    };
    let [v14, v6_1] = [Backoff::AvoidSwapping, Backoff::AnyPriority].map(|b| swapped(b, 60));
    println!("{v14} {v6_1}");
    assert!(v14 < v6_1, "{v14} pages swapped out, {v6_1} by the backoffs of 6.1");
}

#[test]
fn a_walk_over_groups_visits_all_before_6_11_and_stops_at_its_target_since() {
    let spread = |kernel| {
        let mut cfg = config(kernel, Policy::Lru);
        (cfg.memcg.charge_batch, cfg.memcg.charge_kernel) = (1, false);
        let mut e = Engine::new(cfg).unwrap();
        let parent = e.add_memcg(MemcgId::ROOT, "/p", u64::MAX, 0).unwrap();
        let mut w = AtOnce::default();
        for i in 0..4 {
            let group = e.add_memcg(parent, &format!("/p/{i}"), u64::MAX, 0).unwrap();
            let (_, first) = e.add_mapping(MappingKind::File, group, 0..500_000).unwrap();
            (0..200_000).for_each(|p| _ = e.access(&mut w, PageId(first.0 + p), Touch::Read));
        }
        e.drain_all();
        e.reclaim(&mut w, parent, 32, None).unwrap();
        e.validate().unwrap();
        let stolen = |m: MemcgId| e.memcg_stats(m).iter().any(|(name, n)| name == "pgsteal_file" && n > 0);
        (2..6).filter(|&m| stolen(MemcgId(m))).count()
    };
    assert_eq!((spread(Kernel::V6_6), spread(Kernel::V6_12)), (4, 1));
}

/// Pages that are being read are locked: what reclaim could not take must not stay where it looks
/// first, or run after run finds nothing else.
#[test]
fn what_is_being_read_leaves_the_oldest_generation() {
    for kernel in [Kernel::V6_12, Kernel::V6_18, Kernel::V7_2] {
        let mut cfg = config(kernel, Policy::Mglru);
        cfg.lru.batch_folios = 0;
        let mut e = Engine::new(cfg).unwrap();
        let group = e.add_memcg(MemcgId::ROOT, "/g", 1000, 0).unwrap();
        let (_, page) = e.add_mapping(MappingKind::File, group, 0..2000).unwrap();
        let mut later = AtOnce::answering(|_, e| matches!(e, Effect::Read { .. }).then_some(Ack::Pending));
        (0..100).for_each(|p| _ = e.access(&mut later, PageId(page.0 + p), Touch::Read));
        let mut w = AtOnce::default();
        (100..1200).for_each(|p| _ = e.access(&mut w, PageId(page.0 + p), Touch::Read));
        let young: u64 = generations(&e)[2..].iter().sum();
        assert_eq!(young, 100, "{kernel}: {:?}", generations(&e));
        e.validate().unwrap();
    }
}

/// All of the machine is anonymous memory without swap, so that kswapd gives up; a group reads
/// files at its own limit, which frees a page for each that it takes.
#[test]
fn a_group_at_its_limit_revives_a_kswapd_that_gave_up_before_7_2() {
    for (kernel, policy) in
        [Kernel::V6_12, Kernel::V7_2].into_iter().flat_map(|k| [(k, Policy::Lru), (k, Policy::Mglru)])
    {
        let mut cfg =
            Config { lru: LruConfig { batch_folios: 0, ..Config::new(policy).lru }, ..machine(policy, &[1000]) };
        kernel.apply(&mut cfg);
        cfg.numa.as_mut().unwrap().nodes[0].min_free_kbytes = Some(400);
        cfg.swap.pages = 0;
        let mut e = Engine::new(cfg).unwrap();
        let mut w = notes();
        let group = e.add_memcg(MemcgId::ROOT, "/g", 8, 0).unwrap();
        let a = anon(&mut e, MemcgId::ROOT, 1000);
        let mut next = 0;
        while woken(&w).is_empty() {
            access(&mut e, &mut w, a, next..next + 1, Touch::MapWrite);
            next += 1;
        }
        e.run_kswapd(&mut w, 1000);
        let wakes = woken(&w).len();
        let f = file(&mut e, group, 100);
        // Charged up to the limit, without reclaim; then with it.
        read(&mut e, &mut w, f, 0..8);
        assert_eq!(woken(&w).len(), wakes, "{kernel} {policy}: it gave up");
        read(&mut e, &mut w, f, 8..40);
        assert!(count(&e, "pgscan_direct") > 0, "{kernel} {policy}");
        assert_eq!(woken(&w).len() > wakes, kernel == Kernel::V6_12, "{kernel} {policy}");
        e.validate().unwrap();
    }
}

/// A machine with two lists whose memory is full of dirty pages of a file, and whose kswapd was
/// woken. Nobody else writes them: the flusher does not get to run.
fn full_of_dirty_pages(kernel: Kernel) -> (Engine, AtOnce) {
    let policy = Policy::Lru;
    let mut cfg = Config { lru: LruConfig { batch_folios: 0, ..Config::new(policy).lru }, ..machine(policy, &[1000]) };
    kernel.apply(&mut cfg);
    (cfg.dirty.background_ratio, cfg.dirty.ratio) = (99, 100);
    let mut e = Engine::new(cfg).unwrap();
    let mut w = AtOnce::answering(|_, effect| {
        matches!(effect, Effect::WakeKswapd { .. } | Effect::WakeFlusher).then_some(Ack::Pending)
    });
    let f = file(&mut e, MemcgId::ROOT, 1000);
    let mut next = 0;
    while woken(&w).is_empty() {
        access(&mut e, &mut w, f, next..next + 1, Touch::Write);
        next += 1;
    }
    (e, w)
}

#[test]
fn kswapd_writes_dirty_pages_of_files_up_to_6_1() {
    for kernel in Kernel::ALL {
        let (mut e, mut w) = full_of_dirty_pages(kernel);
        e.run_kswapd(&mut w, 1000);
        let writes = matches!(kernel, Kernel::V2022V14 | Kernel::V6_1);
        assert_eq!(count(&e, "nr_vmscan_write") > 0, writes, "{kernel}");
        assert!(count(&e, "nr_vmscan_immediate_reclaim") > 0, "{kernel}");
        e.validate().unwrap();
    }
}

/// A run that only trimmed the cache begins anew and is one run all the same, so that kswapd gives
/// up after 16 of them, as without.
#[test]
fn a_run_that_trimmed_in_vain_and_its_repetition_are_one_run() {
    let passes = [Kernel::V6_6, Kernel::V6_12].map(|kernel| {
        let (mut e, mut w) = full_of_dirty_pages(kernel);
        let passes = (1..).find(|_| e.kswapd_step(&mut w) == KswapdStep::Sleep).unwrap();
        assert_eq!((count(&e, "pageoutrun"), count(&e, "pgsteal_file")), (16, 0), "{kernel}");
        e.validate().unwrap();
        passes
    });
    assert!(passes[1] > passes[0], "it was repeated: {passes:?}");
}

/// A command to evict that met nothing but folios in a batch of another CPU went on for ever where
/// what is looked at counts, too.
#[test]
fn regression_a_command_to_evict_ends_where_another_cpu_holds_all_that_is_left() {
    let mut cfg = config(Kernel::V7_2, Policy::Mglru);
    cfg.cpus = 2;
    let mut e = Engine::new(cfg).unwrap();
    let group = e.add_memcg(MemcgId::ROOT, "/g", u64::MAX, 0).unwrap();
    let (_, page) = e.add_mapping(MappingKind::File, group, 0..40).unwrap();
    let mut w = AtOnce::default();
    (0..40).for_each(|p| _ = e.access(&mut w, PageId(page.0 + p), Touch::Read));
    e.drain_all();
    e.lru_gen_command(&mut w, &format!("+ {} 0 3", group.0)).unwrap();
    e.set_cpu(1);
    (0..5).for_each(|p| e.advise(PageId(page.0 + p), Advice::InUse));
    e.set_cpu(0);
    e.lru_gen_command(&mut w, &format!("- {} 0 1 60", group.0)).unwrap();
    assert_eq!(count(&e, "pgsteal_file"), 35, "{:?}", generations(&e));
    e.validate().unwrap();
}

/// Another CPU holds all of the oldest generation, and a younger one is full: under 7.2 a run went
/// round there until its budget was used up, at each priority.
#[test]
fn regression_a_run_leaves_what_another_cpu_holds() {
    let mut cfg = config(Kernel::V7_2, Policy::Mglru);
    cfg.cpus = 2;
    let mut e = Engine::new(cfg).unwrap();
    let group = e.add_memcg(MemcgId::ROOT, "/g", u64::MAX, 0).unwrap();
    let mut w = AtOnce::default();
    let mut pages = [10, 4000].map(|nr| e.add_mapping(MappingKind::File, group, 0..nr).unwrap().1).into_iter();
    let held = pages.next().unwrap();
    (0..10).for_each(|p| _ = e.access(&mut w, PageId(held.0 + p), Touch::Read));
    e.drain_all();
    (3..5).for_each(|seq| e.lru_gen_command(&mut w, &format!("+ {} 0 {seq}", group.0)).unwrap());
    let others = pages.next().unwrap();
    (0..4000).for_each(|p| _ = e.access(&mut w, PageId(others.0 + p), Touch::Read));
    e.drain_all();
    e.set_cpu(1);
    (0..10).for_each(|p| e.advise(PageId(held.0 + p), Advice::InUse));
    e.set_cpu(0);
    let _ = e.reclaim(&mut w, group, 100, None);
    assert!(count(&e, "pgskip") < 1000, "{} {:?}", count(&e, "pgskip"), generations(&e));
    e.validate().unwrap();
}
