//! Reclaim for a task that pauses in the middle, so that time goes on.

use refault_mm::{Config, Counter, Engine, MappingKind, MemcgId, Outcome, PageId, Policy, Touch};
use refault_testing::AtOnce;

/// An access, with the runs of reclaim that it needs to the end; how often they paused.
fn access(e: &mut Engine, w: &mut AtOnce, page: PageId, touch: Touch) -> u64 {
    let mut pauses = 0;
    loop {
        let outcome = e.access(w, page, touch);
        while let Some(run) = e.take_paused_reclaim() {
            pauses += 1;
            e.resume_reclaim(w, run);
        }
        if outcome != Outcome::Throttled {
            return pauses;
        }
        assert!(pauses > 0, "an access is throttled without a pause");
    }
}

/// Counters after accesses in a group of 1,000 pages, or in its parent, and how often reclaim
/// paused.
fn counts(policy: Policy, pauses: bool, nested: bool) -> (Vec<u64>, u64) {
    let mut cfg = Config::new(policy);
    cfg.swap.pages = 10_000;
    let (mut e, mut w) = (Engine::new(cfg).expect("an engine"), AtOnce::default());
    w.interrupts = pauses;
    let mut group = e.add_memcg(MemcgId::ROOT, "g", 1000, u64::MAX).expect("a group");
    if nested {
        group = e.add_memcg(group, "h", u64::MAX, u64::MAX).expect("a group");
    }
    let [anon, file] =
        [MappingKind::Anon, MappingKind::File].map(|kind| e.add_mapping(kind, group, 0..3000).expect("a mapping").1);
    let (mut state, mut paused) = (1u64, 0);
    for i in 0..20_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (first, touch) = [(anon, Touch::MapWrite), (file, Touch::Read)][i % 2];
        let page = PageId(first.0 + (state >> 33) as u32 % 1500);
        if touch == Touch::MapWrite && w.mapped(page).is_some() {
            w.set_young(page);
            w.set_dirty(page);
            continue;
        }
        paused += access(&mut e, &mut w, page, touch);
    }
    e.validate().expect("all invariants hold");
    (Counter::ALL.iter().map(|&c| e.vmstat().get(c)).collect(), paused)
}

#[test]
fn a_run_that_pauses_comes_to_the_same_if_nothing_happens_meanwhile() {
    for policy in [Policy::Lru, Policy::Mglru] {
        for nested in [false, true] {
            let ((whole, none), (parts, pauses)) = (counts(policy, false, nested), counts(policy, true, nested));
            assert_eq!(none, 0);
            assert!(pauses > 100, "{policy}: {pauses}");
            assert_eq!(whole, parts, "{policy}, nested {nested}");
        }
    }
}
