//! `vmpressure` of the root: passes over the machine tell how much they took off lists, and now and
//! then a worker is woken.
//!
//! Mechanism: `docs/mechanisms.md#ticks`.

/// `vmpressure_win`: pages from one time that the worker is woken to the next.
const WINDOW_PAGES: u64 = 512;

/// Pages that passes over the machine have scanned since the worker was last woken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Vmpressure {
    tree_scanned: u64,
}

impl Vmpressure {
    /// Adds the pages `scanned` by a pass; whether the worker is woken.
    pub(crate) fn note(&mut self, scanned: u64) -> bool {
        self.tree_scanned += scanned;
        let is_due = self.tree_scanned >= WINDOW_PAGES;
        if is_due {
            self.tree_scanned = 0;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::Vmpressure;

    #[test]
    fn the_worker_is_woken_for_a_window() {
        let mut v = Vmpressure::default();
        let woken = [511, 1, 300, 211, 1, 2000, 511].map(|scanned| v.note(scanned));
        assert_eq!(woken, [false, true, false, false, true, true, false]);
    }
}
