//! The worker that writes compressed pages back: where it is.

/// The worker that empties the pool down to the accept threshold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Worker {
    pub(crate) awake: bool,
    /// The driver has no thread for it.
    pub(crate) due: bool,
    pub(crate) failures: u32,
    /// Groups with something to write back, in this round over all of them.
    pub(crate) attempts: u32,
    /// The group that is next; where it stopped the last time it goes on.
    pub(crate) next: usize,
}

/// Result of a step of the worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZswapStep {
    /// It goes on.
    Again,
    /// It has done what it can, and sleeps until [`crate::Effect::WakeZswap`].
    Sleep,
}
