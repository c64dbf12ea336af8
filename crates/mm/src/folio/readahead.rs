//! History of the faults on a mapping, to read ahead of the next ones.

/// History of the swap-ins of a mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SwapReadahead {
    pub(crate) last: u32,
    pub(crate) window: u32,
    pub(crate) hits: u32,
}

impl SwapReadahead {
    /// Pages of the next window: two more than the hits of the last one, up to a power of two, and
    /// at least half of the last one.
    pub(crate) fn next_window(&mut self, page: u32, max: u32) -> u32 {
        let wanted = std::mem::take(&mut self.hits) + 2;
        let near = page.abs_diff(self.last) == 1;
        let grown = if wanted == 2 && !near { 1 } else { wanted.next_power_of_two().max(4) };
        self.window = grown.min(max).max(self.window / 2);
        self.window
    }
}

/// Runs of ascending faults, several at a time, for threads share a mapping: the page where each is
/// expected to go on, and its window in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Streams {
    runs: [(u32, u32); Streams::MAX],
    /// Index of the run that is given up next.
    oldest: usize,
    /// Index of the run that the last fault belongs to.
    current: usize,
}

impl Streams {
    const MAX: usize = 8;

    /// Pages of the window of a fault: one, unless the fault goes on where a run is expected to;
    /// then twice the last window. Programs have many runs of two or three pages.
    pub(crate) fn next_window(&mut self, page: u32, max: u32) -> u32 {
        // Pages in memory within a window let the run skip ahead.
        let goes_on = |&(end, window): &(u32, u32)| window > 0 && (end..end + window).contains(&page);
        if let Some(i) = self.runs.iter().position(goes_on) {
            let window = (self.runs[i].1 * 2).min(max);
            (self.runs[i], self.current) = ((page + window, window), i);
            return window;
        }
        (self.runs[self.oldest], self.current) = ((page + 1, 1), self.oldest);
        self.oldest = (self.oldest + 1) % Streams::MAX;
        1
    }

    /// Notes that there was no room to read on from this page: the run goes on there.
    pub(crate) fn cut(&mut self, page: u32) {
        self.runs[self.current].0 = page;
    }
}
