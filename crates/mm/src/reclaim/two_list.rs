//! The two-list LRU: how much of which list to scan, shrinking the inactive and the active list (2.4 to 2.8).

use crate::config::{Clock, RefaultTest};
use crate::engine::Engine;
use crate::folio::list::Target;
use crate::folio::table::State;
use crate::ids::{FolioId, LruvecId, NodeId, PageId};
use crate::lru::lruvec::{ANON, FILE, is_low, list_index};
use crate::reclaim::evict::needs_write;
use crate::reclaim::scan::{DEF_PRIORITY, ScanControl};
use crate::reclaim::shrink::SLOW;
use crate::stat::Counter;
use crate::world::World;

/// Which types a pass scans, and by which shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Balance {
    File,
    Anon,
    Equal,
    /// Anon and file shares.
    Fraction(u64, u64),
}

/// 2.7: shares of anon and file, from their costs and swappiness.
pub(crate) fn fractions(cost: [u64; 2], swappiness: u64) -> (u64, u64) {
    let total = cost[ANON] + cost[FILE];
    let (anon_cost, file_cost) = (total + cost[ANON], total + cost[FILE]);
    let sum = anon_cost + file_cost;
    (swappiness * (sum + 1) / (anon_cost + 1), (200 - swappiness) * (sum + 1) / (file_cost + 1))
}

impl Engine {
    /// Whether refaults may have the active list challenged: not before mainline's test.
    pub(crate) fn refaults_challenge_active(&self) -> bool {
        !matches!(self.cfg.refault, RefaultTest::None | RefaultTest::Distance2013)
    }

    fn balance(&self, v: LruvecId, sc: &ScanControl) -> Balance {
        let swappiness = self.swappiness(self.pages.lruvecs[v.index()].memcg, sc);
        let no_swap = !sc.may_swap || !self.can_reclaim_anon(self.pages.lruvecs[v.index()].memcg, sc.nid);
        if no_swap || (sc.is_cgroup_reclaim() && swappiness == 0) {
            Balance::File
        } else if sc.priority == 0 && swappiness > 0 {
            Balance::Equal
        } else if sc.file_is_tiny {
            Balance::Anon
        } else if sc.cache_trim_mode {
            Balance::File
        } else {
            let (anon, file) = fractions(sc.cost, u64::from(swappiness));
            Balance::Fraction(anon, file)
        }
    }

    /// Pages to scan of each list at this priority.
    fn scan_counts(&self, v: LruvecId, sc: &mut ScanControl) -> [u64; 4] {
        let balance = self.balance(v, sc);
        let lruvec = &self.pages.lruvecs[v.index()];
        let (memcg, batch) = (lruvec.memcg, self.cfg.swap_cluster_max);
        let online = self.groups.memcgs.get(memcg).is_online();
        std::array::from_fn(|l| {
            let (t, size) = (l / 2, lruvec.size[l]);
            let scan = self.groups.memcgs.unprotected_pages(sc, memcg, size, batch) >> sc.priority;
            // What is left of a group that was removed goes at any priority.
            let scan = if scan == 0 && !online { size.min(batch) } else { scan };
            match balance {
                Balance::Equal => scan,
                Balance::File => scan * u64::from(t == FILE),
                Balance::Anon => scan * u64::from(t == ANON),
                Balance::Fraction(a, f) => scan * [a, f][t] / (a + f),
            }
        })
    }

    /// 2.8: slices of the lists in turn, then a proportional stop.
    pub(crate) fn shrink_lruvec_two_list<W: World>(&mut self, w: &mut W, v: LruvecId, sc: &mut ScanControl) {
        let targets = self.scan_counts(v, sc);
        let mut left = targets;
        let mut reclaimed = 0;
        let complete = !sc.is_cgroup_reclaim() && !sc.kswapd && sc.priority == DEF_PRIORITY;
        // The active anon target alone does not keep the loop going.
        while left[0] + left[2] + left[3] > 0 {
            for (l, left) in left.iter_mut().enumerate() {
                let slice = (*left).min(self.cfg.swap_cluster_max);
                if slice > 0 {
                    *left -= slice;
                    reclaimed += self.shrink_list(w, v, l, slice, sc);
                }
            }
            if sc.blocked {
                break;
            }
            if reclaimed < sc.nr_to_reclaim || complete {
                continue;
            }
            let (anon, file) = (left[0] + left[1], left[2] + left[3]);
            if anon == 0 || file == 0 {
                break;
            }
            // One slice more, and then the smaller type is found at 0.
            cut_to_proportion(&targets, &mut left);
        }
        sc.nr_reclaimed += reclaimed;
        if self.can_age_anon(sc.nid) && is_low(&self.known_lruvec_sizes(v), ANON, Some(self.cfg.gib_pages)) {
            self.shrink_active_list(w, v, ANON, self.cfg.swap_cluster_max);
        }
    }

