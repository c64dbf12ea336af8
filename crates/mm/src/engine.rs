//! The facade: the only type a driver holds.

use std::collections::{BTreeMap, BTreeSet};

use crate::alloc::frames::{Throttled, Work};
use crate::config::{Config, Lru};
use crate::folio::mapping::{MappingKind, Owner, PageSpace};
use crate::folio::table::{FolioTable, State};
use crate::folio::thp::{HugeAdvice, SizeStats};
use crate::ids::{FolioId, LruvecId, MappingId, MemcgId, NodeId, PageId};
use crate::lru::batch::CpuBatches;
use crate::lru::lruvec::Lruvec;
use crate::memcg::empty_memcg_cache::Quiet;
use crate::memcg::group::Memcgs;
use crate::memcg::memcg_lru::MemcgLru;
use crate::node::migrate::Migration;
use crate::node::nodes::Nodes;
use crate::reclaim::scan::ScanControl;
use crate::stat::Counter;
use crate::swap::Swap;
use crate::swap::zeromap::ZeroMap;
use crate::tiering::hint::Hints;
use crate::workingset::shadow::Layout;
use crate::writeback::dirty::DirtyQueue;
use crate::zswap::Zswap;

/// Linux's memory management as a deterministic state machine.
///
/// Time comes in by [`Engine::set_now_ns`], accesses by [`Engine::access`]; what must happen goes out through
/// [`crate::World::effect`]. The same configuration and the same calls give the same state.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) cfg: Config,
    pub(crate) layout: Layout,
    pub(crate) folios: FolioTable,
    pub(crate) space: PageSpace,
    pub(crate) lruvecs: Vec<Lruvec>,
    pub(crate) memcgs: Memcgs,
    /// By node.
    pub(crate) memcg_lru: Vec<MemcgLru>,
    pub(crate) batches: Vec<CpuBatches>,
    pub(crate) swap: Swap,
    pub(crate) zeromap: ZeroMap,
    pub(crate) zswap: Zswap,
    pub(crate) nodes: Nodes,
    pub(crate) throttled: Throttled,
    /// The last reclaim for a task ended because swap takes no more writes for now.
    pub(crate) reclaim_blocked: bool,
    /// Allocations may take what is kept for reclaim.
    pub(crate) memalloc: bool,
    pub(crate) work: Work,
    pub(crate) sizes: SizeStats,
    /// Reads that the driver has not ended.
    pub(crate) reads_pending: u64,
    /// Pages whose write failed since the last that went well.
    pub(crate) writes_failed: u64,
    /// Anonymous pages that were dropped, but for I/O on them.
    pub(crate) dropping: BTreeSet<PageId>,
    /// Where hint faults promote.
    pub(crate) hints: Option<Hints>,
    /// Folios on their way to another node.
    pub(crate) migrating: BTreeMap<FolioId, Migration>,
    pub(crate) dirty: DirtyQueue,
    pub(crate) flush_all: bool,
    pub(crate) flush_due: bool,
    pub(crate) flushing: bool,
    /// An aging walk ran in this reclaim: look-around promotes at once instead of by batch.
    pub(crate) walk_context: bool,
    pub(crate) now_ns: u64,
    /// When the statistics of groups are added up next.
    pub(crate) next_flush_ns: u64,
    pub(crate) cpu: usize,
    /// The node of that CPU.
    pub(crate) nid: NodeId,
    /// No node has more than one zone.
    pub(crate) one_zone: bool,
    /// What a read by descriptor makes of the byte of a page; 0: look closer.
    pub(crate) next_hot: [u8; 256],
    /// Groups that reclaim need not look at.
    pub(crate) quiet: Quiet,
    scratch: Vec<Vec<FolioId>>,
    /// Every visit to a group looks at all of it.
    #[cfg(test)]
    pub(crate) looks_closely: bool,
    /// The groups that reclaim visited; none: a pass begins.
    #[cfg(test)]
    pub(crate) visits: Vec<Option<MemcgId>>,
}

