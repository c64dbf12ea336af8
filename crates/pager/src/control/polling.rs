//! Whether to poll for what comes soon, or to sleep until it is there.
//!
//! A processor that has nothing to do halts, and to wake it from that takes 15 to 25 µs in a
//! virtual machine: a third of what a read from a fast device takes. A thread that waits for such a
//! read polls for it instead, while what comes, comes soon; and sleeps as soon as someone else
//! wants the processor, or what it waits for takes long.
//!
//! How long a wait is likely to be is the mean of the polled ones. (One that was slept through is
//! longer by what the sleep costs.) While waits are too long to be polled for, one of many is
//! polled for all the same, to find out whether they are still.

/// Longest mean wait, in nanoseconds, that is polled for: beside a longer wait, a sleep costs next
/// to nothing.
pub const MOST_MEAN_NS: u64 = 100_000;
/// Nanoseconds by which a poll may last longer than twice the mean, for differences between short
/// waits.
const SLACK_NS: u64 = 10_000;
/// Share of waits, one in this many, that is polled for while waits are too long.
const PROBE: u32 = 64;
/// Nanoseconds without a look that show that a polling thread was not running: something else had
/// the processor for at least a tick.
pub const GAP_NS: u64 = 500_000;
/// Waits that are slept through after that, at first and at most: twice as many each time, and half
/// as many after as many polls without it.
const FIRST_PAUSE: u32 = 64;
const LAST_PAUSE: u32 = 4096;
/// A longer wait counts as this one, lest a device that stalled once be slept for long after.
const LONGEST_NS: u64 = 4 * MOST_MEAN_NS;
/// Weight of a new wait in the mean, one part in this many.
const FOLLOW: u64 = 8;

/// Mean of the waits of one kind, and the decision that follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Polling {
    mean_ns: u64,
    /// Waits that are slept through before the next poll.
    asleep: u32,
    pause: u32,
    /// Polls since the processor was last wanted, or since the pause was last halved.
    calm: u32,
    stats: PollingStats,
}

/// Counts of waits by their end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PollingStats {
    /// Polls that ended with what they waited for.
    pub polled: u64,
    /// Polls that were given up, and slept on.
    pub in_vain: u64,
    /// Waits that were slept through from their beginning.
    pub slept: u64,
    /// Polls during which something else had the processor.
    pub interrupted: u64,
}

impl Default for Polling {
    fn default() -> Self {
        Polling::new()
    }
}

impl Polling {
    /// Nothing is known yet: the first wait is polled for.
    pub const fn new() -> Polling {
        let stats = PollingStats { polled: 0, in_vain: 0, slept: 0, interrupted: 0 };
        Polling { mean_ns: 0, asleep: 0, pause: FIRST_PAUSE, calm: 0, stats }
    }

    /// Begins a wait. Returns how many nanoseconds to poll at most; 0: do not poll.
    pub fn begin(&mut self) -> u64 {
        if self.asleep > 0 {
            self.asleep -= 1;
            self.stats.slept += 1;
            return 0;
        }
        2 * self.mean_ns.min(MOST_MEAN_NS) + SLACK_NS
    }

    /// A wait that was polled for is over, after `ns`: while it was polled for, or (`came` is
    /// false) later. The longest time that the poll did not look was `gap_ns`.
    pub fn end(&mut self, ns: u64, came: bool, gap_ns: u64) {
        *(if came { &mut self.stats.polled } else { &mut self.stats.in_vain }) += 1;
        if gap_ns >= GAP_NS {
            self.stats.interrupted += 1;
            (self.asleep, self.calm) = (self.pause, 0);
            self.pause = (self.pause * 2).min(LAST_PAUSE);
            return;
        }
        self.calm += 1;
        if self.calm >= self.pause && self.pause > FIRST_PAUSE {
            (self.pause, self.calm) = (self.pause / 2, 0);
        }
        self.mean_ns = (self.mean_ns * (FOLLOW - 1) + ns.min(LONGEST_NS)) / FOLLOW;
        if self.mean_ns > MOST_MEAN_NS {
            self.asleep = self.asleep.max(PROBE);
        }
    }

    /// Counts of waits so far.
    pub fn stats(&self) -> PollingStats {
        self.stats
    }

    /// Checks what always holds.
    pub fn validate(&self) -> Result<(), String> {
        if !(FIRST_PAUSE..=LAST_PAUSE).contains(&self.pause) || self.asleep > LAST_PAUSE {
            return Err(format!("a pause of {} waits, {} to come", self.pause, self.asleep));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Makes `waits` waits of `ns` nanoseconds each; returns how many were polled to their end.
    fn polled(p: &mut Polling, waits: u32, ns: u64) -> u32 {
        let mut n = 0;
        for _ in 0..waits {
            let most = p.begin();
            if most > 0 {
                p.end(ns, ns <= most, 0);
                n += u32::from(ns <= most);
            }
            p.validate().unwrap();
        }
        n
    }

    #[test]
    fn what_comes_soon_is_polled_for_and_what_takes_long_is_not() {
        let mut p = Polling::new();
        assert!(polled(&mut p, 1000, 30_000) > 990);
        // A slow device: but for the first few, one of 65 waits is polled for, and no longer than
        // twice the longest mean.
        polled(&mut p, 1000, 5_000_000);
        let before = p.stats();
        assert_eq!(polled(&mut p, 6500, 5_000_000), 0);
        assert_eq!(p.stats().in_vain - before.in_vain, 100);
        // It is fast again, which is found out.
        polled(&mut p, 1500, 30_000);
        assert_eq!(polled(&mut p, 1000, 30_000), 1000);
    }

    #[test]
    fn one_long_wait_changes_little() {
        let mut p = Polling::new();
        polled(&mut p, 100, 30_000);
        polled(&mut p, 1, 10_000_000_000);
        assert_eq!(polled(&mut p, 100, 30_000), 100);
    }

    #[test]
    fn who_is_interrupted_leaves_the_processor_for_longer_each_time() {
        let mut p = Polling::new();
        polled(&mut p, 100, 30_000);
        let mut pauses = Vec::new();
        for _ in 0..9 {
            assert!(p.begin() > 0);
            p.end(3_000_000, true, GAP_NS);
            let slept = p.stats().slept;
            while p.begin() == 0 {}
            p.end(30_000, true, 0);
            pauses.push(p.stats().slept - slept);
        }
        assert_eq!(pauses, [64, 128, 256, 512, 1024, 2048, 4096, 4096, 4096]);
        // Nobody else wants it for long: the next pause is short again.
        polled(&mut p, 10_000, 30_000);
        p.end(3_000_000, true, GAP_NS);
        assert_eq!(p.asleep, FIRST_PAUSE);
    }

    proptest! {
        /// In any sequence no poll is longer than twice the longest mean and the slack, and the
        /// state holds.
        #[test]
        fn polls_are_bounded(waits in prop::collection::vec((0u64..u64::MAX, any::<bool>(), 0u64..1_000_000), 1..500)) {
            let mut p = Polling::new();
            for (ns, came, gap) in waits {
                let most = p.begin();
                prop_assert!(most <= 2 * MOST_MEAN_NS + SLACK_NS);
                if most > 0 {
                    p.end(ns, came, gap);
                }
                prop_assert!(p.validate().is_ok());
            }
        }
    }
}
