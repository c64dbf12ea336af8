//! Multi-gen LRU in the form of cache_ext: generations, tiers and the controller of pages that are
//! read by descriptor. Knowledge of page tables, and the balance with anonymous memory, stay in the
//! kernel.
//!
//! Mechanism: `docs/mechanisms.md#multi-gen-eviction`,
//! `docs/mechanisms.md#the-refault-controller`.

use crate::cache_ext::list::{Eviction, ListId};
use crate::cache_ext::ops::{Cache, CacheExtOps, FolioMap};
use crate::ids::FolioId;

const MIN_NR_GENS: u64 = 2;
const MAX_NR_GENS: u64 = 4;
const MAX_NR_TIERS: usize = 4;
/// Refaults of a tier below which its folios may always be evicted.
const MIN_LRU_BATCH: u64 = 64;
/// The priority at which a run of reclaim begins.
const DEF_PRIORITY: u32 = 12;
/// Largest count of accesses after the first.
const MOST_REFS: u8 = 4;
/// Accesses after the first from which on a refaulted folio is protected at once.
const RESTORE_REFS: u8 = 3;

/// Record of an evicted folio.
#[derive(Clone, Copy, Debug, Default)]
struct Shadow {
    /// Seq of the oldest generation at the eviction, plus one; 0: there is no shadow.
    seq: u64,
    refs: u8,
}

/// Counts of a tier for the controller, in folios.
#[derive(Clone, Copy, Debug, Default)]
struct Tier {
    refaulted: u64,
    /// Folios evicted or protected.
    total: u64,
}

/// Oldest at the heads.
#[derive(Clone, Debug)]
pub(crate) struct Mglru {
    generations: [ListId; MAX_NR_GENS as usize],
    min_seq: u64,
    max_seq: u64,
    /// Accesses of each folio, with the one that brought it in.
    accesses: FolioMap<u8>,
    shadows: FolioMap<Shadow>,
    /// Counts by tier, since the oldest generation became the oldest.
    tiers: [Tier; MAX_NR_TIERS],
    /// Counts by tier of the generations before, halved with each.
    averages: [Tier; MAX_NR_TIERS],
}

impl Default for Mglru {
    fn default() -> Mglru {
        Mglru {
            generations: [ListId::default(); MAX_NR_GENS as usize],
            min_seq: 0,
            max_seq: MIN_NR_GENS + 1,
            accesses: FolioMap::default(),
            shadows: FolioMap::default(),
            tiers: [Tier::default(); MAX_NR_TIERS],
            averages: [Tier::default(); MAX_NR_TIERS],
        }
    }
}

/// tier = log2ceil(refs + 1).
fn tier_from_refs(refs: u8) -> usize {
    (u32::from(refs) + 1).next_power_of_two().trailing_zeros() as usize
}

/// Whether a tier refaults at most twice as often as tier 0, so that its pages may go, too.
fn may_evict(first: Tier, tier: Tier) -> bool {
    tier.refaulted < MIN_LRU_BATCH
        || u128::from(tier.refaulted) * u128::from(first.total + MIN_LRU_BATCH)
            <= u128::from(first.refaulted + 1) * u128::from(tier.total * 2)
}

impl CacheExtOps for Mglru {
    fn init(&mut self, cache: &mut Cache<'_>) {
        self.generations = std::array::from_fn(|_| cache.lists.new_list());
    }

    fn folio_added(&mut self, cache: &mut Cache<'_>, folio: FolioId) {
        let refs = self.refault(folio);
        self.accesses.set(folio, if refs >= RESTORE_REFS { MOST_REFS + 1 } else { 1 });
        let is_short = self.min_seq + MIN_NR_GENS >= self.max_seq;
        let birth = self.generation(if is_short { self.min_seq } else { self.min_seq + 1 });
        cache.lists.move_tail(birth, folio);
    }

    fn folio_accessed(&mut self, _: &mut Cache<'_>, folio: FolioId) {
        self.accesses.set(folio, (self.accesses.get(folio) + 1).min(MOST_REFS + 1));
    }

    fn folio_removed(&mut self, cache: &mut Cache<'_>, folio: FolioId, evicted: bool) {
        let refs = self.refs(folio);
        self.shadows.set(folio, Shadow { seq: if evicted { self.min_seq + 1 } else { 0 }, refs });
        self.tiers[tier_from_refs(refs)].total += u64::from(evicted);
        cache.lists.del(folio);
    }

    fn evict_folios(&mut self, cache: &mut Cache<'_>, eviction: &mut Eviction) {
        // Each round gives up a generation, or is the last one.
        for round in 0..2 * MAX_NR_GENS {
            if self.is_aging_wanted(cache, round == 0) {
                self.age(cache);
            }
            self.sort(cache, eviction);
            self.give_up_empty(cache);
            if eviction.is_full() {
                return;
            }
        }
    }
}

impl Mglru {
    fn generation(&self, seq: u64) -> ListId {
        self.generations[(seq % MAX_NR_GENS) as usize]
    }

