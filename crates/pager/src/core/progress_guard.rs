//! How long someone goes on who makes room.

/// Rounds without progress, and with nothing on its way out, after which there is no room to be
/// had.
const MAX_FRUITLESS: u32 = 16;
/// A pause after a fruitless round, in nanoseconds.
const PAUSE_NS: u64 = 1_000_000;

/// Ends after rounds that brought nothing while nothing was under way, or after a time without
/// progress. How often others had to be waited for says nothing: a write may take its time.
pub(crate) struct ProgressGuard {
    limit_ns: u64,
    since_ns: u64,
    fewest: u64,
    fruitless: u32,
}

impl ProgressGuard {
    pub(crate) fn new(limit_ns: u64, now_ns: u64) -> ProgressGuard {
        ProgressGuard { limit_ns, since_ns: now_ns, fewest: u64::MAX, fruitless: 0 }
    }

    /// After a round: `left` is still to be done, and `under_way` tells whether something is on its
    /// way that may help. Returns false to give up.
    pub(crate) fn goes_on(&mut self, left: u64, under_way: bool, now_ns: u64) -> bool {
        if left < self.fewest {
            (self.fewest, self.fruitless, self.since_ns) = (left, 0, now_ns);
        } else if !under_way {
            self.fruitless += 1;
        }
        self.fruitless <= MAX_FRUITLESS && now_ns.saturating_sub(self.since_ns) <= self.limit_ns
    }

    /// Nanoseconds to leave to other threads that make room, too.
    pub(crate) fn pause_ns(&self) -> u64 {
        if self.fruitless > 0 { PAUSE_NS } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_where_nothing_changes_and_nothing_is_under_way() {
        let mut p = ProgressGuard::new(600_000_000_000, 0);
        assert!((0..1000).all(|n| p.goes_on(7, true, n)), "others are waited for");
        assert!(p.goes_on(6, false, 1000) && (0..16).all(|_| p.goes_on(6, false, 1001)));
        assert!(!p.goes_on(6, false, 1002));
        assert!(p.goes_on(5, false, 1003), "progress");
        let mut p = ProgressGuard::new(0, 0);
        assert!(!p.goes_on(u64::MAX, true, 1), "it took too long");
    }
}
