//! What limits and advice ask of the memory of a region, beside serving faults.

use std::time::Instant;

/// All of it. With the default, none of it happens.
pub(super) struct Control {
    /// `memory.high` is set: whoever faulted goes on when the engine lets it.
    pub(super) holds: bool,
    /// Pages that are in place and whose faults were not let go yet.
    pub(super) held: Vec<u32>,
    /// How long they are to wait: the engine's last word.
    pub(super) sleep_ns: u64,
    /// Pages whose faults wait, and until when.
    pub(super) sleepers: Vec<(Instant, Vec<u32>)>,
    /// Somebody began to wait since the evictor looked.
    pub(super) new_sleepers: bool,
    /// Reclaim stops when so many pages are on their way out.
    pub(super) most_leaving: usize,
    /// A limit is being lowered: that there is nothing to reclaim is no verdict.
    pub(super) lowering: bool,
    /// The owner gives pages up.
    pub(super) dropping: bool,
}

impl Default for Control {
    fn default() -> Control {
        Control {
            holds: false,
            held: Vec::new(),
            sleep_ns: 0,
            sleepers: Vec::new(),
            new_sleepers: false,
            most_leaving: usize::MAX,
            lowering: false,
            dropping: false,
        }
    }
}

impl Control {
    /// Whether a fault on the page is served, and waits.
    pub(super) fn is_asleep(&self, page: u32) -> bool {
        self.held.contains(&page) || self.sleepers.iter().any(|(_, pages)| pages.contains(&page))
    }

    pub(super) fn bytes(&self) -> usize {
        let pages = self.held.capacity() + self.sleepers.iter().map(|(_, p)| p.capacity()).sum::<usize>();
        pages * size_of::<u32>() + self.sleepers.capacity() * size_of::<(Instant, Vec<u32>)>()
    }
}
