//! TODO map

pub(crate) mod dirty;

/// What is dirty, and what the flusher was asked to do about it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writeback {
    pub(crate) queue: dirty::DirtyQueue,
    pub(crate) flush_all: bool,
    pub(crate) flush_due: bool,
    pub(crate) flushing: bool,
    /// Pages whose write failed since the last that went well.
    pub(crate) writes_failed: u64,
}
