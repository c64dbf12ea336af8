//! The size of a pool against a model of memory: pages in place in the order of their use, behind
//! them a pool, behind that a device, and costs that are made up.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;
use refault_pager::control::{PoolBalance, PoolExtent, PoolTier};

/// Costs of a page, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Costs {
    pool: u64,
    device: u64,
    fault: u64,
}

/// A memory of which a pool takes a part. Its lists are by when their pages came.
struct Model {
    memory: u64,
    /// Bytes that the pool makes of a page.
    packed: u64,
    costs: Costs,
    balance: PoolBalance,
    clock: u64,
    evictions: u64,
    place: BTreeMap<u64, u32>,
    pool: BTreeMap<u64, u32>,
    /// Where a page is, since when, and at which eviction it left.
    pages: HashMap<u32, (At, u64, u64)>,
    spent: u64,
    seed: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    Place,
    Pool,
    Device,
}

impl Model {
    fn new(memory: u64, max: u64, packed: u64, costs: Costs) -> Model {
        let balance = PoolBalance::new(max);
        let (place, pool, pages) = (BTreeMap::new(), BTreeMap::new(), HashMap::new());
        Model { memory, packed, costs, balance, clock: 0, evictions: 0, place, pool, pages, spent: 0, seed: 7 }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % below
    }

    fn pool_pages(&self) -> u64 {
        (self.pool.len() as u64 * self.packed).div_ceil(4096)
    }

    fn put(&mut self, page: u32, at: At) {
        self.clock += 1;
        let known = self.pages.entry(page).or_insert((at, 0, 0));
        let since = known.1;
        match known.0 {
            At::Place => _ = self.place.remove(&since),
            At::Pool => _ = self.pool.remove(&since),
            At::Device => {}
        }
        (known.0, known.1) = (at, self.clock);
        match at {
            At::Place => _ = self.place.insert(self.clock, page),
            At::Pool => _ = self.pool.insert(self.clock, page),
            At::Device => {}
        }
    }

    fn evict(&mut self) {
        let Some((_, page)) = self.place.pop_first() else { return };
        self.evictions += 1;
        let trial = self.balance.tries_other();
        let to_pool = !self.balance.is_off() && !trial;
        if to_pool || self.balance.is_off() && trial {
            self.balance.packed(Some(self.packed));
            self.balance.stored(PoolTier::Pool, 1, self.costs.pool);
            self.spent += self.costs.pool;
        }
        let at = if to_pool { At::Pool } else { At::Device };
        if at == At::Device {
            self.balance.stored(PoolTier::Device, 1, self.costs.device);
            self.spent += self.costs.device;
        }
        self.put(page, at);
        self.pages.get_mut(&page).unwrap().2 = self.evictions;
        while self.pool_pages() > self.balance.target_pages() {
            let (_, page) = self.pool.pop_first().unwrap();
            self.balance.stored(PoolTier::Device, 1, self.costs.device);
            self.spent += self.costs.device + self.costs.pool;
            self.put(page, At::Device);
        }
    }

    fn touch(&mut self, page: u32) {
        let (at, _, left) = *self.pages.get(&page).unwrap_or(&(At::Place, 0, 0));
        if at != At::Place {
            let tier = if at == At::Pool { PoolTier::Pool } else { PoolTier::Device };
            let ns = if at == At::Pool { self.costs.pool } else { self.costs.device };
            self.balance.loaded(tier, self.evictions - left, ns);
            self.balance.fault_served(ns + self.costs.fault);
            self.spent += ns + self.costs.fault;
        }
        self.put(page, At::Place);
        while self.place.len() as u64 + self.pool_pages() > self.memory {
            self.evict();
        }
        let before = self.balance.target_pages();
        let reach = self.pool.first_key_value().map_or(0, |(_, page)| self.evictions - self.pages[page].2);
        let moved = self.balance.decide(PoolExtent { pages: self.pool_pages(), reach });
        let change = self.balance.target_pages().abs_diff(before);
        assert_eq!(moved, change > 0);
        self.balance.validate().unwrap();
    }

