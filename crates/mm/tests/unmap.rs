//! `munmap` of pages of files.

use refault_mm::{AccessAdvice, Config, Engine, FaultAroundConfig, MappingKind, MemcgId, PageId, Policy, Touch};
use refault_testing::AtOnce;

const PAGES: u32 = 20;

/// A mapped file of which each page was touched so.
fn mapped(policy: Policy, touch: Touch, advice: AccessAdvice) -> (Engine, AtOnce) {
    let mut cfg = Config { fault_around: FaultAroundConfig { pages: 1, young: true }, ..Config::new(policy) };
    cfg.lru.batch_folios = 0;
    let mut engine = Engine::new(cfg).expect("a configuration");
    let group = engine.add_memcg(MemcgId::ROOT, "/g", 300, u64::MAX).expect("a group");
    let (file, _) = engine.add_mapping(MappingKind::File, group, 0..u64::from(PAGES)).expect("a file");
    engine.advise_access(file, advice);
    let mut w = AtOnce::default().with_accessed_bits();
    touch_all(&mut engine, &mut w, touch);
    (engine, w)
}

fn touch_all(engine: &mut Engine, w: &mut AtOnce, touch: Touch) {
    (0..PAGES).for_each(|page| _ = engine.access(w, PageId(page), touch));
}

fn gauge(engine: &Engine, name: &str) -> u64 {
    engine.memcg_gauges(MemcgId(1)).iter().find(|gauge| gauge.name == name).expect("a gauge").value
}

/// Pages on the active list after their mapping was given up so many times, touched before each.
fn active_after(times: u32, young: bool, advice: AccessAdvice) -> u64 {
    let (mut engine, mut w) = mapped(Policy::Lru, Touch::MapRead, advice);
    for time in 0..times {
        if time > 0 {
            touch_all(&mut engine, &mut w, Touch::MapRead);
        }
        w.keeps_young = young;
        engine.unmap_range(&mut w, PageId(0), PAGES + 100);
        engine.validate().expect("consistent");
        assert!((0..PAGES).all(|page| w.mapped(PageId(page)).is_none() && engine.is_resident(PageId(page))));
    }
    gauge(&engine, "active_file")
}

#[test]
fn a_page_that_was_touched_in_two_mappings_is_active() {
    assert_eq!(active_after(1, true, AccessAdvice::Normal), 0, "referenced");
    assert_eq!(active_after(2, true, AccessAdvice::Normal), u64::from(PAGES));
    assert_eq!(active_after(2, false, AccessAdvice::Normal), 0, "their accessed bits were cleared before");
    assert_eq!(active_after(2, true, AccessAdvice::Random), 0, "advice says that they count for nothing");
}

#[test]
fn what_was_written_is_dirty_after_its_mapping() {
    for policy in [Policy::Lru, Policy::Mglru] {
        for (touch, dirty) in [(Touch::MapRead, 0), (Touch::MapWrite, u64::from(PAGES))] {
            let (mut engine, mut w) = mapped(policy, touch, AccessAdvice::Normal);
            engine.unmap_range(&mut w, PageId(0), PAGES);
            engine.validate().expect("consistent");
            assert_eq!(gauge(&engine, "file_dirty"), dirty, "{policy:?} {touch:?}");
        }
    }
}
