//! Machines of several nodes: where frames come from, whose kswapd works, what counts for whom,
//! what moves down. Random ones are in `tiers_random.rs`, what moves up is in `promotion.rs`.

use crate::machines::{
    MIGRATIONS_END, MIGRATIONS_FAIL, access, anon, count, file, gauge, machine, migrated, node, notes,
    notes_of_pending_migrations, on_node, read, tiers, woken,
};
use refault_mm::LruConfig;
use refault_mm::{
    Advice, Config, Engine, KswapdStep, MappingKind, MemcgId, MemcgSelection, NodeId, NumaConfig, OomTask, Outcome,
    PageId, Policy, SwapDeviceConfig, Touch,
};
use refault_testing::AtOnce;

#[test]
fn frames_come_from_the_node_of_the_cpu_then_from_the_next() {
    let mut e = Engine::new(machine(Policy::Lru, &[400, 400])).unwrap();
    let mut w = notes();
    let f = file(&mut e, MemcgId::ROOT, 1000);
    e.set_cpu(1);
    read(&mut e, &mut w, f, 0..100);
    assert_eq!(on_node(&e, f, 0..100, 1), 100);
    assert_eq!((e.node_free_pages(NodeId(0)), e.node_free_pages(NodeId(1))), (400, 300));
    e.set_cpu(0);
    let low = e.node_zones(NodeId(0)).next().unwrap().3.low;
    let room = 400 - low as u32;
    read(&mut e, &mut w, f, 100..100 + room);
    assert_eq!(on_node(&e, f, 100..100 + room, 0), room as usize);
    read(&mut e, &mut w, f, 500..550);
    assert_eq!(on_node(&e, f, 500..550, 1), 50, "the node is at its low mark");
    assert_eq!(woken(&w), [], "as long as any node has more than that, nobody is woken");
    read(&mut e, &mut w, f, 550..1000);
    assert_eq!(woken(&w)[..2], [0, 1], "the nearest first");
    assert_eq!(gauge(&e.node_gauges_of(NodeId(0)), "inactive_file"), on_node(&e, f, 0..1000, 0) as u64);
}

#[test]
fn each_kswapd_reclaims_on_its_own_node() {
    for policy in [Policy::Lru, Policy::Mglru] {
        let mut e = Engine::new(machine(policy, &[400, 400])).unwrap();
        let mut w = notes();
        let f = file(&mut e, MemcgId::ROOT, 1000);
        while woken(&w).len() < 2 {
            let next = (0..1000).find(|&p| !e.is_resident(PageId(f.0 + p))).unwrap();
            read(&mut e, &mut w, f, next..next + 1);
        }
        let before = (on_node(&e, f, 0..1000, 0), on_node(&e, f, 0..1000, 1));
        for _ in 0..100 {
            e.kswapd_node_step(&mut w, NodeId(1));
            e.validate().unwrap();
        }
        let high = e.node_zones(NodeId(1)).next().unwrap().3.high;
        assert!(e.node_free_pages(NodeId(1)) > high, "{policy}");
        assert_eq!(on_node(&e, f, 0..1000, 0), before.0, "{policy}");
        assert!(on_node(&e, f, 0..1000, 1) < before.1, "{policy}");
    }
}

#[test]
fn a_limit_counts_all_nodes_and_reclaim_for_it_takes_from_all() {
    for policy in [Policy::Lru, Policy::Mglru] {
        let mut e = Engine::new(machine(policy, &[400, 400])).unwrap();
        let mut w = notes();
        let group = e.add_memcg(MemcgId::ROOT, "/g", 200, u64::MAX).unwrap();
        let f = file(&mut e, group, 1000);
        read(&mut e, &mut w, f, 0..100);
        e.set_cpu(1);
        read(&mut e, &mut w, f, 100..200);
        assert_eq!(gauge(&e.memcg_gauges(group), "memory.current"), 200, "{policy}");
        read(&mut e, &mut w, f, 200..260);
        assert!(gauge(&e.memcg_gauges(group), "memory.current") <= 200, "{policy}");
        assert!(on_node(&e, f, 0..100, 0) < 100 && on_node(&e, f, 100..200, 1) < 100, "{policy}");
    }
}

