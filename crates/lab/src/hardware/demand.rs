//! Needs of effects of the engine for locks and other CPUs, while they are carried out.
//!
//! Entries of page tables that reclaim takes away are flushed from the TLBs together, as Linux
//! collects them (`struct tlbflush_unmap_batch`): before a page that may be written is, and before
//! the pages of a batch are free.

use refault_mm::SwapSlot;

use crate::contention::Demand;

/// Pages that reclaim frees at once.
const FREED_AT_ONCE: u32 = 32;

/// Demand that was collected since it was last taken.
#[derive(Debug, Default)]
pub(crate) struct CollectedDemand {
    demand: Demand,
    /// Programs whose pages were unmapped and not flushed yet.
    pending: Vec<u32>,
    /// Whether one of the unmapped entries had been written through.
    writable: bool,
    freed: u32,
    /// All entries are flushed at once in the end: a program gives memory back.
    gathers: bool,
}

impl CollectedDemand {
    /// A program gives memory back until what was collected is taken.
    pub(super) fn gather(&mut self) {
        self.gathers = true;
    }

    /// An entry of this program is gone.
    pub(super) fn unmapped(&mut self, program: u32, written: bool) {
        if !self.pending.contains(&program) {
            self.pending.push(program);
        }
        self.writable |= written;
    }

    /// A page goes to its device: nobody may write to it any more.
    pub(super) fn before_write(&mut self) {
        if self.writable {
            self.flush();
        }
    }

    /// Pages of a group are free.
    pub(super) fn freed(&mut self, group: u32, pages: u64) {
        Demand::add(&mut self.demand.freed, group, pages);
        self.freed += 1;
        if self.freed >= FREED_AT_ONCE && !self.gathers {
            self.flush();
        }
    }

    /// An entry of a program may be written through no longer.
    pub(super) fn protected(&mut self, program: u32) {
        self.demand.flushes.push(vec![program]);
    }

    pub(super) fn stored(&mut self, slot: SwapSlot, pages: u64) {
        Demand::add(&mut self.demand.stored, u32::from(slot.device()), pages);
    }

    /// Slots were given to a folio.
    pub(super) fn took_slots(&mut self, slot: SwapSlot) {
        self.demand.slot_device = u32::from(slot.device());
    }

    pub(super) fn freed_slot(&mut self, slot: SwapSlot) {
        Demand::add(&mut self.demand.slots_freed, u32::from(slot.device()), 1);
    }

    fn flush(&mut self) {
        self.freed = 0;
        self.writable = false;
        if !self.pending.is_empty() {
            self.demand.flushes.push(std::mem::take(&mut self.pending));
        }
    }

    /// All of it.
    pub(super) fn take(&mut self) -> Demand {
        self.flush();
        self.gathers = false;
        std::mem::take(&mut self.demand)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_page_is_flushed_before_it_goes_out_and_clean_ones_together() {
        let mut c = CollectedDemand::default();
        c.unmapped(1, false);
        c.before_write();
        c.unmapped(2, true);
        c.before_write();
        c.before_write();
        c.unmapped(1, false);
        assert_eq!(c.take().flushes, [vec![1, 2], vec![1]]);
        assert_eq!(c.take(), Demand::default());
    }

    #[test]
    fn reclaim_flushes_before_it_frees_a_batch_and_a_program_all_at_once() {
        let run = |c: &mut CollectedDemand| {
            (0..100).for_each(|_| {
                c.unmapped(5, false);
                c.freed(3, 1);
            });
            c.take()
        };
        let mut c = CollectedDemand::default();
        let demand = run(&mut c);
        assert_eq!((demand.flushes.len(), demand.freed), (4, vec![(3, 100)]));
        c.gather();
        assert_eq!(run(&mut c).flushes.len(), 1);
        assert_eq!(run(&mut c).flushes.len(), 4);
    }
}
