//! Whether processors that have nothing to do are kept from halting.
//!
//! A thread that waits for a page from another thread sleeps, and the other thread sleeps until it
//! is asked. If the processor of a thread to wake has halted meanwhile, the wake takes 15 to 25 µs
//! in a virtual machine: as much as all else that is done about a page in a compressed pool. A
//! processor that polls for work instead is there at once, but takes power. So processors are kept
//! awake while wakes come fast, and for a moment after.

/// Wakes after which their rate is looked at, while processors may halt.
pub const LOOK_WAKES: u64 = 64;
/// Nanoseconds after which the rate is looked at, while processors are kept awake.
pub const LOOK_NS: u64 = 4_000_000;
/// Nanoseconds per wake below which processors are kept awake: two wakes of 20 µs are a sixth of
/// the time between wakes.
const BEGIN_NS: u64 = 250_000;
/// Nanoseconds per wake from which on they may halt again. It is longer, so that a rate near one
/// limit does not change the state every few milliseconds: each change interrupts all processors.
const END_NS: u64 = 1_000_000;

/// Rate of wakes, and whether processors are kept awake for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuLatencyQos {
    may: bool,
    awake: bool,
    /// Time of the last look in nanoseconds, and the number of wakes until then.
    at_ns: u64,
    wakes: u64,
    stats: CpuLatencyQosStats,
}

/// How often, and for how long, processors were kept awake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuLatencyQosStats {
    /// Times that it began.
    pub times: u64,
    /// Nanoseconds, to the last look.
    pub ns: u64,
}

impl CpuLatencyQos {
    /// For a machine with `processors` processors: all of them may be kept awake if there are at
    /// most `most`, or else none.
    pub fn new(processors: usize, most: usize) -> CpuLatencyQos {
        CpuLatencyQos {
            may: processors <= most,
            awake: false,
            at_ns: 0,
            wakes: 0,
            stats: CpuLatencyQosStats::default(),
        }
    }

    /// Whether it can come to anything.
    pub fn may(&self) -> bool {
        self.may
    }

    /// Looks at the rate at `now_ns`, after `wakes` wakes in all. Returns whether processors are
    /// kept awake from now on.
    pub fn look(&mut self, now_ns: u64, wakes: u64) -> bool {
        let (ns, new) = (now_ns.saturating_sub(self.at_ns), wakes.saturating_sub(self.wakes));
        (self.at_ns, self.wakes) = (now_ns, wakes);
        if self.awake {
            self.stats.ns += ns;
            self.awake = ns < new.saturating_mul(END_NS);
        } else {
            self.awake = self.may && new >= LOOK_WAKES && ns < new.saturating_mul(BEGIN_NS);
            self.stats.times += u64::from(self.awake);
        }
        self.awake
    }

    /// Lets processors halt for good, whatever the wakes are: keeping them awake was refused.
    pub fn give_up(&mut self) {
        (self.may, self.awake) = (false, false);
    }

    /// How often, and for how long, processors were kept awake.
    pub fn stats(&self) -> CpuLatencyQosStats {
        self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Wakes at this distance for a while, looked at as a driver does. Whether processors are awake
    /// at the end.
    fn wakes(k: &mut CpuLatencyQos, at: &mut (u64, u64), between_ns: u64, for_ns: u64) -> bool {
        let end = at.0 + for_ns;
        let mut looked = at.0;
        while at.0 < end {
            let step = if k.awake { (looked + LOOK_NS).min(at.0 + between_ns) - at.0 } else { between_ns };
            at.0 += step.max(1);
            at.1 += u64::from(step == between_ns);
            if if k.awake { at.0 >= looked + LOOK_NS } else { at.1.is_multiple_of(LOOK_WAKES) } {
                k.look(at.0, at.1);
                looked = at.0;
            }
        }
        k.awake
    }

    #[test]
    fn awake_while_wakes_come_fast() {
        let (mut k, mut at) = (CpuLatencyQos::new(2, 4), (0, 0));
        assert!(!wakes(&mut k, &mut at, 2_000_000, 1_000_000_000), "one every 2 ms is slow");
        assert!(wakes(&mut k, &mut at, 50_000, 100_000_000));
        assert!(wakes(&mut k, &mut at, 500_000, 100_000_000), "not so fast, but it goes on");
        assert_eq!(k.stats().times, 1);
        assert!(!wakes(&mut k, &mut at, 2_000_000, 20_000_000));
        assert!(!wakes(&mut k, &mut at, 500_000, 100_000_000), "it does not begin for that");
        let ns = k.stats().ns;
        assert!((190_000_000..220_000_000).contains(&ns), "{ns}");
    }

    #[test]
    fn it_ends_at_the_first_look_without_wakes() {
        let mut k = CpuLatencyQos::new(2, 4);
        assert!(k.look(64 * 50_000, 64));
        assert!(!k.look(64 * 50_000 + LOOK_NS, 64));
        // A burst after a long time is not looked at as if it had taken that long for ever.
        assert!(!k.look(60_000_000_000, 128));
        assert!(k.look(60_003_000_000, 192));
    }

    #[test]
    fn not_on_a_machine_of_many_processors_and_not_after_a_refusal() {
        let mut k = CpuLatencyQos::new(64, 4);
        assert!(!k.may() && !k.look(1000, 1_000_000));
        let mut k = CpuLatencyQos::new(4, 4);
        assert!(k.may() && k.look(1000, 1_000_000));
        k.give_up();
        assert!(!k.may() && !k.look(2000, 2_000_000));
    }

    proptest! {
        /// In any sequence it is awake only after wakes that came fast, and never longer than
        /// there was time.
        #[test]
        fn awake_for_a_reason(looks in prop::collection::vec((0u64..1 << 40, 0u64..1 << 40), 1..200)) {
            let mut k = CpuLatencyQos::new(2, 2);
            let (mut last, mut first) = ((0, 0), u64::MAX);
            for (now, wakes) in looks {
                let awake = k.look(now, wakes);
                let (ns, new) = (now.saturating_sub(last.0), wakes.saturating_sub(last.1));
                prop_assert!(!awake || new > 0 && ns / new < END_NS);
                last = (now, wakes);
                first = first.min(now);
                prop_assert!(k.stats().ns <= 200 << 40);
            }
        }
    }
}
