//! How many pages a second may be promoted to a node.
//!
//! Mechanism: `docs/mechanisms.md#promotion`.

/// A limit of promotions a second, in windows of a little more than a second. It counts attempts,
/// not successes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimit {
    limit_pages_per_s: u64,
    window_start_ms: u64,
    /// Candidate pages so far when the window began.
    window_base: u64,
    /// Pages let through in the window under way, and pages of the largest folio among them.
    admitted: u64,
    largest: u64,
}

impl RateLimit {
    /// A limit of `limit_pages_per_s` pages in a window.
    pub fn new(limit_pages_per_s: u64) -> RateLimit {
        RateLimit { limit_pages_per_s, window_start_ms: 0, window_base: 0, admitted: 0, largest: 0 }
    }

    /// The limit.
    pub fn pages_per_s(&self) -> u64 {
        self.limit_pages_per_s
    }

    /// Whether a folio may be promoted. `candidates`: candidate pages so far, its own included. The
    /// folio that opens a window is not counted in it.
    pub fn admits(&mut self, now_ms: u64, candidates: u64, pages: u64) -> bool {
        if now_ms - self.window_start_ms.min(now_ms) > 1000 {
            (self.window_start_ms, self.window_base) = (now_ms, candidates);
            (self.admitted, self.largest) = (0, 0);
        }
        let admits = candidates - self.window_base < self.limit_pages_per_s;
        if admits {
            self.admitted += pages;
            self.largest = self.largest.max(pages);
        }
        admits
    }

    /// I9.1: a window has let through no more pages than the limit and one folio.
    ///
    /// # Errors
    /// A second in which more was promoted.
    pub fn validate(&self) -> Result<(), String> {
        match self.admitted > 0 && self.admitted >= self.limit_pages_per_s.saturating_add(self.largest) {
            true => Err(format!("I9.1: {} pages in a second, {} are the limit", self.admitted, self.limit_pages_per_s)),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_admits_the_limit_and_the_next_one_again() {
        let mut limit = RateLimit::new(10);
        let mut candidates = 0;
        let mut try_at = |now_ms| {
            candidates += 1;
            limit.admits(now_ms, candidates, 1)
        };
        // The machine is 2 s old: the first candidate opens a window.
        assert_eq!((0..50).filter(|_| try_at(2000)).count(), 10);
        assert!(!try_at(3000), "a window lasts more than a second");
        assert_eq!((0..50).filter(|_| try_at(3001)).count(), 10);
    }

    #[test]
    fn without_a_limit_everything_goes() {
        let mut limit = RateLimit::new(u64::MAX);
        assert!((1..1000).all(|n| limit.admits(n, n * 512, 512)));
        assert!(!RateLimit::new(0).admits(5000, 1, 1), "no page a second is none");
    }
}
