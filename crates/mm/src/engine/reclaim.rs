//! Reclaim as a driver runs it: kswapd, waits, its work, and the frames that are left.

use crate::engine::Engine;
use crate::ids::{MemcgId, NodeId, PageId};
use crate::memcg::group::MemcgState;
use crate::node::kswapd::KswapdStep;
use crate::node::page_blocks::MigrateType;
use crate::node::resize::MIN_PAGES;
use crate::node::zones::{Node, Watermarks};
use crate::scan::ScanControl;
use crate::stat::ReclaimWork;
use crate::world::{ThrottleReason, World};

/// Reclaim for a task that is under way, and paused ([`World::reclaim_pauses`]).
#[derive(Debug)]
pub struct PausedReclaim(Box<ScanControl>);

impl Engine {
    /// Takes the run of reclaim that paused in the last call, if one did.
    #[inline]
    pub fn take_paused_reclaim(&mut self) -> Option<PausedReclaim> {
        self.mem.frames.paused.take().map(PausedReclaim)
    }

    /// Goes on with a run of reclaim that paused; it may pause again. If its group is gone by now,
    /// the run is over.
    pub fn resume_reclaim<W: World>(&mut self, w: &mut W, run: PausedReclaim) {
        if self.mem.groups.memcgs.get(run.0.target).state != MemcgState::Gone {
            self.reclaim_with(w, *run.0).try_to_free();
        }
    }

    /// Whether pages of a memcg or its descendants are being written, and there is hope that they
    /// will be.
    pub fn is_write_pending(&self, over: MemcgId) -> bool {
        self.mem.writeback.is_write_pending(&self.mem.groups, over)
    }

    /// A throttled task waited long enough by itself.
    pub fn throttle_ended(&mut self, reason: ThrottleReason) {
        self.mem.frames.throttle_ended(reason)
    }

    /// Reclaims for a task that gave up the processor before it did so ([`World::task_yields`]),
    /// whatever kswapd has freed meanwhile.
    pub fn reclaim_directly<W: World>(&mut self, w: &mut W) {
        if self.mem.frames.nodes.is_limited() {
            self.alloc(w).reclaim_memcg(MemcgId::ROOT, 1);
        }
    }

    /// One step of the kswapd of a node: a pass over the node at one priority, or a part of it if
    /// it is to give up the processor ([`World::kswapd_yields`]). The driver calls it from
    /// [`crate::Effect::WakeKswapd`] on until it sleeps, and charges it the processor time of
    /// [`crate::Engine::take_work`].
    pub fn kswapd_node_step<W: World>(&mut self, w: &mut W, nid: NodeId) -> KswapdStep {
        let Some(sc) = self.mem.frames.take_kswapd_run(&mut self.mem.pages, nid, self.mem.cfg.lru.swap_cluster_max)
        else {
            return KswapdStep::Sleep;
        };
        let mut run = self.reclaim_with(w, sc);
        let (step, over) = run.kswapd_step();
        let sc = run.sc;
        if !over {
            self.mem.frames.nodes.get_mut(nid).kswapd.run = Some(sc);
        }
        step
    }

    /// [`crate::Engine::kswapd_node_step`] for the first node: on most machines there is no other.
    pub fn kswapd_step<W: World>(&mut self, w: &mut W) -> KswapdStep {
        self.kswapd_node_step(w, NodeId::default())
    }

    /// Takes the work of reclaim since the last call, and starts counting anew.
    pub fn take_work(&mut self) -> ReclaimWork {
        std::mem::take(&mut self.mem.pages.work)
    }

    /// Sets the frames of the node that the driver itself uses (a compressed swap device in
    /// memory). They are taken even below the marks, since reclaim needs them. False: too few
    /// frames are free.
    pub fn set_external_pages(&mut self, pages: u64) -> bool {
        self.mem.frames.nodes.set_driver_pages(pages)
    }

    /// Takes frames of the machine for the kernel itself, for good. False: too few frames are free.
    pub fn reserve_kernel_pages(&mut self, pages: u64) -> bool {
        self.mem.frames.nodes.reserve_kernel(pages)
    }

    /// A system call takes a page for itself and gives it back, as `mincore` does.
    pub fn borrow_frame<W: World>(&mut self, world: &mut W) {
        if let Ok(zone) = self.alloc(world).take_frames(1, MigrateType::Unmovable) {
            self.mem.frames.nodes.give_back_for(zone, 1, MigrateType::Unmovable);
        }
    }

