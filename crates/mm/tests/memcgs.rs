//! Memory cgroups as an administrator meets them: limits, delays, killings, requests, removal.

use refault_mm::{
    Ack, Config, Effect, Engine, MappingId, MappingKind, MemcgId, MemcgLimits, OomTask, Outcome, PageId, Policy,
    ReclaimRequest, ReclaimRound, ThrottleReason, Touch,
};
use refault_mm::{LruConfig, MemcgConfig, SwapConfig};
use refault_testing::AtOnce;

/// Everything is done at once; who is told to wait, waits; out of memory is noted.
fn notes() -> AtOnce {
    let answer = |_: &AtOnce, effect| match effect {
        Effect::Throttle { reason: ThrottleReason::High, .. } => Some(Ack::Pending),
        Effect::Oom { .. } => Some(Ack::Done),
        _ => None,
    };
    AtOnce::answering(answer).dirty()
}

/// How long tasks were told to wait.
fn waits_ns(w: &AtOnce) -> Vec<u64> {
    let wait = |e: &Effect| match *e {
        Effect::Throttle { max_wait_ns, .. } => Some(max_wait_ns),
        _ => None,
    };
    w.noted.iter().filter_map(wait).collect()
}

/// The groups that were out of memory.
fn oom(w: &AtOnce) -> Vec<MemcgId> {
    let group = |e: &Effect| match *e {
        Effect::Oom { memcg } => Some(memcg),
        _ => None,
    };
    w.noted.iter().filter_map(group).collect()
}

fn engine(swap_pages: u64) -> (Engine, AtOnce) {
    let cfg = Config {
        lru: LruConfig { batch_folios: 0, ..Config::new(Policy::Lru).lru },
        memcg: MemcgConfig { charge_batch: 1, charge_kernel: false, ..MemcgConfig::default() },
        swap: SwapConfig { pages: swap_pages, ..SwapConfig::default() },
        ..Config::new(Policy::Lru)
    };
    (Engine::new(cfg).expect("a possible configuration"), notes())
}

fn group(e: &mut Engine, parent: MemcgId, name: &str) -> MemcgId {
    e.add_memcg(parent, name, u64::MAX, u64::MAX).expect("a group")
}

fn anon(e: &mut Engine, memcg: MemcgId, pages: u64) -> (MappingId, PageId) {
    e.add_mapping(MappingKind::Anon, memcg, 0..pages).expect("a region")
}

fn file(e: &mut Engine, memcg: MemcgId, pages: u64) -> PageId {
    e.add_mapping(MappingKind::File, memcg, 0..pages).expect("a file").1
}

fn touch(e: &mut Engine, w: &mut AtOnce, first: PageId, pages: u32, touch: Touch) -> Vec<Outcome> {
    (0..pages)
        .map(|i| {
            let outcome = e.access(w, PageId(first.0 + i), touch);
            e.return_to_user(w);
            outcome
        })
        .collect()
}

#[test]
fn beyond_high_a_task_reclaims_and_then_sleeps() {
    let (mut e, mut w) = engine(0);
    let g = group(&mut e, MemcgId::ROOT, "/g");
    e.set_memcg_limits(&mut w, g, &MemcgLimits { high: 1000, ..MemcgLimits::default() }).expect("limits");
    // Files can be reclaimed: no reason to sleep.
    let f = file(&mut e, g, 2000);
    touch(&mut e, &mut w, f, 2000, Touch::Read);
    assert!(waits_ns(&w).is_empty() && e.memcg_events(g).high > 0);
    assert!(e.memcg_file(g, "memory.current").expect("a file").trim().parse::<u64>().expect("bytes") <= 1001 * 4096);
    // Anonymous memory without swap cannot: the further, the longer, by the page.
    let (_, a) = anon(&mut e, g, 4000);
    touch(&mut e, &mut w, a, 3000, Touch::MapWrite);
    let waits = waits_ns(&w);
    assert!(waits.windows(2).all(|p| p[0] <= p[1]) && waits.len() > 100, "{waits:?}");
    // 3 times the bound: (2·2^20)² · 1000 >> 34 = 256,000 ticks a batch of 64, 4,000 a page: the
    // most is 2 s.
    assert_eq!(waits.last(), Some(&2_000_000_000));
    assert_eq!(e.memcg_events(g).oom, 0);
}