/// The distance of a refault is measured on the node that the page was evicted from.
#[test]
fn a_refault_is_judged_by_the_clock_of_the_node_that_it_left() {
    let mut e = Engine::new(machine(Policy::Lru, &[4000, 4000])).unwrap();
    let mut w = notes();
    let group = e.add_memcg(MemcgId::ROOT, "/g", 200, u64::MAX).unwrap();
    let f = file(&mut e, group, 4000);
    // Node 0 has an active list of 60; pages 60..200 are inactive there.
    for _ in 0..2 {
        read(&mut e, &mut w, f, 0..60);
    }
    read(&mut e, &mut w, f, 60..200);
    let activated = |e: &Engine| e.vmstat().iter().find(|c| c.0 == "workingset_activate_file").unwrap().1;
    // Reads on node 1 push the 40 oldest inactive pages of node 0 out: its clock goes on by as
    // many.
    e.set_cpu(1);
    read(&mut e, &mut w, f, 1000..1040);
    let gone = (60..200).find(|&p| !e.is_resident(PageId(f.0 + p))).expect("some were evicted");
    let before = activated(&e);
    read(&mut e, &mut w, f, gone..gone + 1);
    assert_eq!(e.page_node(PageId(f.0 + gone)), Some(NodeId(1)), "it comes back elsewhere");
    assert_eq!(activated(&e), before + 1, "within the active list of node 0");
}

/// Where the marks are 0 and nothing is free, every zone has its mark: a run under the first form
/// of "optimize multiple memcgs" ends early and says so as if it had freed something. An early end
/// was taken for progress, for ever.
#[test]
fn an_allocation_gives_up_where_reclaim_frees_nothing() {
    for sizes in [&[64][..], &[64, 64]] {
        let mut cfg = machine(Policy::Mglru, sizes);
        cfg.memcg.selection = MemcgSelection::First;
        let numa = cfg.numa.as_mut().unwrap();
        numa.nodes.iter_mut().for_each(|n| (n.min_free_kbytes, n.watermark_scale_factor) = (Some(0), 0));
        let mut e = Engine::new(cfg).unwrap();
        let mut w = notes();
        w.pinned = true;
        let a = anon(&mut e, MemcgId::ROOT, 200);
        let frames = 64 * sizes.len() as u32;
        access(&mut e, &mut w, a, 0..frames, Touch::MapWrite);
        assert_eq!(e.free_pages(), 0);
        assert_eq!(e.access(&mut w, PageId(a.0 + frames), Touch::MapRead), Outcome::Oom(MemcgId::ROOT));
    }
}

#[test]
fn lru_gen_shows_and_commands_each_node() {
    let mut e = Engine::new(machine(Policy::Mglru, &[400, 400])).unwrap();
    let mut w = notes();
    let f = file(&mut e, MemcgId::ROOT, 100);
    e.set_cpu(1);
    read(&mut e, &mut w, f, 0..50);
    let text = e.lru_gen_text();
    assert!(text.starts_with("memcg     0 /\n node     0\n"), "{text}");
    assert_eq!(text.matches(" node     1\n").count(), 1, "{text}");
    e.lru_gen_command(&mut w, "+ 0 1 3").unwrap();
    assert!(e.lru_gen_command(&mut w, "+ 0 2 3").unwrap_err().contains("no memcg 0 on node 2"));
    let seqs: Vec<&str> = e
        .lru_gen_text()
        .lines()
        .filter_map(|l| l.split_whitespace().next())
        .map(|s| if s == "4" { "4" } else { "" })
        .collect();
    assert_eq!(seqs.iter().filter(|s| **s == "4").count(), 1, "only node 1 was aged");
}

