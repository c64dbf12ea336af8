//! The two-list LRU: how much of which list to scan, shrinking the inactive and the active list.
//!
//! Mechanism: `docs/mechanisms.md#shrinking-the-lists`,
//! `docs/mechanisms.md#balance-of-active-and-inactive`, `docs/mechanisms.md#anon-or-file`.

use crate::config::sample::divided;
use crate::folio::flags::FolioFlags;
use crate::ids::{FolioId, LruvecId, NodeId};
use crate::lru::lru_list::{ACTIVE_FILE, ANON, FILE, INACTIVE_FILE, is_low, list_index};
use crate::reclaim::Reclaim;
use crate::reclaim::shrink::SLOW;
use crate::scan::{DEF_PRIORITY, ShrinkProgress};
use crate::stat::Counter;
use crate::world::World;

/// Types that a pass scans, and their shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanBalance {
    File,
    Anon,
    Equal,
    /// Anon and file shares.
    Fraction(u64, u64),
}

/// Anon or file: shares of anon and file, from their costs and swappiness.
pub(crate) fn fractions(cost: [u64; 2], swappiness: u64) -> (u64, u64) {
    let total = cost[ANON] + cost[FILE];
    let (anon_cost, file_cost) = (total + cost[ANON], total + cost[FILE]);
    let sum = anon_cost + file_cost;
    (swappiness * (sum + 1) / (anon_cost + 1), (200 - swappiness) * (sum + 1) / (file_cost + 1))
}

/// Cuts what is left to scan once the target is met: the smaller type stops, the larger type goes
/// on to the same fraction of its target.
fn cut_to_proportion(targets: &[u64; 4], left: &mut [u64; 4]) {
    let (anon, file) = (left[0] + left[1], left[2] + left[3]);
    let smaller = if file > anon { ANON } else { FILE };
    let done_of = targets[smaller * 2] + targets[smaller * 2 + 1] + 1;
    let percentage = anon.min(file) * 100 / done_of;
    left[smaller * 2] = 0;
    left[smaller * 2 + 1] = 0;
    let larger = 1 - smaller;
    for l in [larger * 2, larger * 2 + 1] {
        let scanned = targets[l] - left[l];
        left[l] = (targets[l] * (100 - percentage) / 100).saturating_sub(scanned);
    }
}

