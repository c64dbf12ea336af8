//! Removing a memcg where what it has in memory goes to its parent at once (since Linux 7.1).

use refault_mm::{
    Ack, Config, Effect, Engine, Kernel, LruConfig, MappingKind, MemcgConfig, MemcgId, MemcgLimits, PageId, Policy,
    SwapConfig, Touch,
};
use refault_testing::AtOnce;

const POLICIES: [Policy; 2] = [Policy::Lru, Policy::Mglru];

fn engine(policy: Policy, swap_pages: u64) -> (Engine, AtOnce) {
    let cfg = Config {
        lru: LruConfig { batch_folios: 0, ..Config::new(policy).lru },
        memcg: MemcgConfig { charge_batch: 1, lru_reparent: true, ..MemcgConfig::default() },
        swap: SwapConfig { pages: swap_pages, ..SwapConfig::default() },
        ..Config::new(policy)
    };
    (Engine::new(cfg).expect("a possible configuration"), AtOnce::default())
}

/// Two groups, one in the other.
fn groups(e: &mut Engine) -> [MemcgId; 2] {
    let top = e.add_memcg(MemcgId::ROOT, "/top", u64::MAX, u64::MAX).expect("a group");
    [top, e.add_memcg(top, "/top/g", u64::MAX, u64::MAX).expect("a group")]
}

fn mapping(e: &mut Engine, memcg: MemcgId, kind: MappingKind, pages: u64) -> PageId {
    e.add_mapping(kind, memcg, 0..pages).expect("a mapping").1
}

fn touch(e: &mut Engine, w: &mut AtOnce, first: PageId, pages: u32, touch: Touch) {
    (0..pages).for_each(|i| _ = e.access(w, PageId(first.0 + i), touch));
}

fn resident(e: &Engine, first: PageId, pages: u32) -> u32 {
    (0..pages).filter(|i| e.is_resident(PageId(first.0 + i))).count() as u32
}

/// Value for a group alone, in pages; `anon` and `file` are the sizes of its lists.
fn gauge(e: &Engine, g: MemcgId, name: &str) -> u64 {
    let all = e.memcg_gauges(g);
    let get = |name: &str| all.iter().find(|x| x.name == name).expect("a gauge").value;
    match name {
        "anon" => get("inactive_anon") + get("active_anon"),
        "file" => get("inactive_file") + get("active_file"),
        _ => get(name),
    }
}

fn stat(e: &Engine, g: MemcgId, name: &str) -> u64 {
    e.memcg_tree_stats(g).iter().find(|s| s.0 == name).expect("a counter").1
}

#[test]
fn only_the_profile_of_7_2_has_it() {
    for kernel in Kernel::ALL {
        let mut cfg = Config::new(Policy::Mglru);
        kernel.apply(&mut cfg);
        assert_eq!(cfg.memcg.lru_reparent, kernel == Kernel::V7_2, "{kernel:?}");
    }
}

/// Pages of all kinds, dirty ones and page tables among them: the group is reaped at once, and its
/// parent has as much as both had.
#[test]
fn everything_that_is_charged_goes_to_the_parent() {
    for policy in POLICIES {
        let (mut e, mut w) = engine(policy, 0);
        let [top, g] = groups(&mut e);
        let anon = mapping(&mut e, g, MappingKind::Anon, 700);
        let file = mapping(&mut e, g, MappingKind::File, 200);
        let own = mapping(&mut e, top, MappingKind::File, 50);
        touch(&mut e, &mut w, anon, 700, Touch::MapWrite);
        touch(&mut e, &mut w, file, 200, Touch::Read);
        touch(&mut e, &mut w, file, 100, Touch::Read);
        touch(&mut e, &mut w, PageId(file.0 + 150), 50, Touch::Write);
        touch(&mut e, &mut w, own, 50, Touch::Read);
        let names = ["anon", "file", "pagetables", "kernel", "file_dirty"];
        let both = |e: &Engine| names.map(|n| gauge(e, top, n) + gauge(e, g, n));
        let (before, usage) = (both(&e), e.memcg_usage(top));
        assert!(before.iter().all(|&n| n > 0), "{policy:?}: {before:?}");
        e.remove_memcg(g).expect("no child");
        e.validate().unwrap();
        assert!(e.memcgs().all(|m| m != g), "{policy:?}: it is reaped at once");
        assert_eq!((names.map(|n| gauge(&e, top, n)), e.memcg_usage(top)), (before, usage), "{policy:?}");
        // Reclaim of the parent takes its pages.
        e.reclaim(&mut w, top, 100, None).expect("files");
        e.validate().unwrap();
    }
}

