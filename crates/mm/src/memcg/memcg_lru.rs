//! The memcg LRU: generations of memory cgroups, so that reclaim of the whole machine finds the
//! next one at once.
//!
//! Three generations of eight bins each. Reclaim empties the old generation; a group that was aged,
//! or had its turn, goes to the young one, and the generations move on when nobody is left in the
//! old one. The third is a slot that the kernel keeps free for readers without locks.
//!
//! Mechanism: `docs/mechanisms.md#the-memcg-lru`.

use crate::ids::MemcgId;
use crate::memcg::group::Memcgs;

/// Generations of groups.
const MEMCG_NR_GENS: usize = 3;
/// Bins of a generation.
pub(crate) const MEMCG_NR_BINS: usize = 8;

/// Place of a group within its generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Segment {
    #[default]
    Default,
    Tail,
}

/// Move of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rotation {
    /// To the tail of a bin of its own generation.
    Tail,
    /// To the head of a bin of the old generation.
    Old,
    /// To the tail of a bin of the young generation.
    Young,
}

/// The place of a group.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MemcgLruPlace {
    generation: usize,
    bin: usize,
    pub(crate) segment: Segment,
    prev: Option<MemcgId>,
    pub(crate) next: Option<MemcgId>,
    listed: bool,
}

/// Head and tail of a bin.
pub(crate) type Bin = (Option<MemcgId>, Option<MemcgId>);

/// The groups of a node.
#[derive(Clone, Debug)]
pub(crate) struct MemcgLru {
    seq: u64,
    pub(crate) bins: [[Bin; MEMCG_NR_BINS]; MEMCG_NR_GENS],
    nr_memcgs: [u64; MEMCG_NR_GENS],
    random: u64,
    /// By number of the group: its generation, bin and neighbours.
    pub(crate) places: Vec<MemcgLruPlace>,
}

impl MemcgLru {
    pub(crate) fn new(seed: u64) -> MemcgLru {
        let mut lru = MemcgLru {
            seq: 0,
            bins: [[(None, None); MEMCG_NR_BINS]; MEMCG_NR_GENS],
            nr_memcgs: [0; MEMCG_NR_GENS],
            random: seed,
            places: Vec::new(),
        };
        lru.online(MemcgId::ROOT);
        lru
    }

    /// A bin by chance (SplitMix64).
    pub(crate) fn random_bin(&mut self) -> usize {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as usize % MEMCG_NR_BINS
    }

    pub(crate) fn old(&self) -> usize {
        (self.seq % MEMCG_NR_GENS as u64) as usize
    }

    #[cfg(test)]
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    /// The groups of the old generation.
    #[cfg(test)]
    pub(crate) fn old_generation(&self) -> Vec<MemcgId> {
        let place = |i: &usize| self.places[*i].listed && self.places[*i].generation == self.old();
        (0..self.places.len()).filter(place).map(|i| MemcgId(i as u16)).collect()
    }

    pub(crate) fn young(&self) -> usize {
        ((self.seq + 1) % MEMCG_NR_GENS as u64) as usize
    }

    /// A new group joins the old generation.
    pub(crate) fn online(&mut self, id: MemcgId) {
        if self.places.len() <= id.index() {
            self.places.resize(id.index() + 1, MemcgLruPlace::default());
        }
        let (generation, bin) = (self.old(), self.random_bin());
        self.places[id.index()] = MemcgLruPlace::default();
        self.insert(id, generation, bin, false);
    }

    /// Whether a group is in a bin.
    pub(crate) fn is_in(&self, id: MemcgId, generation: usize, bin: usize) -> bool {
        let place = &self.places[id.index()];
        (place.listed, place.generation, place.bin) == (true, generation, bin)
    }

    /// A group is gone.
    pub(crate) fn release(&mut self, id: MemcgId) {
        self.remove(id);
        self.advance();
    }