impl<W: World> Reclaim<'_, W> {
    fn scan_balance(&self, v: LruvecId) -> ScanBalance {
        let swappiness =
            self.mem.groups.swappiness(&self.mem.cfg, self.mem.pages.lruvecs[v.index()].memcg, self.sc.swappiness);
        let no_swap = !self.sc.may_swap
            || !self.mem.swap.can_reclaim_anon(
                &self.mem.cfg,
                &self.mem.groups,
                &self.mem.frames,
                self.mem.pages.lruvecs[v.index()].memcg,
                self.sc.nid,
            );
        if no_swap || (self.sc.is_cgroup_reclaim() && swappiness == 0) {
            ScanBalance::File
        } else if self.sc.priority == 0 && swappiness > 0 {
            ScanBalance::Equal
        } else if self.sc.file_is_tiny {
            ScanBalance::Anon
        } else if self.sc.cache_trim_mode {
            ScanBalance::File
        } else {
            let (anon, file) = fractions(self.sc.cost, u64::from(swappiness));
            ScanBalance::Fraction(anon, file)
        }
    }

    /// Pages to scan of each list at this priority.
    fn scan_counts(&mut self, v: LruvecId) -> [u64; 4] {
        let balance = self.scan_balance(v);
        let lruvec = &self.mem.pages.lruvecs[v.index()];
        let (memcg, batch) = (lruvec.memcg, self.mem.cfg.lru.cluster_pages());
        let online = self.mem.groups.memcgs.get(memcg).is_online();
        let sizes = match self.mem.frames.nodes.get(self.sc.nid).is_below_top(self.sc.reclaim_idx) {
            true => self.mem.pages.sizes_up_to(v, self.sc.reclaim_idx),
            false => lruvec.size,
        };
        let (pages_per_page, divisor) = (self.mem.cfg.lru.pages_per_page, self.mem.cfg.lru.batch_divisor);
        let counts = std::array::from_fn(|l| {
            let (t, size) = (l / 2, sizes[l]);
            let open = self.mem.groups.memcgs.unprotected_pages(&mut self.sc, memcg, size, batch);
            let scan = (open * pages_per_page) >> self.sc.priority;
            // The rest of a group that was removed goes at any priority.
            let scan = if scan == 0 && !online { size.min(batch) * pages_per_page } else { scan };
            match balance {
                ScanBalance::Equal => scan,
                ScanBalance::File => scan * u64::from(t == FILE),
                ScanBalance::Anon => scan * u64::from(t == ANON),
                ScanBalance::Fraction(a, f) => scan * [a, f][t] / (a + f),
            }
        });
        if pages_per_page == 1 {
            return counts;
        }
        let lruvec = &mut self.mem.pages.lruvecs[v.index()];
        let divided = divided(&mut lruvec.carried_scan, counts, divisor);
        std::array::from_fn(|l| divided[l].min(lruvec.size[l]))
    }

    fn slices(&mut self, v: LruvecId) -> ShrinkProgress {
        let mut targets = self.scan_counts(v);
        if self.mem.pages.has_ext(v) {
            // A policy beside the lists is asked for all that is to go of files.
            targets[INACTIVE_FILE] += std::mem::take(&mut targets[ACTIVE_FILE]);
        }
        ShrinkProgress { targets, left: targets, ..ShrinkProgress::default() }
    }

    /// Scans the lists in turn, 32 pages each (`SWAP_CLUSTER_MAX`); once the target is met, scans
    /// the rest in proportion of anon and file.
    pub(crate) fn shrink_lruvec_two_list(&mut self, v: LruvecId) {
        let ShrinkProgress { targets, mut left, mut next, mut reclaimed } = match self.sc.resumed_shrink() {
            Some(slices) => slices,
            None => self.slices(v),
        };
        let complete = !self.sc.is_cgroup_reclaim() && !self.sc.kswapd && self.sc.priority == DEF_PRIORITY;
        // The active anon target alone does not keep the loop going.
        while next > 0 || left[0] + left[2] + left[3] > 0 {
            for l in std::mem::take(&mut next)..left.len() {
                let slice = left[l].min(self.mem.cfg.lru.cluster_pages());
                if slice > 0 {
                    left[l] -= slice;
                    reclaimed += self.shrink_list(v, l, slice);
                    if self.yields() {
                        self.sc.interrupt().slices = Some(ShrinkProgress { targets, left, next: l + 1, reclaimed });
                        return;
                    }
                }
            }
            if self.sc.blocked {
                break;
            }
            if reclaimed < self.sc.nr_to_reclaim || complete {
                continue;
            }
            let (anon, file) = (left[0] + left[1], left[2] + left[3]);
            if anon == 0 || file == 0 {
                break;
            }
            // One slice more, and then the smaller type is found at 0.
            cut_to_proportion(&targets, &mut left);
        }
        self.sc.nr_reclaimed += reclaimed;
        if self.can_age_anon(self.sc.nid)
            && is_low(&self.mem.pages.known_lruvec_sizes(&self.mem.groups, v), ANON, Some(self.mem.cfg.lru.gib_pages))
        {
            self.shrink_active_list(v, ANON, self.mem.cfg.lru.cluster_pages());
        }
    }

    /// Whether cold anon pages of a node can go anywhere: there is swap, full or not, or a slower
    /// node.
    pub(crate) fn can_age_anon(&self, nid: NodeId) -> bool {
        self.mem.swap.slots.total_pages() > 0 || self.mem.frames.can_demote(nid)
    }

    fn shrink_list(&mut self, v: LruvecId, l: usize, nr: u64) -> u64 {
        let (t, active) = (l / 2, l % 2 == 1);
        if t == FILE && self.mem.pages.has_ext(v) {
            return self.shrink_by_policy(v, nr);
        }
        if !active {
            return self.shrink_inactive_list(v, t, nr);
        }
        if self.sc.may_deactivate[t] {
            self.shrink_active_list(v, t, nr);
        } else {
            self.sc.skipped_deactivate = true;
        }
        0
    }

    /// Shrinking the inactive list.
    pub(crate) fn shrink_inactive_list(&mut self, v: LruvecId, t: usize, nr: u64) -> u64 {
        self.mem.pages.drain_batches();
        self.check_write_queue();
        let mut list = self.mem.pages.take_scratch();
        let l = list_index(t, false);
        let wait = self.sc.queue_full && t == ANON;
        // Most batches are clean, unmapped file folios throughout.
        let low = self.mem.frames.nodes.get(self.sc.nid).is_below_top(self.sc.reclaim_idx);
        let alike = t == FILE
            && !low
            && !self.mem.frames.can_demote(self.sc.nid)
            && self.mem.pages.isolate_bulk(v, l, nr, SLOW | FolioFlags::LARGE, |f| self.world.is_pinned(f), &mut list);
        let (scanned, taken) = if alike {
            (list.len() as u64, list.len() as u64)
        } else if low {
            self.mem.pages.isolate_low(v, l, nr, self.sc.reclaim_idx, &mut list)
        } else {
            self.mem.pages.isolate(v, l, nr, wait, &mut list)
        };
        self.sc.blocked |= wait && scanned < nr && self.mem.pages.lruvecs[v.index()].size[l] > 0;
        self.shrink_isolated(v, t, list, (scanned, taken), alike)
    }

    /// Reclaims folios of a type that were taken off lists; pages scanned and taken. `alike`: they
    /// are clean, unmapped file folios of one page each.
    #[inline]
    pub(crate) fn shrink_isolated(
        &mut self,
        v: LruvecId,
        t: usize,
        mut list: Vec<FolioId>,
        (scanned, taken): (u64, u64),
        alike: bool,
    ) -> u64 {
        // Folios that were passed over for their zone do not count for the priority.
        self.sc.nr_scanned += taken;
        self.mem.pages.count_scan(v, t, scanned, self.sc.kswapd);
        if list.is_empty() {
            self.mem.pages.return_scratch(list);
            return 0;
        }
        let stat = if alike {
            let target = self.sc.target;
            self.mem.memcontrol().evict_bulk(self.world, &list, target)
        } else {
            let stat = self.shrink_folio_list(&mut list);
            self.mem.pages.put_back(&list);
            stat
        };
        self.mem.pages.return_scratch(list);
        self.mem.pages.count_steal(v, t, stat.reclaimed, self.sc.kswapd);
        self.sc.seen.add(&stat, taken, t == FILE);
        self.mem.pages.note_cost(&self.mem.groups, v, t, stat.pageout, scanned - stat.reclaimed);
        stat.reclaimed
    }

    /// Shrinking the active list: everything is deactivated, even if referenced; only executable
    /// file pages stay.
    pub(crate) fn shrink_active_list(&mut self, v: LruvecId, t: usize, nr: u64) {
        self.mem.pages.drain_batches();
        let mut hold = self.mem.pages.take_scratch();
        let low = self.mem.frames.nodes.get(self.sc.nid).is_below_top(self.sc.reclaim_idx);
        if !low
            && self.mem.pages.isolate_bulk(
                v,
                list_index(t, true),
                nr,
                FolioFlags::MAPPED | FolioFlags::LARGE,
                |_| false,
                &mut hold,
            )
        {
            self.mem.pages.deactivate_bulk(v, t, &hold);
            return self.mem.pages.return_scratch(hold);
        }
        let (scanned, _) = match low {
            true => self.mem.pages.isolate_low(v, list_index(t, true), nr, self.sc.reclaim_idx, &mut hold),
            false => self.mem.pages.isolate(v, list_index(t, true), nr, false, &mut hold),
        };
        self.mem.pages.count_lruvec(v, Counter::Pgrefill, scanned);
        self.mem.pages.work.scanned += scanned;
        let mut rotated = 0;
        let mut stay = self.mem.pages.take_scratch();
        hold.retain(|&f| {
            let st = self.mem.pages.folios.st(f);
            let referenced = self.mem.pages.folio_referenced(self.world, f) > 0;
            let stays = referenced && st.has(FolioFlags::EXEC) && st.type_index() == FILE;
            if stays {
                rotated += st.nr_pages();
                stay.push(f);
            } else {
                self.mem.pages.folios.clear(f, FolioFlags::ACTIVE);
                self.mem.pages.folios.set(f, FolioFlags::WORKINGSET);
            }
            !stays
        });
        self.mem.pages.put_back(&stay);
        self.mem.pages.put_back(&hold);
        let deactivated: u64 = hold.iter().map(|&f| self.mem.pages.folios.st(f).nr_pages()).sum();
        self.mem.pages.count_lruvec(v, Counter::Pgdeactivate, deactivated);
        self.mem.pages.return_scratch(stay);
        self.mem.pages.return_scratch(hold);
        if rotated > 0 {
            self.mem.pages.note_cost(&self.mem.groups, v, t, 0, rotated);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I2.3, and the bounds that adding the total to both costs gives.
    #[test]
    fn shares_follow_cost_within_two_thirds() {
        assert_eq!(fractions([500, 500], 100).0, fractions([500, 500], 100).1);
        for (anon, file) in [(0, 10_000), (10_000, 0), (123, 456), (0, 0)] {
            let (a, f) = fractions([anon, file], 100);
            let share = a as f64 / (a + f) as f64;
            assert!((0.32..=0.68).contains(&share), "costs {anon} {file}: {share}");
        }
        assert_eq!(fractions([1, 1], 0).0, 0);
    }

    #[test]
    fn the_larger_type_goes_on_to_the_same_fraction() {
        let targets = [32, 0, 1000, 1000];
        let mut left = [16, 0, 968, 968];
        cut_to_proportion(&targets, &mut left);
        // 16 of 33 are left of anon, 48 %: file is cut to 52 % of its target, of which 32 each are
        // done.
        assert_eq!(left, [0, 0, 520 - 32, 520 - 32]);
    }
}
