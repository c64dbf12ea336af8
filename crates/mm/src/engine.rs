//! The facade: the only type a driver holds.

use std::collections::BTreeSet;

use crate::alloc::{Throttled, Work};
use crate::batch::CpuBatches;
use crate::config::{Config, Lru};
use crate::dirty::DirtyQueue;
use crate::folio::{FolioTable, State};
use crate::ids::{FolioId, LruvecId, MappingId, MemcgId, PageId};
use crate::kswapd::Kswapd;
use crate::lruvec::{LIST_NAMES, Lruvec};
use crate::mapping::{MappingKind, Owner, PageSpace};
use crate::memcg::{Memcg, MemcgEvents, Memcgs, NODE_CHARGE_BYTES};
use crate::node::Node;
use crate::scan::ScanControl;
use crate::shadow::Layout;
use crate::stat::{Counter, Gauge, Stats};
use crate::swap::Swap;
use crate::thp::{HugeAdvice, SizeStats};

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
    pub(crate) batches: Vec<CpuBatches>,
    pub(crate) swap: Swap,
    pub(crate) node: Node,
    pub(crate) kswapd: Kswapd,
    pub(crate) throttled: Throttled,
    pub(crate) work: Work,
    pub(crate) sizes: SizeStats,
    /// Reads that the driver has not ended.
    pub(crate) reads_pending: u64,
    /// Pages whose write failed since the last that went well.
    pub(crate) writes_failed: u64,
    /// Anonymous pages that were dropped, but for I/O on them.
    pub(crate) dropping: BTreeSet<PageId>,
    pub(crate) dirty: DirtyQueue,
    pub(crate) flush_all: bool,
    pub(crate) flush_due: bool,
    pub(crate) flushing: bool,
    /// An aging walk ran in this reclaim: look-around promotes at once instead of by batch.
    pub(crate) walk_context: bool,
    pub(crate) now_ns: u64,
    pub(crate) cpu: usize,
    /// What a read by descriptor makes of the byte of a page; 0: look closer.
    pub(crate) next_hot: [u8; 256],
    scratch: Vec<Vec<FolioId>>,
}

impl Engine {
    /// An engine with nothing in it but the root memcg. An impossible configuration is an error.
    pub fn new(cfg: Config) -> Result<Engine, String> {
        cfg.check()?;
        let mut folios = FolioTable::default();
        let root = Lruvec::new(&mut folios, MemcgId::ROOT, None, cfg.seed);
        Ok(Engine {
            layout: Layout::new(&cfg),
            space: PageSpace::default(),
            lruvecs: vec![root],
            memcgs: Memcgs::new(cfg.charge_batch),
            batches: vec![CpuBatches::default(); cfg.cpus],
            swap: Swap::new(&cfg),
            node: Node::new(cfg.node.as_ref()),
            kswapd: Kswapd::default(),
            throttled: Throttled::default(),
            work: Work::default(),
            sizes: SizeStats::default(),
            reads_pending: 0,
            writes_failed: 0,
            dropping: BTreeSet::new(),
            dirty: DirtyQueue::default(),
            flush_all: false,
            flush_due: false,
            flushing: false,
            walk_context: false,
            now_ns: 0,
            cpu: 0,
            scratch: Vec::new(),
            next_hot: next_hot(&cfg),
            folios,
            cfg,
        })
    }

    /// A new memcg under `parent`, with `memory.max` and `memory.swap.max` in pages (`u64::MAX`: none).
    pub fn add_memcg(
        &mut self,
        parent: MemcgId,
        name: &str,
        max_pages: u64,
        swap_max_pages: u64,
    ) -> Result<MemcgId, String> {
        if self.memcgs.all.len() > usize::from(u16::MAX) {
            return Err("more than 65535 memory cgroups".into());
        }
        if parent.index() >= self.memcgs.all.len() {
            return Err(format!("there is no memcg {}", parent.0));
        }
        let id = MemcgId(self.memcgs.all.len() as u16);
        let v = LruvecId(self.lruvecs.len() as u32);
        let above = self.memcgs.get(parent).lruvec;
        self.lruvecs.push(Lruvec::new(&mut self.folios, id, Some(above), self.cfg.seed));
        self.memcgs.all.push(Memcg::new(Some(parent), name, v, max_pages, swap_max_pages));
        self.memcgs.get_mut(parent).has_children = true;
        self.memcgs.force_charge(id, self.cfg.reserved_pages);
        Ok(id)
    }

    /// Registers a mapping whose pages have these indices, strictly ascending. Their ids are consecutive, from the returned
    /// first one on.
    pub fn add_mapping(
        &mut self,
        kind: MappingKind,
        memcg: MemcgId,
        indices: impl IntoIterator<Item = u64>,
    ) -> Result<(MappingId, PageId), String> {
        if memcg.index() >= self.memcgs.all.len() {
            return Err(format!("there is no memcg {}", memcg.0));
        }
        let first = PageId(self.folios.len() as u32);
        let owner = Owner { kind, memcg, lruvec: self.memcgs.get(memcg).lruvec };
        let id = self.space.register(&mut self.folios, owner, indices.into_iter())?;
        self.advise_huge(id, HugeAdvice::None);
        Ok((id, first))
    }

