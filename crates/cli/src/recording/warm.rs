//! Memory as it was when a recording began.

use super::run::Run;
use super::start::{Resident, Start};
use crate::replay::cell::Cell;
use refault_mm::MemcgLimits;
use refault_trace::generate::Rng;
use refault_trace::{PackedAccess, Via};
use std::borrow::Cow;
use std::cmp::Reverse;

impl Run<'_> {
    /// Brings in pages that the group had had before the recording and had lost by then: what
    /// follows drives them out, and leaves their shadows.
    fn bring_in_the_evicted(&mut self) {
        for &(object, page) in &self.loaded.start.evicted {
            if let Some(id) = self.id(object, page) {
                self.bring_in(id, false);
            }
        }
    }

    /// Brings in what was in memory before the recording, if the group is charged for it.
    pub(super) fn warm(&mut self) {
        self.bring_in_the_evicted();
        let Start { pages, is_own, active, stand_ins, .. } = &self.loaded.start;
        let mut by_touches: Vec<_> = pages.iter().map(|page| page.touches).collect();
        by_touches.sort_unstable_by_key(|&touches| Reverse(touches));
        // The pages that are used most are the active ones; pages that nobody used come after them.
        let active = active.unwrap_or(0);
        let least = by_touches.get(active.saturating_sub(1) as usize).copied().unwrap_or(0).max(2);
        let known_active = pages.iter().filter(|page| active > 0 && page.touches >= least).count() as u64;
        let mut idle_active = active.saturating_sub(known_active).min(*stand_ins);
        let first_touched = pages.partition_point(|page| page.touches == 0);
        let pages = self.in_order_of_use(pages, first_touched);
        for (at, resident) in pages.iter().enumerate() {
            if at == first_touched {
                self.bring_in_stand_ins(&mut idle_active);
            }
            let Some(id) = self.id(resident.object, resident.page) else { continue };
            self.cache.set(id..id + 1, true);
            if *is_own {
                self.bring_in(id, active > 0 && resident.touches >= least);
            } else {
                self.elsewhere.insert(id);
            }
        }
        if first_touched == pages.len() {
            self.bring_in_stand_ins(&mut idle_active);
        }
        self.compared.warm = pages.len() as u64;
    }

    /// The pages, the one first that was most likely used longest ago.
    ///
    /// Under the recorded limit the order is known in part: what is touched soon was not evicted
    /// before. A smaller limit would have evicted pages by when they were used *before* the
    /// recording, which says little about which of them come next, and with the recorded order it
    /// would lose just those that are needed last. There each page is as old as one is on average
    /// that is used as often.
    fn in_order_of_use<'a>(&self, pages: &'a [Resident], first_touched: usize) -> Cow<'a, [Resident]> {
        if !self.settings.is_smaller_than_recorded(self.loaded) {
            return Cow::Borrowed(pages);
        }
        let age = |page: &Resident| {
            let mut rng = Rng::new(self.settings.config.seed, &[u64::from(page.object), page.page]);
            -(1.0 - rng.unit()).ln() / f64::from(page.touches)
        };
        let mut pages = pages.to_vec();
        // Ages are positive: their bits are in the order of the numbers.
        pages[first_touched..].sort_by_cached_key(|page| Reverse(age(page).to_bits()));
        Cow::Owned(pages)
    }

    pub(super) fn set_limit(&mut self, pages: u64) -> Result<(), String> {
        let Cell { engine, machine, group, .. } = &mut self.cell;
        let limits = MemcgLimits { max: pages, ..engine.memcg_limits(*group) };
        engine.set_memcg_limits(machine, *group, &limits)?;
        Ok(())
    }

    fn bring_in_stand_ins(&mut self, active: &mut u64) {
        for id in self.stand_ins.clone() {
            self.bring_in(id, *active > 0);
            *active = active.saturating_sub(1);
        }
    }

    fn bring_in(&mut self, id: u32, is_active: bool) {
        for _ in 0..1 + u32::from(is_active) * 2 {
            self.cell.step(PackedAccess::new(id, false, Via::Fd, false));
        }
    }
}
