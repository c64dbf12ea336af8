//! Code: pages of files that are mapped executable.

use refault_mm::{Config, Engine, FaultAroundConfig, MappingKind, MemcgId, PageId, Policy, Touch};
use refault_testing::AtOnce;

const CODE: u32 = 100;

/// How many pages of a program that ran once are left after reads of so many pages of another file,
/// in 300 pages.
fn left(policy: Policy, executable: bool, reads: u64) -> u32 {
    let cfg = Config { fault_around: FaultAroundConfig { pages: 1, young: true }, ..Config::new(policy) };
    let mut engine = Engine::new(cfg).expect("a configuration");
    let group = engine.add_memcg(MemcgId::ROOT, "/g", 300, u64::MAX).expect("a group");
    engine.add_mapping(MappingKind::File, group, 0..u64::from(CODE)).expect("a program");
    let (_, file) = engine.add_mapping(MappingKind::File, group, 0..reads).expect("a file");
    let mut w = AtOnce::default().with_accessed_bits();
    w.executable = if executable { 0..CODE } else { 0..0 };
    (0..CODE).for_each(|page| _ = engine.access(&mut w, PageId(page), Touch::MapRead));
    (file.0..file.0 + reads as u32).for_each(|page| _ = engine.access(&mut w, PageId(page), Touch::Read));
    engine.validate().expect("consistent");
    (0..CODE).filter(|&page| engine.is_resident(PageId(page))).count() as u32
}

#[test]
fn code_that_was_used_once_stays_on_the_active_list() {
    assert_eq!(left(Policy::Lru, true, 3000), CODE, "activated at its first check");
    assert_eq!(left(Policy::Lru, false, 3000), 0, "kept at its first check, gone at the second");
}
