//! Belady's OPT: evict the page whose next use is farthest. No policy that must load what it misses
//! can beat it, so it is the limit beside which the others stand.
//!
//! It needs the future: for every access, the number of the next access to the same page. A
//! resident page is then known by that number alone, so the resident set is a set of access
//! numbers: a hit is a bit test at the access itself, and the victim is the largest member. The set
//! is a bit tree with 64-way nodes: 1.02 bits an access, a handful of words a look-up.

/// The number that stands for "never again".
pub const NEVER: u32 = u32::MAX;

/// Accesses that one run can have.
pub const MAX_ACCESSES: usize = (u32::MAX - 1) as usize;

/// For every access, the number of the next access to the same page, or [`NEVER`]. `pages` are ids
/// below `distinct`.
///
/// An error if there are more than [`MAX_ACCESSES`].
pub fn next_uses(
    pages: impl DoubleEndedIterator<Item = u32> + ExactSizeIterator,
    distinct: usize,
) -> Result<Vec<u32>, String> {
    let n = pages.len();
    if n > MAX_ACCESSES {
        return Err(format!("opt: {n} accesses, at most {MAX_ACCESSES} can be numbered"));
    }
    let mut next = vec![NEVER; n];
    let mut last = vec![NEVER; distinct];
    for (at, page) in pages.enumerate().rev() {
        next[at] = std::mem::replace(&mut last[page as usize], at as u32);
    }
    Ok(next)
}

/// A set of numbers below a bound that yields its largest member.
#[derive(Clone, Debug)]
struct BitTree {
    /// `levels[0]` has a bit a number, each level above a bit for each word below that is not 0.
    levels: Vec<Vec<u64>>,
}

impl BitTree {
    fn new(bound: usize) -> BitTree {
        let mut levels = Vec::new();
        let mut words = bound.div_ceil(64).max(1);
        loop {
            levels.push(vec![0; words]);
            if words == 1 {
                return BitTree { levels };
            }
            words = words.div_ceil(64);
        }
    }

    #[inline]
    fn insert(&mut self, x: u32) {
        let mut i = x as usize;
        for level in &mut self.levels {
            let word = &mut level[i / 64];
            let was_empty = *word == 0;
            *word |= 1 << (i % 64);
            if !was_empty {
                return;
            }
            i /= 64;
        }
    }

    /// Removes a number; says whether it was there.
    #[inline]
    fn remove(&mut self, x: u32) -> bool {
        let mut i = x as usize;
        if self.levels[0][i / 64] >> (i % 64) & 1 == 0 {
            return false;
        }
        for level in &mut self.levels {
            let word = &mut level[i / 64];
            *word &= !(1 << (i % 64));
            if *word != 0 {
                break;
            }
            i /= 64;
        }
        true
    }

    fn largest(&self) -> Option<u32> {
        let mut i = 0;
        for level in self.levels.iter().rev() {
            let word = level[i];
            if word == 0 {
                return None;
            }
            i = i * 64 + 63 - word.leading_zeros() as usize;
        }
        Some(i as u32)
    }
}

/// OPT at one size.
#[derive(Clone, Debug)]
pub struct Opt {
    resident: BitTree,
    /// Resident pages that are never used again.
    dead: u64,
    len: u64,
    capacity: u64,
    at: u32,
}

impl Opt {
    /// OPT with room for `capacity_pages` pages, for a run of `accesses` accesses (at most
    /// [`MAX_ACCESSES`]).
    pub fn new(capacity_pages: u64, accesses: usize) -> Opt {
        Opt { resident: BitTree::new(accesses), dead: 0, len: 0, capacity: capacity_pages.max(1), at: 0 }
    }

    /// Makes the next access, to a page that is next used at access number `next`. Returns whether
    /// it is a hit.
    #[inline]
    pub fn access(&mut self, next: u32) -> bool {
        let hit = self.resident.remove(self.at);
        self.at += 1;
        if !hit {
            match self.len == self.capacity {
                true => self.evict(),
                false => self.len += 1,
            }
        }
        match next {
            NEVER => self.dead += 1,
            next => self.resident.insert(next),
        }
        hit
    }

    fn evict(&mut self) {
        if self.dead > 0 {
            self.dead -= 1;
        } else if let Some(farthest) = self.resident.largest() {
            self.resident.remove(farthest);
        }
    }

    /// Pages resident.
    pub fn resident_pages(&self) -> u64 {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// The definition, by search.
    fn plain(pages: &[u32], capacity: usize) -> Vec<bool> {
        let next = |at: usize, p: u32| pages[at + 1..].iter().position(|&q| q == p).unwrap_or(usize::MAX);
        let mut resident: HashMap<u32, ()> = HashMap::new();
        let step = |(at, &p): (usize, &u32)| {
            let hit = resident.contains_key(&p);
            if !hit && resident.len() == capacity {
                let victim = *resident.keys().max_by_key(|&&q| next(at, q)).expect("capacity is not 0");
                resident.remove(&victim);
            }
            resident.insert(p, ());
            hit
        };
        pages.iter().enumerate().map(step).collect()
    }

    #[test]
    fn agrees_with_the_definition() {
        let mut x = 1u64;
        for capacity in 1..8 {
            for distinct in [3u32, 9, 20] {
                let pages: Vec<u32> = (0..400)
                    .map(|_| {
                        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                        (x >> 33) as u32 % distinct
                    })
                    .collect();
                let next = next_uses(pages.iter().copied(), distinct as usize).unwrap();
                let mut opt = Opt::new(capacity as u64, pages.len());
                let ours: Vec<bool> = next.iter().map(|&n| opt.access(n)).collect();
                let hits = |v: &[bool]| v.iter().filter(|&&h| h).count();
                assert_eq!(hits(&ours), hits(&plain(&pages, capacity)), "{distinct} pages in {capacity}");
                assert!(opt.resident_pages() <= capacity as u64);
            }
        }
    }

    #[test]
    fn bit_tree_is_a_set() {
        let mut t = BitTree::new(300_000);
        assert_eq!(t.largest(), None);
        for x in [5, 70, 4096, 299_999, 64] {
            t.insert(x);
        }
        assert_eq!(t.largest(), Some(299_999));
        assert!(t.remove(299_999) && !t.remove(299_999));
        assert_eq!(t.largest(), Some(4096));
        assert!(t.remove(4096) && t.remove(5) && t.remove(64));
        assert_eq!(t.largest(), Some(70));
    }
}
