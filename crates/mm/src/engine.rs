//! The facade: the only type a driver holds.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::Config;
use crate::folio::mapping::{MappingKind, Owner};
use crate::folio::table::FolioTable;
use crate::folio::thp::HugeAdvice;
use crate::ids::{FolioId, LruvecId, MappingId, MemcgId, NodeId, PageId};
use crate::lru::pages::Pages;
use crate::memcg::groups::Groups;
use crate::node::frames::Frames;
use crate::reclaim::scan::ScanControl;
use crate::stat::Counter;
use crate::swap_cache::stack::SwapStack;
use crate::writeback::Writeback;

/// Linux's memory management as a deterministic state machine.
///
/// Time comes in by [`Engine::set_now_ns`], accesses by [`Engine::access`]; what must happen goes out through
/// [`crate::World::effect`]. The same configuration and the same calls give the same state.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) cfg: Config,
    pub(crate) clock: Clock,
    pub(crate) pages: Pages,
    pub(crate) groups: Groups,
    pub(crate) frames: Frames,
    pub(crate) swap: SwapStack,
    pub(crate) writeback: Writeback,
}

/// The time, as the driver told it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    pub(crate) now_ns: u64,
    /// When the statistics of groups are added up next.
    pub(crate) next_flush_ns: u64,
}

impl Engine {
    /// An engine with nothing in it but the root memcg. An impossible configuration is an error.
    pub fn new(cfg: Config) -> Result<Engine, String> {
        cfg.check()?;
        let frames = Frames::new(&cfg)?;
        Ok(Engine {
            clock: Clock::default(),
            pages: Pages::new(&cfg, &frames.nodes),
            groups: Groups::new(&cfg, &frames.nodes),
            swap: SwapStack::new(&cfg),
            writeback: Writeback::default(),
            frames,
            cfg,
        })
    }

    /// Registers a mapping whose pages have these indices, strictly ascending. Their ids are consecutive, from the returned
    /// first one on.
    pub fn add_mapping(
        &mut self,
        kind: MappingKind,
        memcg: MemcgId,
        indices: impl IntoIterator<Item = u64>,
    ) -> Result<(MappingId, PageId), String> {
        self.online_memcg(memcg)?;
        let first = PageId(self.pages.folios.len() as u32);
        let owner = Owner { kind, memcg, lruvec: self.groups.memcgs.get(memcg).lruvec };
        let id = self.pages.space.register(&mut self.pages.folios, owner, indices.into_iter())?;
        self.advise_huge(id, HugeAdvice::None);
        Ok((id, first))
    }

    /// The time, in nanoseconds from any start. It must not go back.
    pub fn set_now_ns(&mut self, now_ns: u64) {
        self.clock.now_ns = self.clock.now_ns.max(now_ns);
        if self.clock.now_ns >= self.clock.next_flush_ns {
            self.flush_stats();
        }
    }

    /// The CPU on which the following calls happen: batches are per CPU. Out of range: the last one.
    pub fn set_cpu(&mut self, cpu: usize) {
        self.pages.cpu = cpu.min(self.pages.batches.len() - 1);
        self.frames.nid = self.frames.nodes.of_cpu(self.pages.cpu);
        self.swap.slots.set_cpu(self.pages.cpu);
    }

    /// Pages registered.
    pub fn registered_pages(&self) -> usize {
        self.pages.folios.len()
    }

    /// Loads what faults on these pages will need into the processor's caches, so that the misses overlap instead of
    /// following one another. It changes nothing; the sum only keeps the loads from being optimised away.
    #[inline]
    pub fn warm(&self, pages: impl Iterator<Item = PageId> + Clone) -> u64 {
        pages.map(|p| self.pages.folios.warm(p)).sum()
    }

    /// The index of a page in its mapping.
    #[inline]
    pub(crate) fn page_index(&self, page: PageId) -> u64 {
        self.pages.space.index(self.pages.folios.location(page))
    }

    /// The page table of a page.
    #[inline]
    pub(crate) fn table_of(&self, page: PageId) -> usize {
        self.pages.space.table_of(self.pages.folios.node_of(page))
    }

    /// Slots of swap in use.
    pub fn swap_used_pages(&self) -> u64 {
        self.swap.slots.used_pages()
    }

    /// The swap devices, by number.
    pub fn swap_devices(&self) -> Vec<crate::SwapDeviceInfo> {
        self.swap.slots.infos()
    }

    /// The clusters of the swap devices: how fragmented they are.
    pub fn swap_maps(&self) -> Vec<crate::SwapMap> {
        self.swap.slots.maps()
    }

