//! Room for who finds none: a pool before a file takes memory that its pages need not be in.

use std::sync::atomic::{AtomicU8, Ordering};

use super::SwapArea;

const NOT_ASKED: u8 = 0;
const ASKED: u8 = 1;
const NONE_LEFT: u8 = 2;

/// Whether the store is asked for memory, and has any to give.
#[derive(Default)]
pub(super) struct Room(AtomicU8);

impl Room {
    /// Something was written: it can be kept elsewhere, perhaps.
    pub(super) fn may_be_there(&self) {
        if self.0.load(Ordering::Relaxed) == NONE_LEFT {
            self.0.store(NOT_ASKED, Ordering::Relaxed);
        }
    }
}

impl SwapArea {
    /// There is no room for a page, and nothing to reclaim. False: the store has none to give
    /// either. True: it is to be asked ([`SwapArea::give_room`]), and the page may be tried again
    /// after that.
    pub fn ask_for_room(&self) -> bool {
        let r = self.room.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |r| (r != NONE_LEFT).then_some(ASKED));
        r.is_ok()
    }

    /// Whether it was asked.
    pub fn is_asked_for_room(&self) -> bool {
        self.room.0.load(Ordering::Relaxed) == ASKED
    }

    /// The pages that were written to memory longest ago go on to the file, if there is one.
    pub fn give_room(&self) {
        let given = self.store.give_room();
        self.room.0.store(if given { NOT_ASKED } else { NONE_LEFT }, Ordering::Relaxed);
    }
}