#[test]
fn impossible_machines_are_refused() {
    let refused = |numa: NumaConfig| Engine::new(Config { numa: Some(numa), ..Config::new(Policy::Lru) }).unwrap_err();
    let two = || NumaConfig::new(vec![node(400), node(400)]);
    assert!(refused(NumaConfig::new(vec![])).contains("1 to 16 nodes"));
    assert!(refused(NumaConfig { cpu_nodes: vec![NodeId(2)], ..two() }).contains("a CPU is on a node that exists"));
    assert!(refused(NumaConfig { distances: vec![vec![10, 20]], ..two() }).contains("a row for each node"));
    assert!(refused(NumaConfig { demotion_targets: vec![vec![NodeId(0)]], ..two() }).contains("itself"));
    assert!(refused(NumaConfig { top_tier: vec![true], ..two() }).contains("top_tier"));
    assert!(refused(NumaConfig::new(vec![node(400), node(10)])).contains("64 to 2^30 pages"));
}

#[test]
fn kswapd_of_fast_memory_moves_cold_pages_to_slow_memory() {
    for policy in [Policy::Lru, Policy::Mglru] {
        let mut e = Engine::new(tiers(policy, [400, 2000])).unwrap();
        let mut w = notes();
        let (a, f) = (anon(&mut e, MemcgId::ROOT, 3000), file(&mut e, MemcgId::ROOT, 1000));
        access(&mut e, &mut w, f, 0..150, Touch::Read);
        access(&mut e, &mut w, a, 0..230, Touch::MapWrite);
        assert_eq!((on_node(&e, a, 0..230, 0), woken(&w).len()), (230, 0), "{policy}");
        // Fast memory is full: new pages come to slow memory, and only when that is full, too, is
        // kswapd woken.
        while woken(&w).is_empty() {
            let next = (0..3000).find(|&p| !e.is_resident(PageId(a.0 + p))).unwrap();
            access(&mut e, &mut w, a, next..next + 1, Touch::MapWrite);
        }
        // Room below: else there is nowhere to go.
        e.page_out(&mut w, f, 1000);
        let gone =
            (230..3000).filter(|&p| e.page_node(PageId(a.0 + p)) == Some(NodeId(1))).take(300).collect::<Vec<_>>();
        gone.iter().for_each(|&p| e.zap_range(&mut w, PageId(a.0 + p), 1));
        let before = e.node_free_pages(NodeId(0));
        for _ in 0..40 {
            e.kswapd_node_step(&mut w, NodeId(0));
            e.validate().unwrap();
        }
        let moved = count(&e, "pgdemote_kswapd");
        assert!(moved > 0, "{policy}: {before} were free");
        assert_eq!(moved, count(&e, "pgmigrate_success"), "{policy}");
        assert_eq!(
            (count(&e, "pgsteal_kswapd"), count(&e, "pgmigrate_fail")),
            (moved, 0),
            "it counts as reclaimed: {policy}"
        );
        assert_eq!(migrated(&w).len() as u64, moved, "{policy}");
        let all = (0..3000).filter(|&p| e.is_resident(PageId(a.0 + p))).count();
        assert_eq!(
            all as u64,
            gauge(&e.node_gauges(), "inactive_anon") + gauge(&e.node_gauges(), "active_anon"),
            "{policy}"
        );
        assert!(migrated(&w).iter().all(|p| e.page_node(*p) == Some(NodeId(1))), "{policy}");
        let mapped = migrated(&w).iter().filter(|p| p.0 >= a.0 && p.0 < a.0 + 3000).all(|p| w.mapped(*p).is_some());
        assert!(mapped, "anonymous pages are mapped again: {policy}");
    }
}

