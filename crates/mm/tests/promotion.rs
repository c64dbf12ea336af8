//! Hint faults on slow memory: what is promoted, what stays, and what is counted.

use crate::machines::{MIGRATIONS_FAIL, MIGRATIONS_PEND, access, anon, count, file, gauge, notes, tiers, woken};
use refault_mm::tiering::{PromotionPolicy, TieringConfig};
use refault_mm::{Engine, HintOutcome, MemcgId, NodeId, Outcome, PageId, Policy, Touch};
use refault_testing::AtOnce;

/// Hint faults promote to node 0; everything starts on node 1.
fn promoting(
    policy: PromotionPolicy,
    lru: Policy,
    settings: impl FnOnce(&mut TieringConfig),
) -> (Engine, AtOnce, PageId, PageId) {
    let mut cfg = tiers(lru, [4000, 4000]);
    let numa = cfg.numa.as_mut().expect("several nodes");
    // A CPU beside slow memory, so that a test can put pages there.
    numa.cpu_nodes = vec![NodeId(0), NodeId(1)];
    // Never plenty of free space, unless the test says so.
    numa.tiering = TieringConfig { numa_balancing: 2, policy, free_space_pages: 1 << 20, ..TieringConfig::default() };
    settings(&mut numa.tiering);
    let mut e = Engine::new(cfg).unwrap();
    let mut w = notes();
    let (a, f) = (anon(&mut e, MemcgId::ROOT, 600), file(&mut e, MemcgId::ROOT, 600));
    e.set_cpu(1);
    access(&mut e, &mut w, a, 0..600, Touch::MapWrite);
    access(&mut e, &mut w, f, 0..600, Touch::MapRead);
    e.drain_all();
    e.set_cpu(0);
    (e, w, a, f)
}

const MS: u64 = 1_000_000;

/// The page is marked at a time and touched at another.
fn mark_and_touch(e: &mut Engine, w: &mut AtOnce, page: PageId, marked_ms: u64, touched_ms: u64) -> HintOutcome {
    e.set_now_ns(marked_ms * MS);
    assert!(e.hint_mark(page));
    e.set_now_ns(touched_ms * MS);
    let hint = e.hint_fault(w, page);
    e.validate().unwrap();
    hint
}

#[test]
fn a_page_that_is_touched_soon_is_promoted_and_counted() {
    for lru in [Policy::Lru, Policy::Mglru] {
        let (mut e, mut w, a, f) = promoting(PromotionPolicy::LatencyLimitAuto, lru, |_| {});
        assert_eq!(mark_and_touch(&mut e, &mut w, a, 100, 1200), HintOutcome::Stay, "too late: {lru}");
        assert_eq!(mark_and_touch(&mut e, &mut w, a, 2000, 2500), HintOutcome::Promoted, "{lru}");
        assert_eq!((e.page_node(a), w.mapped(a).is_some()), (Some(NodeId(0)), true), "{lru}");
        assert_eq!(
            mark_and_touch(&mut e, &mut w, f, 3000, 3001),
            HintOutcome::Promoted,
            "a clean file page, too: {lru}"
        );
        let counts = [
            "numa_pte_updates",
            "numa_hint_faults",
            "numa_hint_faults_local",
            "pgpromote_candidate",
            "pgpromote_success",
            "numa_pages_migrated",
            "pgmigrate_success",
        ];
        assert_eq!(counts.map(|c| count(&e, c)), [3, 3, 0, 2, 2, 2, 2], "{lru}");
        assert!(!e.hint_mark(a), "fast memory is not marked: {lru}");
        assert_eq!((e.hint_fault(&mut w, a), count(&e, "numa_hint_faults_local")), (HintOutcome::Stay, 1), "{lru}");
        assert_eq!(e.promoter(NodeId(0)).unwrap().stats().success, 2);
        let lists = e.node_gauges_of(NodeId(0));
        assert_eq!(gauge(&lists, "inactive_anon") + gauge(&lists, "active_anon"), 1, "{lru}");
        if lru == Policy::Mglru {
            assert_eq!(
                gauge(&lists, "active_anon"),
                1,
                "the thread that faults a page in has it start in the youngest generation"
            );
        }
    }
}

#[test]
fn a_stamp_is_only_as_wide_as_it_is() {
    for (stamp_bits, hint) in [(12, HintOutcome::Promoted), (17, HintOutcome::Stay)] {
        let (mut e, mut w, a, _) = promoting(PromotionPolicy::Latency, Policy::Lru, |t| t.stamp_bits = stamp_bits);
        // 4096 ms later 12 bits look the same.
        assert_eq!(mark_and_touch(&mut e, &mut w, a, 100, 100 + 3 * 4096 + 20), hint, "{stamp_bits} bits");
    }
}

