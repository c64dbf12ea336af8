//! The state of multi-gen LRU in one lruvec: generations, tiers, the controller, Bloom filters.
//!
//! Aging, eviction and refaults change it from `aging`, `reclaim` and `workingset`; the formulas
//! are here.

use crate::config::lru::Generations;
use crate::folio::flags::FolioFlags;
use crate::folio::list::List;
use crate::folio::table::FolioTable;
use crate::ids::MAX_NR_ZONES;
use crate::lru::lru_list::{ANON, FILE};

/// Generations that stay when reclaim must stop and aging start.
pub(crate) const MIN_NR_GENS: u64 = 2;
/// Generations at most.
pub(crate) const MAX_NR_GENS: u64 = 4;
/// Tiers.
pub(crate) const MAX_NR_TIERS: usize = 4;
/// Pages that end an eviction batch, and refaults below which a tier may always be evicted.
pub(crate) const MIN_LRU_BATCH: u64 = 64;
/// Folios that one eviction batch sorts at most.
pub(crate) const MAX_LRU_BATCH: u64 = 4096;

/// The list index of a generation.
#[inline(always)]
pub(crate) fn gen_index(seq: u64) -> usize {
    (seq % MAX_NR_GENS) as usize
}

/// Counts of a (type, tier) for the controller, in pages, and its gain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CtrlPos {
    pub(crate) refaulted: u64,
    pub(crate) total: u64,
    pub(crate) gain: u64,
}

impl CtrlPos {
    /// Scales the counts to whole batches, where batches are divided.
    fn times(self, divisor: u64) -> CtrlPos {
        CtrlPos { refaulted: self.refaulted * divisor, total: self.total * divisor, ..self }
    }
}

/// Whether `pv` is no worse than the set point `sp`: its refault rate, by gain, is not above it.
fn may_evict(sp: CtrlPos, pv: CtrlPos, divisor: u64) -> bool {
    let (sp, pv) = (sp.times(divisor), pv.times(divisor));
    pv.refaulted < MIN_LRU_BATCH
        || u128::from(pv.refaulted) * u128::from((sp.total + MIN_LRU_BATCH) * sp.gain)
            <= u128::from(sp.refaulted + 1) * u128::from(pv.total * pv.gain)
}

const BLOOM_BITS: u32 = 15;

/// 2^15 bits, two hashes: tables worth visiting in an aging walk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bloom {
    words: Vec<u64>,
    seed: u64,
}

impl Bloom {
    /// Empties the filter, and brings it into being.
    fn reset(&mut self) {
        self.words.clear();
        self.words.resize(1 << (BLOOM_BITS - 6), 0);
    }

    /// Bits of the two halves of a multiplicative hash.
    fn keys(&self, table: u32) -> [u32; 2] {
        let h =
            (u64::from(table) + 1).wrapping_add(self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - 2 * BLOOM_BITS);
        [(h as u32) & ((1 << BLOOM_BITS) - 1), (h >> BLOOM_BITS) as u32]
    }

    /// A filter that does not exist yet lets everything through.
    pub(crate) fn test(&self, table: u32) -> bool {
        self.words.is_empty() || self.keys(table).iter().all(|k| self.words[(k >> 6) as usize] >> (k & 63) & 1 == 1)
    }

    pub(crate) fn insert(&mut self, table: u32) {
        if !self.words.is_empty() {
            self.keys(table).iter().for_each(|k| self.words[(k >> 6) as usize] |= 1 << (k & 63));
        }
    }
}

/// Generations and tiers of one lruvec.
#[derive(Clone, Debug)]
pub(crate) struct MultiGen {
    pub(crate) max_seq: u64,
    pub(crate) min_seq: [u64; 2],
    pub(crate) birth_ns: [u64; MAX_NR_GENS as usize],
    /// By generation, type and zone.
    pub(crate) lists: [[[List; MAX_NR_ZONES]; 2]; MAX_NR_GENS as usize],
    pub(crate) nr_pages: [[u64; 2]; MAX_NR_GENS as usize],
    pub(crate) avg_refaulted: [[u64; MAX_NR_TIERS]; 2],
    pub(crate) avg_total: [[u64; MAX_NR_TIERS]; 2],
    pub(crate) evicted: [[u64; MAX_NR_TIERS]; 2],
    pub(crate) refaulted: [[u64; MAX_NR_TIERS]; 2],
    pub(crate) protected: [[u64; MAX_NR_TIERS]; 2],
    /// Highest seq for which the page tables were walked.
    pub(crate) walked_seq: u64,
    filters: [Bloom; 2],
    /// Leaf entries seen, young entries, tables entered and tables kept, over all walks: without a
    /// history of generations nothing resets them.
    pub(crate) walk_stats: [u64; 4],
}

impl MultiGen {
    pub(crate) fn new(folios: &mut FolioTable, seed: u64) -> MultiGen {
        let lists = std::array::from_fn(|_| std::array::from_fn(|_| std::array::from_fn(|_| folios.new_list())));
        MultiGen::with_lists(lists, std::array::from_fn(|_| Bloom { words: Vec::new(), seed }))
    }