    /// Whether it is of use to know which anon of a node is cold: there is swap, full or not, or a slower node.
    pub(crate) fn can_age_anon(&self, nid: NodeId) -> bool {
        self.swap.slots.total_pages() > 0 || self.can_demote(nid)
    }

    fn shrink_list<W: World>(&mut self, w: &mut W, v: LruvecId, l: usize, nr: u64, sc: &mut ScanControl) -> u64 {
        let (t, active) = (l / 2, l % 2 == 1);
        if !active {
            return self.shrink_inactive_list(w, v, t, nr, sc);
        }
        if sc.may_deactivate[t] {
            self.shrink_active_list(w, v, t, nr);
        } else {
            sc.skipped_deactivate = true;
        }
        0
    }

    /// Takes up to `nr` pages from the tail of a list, with `wait` up to the first that must be written. What someone else holds goes to
    /// the head and counts as scanned. Returns pages scanned and taken.
    fn isolate(&mut self, v: LruvecId, l: usize, nr: u64, wait: bool, out: &mut Vec<FolioId>) -> (u64, u64) {
        let list = self.pages.lruvecs[v.index()].lists[l];
        self.pages.folios.warm_tail(list, nr as usize);
        let (mut scanned, mut isolated) = (0, 0);
        while scanned < nr {
            let Some(f) = self.pages.folios.links.tail(list) else { break };
            let st = self.pages.folios.st(f);
            if wait && needs_write(st) {
                break;
            }
            scanned += st.nr_pages();
            self.pages.folios.links.pop_tail(list);
            if !st.has(State::LRU) {
                self.pages.folios.links.add(list, f);
                continue;
            }
            self.pages.folios.clear(f, State::LRU);
            isolated += st.nr_pages();
            out.push(f);
        }
        self.resize_list(v, l, -(isolated as i64));
        (scanned, isolated)
    }

    /// Takes the `nr` oldest folios off a list if all of them are there for taking, and in none of the states `odd`; their flags
    /// stay. False: none is taken.
    fn take_alike(
        &mut self,
        v: LruvecId,
        l: usize,
        nr: u64,
        odd: u32,
        pinned: impl Fn(PageId) -> bool,
        out: &mut Vec<FolioId>,
    ) -> bool {
        let list = self.pages.lruvecs[v.index()].lists[l];
        let passed = self.pages.folios.links.oldest(list, nr as usize, out);
        let (any, all) = self.pages.folios.flags_of(out);
        if any & odd != 0 || all & State::LRU == 0 || out.iter().any(|&f| pinned(self.pages.folios.page(f))) {
            out.clear();
            return false;
        }
        self.pages.folios.links.pop_oldest(list, out.len(), passed);
        self.resize_list(v, l, -(out.len() as i64));
        true
    }

    /// Puts active folios that nothing can keep at the head of the inactive list.
    fn deactivate_alike(&mut self, v: LruvecId, t: usize, folios: &[FolioId]) {
        let (nr, l) = (folios.len() as u64, list_index(t, false));
        let list = self.pages.lruvecs[v.index()].lists[l];
        self.pages.folios.add_each(folios, &[Target::new(list, !State::ACTIVE, State::WORKINGSET)]);
        self.resize_list(v, l, nr as i64);
        self.count_lruvec(v, Counter::Pgrefill, nr);
        self.count_lruvec(v, Counter::Pgdeactivate, nr);
        self.pages.work.scanned += nr;
    }

