//! Counts of all accesses, by memory cgroup or by process, out of the places that each CPU has.
//!
//! A place has one owner at a time, and counts up. When another takes it the program tells what was
//! counted. So a count may be seen by a look and told later, in either order; it is added once.

use super::decode::PlaceCount;
use rustc_hash::FxHashMap;

/// Places of a CPU.
pub(super) const PLACES: usize = 128;

/// Words in front of the places of a CPU.
pub(super) const HEAD: usize = 12;

/// Words of a CPU.
pub(super) const WORDS: usize = HEAD + 3 * PLACES;

/// Counts so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// By place of a CPU: since when its owner has it, and what of its count was added.
    seen: FxHashMap<(usize, usize), (u64, u64)>,
    /// Accesses since these were last taken, by owner.
    more: FxHashMap<u64, u64>,
}

impl Counts {
    /// Looks at all places of a CPU.
    pub(super) fn look(&mut self, cpu: usize, words: &[u64; WORDS]) {
        for (place, slot) in words[HEAD..].chunks_exact(3).enumerate() {
            let (key, since, accesses) = (slot[0], slot[1], slot[2]);
            if accesses == 0 {
                continue;
            }
            let (owner, before) = self.seen.get(&(cpu, place)).copied().unwrap_or_default();
            let before = if owner == since { before } else { 0 };
            self.add(key, accesses.saturating_sub(before));
            self.seen.insert((cpu, place), (since, accesses.max(before)));
        }
    }

    /// A place is given to another owner.
    pub(super) fn told(&mut self, count: PlaceCount) {
        let at = (count.cpu, count.place);
        let before = self.seen.get(&at).filter(|(since, _)| *since == count.since).map_or(0, |seen| seen.1);
        if before > 0 {
            self.seen.remove(&at);
        }
        self.add(count.key, count.accesses.saturating_sub(before));
    }

    fn add(&mut self, key: u64, accesses: u64) {
        if accesses > 0 {
            *self.more.entry(key).or_insert(0) += accesses;
        }
    }

    /// Accesses since the last call, by owner.
    pub(super) fn take(&mut self) -> Vec<(u64, u64)> {
        let mut more: Vec<_> = self.more.drain().collect();
        more.sort_unstable();
        more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(places: &[(usize, [u64; 3])]) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        for &(place, slot) in places {
            words[HEAD + 3 * place..HEAD + 3 * place + 3].copy_from_slice(&slot);
        }
        words
    }

    #[test]
    fn what_is_seen_and_told_is_counted_once() {
        let mut counts = Counts::default();
        counts.look(0, &words(&[(3, [7, 100, 5]), (4, [8, 101, 2])]));
        assert_eq!(counts.take(), [(7, 5), (8, 2)]);
        counts.look(0, &words(&[(3, [7, 100, 9]), (4, [8, 101, 2])]));
        assert_eq!(counts.take(), [(7, 4)]);
        // Another owner is seen before the last count of the one before is told.
        let last = |accesses| PlaceCount { cpu: 0, place: 3, key: 7, since: 100, accesses };
        let mut late = counts.clone();
        counts.told(last(12));
        counts.look(0, &words(&[(3, [9, 200, 1])]));
        assert_eq!(counts.take(), [(7, 3), (9, 1)]);
        late.told(last(12));
        // One that came and went between two looks.
        late.told(PlaceCount { cpu: 0, place: 3, key: 6, since: 150, accesses: 4 });
        late.look(0, &words(&[(3, [7, 200, 2])]));
        assert_eq!(late.take(), [(6, 4), (7, 5)]);
        // The same place of another CPU is another one.
        late.look(1, &words(&[(3, [7, 200, 2])]));
        assert_eq!(late.take(), [(7, 2)]);
    }
}
