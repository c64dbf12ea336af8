//! Random operations on devices against a model of the holders of slots; every invariant after
//! every one of them.

use std::collections::BTreeMap;

use refault_testing::Rng;

use super::*;
use crate::config::Config;
use crate::config::swap::{SwapAllocator, SwapDeviceConfig, SwapOverflow, SwapPolicy, SwapRotational};
use crate::ids::FolioId;
use crate::world::Ack;

/// A folio in the swap cache.
#[derive(Clone, Copy, Debug)]
struct Cached {
    slot: SwapSlot,
    order: u8,
    /// Locked, or under writeback.
    busy: bool,
}

/// State that the test expects: folios in the swap cache, references of page tables, charges,
/// discards under way.
#[derive(Default)]
struct Model {
    cached: BTreeMap<FolioId, Cached>,
    refs: BTreeMap<SwapSlot, u32>,
    charged: BTreeMap<SwapSlot, MemcgId>,
    discards: Vec<SwapSlot>,
    /// Whether discards take time.
    slow_discards: bool,
    next_folio: u32,
}

impl SwapHost for Model {
    fn droppable(&self, f: FolioId) -> Option<(SwapSlot, u8)> {
        let c = self.cached[&f];
        (!c.busy).then_some((c.slot, c.order))
    }

    fn dropped(&mut self, f: FolioId) {
        let c = self.cached.remove(&f).expect("a folio in the swap cache");
        assert!((0..1 << c.order).all(|i| !self.refs.contains_key(&c.slot.nth(i))), "{f:?} was in use");
    }

    fn discard(&mut self, first: SwapSlot, pages: u32) -> Ack {
        let range = first..first.nth(pages);
        assert!(self.charged.range(range).all(|(s, _)| !self.refs.contains_key(s)), "{first:?} is in use");
        if self.slow_discards {
            self.discards.push(first);
            return Ack::Pending;
        }
        Ack::Done
    }
}

struct Machine {
    swap: Swap,
    model: Model,
    rng: Rng,
    ops: u64,
}

impl Machine {
    /// As the engine does it: uncharge, then the background work.
    fn settle(&mut self) {
        loop {
            while let Some(freed) = self.swap.pop_freed() {
                for slot in (0..freed.nr).map(|i| freed.slot.nth(i)) {
                    assert_eq!(self.model.charged.remove(&slot), Some(freed.memcg), "{slot:?} freed");
                }
            }
            if !self.swap.has_background_work() {
                break;
            }
            self.swap.background_work(&mut self.model);
        }
    }

    fn check(&mut self) {
        self.settle();
        self.ops += 1;
        self.swap.validate().unwrap_or_else(|e| panic!("operation {}: {e}", self.ops));
        let held = self.model.charged.len() as u64;
        assert_eq!(self.swap.used_pages() - self.swap.taken_ahead_pages(), held, "operation {}", self.ops);
    }

    /// Every slot in detail: I8.7.
    fn check_slots(&self) {
        let mut held: BTreeMap<SwapSlot, (u32, Option<FolioId>)> = BTreeMap::new();
        self.model.refs.iter().for_each(|(&s, &n)| held.entry(s).or_default().0 = n);
        for (&f, c) in &self.model.cached {
            (0..1 << c.order).for_each(|i| held.entry(c.slot.nth(i)).or_default().1 = Some(f));
        }
        for (&slot, &(count, folio)) in &held {
            assert_eq!((self.swap.count(slot), self.swap.cached(slot)), (count, folio), "{slot:?}");
            assert!(self.model.charged.contains_key(&slot), "{slot:?} is used, and nobody is charged");
        }
    }

    fn alloc(&mut self, order: u8, cpu: usize) -> bool {
        let memcg = MemcgId(self.rng.below(4) as u16);
        let Some(slot) = self.swap.alloc(order, memcg, cpu, &mut self.model) else {
            let room = order == 0 && self.swap.has_zero_byte();
            assert!(!room, "operation {}: a page found no slot although there is one (I8.6)", self.ops);
            return false;
        };
        self.settle();
        let cluster = self.swap.common.policy.cluster_pages;
        assert_eq!(slot.offset() % (1 << order), 0, "I8.5");
        assert_eq!(slot.offset() / cluster, (slot.offset() + (1 << order) - 1) / cluster, "I8.5");
        for i in 0..1 << order {
            assert!(self.model.charged.insert(slot.nth(i), memcg).is_none(), "{slot:?} + {i} was given away twice");
        }
        let f = FolioId(self.model.next_folio);
        self.model.next_folio += 1;
        self.swap.add_to_cache(slot, order, f);
        let busy = self.rng.one_in(3);
        self.model.cached.insert(f, Cached { slot, order, busy });
        // Most are unmapped and written, as reclaim does.
        if !self.rng.one_in(8) {
            for i in 0..1 << order {
                self.reference(slot.nth(i));
            }
        }
        true
    }

    fn reference(&mut self, slot: SwapSlot) {
        self.swap.get(slot);
        *self.model.refs.entry(slot).or_default() += 1;
    }

    fn pick_cached(&mut self) -> Option<(FolioId, Cached)> {
        let n = self.model.cached.len() as u64;
        let at = self.rng.below(n.max(1) as usize) as u32;
        let from = self.model.cached.keys().next().map_or(0, |f| f.0) + at;
        self.model.cached.range(FolioId(from)..).next().or(self.model.cached.iter().next()).map(|(&f, &c)| (f, c))
    }

    fn pick_ref(&mut self) -> Option<SwapSlot> {
        let (&first, _) = self.model.refs.first_key_value()?;
        let (&last, _) = self.model.refs.last_key_value()?;
        let at = SwapSlot(first.0 + self.rng.below((last.0 - first.0) as usize + 1) as u32);
        self.model.refs.range(at..).next().map(|(&s, _)| s)
    }

