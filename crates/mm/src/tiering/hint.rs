//! Hint faults and promotion (9.3, 9.4): what the engine knows of a page that is to be marked, and what becomes of one that was touched.
//!
//! The driver owns the marks, as it owns the accessed bits: it asks for each page whether to mark it, and says when a marked page was touched.
//! Whether such a page moves is decided in `tiering`.

use crate::config::NumaConfig;
use crate::engine::Engine;
use crate::folio::table::{FolioTable, State};
use crate::ids::{FolioId, NodeId, PageId};
use crate::lru::batch::Batch;
use crate::lru::lruvec::FILE;
use crate::node::migrate::Reason;
use crate::node::node::Mark;
use crate::stat::Counter;
use crate::tiering::{HintAction, HintFault, Promoter, PromotionPolicy, Rejection, Stamp, StampClock, TieringConfig, free_space_enough};
use crate::world::{Ack, World};

/// What a hint fault led to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hint {
    /// The page stays. The driver makes it accessible, young.
    Stay,
    /// It was moved, and is mapped again.
    Promoted,
    /// It is on its way: accesses wait until [`Engine::migrate_done`].
    Migrating,
}

/// What a machine with tiers keeps for hint faults.
#[derive(Clone, Debug)]
pub(crate) struct Hints {
    cfg: TieringConfig,
    /// By node: what decides about promotion to it, if it is of the top tier.
    promoters: Vec<Option<Promoter>>,
    clock: StampClock,
}

impl Hints {
    /// None where nothing is promoted.
    pub(crate) fn new(numa: Option<&NumaConfig>) -> Result<Option<Hints>, String> {
        let Some(numa) = numa.filter(|n| n.tiering.promotes()) else { return Ok(None) };
        let any = Promoter::new(&numa.tiering)?;
        let is_top = |n: usize| numa.top_tier.get(n).copied().unwrap_or(true);
        let promoters = (0..numa.nodes.len()).map(|n| is_top(n).then(|| any.clone())).collect();
        Ok(Some(Hints { cfg: numa.tiering.clone(), promoters, clock: any.clock() }))
    }

    fn is_toptier(&self, nid: NodeId) -> bool {
        self.promoters[nid.index()].is_some()
    }

    /// I9.2, I9.3, I9.4: of fast memory nobody knows when it was marked.
    pub(crate) fn validate(&self, folios: &FolioTable) -> Result<(), String> {
        self.promoters.iter().flatten().try_for_each(Promoter::validate)?;
        let wrong = |&f: &FolioId| self.is_toptier(folios.nid(f)) && folios.links.stamp(f) != Stamp::NONE;
        folios.in_use().find(wrong).map_or(Ok(()), |f| Err(format!("I9.4: {f:?} was marked on fast memory")))
    }
}

impl Engine {
    /// The driver visits a page to mark it, so that the next touch is a hint fault. False: it is to be left alone: not mapped, not on slow
    /// memory, or a dirty page of a file, which could not be moved anyway.
    pub fn hint_mark(&mut self, page: PageId) -> bool {
        let Some(hints) = &self.frames.hints else { return false };
        let Some(f) = self.pages.folios.slot(page).folio().filter(|_| self.pages.space.is_mapped(page)) else { return false };
        let (st, top_tier) = (self.pages.folios.st(f), hints.is_toptier(self.pages.folios.nid(f)));
        let dirty_file = st.type_index() == FILE && st.has(State::DIRTY);
        if dirty_file || (top_tier && !hints.cfg.marks_toptier()) {
            return false;
        }
        if !top_tier {
            let stamp = hints.clock.stamp(self.clock.now_ns);
            self.pages.folios.links.set_stamp(f, stamp);
        }
        self.count(f, Counter::NumaPteUpdates, 1);
        true
    }

    /// A marked page was touched, on the current CPU. The mark is gone.
    pub fn hint_fault<W: World>(&mut self, w: &mut W, page: PageId) -> Hint {
        let Some(f) = self.pages.folios.slot(page).folio() else { return Hint::Stay };
        let (from, to) = (self.pages.folios.nid(f), self.frames.nid);
        self.count(f, Counter::NumaHintFaults, 1);
        if from == to {
            self.count(f, Counter::NumaHintFaultsLocal, 1);
        }
        match &self.frames.hints {
            Some(hints) if from != to && !hints.is_toptier(from) && hints.is_toptier(to) => {}
            // Balancing among equals is not done here.
            _ => return Hint::Stay,
        }
        match self.decide_promotion(w, page, f, to) {
            HintAction::Promote => return self.promote_folio(w, f, to),
            HintAction::MarkAccessed => self.mark_accessed(f),
            HintAction::Activate => self.activate_touched(f),
            HintAction::Reject(_) => {}
        }
        Hint::Stay
    }