    /// Touches pages, the hotter the lower their number; what that cost.
    fn run(&mut self, working_set: u64, touches: u64) -> u64 {
        let before = self.spent;
        for _ in 0..touches {
            // The product of two numbers leans to small ones.
            let (a, b) = (self.random(working_set), self.random(working_set));
            self.touch((a * b / working_set) as u32);
        }
        self.spent - before
    }
}

const MEMORY: u64 = 2048;
const MAX: u64 = 1024;
const NEAR: Costs = Costs { pool: 4_000, device: 4_000, fault: 3_000 };
const SLOW: Costs = Costs { pool: 4_000, device: 400_000, fault: 3_000 };

#[test]
fn where_the_device_costs_no_more_than_the_pool_there_is_none() {
    let mut m = Model::new(MEMORY, MAX, 1500, NEAR);
    m.run(4096, 100_000);
    assert_eq!(m.balance.target_pages(), 0);
    assert!(m.balance.is_off());
}

#[test]
fn where_the_device_is_slow_the_pool_has_all_that_it_may() {
    let mut m = Model::new(MEMORY, MAX, 1500, SLOW);
    m.run(6144, 100_000);
    assert_eq!((m.balance.target_pages(), m.balance.stats().shrunk), (MAX, 0));
}

#[test]
fn it_comes_and_goes_with_the_speed_of_the_device() {
    let mut m = Model::new(MEMORY, MAX, 1500, SLOW);
    for round in 0..3 {
        m.costs = NEAR;
        m.run(6144, 100_000);
        assert_eq!(m.balance.target_pages(), 0, "round {round}");
        m.costs = SLOW;
        m.run(6144, 100_000);
        assert_eq!(m.balance.target_pages(), MAX, "round {round}");
    }
}

#[test]
fn a_pool_that_nothing_comes_back_from_is_given_up() {
    // All of it in order, and far more than the pool could reach back over.
    let mut m = Model::new(MEMORY, MAX, 1500, Costs { device: 40_000, ..NEAR });
    (0..200_000).for_each(|i| m.touch(i % 12_000));
    assert_eq!(m.balance.target_pages(), 0);
}

#[test]
fn a_loop_that_only_the_largest_pool_holds_gets_it() {
    // In place and in the smallest pool there is no hit at all, so no step by itself is better than
    // the one before.
    let mut m = Model::new(MEMORY, MAX, 1024, NEAR);
    m.run(6144, 200_000);
    assert!(m.balance.is_off());
    m.costs = SLOW;
    (0..200_000).for_each(|i| m.touch(i % 4800));
    assert_eq!(m.balance.target_pages(), MAX);
}

#[test]
fn one_slow_load_in_a_hundred_is_no_slow_device() {
    let mut m = Model::new(MEMORY, MAX, 1500, NEAR);
    for i in 0..200_000 {
        // A thread that loads loses the processor for a while, from either tier alike.
        let stalled = Costs { pool: 300_000, device: 300_000, fault: 3_000 };
        m.costs = if i % 100 == 0 { stalled } else { NEAR };
        m.run(4096, 1);
    }
    assert_eq!(m.balance.target_pages(), 0);
}

#[test]
fn a_device_that_takes_nothing_gives_the_pool_all_it_may_have() {
    let mut m = Model::new(MEMORY, MAX, 1500, NEAR);
    m.run(4096, 100_000);
    m.balance.device_is_full();
    assert_eq!(m.balance.target_pages(), MAX);
    m.balance.validate().unwrap();
}

#[test]
fn another_limit_keeps_the_share() {
    let mut b = PoolBalance::new(1000);
    assert_eq!(b.target_pages(), 250);
    b.device_is_full();
    b.set_max_pages(500);
    assert_eq!(b.target_pages(), 500);
    b.set_max_pages(1000);
    assert_eq!(b.target_pages(), 1000);
    b.validate().unwrap();
}

