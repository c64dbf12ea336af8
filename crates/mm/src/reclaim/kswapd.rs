//! Background reclaim (7.2): kswapd as a state machine that the driver gives the processor to, one priority step at a time.

use crate::alloc::frames::WRITEBACK_WAIT_NS;
use crate::config::MemcgSelection;
use crate::engine::Engine;
use crate::ids::{MemcgId, NodeId};
use crate::lru::lruvec::ANON;
use crate::reclaim::scan::{DEF_PRIORITY, ScanControl};
use crate::stat::Counter;
use crate::world::{Ack, Effect, ThrottleReason, World};

/// Runs without a page reclaimed after which a node is left to direct reclaim.
const MAX_RECLAIM_RETRIES: u32 = 16;

/// A wake-up within that time of falling asleep shows that the marks were left too early.
const SHORT_SLEEP_NS: u64 = 100_000_000;

/// kswapd of a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kswapd {
    /// Woken and not asleep again.
    pub(crate) awake: bool,
    /// The run under way.
    run: Option<ScanControl>,
    /// Runs in a row that reclaimed nothing.
    pub(crate) failures: u32,
    /// A run that only trimmed the cache failed: the next does not trim.
    pub(crate) no_trim: bool,
    /// Pages that the run counted as reclaimed while they are on their way to a slower node: they may come back.
    pub(crate) on_their_way: u64,
    slept_at_ns: u64,
}

impl Kswapd {
    /// Too many runs failed: direct reclaim must do.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.failures >= MAX_RECLAIM_RETRIES
    }
}

/// What kswapd does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KswapdStep {
    /// There is more to do: call again when it has the processor.
    Again,
    /// It sleeps until [`Effect::WakeKswapd`].
    Sleep,
}

impl Engine {
    /// An allocation went below the low mark.
    pub(crate) fn wake_kswapd<W: World>(&mut self, w: &mut W, nid: NodeId) {
        let node = self.frames.nodes.get(nid);
        if node.kswapd.awake || node.kswapd.is_hopeless() || node.is_balanced() {
            return;
        }
        if w.effect(Effect::WakeKswapd { node: nid }) != Ack::Pending {
            // The driver has none.
            return;
        }
        let kswapd = &mut self.frames.nodes.get_mut(nid).kswapd;
        kswapd.awake = true;
        if self.clock.now_ns - kswapd.slept_at_ns.min(self.clock.now_ns) < SHORT_SLEEP_NS && kswapd.slept_at_ns > 0 {
            self.count_machine(Counter::KswapdLowWmarkHitQuickly, 1);
        }
    }

    /// [`Engine::kswapd_node_step`] for the first node: on most machines there is no other.
    pub fn kswapd_step<W: World>(&mut self, w: &mut W) -> KswapdStep {
        self.kswapd_node_step(w, NodeId::default())
    }

    /// One step of the kswapd of a node: a pass over the node at one priority. The driver calls it from [`Effect::WakeKswapd`] on until
    /// it sleeps, and charges it the processor time of [`Engine::take_work`].
    pub fn kswapd_node_step<W: World>(&mut self, w: &mut W, nid: NodeId) -> KswapdStep {
        if !self.frames.nodes.all.get(nid.index()).is_some_and(|n| n.kswapd.awake) {
            return KswapdStep::Sleep;
        }
        let mut sc = match self.frames.nodes.get_mut(nid).kswapd.run.take() {
            Some(sc) => sc,
            None => self.start_kswapd_run(nid),
        };
        if self.frames.nodes.get(nid).is_balanced() {
            return self.end_kswapd_run(w, &sc);
        }
        self.kswapd_age(w, &mut sc);
        if sc.priority + 2 < DEF_PRIORITY {
            sc.may_writepage = true;
        }
        // Since its last step anything may have happened.
        (sc.nr_scanned, sc.quiet_since) = (0, 0);
        let before = self.kswapd_gained(&sc);
        self.shrink_node(w, &mut sc);
        self.relieve_throttled(w, &sc);
        if std::mem::take(&mut sc.blocked) {
            // It sleeps in the block layer, and goes on where it was.
            self.throttle(w, ThrottleReason::Writeback, WRITEBACK_WAIT_NS);
            self.frames.nodes.get_mut(nid).kswapd.run = Some(sc);
            return KswapdStep::Again;
        }
        if sc.nr_scanned < sc.nr_to_reclaim || self.kswapd_gained(&sc) == before {
            if sc.priority == 1 {
                let kswapd = &mut self.frames.nodes.get_mut(nid).kswapd;
                if sc.nr_reclaimed == 0 && sc.trim_failed && !kswapd.no_trim {
                    // Once more, with everything.
                    kswapd.no_trim = true;
                    return KswapdStep::Again;
                }
                return self.end_kswapd_run(w, &sc);
            }
            sc.priority -= 1;
        }
        self.frames.nodes.get_mut(nid).kswapd.run = Some(sc);
        KswapdStep::Again
    }

