//! Background reclaim: kswapd as a state machine that the driver gives the processor to, one
//! priority step at a time.
//!
//! Mechanism: `docs/mechanisms.md#kswapd`.

use crate::ids::{MemcgId, NodeId};
use crate::lru::lru_list::ANON;
use crate::node::kswapd::KswapdStep;
use crate::node::throttle::WRITEBACK_WAIT_NS;
use crate::reclaim::Reclaim;
use crate::reclaim::policy::ReclaimPolicy;
use crate::scan::DEF_PRIORITY;
use crate::stat::Counter;
use crate::world::{ThrottleReason, World};

impl<W: World> Reclaim<'_, W> {
    /// One step: a pass over the node at one priority, or the part of a pass until another thread
    /// is to have the processor. `Sleep`: there is nothing more to do. True: the run is over;
    /// otherwise it goes on with `sc`.
    pub(crate) fn kswapd_step(&mut self) -> (KswapdStep, bool) {
        let before = match self.sc.at.as_ref().map(|at| at.gained) {
            Some(gained) => gained,
            None if self.begin_pass() => self.kswapd_gained(),
            None => return (self.end_kswapd_run(), true),
        };
        self.sc.interrupted = false;
        self.shrink_node();
        self.mem.frames.relieve_throttled(self.world, &self.sc);
        if self.sc.interrupted {
            self.sc.interrupt().gained = before;
            return (KswapdStep::Again, false);
        }
        self.sc.at = None;
        self.end_pass(self.kswapd_gained() - before)
    }

    /// Sets the target of the next pass. False: no pass is needed, and the run is over.
    fn begin_pass(&mut self) -> bool {
        let nid = self.sc.nid;
        let node = self.mem.frames.nodes.get(nid);
        let balanced = node.is_balanced(self.sc.reclaim_idx);
        if !balanced && self.sc.boost_left > 0 {
            // Pages are missing in earnest: the boost is made up for on the way.
            (self.sc.boost_left, self.sc.priority) = (0, DEF_PRIORITY);
        }
        if balanced && self.sc.boost_left == 0 {
            return false;
        }
        self.sc.nr_to_reclaim = node.kswapd_target(self.mem.cfg.lru.swap_cluster_max, self.sc.reclaim_idx);
        // For a boost alone nothing is written, and the lists are not scanned in earnest.
        let for_boost = self.sc.boost_left > 0;
        (self.sc.may_writepage, self.sc.may_swap) = (!for_boost, !for_boost);
        by_policy!(self.mem.cfg.lru.kind, P => P::age(self));
        if self.sc.priority + 2 < DEF_PRIORITY {
            self.sc.may_writepage = true;
        }
        // Since its last step anything may have happened.
        (self.sc.nr_scanned, self.sc.empty_since) = (0, 0);
        true
    }

    /// Ends a pass that gained `gained` pages: decides whether there is another pass, and its
    /// priority.
    fn end_pass(&mut self, gained: u64) -> (KswapdStep, bool) {
        // A pass that began for a boost alone may not swap.
        let for_boost = !self.sc.may_swap;
        let may_lower = !(for_boost && self.sc.priority + 2 == DEF_PRIORITY);
        if std::mem::take(&mut self.sc.blocked) {
            // kswapd sleeps in the block layer, and goes on where it was.
            self.mem.frames.throttle(self.world, ThrottleReason::Writeback, WRITEBACK_WAIT_NS);
            return (KswapdStep::Again, false);
        }
        self.sc.boost_left -= gained.min(self.sc.boost_left);
        if self.sc.boost_left > 0 && gained == 0 {
            return (self.end_kswapd_run(), true);
        }
        if (self.sc.nr_scanned < self.sc.nr_to_reclaim && may_lower) || gained == 0 {
            if self.sc.priority == 1 {
                let trimmed_in_vain = self.sc.nr_reclaimed == 0 && self.sc.trim_pass_failed;
                if trimmed_in_vain && !self.sc.cache_trim_mode_failed && self.mem.cfg.lru.retry_without_trim {
                    // The same run begins anew, with everything.
                    (self.sc.cache_trim_mode_failed, self.sc.priority) = (true, DEF_PRIORITY);
                    return (KswapdStep::Again, false);
                }
                return (self.end_kswapd_run(), true);
            }
            self.sc.priority -= 1;
        }
        (KswapdStep::Again, false)
    }

    /// Pages that the run has freed so far, without those still moving to another node.
    fn kswapd_gained(&self) -> u64 {
        self.sc
            .nr_reclaimed
            .saturating_sub(self.sc.credited + self.mem.frames.nodes.get(self.sc.nid).kswapd.on_their_way)
    }

    fn end_kswapd_run(&mut self) -> KswapdStep {
        self.mem.pages.snapshot_refaults_on(&self.mem.groups, MemcgId::ROOT, self.sc.nid);
        self.mem.memcontrol().reap_memcgs();
        let gained = self.kswapd_gained();
        let revival = self.mem.cfg.lru.kswapd_revival;
        let node = self.mem.frames.nodes.get_mut(self.sc.nid);
        let in_vain = !node.is_balanced(self.sc.reclaim_idx) || self.sc.boost_left > 0;
        let boosts = std::mem::take(&mut node.kswapd.boosts);
        node.lower_boosts(boosts);
        let balanced = node.is_balanced(self.sc.reclaim_idx);
        node.kswapd.on_their_way = 0;
        if gained > 0 {
            node.revive_kswapd(revival, self.sc.reclaim_idx);
        } else if in_vain {
            node.kswapd.failures += 1;
        }
        if !balanced && !node.kswapd.is_hopeless() {
            self.mem.pages.count_machine(Counter::KswapdHighWmarkHitQuickly, 1);
            return KswapdStep::Again;
        }
        // Its findings about the node do not hold any more.
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
        crate::lru::lru_list::is_low(
            &self.mem.pages.known_sizes(&self.mem.groups, MemcgId::ROOT, nid),
            t,
            Some(self.mem.cfg.lru.gib_pages),
        )
    }
}

