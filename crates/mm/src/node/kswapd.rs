//! kswapd of a node: whether it is awake, and the run that it is at.

use crate::ids::MAX_NR_ZONES;
use crate::scan::{MAX_RECLAIM_RETRIES, ScanControl};

/// kswapd of a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kswapd {
    /// Woken and not asleep again.
    pub(crate) awake: bool,
    /// The run under way.
    pub(crate) run: Option<ScanControl>,
    /// Runs in a row that reclaimed nothing.
    pub(crate) failures: u32,
    /// Pages that the run counted as reclaimed and that are still moving to a slower node: the move
    /// may fail.
    pub(crate) on_their_way: u64,
    pub(crate) slept_at_ns: u64,
    /// The highest zone of which a caller has wanted pages since kswapd last looked; none: no
    /// caller.
    pub(crate) wanted: Option<usize>,
    /// The highest zone of the run under way, or of the last one.
    pub(crate) highest: usize,
    /// Pages of watermark boost that the run makes up for, by zone.
    pub(crate) boosts: [u64; MAX_NR_ZONES],
}

impl Kswapd {
    /// Too many runs failed: direct reclaim must do.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.failures >= MAX_RECLAIM_RETRIES
    }
}

/// Next step of kswapd.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KswapdStep {
    /// There is more to do: call again when it has the processor.
    Again,
    /// kswapd sleeps until [`crate::Effect::WakeKswapd`].
    Sleep,
}