    /// What the swap allocator did so far.
    pub fn swap_work(&self) -> crate::SwapWork {
        self.swap.slots.work()
    }

    /// The oldest generation of file pages and the youngest of all, of one memcg.
    pub fn lru_gen_seqs(&self, memcg: MemcgId) -> (u64, u64) {
        let g = &self.pages.lruvecs[self.groups.memcgs.get(memcg).lruvec.index()].r#gen;
        (g.min_seq[crate::lru::lruvec::FILE], g.max_seq)
    }

    /// Nodes of the machine.
    pub fn node_count(&self) -> usize {
        self.frames.nodes.all.len()
    }

    /// The node of a CPU.
    pub fn node_of_cpu(&self, cpu: usize) -> NodeId {
        self.frames.nodes.of_cpu(cpu)
    }

    /// The node on which the frame of a page lies that is in memory (in the swap cache counts).
    #[inline]
    pub fn page_node(&self, page: PageId) -> Option<NodeId> {
        self.folio_of(page).map(|f| self.pages.folios.nid(f))
    }

    /// The lists of a memcg on a node.
    #[inline(always)]
    pub(crate) fn lruvec_of(&self, memcg: MemcgId, nid: NodeId) -> LruvecId {
        self.groups.memcgs.get(memcg).lruvec.on(nid)
    }

    /// The lists of a memcg on all nodes.
    pub(crate) fn lruvecs_of(&self, memcg: MemcgId) -> impl Iterator<Item = LruvecId> + use<> {
        let first = self.groups.memcgs.get(memcg).lruvec;
        self.frames.nodes.ids().map(move |nid| first.on(nid))
    }

    /// Whether a page is in memory (in the swap cache counts).
    pub fn is_resident(&self, page: PageId) -> bool {
        self.folio_of(page).is_some()
    }

    /// Bytes that the engine holds: (for slots, folios and lists, for nodes and tables, for swap).
    pub fn memory_bytes(&self) -> (usize, usize, usize) {
        (self.pages.folios.memory_bytes(), self.pages.space.memory_bytes(), self.swap.slots.memory_bytes())
    }

    /// Bytes that a resident page of order 0 takes: its slot, which holds its folio, its place on a list, and its byte of flags. The rings of
    /// lists and the vectors keep some room in reserve; [`Engine::memory_bytes`] counts that, too.
    pub const BYTES_PER_RESIDENT_PAGE: usize = 4 + Self::BYTES_PER_SHADOW;

    /// Bytes that a shadow takes: its slot, its place, and the byte of flags.
    pub const BYTES_PER_SHADOW: usize = FolioTable::ENTRY_BYTES + 1;

    /// Bytes that a swap slot takes, of a cluster of which one at least is in use. Those of other clusters take next to nothing.
    pub const BYTES_PER_SWAP_SLOT: usize = crate::swap::BYTES_PER_SLOT;

    #[inline(always)]
    pub(crate) fn count(&mut self, f: FolioId, c: Counter, nr: u64) {
        self.count_lruvec(self.pages.folios.lruvec(f), c, nr);
    }

    #[inline(always)]
    pub(crate) fn count_lruvec(&mut self, v: LruvecId, c: Counter, nr: u64) {
        let memcg = self.pages.lruvecs[v.index()].memcg;
        self.groups.memcgs.get_mut(memcg).stat.add(c, nr);
    }

    /// Counts what belongs to no memcg.
    pub(crate) fn count_machine(&mut self, c: Counter, nr: u64) {
        self.groups.memcgs.get_mut(MemcgId::ROOT).stat.add(c, nr);
    }

    pub(crate) fn count_scan(&mut self, v: LruvecId, t: usize, nr: u64, sc: &ScanControl) {
        let by = if sc.kswapd { Counter::PgscanKswapd } else { Counter::PgscanDirect };
        self.pages.work.scanned += nr;
        self.count_lruvec(v, by, nr);
        self.count_lruvec(v, Counter::scan(t), nr);
    }

    pub(crate) fn count_steal(&mut self, v: LruvecId, t: usize, nr: u64, sc: &ScanControl) {
        let by = if sc.kswapd { Counter::PgstealKswapd } else { Counter::PgstealDirect };
        self.pages.work.reclaimed += nr;
        self.count_lruvec(v, by, nr);
        self.count_lruvec(v, Counter::steal(t), nr);
    }

    /// An empty vector that keeps its room from use to use.
    pub(crate) fn take_scratch(&mut self) -> Vec<FolioId> {
        self.pages.scratch.pop().unwrap_or_default()
    }

    pub(crate) fn return_scratch(&mut self, mut v: Vec<FolioId>) {
        v.clear();
        self.pages.scratch.push(v);
    }
}