#[test]
fn a_lower_max_reclaims_and_what_cannot_be_is_out_of_memory() {
    let (mut e, mut w) = engine(0);
    let g = group(&mut e, MemcgId::ROOT, "/g");
    let (f, (_, a)) = (file(&mut e, g, 500), anon(&mut e, g, 100));
    touch(&mut e, &mut w, f, 500, Touch::Read);
    touch(&mut e, &mut w, a, 100, Touch::MapWrite);
    let max = |max| MemcgLimits { max, ..MemcgLimits::default() };
    e.set_memcg_limits(&mut w, g, &max(200)).expect("limits");
    e.validate().unwrap();
    assert_eq!(e.memcg_file(g, "memory.max").as_deref(), Some("819200\n"));
    assert!(oom(&w).is_empty());
    e.set_memcg_limits(&mut w, g, &max(50)).expect("limits");
    assert_eq!((oom(&w).as_slice(), e.memcg_events(g).oom), (&[g][..], 1));
    e.validate().unwrap();
    assert_eq!(touch(&mut e, &mut w, f, 1, Touch::Read), [Outcome::Oom(g)], "nothing more fits");
}

#[test]
fn oom_group_takes_all_of_the_highest_group_within_the_one_that_is_out_of_memory() {
    let (mut e, mut w) = engine(0);
    let top = group(&mut e, MemcgId::ROOT, "/top");
    let mid = group(&mut e, top, "/top/mid");
    let low = group(&mut e, mid, "/top/mid/low");
    let other = group(&mut e, top, "/top/other");
    let homes = [low, low, mid, other];
    let tasks: Vec<OomTask> = homes
        .into_iter()
        .zip([50, 10, 20, 30])
        .map(|(memcg, pages)| {
            let (mapping, first) = anon(&mut e, memcg, 100);
            touch(&mut e, &mut w, first, pages, Touch::MapWrite);
            OomTask { memcg, score_adj: 0, mappings: vec![mapping] }
        })
        .collect();
    let together = MemcgLimits { oom_group: true, ..MemcgLimits::default() };
    assert_eq!(e.oom_kill(top, &tasks), [0], "the largest alone");
    e.set_memcg_limits(&mut w, low, &together).expect("limits");
    assert_eq!(e.oom_kill(top, &tasks), [0, 1]);
    e.set_memcg_limits(&mut w, mid, &together).expect("limits");
    assert_eq!(e.oom_kill(low, &tasks), [0, 1], "mid is above what is out of memory");
    assert_eq!(e.oom_kill(MemcgId::ROOT, &tasks), [0, 1, 2]);
    let spared: Vec<OomTask> = tasks
        .iter()
        .enumerate()
        .map(|(i, t)| OomTask { score_adj: if i == 2 { -1000 } else { 0 }, ..t.clone() })
        .collect();
    assert_eq!(e.oom_kill(top, &spared), [0, 1], "never is never");
    assert_eq!((e.memcg_events(top).oom_kill, e.memcg_events_local(top).oom_kill), (10, 0));
    assert_eq!((e.memcg_events_local(low).oom_kill, e.memcg_events_local(mid).oom_group_kill), (9, 2));
    assert_eq!(
        e.memcg_file(other, "memory.events").as_deref(),
        Some("low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n")
    );
}

