//! Whether pages that reclaim is about to ask about were written, asked of the kernel beforehand,
//! without the lock.
//!
//! Many steps of reclaim ask about nothing, so answers are kept until they are needed: for a
//! moment, and until the next walk. A write in that moment is not known then.

/// Pages that are looked up at a time, at most.
const MOST: usize = 512;
/// Nanoseconds that answers are good for: under pressure, steps of reclaim follow each other within
/// milliseconds, with a slow disk within tens of them.
const FRESH_NS: u64 = 100_000_000;

/// The answers, and what they are wanted for.
#[derive(Default)]
pub(crate) struct WrittenCache {
    /// Answers, in the order of pages.
    answers: Vec<(u32, bool)>,
    /// Time of the lookup, in nanoseconds.
    at_ns: Option<u64>,
    /// Answers that were not needed yet.
    left: usize,
    /// Pages that reclaim asked about since the lookup, and how many of these had no answer.
    asked: usize,
    not_found: usize,
}

impl WrittenCache {
    /// Reclaim asks about a page.
    pub(crate) fn answer(&mut self, page: u32) -> Option<bool> {
        self.asked += 1;
        match self.answers.binary_search_by_key(&page, |&(p, _)| p) {
            Ok(i) => {
                self.left = self.left.saturating_sub(1);
                Some(self.answers[i].1)
            }
            Err(_) => {
                self.not_found += 1;
                None
            }
        }
    }

    /// Number of pages to look up before a step of reclaim: as many as reclaim asked about since
    /// the last lookup, if its answers are used up, are old, or are about other pages than reclaim
    /// asks about.
    pub(crate) fn wanted(&mut self, now_ns: u64) -> usize {
        if self.at_ns.is_none_or(|at| now_ns.saturating_sub(at) > FRESH_NS) {
            self.forget();
        }
        let useful = self.left > 0 && self.not_found < self.answers.len();
        if useful { 0 } else { self.asked.min(MOST) }
    }

    /// Nothing was written since now: page tables were walked.
    pub(crate) fn forget(&mut self) {
        self.answers.clear();
        self.left = 0;
    }

    /// Takes the answers of a lookup, in the order of pages.
    pub(crate) fn set(&mut self, answers: Vec<(u32, bool)>, now_ns: u64) {
        *self = WrittenCache { left: answers.len(), answers, at_ns: Some(now_ns), asked: 0, not_found: 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of reclaim: the pages that each asks about, and its delay. Returns how many pages were
    /// asked about, looked up and answered.
    fn run(steps: &[(u32, u64)]) -> (u32, usize, usize) {
        let (mut l, mut now) = (WrittenCache::default(), 0);
        let (mut next, mut looked, mut answered) = (0, 0, 0);
        for &(asks, later) in steps {
            now += later;
            match l.wanted(now) as u32 {
                0 => {}
                n => {
                    looked += n as usize;
                    l.set((next..next + n).map(|p| (p, p % 2 == 0)).collect(), now);
                }
            }
            for page in next..next + asks {
                if let Some(written) = l.answer(page) {
                    assert_eq!(written, page % 2 == 0);
                    answered += 1;
                }
            }
            next += asks;
        }
        (next, looked, answered)
    }

    #[test]
    fn answers_wait_for_the_step_that_needs_them() {
        let ms = |ms: u64| ms * 1_000_000;
        let steps: Vec<_> = (0..200).map(|n| (if n % 2 == 0 { 100 } else { 0 }, ms(1))).collect();
        assert_eq!(run(&steps), (10_000, 10_000, 9_900));
    }

    #[test]
    fn old_answers_are_not_used() {
        let ms = |ms: u64| ms * 1_000_000;
        // Each is looked up in a step that asks about nothing, long before.
        let steps: Vec<_> = (0..200).map(|n| if n % 2 == 0 { (100, ms(200)) } else { (0, ms(1)) }).collect();
        let (asked, looked, answered) = run(&steps);
        assert_eq!(asked, 10_000);
        assert!(answered == 0 && looked <= 10_000, "{looked} {answered}");
    }

    #[test]
    fn steps_of_all_sizes_find_most_answers() {
        let steps: Vec<_> = (0..1000u32).map(|n| (n * 7919 % 60, 1_000_000)).collect();
        let (asked, looked, answered) = run(&steps);
        assert!(answered * 10 > asked as usize * 6 && looked <= asked as usize, "{asked} {looked} {answered}");
    }
}