#[cfg(test)]
mod tests {
    use crate::config::node::NodeConfig;
    use crate::config::{Config, Policy};
    use crate::engine::Engine;
    use crate::folio::mapping::MappingKind;
    use crate::ids::{MemcgId, NodeId, PageId};
    use crate::node::kswapd::KswapdStep;
    use crate::stat::Counter;
    use crate::touch::Touch;
    use crate::world_at_once::AtOnce;

    /// The boost of a low zone is made up for with pages of that zone, of files, and is gone then.
    #[test]
    fn a_boost_is_made_up_for_in_its_zone_and_without_swap() {
        for policy in [Policy::Lru, Policy::Mglru] {
            let node = NodeConfig { page_blocks: true, ..NodeConfig::new(1 << 15) };
            let mut cfg = Config { node: Some(node), ..Config::new(policy) };
            cfg.swap.pages = 1 << 16;
            let mut e = Engine::new(cfg).unwrap();
            let mut w = AtOnce::default();
            let (_, anon) = e.add_mapping(MappingKind::Anon, MemcgId::ROOT, 0..4000).unwrap();
            let (_, file) = e.add_mapping(MappingKind::File, MemcgId::ROOT, 0..40_000).unwrap();
            (0..4000).for_each(|i| _ = e.access(&mut w, PageId(anon.0 + i), Touch::MapWrite));
            (0..40_000).for_each(|i| _ = e.access(&mut w, PageId(file.0 + i), Touch::Read));
            e.mem.frames.nodes.all[0].kswapd.awake = true;
            assert!(e.run_kswapd(&mut w, 1000));
            let free = |e: &Engine| e.zones().map(|z| z.2).collect::<Vec<_>>();
            let (before, swapped) = (free(&e), e.vmstat().get(Counter::Pswpout));
            let node = &mut e.mem.frames.nodes.all[0];
            assert!(node.is_balanced(0), "{policy:?}: {before:?}");
            node.boost(0);
            (node.kswapd.awake, node.kswapd.wanted) = (true, Some(0));
            assert!(e.run_kswapd(&mut w, 1000));
            let after = free(&e);
            assert!(after[0] >= before[0] + 90, "{policy:?}: {before:?} {after:?}");
            assert_eq!((after[1], e.vmstat().get(Counter::Pswpout)), (before[1], swapped), "{policy:?}");
            assert_eq!(e.mem.frames.nodes.get(NodeId(0)).boosts(0), [0; 3]);
            e.validate().unwrap();
        }
    }

    /// A machine with two groups, whose kswapd has something to do, and the first page of each.
    fn short_of_memory(policy: Policy) -> (Engine, AtOnce, [(MemcgId, PageId); 2]) {
        let mut cfg = Config { node: Some(NodeConfig::new(1 << 14)), ..Config::new(policy) };
        cfg.swap.pages = 1 << 14;
        let (mut e, mut w) = (Engine::new(cfg).unwrap(), AtOnce::default());
        let groups = [MappingKind::Anon, MappingKind::File].map(|kind| {
            let group = e.add_memcg(MemcgId::ROOT, "g", u64::MAX, u64::MAX).unwrap();
            (group, e.add_mapping(kind, group, 0..8500).unwrap().1)
        });
        for i in 0..16_000 {
            let touch = [Touch::MapWrite, Touch::Read][i as usize % 2];
            let _ = e.access(&mut w, PageId(groups[i as usize % 2].1.0 + i / 2), touch);
        }
        e.mem.frames.nodes.all[0].kswapd.awake = true;
        (e, w, groups)
    }

