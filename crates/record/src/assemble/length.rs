//! How long a file was when it was first seen.
//!
//! The length is asked for when the first event of the file is taken, a while after the event
//! happened: by then the file may have grown by writes whose events are still to come.

use std::ops::Range;

const PAGE_SHIFT: u32 = 12;

/// The length of a file at its first event.
#[derive(Clone, Debug)]
pub(super) struct FirstLength {
    /// In pages, as it was found …
    found: u64,
    /// … at this time, in nanoseconds.
    found_ns: u64,
    /// The last run of writes until then that go on where the one before ended, in bytes.
    run: Range<u64>,
}

impl FirstLength {
    pub(super) fn new(pages: u64, found_ns: u64) -> FirstLength {
        FirstLength { found: pages, found_ns, run: 0..0 }
    }

    /// A write of these bytes.
    pub(super) fn write(&mut self, time_ns: u64, bytes: Range<u64>) {
        if time_ns > self.found_ns {
            return;
        }
        if (self.run.start..=self.run.end).contains(&bytes.start) && !self.run.is_empty() {
            self.run.end = self.run.end.max(bytes.end);
        } else {
            self.run = bytes;
        }
    }

    /// Length in pages. If the run of writes ends with the file, it may have made the file so long:
    /// then the file ends in front of the run. If the writes found their pages in place, they say
    /// so by themselves: a page that is touched exists.
    pub(super) fn pages(&self) -> u64 {
        let has_grown = !self.run.is_empty() && pages(self.run.end) >= self.found;
        if has_grown { pages(self.run.start).min(self.found) } else { self.found }
    }
}

/// Number of pages that `bytes` bytes take.
fn pages(bytes: u64) -> u64 {
    bytes.div_ceil(1 << PAGE_SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_before_the_length_was_found_is_not_in_it() {
        // Appends since byte 5000, of which the last two came after the look.
        let mut first = FirstLength::new(4, 100);
        for (time_ns, from) in [(50, 5000), (80, 9000), (100, 13_000), (101, 17_000), (140, 21_000)] {
            first.write(time_ns, from..from + 4000);
        }
        // Up to byte 17,000 are five pages: no less than were found.
        assert_eq!(first.pages(), 2, "page 1 had 904 bytes already");
        let mut first = FirstLength::new(9, 100);
        first.write(50, 0..5000);
        assert_eq!(first.pages(), 9, "the write ends in front of the end");
        let mut first = FirstLength::new(2, 100);
        first.write(20, 100..200);
        first.write(50, 0..8192);
        assert_eq!(first.pages(), 0, "a new file");
        first.write(150, 0..1 << 20);
        assert_eq!(first.pages(), 0);
        assert_eq!(FirstLength::new(7, 0).pages(), 7);
    }
}
