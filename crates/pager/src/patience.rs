//! How long someone goes on who makes room.

use std::time::{Duration, Instant};

/// Rounds without progress, and with nothing on its way out, after which there is no room to be had.
const MAX_FRUITLESS: u32 = 16;

/// Ends after rounds that brought nothing while nothing was under way, or after a time without progress. How often others had to be waited for
/// says nothing: a write may take its time.
pub(crate) struct Patience {
    limit: Duration,
    since: Instant,
    fewest: u64,
    fruitless: u32,
}

impl Patience {
    pub(crate) fn new(limit: Duration) -> Patience {
        Patience { limit, since: Instant::now(), fewest: u64::MAX, fruitless: 0 }
    }

    /// After a round: so much is still to be done, and something is under way that may help, or not. False: no more.
    pub(crate) fn goes_on(&mut self, left: u64, under_way: bool) -> bool {
        if left < self.fewest {
            (self.fewest, self.fruitless, self.since) = (left, 0, Instant::now());
        } else if !under_way {
            self.fruitless += 1;
        }
        self.fruitless <= MAX_FRUITLESS && self.since.elapsed() <= self.limit
    }

    /// Lets others go on that are at work on it, too.
    pub(crate) fn pause(&self) {
        std::thread::sleep(Duration::from_micros(if self.fruitless > 0 { 1000 } else { 0 }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_where_nothing_changes_and_nothing_is_under_way() {
        let mut p = Patience::new(Duration::from_secs(600));
        assert!((0..1000).all(|_| p.goes_on(7, true)), "others are waited for");
        assert!(p.goes_on(6, false) && (0..16).all(|_| p.goes_on(6, false)));
        assert!(!p.goes_on(6, false));
        assert!(p.goes_on(5, false), "progress");
        let mut p = Patience::new(Duration::ZERO);
        std::thread::sleep(Duration::from_millis(1));
        assert!(!p.goes_on(u64::MAX, true), "it took too long");
    }
}
