//! Figures of the runs.

use super::kernel::Injected;

/// Figures of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    pub(super) steps: u64,
    pub(super) accesses: u64,
    pub(super) writes: u64,
    pub(super) store_calls: u64,
    pub(super) faults: u64,
    pub(super) signals: u64,
    pub(super) swapped_in: u64,
    pub(super) swapped_out: u64,
    pub(super) rescued: u64,
    pub(super) throttled: u64,
    pub(super) given_up: u64,
    pub(super) poisoned: u64,
    pub(super) resized: u64,
    pub(super) resizes_refused: u64,
    pub(super) store_faults: u64,
    pub(super) injected: u64,
    pub(super) of_kernel: Injected,
    pub(super) digest: u64,
}

impl Figures {
    pub(super) fn add(&mut self, other: &Figures) {
        self.steps += other.steps;
        self.accesses += other.accesses;
        self.writes += other.writes;
        self.store_calls += other.store_calls;
        self.faults += other.faults;
        self.signals += other.signals;
        self.swapped_in += other.swapped_in;
        self.swapped_out += other.swapped_out;
        self.rescued += other.rescued;
        self.throttled += other.throttled;
        self.given_up += other.given_up;
        self.poisoned += other.poisoned;
        self.resized += other.resized;
        self.resizes_refused += other.resizes_refused;
        self.store_faults += other.store_faults;
        self.injected += other.injected;
        self.of_kernel.add(&other.of_kernel);
        self.digest ^= other.digest;
    }

    /// A test that nothing goes wrong in proves nothing.
    pub(super) fn check_that_all_was_met(&self) {
        let k = &self.of_kernel;
        for (what, n) in [
            ("swapped in", self.swapped_in),
            ("rescued", self.rescued),
            ("throttled", self.throttled),
            ("given up", self.given_up),
            ("lost", self.poisoned),
            ("signals", self.signals),
            ("limits that changed", self.resized),
            ("limits that could not be met", self.resizes_refused),
            ("faults of the store", self.store_faults),
            ("fills refused", k.fills_refused),
            ("fills that were short", k.fills_short),
            ("moves to be repeated", k.moves_again),
            ("moves of pages that are held", k.moves_busy),
            ("moves that were short", k.moves_short),
            ("moves that were misreported", k.moves_misreported),
            ("moves that failed", k.moves_failed),
            ("moves that lost a page", k.moves_lost),
            ("places that were taken", k.places_taken),
            ("stray wakes", k.stray_wakes),
            ("pages of which nothing tells", k.written_unknown),
        ] {
            assert!(n > 0, "there were no {what}");
        }
    }
}