/// At the tail of the lists of the parent, in their order: those of the removed group go first,
/// although they were read last.
#[test]
fn folios_of_the_removed_group_are_reclaimed_first() {
    for policy in POLICIES {
        let (mut e, mut w) = engine(policy, 0);
        let [top, g] = groups(&mut e);
        let own = mapping(&mut e, top, MappingKind::File, 400);
        let file = mapping(&mut e, g, MappingKind::File, 400);
        touch(&mut e, &mut w, own, 400, Touch::Read);
        touch(&mut e, &mut w, file, 400, Touch::Read);
        e.remove_memcg(g).expect("no child");
        e.reclaim(&mut w, top, 100, None).expect("files");
        e.validate().unwrap();
        let left = resident(&e, file, 400);
        assert!((1..=300).contains(&left), "{policy:?}: {left} left");
        assert_eq!(resident(&e, PageId(file.0 + 400 - left), left), left, "{policy:?}: in their order");
        assert_eq!(resident(&e, own, 400), 400, "{policy:?}");
    }
}

/// Active file pages stay on the active list.
#[test]
fn a_list_keeps_its_kind() {
    let (mut e, mut w) = engine(Policy::Lru, 0);
    let [top, g] = groups(&mut e);
    let file = mapping(&mut e, g, MappingKind::File, 100);
    touch(&mut e, &mut w, file, 100, Touch::Read);
    touch(&mut e, &mut w, file, 40, Touch::Read);
    let of = |e: &Engine, g| ["active_file", "inactive_file"].map(|n| gauge(e, g, n));
    let before = of(&e, g);
    assert!(before[0] > 0 && before[1] > 0);
    e.remove_memcg(g).expect("no child");
    assert_eq!(of(&e, top), before);
}

/// The parent has all four generations then, and a generation of the group goes to the one of the
/// same index, whatever its age there.
#[test]
fn generations_go_by_their_index() {
    for form in ["6.12", "7.2"] {
        let (mut e, mut w) = engine(Policy::Mglru, 1000);
        if form == "7.2" {
            let mut cfg = Config::new(Policy::Mglru);
            Kernel::V7_2.apply(&mut cfg);
            cfg.lru.batch_folios = 0;
            cfg.swap.pages = 1000;
            e = Engine::new(cfg).expect("a possible configuration");
        }
        let [top, g] = groups(&mut e);
        // The parent has lost its oldest generations, which were empty.
        let own = mapping(&mut e, top, MappingKind::Anon, 64);
        touch(&mut e, &mut w, own, 64, Touch::MapWrite);
        e.reclaim(&mut w, top, 64, Some(100)).expect("anon");
        let file = mapping(&mut e, g, MappingKind::File, 100);
        touch(&mut e, &mut w, file, 100, Touch::Read);
        let anon = mapping(&mut e, g, MappingKind::Anon, 60);
        touch(&mut e, &mut w, anon, 60, Touch::MapWrite);
        let pages = |e: &Engine, path: &str| -> Vec<[u64; 3]> {
            let text = e.lru_gen_text();
            let mut lines = text.lines().skip_while(|l| !(l.starts_with("memcg") && l.ends_with(&format!(" {path}"))));
            lines.next().expect("the group");
            let of_group = lines.take_while(|l| !l.starts_with("memcg")).filter(|l| !l.contains("node"));
            let numbers = of_group.map(|l| l.split_whitespace().map(|n| n.trim_end_matches('x').parse().unwrap_or(0)));
            numbers.map(|n| n.collect::<Vec<u64>>()).map(|n| [n[0], n[2], n[3]]).collect()
        };
        let by_index = |of: &[[u64; 3]]| {
            let mut sums = [[0; 2]; 4];
            of.iter().for_each(|g| (0..2).for_each(|t| sums[(g[0] % 4) as usize][t] += g[1 + t]));
            sums
        };
        let before = by_index(&pages(&e, "/top/g"));
        let lost = pages(&e, "/top");
        assert!(lost.len() < 4 && lost.iter().all(|n| n[1] + n[2] == 0), "{form}: {lost:?}");
        assert_eq!(before.iter().map(|n| n[0] + n[1]).sum::<u64>(), 160, "{form}: {}", e.lru_gen_text());
        e.remove_memcg(g).expect("no child");
        e.validate().unwrap();
        let after = pages(&e, "/top");
        assert_eq!((after.len(), by_index(&after)), (4, before), "{form}");
    }
}

