//! Policies as plug-ins: they know what is in memory, choose what goes, and leave the rest to the
//! kernel.

use refault_mm::{
    Ack, Cache, CacheExtOps, CacheExtPolicy, Config, Counter, Effect, Engine, Eviction, FolioId, MappingKind, MemcgId,
    MemcgLimits, Outcome, PageId, Policy, Touch,
};
use refault_testing::AtOnce;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

const LIMIT: u64 = 400;

fn engine(policy: CacheExtPolicy) -> (Engine, AtOnce, MemcgId) {
    let mut engine = Engine::new(Config::new(Policy::Ext(policy))).expect("possible");
    let group = engine.add_memcg(MemcgId::ROOT, "/g", LIMIT, u64::MAX).expect("a group");
    (engine, AtOnce::default(), group)
}

#[test]
fn the_most_recently_used_goes_under_mru() {
    let misses = |policy| {
        let (mut engine, mut world, group) = engine(policy);
        let (_, first) = engine.add_mapping(MappingKind::File, group, 0..600).expect("a file");
        let pass = |engine: &mut Engine, world: &mut AtOnce| {
            (0..600).filter(|n| engine.access(world, PageId(first.0 + n), Touch::Read) == Outcome::Major).count()
        };
        (0..5).for_each(|_| _ = pass(&mut engine, &mut world));
        engine.validate().expect("whole");
        pass(&mut engine, &mut world)
    };
    // Pages that do not fit miss under MRU; under LRU and FIFO all do.
    assert!(misses(CacheExtPolicy::Mru) < 300, "{}", misses(CacheExtPolicy::Mru));
    assert_eq!(misses(CacheExtPolicy::LruExact), 600);
    assert_eq!(misses(CacheExtPolicy::Fifo), 600);
}

#[test]
fn what_is_dirty_or_mapped_and_used_stays() {
    let (mut engine, mut world, group) = engine(CacheExtPolicy::Fifo);
    let (_, first) = engine.add_mapping(MappingKind::File, group, 0..2000).expect("a file");
    let page = |n: u32| PageId(first.0 + n);
    for n in 0..2000 {
        // Pages that are touched by mapping all the time are the oldest, and stay.
        for used in 0..20 {
            engine.access(&mut world, page(used), Touch::MapRead);
        }
        engine.access(&mut world, page(n), if n % 3 == 0 { Touch::Write } else { Touch::Read });
    }
    engine.validate().expect("whole");
    let stats = engine.memcg_stats(group);
    assert!(stats.get(Counter::PgstealFile) > 1400, "{}", stats.get(Counter::PgstealFile));
}

/// It proposes nothing: the kernel's own lists say all.
#[derive(Clone, Debug)]
struct Silent;

