//! The frames of the machine: its nodes, what moves between them, and which tasks wait for free
//! ones.

use std::collections::BTreeMap;

/// Nanoseconds of sleep: a wake-up of kswapd that comes sooner shows that it fell asleep too early.
const SHORT_SLEEP_NS: u64 = 100_000_000;

use crate::config::Config;
use crate::folio::flags::FolioFlags;
use crate::ids::{ANY_ZONE, FolioId, MemcgId, NodeId, PageId, ZoneId};
use crate::lru::lru_list::FILE;
use crate::lru::pages::ResidentPages;
use crate::node::buffer_heads::BufferHeads;
use crate::node::hint::HintFaults;
use crate::node::migration::Migration;
use crate::node::nodes::Nodes;
use crate::node::page_blocks::MigrateType;
use crate::node::throttle::Throttled;
use crate::node::zones::AllocWatermark;
use crate::scan::ScanControl;
use crate::stat::Counter;
use crate::world::{Ack, Effect, World};

/// All frames.
#[derive(Clone, Debug)]
pub(crate) struct Frames {
    pub(crate) nodes: Nodes,
    /// The node of the CPU on which things happen.
    pub(crate) nid: NodeId,
    pub(crate) throttled: Throttled,
    /// Folios on their way to another node.
    pub(crate) migrating: BTreeMap<FolioId, Migration>,
    /// State for hint faults, on a machine where they promote.
    pub(crate) hints: Option<HintFaults>,
    /// The last reclaim for a task ended because swap takes no more writes for now.
    pub(crate) reclaim_blocked: bool,
    /// The last reclaim for a task paused, and is to go on when time has passed.
    pub(crate) paused: Option<Box<ScanControl>>,
    /// The last allocation ended because its task lets kswapd go first.
    pub(crate) yielded: bool,
    /// Allocations may take what is kept for reclaim.
    pub(crate) memalloc: bool,
    /// Charges from here on are for readahead (`NOFS`): reclaim for them may not shrink file
    /// systems.
    pub(crate) nofs: bool,
    /// Where file systems keep them.
    pub(crate) buffer_heads: Option<BufferHeads>,
}

impl Frames {
    /// All nodes of a configuration, with all frames free.
    pub(crate) fn new(cfg: &Config) -> Result<Frames, String> {
        let nodes = Nodes::new(cfg);
        let has_buffer_heads =
            cfg.node.iter().chain(cfg.numa.iter().flat_map(|numa| &numa.nodes)).any(|node| node.buffer_heads);
        Ok(Frames {
            nid: nodes.of_cpu(0),
            nodes,
            throttled: Throttled::default(),
            migrating: BTreeMap::new(),
            hints: HintFaults::new(cfg.numa.as_ref())?,
            reclaim_blocked: false,
            paused: None,
            yielded: false,
            memalloc: false,
            nofs: false,
            buffer_heads: has_buffer_heads.then(BufferHeads::default),
        })
    }
}

impl Frames {
    /// Demotion: whether reclaim on a node can move pages to a slower one.
    #[inline(always)]
    pub(crate) fn can_demote(&self, nid: NodeId) -> bool {
        self.nodes.are_several() && self.nodes.demotes(nid)
    }

    /// Takes frames on the target, else on any slower node, the nearest to the target first. No
    /// task reclaims or waits for them, but kswapd is woken on a node without frames.
    pub(crate) fn demotion_frames<W: World>(
        &mut self,
        pages: &mut ResidentPages,
        now_ns: u64,
        w: &mut W,
        from: NodeId,
        target: NodeId,
        nr: u64,
    ) -> Option<ZoneId> {
        let zone = self.frames_without_reclaim(pages, now_ns, w, target, nr);
        if zone.is_some() {
            return zone;
        }
        let others: Vec<NodeId> = self.nodes.demotion_fallbacks(from, target).collect();
        others.into_iter().find_map(|nid| self.frames_without_reclaim(pages, now_ns, w, nid, nr))
    }

    fn frames_without_reclaim<W: World>(
        &mut self,
        pages: &mut ResidentPages,
        now_ns: u64,
        w: &mut W,
        nid: NodeId,
        nr: u64,
    ) -> Option<ZoneId> {
        let zone = self.nodes.take_on(nid, nr, AllocWatermark::Low);
        if zone.is_some() {
            return zone;
        }
        self.wake_kswapd(pages, now_ns, w, nid);
        self.nodes.take_on(nid, nr, AllocWatermark::Min)
    }

    /// Frames that are taken for folios on their way there, by node: they belong to no folio yet.
    pub(crate) fn frames_under_way<'a>(&'a self, pages: &'a ResidentPages) -> impl Iterator<Item = (NodeId, u64)> + 'a {
        self.migrating.iter().map(|(&f, m)| (m.to.nid(), pages.folios.st(f).nr_pages()))
    }

    /// Notes that the driver marks a page, so that its next touch is a hint fault. False: the
    /// driver must leave it alone: it is not mapped, not on slow memory, or a dirty file page,
    /// which could not be moved.
    pub(crate) fn hint_mark(&mut self, pages: &mut ResidentPages, now_ns: u64, page: PageId) -> bool {
        let Some(hints) = &self.hints else { return false };
        let Some(f) = pages.folios.slot(page).folio().filter(|_| pages.space.is_mapped(page)) else { return false };
        let (st, top_tier) = (pages.folios.st(f), hints.is_toptier(pages.folios.nid(f)));
        let dirty_file = st.type_index() == FILE && st.has(FolioFlags::DIRTY);
        if dirty_file || (top_tier && !hints.cfg.marks_toptier()) {
            return false;
        }
        if !top_tier {
            let stamp = hints.clock.stamp(now_ns);
            pages.folios.links.set_stamp(f, stamp);
        }
        pages.count(f, Counter::NumaPteUpdates, 1);
        true
    }

