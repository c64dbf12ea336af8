//! When there is no room to be had: nothing that anyone who waits could use has happened for too
//! long.

/// A fault without room ends its process if no page left memory and none is on its way, for this
/// many nanoseconds, and for this many attempts of the evictor.
pub(super) const NO_PROGRESS_NS: u64 = 2_000_000_000;
const NO_PROGRESS_ROUNDS: u32 = 200;
/// Failed writes per page in place that count as much as these attempts: a round of such writes may
/// take long.
const TRIES: u64 = 4;

/// Pages that were written and read, and that could not be written, since the start.
#[derive(Clone, Copy, Default)]
pub(super) struct Moved {
    pub(super) swapped: u64,
    pub(super) failed: u64,
}

/// Rounds since something was written or read.
#[derive(Default)]
pub(super) struct NoProgress {
    since_ns: u64,
    then: Moved,
    now: Moved,
    now_ns: u64,
    rounds: u32,
}

impl NoProgress {
    /// A round of who makes room. A page that is moved out is no progress: where nothing can be
    /// written, it comes back. It is progress that nobody waits: who waited has what he waited for.
    pub(super) fn round(&mut self, now_ns: u64, moved: Moved, anyone_waits: bool) {
        (self.now_ns, self.now) = (now_ns, moved);
        if moved.swapped != self.then.swapped || !anyone_waits {
            self.begin_again();
        }
        self.rounds = self.rounds.saturating_add(1);
    }

    /// Begins again: a process was ended, and its memory is for the others.
    pub(super) fn begin_again(&mut self) {
        (self.since_ns, self.then, self.rounds) = (self.now_ns, self.now, 0);
    }

    /// Allows as many attempts once more, for what held others up is no more.
    pub(super) fn allow_more(&mut self) {
        (self.rounds, self.then.failed) = (0, self.now.failed);
    }

    pub(super) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Nanoseconds without progress.
    pub(super) fn stuck_ns(&self) -> u64 {
        self.now_ns - self.since_ns
    }

    /// Whether there will be no progress, after `patience_ns` without any, with `in_place` pages in
    /// place. Pages on their way may take as long as a slow disk takes, unless writes have failed.
    pub(super) fn is_over(&self, patience_ns: u64, in_place: u64, is_under_way: bool) -> bool {
        let failed = self.now.failed - self.then.failed;
        let tried_all = failed > TRIES * in_place || self.rounds > NO_PROGRESS_ROUNDS;
        self.stuck_ns() > patience_ns && tried_all && !(is_under_way && failed == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const IN_PLACE: u64 = 3000;

    /// Makes `n` rounds of `ms` milliseconds, each with `failed` writes that failed.
    fn rounds(p: &mut NoProgress, n: u64, ms: u64, failed: u64, anyone_waits: impl Fn(u64) -> bool) {
        let (at_ns, before) = (p.now_ns, p.now);
        for i in 1..=n {
            let moved = Moved { failed: before.failed + i * failed, ..before };
            p.round(at_ns + i * ms * MS, moved, anyone_waits(i));
        }
    }

    #[test]
    fn it_takes_rounds_and_time() {
        let mut p = NoProgress::default();
        rounds(&mut p, 201, 1, 0, |_| true);
        assert!(!p.is_over(NO_PROGRESS_NS, IN_PLACE, false), "0.2 s");
        rounds(&mut p, 19, 100, 0, |_| true);
        assert!(
            p.is_over(NO_PROGRESS_NS, IN_PLACE, false) && !p.is_over(NO_PROGRESS_NS, IN_PLACE, true),
            "a slow disk is waited for"
        );
        p.round(p.now_ns + MS, Moved { swapped: 1, failed: 0 }, true);
        assert!(!p.is_over(NO_PROGRESS_NS, IN_PLACE, false), "progress");
    }

    /// With several runs at once each round took 25 ms, and 200 of them did not go by.
    #[test]
    fn regression_all_pages_that_come_back_again_and_again_are_enough() {
        let mut p = NoProgress::default();
        rounds(&mut p, 85, 25, 100, |_| true);
        assert!(!p.is_over(NO_PROGRESS_NS, IN_PLACE, true), "not all were tried");
        rounds(&mut p, 40, 25, 100, |_| true);
        assert!(p.is_over(NO_PROGRESS_NS, IN_PLACE, true), "{} rounds", p.rounds());
    }

    #[test]
    fn who_has_what_he_waited_for_ends_it() {
        let mut p = NoProgress::default();
        rounds(&mut p, 1000, 25, 100, |i| i % 50 != 0);
        assert!(!p.is_over(NO_PROGRESS_NS, IN_PLACE, false));
        p.allow_more();
        assert_eq!((p.rounds(), p.now.failed - p.then.failed), (0, 0));
    }
}
