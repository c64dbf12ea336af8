//! Whether pages that reclaim is about to ask about were written, asked of the kernel beforehand, without the lock.
//!
//! Background reclaim works in bursts, from when it is woken until it sleeps, and asks about nearly as many pages in each. Many of its steps ask about none: that there is a
//! step is no reason to look anything up.

/// Pages that are looked up at a time, at most.
const MOST: usize = 512;

/// The answers, and what they are wanted for.
#[derive(Default)]
pub(super) struct LookedUp {
    /// By page.
    answers: Vec<(u32, bool)>,
    /// Pages that the last burst asked about, this one, and this one since pages were looked up.
    last_burst: usize,
    burst: usize,
    since: usize,
}

impl LookedUp {
    /// Reclaim asks about a page.
    pub(super) fn answer(&mut self, page: u32) -> Option<bool> {
        self.burst += 1;
        self.since += 1;
        let i = self.answers.binary_search_by_key(&page, |&(p, _)| p).ok()?;
        Some(self.answers[i].1)
    }

    /// How many pages are to be looked up now: as many as the last burst asked about, at the beginning of one; and if it goes on for far longer than
    /// that, as many as since the last look.
    pub(super) fn wanted(&self) -> usize {
        let begins = self.burst == 0 && self.answers.is_empty();
        let goes_on = self.since >= self.last_burst && self.burst >= 2 * self.last_burst;
        match (begins, goes_on) {
            (true, _) => self.last_burst.min(MOST),
            (false, true) => self.since.min(MOST),
            _ => 0,
        }
    }

    /// They were looked up; in the order of pages.
    pub(super) fn set(&mut self, answers: Vec<(u32, bool)>) {
        (self.answers, self.since) = (answers, 0);
    }

    /// Background reclaim sleeps. Until it works again, much may be written.
    pub(super) fn end_burst(&mut self) {
        if self.burst > 0 {
            self.last_burst = self.burst;
        }
        (self.burst, self.since) = (0, 0);
        self.answers.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(l: &mut LookedUp, pages: std::ops::Range<u32>) -> usize {
        pages.filter(|&p| l.answer(p).is_some()).count()
    }

    #[test]
    fn each_burst_has_as_many_answers_as_the_last_one_asked_for() {
        let mut l = LookedUp::default();
        assert_eq!(l.wanted(), 0, "nothing is known yet");
        assert_eq!(ask(&mut l, 0..100), 0);
        l.end_burst();
        for burst in 1..5 {
            assert_eq!(l.wanted(), 100);
            let first = burst * 100;
            l.set((first..first + 100).map(|p| (p, p % 2 == 0)).collect());
            assert_eq!(l.wanted(), 0, "a step that asks about nothing");
            assert_eq!(l.answer(first), Some(first % 2 == 0));
            assert_eq!(ask(&mut l, first + 1..first + 100), 99);
            assert_eq!(l.wanted(), 0, "it may end now");
            l.end_burst();
            assert_eq!(ask(&mut l, 0..0), 0);
        }
        l.end_burst();
        assert_eq!(l.wanted(), 100, "a burst that asked about nothing tells nothing");
    }

    #[test]
    fn a_burst_that_goes_on_has_answers_again() {
        let mut l = LookedUp::default();
        ask(&mut l, 0..100);
        l.end_burst();
        l.set((0..l.wanted() as u32).map(|p| (p, true)).collect());
        let (mut next, mut found) = (0, 0);
        for _ in 0..100 {
            found += ask(&mut l, next..next + 50);
            next += 50;
            match l.wanted() as u32 {
                0 => {}
                n => l.set((next..next + n).map(|p| (p, true)).collect()),
            }
        }
        assert!(found > 4500, "{found} of {next}");
    }
}
