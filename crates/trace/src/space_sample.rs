//! Sample of the pages of a live kernel, which its own filters of events can take: bit tests alone.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// log2 of the pages of a unit, which is kept or left out as a whole: neighbours, most large folios
/// and windows of readahead stay together.
const UNIT_SHIFT: u32 = 6;

/// The smallest sample is one unit in two to the power of this: texts of filters have a page.
const MOST_BITS: u32 = 8;

/// Units of files that are kept: those whose number has the same low bits as the number of their
/// inode, but for the bits of the salt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpaceSample {
    /// Units for which one is kept: a power of two.
    pub one_in: u64,
    /// Bits that differ: another salt keeps other units.
    pub salt: u64,
    /// Pages of a unit.
    pub unit_pages: u64,
}

impl SpaceSample {
    /// A sample of one unit in `one_in`.
    ///
    /// # Errors
    /// A rate that filters of the kernel cannot take, or a salt that is no choice.
    pub fn new(one_in: u64, salt: u64) -> Result<SpaceSample, String> {
        if !one_in.is_power_of_two() || !(2..=1 << MOST_BITS).contains(&one_in) {
            return Err(format!("1/{one_in} is no rate of the kernel's filters; give 1/2, 1/4, ... 1/256"));
        }
        if salt >= one_in {
            return Err(format!("there are {one_in} samples of 1/{one_in}: the salt is 0 to {}", one_in - 1));
        }
        Ok(SpaceSample { one_in, salt, unit_pages: 1 << UNIT_SHIFT })
    }

    /// Bits that are compared.
    pub fn bits(&self) -> u32 {
        self.one_in.trailing_zeros()
    }

    /// The same of a file that may not be trusted: whether it is one that can be.
    pub fn is_possible(&self) -> bool {
        SpaceSample::new(self.one_in, self.salt).as_ref() == Ok(self)
    }

    /// Whether a page is kept.
    #[inline]
    pub fn has(&self, inode: u64, page: u64) -> bool {
        ((page >> UNIT_SHIFT) ^ inode ^ self.salt) & (self.one_in - 1) == 0
    }

    /// The first pages in a range that are kept and of one unit.
    #[inline]
    pub fn first_of(&self, inode: u64, pages: Range<u64>) -> Option<Range<u64>> {
        let unit = pages.start >> UNIT_SHIFT;
        let next = unit + ((inode ^ self.salt).wrapping_sub(unit) & (self.one_in - 1));
        let (start, end) = (next << UNIT_SHIFT, (next + 1) << UNIT_SHIFT);
        let part = pages.start.max(start)..pages.end.min(end);
        (!part.is_empty()).then_some(part)
    }

    /// All pages in a range that are kept, a unit at a time.
    pub fn parts(&self, inode: u64, pages: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let mut left = pages;
        std::iter::from_fn(move || {
            let part = self.first_of(inode, left.clone())?;
            left.start = part.end;
            Some(part)
        })
    }
}

impl FromStr for SpaceSample {
    type Err = String;

    /// A rate, such as `1/64`, or a rate and a salt: `1/64:3`.
    fn from_str(text: &str) -> Result<SpaceSample, String> {
        let wrong = || format!("{text:?} is not a rate; write 1/64, or with a salt 1/64:3");
        let (rate, salt) = text.split_once(':').unwrap_or((text, "0"));
        let one_in = rate.strip_prefix("1/").and_then(|n| n.parse().ok()).ok_or_else(wrong)?;
        SpaceSample::new(one_in, salt.parse().map_err(|_| wrong())?)
    }
}

impl fmt::Display for SpaceSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1 in {} units of {} pages, salt {}", self.one_in, self.unit_pages, self.salt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_in_one_of_the_samples() {
        let all: Vec<_> = (0..8).map(|salt| SpaceSample::new(8, salt).expect("a sample")).collect();
        for (inode, page) in [(0, 0), (5, 63), (5, 64), (1 << 40, 999_999), (u64::MAX, 77)] {
            assert_eq!(all.iter().filter(|sample| sample.has(inode, page)).count(), 1);
        }
    }

    #[test]
    fn ranges_are_cut_to_what_is_kept() {
        let sample = SpaceSample::new(4, 1).expect("a sample");
        // Units 3, 7, 11 of inode 2.
        assert_eq!(sample.first_of(2, 0..1000), Some(192..256));
        assert_eq!(sample.first_of(2, 200..230), Some(200..230));
        assert_eq!(sample.first_of(2, 0..192), None);
        assert_eq!(sample.parts(2, 250..710).collect::<Vec<_>>(), [250..256, 448..512, 704..710]);
        for pages in [0..5000u64, 100..101, 255..257] {
            let kept: Vec<_> = sample.parts(2, pages.clone()).flatten().collect();
            assert_eq!(kept, pages.filter(|&page| sample.has(2, page)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn rates_are_powers_of_two() {
        assert_eq!("1/64".parse(), SpaceSample::new(64, 0));
        assert_eq!("1/64:3".parse(), SpaceSample::new(64, 3));
        for wrong in ["", "64", "1/3", "1/1", "1/512", "1/8:8", "1/8:x", "1/0"] {
            assert!(wrong.parse::<SpaceSample>().is_err(), "{wrong}");
        }
        assert!(!SpaceSample { one_in: 0, salt: 0, unit_pages: 64 }.is_possible());
        assert!(!SpaceSample { one_in: 8, salt: 0, unit_pages: 1 }.is_possible());
    }
}