/// Pages in swap stay charged to the group, which is there until they are gone. Read back, a page
/// is charged to the parent.
#[test]
fn swap_stays_charged_to_the_removed_group() {
    for policy in POLICIES {
        let (mut e, mut w) = engine(policy, 1000);
        let [top, g] = groups(&mut e);
        let anon = mapping(&mut e, g, MappingKind::Anon, 100);
        touch(&mut e, &mut w, anon, 100, Touch::MapWrite);
        let _ = e.reclaim(&mut w, g, 60, Some(200));
        let swapped = e.swap_used_pages();
        assert!(swapped >= 60, "{policy:?}: {swapped}");
        e.remove_memcg(g).expect("no child");
        e.validate().unwrap();
        assert_eq!((gauge(&e, g, "swap.current"), e.memcg_usage_pages(g)), (swapped, 0), "{policy:?}");
        touch(&mut e, &mut w, anon, 100, Touch::MapWrite);
        e.validate().unwrap();
        assert_eq!((gauge(&e, top, "anon"), e.memcg_usage_pages(g)), (100, 0), "{policy:?}");
        e.zap_range(&mut w, anon, 100);
        e.validate().unwrap();
        e.add_memcg(top, "/top/next", u64::MAX, u64::MAX).expect("a group");
        assert!(e.memcgs().filter(|&m| e.memcg_path(m) == "/top/g").count() == 0, "{policy:?}: it is reaped");
    }
}

/// A shadow that names a group that is gone says nothing: the page comes back as if for the first
/// time, and is charged above.
#[test]
fn refaults_of_what_a_removed_group_evicted_are_not_tested() {
    for (policy, removed) in POLICIES.into_iter().flat_map(|policy| [(policy, false), (policy, true)]) {
        let (mut e, mut w) = engine(policy, 0);
        let [top, g] = groups(&mut e);
        let [hot, file] = [300, 200].map(|pages| mapping(&mut e, g, MappingKind::File, pages));
        // With active pages enough a refault is near.
        (0..3).for_each(|_| touch(&mut e, &mut w, hot, 300, Touch::Read));
        touch(&mut e, &mut w, file, 200, Touch::Read);
        e.reclaim(&mut w, g, 100, None).expect("files");
        if removed {
            e.remove_memcg(g).expect("no child");
        }
        let activated = stat(&e, top, "workingset_activate_file");
        [(file, 200), (hot, 300)].into_iter().for_each(|(of, pages)| touch(&mut e, &mut w, of, pages, Touch::Read));
        e.validate().unwrap();
        let activated = stat(&e, top, "workingset_activate_file") - activated;
        assert_eq!(activated == 0, removed, "{policy:?}: {activated} activated, removed: {removed}");
        let charged = gauge(&e, if removed { top } else { g }, "file");
        assert_eq!((resident(&e, file, 200), resident(&e, hot, 300), charged), (200, 300, 500), "{policy:?}");
    }
}

/// Writes under way when their group goes end at its parent.
#[test]
fn writeback_ends_at_the_parent() {
    for policy in POLICIES {
        let (mut e, _) = engine(policy, 1000);
        let slow = |_: &AtOnce, effect| matches!(effect, Effect::SwapOut { .. }).then_some(Ack::Pending);
        let mut w = AtOnce::answering(slow);
        let [top, g] = groups(&mut e);
        let anon = mapping(&mut e, g, MappingKind::Anon, 100);
        touch(&mut e, &mut w, anon, 100, Touch::MapWrite);
        e.set_memcg_limits(&mut w, top, &MemcgLimits { max: 400, ..MemcgLimits::default() }).expect("limits");
        let _ = e.page_out(&mut w, anon, 50);
        e.remove_memcg(g).expect("no child");
        e.validate().unwrap();
        let mut ended = 0;
        while let Some(page) = w.take_page() {
            ended += 1;
            e.write_done(&mut w, page, true);
            e.validate().unwrap();
        }
        assert!(ended > 0, "{policy:?}: no write was under way");
        assert_eq!(e.memcg_usage_pages(g), 0, "{policy:?}");
    }
}