    /// No node has what an allocation wants: all are to make some.
    pub(crate) fn wake_all_kswapds<W: World>(&mut self, pages: &mut ResidentPages, now_ns: u64, w: &mut W) {
        for i in 0..self.nodes.all.len() {
            self.wake_kswapd(pages, now_ns, w, self.nodes.zonelist(self.nid)[i]);
        }
    }

    /// Gives a file page that is written a buffer head of the file system. No task reclaims for its
    /// slab: without a free frame the page gets none.
    #[inline]
    pub(crate) fn attach_buffers<W: World>(
        &mut self,
        pages: &mut ResidentPages,
        now_ns: u64,
        w: &mut W,
        (page, nr): (PageId, u64),
    ) {
        for page in (0..nr as u32).map(|i| PageId(page.0 + i)) {
            let Some(heads) = &self.buffer_heads else { return };
            if heads.has(page) {
                continue;
            }
            if heads.is_full() {
                let kind = MigrateType::Reclaimable;
                let mut zone = self.nodes.take_for(self.nid, 1, AllocWatermark::Low, kind);
                if zone.is_none() {
                    self.wake_all_kswapds(pages, now_ns, w);
                    zone = self.nodes.take_for(self.nid, 1, AllocWatermark::Min, kind);
                }
                let Some(zone) = zone.or_else(|| self.nodes.take_for(self.nid, 1, AllocWatermark::None, kind)) else {
                    return;
                };
                self.nodes.note_buffer_slab(zone);
                self.pass_on_boost(pages, now_ns, w, zone);
                self.buffer_heads.iter_mut().for_each(|b| b.add_slab(zone));
            }
            self.buffer_heads.iter_mut().for_each(|b| b.attach(page));
        }
    }

    /// Pages are gone, and with them their buffer heads.
    #[inline]
    pub(crate) fn drop_buffers(&mut self, page: PageId, nr: u64) {
        let Some(heads) = &mut self.buffer_heads else { return };
        for page in (0..nr as u32).map(|i| PageId(page.0 + i)) {
            if let Some(zone) = heads.detach(page) {
                self.nodes.free_buffer_slab(zone);
            }
        }
    }

    pub(crate) fn take_write_back_frame(&mut self, mark: AllocWatermark) -> Option<ZoneId> {
        if self.nodes.is_limited() { self.nodes.take(self.nid, 1, mark) } else { Some(ZoneId::default()) }
    }

    /// An allocation went below the low mark.
    pub(crate) fn wake_kswapd<W: World>(&mut self, pages: &mut ResidentPages, now_ns: u64, w: &mut W, nid: NodeId) {
        self.wake_kswapd_for(pages, now_ns, w, nid, ANY_ZONE);
    }

    /// The marks of a zone are boosted, which an allocation there passes on.
    #[inline]
    pub(crate) fn pass_on_boost<W: World>(&mut self, pages: &mut ResidentPages, now_ns: u64, w: &mut W, zone: ZoneId) {
        if self.nodes.get_mut(zone.nid()).take_boost_news(zone.zone()) {
            self.wake_kswapd_for(pages, now_ns, w, zone.nid(), zone.zone());
        }
    }

    /// Somebody wants pages of zones up to `highest`.
    fn wake_kswapd_for<W: World>(
        &mut self,
        pages: &mut ResidentPages,
        now_ns: u64,
        w: &mut W,
        nid: NodeId,
        highest: usize,
    ) {
        let node = self.nodes.get_mut(nid);
        node.kswapd.wanted = node.kswapd.wanted.max(Some(highest));
        let is_boosted = node.boosts(highest).iter().any(|&b| b > 0);
        if node.kswapd.awake || node.kswapd.is_hopeless() || (node.is_balanced(highest) && !is_boosted) {
            return;
        }
        if w.effect(Effect::WakeKswapd { node: nid }) != Ack::Pending {
            // The driver has none.
            return;
        }
        let kswapd = &mut self.nodes.get_mut(nid).kswapd;
        kswapd.awake = true;
        if now_ns - kswapd.slept_at_ns.min(now_ns) < SHORT_SLEEP_NS && kswapd.slept_at_ns > 0 {
            pages.count_machine(Counter::KswapdLowWmarkHitQuickly, 1);
        }
    }
}

impl Frames {
    /// Takes the run of a node's kswapd: the one under way, or a new one. None: kswapd sleeps.
    pub(crate) fn take_kswapd_run(
        &mut self,
        pages: &mut ResidentPages,
        nid: NodeId,
        swap_cluster_max: u64,
    ) -> Option<ScanControl> {
        let node = self.nodes.all.get_mut(nid.index()).filter(|n| n.kswapd.awake)?;
        if let Some(sc) = node.kswapd.run.take() {
            return Some(sc);
        }
        pages.count_machine(Counter::Pageoutrun, 1);
        let highest = node.kswapd.wanted.take().unwrap_or(node.kswapd.highest);
        (node.kswapd.highest, node.kswapd.boosts) = (highest, node.boosts(highest));
        let target = node.kswapd_target(swap_cluster_max, highest);
        let mut sc = ScanControl::for_memcg(MemcgId::ROOT, target, None);
        (sc.nid, sc.kswapd) = (nid, true);
        (sc.reclaim_idx, sc.boost_left) = (highest, node.kswapd.boosts.iter().sum());
        Some(sc)
    }

    /// Pages of all zones that no ordinary allocation takes.
    pub(crate) fn min_mark_pages(&self) -> u64 {
        self.nodes.all.iter().flat_map(|n| &n.zones).map(|z| z.marks.min).sum()
    }
}