    /// A run for a low zone skips pages of higher zones, which do not change its priority.
    #[test]
    fn regression_pages_of_other_zones_are_not_scanned_for_the_priority() {
        let node = NodeConfig { page_blocks: true, ..NodeConfig::new(1 << 15) };
        let cfg = Config { node: Some(node), ..Config::new(Policy::Lru) };
        let (mut e, mut w) = (Engine::new(cfg).unwrap(), AtOnce::default());
        let (_, file) = e.add_mapping(MappingKind::File, MemcgId::ROOT, 0..40_000).unwrap();
        (0..40_000).for_each(|i| _ = e.access(&mut w, PageId(file.0 + i), Touch::Read));
        e.mem.frames.nodes.all[0].kswapd.awake = true;
        assert!(e.run_kswapd(&mut w, 1000));
        let node = &mut e.mem.frames.nodes.all[0];
        (node.kswapd.awake, node.kswapd.wanted) = (true, Some(0));
        node.boost(0);
        let scanned = |e: &Engine| [Counter::PgscanKswapd, Counter::PgscanSkip].map(|c| e.vmstat().get(c));
        let mut passed_over = 0;
        loop {
            let before = scanned(&e);
            if e.kswapd_step(&mut w) == KswapdStep::Sleep {
                break;
            }
            let [all, skipped] = [0, 1].map(|i| scanned(&e)[i] - before[i]);
            let run = e.mem.frames.nodes.all[0].kswapd.run.as_ref().unwrap();
            assert_eq!(run.nr_scanned, all - skipped);
            passed_over += skipped;
        }
        assert!(passed_over > 0);
    }

    /// `vmpressure` is told by passes over the machine with two lists, and by no others.
    #[test]
    fn passes_over_the_machine_wake_the_worker_of_vmpressure() {
        for policy in [Policy::Lru, Policy::Mglru] {
            let (mut e, mut w, [_, (group, _)]) = short_of_memory(policy);
            let scanned = |e: &Engine| e.vmstat().get(Counter::PgscanKswapd) + e.vmstat().get(Counter::PgscanDirect);
            let told = w.vmpressure;
            e.reclaim(&mut w, group, 1500, None).unwrap();
            assert_eq!(w.vmpressure, told, "{policy:?}: a group");
            let before = scanned(&e);
            let (_, first) = e.add_mapping(MappingKind::File, MemcgId::ROOT, 0..20_000).unwrap();
            (0..20_000).for_each(|i| _ = e.access(&mut w, PageId(first.0 + i), Touch::Read));
            let windows = (scanned(&e) - before) / 512;
            assert!(windows > 5, "{policy:?}: {windows}");
            let expected = if policy == Policy::Lru { windows / 2..windows + 1 } else { 0..1 };
            assert!(expected.contains(&(w.vmpressure - told)), "{policy:?}: {} of {windows}", w.vmpressure - told);
        }
    }

    fn counts(e: &Engine) -> Vec<u64> {
        Counter::ALL.iter().map(|&c| e.vmstat().get(c)).collect()
    }

    /// A pass that is interrupted after every batch comes to the same, if nothing happens between.
    #[test]
    fn a_pass_that_is_interrupted_goes_on_where_it_was() {
        for policy in [Policy::Lru, Policy::Mglru] {
            let run = |interrupts: bool| {
                let (mut e, mut w, _) = short_of_memory(policy);
                w.interrupts = interrupts;
                let steps = (1..).find(|_| e.kswapd_step(&mut w) == KswapdStep::Sleep).unwrap();
                e.validate().unwrap();
                (counts(&e), steps)
            };
            let ((whole, steps), (parts, more)) = (run(false), run(true));
            assert_eq!(whole, parts, "{policy:?}");
            assert!(more > steps, "{policy:?}: {more} steps in place of {steps}");
        }
    }

    /// The group whose lists were scanned goes away meanwhile.
    #[test]
    fn a_pass_goes_on_without_a_group_that_is_gone() {
        for policy in [Policy::Lru, Policy::Mglru] {
            let (mut e, mut w, groups) = short_of_memory(policy);
            w.interrupts = true;
            let at = |e: &Engine| e.mem.frames.nodes.all[0].kswapd.run.as_ref()?.at.as_ref().map(|at| at.memcg);
            let is_in_a_group = |m: &MemcgId| *m != MemcgId::ROOT;
            let group = (0..100).find_map(|_| {
                assert_eq!(e.kswapd_step(&mut w), KswapdStep::Again);
                at(&e).filter(is_in_a_group)
            });
            let (group, first) = groups.into_iter().find(|g| Some(g.0) == group).unwrap();
            e.zap_range(&mut w, first, 8500);
            e.remove_memcg(group).unwrap();
            e.mem.memcontrol().reap_memcgs();
            e.validate().unwrap();
            assert!(e.run_kswapd(&mut w, 10_000), "{policy:?}");
            e.validate().unwrap();
        }
    }
}
