//! Timer ticks and slices: when a thread loses its CPU to another one.
//!
//! At a tick that finds its slice used up a thread gives way, and who is woken takes the CPU at
//! once. Since Linux 6.6 both hold for who was served less (`threads/served.rs`).
//!
//! Mechanism: `docs/mechanisms.md#ticks`.

/// `base_slice_ns` of Linux 6.12 with one CPU, and the CPUs up to which it grows with their
/// logarithm.
const BASE_SLICE_NS: u64 = 750_000;
const MOST_CPUS: u32 = 8;

/// Ticks of a machine, and how long a slice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticks {
    tick_ns: u64,
    slice_ns: u64,
}

impl Ticks {
    pub(crate) fn new(tick_ns: u64, cpus: u32) -> Ticks {
        Ticks { tick_ns, slice_ns: BASE_SLICE_NS * u64::from(1 + cpus.clamp(1, MOST_CPUS).ilog2()) }
    }

    /// The tick that finds a slice used up that began then.
    pub(crate) fn end_of(self, began_ns: u64) -> u64 {
        (began_ns + self.slice_ns).next_multiple_of(self.tick_ns)
    }

    /// The first tick after that.
    pub(crate) fn next(self, now_ns: u64) -> u64 {
        self.last(now_ns) + self.tick_ns
    }

    /// The last tick until then.
    pub(crate) fn last(self, now_ns: u64) -> u64 {
        now_ns - now_ns % self.tick_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_ends_at_the_first_tick_that_finds_it_used_up() {
        let one = Ticks::new(4_000_000, 1);
        assert_eq!(one.end_of(0), 4_000_000);
        assert_eq!(one.end_of(3_250_000), 4_000_000, "it is just used up");
        assert_eq!(one.end_of(3_250_001), 8_000_000, "it is not");
        assert_eq!(one.last(7_999_999), 4_000_000);
        assert_eq!(Ticks::new(4_000_000, 4).slice_ns, 3 * 750_000);
        assert_eq!(Ticks::new(4_000_000, 4096).slice_ns, 4 * 750_000);
    }
}