    /// 2.4.
    fn shrink_inactive_list<W: World>(
        &mut self,
        w: &mut W,
        v: LruvecId,
        t: usize,
        nr: u64,
        sc: &mut ScanControl,
    ) -> u64 {
        self.drain_batches();
        self.look_at_queue(w, sc);
        let mut list = self.take_scratch();
        let l = list_index(t, false);
        let wait = sc.queue_full && t == ANON;
        // Most batches are clean, unmapped file folios throughout.
        let alike = t == FILE
            && !self.can_demote(sc.nid)
            && self.take_alike(v, l, nr, SLOW | State::LARGE, |f| w.is_pinned(f), &mut list);
        let (scanned, taken) =
            if alike { (list.len() as u64, list.len() as u64) } else { self.isolate(v, l, nr, wait, &mut list) };
        sc.blocked |= wait && scanned < nr && self.pages.lruvecs[v.index()].size[l] > 0;
        sc.nr_scanned += scanned;
        self.count_scan(v, t, scanned, sc);
        if list.is_empty() {
            self.return_scratch(list);
            return 0;
        }
        let stat = if alike {
            self.drop_alike(w, &list, sc)
        } else {
            let stat = self.shrink_folio_list(w, &mut list, sc);
            self.put_back(&list);
            stat
        };
        self.return_scratch(list);
        self.count_steal(v, t, stat.reclaimed, sc);
        sc.seen.add(&stat, taken, t == FILE);
        self.note_cost(v, t, stat.pageout, scanned - stat.reclaimed);
        stat.reclaimed
    }

    /// 2.5: everything is deactivated, even if referenced; only executable file pages stay.
    pub(crate) fn shrink_active_list<W: World>(&mut self, w: &mut W, v: LruvecId, t: usize, nr: u64) {
        self.drain_batches();
        let mut hold = self.take_scratch();
        if self.take_alike(v, list_index(t, true), nr, State::MAPPED | State::LARGE, |_| false, &mut hold) {
            self.deactivate_alike(v, t, &hold);
            return self.return_scratch(hold);
        }
        let (scanned, _) = self.isolate(v, list_index(t, true), nr, false, &mut hold);
        self.count_lruvec(v, Counter::Pgrefill, scanned);
        self.pages.work.scanned += scanned;
        let mut rotated = 0;
        let mut stay = self.take_scratch();
        hold.retain(|&f| {
            let st = self.pages.folios.st(f);
            let referenced = self.folio_referenced(w, f) > 0;
            let stays = referenced && st.has(State::EXEC) && st.type_index() == FILE;
            if stays {
                rotated += st.nr_pages();
                stay.push(f);
            } else {
                self.pages.folios.clear(f, State::ACTIVE);
                self.pages.folios.set(f, State::WORKINGSET);
            }
            !stays
        });
        self.put_back(&stay);
        self.put_back(&hold);
        let deactivated: u64 = hold.iter().map(|&f| self.pages.folios.st(f).nr_pages()).sum();
        self.count_lruvec(v, Counter::Pgdeactivate, deactivated);
        self.return_scratch(stay);
        self.return_scratch(hold);
        if rotated > 0 {
            self.note_cost(v, t, 0, rotated);
        }
    }

    /// Whether the clock advances for folios that reclaim puts back as active: in mainline, not in 2013.
    fn put_back_ages(&self) -> bool {
        self.cfg.clock == Clock::EvictionsAndActivations && self.cfg.refault != RefaultTest::Distance2013
    }

    /// Puts isolated folios back, oldest first, each at the head of the list its flags ask for.
    pub(crate) fn put_back(&mut self, list: &[FolioId]) {
        for &f in list {
            self.pages.folios.set(f, State::LRU);
            self.lruvec_add(f, false);
            let st = self.pages.folios.st(f);
            if st.has(State::ACTIVE) && self.put_back_ages() {
                self.age_nonresident(self.pages.folios.lruvec(f), st.nr_pages());
            }
        }
    }
}

/// The target is met: the smaller type stops, the larger one goes on to the same fraction of its target.
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
        // 16 of 33 are left of anon, 48 %: file is cut to 52 % of its target, of which 32 each are done.
        assert_eq!(left, [0, 0, 520 - 32, 520 - 32]);
    }
}
