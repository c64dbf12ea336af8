//! The worker that writes compressed pages back: its state between two steps.

/// The worker that empties the pool down to the accept threshold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Worker {
    pub(crate) awake: bool,
    /// Whether work is due that the engine must do itself: the driver has no thread for it.
    pub(crate) due: bool,
    pub(crate) failures: u32,
    /// Groups that had something to write back, in this round over all groups.
    pub(crate) attempts: u32,
    /// Index of the group that is next, kept while the worker sleeps.
    pub(crate) next: usize,
}

/// Result of a step of the worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZswapStep {
    /// The worker goes on.
    Again,
    /// The worker has done what it can, and sleeps until [`crate::Effect::WakeZswap`].
    Sleep,
}