/// Pages on their way to slow memory count as reclaimed. Where they all came back, kswapd went on
/// for ever: with "optimize multiple memcgs" even where it had failed 16 times, since a pass that
/// stops at the high mark says that it freed 64 pages.
#[test]
fn kswapd_gives_up_where_every_migration_fails_in_the_end() {
    let selections = [MemcgSelection::First, MemcgSelection::Iterate, MemcgSelection::MemcgLru];
    for (policy, memcgs) in [(Policy::Lru, selections[0])].into_iter().chain(selections.map(|s| (Policy::Mglru, s))) {
        let mut cfg = tiers(policy, [400, 400]);
        (cfg.memcg.selection, cfg.lru.swap_cluster_max) = (memcgs, 1);
        let numa = cfg.numa.as_mut().unwrap();
        numa.nodes.iter_mut().for_each(|n| n.min_free_kbytes = Some(32));
        let mut e = Engine::new(cfg).unwrap();
        let mut w = notes_of_pending_migrations();
        let a = anon(&mut e, MemcgId::ROOT, 1000);
        let mut next = 0;
        while woken(&w).is_empty() {
            access(&mut e, &mut w, a, next..next + 1, Touch::MapWrite);
            next += 1;
        }
        // Slow memory has room again, fast memory as much as its high mark.
        let high = e.node_zones(NodeId(0)).next().unwrap().3.high;
        let drop_from = |e: &mut Engine, w: &mut AtOnce, node: u8, n: u64| {
            let there = (0..next).filter(|&p| e.page_node(PageId(a.0 + p)) == Some(NodeId(node)));
            there.take(n as usize).collect::<Vec<_>>().into_iter().for_each(|p| e.zap_range(w, PageId(a.0 + p), 1));
        };
        drop_from(&mut e, &mut w, 1, 300);
        let short = high - e.node_free_pages(NodeId(0));
        drop_from(&mut e, &mut w, 0, short);
        assert_eq!(e.node_free_pages(NodeId(0)), high);
        let mut steps = 0;
        while e.kswapd_node_step(&mut w, NodeId(0)) == KswapdStep::Again {
            w.take_pages().into_iter().for_each(|p| e.migrate_done(&mut w, p, false));
            e.validate().unwrap();
            steps += 1;
            assert!(steps < 1000, "{policy} {memcgs:?}");
        }
        assert!(count(&e, "pgmigrate_fail") > 0, "{policy} {memcgs:?}");
        assert_eq!((count(&e, "pgdemote_kswapd"), e.node_free_pages(NodeId(0))), (0, high), "{policy} {memcgs:?}");
    }
}

/// A group at its limit, with file pages on fast memory, and slow memory of so many pages.
fn at_limit(slow: u64) -> (Engine, AtOnce, MemcgId, PageId) {
    let mut e = Engine::new(tiers(Policy::Lru, [2000, slow])).unwrap();
    let mut w = notes();
    let group = e.add_memcg(MemcgId::ROOT, "/g", 300, u64::MAX).unwrap();
    let f = file(&mut e, group, 1000);
    access(&mut e, &mut w, f, 0..300, Touch::Read);
    (e, w, group, f)
}

#[test]
fn reclaim_for_a_limit_demotes_first_and_ends_with_less_charged() {
    let (mut e, mut w, group, f) = at_limit(1000);
    access(&mut e, &mut w, f, 300..310, Touch::Read);
    assert!(count(&e, "pgdemote_direct") > 0);
    assert!(gauge(&e.memcg_gauges(group), "memory.current") <= 300);
    assert!(count(&e, "pgsteal_direct") > count(&e, "pgdemote_direct"), "what is below was freed");
}

#[test]
fn where_there_is_no_room_below_pages_are_freed_but_not_for_who_asks_without_need() {
    let (mut e, mut w, group, f) = at_limit(64);
    w.answer = MIGRATIONS_FAIL;
    assert_eq!(e.reclaim(&mut w, group, 32, None).unwrap_err().reclaimed, 0, "proactive: nothing is freed instead");
    assert_eq!((count(&e, "pgdemote_proactive"), on_node(&e, f, 0..300, 0)), (0, 300));
    let failed = count(&e, "pgmigrate_fail");
    assert!(failed > 0);
    access(&mut e, &mut w, f, 300..301, Touch::Read);
    assert!(count(&e, "pgmigrate_fail") > failed && on_node(&e, f, 0..300, 0) < 300, "at the limit it is freed");
    w.answer = MIGRATIONS_END;
    e.reclaim(&mut w, group, 32, None).unwrap();
    assert!(count(&e, "pgdemote_proactive") >= 32);
}

