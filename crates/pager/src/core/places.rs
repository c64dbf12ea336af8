//! Places for pages that are on their way out of memory: windows of 64 pages beside it.
//!
//! A place that is free is missing in the page tables: it is given out once, filled by a move, and
//! free again only after it was discarded.

/// Pages of a window.
pub(crate) const WINDOW: usize = 64;

/// Places that are free.
#[derive(Debug)]
pub(crate) struct Places {
    /// Free places of each window, a bit each.
    free: Vec<u64>,
    /// Windows of which all places are free.
    whole: Vec<u32>,
    /// Where the search for single places goes on.
    next: usize,
    in_use: u64,
}

impl Places {
    pub(crate) fn new(windows: usize) -> Places {
        Places { free: vec![u64::MAX; windows], whole: (0..windows as u32).rev().collect(), next: 0, in_use: 0 }
    }

    /// Takes up to `n` places, side by side if there is a window for them; fewer only if there are
    /// no more.
    pub(crate) fn take(&mut self, n: usize) -> Vec<u32> {
        let n = n.min(WINDOW);
        let whole = std::iter::from_fn(|| self.whole.pop()).find(|&w| self.free[w as usize] == u64::MAX);
        if let Some(w) = whole {
            self.free[w as usize] = u64::MAX.checked_shl(n as u32).unwrap_or(0);
            self.in_use += n as u64;
            return (0..n as u32).map(|i| w * WINDOW as u32 + i).collect();
        }
        let mut places = Vec::with_capacity(n);
        for _ in 0..self.free.len() {
            let w = self.next;
            while self.free[w] != 0 && places.len() < n {
                let bit = self.free[w].trailing_zeros();
                self.free[w] &= self.free[w] - 1;
                places.push((w * WINDOW) as u32 + bit);
            }
            if places.len() == n {
                break;
            }
            self.next = (w + 1) % self.free.len();
        }
        self.in_use += places.len() as u64;
        places
    }

    /// The place is free, and missing in the page tables.
    pub(crate) fn give_back(&mut self, place: u32) {
        let (w, bit) = (place as usize / WINDOW, 1 << (place as usize % WINDOW));
        debug_assert!(self.free[w] & bit == 0, "it was taken");
        self.free[w] |= bit;
        self.in_use -= 1;
        if self.free[w] == u64::MAX {
            self.whole.push(w as u32);
        }
    }

    /// Places that are not free.
    pub(crate) fn in_use(&self) -> u64 {
        self.in_use
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_given_once_and_side_by_side_while_there_are_whole_windows() {
        let mut s = Places::new(3);
        let mut taken: Vec<Vec<u32>> = (0..3).map(|_| s.take(40)).collect();
        assert!(taken.iter().all(|t| t.len() == 40 && t.windows(2).all(|p| p[1] == p[0] + 1)));
        // No whole window is left: what remains of the others.
        taken.push(s.take(60));
        taken.push(s.take(60));
        assert_eq!((taken[3].len(), taken[4].len(), s.take(1).len()), (60, 12, 0));
        let mut all: Vec<u32> = taken.concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!((all.len(), s.in_use()), (192, 192));
        all.iter().for_each(|&p| s.give_back(p));
        assert_eq!((s.in_use(), s.take(64).len()), (0, 64));
    }
}
