//! Hint faults: marking pages of slow nodes with the time, and what the next touch of one leads to (9.3, 9.4).
//!
//! The driver has the page tables: it asks of each page that it comes by whether to mark it, and reports the touch of one that is marked.
//! Decisions are those of [`crate::tiering::Promoter`], one for each node that has CPUs.

use crate::Engine;
use crate::batch::Batch;
use crate::config::Config;
use crate::folio::State;
use crate::ids::{FolioId, NodeId, PageId};
use crate::migrate::Reason;
use crate::node::Mark;
use crate::stat::Counter;
use crate::tiering::{HintAction, HintFault, Promoter, PromotionPolicy, Stamp, TieringConfig, free_space_enough};
use crate::world::{Ack, World};

/// What became of a page whose touch was a hint fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hint {
    /// It stays where it is.
    Stay,
    /// It is on the node of the CPU now.
    Promoted,
    /// It is on its way there; whoever touches it before [`Engine::migrate_done`] waits.
    Migrating,
}

/// Promoters and time stamps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hints {
    cfg: TieringConfig,
    /// By node; none: hint faults promote nothing.
    promoters: Vec<Option<Promoter>>,
    /// By folio: when it was marked last. Grows as far as it is needed.
    stamps: Vec<Stamp>,
}

impl Hints {
    /// For a machine of several nodes; an impossible configuration is an error.
    pub(crate) fn new(cfg: &Config) -> Result<Hints, String> {
        let Some(numa) = cfg.numa.as_ref().filter(|n| n.tiering.promotes()) else { return Ok(Hints::default()) };
        let top = |n: usize| numa.top_tier.get(n).copied().unwrap_or(true);
        let promoter = |n: usize| top(n).then(|| Promoter::new(&numa.tiering)).transpose();
        let promoters = (0..numa.nodes.len()).map(promoter).collect::<Result<_, _>>()?;
        Ok(Hints { cfg: numa.tiering.clone(), promoters, stamps: Vec::new() })
    }

    fn promoter(&self, nid: NodeId) -> Option<&Promoter> {
        self.promoters.get(nid.index())?.as_ref()
    }

    fn stamp(&self, f: FolioId) -> Stamp {
        self.stamps.get(f.index()).copied().unwrap_or_default()
    }

    fn set_stamp(&mut self, f: FolioId, stamp: Stamp) {
        if self.stamps.len() <= f.index() {
            self.stamps.resize(f.index() + 1, Stamp::default());
        }
        self.stamps[f.index()] = stamp;
    }

    /// A folio has come to a node by promotion.
    pub(crate) fn promoted(&mut self, to: NodeId, nr: u64) {
        if let Some(Some(promoter)) = self.promoters.get_mut(to.index()) {
            promoter.promoted(nr);
        }
    }

    /// I9.2 and I9.3, of every promoter.
    pub(crate) fn validate(&self) -> Result<(), String> {
        self.promoters.iter().flatten().try_for_each(Promoter::validate)
    }
}

impl Engine {
    /// Whether the driver is to make a mapped page inaccessible, so that its next touch is a hint fault. The page is stamped with the time
    /// then. Pages of the top tier are passed over (unless `numa_balancing` has the normal bit), and so are dirty file pages.
    #[inline]
    pub fn hint_mark(&mut self, page: PageId) -> bool {
        let Some(f) = self.folio_of(page) else { return false };
        let nid = self.folios.nid(f);
        let top = self.hints.promoter(nid).is_some();
        let Some(clock) = self.hints.promoters.iter().flatten().next().map(Promoter::clock) else { return false };
        let st = self.folios.st(f);
        let dirty_file = st.has(State::DIRTY) && !st.has(State::ANON);
        if dirty_file || (top && !self.hints.cfg.marks_toptier()) {
            return false;
        }
        if !top {
            self.hints.set_stamp(f, clock.stamp(self.now_ns));
        }
        self.count(f, Counter::NumaPteUpdates, 1);
        true
    }

