//! Background reclaim: kswapd as a state machine that the driver gives the processor to, one
//! priority step at a time.
//!
//! Mechanism: `docs/mechanisms.md#kswapd`.

use crate::ids::{MemcgId, NodeId};
use crate::lru::lruvec::ANON;
use crate::node::kswapd::KswapdStep;
use crate::node::throttle::WRITEBACK_WAIT_NS;
use crate::reclaim::Reclaim;
use crate::reclaim::policy::ReclaimPolicy;
use crate::scan::DEF_PRIORITY;
use crate::stat::Counter;
use crate::world::{ThrottleReason, World};

impl<W: World> Reclaim<'_, W> {
    /// One step: a pass over the node at one priority. `Sleep`: there is nothing more to do. The
    /// run goes on with `sc`, unless it is over, which the flag says.
    pub(crate) fn kswapd_step(&mut self) -> (KswapdStep, bool) {
        let nid = self.sc.nid;
        if self.mem.frames.nodes.get(nid).is_balanced() {
            return (self.end_kswapd_run(), true);
        }
        by_policy!(self.mem.cfg.lru.kind, P => P::age(self));
        if self.sc.priority + 2 < DEF_PRIORITY {
            self.sc.may_writepage = true;
        }
        // Since its last step anything may have happened.
        (self.sc.nr_scanned, self.sc.empty_since) = (0, 0);
        let before = self.kswapd_gained();
        self.shrink_node();
        self.mem.frames.relieve_throttled(self.world, &self.sc);
        if std::mem::take(&mut self.sc.blocked) {
            // It sleeps in the block layer, and goes on where it was.
            self.mem.frames.throttle(self.world, ThrottleReason::Writeback, WRITEBACK_WAIT_NS);
            return (KswapdStep::Again, false);
        }
        if self.sc.nr_scanned < self.sc.nr_to_reclaim || self.kswapd_gained() == before {
            if self.sc.priority == 1 {
                let kswapd = &mut self.mem.frames.nodes.get_mut(nid).kswapd;
                let trimmed_in_vain = self.sc.nr_reclaimed == 0 && self.sc.trim_failed;
                if trimmed_in_vain && !kswapd.no_trim && self.mem.cfg.lru.retry_without_trim {
                    // Once more, with everything.
                    kswapd.no_trim = true;
                    return (KswapdStep::Again, true);
                }
                return (self.end_kswapd_run(), true);
            }
            self.sc.priority -= 1;
        }
        (KswapdStep::Again, false)
    }

    /// What the run has freed so far: what is on its way elsewhere is not free yet.
    fn kswapd_gained(&self) -> u64 {
        self.sc
            .nr_reclaimed
            .saturating_sub(self.sc.credited + self.mem.frames.nodes.get(self.sc.nid).kswapd.on_their_way)
    }

    fn end_kswapd_run(&mut self) -> KswapdStep {
        self.mem.pages.snapshot_refaults_on(&self.mem.groups, MemcgId::ROOT, self.sc.nid);
        self.mem.charged().reap_memcgs();
        let gained = self.kswapd_gained();
        let node = self.mem.frames.nodes.get_mut(self.sc.nid);
        let balanced = node.is_balanced();
        (node.kswapd.no_trim, node.kswapd.on_their_way) = (false, 0);
        if gained > 0 {
            node.kswapd.failures = 0;
        } else if !balanced {
            node.kswapd.failures += 1;
        }
        if !balanced && !node.kswapd.is_hopeless() {
            self.mem.pages.count_machine(Counter::KswapdHighWmarkHitQuickly, 1);
            return KswapdStep::Again;
        }
        // What it said of the node does not hold any more.
        (node.dirty, node.writeback, node.congested) = (false, false, false);
        node.kswapd.awake = false;
        node.kswapd.slept_at_ns = self.mem.now_ns;
        self.mem.frames.unthrottle_all(self.world);
        KswapdStep::Sleep
    }

    /// Deactivates a slice of active anon of every group, if inactive anon of the node runs low.
    pub(crate) fn age_active_anon(&mut self) {
        if !self.can_age_anon(self.sc.nid) || !self.lruvecs_inactive_is_low(self.sc.nid, ANON) {
            return;
        }
        let mut at = Some(self.sc.target);
        while let Some(m) = at {
            let v = self.mem.pages.lruvec_of(m, self.sc.nid);
            self.shrink_active_list(v, ANON, self.mem.cfg.lru.cluster_pages());
            at = self.mem.groups.memcgs.next_in(self.sc.target, m);
        }
    }

    /// Whether inactive anon of the whole node is low.
    fn lruvecs_inactive_is_low(&self, nid: NodeId, t: usize) -> bool {
        crate::lru::lruvec::is_low(
            &self.mem.pages.known_sizes(&self.mem.groups, MemcgId::ROOT, nid),
            t,
            Some(self.mem.cfg.lru.gib_pages),
        )
    }
}
