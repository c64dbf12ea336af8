//! Pages of a child of `fork` whose content is lent: it is in the store, as that of the process
//! that it was forked from.

use std::ops::Range;
use std::sync::Arc;

use super::core::{Core, Pending};
use super::maps;
use crate::core::State;
use crate::pagemap::Pagemap;
use crate::store::PageBuf;
use crate::threads::fatal;
use crate::uffd::PAGE;

impl Core {
    /// Whether a page that was lent is of memory that the fork has wiped (`MADV_WIPEONFORK`): then
    /// neither it nor any other of that mapping is lent any more. The kernel did not copy the marks
    /// there; but that alone is no proof, for the parent's may have been made a moment later.
    pub(super) fn was_wiped(&mut self, page: u32, p: Pending) -> bool {
        let pid = self.pid_of(p.space);
        let known = self.space(p.space).and_then(|s| s.pagemap.clone());
        let Some(pagemap) = known.or_else(|| Pagemap::of(pid).ok().map(Arc::new)) else { return false };
        let is_marked = |range: &Range<usize>| pagemap.marked(range).ok();
        if self.memory.unmarked[page as usize]
            || is_marked(&(p.address..p.address + PAGE)).is_none_or(|marks| !marks.is_empty())
        {
            return false;
        }
        let Some(range) = maps::wiped_on_fork(pid, p.address) else { return false };
        let Some(marks) = is_marked(&range) else { return false };
        let pages = self.space(p.space).map_or(Vec::new(), |s| s.table.pages(&range));
        for (address, page) in pages {
            let is_cow_swap = self.memory.state(page) == State::CowSwap && !self.memory.unmarked[page as usize];
            if is_cow_swap && marks.binary_search(&address).is_err() {
                self.drop_page(page);
            }
        }
        self.memory.state(page) == State::Empty
    }

    /// A page whose content is that of the process that this one was forked from.
    pub(super) fn serve_cow_swap(&mut self, page: u32, p: Pending) {
        let Some(&cow_swap) = self.memory.cow_swaps.get(&page) else {
            fatal("a page was lent, but not by whom");
        };
        let mut content = Box::<PageBuf>::default();
        let mut result = self.memory.area.read_cow_swap(cow_swap, &mut content.0);
        if result.is_err() {
            result = self.memory.area.read_cow_swap(cow_swap, &mut content.0);
        }
        if let Err(e) = result {
            self.memory.counts.read_errors += 1;
            return self.poison(page, &format!("reading it from swap: {e}"));
        }
        self.memory.arrived = Some(content);
        self.touch(page, p);
        self.memory.arrived = None;
        match self.memory.state(page) {
            // There is no room for it yet.
            State::CowSwap => {}
            State::Mapped => {
                self.memory.counts.swapped_in += 1;
                self.recent_swap_ins.push(page, self.now_ns);
                self.served.push(p.since_ns);
                self.end_cow_swap(page);
            }
            // Its process ended while it was put in place.
            _ => self.end_cow_swap(page),
        }
    }

    pub(super) fn end_cow_swap(&mut self, page: u32) {
        if let Some(cow_swap) = self.memory.cow_swaps.remove(&page) {
            self.memory.area.end_cow_swap(cow_swap);
        }
    }
}
