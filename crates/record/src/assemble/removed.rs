//! Pages that leave the page cache.

use super::{Assembler, Inode};
use crate::event::Event;
use refault_trace::{AdviceKind, RecordKind};
use rustc_hash::FxHashSet;
use std::ops::Range;

impl Assembler {
    /// `pagers_out` are the threads of DAMON.
    pub(crate) fn with_pagers_out(self, pagers_out: FxHashSet<u32>) -> Assembler {
        Assembler { pagers_out, ..self }
    }

    /// Reclaim takes it, or something else. DAMON reclaims by address, though there may be room: a
    /// replay does that, too.
    pub(super) fn delete(&mut self, event: &Event, inode: Inode, pages: Range<u64>) {
        if !self.files.contains_key(&inode) {
            return;
        }
        let pages_out = self.pagers_out.contains(&event.tid);
        let thread = self.thread(event.tid);
        let reclaims = thread.reclaims > 0 || thread.pages_out;
        let reclaims = reclaims || pages_out || self.reclaimers.contains(&event.tid);
        if pages_out {
            self.kernel(event, inode, pages.clone(), RecordKind::Advise(AdviceKind::PageOut));
        }
        self.residents.changed(inode, pages.clone(), true);
        if !reclaims && let Some(file) = self.files.get_mut(&inode) {
            // A truncation drops pages, too.
            file.doubted = true;
        }
        self.kernel(event, inode, pages, if reclaims { RecordKind::Evict } else { RecordKind::Drop });
    }
}