    /// Whether the accesses that follow are of a task that reclaim waits for: such a task may take
    /// frames below the min mark, to the last one, as a task of Linux with `PF_MEMALLOC`.
    pub fn set_memalloc(&mut self, memalloc: bool) {
        self.mem.frames.memalloc = memalloc;
    }

    /// Free pages of all nodes; 0 if the nodes have no size.
    pub fn free_pages(&self) -> u64 {
        self.mem.frames.nodes.free_pages()
    }

    /// Free pages of a node.
    pub fn node_free_pages(&self, node: NodeId) -> u64 {
        self.mem.frames.nodes.all.get(node.index()).map_or(0, Node::free_pages)
    }

    /// Zones of all nodes with their watermarks: (name, managed pages, free pages, marks).
    pub fn zones(&self) -> impl Iterator<Item = (&'static str, u64, u64, Watermarks)> + '_ {
        self.mem.frames.nodes.ids().flat_map(|nid| self.node_zones(nid))
    }

    /// The same of one node, as `/proc/zoneinfo` has them.
    pub fn node_zones(&self, node: NodeId) -> impl Iterator<Item = (&'static str, u64, u64, Watermarks)> + '_ {
        let zones = self.mem.frames.nodes.all.get(node.index()).into_iter().flat_map(|n| &n.zones);
        zones.map(|z| (z.name, z.managed, z.free, z.marks))
    }

    /// Steps the kswapds of all nodes until they sleep; each at most `steps` times. True: all
    /// sleep.
    pub fn run_kswapd<W: World>(&mut self, w: &mut W, steps: usize) -> bool {
        let mut all_sleep = true;
        for nid in self.mem.frames.nodes.ids() {
            all_sleep &= (0..steps).any(|_| self.kswapd_node_step(w, nid) == KswapdStep::Sleep);
        }
        all_sleep
    }

    /// Memory hot-plug: sets the pages of a machine of one node, and its watermarks with them.
    /// Pages to be taken away must be free. Returns how many pages are still to go: reclaim, and
    /// call it again. The error: the machine has no size, or several nodes.
    pub fn resize_node(&mut self, pages: u64) -> Result<u64, String> {
        let Some(cfg) = self
            .mem
            .cfg
            .node
            .clone()
            .filter(|_| !self.mem.frames.nodes.are_several() && self.mem.frames.nodes.is_limited())
        else {
            return Err("only a machine of one node can be resized".into());
        };
        if !(MIN_PAGES..1 << 30).contains(&pages) {
            return Err(format!("{pages} pages: a node has 64 to 2^30"));
        }
        Ok(self.mem.frames.nodes.get_mut(NodeId::default()).resize(pages, &cfg))
    }

    /// Pages of all nodes, free or not.
    pub fn managed_pages(&self) -> u64 {
        self.mem.frames.nodes.managed_pages()
    }

    /// Sets the pages that a group is charged for what the engine does not see. The charge cannot
    /// fail: the group may stay beyond its limit by it. The error: the group is unknown.
    pub fn set_memcg_external_pages(&mut self, id: MemcgId, pages: u64) -> Result<(), String> {
        self.mem.groups.online_memcg(id)?;
        let before = std::mem::replace(&mut self.mem.groups.memcgs.get_mut(id).reserved, pages);
        let first = self.mem.pages.lruvec_of(id, NodeId::default());
        self.mem.pages.lruvecs[first.index()].external = pages;
        if pages > before {
            self.mem.groups.memcgs.force_charge(id, pages - before);
            self.mem.groups.memcgs.tolerate(id);
        } else {
            self.mem.groups.memcgs.uncharge(id, before - pages);
        }
        Ok(())
    }

    /// `memory.current`, in pages.
    pub fn memcg_usage_pages(&self, id: MemcgId) -> u64 {
        self.mem.groups.memcgs.get(id).usage
    }

    /// Adds mapped anonymous pages of a memcg about which the next [`crate::Engine::kswapd_step`]
    /// would ask, as things are now: the pages of up to `most` folios, in the order of the
    /// questions; none if enough is free. It is a hint; nothing changes by it.
    pub fn peek_reclaim_candidates(&self, memcg: MemcgId, most: usize, pages: &mut Vec<PageId>) {
        self.mem.pages.peek_reclaim_candidates(&self.mem.frames, memcg, most, pages);
    }
}