    /// The write ended, or the folio is unlocked; or it goes from the cache.
    fn touch_cached(&mut self) {
        let Some((f, c)) = self.pick_cached() else { return };
        if c.busy {
            self.model.cached.get_mut(&f).expect("it is there").busy = false;
        } else {
            self.model.cached.remove(&f);
            self.swap.drop_cache(c.slot, c.order, (!self.rng.one_in(4)).then_some(7));
        }
    }

    fn put(&mut self, slot: SwapSlot) {
        self.swap.put(slot);
        let n = self.model.refs.get_mut(&slot).expect("a reference");
        *n -= 1;
        if *n == 0 {
            self.model.refs.remove(&slot);
        }
    }

    /// A page table lets go of a run of slots.
    fn put_run(&mut self, nr: u32) {
        let Some(slot) = self.pick_ref() else { return };
        let run = (0..nr).take_while(|&i| self.model.refs.contains_key(&slot.nth(i))).count() as u32;
        self.swap.put_range(slot, run);
        for i in 0..run {
            let n = self.model.refs.get_mut(&slot.nth(i)).expect("a reference");
            *n -= 1;
            if *n == 0 {
                self.model.refs.remove(&slot.nth(i));
            }
        }
    }

    /// A slot that is only in swap is read: back in the cache.
    fn swap_in(&mut self) {
        let Some(slot) = self.pick_ref() else { return };
        if self.swap.cached(slot).is_none() {
            let f = FolioId(self.model.next_folio);
            self.model.next_folio += 1;
            self.swap.add_to_cache(slot, 0, f);
            self.model.cached.insert(f, Cached { slot, order: 0, busy: false });
            self.check();
            if !self.rng.one_in(3) {
                self.put(slot);
            }
        }
    }

    fn step(&mut self, cpus: usize, large: bool) {
        match self.rng.below(100) {
            0..30 => {
                let order = if large && self.rng.one_in(2) { self.rng.below(10) as u8 } else { 0 };
                let cpu = self.rng.below(cpus);
                self.alloc(order, cpu);
            }
            30..55 => self.touch_cached(),
            55..75 => {
                if let Some(slot) = self.pick_ref() {
                    self.put(slot);
                }
            }
            75..85 => {
                let nr = 1 << self.rng.below(10);
                self.put_run(nr);
            }
            85..95 => self.swap_in(),
            95..97 => {
                if let Some(slot) = self.pick_ref() {
                    self.reference(slot);
                }
            }
            _ => {
                if !self.model.discards.is_empty() {
                    let i = self.rng.below(self.model.discards.len());
                    let first = self.model.discards.swap_remove(i);
                    assert!(self.swap.discard_done(first));
                }
            }
        }
        self.check();
    }
}

/// A machine with devices by chance.
fn machine(seed: u64) -> (Machine, usize) {
    let mut rng = Rng(seed);
    let cpus = 1 + rng.below(4);
    let policy = SwapPolicy {
        allocator: SwapAllocator::ALL[rng.below(4)],
        overflow: if rng.one_in(3) { SwapOverflow::TryNext } else { SwapOverflow::None },
        rotational: if rng.one_in(2) { SwapRotational::Cursor } else { SwapRotational::Clusters },
        cluster_pages: if rng.one_in(4) { 256 } else { 512 },
        slot_cache: rng.one_in(2),
        split: crate::config::swap::SwapSplit::Ascending,
        zeromap: true,
    };
    let mut swap_devices = Vec::new();
    for _ in 0..1 + rng.below(3) {
        let most = if rng.one_in(8) { 200 } else { 12 };
        let clusters = 1 + rng.below(most) as u64;
        let pages = clusters * u64::from(policy.cluster_pages) - if rng.one_in(2) { rng.below(200) as u64 } else { 0 };
        let bad_pages = if rng.one_in(3) {
            (0..rng.below(40)).map(|_| 1 + rng.below(pages as usize - 1) as u64).collect()
        } else {
            vec![]
        };
        swap_devices.push(SwapDeviceConfig {
            priority: if rng.one_in(2) { Some(rng.below(2) as i16) } else { None },
            rotational: rng.one_in(5),
            discard: rng.one_in(2),
            block_device: !rng.one_in(6),
            bad_pages,
            ..SwapDeviceConfig::new(pages)
        });
    }
    let cfg = Config {
        cpus,
        swap: SwapConfig { devices: swap_devices, policy, ..SwapConfig::default() },
        ..Config::new(crate::Policy::Lru)
    };
    cfg.check().expect("a possible configuration");
    let model = Model { slow_discards: rng.one_in(2), ..Model::default() };
    (Machine { swap: Swap::new(&cfg.swap, cfg.cpus), model, rng, ops: 0 }, cpus)
}

/// `PROPTEST_CASES` sets another number of operations, as it sets that of cases in other tests.
#[test]
fn random_operations_keep_every_invariant() {
    let wanted = 50 * u64::from(proptest::prelude::ProptestConfig::default().cases);
    let (mut ops, mut seed) = (0, 0);
    while ops < wanted {
        let (mut m, cpus) = machine(seed);
        m.check();
        // Devices from nearly empty to full: some runs never free what they take at first.
        let fill = m.swap.free_pages() * [0, 0, 50, 95, 100][m.rng.below(5)] / 100;
        while m.swap.used_pages() < fill {
            let order = if m.rng.one_in(40) { 4 } else { 0 };
            m.alloc(order, 0);
        }
        let large = !m.rng.one_in(4);
        for _ in 0..600 {
            m.step(cpus, large);
        }
        m.check_slots();
        (ops, seed) = (ops + m.ops, seed + 1);
    }
    println!("{ops} operations on {seed} machines");
}