    /// What decides about promotion to a node, for its threshold and counts; none: nothing is promoted to it.
    pub fn promoter(&self, node: NodeId) -> Option<&Promoter> {
        self.frames.hints.as_ref().and_then(|h| h.promoters.get(node.index())?.as_ref())
    }

    fn decide_promotion<W: World>(&mut self, w: &mut W, page: PageId, f: FolioId, to: NodeId) -> HintAction {
        let (st, pages, now_ns) = (self.pages.folios.st(f), self.pages.folios.st(f).nr_pages(), self.clock.now_ns);
        let active = match st.generation() {
            Some(i) => self.pages.lruvecs[self.pages.folios.lruvec(f).index()].r#gen.is_active(i),
            None => st.has(State::ACTIVE),
        };
        let Some(hints) = &mut self.frames.hints else { return HintAction::Reject(Rejection::Cold) };
        let node = self.frames.nodes.get(to);
        let free_space = free_space_enough(&hints.cfg, node.managed_pages(), node.promotion_marks());
        let hottest = hints.cfg.policy == PromotionPolicy::Oracle && w.is_hottest(page);
        let stamp = self.pages.folios.links.stamp(f);
        let Some(promoter) = &mut hints.promoters[to.index()] else { return HintAction::Reject(Rejection::Cold) };
        let before = promoter.stats().candidates;
        let action = promoter.hint_fault(&HintFault { now_ns, stamp, pages, active, hottest, free_space });
        let candidates = promoter.stats().candidates - before;
        let now = hints.clock.stamp(now_ns);
        self.pages.folios.links.set_stamp(f, now);
        self.count(f, Counter::PgpromoteCandidate, candidates);
        action
    }

    /// Puts a folio on the active list, or into the youngest generation, by way of a batch.
    fn activate_touched(&mut self, f: FolioId) {
        if self.cfg.one_list {
            return;
        }
        if self.pages.folios.st(f).has(State::ADDING) {
            self.pages.folios.set(f, State::ACTIVE);
        } else {
            self.batch_add(Batch::Activate, f);
        }
    }

    /// Moves a folio that was chosen, if it can be moved and there is room beyond the high mark.
    fn promote_folio<W: World>(&mut self, w: &mut W, f: FolioId, to: NodeId) -> Hint {
        let st = self.pages.folios.st(f);
        let nr = st.nr_pages();
        if st.type_index() == FILE && (st.has(State::DIRTY) || w.is_shared_executable(self.pages.folios.page(f))) {
            return Hint::Stay;
        }
        if !self.frames.nodes.get(to).has_room_for_promotion(nr) {
            self.wake_kswapd(w, to);
            return Hint::Stay;
        }
        // In a batch, or with someone else.
        if !st.has(State::LRU) {
            return Hint::Stay;
        }
        let busy = st.has(State::LOCKED | State::WRITEBACK) || self.pages_of(f).any(|p| w.is_pinned(PageId(p)));
        let take = |mark| self.frames.nodes.take_on(to, nr, mark);
        let zone = if busy { None } else { [Mark::Low, Mark::Min].into_iter().find_map(take) };
        let Some(zone) = zone else {
            self.count_machine(Counter::PgmigrateFail, nr);
            return Hint::Stay;
        };
        self.lruvec_del(f, false);
        self.pages.folios.clear(f, State::LRU);
        match self.migrate(w, f, zone, Reason::Promotion) {
            Ack::Done => Hint::Promoted,
            Ack::Pending => Hint::Migrating,
            Ack::Failed => {
                self.add_migrated(f, Reason::Promotion);
                Hint::Stay
            }
        }
    }

    /// A folio has arrived that a hint fault sent.
    pub(crate) fn count_promoted(&mut self, f: FolioId, to: NodeId) {
        let nr = self.pages.folios.st(f).nr_pages();
        self.count(f, Counter::NumaPagesMigrated, nr);
        let Some(hints) = &mut self.frames.hints else { return };
        if let Some(promoter) = &mut hints.promoters[to.index()] {
            promoter.promoted(nr);
            self.count(f, Counter::PgpromoteSuccess, nr);
        }
    }
}