    fn with_lists(lists: [[[List; MAX_NR_ZONES]; 2]; MAX_NR_GENS as usize], filters: [Bloom; 2]) -> MultiGen {
        MultiGen {
            max_seq: MIN_NR_GENS + 1,
            min_seq: [0; 2],
            birth_ns: [0; MAX_NR_GENS as usize],
            lists,
            nr_pages: [[0; 2]; MAX_NR_GENS as usize],
            avg_refaulted: [[0; MAX_NR_TIERS]; 2],
            avg_total: [[0; MAX_NR_TIERS]; 2],
            evicted: [[0; MAX_NR_TIERS]; 2],
            refaulted: [[0; MAX_NR_TIERS]; 2],
            protected: [[0; MAX_NR_TIERS]; 2],
            walked_seq: MIN_NR_GENS,
            filters,
            walk_stats: [0; 4],
        }
    }

    /// As new, with its lists, which are empty.
    pub(crate) fn start_over(&mut self) {
        let filters = self.filters.clone().map(|f| Bloom { words: Vec::new(), seed: f.seed });
        *self = MultiGen::with_lists(self.lists, filters);
    }

    /// Generations of a type.
    #[inline(always)]
    pub(crate) fn nr_gens(&self, t: usize) -> u64 {
        self.max_seq - self.min_seq[t] + 1
    }

    /// Whether a generation index counts as active: the two youngest do.
    #[inline(always)]
    pub(crate) fn is_active(&self, index: usize) -> bool {
        index == gen_index(self.max_seq) || index == gen_index(self.max_seq - 1)
    }

    /// The Bloom filter of a seq.
    pub(crate) fn filter(&mut self, seq: u64) -> &mut Bloom {
        &mut self.filters[(seq & 1) as usize]
    }

    /// Starts the walk for `seq`: the filter of the next one is emptied.
    pub(crate) fn start_walk(&mut self) {
        let next = self.max_seq + 1;
        self.filter(next).reset();
    }

    fn ctrl_pos(&self, t: usize, tier: usize, gain: u64) -> CtrlPos {
        CtrlPos {
            refaulted: self.avg_refaulted[t][tier] + self.refaulted[t][tier],
            total: self.avg_total[t][tier] + self.evicted[t][tier] + self.protected[t][tier],
            gain,
        }
    }

    /// Counts a folio that is kept though eviction or aging met it in the oldest generation of its
    /// type. Since 6.14 promoted folios do not count.
    pub(crate) fn note_protected(&mut self, t: usize, st: FolioFlags, form: Generations) {
        if form == Generations::Linked || !form.has_all_accesses(st) {
            self.protected[t][form.tier(st)] += st.nr_pages();
        }
    }

    /// All tiers of a type together.
    fn ctrl_pos_of_type(&self, t: usize, gain: u64) -> CtrlPos {
        let none = CtrlPos { refaulted: 0, total: 0, gain };
        (0..MAX_NR_TIERS).map(|tier| self.ctrl_pos(t, tier, gain)).fold(none, |sum, pos| CtrlPos {
            refaulted: sum.refaulted + pos.refaulted,
            total: sum.total + pos.total,
            gain,
        })
    }

    /// The oldest generation that may be evicted: of both types, or of file alone.
    pub(crate) fn evictable_min_seq(&self, can_swap: bool) -> u64 {
        if can_swap { self.min_seq[ANON].min(self.min_seq[FILE]) } else { self.min_seq[FILE] }
    }

    /// Highest tier that may be evicted: below the first tier that refaults more than twice as
    /// often as tier 0; since 6.14, more than one and a half times as often.
    pub(crate) fn tier_limit(&self, t: usize, form: Generations, divisor: u64) -> usize {
        let [first, others] = match form {
            Generations::Linked => [1, 2],
            Generations::Independent => [2, 3],
        };
        let sp = self.ctrl_pos(t, 0, first);
        let stop = |&k: &usize| !may_evict(sp, self.ctrl_pos(t, k, others), divisor);
        (1..MAX_NR_TIERS).find(stop).unwrap_or(MAX_NR_TIERS) - 1
    }

    /// The type to scan since 6.14, by the refault rates of anon and file, all tiers together.
    pub(crate) fn type_to_scan_of_all_tiers(&self, swappiness: u32, divisor: u64) -> usize {
        let gain = [u64::from(swappiness), 200 - u64::from(swappiness)];
        let [anon, file] = [ANON, FILE].map(|t| self.ctrl_pos_of_type(t, gain[t]));
        usize::from(may_evict(anon, file, divisor))
    }

    /// The type to scan, by the refault rates of tier 0 of anon and file; and its highest evictable
    /// tier, by a comparison with tier 0 of the other type.
    pub(crate) fn type_to_scan(&self, swappiness: u32, divisor: u64) -> (usize, usize) {
        let gain = [u64::from(swappiness), 200 - u64::from(swappiness)];
        let file = may_evict(self.ctrl_pos(ANON, 0, gain[ANON]), self.ctrl_pos(FILE, 0, gain[FILE]), divisor);
        let t = usize::from(file);
        let sp = self.ctrl_pos(1 - t, 0, gain[1 - t]);
        let stop = |k: &usize| !may_evict(sp, self.ctrl_pos(t, *k, gain[t]), divisor);
        (t, (1..MAX_NR_TIERS).find(stop).unwrap_or(MAX_NR_TIERS) - 1)
    }