    pub(crate) fn rotate(&mut self, id: MemcgId, to: Rotation) {
        let generation = match to {
            Rotation::Tail => self.places[id.index()].generation,
            Rotation::Old => self.old(),
            Rotation::Young => self.young(),
        };
        let bin = self.random_bin();
        self.remove(id);
        self.insert(id, generation, bin, to == Rotation::Old);
        self.places[id.index()].segment = if to == Rotation::Tail { Segment::Tail } else { Segment::Default };
        self.advance();
    }

    /// Makes the next generation the old one, once this one has no group left.
    fn advance(&mut self) {
        if self.nr_memcgs[self.old()] == 0 {
            self.seq += 1;
        }
    }

    fn insert(&mut self, id: MemcgId, generation: usize, bin: usize, head: bool) {
        let list = &mut self.bins[generation][bin];
        let (prev, next) = if head { (None, list.0) } else { (list.1, None) };
        match prev {
            Some(p) => self.places[p.index()].next = Some(id),
            None => list.0 = Some(id),
        }
        match next {
            Some(n) => self.places[n.index()].prev = Some(id),
            None => list.1 = Some(id),
        }
        let place = &mut self.places[id.index()];
        *place = MemcgLruPlace { generation, bin, prev, next, listed: true, ..*place };
        self.nr_memcgs[generation] += 1;
    }

    fn remove(&mut self, id: MemcgId) {
        let MemcgLruPlace { generation, bin, prev, next, .. } = self.places[id.index()];
        let list = &mut self.bins[generation][bin];
        match prev {
            Some(p) => self.places[p.index()].next = next,
            None => list.0 = next,
        }
        match next {
            Some(n) => self.places[n.index()].prev = prev,
            None => list.1 = prev,
        }
        self.places[id.index()].listed = false;
        self.nr_memcgs[generation] -= 1;
    }