impl CacheExtOps for Silent {
    fn init(&mut self, _: &mut Cache<'_>) {}
    fn folio_added(&mut self, _: &mut Cache<'_>, _: FolioId) {}
    fn folio_accessed(&mut self, _: &mut Cache<'_>, _: FolioId) {}
    fn folio_removed(&mut self, _: &mut Cache<'_>, _: FolioId, _: bool) {}
    fn evict_folios(&mut self, _: &mut Cache<'_>, _: &mut Eviction) {}
}

/// It proposes what is not there, and what was proposed before.
#[derive(Clone, Debug)]
struct Confused;

impl CacheExtOps for Confused {
    fn init(&mut self, _: &mut Cache<'_>) {}
    fn folio_added(&mut self, _: &mut Cache<'_>, _: FolioId) {}
    fn folio_accessed(&mut self, _: &mut Cache<'_>, _: FolioId) {}
    fn folio_removed(&mut self, _: &mut Cache<'_>, _: FolioId, _: bool) {}
    fn evict_folios(&mut self, _: &mut Cache<'_>, eviction: &mut Eviction) {
        (0..).map(|n| FolioId(n % 3)).take(eviction.wanted()).for_each(|f| eviction.propose(f));
    }
}

#[test]
fn the_kernel_does_what_a_policy_leaves_undone() {
    for ops in [&Silent as &dyn CacheExtOps, &Confused] {
        let (mut engine, mut world, group) = engine(CacheExtPolicy::Fifo);
        let (_, first) = engine.add_mapping(MappingKind::File, group, 0..3000).expect("a file");
        (0..100).for_each(|n| _ = engine.access(&mut world, PageId(first.0 + n), Touch::Read));
        engine.attach_cache_ext(group, ops).expect("a policy");
        for n in 0..3000 {
            let outcome = engine.access(&mut world, PageId(first.0 + n), Touch::Read);
            assert!(matches!(outcome, Outcome::Major | Outcome::Hit), "{n}: {outcome:?}");
        }
        engine.validate().expect("whole");
    }
}

#[test]
fn groups_have_policies_of_their_own() {
    let (mut engine, mut world, scan) = engine(CacheExtPolicy::LruExact);
    let other = engine.add_memcg(MemcgId::ROOT, "/other", LIMIT, u64::MAX).expect("a group");
    let file = |engine: &mut Engine, group| engine.add_mapping(MappingKind::File, group, 0..600).expect("a file").1;
    let (a, b) = (file(&mut engine, scan), file(&mut engine, other));
    let pass = |engine: &mut Engine, world: &mut AtOnce, first: PageId| {
        (0..600).filter(|n| engine.access(world, PageId(first.0 + n), Touch::Read) == Outcome::Major).count()
    };
    (0..2).for_each(|_| _ = (pass(&mut engine, &mut world, a), pass(&mut engine, &mut world, b)));
    /// The same policy, handed over: `Mru` of the engine is not public.
    #[derive(Clone, Debug, Default)]
    struct Mru(refault_mm::ListId);
    impl CacheExtOps for Mru {
        fn init(&mut self, cache: &mut Cache<'_>) {
            self.0 = cache.lists.new_list();
        }
        fn folio_added(&mut self, cache: &mut Cache<'_>, folio: FolioId) {
            cache.lists.add(self.0, folio);
        }
        fn folio_accessed(&mut self, cache: &mut Cache<'_>, folio: FolioId) {
            cache.lists.move_head(self.0, folio);
        }
        fn folio_removed(&mut self, cache: &mut Cache<'_>, folio: FolioId, _: bool) {
            cache.lists.del(folio);
        }
        fn evict_folios(&mut self, cache: &mut Cache<'_>, eviction: &mut Eviction) {
            cache.lists.iterate(self.0, eviction, |_, _| refault_mm::Iter::Evict);
        }
    }
    engine.attach_cache_ext(scan, &Mru::default()).expect("a policy");
    engine.validate().expect("whole");
    (0..2).for_each(|_| _ = (pass(&mut engine, &mut world, a), pass(&mut engine, &mut world, b)));
    assert!(pass(&mut engine, &mut world, a) < 300);
    assert_eq!(pass(&mut engine, &mut world, b), 600);
    engine.validate().expect("whole");
    let generations =
        Engine::new(Config::new(Policy::Mglru)).expect("possible").attach_cache_ext(MemcgId::ROOT, &Silent);
    assert!(generations.expect_err("generations").contains("two lists"));
}

/// Two groups, one with a policy and one without: the latter is as in an engine that knows of none.
#[test]
fn a_group_without_a_policy_is_left_alone() {
    let reads = |with_policy: bool| {
        let mut engine = Engine::new(Config::new(Policy::Lru)).expect("possible");
        let mut world = AtOnce::default();
        let groups = ["/a", "/b"].map(|g| engine.add_memcg(MemcgId::ROOT, g, LIMIT, u64::MAX).expect("a group"));
        let files = groups.map(|g| engine.add_mapping(MappingKind::File, g, 0..900).expect("a file").1);
        for n in 0..20_000 {
            if n == 5000 && with_policy {
                engine.attach_cache_ext(groups[0], &*CacheExtPolicy::Mru.ops()).expect("a policy");
            }
            let at = [n % 600, (n * n / 7) % 900];
            (0..2).for_each(|i| _ = engine.access(&mut world, PageId(files[i].0 + at[i]), Touch::Read));
        }
        engine.validate().expect("whole");
        groups.map(|g| engine.memcg_stats(g).get(Counter::PgstealFile))
    };
    let (without, with) = (reads(false), reads(true));
    assert_eq!(without[1], with[1]);
    assert!(with[0] < without[0] * 2 / 3, "{with:?} {without:?}");
}

/// A ghost of S3-FIFO was put on a list of the policy that came after it, and was on both.
#[test]
fn regression_ghosts_of_a_policy_that_is_gone_are_no_hindrance() {
    let (mut engine, mut world, group) = engine(CacheExtPolicy::S3Fifo);
    let (_, first) = engine.add_mapping(MappingKind::File, group, 0..900).expect("a file");
    let pass = |engine: &mut Engine, world: &mut AtOnce| {
        for n in 0..900 {
            engine.access(world, PageId(first.0 + n), Touch::Read);
        }
        engine.validate().expect("whole");
    };
    pass(&mut engine, &mut world);
    engine.attach_cache_ext(group, &Oldest::default()).expect("a policy");
    pass(&mut engine, &mut world);
    pass(&mut engine, &mut world);
}

/// Whether the device is done at once or later: the read that a page is brought in for is no access
/// to it.
#[test]
fn the_read_that_brings_a_page_in_is_no_access() {
    for waits in [false, true] {
        let (mut engine, mut world, group) = engine(CacheExtPolicy::Fifo);
        let (_, page) = engine.add_mapping(MappingKind::File, group, 0..10).expect("a file");
        let accesses = Counting::default();
        engine.attach_cache_ext(group, &accesses).expect("a policy");
        if waits {
            world = AtOnce::answering(|_, e| matches!(e, Effect::Read { .. }).then_some(Ack::Pending));
            assert_eq!(engine.access(&mut world, page, Touch::Read), Outcome::Waiting);
            engine.read_done(&mut world, page, true);
        }
        engine.access(&mut world, page, Touch::Read);
        assert_eq!(accesses.0.load(Relaxed), 0);
        engine.access(&mut world, page, Touch::Read);
        assert_eq!(accesses.0.load(Relaxed), 1);
    }
}

/// It counts accesses, over all of its copies.
#[derive(Clone, Debug, Default)]
struct Counting(Arc<AtomicU32>);

impl CacheExtOps for Counting {
    fn init(&mut self, _: &mut Cache<'_>) {}
    fn folio_added(&mut self, _: &mut Cache<'_>, _: FolioId) {}
    fn folio_accessed(&mut self, _: &mut Cache<'_>, _: FolioId) {
        self.0.fetch_add(1, Relaxed);
    }
    fn folio_removed(&mut self, _: &mut Cache<'_>, _: FolioId, _: bool) {}
    fn evict_folios(&mut self, _: &mut Cache<'_>, _: &mut Eviction) {}
}

/// First in, first out, which adds and never moves.
#[derive(Clone, Debug, Default)]
struct Oldest(refault_mm::ListId);

impl CacheExtOps for Oldest {
    fn init(&mut self, cache: &mut Cache<'_>) {
        self.0 = cache.lists.new_list();
    }
    fn folio_added(&mut self, cache: &mut Cache<'_>, folio: FolioId) {
        cache.lists.add_tail(self.0, folio);
    }
    fn folio_accessed(&mut self, _: &mut Cache<'_>, _: FolioId) {}
    fn folio_removed(&mut self, cache: &mut Cache<'_>, folio: FolioId, _: bool) {
        cache.lists.del(folio);
    }
    fn evict_folios(&mut self, cache: &mut Cache<'_>, eviction: &mut Eviction) {
        cache.lists.iterate(self.0, eviction, |_, _| refault_mm::Iter::Evict);
    }
}

/// S3-FIFO took a share of 1 from a limit of 0.
#[test]
fn regression_a_group_whose_limit_is_gone_loses_its_pages() {
    for policy in CacheExtPolicy::ALL {
        let (mut engine, mut world, group) = engine(policy);
        let (_, first) = engine.add_mapping(MappingKind::File, group, 0..300).expect("a file");
        (0..300).for_each(|n| _ = engine.access(&mut world, PageId(first.0 + n), Touch::Read));
        let none = MemcgLimits { max: 0, ..MemcgLimits::default() };
        engine.set_memcg_limits(&mut world, group, &none).expect("limits");
        engine.access(&mut world, first, Touch::Read);
        engine.validate().unwrap_or_else(|e| panic!("{policy}: {e}"));
        assert!(engine.memcg_stats(group).get(Counter::PgstealFile) >= 200, "{policy}");
    }
}

/// It proposes the first pages, whatever becomes of them.
#[derive(Clone, Debug)]
struct Stubborn;

impl CacheExtOps for Stubborn {
    fn init(&mut self, _: &mut Cache<'_>) {}
    fn folio_added(&mut self, _: &mut Cache<'_>, _: FolioId) {}
    fn folio_accessed(&mut self, _: &mut Cache<'_>, _: FolioId) {}
    fn folio_removed(&mut self, _: &mut Cache<'_>, _: FolioId, _: bool) {}
    fn evict_folios(&mut self, _: &mut Cache<'_>, eviction: &mut Eviction) {
        (0..32).map(FolioId).for_each(|f| eviction.propose(f));
    }
}

/// Pages under read were taken off the lists and put back, and nothing else went.
#[test]
fn regression_pages_under_read_that_are_proposed_do_not_stop_reclaim() {
    let (mut engine, mut world, group) = engine(CacheExtPolicy::Fifo);
    let (_, first) = engine.add_mapping(MappingKind::File, group, 0..2000).expect("a file");
    engine.attach_cache_ext(group, &Stubborn).expect("a policy");
    let mut later = AtOnce::answering(|_, e| matches!(e, Effect::Read { .. }).then_some(Ack::Pending));
    for n in 0..40 {
        assert_eq!(engine.access(&mut later, PageId(first.0 + n), Touch::Read), Outcome::Waiting);
    }
    for n in 40..2000 {
        assert_eq!(engine.access(&mut world, PageId(first.0 + n), Touch::Read), Outcome::Major, "{n}");
    }
    engine.validate().expect("whole");
}