#[test]
fn files_of_a_group_have_the_names_and_units_of_the_kernel() {
    let (mut e, mut w) = engine(100);
    let g = group(&mut e, MemcgId::ROOT, "/g");
    let limits = MemcgLimits {
        min: 1,
        low: 2,
        high: 300,
        max: 400,
        swap_high: 50,
        swap_max: 60,
        zswap_max: 7,
        zswap_writeback: false,
        swappiness: Some(10),
        oom_group: true,
    };
    e.set_memcg_limits(&mut w, g, &limits).expect("limits");
    let (f, (_, a)) = (file(&mut e, g, 10), anon(&mut e, g, 5));
    touch(&mut e, &mut w, f, 10, Touch::Read);
    touch(&mut e, &mut w, a, 5, Touch::MapWrite);
    for (name, want) in [
        ("memory.min", "4096\n"),
        ("memory.low", "8192\n"),
        ("memory.high", "1228800\n"),
        ("memory.max", "1638400\n"),
        ("memory.swap.high", "204800\n"),
        ("memory.swap.max", "245760\n"),
        ("memory.zswap.max", "28672\n"),
        ("memory.zswap.writeback", "0\n"),
        ("memory.oom.group", "1\n"),
        ("memory.current", "61440\n"),
        ("memory.peak", "61440\n"),
        ("memory.swap.current", "0\n"),
        ("memory.zswap.current", "0\n"),
        ("memory.swap.events", "high 0\nmax 0\nfail 0\n"),
    ] {
        assert_eq!(e.memcg_file(g, name).as_deref(), Some(want), "{name}");
    }
    assert_eq!(e.memcg_file(g, "memory.maximum"), None);
    let text = e.memcg_file(g, "memory.stat").expect("a file");
    let lines: Vec<_> = text.lines().map(|line| line.split_once(' ').expect("a name and a number")).collect();
    let stat = |name: &str| {
        let values: Vec<_> = lines.iter().filter(|(known, _)| *known == name).map(|(_, value)| *value).collect();
        assert_eq!(values.len(), 1, "{name} stands once: {text}");
        values[0].parse::<u64>().expect("a number")
    };
    assert_eq!((stat("file"), stat("anon"), stat("zswap"), stat("pgscan"), stat("pgsteal")), (40_960, 20_480, 0, 0, 0));
    assert_eq!(stat("active_file") + stat("inactive_file"), stat("file"));
    assert_eq!(stat("active_anon") + stat("inactive_anon"), stat("anon"));
    lines.iter().for_each(|(name, _)| {
        stat(name);
    });
    // Reclaimed pages are gone from the sizes and in the counters.
    let freed = e.reclaim(&mut w, g, 6, Some(0)).expect("files");
    let text = e.memcg_file(g, "memory.stat").expect("a file");
    assert!(text.contains(&format!("\nfile {}\n", (10 - freed) * 4096)), "{freed} {text}");
    assert!(freed >= 6 && text.contains(&format!("\npgsteal {freed}\n")), "{freed} {text}");
}

#[test]
fn memory_reclaim_frees_what_is_asked_or_says_again() {
    let (mut e, mut w) = engine(1000);
    let g = group(&mut e, MemcgId::ROOT, "/g");
    let (f, (_, a)) = (file(&mut e, g, 300), anon(&mut e, g, 100));
    touch(&mut e, &mut w, f, 300, Touch::Read);
    touch(&mut e, &mut w, a, 100, Touch::MapWrite);
    let freed = e.reclaim(&mut w, g, 150, Some(0)).expect("files");
    assert!((150..=182).contains(&freed), "{freed}");
    assert_eq!(e.swap_used_pages(), 0, "swappiness 0 of the request");
    let again = e.reclaim(&mut w, g, 500, None).expect_err("there are not so many");
    assert_eq!((again.reclaimed, e.swap_used_pages()), (400 - freed, 100));
    assert_eq!(again.to_string(), format!("try again: {} pages were reclaimed", 400 - freed));
    e.validate().unwrap();
}

#[test]
fn a_group_that_was_removed_stays_until_its_pages_are_gone() {
    let (mut e, mut w) = engine(0);
    let top = group(&mut e, MemcgId::ROOT, "/top");
    let g = group(&mut e, top, "/top/g");
    let f = file(&mut e, g, 200);
    touch(&mut e, &mut w, f, 200, Touch::Read);
    e.reclaim(&mut w, g, 60, None).expect("files");
    assert!(e.remove_memcg(top).expect_err("it has a child").contains("has children"));
    e.remove_memcg(g).expect("is empty of tasks");
    assert!(e.remove_memcg(g).is_err() && e.memcgs().any(|m| m == g), "it is removed and still there");
    assert!(e.set_memcg_limits(&mut w, g, &MemcgLimits::default()).is_err());
    // Its shadows are known, its resident pages are hits.
    assert_eq!(touch(&mut e, &mut w, PageId(f.0 + 199), 1, Touch::Read), [Outcome::Hit]);
    touch(&mut e, &mut w, f, 30, Touch::Read);
    let refaults =
        |e: &Engine| e.memcg_tree_stats(top).iter().find(|s| s.0 == "workingset_refault_file").expect("one").1;
    assert_eq!(refaults(&e), 30);
    e.validate().unwrap();
    let _ = e.reclaim(&mut w, top, 1000, None);
    assert!(e.memcgs().all(|m| m != g), "the last page is gone, and so is the group");
    assert_eq!(refaults(&e), 30, "its counters stay with its parent");
    // The user of the file now is charged above; a shadow of the group that is gone says nothing.
    touch(&mut e, &mut w, f, 10, Touch::Read);
    e.validate().unwrap();
    assert_eq!(e.memcg_file(top, "memory.current").as_deref(), Some("40960\n"));
    e.remove_memcg(top).expect("no child is left");
}