#[test]
fn anon_without_swap_is_reclaimed_where_it_can_be_demoted() {
    for policy in [Policy::Lru, Policy::Mglru] {
        for enabled in [false, true] {
            let mut cfg = tiers(policy, [2000, 2000]);
            cfg.numa.as_mut().unwrap().tiering.demotion_enabled = enabled;
            let mut e = Engine::new(cfg).unwrap();
            let mut w = notes();
            let group = e.add_memcg(MemcgId::ROOT, "/g", 1000, u64::MAX).unwrap();
            let a = anon(&mut e, group, 1000);
            access(&mut e, &mut w, a, 0..500, Touch::MapWrite);
            let result = e.reclaim(&mut w, group, 64, None);
            assert_eq!(result.is_ok(), enabled, "{policy} {result:?}");
            assert_eq!(on_node(&e, a, 0..500, 1) >= 64, enabled, "{policy}");
            assert_eq!(count(&e, "pswpout"), 0, "{policy}");
        }
    }
}

#[test]
fn who_touches_a_page_on_its_way_waits_and_what_was_young_stays_so() {
    let mut e = Engine::new(tiers(Policy::Lru, [2000, 2000])).unwrap();
    let mut w = notes_of_pending_migrations();
    let group = e.add_memcg(MemcgId::ROOT, "/g", 1000, u64::MAX).unwrap();
    let a = anon(&mut e, group, 1000);
    access(&mut e, &mut w, a, 0..200, Touch::MapWrite);
    e.reclaim(&mut w, group, 32, None).unwrap();
    let moving = migrated(&w);
    assert!(moving.len() >= 32);
    e.validate().unwrap();
    assert_eq!(e.take_work().migrated, moving.len() as u64);
    assert_eq!(2000 - e.node_free_pages(NodeId(1)), moving.len() as u64, "frames are taken on the other side");
    assert_eq!(2000 - e.node_free_pages(NodeId(0)), 200, "and not free yet on this one");
    assert_eq!(e.access(&mut w, moving[0], Touch::MapRead), Outcome::Waiting);
    assert!(w.mapped(moving[0]).is_none());
    e.migrate_done(&mut w, moving[0], true);
    e.migrate_done(&mut w, moving[1], false);
    // Its owner gave it up meanwhile.
    e.zap_range(&mut w, moving[2], 1);
    assert!(e.is_resident(moving[2]));
    e.migrate_done(&mut w, moving[2], true);
    e.validate().unwrap();
    assert_eq!([0, 1, 2].map(|i| e.page_node(moving[i])), [Some(NodeId(1)), Some(NodeId(0)), None]);
    assert_eq!(w.mapped(moving[0]), Some(false), "it was not young when it was taken");
    assert_eq!((count(&e, "pgmigrate_success"), count(&e, "pgmigrate_fail")), (2, 1));
    assert_eq!(e.access(&mut w, moving[3], Touch::MapWrite), Outcome::Waiting);
    moving[3..].iter().for_each(|&p| e.migrate_done(&mut w, p, true));
    e.validate().unwrap();
    e.migrate_done(&mut w, moving[3], true);
    assert_eq!(count(&e, "pgmigrate_success"), moving.len() as u64 - 1, "it ends once");
}

#[test]
fn programs_that_page_out_do_not_demote() {
    let mut e = Engine::new(tiers(Policy::Lru, [2000, 2000])).unwrap();
    let mut w = notes();
    let f = file(&mut e, MemcgId::ROOT, 100);
    access(&mut e, &mut w, f, 0..100, Touch::MapRead);
    assert_eq!(e.page_out(&mut w, f, 100), 100);
    assert_eq!((count(&e, "pgmigrate_success"), e.node_free_pages(NodeId(1))), (0, 2000));
}

#[test]
fn with_promotion_kswapd_balances_to_the_mark_for_it() {
    for bits in [0, 2] {
        let mut cfg = tiers(Policy::Lru, [2000, 2000]);
        cfg.numa.as_mut().unwrap().tiering.numa_balancing = bits;
        let mut e = Engine::new(cfg).unwrap();
        let mut w = notes();
        let f = file(&mut e, MemcgId::ROOT, 4000);
        for p in 0..4000 {
            e.access(&mut w, PageId(f.0 + p), Touch::Read);
        }
        assert!(woken(&w).contains(&0));
        let marks = e.node_zones(NodeId(0)).next().unwrap().3;
        e.run_kswapd(&mut w, 1000);
        let free = e.node_free_pages(NodeId(0));
        assert!(free > if bits == 2 { marks.promo } else { marks.high }, "{free} {marks:?}");
    }
}

