//! The sizes among which the smallest is looked for: evenly spaced, the last as large as the range
//! is.

/// Sizes in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// The smallest.
    pub low: u64,
    /// The largest.
    pub high: u64,
    /// How far two are apart.
    pub step: u64,
}

/// Parts of a range if nothing else is said; more, as steps are round.
const PARTS: u64 = 64;

impl Grid {
    /// A range; without a step the smallest power of two that divides it into 64 parts or fewer.
    pub(super) fn new(low: u64, high: u64, step: Option<u64>) -> Grid {
        let own = || (high - low).div_ceil(PARTS).next_power_of_two();
        Grid { low, high, step: step.unwrap_or_else(own).max(1) }
    }

    /// The number of the last size; the first is 0.
    pub(super) fn last(&self) -> u64 {
        (self.high - self.base()).div_ceil(self.step)
    }

    /// A size by its number. The first is the end of the range; the others are multiples of the
    /// step, so that they are round.
    pub(super) fn pages(&self, number: u64) -> u64 {
        if number == 0 {
            return self.low;
        }
        self.base().saturating_add(number.saturating_mul(self.step)).min(self.high)
    }

    fn base(&self) -> u64 {
        self.low - self.low % self.step
    }
}

#[cfg(test)]
mod tests {
    use super::Grid;

    #[test]
    fn sizes_ascend_from_end_to_end() {
        for (low, high, step) in
            [(0, 1, None), (0, 4096, None), (100, 5000, Some(64)), (7, 8, Some(1000)), (1, 1000, None)]
        {
            let grid = Grid::new(low, high, step);
            let sizes: Vec<_> = (0..=grid.last()).map(|n| grid.pages(n)).collect();
            assert_eq!((sizes[0], sizes[sizes.len() - 1]), (low, high), "{grid:?}");
            assert!(sizes.windows(2).all(|pair| pair[0] <= pair[1]), "{sizes:?}");
            assert!(sizes.windows(2).all(|pair| pair[1] - pair[0] <= grid.step), "{sizes:?}");
            assert!(step.is_some() || sizes.len() <= 65);
        }
    }
}