    /// I6.2: every group that is there is in one bin, and the populations say how many.
    pub(crate) fn validate(&self, tree: &Memcgs) -> Result<(), String> {
        let mut met = vec![0u32; tree.all.len()];
        for (generation, bins) in self.bins.iter().enumerate() {
            let mut population = 0;
            for (bin, &(head, tail)) in bins.iter().enumerate() {
                let (mut at, mut prev) = (head, None);
                while let Some(id) = at {
                    let p = &self.places[id.index()];
                    if (p.generation, p.bin, p.prev, p.listed) != (generation, bin, prev, true) {
                        return Err(format!("memcg LRU: {id:?} at {generation}/{bin} says {p:?}"));
                    }
                    met[id.index()] += 1;
                    population += 1;
                    if population > tree.all.len() as u64 {
                        return Err("memcg LRU: a bin is a circle".into());
                    }
                    (prev, at) = (at, p.next);
                }
                if prev != tail {
                    return Err(format!("memcg LRU: bin {generation}/{bin} ends with {prev:?}, not {tail:?}"));
                }
            }
            if population != self.nr_memcgs[generation] {
                return Err(format!("memcg LRU: {population} of {:?} in generation {generation}", self.nr_memcgs));
            }
        }
        if self.nr_memcgs[(self.old() + 2) % MEMCG_NR_GENS] > 0 || self.nr_memcgs[self.old()] == 0 {
            return Err(format!("memcg LRU: populations {:?} at {} (I6.4)", self.nr_memcgs, self.seq));
        }
        for id in tree.subtree(MemcgId::ROOT) {
            if std::mem::take(&mut met[id.index()]) != 1 {
                return Err(format!("memcg LRU: {} is not in one bin (I6.2)", tree.get(id).name));
            }
        }
        match met.iter().position(|&n| n > 0) {
            Some(gone) => Err(format!("memcg LRU: {gone} is gone and in a bin")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Engine;
    use crate::ids::LruvecId;
    use crate::memcg::group::Memcg;

    fn setup(groups: u16) -> (Memcgs, MemcgLru) {
        let (mut tree, mut lru) = (Memcgs::new(64, true), MemcgLru::new(7));
        for i in 1..=groups {
            tree.all.push(Memcg::new(None, "", LruvecId(0), u64::MAX, u64::MAX));
            tree.link(MemcgId(i), MemcgId::ROOT);
            lru.online(MemcgId(i));
        }
        (tree, lru)
    }

    #[test]
    fn the_generations_move_on_when_everyone_had_a_turn() {
        let (tree, mut lru) = setup(20);
        for i in 0..=20 {
            assert_eq!(lru.seq, 0, "before {i}");
            lru.rotate(MemcgId(i), Rotation::Young);
            lru.validate(&tree).unwrap();
        }
        assert_eq!((lru.seq, lru.nr_memcgs[lru.old()]), (1, 21));
    }

    #[test]
    fn operations_put_groups_where_they_belong() {
        let (tree, mut lru) = setup(50);
        for i in 0..500u64 {
            let id = MemcgId((i * 7 % 51) as u16);
            let before = lru.places[id.index()];
            let to = [Rotation::Tail, Rotation::Old, Rotation::Young][(i % 3) as usize];
            let (old, young) = (lru.old(), lru.young());
            lru.rotate(id, to);
            let p = lru.places[id.index()];
            let (generation, segment) = match to {
                Rotation::Tail => (before.generation, Segment::Tail),
                Rotation::Old => (old, Segment::Default),
                Rotation::Young => (young, Segment::Default),
            };
            assert_eq!((p.generation, p.segment), (generation, segment), "{to:?}");
            assert!(if to == Rotation::Old { p.prev.is_none() } else { p.next.is_none() });
            lru.validate(&tree).unwrap();
        }
    }

    #[test]
    fn a_group_that_is_released_is_in_no_bin() {
        let (mut tree, mut lru) = setup(3);
        [1, 2, 0].into_iter().for_each(|i| lru.rotate(MemcgId(i), Rotation::Young));
        lru.release(MemcgId(3));
        assert_eq!(lru.seq, 1, "nobody is left in the old generation");
        tree.unlink(MemcgId(3));
        tree.get_mut(MemcgId(3)).state = crate::memcg::group::MemcgState::Gone;
        lru.validate(&tree).unwrap();
    }

    /// A group below its `low` gives up its turn once. When the group is met again, even in the
    /// same pass, it is reclaimed, which counts as an event, whether or not other groups still have
    /// pages to give. `low` has no other effect under the memcg LRU.
    #[test]
    fn a_group_below_low_is_spared_once_and_reclaimed_when_it_is_met_again() {
        let (mut spared, mut overrun) = (0, 0);
        for seed in 0..200 {
            let mut e = Engine::new(crate::Config { seed, ..crate::Config::new(crate::Policy::Mglru) }).unwrap();
            let mut w = crate::world_at_once::AtOnce::default();
            let [low, other] = ["/low", "/other"].map(|name| {
                let id = e.add_memcg(MemcgId::ROOT, name, u64::MAX, u64::MAX).unwrap();
                let file = e.add_mapping(crate::MappingKind::File, id, 0..10_000).unwrap().1;
                (0..10_000).for_each(|i| _ = e.access(&mut w, crate::PageId(file.0 + i), crate::Touch::Read));
                id
            });
            let limits = crate::MemcgLimits { low: 20_000, ..crate::MemcgLimits::default() };
            e.set_memcg_limits(&mut w, low, &limits).unwrap();
            e.drain_all();
            let first_bin = e.mem.groups.memcg_lru[0].clone().random_bin();
            let turn = |e: &Engine, id: MemcgId| (e.mem.groups.memcg_lru[0].places[id.index()].bin + 8 - first_bin) % 8;
            let others_first = turn(&e, other) < turn(&e, low);
            e.mem.groups.visits.clear();
            e.reclaim(&mut w, MemcgId::ROOT, 64, None).unwrap();
            let visits = e.mem.groups.visits.iter().filter(|v| **v == Some(low)).count() as u64;
            assert_eq!(e.memcg_events(low).low, visits, "it is never reclaimed without saying so");
            assert!(!others_first || visits == 0, "seed {seed}: the other had enough and came first");
            if visits > 0 {
                overrun += 1;
            } else {
                spared += 1;
            }
            e.validate().unwrap();
        }
        assert!(spared > overrun && overrun > 0, "{spared} : {overrun}");
    }
}