#[test]
fn numbers_are_used_again_only_when_no_shadow_names_them() {
    let (mut e, mut w) = engine(0);
    let first = group(&mut e, MemcgId::ROOT, "/first");
    let f = file(&mut e, first, 100);
    touch(&mut e, &mut w, f, 100, Touch::Read);
    e.reclaim(&mut w, first, 100, None).expect("files");
    e.remove_memcg(first).expect("no tasks");
    // More groups than there are numbers, one after the other.
    for i in 0..70_000u32 {
        let g = group(&mut e, MemcgId::ROOT, "/next");
        assert_ne!(g, first, "round {i}: shadows of 100 pages name it");
        e.remove_memcg(g).expect("no tasks");
    }
    e.validate().unwrap();
}

#[test]
fn what_moves_takes_its_charges_along() {
    let (mut e, mut w) = engine(1000);
    let [a, b] = ["/a", "/b"].map(|name| group(&mut e, MemcgId::ROOT, name));
    let (region, first) = anon(&mut e, a, 100);
    touch(&mut e, &mut w, first, 100, Touch::MapWrite);
    e.reclaim(&mut w, a, 40, Some(200)).expect("anon");
    let swapped = e.swap_used_pages();
    e.set_memcg_limits(&mut w, b, &MemcgLimits { max: 50, ..MemcgLimits::default() }).expect("limits");
    e.move_mapping(&mut w, region, b).expect("moves");
    e.validate().unwrap();
    let of = |e: &Engine, g, name: &str| e.memcg_gauges(g).into_iter().find(|x| x.name == name).expect("a gauge").value;
    assert_eq!((of(&e, a, "memory.current"), of(&e, a, "swap.current")), (0, 0));
    assert!(of(&e, b, "memory.current") <= 50 && of(&e, b, "swap.current") >= swapped);
    assert!(e.move_mapping(&mut w, MappingId(9), b).is_err());
}

/// The stock of a sibling counts for the group above both: it is given back before that is out of
/// memory.
#[test]
fn regression_what_siblings_charged_ahead_is_no_reason_to_be_out_of_memory() {
    let cfg =
        Config { memcg: MemcgConfig { charge_kernel: false, ..MemcgConfig::default() }, ..Config::new(Policy::Mglru) };
    let (mut e, mut w) = (Engine::new(cfg).expect("a possible configuration"), notes());
    let top = e.add_memcg(MemcgId::ROOT, "/top", 200, 0).expect("a group");
    for i in 0..20 {
        let g = group(&mut e, top, &format!("/top/{i}"));
        let (_, a) = anon(&mut e, g, 9);
        for outcome in touch(&mut e, &mut w, a, 9, Touch::MapWrite) {
            assert_eq!(outcome, Outcome::Fresh, "180 pages in all");
        }
        e.validate().unwrap();
    }
    assert!(oom(&w).is_empty());
}

/// A swap device that writes a page when it is told to, and takes 64 at once.
fn slow_swap() -> AtOnce {
    let answer = |_: &AtOnce, effect| match effect {
        Effect::SwapOut { .. } => Some(Ack::Pending),
        Effect::Oom { memcg } => panic!("{memcg:?} is out of memory"),
        _ => None,
    };
    let mut world = AtOnce::answering(answer).dirty().with_accessed_bits();
    world.write_queue = 64;
    world
}

/// 64 MiB for 512 MiB of anonymous memory, over a swap device with room for all of it that is far
/// slower than the task. Writes under way free nothing yet; that is no reason to kill anyone, nor
/// to write all that the group has.
#[test]
fn regression_a_group_on_a_slow_swap_device_waits_for_it_and_is_not_out_of_memory() {
    for policy in [Policy::Lru, Policy::Mglru] {
        let cfg = Config { swap: SwapConfig { pages: 1 << 18, ..SwapConfig::default() }, ..Config::new(policy) };
        let (mut e, mut w) = (Engine::new(cfg).expect("a possible configuration"), slow_swap());
        let g = e.add_memcg(MemcgId::ROOT, "/g", 16_384, u64::MAX).expect("a group");
        let (_, a) = anon(&mut e, g, 131_072);
        let (mut waits, mut most) = (0u64, 0);
        for i in 0..60_000 {
            let page = PageId(a.0 + i);
            loop {
                let outcome = e.access(&mut w, page, Touch::MapWrite);
                most = most.max(w.noted.len());
                match outcome {
                    Outcome::Throttled => {
                        waits += 1;
                        let done = w.take_page().expect("somebody waits: something is under way");
                        e.write_done(&mut w, done, true);
                    }
                    outcome => break assert_eq!(outcome, Outcome::Fresh, "{policy:?}: page {i}"),
                }
            }
        }
        e.validate().unwrap();
        assert_eq!(e.memcg_events(g).oom, 0, "{policy:?}");
        assert!(waits > 10_000, "{policy:?}: it waits for the device: {waits}");
        assert!(most <= 128, "{policy:?}: a queue and a batch at most, not all of the group: {most}");
    }
}