    /// Accesses of a folio after the first.
    fn refs(&self, folio: FolioId) -> u8 {
        self.accesses.get(folio).saturating_sub(1)
    }

    /// Counts a refault for the tier that the folio was evicted from, if the oldest generation is
    /// still the same. Returns the refs of the shadow; 0: none, or too old.
    fn refault(&mut self, folio: FolioId) -> u8 {
        let Shadow { seq, refs } = self.shadows.get(folio);
        if seq != self.min_seq + 1 {
            return 0;
        }
        self.tiers[tier_from_refs(refs)].refaulted += 1;
        refs
    }

    fn position(&self, tier: usize) -> Tier {
        let (now, before) = (self.tiers[tier], self.averages[tier]);
        Tier { refaulted: before.refaulted + now.refaulted, total: before.total + now.total }
    }

    /// Highest tier that may be evicted.
    fn tier_limit(&self) -> usize {
        let is_worse = |tier: &usize| !may_evict(self.position(0), self.position(*tier));
        (1..MAX_NR_TIERS).find(is_worse).unwrap_or(MAX_NR_TIERS) - 1
    }

    /// Goes through the oldest generation from its head: a protected folio goes to the next
    /// generation, any other folio is proposed.
    fn sort(&mut self, cache: &mut Cache<'_>, eviction: &mut Eviction) {
        if self.min_seq + MIN_NR_GENS > self.max_seq {
            return;
        }
        let [oldest, next, youngest] = [self.min_seq, self.min_seq + 1, self.max_seq].map(|seq| self.generation(seq));
        let tier_limit = self.tier_limit();
        for _ in 0..cache.lists.len(oldest) {
            let Some(folio) = cache.lists.head(oldest).filter(|_| !eviction.is_full()) else { return };
            let refs = self.refs(folio);
            if tier_from_refs(refs) > tier_limit || refs == MOST_REFS {
                self.tiers[tier_from_refs(refs)].total += 1;
                self.accesses.set(folio, 0);
                cache.lists.move_head(next, folio);
            } else {
                eviction.propose(folio);
                // A folio that cannot be evicted must not stay in the oldest generation.
                cache.lists.move_tail(youngest, folio);
            }
        }
    }

    fn give_up_empty(&mut self, cache: &Cache<'_>) {
        let oldest = self.min_seq;
        while self.min_seq + MIN_NR_GENS <= self.max_seq && cache.lists.is_empty(self.generation(self.min_seq)) {
            self.min_seq += 1;
        }
        if self.min_seq > oldest {
            self.carry_over();
        }
    }

    /// Whether there are too few generations, or the sizes of the youngest and the oldest call for
    /// a new one. The first round, at the first priority, looks at sizes only if that priority
    /// leaves no folio to scan.
    fn is_aging_wanted(&self, cache: &Cache<'_>, first: bool) -> bool {
        if self.min_seq + MIN_NR_GENS > self.max_seq {
            return true;
        }
        let len = |seq| cache.lists.len(self.generation(seq));
        let total: u64 = (self.min_seq..=self.max_seq).map(len).sum();
        let (young, old) = (len(self.max_seq), len(self.max_seq - MIN_NR_GENS));
        let spread = young * MIN_NR_GENS > total || old * (MIN_NR_GENS + 2) < total;
        (!first || total >> DEF_PRIORITY == 0) && self.min_seq + MIN_NR_GENS == self.max_seq && spread
    }

    /// Opens a new youngest generation; if there are four, the oldest moves into the next one
    /// before.
    fn age(&mut self, cache: &mut Cache<'_>) {
        if self.max_seq - self.min_seq + 1 == MAX_NR_GENS {
            let [oldest, next] = [self.min_seq, self.min_seq + 1].map(|seq| self.generation(seq));
            while let Some(folio) = cache.lists.head(oldest) {
                self.accesses.set(folio, 0);
                cache.lists.move_head(next, folio);
            }
            self.min_seq += 1;
            self.carry_over();
        }
        self.max_seq += 1;
    }

    /// Halves the counts of all tiers into the averages, and counts anew.
    fn carry_over(&mut self) {
        for tier in 0..MAX_NR_TIERS {
            let Tier { refaulted, total } = self.position(tier);
            self.averages[tier] = Tier { refaulted: refaulted / 2, total: total.max(refaulted) / 2 };
        }
        self.tiers = [Tier::default(); MAX_NR_TIERS];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache_ext::policies::plain::Plain;

    #[test]
    fn tiers_by_accesses() {
        let tiers: Vec<_> = (0..=MOST_REFS).map(tier_from_refs).collect();
        assert_eq!(tiers, [0, 1, 2, 2, 3]);
    }

    #[test]
    fn a_scan_does_not_take_what_is_used_often() {
        let mut cache = Plain::new(Box::new(Mglru::default()), 100);
        let often: Vec<u32> = (0..50).collect();
        (0..6).for_each(|_| _ = cache.misses(&often));
        assert_eq!(cache.misses(&(1000..1100).collect::<Vec<_>>()), 100);
        assert_eq!(cache.misses(&often), 0, "they are protected");
    }
}
