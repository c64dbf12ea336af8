//! Counters of the sizes of folios: `hugepages-<size>kB/stats`.

use std::fmt;

use crate::ids::MAX_ORDER;

macro_rules! size_counters {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A counter of `hugepages-<size>kB/stats`, in folios.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(usize)]
        pub enum SizeCounter { $($(#[$doc])* $variant,)* }

        impl SizeCounter {
            /// All counters, in the order in which they are printed.
            pub const ALL: &'static [SizeCounter] = &[$(SizeCounter::$variant,)*];

            /// The kernel's name for it.
            pub fn name(self) -> &'static str {
                match self { $(SizeCounter::$variant => $name,)* }
            }
        }
    };
}

size_counters! {
    /// Made by a first touch.
    AnonFaultAlloc = "anon_fault_alloc",
    /// First touches that made a smaller folio than they wanted.
    AnonFaultFallback = "anon_fault_fallback",
    /// Fallbacks because the memcg had no room.
    AnonFaultFallbackCharge = "anon_fault_fallback_charge",
    /// Read whole from swap.
    Swpin = "swpin",
    /// Sent whole to swap.
    Swpout = "swpout",
    /// Split, since swap had no range for it.
    SwpoutFallback = "swpout_fallback",
    /// Split, for any reason.
    Split = "split",
}

/// The counters of every size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SizeStats([[u64; SizeCounter::ALL.len()]; MAX_ORDER as usize]);

impl SizeStats {
    /// The value of one counter for one order above 0.
    pub fn get(&self, order: u8, c: SizeCounter) -> u64 {
        self.0[usize::from(order) - 1][c as usize]
    }

    pub(crate) fn add(&mut self, order: u8, c: SizeCounter) {
        self.0[usize::from(order) - 1][c as usize] += 1;
    }

    /// Order, counter and value, without the sizes that nothing happened to.
    pub fn iter(&self) -> impl Iterator<Item = (u8, SizeCounter, u64)> + '_ {
        let used = (1..=MAX_ORDER).filter(|&o| self.0[usize::from(o) - 1] != [0; SizeCounter::ALL.len()]);
        used.flat_map(move |o| SizeCounter::ALL.iter().map(move |&c| (o, c, self.get(o, c))))
    }

    /// The directory of an order, as `hugepages-64kB`.
    pub fn directory(order: u8) -> impl fmt::Display {
        struct Directory(u8);
        impl fmt::Display for Directory {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "hugepages-{}kB", 4u32 << self.0)
            }
        }
        Directory(order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_kernels() {
        assert_eq!(SizeStats::directory(4).to_string(), "hugepages-64kB");
        let mut s = SizeStats::default();
        s.add(9, SizeCounter::Swpout);
        assert_eq!((s.get(9, SizeCounter::Swpout), s.iter().count()), (1, SizeCounter::ALL.len()));
    }
}