    fn start_kswapd_run(&mut self, nid: NodeId) -> ScanControl {
        self.count_machine(Counter::Pageoutrun, 1);
        let node = self.frames.nodes.get(nid);
        let target = node.kswapd_target(self.cfg.swap_cluster_max);
        let mut sc = ScanControl::for_memcg(MemcgId::ROOT, target, None);
        (sc.nid, sc.kswapd) = (nid, true);
        sc.no_trim = node.kswapd.no_trim;
        sc
    }

    /// What the run has freed so far: what is on its way elsewhere is not free yet.
    fn kswapd_gained(&self, sc: &ScanControl) -> u64 {
        sc.nr_reclaimed.saturating_sub(sc.credited + self.frames.nodes.get(sc.nid).kswapd.on_their_way)
    }

    fn end_kswapd_run<W: World>(&mut self, w: &mut W, sc: &ScanControl) -> KswapdStep {
        self.snapshot_refaults_on(MemcgId::ROOT, sc.nid);
        self.reap_memcgs();
        let gained = self.kswapd_gained(sc);
        let node = self.frames.nodes.get_mut(sc.nid);
        let balanced = node.is_balanced();
        (node.kswapd.no_trim, node.kswapd.on_their_way) = (false, 0);
        if gained > 0 {
            node.kswapd.failures = 0;
        } else if !balanced {
            node.kswapd.failures += 1;
        }
        if !balanced && !node.kswapd.is_hopeless() {
            self.count_machine(Counter::KswapdHighWmarkHitQuickly, 1);
            return KswapdStep::Again;
        }
        // What it said of the node does not hold any more.
        (node.dirty, node.writeback, node.congested) = (false, false, false);
        node.kswapd.awake = false;
        node.kswapd.slept_at_ns = self.clock.now_ns;
        self.unthrottle_all(w);
        KswapdStep::Sleep
    }

    /// Before each pass: `min_ttl_ms` under multi-gen LRU, else a slice of active anon if inactive anon runs low.
    fn kswapd_age<W: World>(&mut self, w: &mut W, sc: &mut ScanControl) {
        if self.is_multi_gen() {
            self.age_node_on(w, sc.nid);
            if self.cfg.memcgs != MemcgSelection::MemcgLru {
                self.age_memcgs(w, sc);
            }
            return;
        }
        if !self.can_age_anon(sc.nid) || !self.lruvecs_inactive_is_low(sc.nid, ANON) {
            return;
        }
        let mut at = Some(sc.target);
        while let Some(m) = at {
            let v = self.lruvec_of(m, sc.nid);
            self.shrink_active_list(w, v, ANON, self.cfg.swap_cluster_max);
            at = self.groups.memcgs.next_in(sc.target, m);
        }
    }

    /// Whether inactive anon of the whole node is low.
    fn lruvecs_inactive_is_low(&self, nid: NodeId, t: usize) -> bool {
        crate::lru::lruvec::is_low(&self.known_sizes(MemcgId::ROOT, nid), t, Some(self.cfg.gib_pages))
    }
}