    /// The touch of a page that was marked, by the CPU of [`Engine::set_cpu`]. The driver has taken the mark off; the touch itself comes
    /// after this call.
    pub fn hint_fault<W: World>(&mut self, w: &mut W, page: PageId) -> Hint {
        let Some(f) = self.folio_of(page) else { return Hint::Stay };
        let (from, to) = (self.folios.nid(f), self.nid);
        self.count(f, Counter::NumaHintFaults, 1);
        if from == to {
            self.count(f, Counter::NumaHintFaultsLocal, 1);
        }
        // Balancing among nodes that are equally fast is not modelled.
        if from == to || self.hints.promoter(from).is_some() {
            return Hint::Stay;
        }
        match self.decide_promotion(w, f, to) {
            Some(HintAction::Promote) => self.promote_folio(w, f, to),
            Some(HintAction::MarkAccessed) => {
                self.mark_accessed(f);
                Hint::Stay
            }
            Some(HintAction::Activate) if !self.cfg.one_list => {
                self.batch_add(Batch::Activate, f);
                Hint::Stay
            }
            Some(HintAction::Activate | HintAction::Reject(_)) | None => Hint::Stay,
        }
    }

    fn decide_promotion<W: World>(&mut self, w: &mut W, f: FolioId, to: NodeId) -> Option<HintAction> {
        let (page, pages) = (self.folios.page(f), self.folios.st(f).nr_pages());
        let node = self.nodes.get(to);
        let free_space = free_space_enough(&self.hints.cfg, node.managed_pages(), node.free_and_promo());
        let hottest = self.hints.cfg.policy == PromotionPolicy::Oracle && w.is_hottest(page);
        let active = self.is_active(f);
        let (stamp, now_ns) = (self.hints.stamp(f), self.now_ns);
        let promoter = self.hints.promoters.get_mut(to.index())?.as_mut()?;
        let candidates = promoter.stats().candidates;
        let action = promoter.hint_fault(&HintFault { now_ns, stamp, pages, active, hottest, free_space });
        let (new, now) = (promoter.stats().candidates - candidates, promoter.clock().stamp(now_ns));
        self.hints.set_stamp(f, now);
        self.count_machine(Counter::PgpromoteCandidate, new);
        Some(action)
    }

    /// Whether a folio is on an active list; under multi-gen LRU, in one of the two youngest generations.
    fn is_active(&self, f: FolioId) -> bool {
        let st = self.folios.st(f);
        let v = &self.lruvecs[self.folios.lruvec(f).index()];
        st.generation().map_or(st.has(State::ACTIVE), |g| v.r#gen.is_active(g))
    }

    /// Moves a folio up, if that can be done without waiting and there is room; where there is none, kswapd makes some.
    fn promote_folio<W: World>(&mut self, w: &mut W, f: FolioId, to: NodeId) -> Hint {
        let st = self.folios.st(f);
        let nr = st.nr_pages();
        let busy = st.has(State::LOCKED | State::WRITEBACK | State::UNEVICTABLE) || !st.has(State::LRU);
        if busy || (st.has(State::DIRTY) && !st.has(State::ANON)) || self.pages_of(f).any(|p| w.is_pinned(PageId(p))) {
            return Hint::Stay;
        }
        if !self.nodes.get(to).has_beyond_high(nr) {
            self.wake_kswapd(w, to);
            return Hint::Stay;
        }
        let Some(frames) = self.nodes.take_on(to, nr, Mark::Low) else { return Hint::Stay };
        self.lruvec_del(f, false);
        self.folios.clear(f, State::LRU);
        match self.migrate(w, f, frames, Reason::Promotion) {
            Ack::Done => Hint::Promoted,
            Ack::Pending => Hint::Migrating,
            Ack::Failed => {
                self.folios.set(f, State::LRU);
                self.lruvec_add(f, false);
                Hint::Stay
            }
        }
    }

    /// What decides about promotion to a node; none: nothing is promoted to it.
    pub fn promoter(&self, nid: NodeId) -> Option<&Promoter> {
        self.hints.promoter(nid)
    }
}