/// Whether anon is aged was decided by a setting that drivers with swap devices have at 0.
#[test]
fn anon_is_aged_where_there_is_swap_full_or_not_and_nowhere_else() {
    for (swap, ages) in [(0, false), (64, true)] {
        let mut cfg = machine(Policy::Lru, &[2000]);
        cfg.swap.pages = 0;
        cfg.swap.devices = (swap > 0).then(|| SwapDeviceConfig::new(swap)).into_iter().collect();
        let mut e = Engine::new(cfg).unwrap();
        let mut w = notes();
        let group = e.add_memcg(MemcgId::ROOT, "/g", 600, u64::MAX).unwrap();
        let (a, f) = (anon(&mut e, group, 400), file(&mut e, group, 1000));
        access(&mut e, &mut w, a, 0..400, Touch::MapWrite);
        // Filled up to the last slot: then only files can be reclaimed.
        e.page_out(&mut w, a, swap as u32);
        let resident: Vec<_> = (a.0..a.0 + 400).map(PageId).filter(|&p| e.is_resident(p)).collect();
        resident.into_iter().for_each(|p| e.advise(p, Advice::InUse));
        e.drain_all();
        assert!(gauge(&e.memcg_gauges(group), "active_anon") > 300);
        read(&mut e, &mut w, f, 0..400);
        assert_eq!(gauge(&e.memcg_gauges(group), "inactive_anon") > 0, ages, "swap of {swap}");
    }
}

/// `oom_score_adj` is a share of memory and swap, by whatever setting there is swap.
#[test]
fn the_killer_counts_swap_devices() {
    for (swap, victim) in [(0, 0), (100_000, 1)] {
        let mut cfg = machine(Policy::Lru, &[2000]);
        cfg.swap.pages = 0;
        cfg.swap.devices = (swap > 0).then(|| SwapDeviceConfig::new(swap)).into_iter().collect();
        let mut e = Engine::new(cfg).unwrap();
        let mut w = notes();
        let mut task = |pages: u32, score_adj| {
            let (id, first) = e.add_mapping(MappingKind::Anon, MemcgId::ROOT, 0..500).expect("a region");
            access(&mut e, &mut w, first, 0..pages, Touch::MapWrite);
            OomTask { memcg: MemcgId::ROOT, score_adj, mappings: vec![id] }
        };
        let tasks = [task(500, 0), task(100, 10)];
        assert_eq!(e.oom_kill(MemcgId::ROOT, &tasks), [victim], "swap of {swap}");
    }
}

/// Without groups there are no statistics of groups that could be old. Before the first were added
/// up kswapd took the lists of a node for empty, aged nothing and gave up.
#[test]
fn on_a_machine_without_groups_kswapd_knows_its_lists() {
    for groups in [false, true] {
        let cfg = Config {
            lru: LruConfig { stat_flush_interval_ns: 2_000_000_000, ..tiers(Policy::Lru, [400, 400]).lru },
            ..tiers(Policy::Lru, [400, 400])
        };
        let mut e = Engine::new(cfg).unwrap();
        let mut w = notes();
        let group = if groups { e.add_memcg(MemcgId::ROOT, "/g", u64::MAX, 0).unwrap() } else { MemcgId::ROOT };
        let a = anon(&mut e, group, 1000);
        let mut next = 0;
        while woken(&w).is_empty() {
            access(&mut e, &mut w, a, next..next + 1, Touch::MapWrite);
            next += 1;
        }
        // All of fast memory is active, and slow memory has room.
        let on = |e: &Engine, node: u8| {
            (0..next).map(|p| PageId(a.0 + p)).filter(|&p| e.page_node(p) == Some(NodeId(node))).collect::<Vec<_>>()
        };
        on(&e, 1).into_iter().take(300).for_each(|p| e.zap_range(&mut w, p, 1));
        on(&e, 0).into_iter().for_each(|p| e.advise(p, Advice::InUse));
        e.drain_all();
        e.run_kswapd(&mut w, 1000);
        assert_eq!(count(&e, "pgdemote_kswapd") == 0, groups, "the lag is that of groups");
    }
}
