//! Misses of a cell: by access and by window.

use super::cell::{MissBits, MissSink};

/// Misses in equal windows of the trace.
#[derive(Clone, Debug)]
pub struct Windows {
    accesses: u64,
    misses: Vec<u64>,
}

impl Windows {
    /// Begins `windows` windows over a trace of `accesses` accesses; none is empty.
    pub fn new(windows: usize, accesses: usize) -> Windows {
        Windows { accesses: accesses as u64, misses: vec![0; windows.clamp(1, accesses.max(1))] }
    }

    /// The misses of each window.
    pub fn into_misses(self) -> Vec<u64> {
        self.misses
    }

    /// The access at which window number `window` of `windows` begins.
    pub fn begin(window: usize, windows: usize, accesses: u64) -> u64 {
        // The first access of this window: at * windows / accesses rounds down.
        (window as u128 * u128::from(accesses)).div_ceil(windows as u128) as u64
    }
}

/// Misses as bits, as counts by window, as both or as neither.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    /// A bit an access.
    pub bits: Option<MissBits>,
    /// A number a window.
    pub windows: Option<Windows>,
}

impl Recorder {
    /// Whether it keeps anything.
    pub fn keeps(&self) -> bool {
        self.bits.is_some() || self.windows.is_some()
    }
}

impl MissSink for Recorder {
    fn miss(&mut self, at: u64) {
        if let Some(bits) = &mut self.bits {
            bits.miss(at);
        }
        if let Some(w) = &mut self.windows {
            let window = u128::from(at) * w.misses.len() as u128 / u128::from(w.accesses);
            w.misses[window as usize] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_cover_the_trace() {
        for (accesses, windows) in [(10usize, 3usize), (7, 7), (5, 9), (1000, 16), (1, 1)] {
            let mut r = Recorder { windows: Some(Windows::new(windows, accesses)), bits: None };
            (0..accesses as u64).for_each(|at| r.miss(at));
            let misses = r.windows.map(Windows::into_misses).unwrap_or_default();
            let begin = |w| Windows::begin(w, misses.len(), accesses as u64);
            for (w, &n) in misses.iter().enumerate() {
                assert_eq!(n, begin(w + 1) - begin(w), "window {w} of {windows} over {accesses}");
                assert!(n > 0);
            }
        }
    }
}