    /// The time, in nanoseconds from any start. It must not go back.
    pub fn set_now_ns(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// The CPU on which the following calls happen: batches are per CPU. Out of range: the last one.
    pub fn set_cpu(&mut self, cpu: usize) {
        self.cpu = cpu.min(self.batches.len() - 1);
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

    /// The counters of one memcg, without its descendants.
    pub fn memcg_stats(&self, id: MemcgId) -> &Stats {
        &self.memcgs.get(id).stat
    }

    /// The counters of one memcg and its descendants, as `memory.stat` has them.
    pub fn memcg_tree_stats(&self, id: MemcgId) -> Stats {
        let mut all = Stats::default();
        for m in self.memcgs.subtree(id) {
            Counter::ALL.iter().for_each(|&c| all.add(c, self.memcgs.get(m).stat.get(c)));
        }
        all
    }

    /// Sizes of a memcg and its descendants under their kernel names: what `memory.stat` and `memory.current` say.
    pub fn memcg_tree_gauges(&self, id: MemcgId) -> Vec<Gauge> {
        /// These count descendants already.
        const WHOLE: [&str; 4] = ["memory.current", "memory.peak", "swap.current", "nonresident_age"];
        let mut all = self.memcg_gauges(id);
        for below in self.memcgs.subtree(id).into_iter().filter(|&m| m != id) {
            for (sum, own) in all.iter_mut().zip(self.memcg_gauges(below)) {
                sum.value += if WHOLE.contains(&own.name) { 0 } else { own.value };
            }
        }
        all
    }

    /// The counters of the machine.
    pub fn vmstat(&self) -> Stats {
        let mut all = Stats::default();
        for m in &self.memcgs.all {
            Counter::ALL.iter().for_each(|&c| all.add(c, m.stat.get(c)));
        }
        all
    }

    /// `memory.events` of a memcg.
    pub fn memcg_events(&self, id: MemcgId) -> MemcgEvents {
        self.memcgs.get(id).events
    }

    /// Sizes of a memcg under their kernel names, in pages.
    pub fn memcg_gauges(&self, id: MemcgId) -> Vec<Gauge> {
        let m = self.memcgs.get(id);
        let v = &self.lruvecs[m.lruvec.index()];
        let lists = LIST_NAMES.iter().zip(v.size).map(|(&name, value)| Gauge { name, value });
        let rest = [
            ("memory.current", m.usage),
            ("memory.peak", m.peak),
            ("kernel", m.kernel),
            ("pagetables", m.page_tables),
            ("slab_reclaimable_bytes", m.nodes * NODE_CHARGE_BYTES),
            ("file_dirty", m.dirty),
            ("file_writeback", m.writeback),
            ("swapcached", m.swap_cached),
            ("swap.current", m.swap_usage),
            ("workingset_nodes", v.shadow_nodes.len),
            ("nonresident_age", v.nonresident_age),
        ];
        lists.chain(rest.map(|(name, value)| Gauge { name, value })).collect()
    }

    /// Sizes of the machine under their kernel names, in pages.
    pub fn node_gauges(&self) -> Vec<Gauge> {
        let sizes = self.tree_sizes(MemcgId::ROOT);
        let lists = LIST_NAMES.iter().zip(sizes).map(|(&name, value)| Gauge { name, value });
        let sum = |of: fn(&Memcg) -> u64| self.memcgs.all.iter().map(of).sum();
        let rest = [
            ("nr_free_pages", self.node.free_pages()),
            ("file_dirty", sum(|m| m.dirty)),
            ("file_writeback", sum(|m| m.writeback)),
            ("swapcached", sum(|m| m.swap_cached)),
            ("pagetables", sum(|m| m.page_tables)),
            ("workingset_nodes", self.lruvecs.iter().map(|v| v.shadow_nodes.len).sum()),
        ];
        lists.chain(rest.map(|(name, value)| Gauge { name, value })).collect()
    }

    /// Slots of swap in use.
    pub fn swap_used_pages(&self) -> u64 {
        self.swap.used_pages()
    }

    /// What the swap allocator did so far.
    pub fn swap_work(&self) -> crate::SwapWork {
        self.swap.work()
    }

    /// The oldest generation of file pages and the youngest of all, of one memcg.
    pub fn lru_gen_seqs(&self, memcg: MemcgId) -> (u64, u64) {
        let g = &self.lruvecs[self.memcgs.get(memcg).lruvec.index()].r#gen;
        (g.min_seq[crate::lruvec::FILE], g.max_seq)
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
