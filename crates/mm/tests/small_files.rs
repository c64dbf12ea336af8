//! Trees of small files: the shadow of a file of one page, inodes, and how many nodes of shadows a
//! group may keep.

use refault_mm::{Config, Engine, MappingKind, MemcgId, Outcome, PageId, Policy, Touch};
use refault_testing::{AtOnce, Rng};

const POLICIES: [Policy; 2] = [Policy::Lru, Policy::Mglru];

/// So many files of so many pages in a group with this limit.
fn engine(policy: Policy, memory: u64, files: u32, pages: u64) -> (Engine, MemcgId) {
    let mut e = Engine::new(Config::new(policy)).expect("a configuration");
    let group = e.add_memcg(MemcgId::ROOT, "/g", memory, u64::MAX).expect("a group");
    for _ in 0..files {
        e.add_mapping(MappingKind::File, group, 0..pages).expect("a file");
    }
    (e, group)
}

fn count(e: &Engine, name: &str) -> u64 {
    e.vmstat().iter().find(|(known, _)| *known == name).expect("a counter").1
}

/// Reads all pages, one after the other: how many are missing, and how many of these are refaults.
fn read_all(e: &mut Engine, w: &mut AtOnce, pages: u32) -> (u64, u64) {
    let (mut missing, before) = (0, count(e, "workingset_refault_file"));
    for page in 0..pages {
        missing += u64::from(e.access(w, PageId(page), Touch::Read) != Outcome::Hit);
    }
    e.validate().expect("a consistent engine");
    (missing, count(e, "workingset_refault_file") - before)
}

#[test]
fn regression_files_of_one_page_keep_their_shadows() {
    for policy in POLICIES {
        let (mut e, _) = engine(policy, 1000, 3000, 1);
        let mut w = AtOnce::default();
        assert_eq!(read_all(&mut e, &mut w, 3000), (3000, 0), "{policy}");
        // A node for 8 pages of the group would be 125, but these shadows have none.
        let (missing, refaults) = read_all(&mut e, &mut w, 3000);
        assert!(missing > 2000 && refaults == missing, "{policy}: {refaults} of {missing}");
        assert_eq!(count(&e, "workingset_nodereclaim"), 0, "{policy}");
    }
}

#[test]
fn files_of_two_pages_have_nodes_which_are_bounded() {
    for policy in POLICIES {
        let (mut e, _) = engine(policy, 1000, 3000, 2);
        let mut w = AtOnce::default();
        read_all(&mut e, &mut w, 6000);
        let (missing, refaults) = read_all(&mut e, &mut w, 6000);
        assert!(refaults * 10 < missing, "{policy}: {refaults} of {missing}");
        assert!(count(&e, "workingset_nodereclaim") > 1000, "{policy}");
    }
}

#[test]
fn regression_the_bound_of_shadow_nodes_counts_all_that_the_group_has() {
    for policy in POLICIES {
        let (mut e, group) = engine(policy, 31_000, 3000, 2);
        let mut w = AtOnce::default();
        // Anonymous memory and kernel objects: a node for 8 of these pages is more than there are.
        e.set_memcg_external_pages(group, 30_000).expect("it fits");
        read_all(&mut e, &mut w, 6000);
        let (missing, refaults) = read_all(&mut e, &mut w, 6000);
        assert!(missing > 4000 && refaults == missing, "{policy}: {refaults} of {missing}");
    }
}

#[test]
fn regression_inodes_go_where_reclaim_finds_few_pages() {
    for policy in POLICIES {
        let (mut e, _) = engine(policy, 200, 40_000, 1);
        let mut w = AtOnce::default();
        read_all(&mut e, &mut w, 40_000);
        let (missing, refaults) = read_all(&mut e, &mut w, 40_000);
        assert!(refaults * 2 < missing, "{policy}: {refaults} of {missing}");
    }
}

/// `vfs_cache_pressure`: without any, every inode stays, and with it the shadow of its page.
#[test]
fn inodes_stay_where_nothing_presses() {
    for policy in POLICIES {
        let refaults = |pressure: u64| {
            let cfg = Config { vfs_cache_pressure: pressure, ..Config::new(policy) };
            let mut e = Engine::new(cfg).expect("a configuration");
            let group = e.add_memcg(MemcgId::ROOT, "/g", 200, u64::MAX).expect("a group");
            for _ in 0..40_000 {
                e.add_mapping(MappingKind::File, group, 0..1).expect("a file");
            }
            let mut w = AtOnce::default();
            read_all(&mut e, &mut w, 40_000);
            read_all(&mut e, &mut w, 40_000)
        };
        let [(missing, kept), (_, usual)] = [0, 100].map(refaults);
        assert!(kept == missing && kept > 2 * usual, "{policy}: {kept} of {missing}, {usual}");
    }
}

#[test]
fn regression_reclaim_for_readahead_leaves_inodes_alone() {
    let refaults = |reads_ahead: bool| {
        let (mut e, _) = engine(Policy::Lru, 1000, 30_000, 1);
        let mut w = AtOnce::default();
        for page in (0..2).flat_map(|_| 0..30_000).map(PageId) {
            if reads_ahead {
                e.will_need(&mut w, page, 1);
            }
            e.access(&mut w, page, Touch::Read);
        }
        e.validate().expect("a consistent engine");
        count(&e, "workingset_refault_file")
    };
    let (alone, ahead) = (refaults(false), refaults(true));
    assert!(alone < 3000 && ahead > 20_000, "{alone} and {ahead}");
}

#[test]
fn a_file_that_is_cut_to_a_page_has_no_node() {
    let (mut e, group) = engine(Policy::Lru, 100, 1, 10);
    let mut w = AtOnce::default();
    let slab = |e: &Engine| {
        let gauges = e.memcg_gauges(group);
        gauges.iter().find(|g| g.name == "slab_reclaimable_bytes").expect("a gauge").value
    };
    e.access(&mut w, PageId(0), Touch::Read);
    assert_eq!(slab(&e), 0);
    read_all(&mut e, &mut w, 10);
    assert_eq!(slab(&e), 584);
    e.truncate_range(&mut w, PageId(1), 9);
    e.validate().expect("a consistent engine");
    assert_eq!(slab(&e), 0);
}

/// Reads, writes and truncations at random, with reclaim among them.
#[test]
fn structures_hold_together() {
    for policy in POLICIES {
        for seed in 0..10 {
            let (mut e, _) = engine(policy, 60, 300, 3);
            let (mut w, mut rng) = (AtOnce::default(), Rng(seed));
            for _ in 0..3000 {
                let page = PageId(rng.below(900) as u32);
                match rng.below(10) {
                    0 => e.truncate_range(&mut w, page, (1 + rng.below(3) as u32).min(900 - page.0)),
                    1 => _ = e.access(&mut w, page, Touch::Write),
                    2 => e.flush(&mut w),
                    _ => _ = e.access(&mut w, page, Touch::Read),
                }
                if rng.one_in(20) {
                    e.validate().unwrap_or_else(|error| panic!("{policy} seed {seed}: {error}"));
                }
            }
        }
    }
}
