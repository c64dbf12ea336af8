//! Memory as it was when a recording began.

use super::run::Run;
use super::start::{Resident, Start};
use crate::replay::cell::Cell;
use refault_mm::MemcgLimits;
use refault_trace::generate::Rng;
use refault_trace::{PackedAccess, Via};
use std::cmp::Reverse;

/// A page in memory before the recording.
#[derive(Clone, Copy, Debug)]
enum Warm {
    Page(Resident),
    /// The id of one that is known by number only.
    StandIn(u32),
}

/// Touches up to which a recording is too short to say how often a page is used.
const FEW: usize = 5;

/// Expected touches of a page in another period as long as the recording, by touches seen. A page
/// touched once by chance is used less often than once, and an untouched page is used, too.
/// Estimated from how many pages have each number of touches (Good and Turing), made monotonic.
fn expected_touches(pages: &[Resident], stand_ins: u64) -> [f64; FEW] {
    let mut alike = [0.0; FEW + 1];
    alike[0] = stand_ins as f64;
    let touches = pages.iter().map(|page| page.touches as usize).filter(|&touches| touches <= FEW);
    touches.for_each(|touches| alike[touches] += 1.0);
    let mut expected = [0.0; FEW];
    let mut most = FEW as f64;
    for touches in (0..FEW).rev() {
        let estimate = (touches + 1) as f64 * alike[touches + 1] / f64::max(alike[touches], 1.0);
        most = f64::min(most, estimate);
        expected[touches] = f64::max(most, 0.01);
    }
    expected
}

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
        let active = self.active_in_this_size(active.unwrap_or(0));
        let least = by_touches.get(active.saturating_sub(1) as usize).copied().unwrap_or(0).max(2);
        let known_active = pages.iter().filter(|page| active > 0 && page.touches >= least).count() as u64;
        let mut idle_active = active.saturating_sub(known_active).min(*stand_ins);
        let warm = pages.len() as u64;
        for page in self.in_order_of_use(pages) {
            let (object, page, touches) = match page {
                Warm::Page(resident) => (resident.object, resident.page, resident.touches),
                Warm::StandIn(id) => {
                    self.bring_in(id, idle_active > 0);
                    idle_active = idle_active.saturating_sub(1);
                    continue;
                }
            };
            let Some(id) = self.id(object, page) else { continue };
            self.cache.set(id..id + 1, true);
            if *is_own {
                self.bring_in(id, active > 0 && touches >= least);
            } else {
                self.elsewhere.insert(id);
            }
        }
        self.compared.warm = warm;
    }

    /// The pages that would be active in the size that is tried: a smaller limit keeps the two
    /// lists in the same proportion.
    fn active_in_this_size(&self, active: u64) -> u64 {
        let sizes = self.settings.memory_pages.zip(self.loaded.recording.memory_max);
        match sizes.filter(|_| self.settings.is_smaller_than_recorded(self.loaded)) {
            Some((pages, recorded)) => (u128::from(active) * u128::from(pages) * 4096 / u128::from(recorded)) as u64,
            None => active,
        }
    }

    /// The pages in order of use, the one most likely used longest ago first.
    ///
    /// Under the recorded limit the order is known in part: a page that is touched soon was not
    /// evicted before. A smaller limit would have evicted pages by their use *before* the
    /// recording, which says little about which of them come next; in the recorded order it would
    /// lose just the pages that are needed last. So each page gets a random age there, as of a page
    /// used as often.
    fn in_order_of_use(&self, pages: &[Resident]) -> Vec<Warm> {
        let first_touched = pages.partition_point(|page| page.touches == 0);
        let (idle, touched) = pages.split_at(first_touched);
        let page = |page: &Resident| Warm::Page(*page);
        let stand_ins = self.stand_ins.clone().map(Warm::StandIn);
        if !self.settings.is_smaller_than_recorded(self.loaded) {
            return idle.iter().map(page).chain(stand_ins).chain(touched.iter().map(page)).collect();
        }
        let (evicted, others) = pages.split_at(pages.partition_point(|page| page.is_evicted));
        let expected = expected_touches(others, self.loaded.start.stand_ins);
        let age = |warm: &Warm| {
            let (touches, purpose) = match warm {
                Warm::Page(page) => (page.touches, [u64::from(page.object), page.page]),
                Warm::StandIn(id) => (0, [u64::from(*id), u64::MAX]),
            };
            let touches = expected.get(touches as usize).copied().unwrap_or(f64::from(touches));
            let mut rng = Rng::new(self.settings.config.seed, &purpose);
            -(1.0 - rng.unit()).ln() / touches
        };
        let mut others: Vec<_> = others.iter().map(page).chain(stand_ins).collect();
        // Ages are positive: their bits are in the order of the numbers.
        others.sort_by_cached_key(|warm| Reverse(age(warm).to_bits()));
        evicted.iter().map(page).chain(others).collect()
    }

    pub(super) fn set_limit(&mut self, pages: u64) -> Result<(), String> {
        let Cell { engine, machine, group, .. } = &mut self.cell;
        let limits = MemcgLimits { max: self.loaded.part(pages), ..engine.memcg_limits(*group) };
        engine.set_memcg_limits(machine, *group, &limits)?;
        Ok(())
    }

    fn bring_in(&mut self, id: u32, is_active: bool) {
        for _ in 0..1 + u32::from(is_active) * 2 {
            self.cell.step(PackedAccess::new(id, false, Via::Fd, false));
        }
    }
}
