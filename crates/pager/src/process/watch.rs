//! A look at a run while it runs, once a second: what `refault run --metrics` and `refault top`
//! show.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use refault_mm::Gauge;

use super::{Shared, TreeStats};

/// From one look to the next.
const EVERY: Duration = Duration::from_secs(1);

/// A run as it is now.
#[derive(Clone, Debug)]
pub struct Live {
    /// Counters and memory of the run so far.
    pub stats: TreeStats,
    /// Since the start.
    pub wall: Duration,
    /// The processes that are served.
    pub pids: Vec<i32>,
    /// The sizes of the engine's lists and more, under their kernel names, in pages.
    pub gauges: Vec<Gauge>,
    /// The file `lru_gen` of the engine; without generations it has none.
    pub lru_gen: String,
    /// Pages that are out of memory.
    pub swap_pages: u64,
    /// Pages that may be.
    pub swap_max_pages: u64,
}

/// Processes that are told.
pub type ProcessWatch = Box<dyn FnMut(&Live) + Send>;

/// Looks until the other end of the channel is gone, and then once more.
pub(super) fn watch(shared: &Arc<Shared>, started: Instant, end: &Receiver<()>, mut tell: ProcessWatch) {
    loop {
        let over = !matches!(end.recv_timeout(EVERY), Err(RecvTimeoutError::Timeout));
        let live = live(shared, started);
        tell(&live);
        if over {
            return;
        }
    }
}

fn live(shared: &Shared, started: Instant) -> Live {
    let core = shared.lock();
    let stats = core.stats();
    Live {
        wall: started.elapsed(),
        pids: core.pids().into_iter().map(|(_, pid)| pid).filter(|&pid| pid > 0).collect(),
        gauges: core.engine.memcg_gauges(core.group),
        lru_gen: core.engine.lru_gen_text(),
        swap_pages: stats.area.pages,
        swap_max_pages: core.swap_pages,
        stats,
    }
}
