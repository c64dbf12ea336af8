//! Kind of machine that a seed has, and what goes wrong there.

use refault_mm::{Config, Engine, MappingKind, MemcgId, NodeConfig, Policy, ThpConfig, ThpDefrag, ThpSize};

use super::random::Random;

/// Rates of failures: once in this many calls; 0: never.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rates {
    /// A fill is refused, or is done in part.
    pub(crate) fill_refused: u64,
    pub(crate) fill_short: u64,
    /// A move: to be repeated, the page is held, an error though it was done, an error and it was
    /// not, the page is lost, the place is taken.
    pub(crate) move_again: u64,
    pub(crate) move_busy: u64,
    pub(crate) move_short: u64,
    pub(crate) move_misreported: u64,
    pub(crate) move_error: u64,
    pub(crate) move_lost: u64,
    pub(crate) place_taken: u64,
    /// A page cannot be protected.
    pub(crate) protect_refused: u64,
    /// Somebody else is woken, too.
    pub(crate) stray_wake: u64,
    /// Whether a page was written cannot be told.
    pub(crate) written_unknown: u64,
    /// The store: an error, or content that is not what was written.
    pub(crate) store_error: u64,
    pub(crate) store_corrupt: u64,
    /// The store has no room.
    pub(crate) store_full: u64,
}

impl Rates {
    /// Whether nothing goes wrong that could lose a page.
    pub(crate) fn is_harmless(&self) -> bool {
        self.fill_refused + self.move_lost + self.store_error + self.store_corrupt == 0
    }
}

/// A machine, and what is done with it.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    pub(crate) pages: u32,
    pub(crate) memory_pages: u64,
    pub(crate) swap_pages: u64,
    pub(crate) policy: Policy,
    pub(crate) thp: ThpConfig,
    pub(crate) threads: usize,
    pub(crate) tells_writes: bool,
    pub(crate) standby_percent: u64,
    pub(crate) overhead_beside: bool,
    pub(crate) steps: u32,
    /// Share of accesses that write, one in this many.
    pub(crate) write_in: u64,
    /// Threads stay in a part of the memory for a while.
    pub(crate) locality: u32,
    pub(crate) advice_in: u64,
    pub(crate) limits_in: u64,
    pub(crate) rates: Rates,
    /// Where nothing goes wrong that could lose a page, none may be lost.
    pub(crate) may_lose: bool,
    /// Pages that were read keep their slots while copies pay.
    pub(crate) keeps_copies: bool,
}

impl Profile {
    /// Profile of a seed.
    pub(crate) fn of(seed: u64) -> Profile {
        let mut r = Random::new(seed ^ 0x5EED);
        let memory_pages = 160 + r.below(200);
        let pages = (memory_pages * (120 + r.below(250)) / 100) as u32;
        let thp = if r.one_in(3) { large_folios(&mut r) } else { ThpConfig::default() };
        let is_rough = !r.one_in(4);
        let rates = if is_rough { rough(&mut r) } else { gentle(&mut r) };
        Profile {
            pages,
            memory_pages,
            swap_pages: if r.one_in(6) { u64::from(pages) / 2 } else { u64::from(pages) },
            policy: r.of(&[Policy::Mglru, Policy::Mglru, Policy::Lru]),
            thp,
            threads: 1 + r.below(8) as usize,
            tells_writes: !r.one_in(4),
            standby_percent: if r.one_in(3) { r.below(20) } else { 0 },
            overhead_beside: r.one_in(3),
            steps: 400 + r.below(1200) as u32,
            write_in: 1 + r.below(3),
            locality: 8 + r.below(200) as u32,
            advice_in: if r.one_in(2) { 40 + r.below(200) } else { 0 },
            limits_in: if r.one_in(2) { 100 + r.below(300) } else { 0 },
            rates,
            may_lose: is_rough,
            keeps_copies: !r.one_in(3),
        }
    }
}

/// Folios of 16 and 64 KiB.
fn large_folios(r: &mut Random) -> ThpConfig {
    let mut thp = ThpConfig { defrag: r.of(&[ThpDefrag::Defer, ThpDefrag::Always]), ..ThpConfig::default() };
    thp.sizes[2] = ThpSize::Always;
    thp.sizes[4] = ThpSize::Always;
    thp.swap_in = r.one_in(2);
    thp
}

/// Rates of faults that cost time and nothing else.
fn gentle(r: &mut Random) -> Rates {
    let mut often = |n: u64| if r.one_in(2) { n + r.below(n * 4) } else { 0 };
    Rates {
        fill_short: often(2),
        move_again: often(2),
        move_busy: often(3),
        move_short: often(2),
        move_misreported: often(4),
        move_error: often(4),
        stray_wake: often(5),
        written_unknown: often(3),
        ..Rates::default()
    }
}

/// Rates of every kind of event.
fn rough(r: &mut Random) -> Rates {
    let gentle = gentle(r);
    let mut seldom = |n: u64| if r.one_in(2) { n + r.below(n * 4) } else { 0 };
    Rates {
        fill_refused: seldom(100),
        move_lost: seldom(20),
        place_taken: seldom(20),
        store_error: seldom(4),
        store_corrupt: seldom(8),
        store_full: seldom(4),
        ..gentle
    }
}

impl Profile {
    /// The engine of such a machine, and the group of its memory.
    pub(super) fn engine(&self) -> (Engine, MemcgId) {
        let mut config = Config::new(self.policy);
        config.node = Some(NodeConfig { low_zones: [0, 0], ..NodeConfig::new(self.memory_pages) });
        (config.total_pages, config.swap.pages) = (self.memory_pages, self.swap_pages + 64);
        (config.swap.synchronous, config.swap.reclaim_cache) = (true, true);
        (config.readahead.page_cluster, config.readahead.swap_map_ahead) = (4, true);
        config.thp = self.thp.clone();
        let mut engine = Engine::new(config).expect("the configuration is possible");
        let swap_max = if self.swap_pages >= u64::from(self.pages) { u64::MAX } else { self.swap_pages };
        let group = engine.add_memcg(MemcgId::ROOT, "/run", u64::MAX, swap_max).expect("there is room for a group");
        let pages = 0..u64::from(self.pages);
        engine.add_mapping(MappingKind::Anon, group, pages).expect("there is room for a mapping");
        (engine, group)
    }
}
