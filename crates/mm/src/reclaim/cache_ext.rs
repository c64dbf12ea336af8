//! Shrinking the files of a group by a policy beside its lists: it proposes, reclaim decides, and
//! where it proposes too little, the two lists say the rest.
//!
//! Mechanism: `docs/mechanisms.md#policies-as-plug-ins`.

use crate::folio::flags::FolioFlags;
use crate::ids::{FolioId, LruvecId};
use crate::lru::lru_list::{ACTIVE_FILE, FILE, INACTIVE_FILE};
use crate::lru::pages::ResidentPages;
use crate::reclaim::Reclaim;
use crate::world::World;

/// Folios that the policy proposes at a time, as in cache_ext.
const MOST_PROPOSED: u64 = 32;

impl<W: World> Reclaim<'_, W> {
    /// Evicts about `nr` pages of files; returns how many went.
    #[inline(never)]
    pub(crate) fn shrink_by_policy(&mut self, v: LruvecId, nr: u64) -> u64 {
        self.mem.pages.drain_batches();
        self.check_write_queue();
        let (mut reclaimed, mut left) = (0, nr);
        while left > 0 {
            let asked = left.min(MOST_PROPOSED);
            left -= asked;
            let list = self.isolate_proposed(v, asked as usize);
            let taken = list.iter().map(|&f| self.mem.pages.folios.st(f).nr_pages()).sum();
            if taken == 0 {
                return reclaimed + self.shrink_by_lists(v, left + asked);
            }
            // A folio that stays learns that it was used: nobody but reclaim sees touches by
            // mapping.
            let proposed = list.clone();
            reclaimed += self.shrink_isolated(v, FILE, list, (taken, taken), false);
            for f in proposed {
                if self.mem.pages.folios.is_attached(f) && self.mem.pages.folios.st(f).has(FolioFlags::MAPPED) {
                    self.mem.pages.cache_ext_accessed(f);
                }
            }
        }
        reclaimed
    }

    /// Takes what the policy proposes, and can be taken, off the lists.
    fn isolate_proposed(&mut self, v: LruvecId, nr: usize) -> Vec<FolioId> {
        let (room, mut list) = (self.mem.room_of(v), self.mem.pages.take_scratch());
        let Some(ext) = &mut self.mem.pages.ext else { return list };
        let proposed = ext.evict(v, nr, room);
        self.mem.pages.isolate_chosen(v, &proposed, &mut list);
        if let Some(ext) = &mut self.mem.pages.ext {
            ext.return_scratch(proposed);
        }
        list
    }

    /// Falls back to shrinking by the two lists.
    fn shrink_by_lists(&mut self, v: LruvecId, nr: u64) -> u64 {
        let size = &self.mem.pages.lruvecs[v.index()].size;
        if size[INACTIVE_FILE] < nr && size[ACTIVE_FILE] > 0 {
            self.shrink_active_list(v, FILE, nr);
        }
        self.shrink_inactive_list(v, FILE, nr)
    }
}

impl ResidentPages {
    /// Takes the chosen file folios off their lists, as far as they can be isolated.
    fn isolate_chosen(&mut self, v: LruvecId, chosen: &[FolioId], out: &mut Vec<FolioId>) {
        for &f in chosen {
            if !self.folios.is_attached(f) {
                continue;
            }
            if self.folios.lruvec(f) != v {
                // Its group changed: the policy of the new one has it from now on.
                self.cache_ext_accessed(f);
                continue;
            }
            let st = self.folios.st(f);
            // A folio that was proposed twice has lost its flag by now. One that is being read
            // cannot go: where nothing else is proposed, the lists say what does.
            if st.has(FolioFlags::LRU) && st.is_file() && !st.has(FolioFlags::UNEVICTABLE | FolioFlags::LOCKED) {
                self.lruvec_del(f, true);
                self.folios.clear(f, FolioFlags::LRU);
                out.push(f);
            }
        }
    }
}