/// Rounds of `memory.reclaim` with time between them: nothing is given up while the device writes,
/// and no more is written at once than it takes.
#[test]
fn a_request_in_rounds_waits_for_a_slow_swap_device() {
    for policy in [Policy::Lru, Policy::Mglru] {
        let cfg = Config { swap: SwapConfig { pages: 1 << 16, ..SwapConfig::default() }, ..Config::new(policy) };
        let (mut e, mut w) = (Engine::new(cfg).expect("a possible configuration"), slow_swap());
        let g = group(&mut e, MemcgId::ROOT, "/g");
        let (_, a) = anon(&mut e, g, 4096);
        (0..4096).for_each(|i| _ = e.access(&mut w, PageId(a.0 + i), Touch::MapWrite));
        w.keeps_young = false;
        let mut request = ReclaimRequest::new(g, 2000, None);
        let (mut rounds, mut waits, mut most) = (0, 0, 0);
        let end = loop {
            rounds += 1;
            assert!(rounds < 10_000, "{policy:?}: hangs");
            let round = e.reclaim_round(&mut w, &mut request).expect("the group is there");
            most = most.max(w.noted.len());
            match round {
                ReclaimRound::More => {}
                ReclaimRound::Wait => {
                    waits += 1;
                    let done = w.take_page().expect("something is under way");
                    e.write_done(&mut w, done, true);
                }
                end => break end,
            }
            e.validate().unwrap();
        };
        assert_eq!(end, ReclaimRound::Done, "{policy:?}");
        assert!((2000..2600).contains(&request.reclaimed()) && waits > 1000, "{policy:?}: {request:?} {waits}");
        assert!(most <= 128, "{policy:?}: {most}");
        // Nobody writes any more: what is missing is missing for good.
        let mut request = ReclaimRequest::new(g, 1 << 20, Some(0));
        while let Some(done) = w.take_page() {
            e.write_done(&mut w, done, true);
        }
        let mut round = ReclaimRound::More;
        while round == ReclaimRound::More {
            round = e.reclaim_round(&mut w, &mut request).expect("the group is there");
        }
        assert_eq!(round, ReclaimRound::Again, "{policy:?}");
        e.remove_memcg(g).expect("no child");
        assert!(e.reclaim_round(&mut w, &mut request).is_err());
    }
}

/// Others fill the queue of the swap device: that a group cannot be brought below its new limit at
/// once is no reason to kill anyone.
#[test]
fn regression_a_full_queue_is_no_reason_to_be_out_of_memory_when_a_limit_is_lowered() {
    let cfg = Config { swap: SwapConfig { pages: 1 << 16, ..SwapConfig::default() }, ..Config::new(Policy::Mglru) };
    let (mut e, mut w) = (Engine::new(cfg).expect("a possible configuration"), slow_swap());
    let g = group(&mut e, MemcgId::ROOT, "/g");
    let (_, a) = anon(&mut e, g, 1000);
    (0..1000).for_each(|i| _ = e.access(&mut w, PageId(a.0 + i), Touch::MapWrite));
    w.write_queue = 0;
    e.set_memcg_limits(&mut w, g, &MemcgLimits { max: 500, ..MemcgLimits::default() }).expect("limits");
    assert_eq!(e.memcg_events(g).oom, 0);
    assert!(e.is_over_limit(g));
    e.validate().unwrap();
}

/// A group that was removed is not limited any more: nobody can raise its limit, and there is
/// nobody in it to kill.
#[test]
fn a_group_that_was_removed_has_no_limits() {
    let (mut e, mut w) = engine(0);
    let g = group(&mut e, MemcgId::ROOT, "/g");
    let (_, a) = anon(&mut e, g, 100);
    e.set_memcg_limits(&mut w, g, &MemcgLimits { max: 60, high: 55, ..MemcgLimits::default() }).expect("limits");
    touch(&mut e, &mut w, a, 50, Touch::MapWrite);
    e.remove_memcg(g).expect("no child");
    for outcome in touch(&mut e, &mut w, PageId(a.0 + 50), 50, Touch::MapWrite) {
        assert_eq!(outcome, Outcome::Fresh);
    }
    assert!(oom(&w).is_empty() && waits_ns(&w).is_empty());
    e.validate().unwrap();
}
