//! Pages kept below the min mark, and the allocations that may take them.

use refault_mm::{Config, Engine, MappingKind, MemcgId, NodeConfig, Outcome, PageId, Policy, Touch};
use refault_testing::AtOnce;

#[test]
fn only_who_reclaim_waits_for_goes_below_the_min_mark() {
    for policy in [Policy::Lru, Policy::Mglru] {
        let node = NodeConfig { low_zones: [0, 0], ..NodeConfig::new(2000) };
        let cfg = Config { node: Some(node), total_pages: 2000, ..Config::new(policy) };
        let mut engine = Engine::new(cfg).unwrap();
        let group = engine.add_memcg(MemcgId::ROOT, "/anon", u64::MAX, 0).unwrap();
        let (_, first) = engine.add_mapping(MappingKind::Anon, group, 0..4000).unwrap();
        let min: u64 = engine.zones().map(|(.., marks)| marks.min).sum();
        let mut next = first.0..;
        let mut w = AtOnce::default().dirty();
        let mut fill = |engine: &mut Engine| {
            let touch = |p: u32| engine.access(&mut w, PageId(p), Touch::MapWrite);
            let refused =
                next.by_ref().take(4000).map(touch).find(|o| matches!(o, Outcome::Oom(_) | Outcome::Throttled));
            assert!(refused.is_some(), "{policy:?}: it ends");
            engine.validate().unwrap();
            engine.free_pages()
        };
        assert!(min > 0);
        assert_eq!(fill(&mut engine), min, "{policy:?}");
        engine.set_memalloc(true);
        assert_eq!(fill(&mut engine), 0, "{policy:?}");
        engine.set_memalloc(false);
        assert_eq!(fill(&mut engine), 0, "{policy:?}");
    }
}
