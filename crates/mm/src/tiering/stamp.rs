//! When a page was marked, in the few bits that a folio has for it.
//!
//! Pages of slow nodes have no use for the field that holds CPU and process of the last hint fault,
//! so the time goes there. Its width depends on what else is in the flags of a folio: arithmetic is
//! modular, and with 12 bits latencies alias every 4096 ms.
//!
//! Mechanism: `docs/mechanisms.md#hint-faults`.

/// Bits of a stamp below which low bits of the time are dropped: `PAGE_ACCESS_TIME_MIN_BITS`.
const MIN_BITS: u32 = 12;

/// A time in the width of a [`StampClock`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stamp(pub u32);

impl Stamp {
    /// The stamp of a folio that was not marked since it came to slow memory: all bits are set, as
    /// Linux leaves them.
    pub const NONE: Stamp = Stamp(u32::MAX);
}

/// Makes stamps and reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StampClock {
    bits: u32,
    /// Low bits of milliseconds that are dropped.
    shift: u32,
    /// Factor by which the clock goes faster: a machine whose sizes and times were divided by it.
    speed: u64,
}

impl StampClock {
    /// Bits of a stamp on x86-64 with 8192 CPUs: 8 for the process and 13 for the CPU.
    pub const DEFAULT_BITS: u32 = 21;

    /// A clock of `bits` bits that goes `speed` times as fast as the time that it is given.
    ///
    /// # Errors
    /// Not 1 to 32 bits.
    pub fn new(bits: u32, speed: u64) -> Result<StampClock, String> {
        match (1..=32).contains(&bits) {
            true => Ok(StampClock { bits, shift: MIN_BITS.saturating_sub(bits), speed: speed.max(1) }),
            false => Err(format!("a time stamp has 1 to 32 bits, not {bits}")),
        }
    }

    fn mask(self) -> u64 {
        (1 << self.bits) - 1
    }

    /// Milliseconds by this clock.
    #[inline]
    pub fn ms(self, now_ns: u64) -> u64 {
        (u128::from(now_ns) * u128::from(self.speed) / 1_000_000) as u64
    }

    /// The stamp of a time.
    #[inline]
    pub fn stamp(self, now_ns: u64) -> Stamp {
        Stamp(((self.ms(now_ns) >> self.shift) & self.mask()) as u32)
    }

    /// Milliseconds from the stamp to now, modulo [`StampClock::wraps_ms`].
    #[inline]
    pub fn latency_ms(self, now_ns: u64, stamp: Stamp) -> u64 {
        let then_ms = u64::from(stamp.0) << self.shift;
        self.ms(now_ns).wrapping_sub(then_ms) & (self.wraps_ms() - 1)
    }

    /// Latencies that differ by this are the same to it.
    pub fn wraps_ms(self) -> u64 {
        1 << (self.bits + self.shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn latency_is_exact_below_the_wrap_and_aliases_beyond_it() {
        for bits in [12, 17, 21, 32] {
            let clock = StampClock::new(bits, 1).unwrap();
            assert_eq!(clock.wraps_ms(), 1 << bits);
            let wrap = clock.wraps_ms();
            // Marked just before the counter wraps, touched just after.
            let marked = (5 * wrap - 3) * MS;
            let stamp = clock.stamp(marked);
            assert_eq!(u64::from(stamp.0), wrap - 3);
            assert_eq!(clock.latency_ms(marked + 7 * MS, stamp), 7, "{bits} bits");
            assert_eq!(clock.latency_ms(marked + (wrap - 1) * MS, stamp), wrap - 1);
            assert_eq!(clock.latency_ms(marked + wrap * MS, stamp), 0);
            assert_eq!(clock.latency_ms(marked + (wrap + 9) * MS, stamp), 9);
        }
    }

    #[test]
    fn twelve_bits_take_a_page_of_a_minute_for_a_hot_one() {
        let clock = StampClock::new(12, 1).unwrap();
        let stamp = clock.stamp(0);
        assert_eq!(clock.latency_ms(4096 * 14 * MS + 200 * MS, stamp), 200);
        assert_eq!(StampClock::new(17, 1).unwrap().latency_ms(57_544 * MS, stamp), 57_544);
    }

    #[test]
    fn narrow_stamps_drop_low_bits_and_never_see_less_than_passed() {
        let clock = StampClock::new(8, 1).unwrap();
        assert_eq!(clock.wraps_ms(), 4096);
        for marked_ms in 0..5000 {
            let stamp = clock.stamp(marked_ms * MS);
            assert!(stamp.0 < 256);
            // Up to 15 ms of the past are added, because the stamp was cut.
            let seen = clock.latency_ms((marked_ms + 100) * MS, stamp);
            assert!((100..=115).contains(&seen), "{marked_ms}: {seen}");
        }
        let fast = StampClock::new(17, 64).unwrap();
        assert_eq!(fast.latency_ms(10 * MS + 31_250_000, fast.stamp(10 * MS)), 2000);
        assert!(StampClock::new(0, 1).is_err() && StampClock::new(33, 1).is_err());
    }
}
