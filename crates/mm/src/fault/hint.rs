//! Hint faults: a marked page of slow memory was touched, and may move to fast memory.
//!
//! Mechanism: `docs/mechanisms.md#hint-faults`, `docs/mechanisms.md#promotion`.

use crate::fault::FaultContext;
use crate::folio::flags::FolioFlags;
use crate::ids::{FolioId, NodeId, PageId};
use crate::lru::lru_list::FILE;
use crate::node::hint::HintOutcome;
use crate::node::migration::MigrateReason;
use crate::node::zones::AllocWatermark;
use crate::stat::Counter;
use crate::tiering::{HintAction, HintFault, PromotionPolicy, Rejection, free_space_enough};
use crate::world::{Ack, World};

impl<W: World> FaultContext<'_, W> {
    /// A marked page was touched, on the current CPU. The mark is gone.
    pub(crate) fn hint_fault(&mut self, page: PageId) -> HintOutcome {
        let Some(f) = self.mem.pages.folios.slot(page).folio() else { return HintOutcome::Stay };
        let (from, to) = (self.mem.pages.folios.nid(f), self.mem.frames.nid);
        self.mem.pages.count(f, Counter::NumaHintFaults, 1);
        if from == to {
            self.mem.pages.count(f, Counter::NumaHintFaultsLocal, 1);
        }
        match &self.mem.frames.hints {
            Some(hints) if from != to && !hints.is_toptier(from) && hints.is_toptier(to) => {}
            // Balancing between nodes of one kind is not done here.
            _ => return HintOutcome::Stay,
        }
        match self.decide_promotion(page, f, to) {
            HintAction::Promote => return self.promote_folio(f, to),
            HintAction::MarkAccessed => self.mem.pages.mark_accessed(f),
            HintAction::Activate => self.mem.pages.activate_touched(f),
            HintAction::Reject(_) => {}
        }
        HintOutcome::Stay
    }

    fn decide_promotion(&mut self, page: PageId, f: FolioId, to: NodeId) -> HintAction {
        let (st, pages, now_ns) =
            (self.mem.pages.folios.st(f), self.mem.pages.folios.st(f).nr_pages(), self.mem.now_ns);
        let active = match st.generation() {
            Some(i) => self.mem.pages.lruvecs[self.mem.pages.folios.lruvec(f).index()].r#gen.is_active(i),
            None => st.has(FolioFlags::ACTIVE),
        };
        let Some(hints) = &mut self.mem.frames.hints else { return HintAction::Reject(Rejection::Cold) };
        let node = self.mem.frames.nodes.get(to);
        let free_space = free_space_enough(&hints.cfg, node.managed_pages(), node.promotion_marks());
        let hottest = hints.cfg.policy == PromotionPolicy::Oracle && self.world.is_hottest(page);
        let stamp = self.mem.pages.folios.links.stamp(f);
        let Some(promoter) = &mut hints.promoters[to.index()] else { return HintAction::Reject(Rejection::Cold) };
        let before = promoter.stats().candidates;
        let action = promoter.hint_fault(&HintFault { now_ns, stamp, pages, active, hottest, free_space });
        let candidates = promoter.stats().candidates - before;
        let now = hints.clock.stamp(now_ns);
        self.mem.pages.folios.links.set_stamp(f, now);
        self.mem.pages.count(f, Counter::PgpromoteCandidate, candidates);
        action
    }

    /// Moves a folio that was chosen, if it can be moved and there is room beyond the high mark.
    fn promote_folio(&mut self, f: FolioId, to: NodeId) -> HintOutcome {
        let st = self.mem.pages.folios.st(f);
        let nr = st.nr_pages();
        if st.type_index() == FILE
            && (st.has(FolioFlags::DIRTY) || self.world.is_shared_executable(self.mem.pages.folios.page(f)))
        {
            return HintOutcome::Stay;
        }
        if !self.mem.frames.nodes.get(to).has_room_for_promotion(nr) {
            self.mem.frames.wake_kswapd(&mut self.mem.pages, self.mem.now_ns, self.world, to);
            return HintOutcome::Stay;
        }
        // The folio waits in a batch, or someone else holds it.
        if !st.has(FolioFlags::LRU) {
            return HintOutcome::Stay;
        }
        let busy = st.has(FolioFlags::LOCKED | FolioFlags::WRITEBACK)
            || self.mem.pages.pages_of(f).any(|p| self.world.is_pinned(PageId(p)));
        let take = |mark| self.mem.frames.nodes.take_on(to, nr, mark);
        let zone = if busy { None } else { [AllocWatermark::Low, AllocWatermark::Min].into_iter().find_map(take) };
        let Some(zone) = zone else {
            self.mem.pages.count_machine(Counter::PgmigrateFail, nr);
            return HintOutcome::Stay;
        };
        self.mem.pages.lruvec_del(f, false);
        self.mem.pages.folios.clear(f, FolioFlags::LRU);
        match self.mem.migration(self.world).migrate(f, zone, MigrateReason::Promotion) {
            Ack::Done => HintOutcome::Promoted,
            Ack::Pending => HintOutcome::Migrating,
            Ack::Failed => {
                self.mem.migration(self.world).add_migrated(f, MigrateReason::Promotion);
                HintOutcome::Stay
            }
        }
    }
}