/// It costs no more than a pool of a fixed size, none or all, but for the time that it takes to get
/// there.
#[test]
fn it_is_as_good_as_the_better_of_none_and_all() {
    for (costs, packed, set) in [(NEAR, 1500, 4096), (SLOW, 1500, 6144), (NEAR, 3000, 6144), (SLOW, 3000, 4096)] {
        let settle = |moves: bool, max: u64| {
            let mut m = Model::new(MEMORY, max, packed, costs);
            m.run(set, 150_000);
            let moved = m.balance.stats().shrunk + m.balance.stats().grown;
            assert!(moves || moved == 0 || max == 0, "the size of a pool that is held fixed");
            m.run(set, 50_000)
        };
        let (adapted, none) = (settle(true, MAX), settle(false, 0));
        let all = {
            let mut m = Model::new(MEMORY, MAX, packed, costs);
            for _ in 0..150_000 {
                m.run(set, 1);
                m.balance.device_is_full();
            }
            let before = m.spent;
            for _ in 0..50_000 {
                m.run(set, 1);
                m.balance.device_is_full();
            }
            m.spent - before
        };
        let best = none.min(all);
        assert!(adapted <= best + best / 10, "{costs:?}, {packed} bytes: {adapted} ns, none {none}, all {all}");
    }
}

#[derive(Clone, Debug)]
enum Call {
    Loaded(bool, u64, u64),
    Stored(bool, u64, u64),
    Packed(Option<u64>),
    Fault(u64),
    Tries,
    Max(u64),
    Full,
    Decide(u64, u64),
}

fn call() -> impl Strategy<Value = Call> {
    let any_ns = prop_oneof![0..100_000u64, Just(u64::MAX), any::<u64>()];
    prop_oneof![
        12 => (any::<bool>(), 0..10_000u64, any_ns.clone()).prop_map(|(p, d, ns)| Call::Loaded(p, d, ns)),
        4 => (any::<bool>(), 0..100u64, any_ns.clone()).prop_map(|(p, n, ns)| Call::Stored(p, n, ns)),
        4 => prop::option::of(0..4096u64).prop_map(Call::Packed),
        4 => any_ns.prop_map(Call::Fault),
        1 => Just(Call::Tries),
        1 => (0..20_000u64).prop_map(Call::Max),
        1 => Just(Call::Full),
        4 => (0..30_000u64, 0..1_000_000u64).prop_map(|(p, r)| Call::Decide(p, r)),
    ]
}

proptest! {
    /// For any input a decision is at most a step, and the target is never beyond the limit.
    #[test]
    fn steps_are_bounded(calls in prop::collection::vec((call(), 1..80usize), 1..300)) {
        let (mut b, mut max) = (PoolBalance::new(4096), 4096);
        for (call, times) in calls {
            for _ in 0..times {
                let (before, tier) = (b.target_pages(), |pool| if pool { PoolTier::Pool } else { PoolTier::Device });
                match call.clone() {
                    Call::Loaded(p, d, ns) => b.loaded(tier(p), d, ns),
                    Call::Stored(p, n, ns) => b.stored(tier(p), n, ns),
                    Call::Packed(bytes) => b.packed(bytes),
                    Call::Fault(ns) => b.fault_served(ns),
                    Call::Tries => _ = b.tries_other(),
                    Call::Max(pages) => (max, _) = (pages, b.set_max_pages(pages)),
                    Call::Full => b.device_is_full(),
                    Call::Decide(pages, reach) => {
                        b.decide(PoolExtent { pages, reach });
                        prop_assert!(b.target_pages().abs_diff(before) <= max.div_ceil(8));
                        prop_assert!(!b.is_due());
                    }
                }
                prop_assert!(b.target_pages() <= max);
                b.validate().map_err(TestCaseError::fail)?;
            }
        }
    }
}