    /// Halves the counts of type `t` into the averages: its oldest generation is gone.
    ///
    /// Under RFC v3 a refault may be credited to a tier that did not evict the folio, so the total
    /// is raised to the refaults first. Since 6.14 it may be credited to a generation that did not
    /// evict the folio, and the total is not raised.
    pub(crate) fn carry_over(&mut self, t: usize, form: Generations) {
        for tier in 0..MAX_NR_TIERS {
            let CtrlPos { refaulted, total, .. } = self.ctrl_pos(t, tier, 1);
            let lifted = if form == Generations::Linked { refaulted } else { 0 };
            self.avg_refaulted[t][tier] = refaulted / 2;
            self.avg_total[t][tier] = total.max(lifted) / 2;
        }
        self.refaulted[t] = [0; MAX_NR_TIERS];
        self.evicted[t] = [0; MAX_NR_TIERS];
        self.protected[t] = [0; MAX_NR_TIERS];
    }

    /// Checks the invariants I4.1, I4.2 (the order) and I5.2.
    pub(crate) fn validate(&self, form: Generations) -> Result<(), String> {
        let (anon, file) = (self.nr_gens(ANON), self.nr_gens(FILE));
        let numbers = MIN_NR_GENS..=MAX_NR_GENS;
        let linked = form == Generations::Linked;
        if !numbers.contains(&anon) || !numbers.contains(&file) || linked && file > anon {
            return Err(format!("generations: min {:?} max {}", self.min_seq, self.max_seq));
        }
        for t in [ANON, FILE] {
            if linked && (0..MAX_NR_TIERS).any(|k| self.avg_refaulted[t][k] > self.avg_total[t][k]) {
                return Err(format!("type {t}: refaulted {:?} > total {:?}", self.avg_refaulted, self.avg_total));
            }
        }
        let newest = self.birth_ns[gen_index(self.max_seq)];
        if self.birth_ns.iter().any(|&b| b > newest) {
            return Err(format!("births: {:?}, max_seq {}", self.birth_ns, self.max_seq));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_refaults_evict_every_tier() {
        let mut folios = FolioTable::default();
        let mut g = MultiGen::new(&mut folios, 0);
        g.refaulted[FILE] = [63; 4];
        assert_eq!(g.tier_limit(FILE, Generations::Linked, 1), 3, "I4.5");
    }

    #[test]
    fn a_tier_that_refaults_more_than_twice_as_often_is_protected() {
        let mut folios = FolioTable::default();
        let mut g = MultiGen::new(&mut folios, 0);
        g.evicted[FILE] = [10_000, 1000, 0, 0];
        g.refaulted[FILE] = [1000, 190, 0, 0];
        assert_eq!(g.tier_limit(FILE, Generations::Linked, 1), 3, "19 % against 10 %");
        assert_eq!(g.tier_limit(FILE, Generations::Independent, 1), 0, "a half more is enough since 6.14");
        g.refaulted[FILE][1] = 210;
        assert_eq!(g.tier_limit(FILE, Generations::Linked, 1), 0, "21 % against 10 %");
    }

    #[test]
    fn type_follows_swappiness_when_both_refault_as_much() {
        let mut folios = FolioTable::default();
        let mut g = MultiGen::new(&mut folios, 0);
        for t in [ANON, FILE] {
            g.evicted[t][0] = 10_000;
            g.refaulted[t][0] = 1000;
        }
        assert_eq!(g.type_to_scan(60, 1).0, FILE);
        assert_eq!(g.type_to_scan(160, 1).0, ANON);
    }

    #[test]
    fn carry_over_halves_and_clears() {
        let mut folios = FolioTable::default();
        let mut g = MultiGen::new(&mut folios, 0);
        g.evicted[FILE] = [100, 10, 0, 0];
        g.protected[FILE] = [0, 30, 0, 0];
        g.refaulted[FILE] = [50, 60, 0, 0];
        g.carry_over(FILE, Generations::Linked);
        assert_eq!(g.avg_refaulted[FILE], [25, 30, 0, 0]);
        assert_eq!(g.avg_total[FILE], [50, 30, 0, 0], "lifted to what refaulted");
        assert_eq!((g.evicted[FILE], g.refaulted[FILE]), ([0; 4], [0; 4]));
        g.validate(Generations::Linked).unwrap();
    }

    #[test]
    fn bloom_filter_lets_all_through_until_it_exists() {
        let mut b = Bloom::default();
        assert!(b.test(7));
        b.reset();
        assert!(!b.test(7));
        b.insert(7);
        assert!(b.test(7));
        let false_positives = (100..10_100).filter(|&t| b.test(t)).count();
        assert!(false_positives < 10, "{false_positives} of 10000");
    }
}
