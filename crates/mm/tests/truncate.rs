//! Truncation of files: pages leave memory without a shadow, whatever state they are in.

use refault_mm::{Config, Engine, MappingKind, MemcgId, Outcome, PageId, Policy, Touch};
use refault_testing::{AtOnce, Rng};

const PAGES: u32 = 300;

fn engine(policy: Policy, memory: u64) -> Engine {
    let mut e = Engine::new(Config::new(policy)).expect("a configuration");
    let group = e.add_memcg(MemcgId::ROOT, "/g", memory, u64::MAX).expect("a group");
    e.add_mapping(MappingKind::File, group, (0..u64::from(PAGES)).map(|n| n + n / 70 * 100)).expect("a file");
    e.add_mapping(MappingKind::Anon, group, 0..u64::from(PAGES)).expect("memory");
    e
}

#[test]
fn a_truncated_page_is_read_again_and_is_no_refault() {
    for policy in [Policy::Lru, Policy::Mglru] {
        let (mut e, mut w) = (engine(policy, 100), AtOnce::default());
        for (page, touch) in [(0, Touch::Read), (1, Touch::Write), (2, Touch::MapRead), (3, Touch::Read)] {
            e.access(&mut w, PageId(page), touch);
        }
        e.truncate_range(&mut w, PageId(0), 3);
        e.validate().expect("a consistent engine");
        assert_eq!(e.access(&mut w, PageId(3), Touch::Read), Outcome::Hit, "{policy:?}: beyond the range");
        assert_eq!(w.mapped(PageId(2)), None, "{policy:?}");
        for page in 0..3 {
            assert_eq!(e.access(&mut w, PageId(page), Touch::Read), Outcome::Major, "{policy:?} page {page}");
        }
        let refaults = e.vmstat().iter().find(|(name, _)| *name == "workingset_refault_file").expect("a counter").1;
        assert_eq!(refaults, 0, "{policy:?}");
    }
}

/// Reads, writes, mapped touches and truncations at random, with reclaim among them.
#[test]
fn structures_hold_together() {
    let touches = [Touch::Read, Touch::Write, Touch::MapRead, Touch::MapWrite];
    for policy in [Policy::Lru, Policy::Mglru] {
        for seed in 0..20 {
            let (mut e, mut w) = (engine(policy, 120), AtOnce::default().with_accessed_bits());
            let mut rng = Rng(seed);
            for _ in 0..1500 {
                match rng.below(12) {
                    0 => e.truncate_range(&mut w, PageId(rng.below(PAGES as usize) as u32), 1 + rng.below(40) as u32),
                    1 => e.flush(&mut w),
                    3 => e.unmap_range(&mut w, PageId(rng.below(PAGES as usize) as u32), 1 + rng.below(40) as u32),
                    2 => _ = e.access(&mut w, PageId(PAGES + rng.below(PAGES as usize) as u32), Touch::MapWrite),
                    _ => _ = e.access(&mut w, PageId(rng.below(PAGES as usize) as u32), touches[rng.below(4)]),
                }
                if rng.one_in(10) {
                    e.validate().unwrap_or_else(|error| panic!("{policy:?} seed {seed}: {error}"));
                }
            }
            e.truncate_range(&mut w, PageId(0), PAGES);
            e.validate().expect("a consistent engine");
        }
    }
}