impl Engine {
    /// An engine with nothing in it but the root memcg. An impossible configuration is an error.
    pub fn new(cfg: Config) -> Result<Engine, String> {
        cfg.check()?;
        let mut folios = FolioTable::default();
        let nodes = Nodes::new(&cfg);
        if nodes.are_several() || nodes.zone_lists() > 1 {
            folios.links.keep_frames(nodes.are_several());
        }
        let root = nodes.ids().map(|nid| Lruvec::new(&mut folios, MemcgId::ROOT, nid, cfg.seed)).collect();
        Ok(Engine {
            layout: Layout::new(&cfg),
            space: PageSpace::default(),
            lruvecs: root,
            memcgs: Memcgs::new(cfg.charge_batch, cfg.recursive_protection),
            memcg_lru: nodes.ids().map(|nid| MemcgLru::new(cfg.seed.wrapping_add(u64::from(nid.0)))).collect(),
            batches: vec![CpuBatches::default(); cfg.cpus],
            swap: Swap::new(&cfg),
            zeromap: ZeroMap::default(),
            zswap: Zswap::default(),
            nid: nodes.of_cpu(0),
            one_zone: nodes.zone_lists() == 1,
            nodes,
            throttled: Throttled::default(),
            reclaim_blocked: false,
            memalloc: false,
            work: Work::default(),
            sizes: SizeStats::default(),
            reads_pending: 0,
            writes_failed: 0,
            dropping: BTreeSet::new(),
            hints: Hints::new(cfg.numa.as_ref())?,
            migrating: BTreeMap::new(),
            dirty: DirtyQueue::default(),
            flush_all: false,
            flush_due: false,
            flushing: false,
            walk_context: false,
            now_ns: 0,
            next_flush_ns: 0,
            cpu: 0,
            quiet: Quiet::default(),
            scratch: Vec::new(),
            #[cfg(test)]
            looks_closely: false,
            #[cfg(test)]
            visits: Vec::new(),
            next_hot: next_hot(&cfg),
            folios,
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
        let first = PageId(self.folios.len() as u32);
        let owner = Owner { kind, memcg, lruvec: self.memcgs.get(memcg).lruvec };
        let id = self.space.register(&mut self.folios, owner, indices.into_iter())?;
        self.advise_huge(id, HugeAdvice::None);
        Ok((id, first))
    }

    /// The time, in nanoseconds from any start. It must not go back.
    pub fn set_now_ns(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        if self.now_ns >= self.next_flush_ns {
            self.flush_stats();
        }
    }

    /// The CPU on which the following calls happen: batches are per CPU. Out of range: the last one.
    pub fn set_cpu(&mut self, cpu: usize) {
        self.cpu = cpu.min(self.batches.len() - 1);
        self.nid = self.nodes.of_cpu(self.cpu);
        self.swap.set_cpu(self.cpu);
    }

    /// Pages registered.
    pub fn registered_pages(&self) -> usize {
        self.folios.len()
    }

    /// Loads what faults on these pages will need into the processor's caches, so that the misses overlap instead of
    /// following one another. It changes nothing; the sum only keeps the loads from being optimised away.
    #[inline]
    pub fn warm(&self, pages: impl Iterator<Item = PageId> + Clone) -> u64 {
        pages.map(|p| self.folios.warm(p)).sum()
    }

    /// The index of a page in its mapping.
    #[inline]
    pub(crate) fn page_index(&self, page: PageId) -> u64 {
        self.space.index(self.folios.location(page))
    }

    /// The page table of a page.
    #[inline]
    pub(crate) fn table_of(&self, page: PageId) -> usize {
        self.space.table_of(self.folios.node_of(page))
    }

    /// Slots of swap in use.
    pub fn swap_used_pages(&self) -> u64 {
        self.swap.used_pages()
    }

    /// The swap devices, by number.
    pub fn swap_devices(&self) -> Vec<crate::SwapDeviceInfo> {
        self.swap.infos()
    }

    /// The clusters of the swap devices: how fragmented they are.
    pub fn swap_maps(&self) -> Vec<crate::SwapMap> {
        self.swap.maps()
    }

    /// What the swap allocator did so far.
    pub fn swap_work(&self) -> crate::SwapWork {
        self.swap.work()
    }

    /// The oldest generation of file pages and the youngest of all, of one memcg.
    pub fn lru_gen_seqs(&self, memcg: MemcgId) -> (u64, u64) {
        let g = &self.lruvecs[self.memcgs.get(memcg).lruvec.index()].r#gen;
        (g.min_seq[crate::lru::lruvec::FILE], g.max_seq)
    }

    /// Nodes of the machine.
    pub fn node_count(&self) -> usize {
        self.nodes.all.len()
    }

    /// The node of a CPU.
    pub fn node_of_cpu(&self, cpu: usize) -> NodeId {
        self.nodes.of_cpu(cpu)
    }

    /// The node on which the frame of a page lies that is in memory (in the swap cache counts).
    #[inline]
    pub fn page_node(&self, page: PageId) -> Option<NodeId> {
        self.folio_of(page).map(|f| self.folios.nid(f))
    }

    /// The lists of a memcg on a node.
    #[inline(always)]
    pub(crate) fn lruvec_of(&self, memcg: MemcgId, nid: NodeId) -> LruvecId {
        self.memcgs.get(memcg).lruvec.on(nid)
    }

    /// The lists of a memcg on all nodes.
    pub(crate) fn lruvecs_of(&self, memcg: MemcgId) -> impl Iterator<Item = LruvecId> + use<> {
        let first = self.memcgs.get(memcg).lruvec;
        self.nodes.ids().map(move |nid| first.on(nid))
    }

    /// Whether a page is in memory (in the swap cache counts).
    pub fn is_resident(&self, page: PageId) -> bool {
        self.folio_of(page).is_some()
    }

    /// Bytes that the engine holds: (for slots, folios and lists, for nodes and tables, for swap).
    pub fn memory_bytes(&self) -> (usize, usize, usize) {
        (self.folios.memory_bytes(), self.space.memory_bytes(), self.swap.memory_bytes())
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
        self.count_lruvec(self.folios.lruvec(f), c, nr);
    }

    #[inline(always)]
    pub(crate) fn count_lruvec(&mut self, v: LruvecId, c: Counter, nr: u64) {
        let memcg = self.lruvecs[v.index()].memcg;
        self.memcgs.get_mut(memcg).stat.add(c, nr);
    }

    /// Counts what belongs to no memcg.
    pub(crate) fn count_machine(&mut self, c: Counter, nr: u64) {
        self.memcgs.get_mut(MemcgId::ROOT).stat.add(c, nr);
    }

    pub(crate) fn count_scan(&mut self, v: LruvecId, t: usize, nr: u64, sc: &ScanControl) {
        let by = if sc.kswapd { Counter::PgscanKswapd } else { Counter::PgscanDirect };
        self.work.scanned += nr;
        self.count_lruvec(v, by, nr);
        self.count_lruvec(v, Counter::scan(t), nr);
    }

    pub(crate) fn count_steal(&mut self, v: LruvecId, t: usize, nr: u64, sc: &ScanControl) {
        let by = if sc.kswapd { Counter::PgstealKswapd } else { Counter::PgstealDirect };
        self.work.reclaimed += nr;
        self.count_lruvec(v, by, nr);
        self.count_lruvec(v, Counter::steal(t), nr);
    }

    /// An empty vector that keeps its room from use to use.
    pub(crate) fn take_scratch(&mut self) -> Vec<FolioId> {
        self.scratch.pop().unwrap_or_default()
    }

    pub(crate) fn return_scratch(&mut self, mut v: Vec<FolioId>) {
        v.clear();
        self.scratch.push(v);
    }
}

/// The effect of a read by descriptor on the byte of a page, for all bytes.
fn next_hot(cfg: &Config) -> [u8; 256] {
    std::array::from_fn(|byte| {
        let mut st = State(byte as u32);
        if !st.has(State::UPTODATE) || st.has(State::TAIL) {
            return 0;
        }
        if cfg.lru == Lru::MultiGen {
            st.inc_refs();
        } else if !st.has(State::REFERENCED) {
            st.set(State::REFERENCED);
        } else if !st.has(State::ACTIVE | State::UNEVICTABLE) && !cfg.one_list {
            // An activation.
            return 0;
        }
        st.0 as u8
    })
}
