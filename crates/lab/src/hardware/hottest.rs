//! Pages that are touched most: what the scenario itself says, for the policy `oracle` and for the
//! bound that it is.

use refault_mm::PageId;

/// Relative frequency of touches of each page, by the current phases of the tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hottest {
    /// By page: its relative frequency. Empty: nobody asks.
    weights: Vec<f64>,
    /// Pages of the top tier.
    capacity: usize,
    /// The least weight of the hottest pages that fit the top tier; none: not computed yet.
    least: Option<f64>,
    /// Share of touches of the hottest pages that fit, when a task last ended a phase.
    best_share: Option<f64>,
    /// A task has begun a phase since then.
    began: bool,
}

impl Hottest {
    /// Weights of `pages` pages, of which `capacity` fit the top tier.
    pub(crate) fn new(pages: usize, capacity: usize) -> Hottest {
        Hottest { weights: vec![0.0; pages], capacity, ..Hottest::default() }
    }

    /// Adds the pages that a task touches in its current phase; with a `sign` of -1, takes them
    /// away. `weigh` gives the probability of each page to be touched next.
    pub(crate) fn count(&mut self, sign: f64, weigh: impl FnOnce(&mut dyn FnMut(PageId, f64))) {
        if self.weights.is_empty() {
            return;
        }
        if sign < 0.0 && std::mem::take(&mut self.began) {
            self.best_share = self.share_of_best();
        }
        self.began |= sign > 0.0;
        self.least = None;
        weigh(&mut |page, share| self.weights[page.index()] += sign * share);
    }

    /// Whether a page is among the hottest that fit the top tier.
    pub(crate) fn contains(&mut self, page: PageId) -> bool {
        let least = self.least();
        self.weights.get(page.index()).is_some_and(|&w| w > 0.0 && w >= least)
    }

    fn least(&mut self) -> f64 {
        if let Some(least) = self.least {
            return least;
        }
        let mut all: Vec<f64> = self.weights.iter().copied().filter(|&w| w > 0.0).collect();
        let least = match self.capacity.min(all.len()) {
            0 => f64::INFINITY,
            n => *all.select_nth_unstable_by(n - 1, |a, b| b.total_cmp(a)).1,
        };
        self.least = Some(least);
        least
    }

    /// The share of touches that the top tier would have if it held the hottest pages of the last
    /// phases; none: nobody asked, or nothing is touched.
    pub(crate) fn best_share(&self) -> Option<f64> {
        if self.began { self.share_of_best() } else { self.best_share }
    }

    fn share_of_best(&self) -> Option<f64> {
        let mut all: Vec<f64> = self.weights.iter().copied().filter(|&w| w > 0.0).collect();
        all.sort_unstable_by(|a, b| b.total_cmp(a));
        let sum: f64 = all.iter().sum();
        (sum > 0.0).then(|| all.iter().take(self.capacity).sum::<f64>() / sum)
    }
}