#[test]
fn what_cannot_be_moved_stays() {
    let (mut e, mut w, a, f) = promoting(PromotionPolicy::Mru, Policy::Lru, |_| {});
    let nth = |first: PageId, n: u32| PageId(first.0 + n);
    access(&mut e, &mut w, f, 0..1, Touch::MapWrite);
    assert!(!e.hint_mark(f), "dirty: not even marked");
    assert!(e.hint_mark(nth(f, 1)));
    access(&mut e, &mut w, f, 1..2, Touch::MapWrite);
    assert_eq!(e.hint_fault(&mut w, nth(f, 1)), HintOutcome::Stay, "dirtied after it was marked");
    w.shared_executable = Some(nth(f, 2));
    assert_eq!(mark_and_touch(&mut e, &mut w, nth(f, 2), 1, 2), HintOutcome::Stay, "a shared library");
    assert_eq!(count(&e, "pgpromote_candidate"), 2, "candidates they are");
    w.answer = MIGRATIONS_FAIL;
    assert_eq!(mark_and_touch(&mut e, &mut w, a, 3, 4), HintOutcome::Stay);
    assert_eq!((e.page_node(a), w.mapped(a).is_some(), count(&e, "pgmigrate_fail")), (Some(NodeId(1)), true, 1));
    w.answer = MIGRATIONS_PEND;
    assert_eq!(mark_and_touch(&mut e, &mut w, nth(a, 1), 5, 6), HintOutcome::Migrating);
    assert_eq!(e.access(&mut w, nth(a, 1), Touch::MapRead), Outcome::Waiting);
    assert_eq!(count(&e, "pgpromote_success"), 0);
    e.migrate_done(&mut w, nth(a, 1), true);
    assert_eq!((count(&e, "pgpromote_success"), e.page_node(nth(a, 1))), (1, Some(NodeId(0))));
}

#[test]
fn without_room_beyond_the_high_mark_kswapd_is_woken_instead() {
    let (mut e, mut w, a, _) = promoting(PromotionPolicy::Mru, Policy::Lru, |_| {});
    let marks = e.node_zones(NodeId(0)).next().unwrap().3;
    assert!(e.set_external_pages(4000 - marks.high));
    assert_eq!(mark_and_touch(&mut e, &mut w, a, 1, 2), HintOutcome::Stay);
    assert_eq!(woken(&w), [0]);
    assert!(e.set_external_pages(4000 - marks.high - 2));
    assert_eq!(mark_and_touch(&mut e, &mut w, a, 3, 4), HintOutcome::Promoted);
}

#[test]
fn free_space_in_plenty_needs_no_question() {
    let (mut e, mut w, a, _) = promoting(PromotionPolicy::LatencyLimitAuto, Policy::Lru, |t| t.free_space_pages = 100);
    assert_eq!(mark_and_touch(&mut e, &mut w, a, 100, 60_000), HintOutcome::Promoted);
    assert_eq!((count(&e, "pgpromote_candidate"), count(&e, "pgpromote_success")), (0, 1));
}

/// Weiner's alternative: through 2.2 the patch as posted takes three touches, its description two.
#[test]
fn two_touches_go_by_the_active_list() {
    for (policy, hints) in [
        (PromotionPolicy::TwoTouch, &[HintOutcome::Stay, HintOutcome::Promoted][..]),
        (PromotionPolicy::TwoTouchLiteral, &[HintOutcome::Stay, HintOutcome::Stay, HintOutcome::Promoted]),
    ] {
        let (mut e, mut w, a, _) = promoting(policy, Policy::Lru, |_| {});
        for (i, &hint) in hints.iter().enumerate() {
            let t = 100_000 * (i as u64 + 1);
            assert_eq!(mark_and_touch(&mut e, &mut w, a, t, t + 50_000), hint, "{policy}, touch {i}");
            e.drain_all();
        }
    }
}

#[test]
fn the_oracle_asks_the_driver() {
    let (mut e, mut w, a, _) = promoting(PromotionPolicy::Oracle, Policy::Mglru, |_| {});
    w.hottest = Some(PageId(a.0 + 1));
    assert_eq!(mark_and_touch(&mut e, &mut w, a, 1, 2), HintOutcome::Stay);
    assert_eq!(mark_and_touch(&mut e, &mut w, PageId(a.0 + 1), 1, 50_000), HintOutcome::Promoted);
}

#[test]
fn the_limit_holds_promotion_back_by_the_second() {
    let (mut e, mut w, a, _) =
        promoting(PromotionPolicy::LatencyLimit, Policy::Lru, |t| t.promote_rate_limit_pages_per_s = 50);
    let mut promoted = [0u64; 3];
    for p in 0..600u32 {
        // 200 a window of a little more than a second.
        let t = 10_000 + u64::from(p / 200) * 1100;
        let hint = mark_and_touch(&mut e, &mut w, PageId(a.0 + p), t, t + 1);
        promoted[(p / 200) as usize] += u64::from(hint == HintOutcome::Promoted);
    }
    assert_eq!(promoted, [50; 3], "I9.1");
    assert_eq!(count(&e, "pgpromote_candidate"), 600, "those held back are candidates");
}
