//! The pages of the machine: resident folios, their places, and the lists that they are on.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::cache_ext::attached::CacheExt;
use crate::cache_ext::builtin::CacheExtPolicy;
use crate::config::Config;
use crate::config::lru::LruConfig;
use crate::folio::flags::FolioFlags;
use crate::folio::mapping::{Fill, PageSpace};
use crate::folio::shadow::Layout;
use crate::folio::size_stats::{SizeCounter, SizeStats};
use crate::folio::table::FolioTable;
use crate::ids::{FolioId, LruvecId, MAX_ORDER, MappingId, MemcgId, NodeId, PageId, SwapSlot};
use crate::lru::batch::CpuBatches;
use crate::lru::lruvec::Lruvec;
use crate::lru::policy::LruPolicy;
use crate::stat::{Counter, ReclaimWork, Stats};

/// All pages, with the lists of all groups on all nodes.
#[derive(Clone, Debug)]
pub(crate) struct ResidentPages {
    pub(crate) cfg: LruConfig,
    pub(crate) folios: FolioTable,
    pub(crate) space: PageSpace,
    pub(crate) lruvecs: Vec<Lruvec>,
    /// By node: pages on the lists of all groups.
    pub(crate) node_sizes: Vec<[u64; 5]>,
    /// By node: `workingset_activate` of the two lists of all groups, anon and file.
    pub(crate) node_activations: Vec<[u64; 2]>,
    /// By CPU: its batches of folios.
    pub(crate) batches: Vec<CpuBatches>,
    /// The CPU on which the present call happens.
    pub(crate) cpu: usize,
    /// Layout of a packed shadow.
    pub(crate) layout: Layout,
    /// Whether no node has more than one zone.
    pub(crate) one_zone: bool,
    /// By byte of a page: the byte after a read by descriptor; 0: the read is more than a plain
    /// hit.
    pub(crate) hit_transition: [u8; 256],
    /// Whether an aging walk ran in this reclaim: look-around then promotes at once instead of by
    /// batch.
    pub(crate) walk_context: bool,
    /// Reads under way that the driver has not ended.
    pub(crate) reads_pending: u64,
    /// Pages that were given up while I/O on them is under way.
    pub(crate) zapping: BTreeSet<PageId>,
    pub(crate) size_stats: SizeStats,
    pub(crate) work: ReclaimWork,
    pub(crate) scratch: Vec<Vec<FolioId>>,
    /// Policies beside the lists, if there are some.
    pub(crate) ext: Option<Box<CacheExt>>,
    /// Names of files made since the last page was charged for names.
    pub(crate) new_names: u64,
}

impl ResidentPages {
    /// No page yet, and the lists of the root on every node. `zone_lists`: the most zones that a
    /// node has.
    pub(crate) fn new(cfg: &Config, nr_nodes: usize, zone_lists: usize) -> ResidentPages {
        let mut folios = FolioTable::default();
        if nr_nodes > 1 || zone_lists > 1 {
            folios.links.keep_frames(nr_nodes > 1);
        }
        let lruvecs =
            (0..nr_nodes as u8).map(NodeId).map(|nid| Lruvec::new(&mut folios, MemcgId::ROOT, nid, cfg.seed)).collect();
        let mut pages = ResidentPages {
            cfg: cfg.lru,
            node_sizes: vec![[0; 5]; nr_nodes],
            node_activations: vec![[0; 2]; nr_nodes],
            folios,
            space: PageSpace::default(),
            lruvecs,
            batches: vec![CpuBatches::default(); cfg.cpus],
            cpu: 0,
            layout: Layout::new(&cfg.shadow, cfg.total_pages),
            one_zone: zone_lists == 1,
            hit_transition: hit_transition(cfg),
            walk_context: false,
            reads_pending: 0,
            zapping: BTreeSet::new(),
            size_stats: SizeStats::default(),
            work: ReclaimWork::default(),
            scratch: Vec::new(),
            ext: None,
            new_names: 0,
        };
        if cfg.cache_ext.is_some() {
            pages.start_ext(cfg.cache_ext);
        }
        pages
    }

    /// Starts policies beside the lists; groups that were given none have the one that `default`
    /// names. Policies learn of every access: no read is a plain hit.
    pub(crate) fn start_ext(&mut self, default: Option<CacheExtPolicy>) -> &mut CacheExt {
        self.hit_transition = [0; 256];
        self.ext.get_or_insert_with(|| Box::new(CacheExt::new(default)))
    }

    /// Whether a group on a node has a policy beside its lists.
    #[inline(always)]
    pub(crate) fn has_ext(&self, v: LruvecId) -> bool {
        self.ext.as_ref().is_some_and(|ext| ext.has(v))
    }
}

/// The effect of a read by descriptor on the byte of a page, for all bytes.
fn hit_transition(cfg: &Config) -> [u8; 256] {
    std::array::from_fn(|byte| {
        let st = FolioFlags(byte as u32);
        if !st.has(FolioFlags::UPTODATE) || st.has(FolioFlags::TAIL) {
            return 0;
        }
        by_policy!(cfg.lru.kind, P => P::read_hit(st, &cfg.lru)).map_or(0, |st| st.0 as u8)
    })
}

impl ResidentPages {
    /// The index of a page in its mapping.
    #[inline]
    pub(crate) fn page_index(&self, page: PageId) -> u64 {
        self.space.index(self.folios.location(page))
    }

    /// The largest order of a folio of the file of a page.
    pub(crate) fn max_order(&self, page: PageId) -> u8 {
        self.space.mappings[self.space.mapping_of(page).index()].max_order
    }

    /// Whether two pages are of one large folio.
    pub(crate) fn are_of_one_folio(&self, page: PageId, other: PageId) -> bool {
        let f = self.folios.slot(page).folio().filter(|&f| self.folios.st(f).has(FolioFlags::LARGE));
        f.is_some_and(|f| self.pages_of(f).contains(&other.0))
    }

    /// The page table of a page.
    #[inline]
    pub(crate) fn table_of(&self, page: PageId) -> usize {
        self.space.table_of(self.folios.node_of(page))
    }

    /// The lists of a memcg on a node.
    #[inline(always)]
    pub(crate) fn lruvec_of(&self, memcg: MemcgId, nid: NodeId) -> LruvecId {
        LruvecId(u32::from(memcg.0) * self.node_sizes.len() as u32).on(nid)
    }

    /// The lists of a memcg on all nodes.
    pub(crate) fn lruvecs_of(&self, memcg: MemcgId) -> impl Iterator<Item = LruvecId> + use<> {
        let first = self.lruvec_of(memcg, NodeId::default());
        self.node_ids().map(move |nid| first.on(nid))
    }

    #[inline(always)]
    pub(crate) fn count(&mut self, f: FolioId, c: Counter, nr: u64) {
        self.count_lruvec(self.folios.lruvec(f), c, nr);
    }

    #[inline(always)]
    pub(crate) fn count_lruvec(&mut self, v: LruvecId, c: Counter, nr: u64) {
        self.lruvecs[v.index()].stat.add(c, nr);
    }

    /// Counts an event of a group that belongs to none of its lists.
    #[inline(always)]
    pub(crate) fn count_memcg(&mut self, memcg: MemcgId, c: Counter, nr: u64) {
        self.count_lruvec(self.lruvec_of(memcg, NodeId::default()), c, nr);
    }

    /// Counters of a group, summed over all nodes.
    pub(crate) fn memcg_stats(&self, memcg: MemcgId) -> Stats {
        let mut all = Stats::default();
        self.lruvecs_of(memcg).for_each(|v| all.merge(&self.lruvecs[v.index()].stat));
        all
    }

    /// Pages on the lists of all groups of all nodes.
    pub(crate) fn total_size(&self) -> [u64; 5] {
        self.node_sizes.iter().fold([0; 5], |sum, n| std::array::from_fn(|l| sum[l] + n[l]))
    }

    /// The nodes of the machine.
    pub(crate) fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.node_sizes.len() as u8).map(NodeId)
    }

    /// Whether there are several nodes.
    #[inline(always)]
    pub(crate) fn are_several_nodes(&self) -> bool {
        self.node_sizes.len() > 1
    }

    /// Counts an event that belongs to no memcg.
    pub(crate) fn count_machine(&mut self, c: Counter, nr: u64) {
        self.count_memcg(MemcgId::ROOT, c, nr);
    }

    pub(crate) fn count_scan(&mut self, v: LruvecId, t: usize, nr: u64, kswapd: bool) {
        let by = if kswapd { Counter::PgscanKswapd } else { Counter::PgscanDirect };
        self.work.scanned += nr;
        self.count_lruvec(v, by, nr);
        self.count_lruvec(v, Counter::scan(t), nr);
    }

    pub(crate) fn count_steal(&mut self, v: LruvecId, t: usize, nr: u64, kswapd: bool) {
        let by = if kswapd { Counter::PgstealKswapd } else { Counter::PgstealDirect };
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

    /// The swap entry in an anonymous slot.
    pub(crate) fn swap_entry(&self, page: PageId) -> Option<SwapSlot> {
        if self.space.fill[self.folios.node_of(page).index()] != Fill::ANON {
            return None;
        }
        self.folios.slot(page).as_value().map(|v| SwapSlot(v as u32))
    }

    /// One more than the last id of the page's mapping.
    pub(crate) fn mapping_end(&self, page: PageId) -> u32 {
        let m = self.space.mapping_of(page).index();
        self.space.mappings.get(m + 1).map_or(self.folios.len() as u32, |m| m.first.0)
    }

    /// As [`ResidentPages::mapping_end`], or where the file ends at present: nothing is read ahead
    /// beyond.
    pub(crate) fn readahead_end(&self, page: PageId) -> u32 {
        let i_size = self.space.mappings[self.space.mapping_of(page).index()].i_size;
        self.mapping_end(page).min(i_size)
    }

    pub(crate) fn mapping_pages(&self, mapping: MappingId) -> Range<u32> {
        let first = self.space.mappings[mapping.index()].first.0;
        let next = self.space.mappings.get(mapping.index() + 1);
        first..next.map_or(self.folios.len() as u32, |m| m.first.0)
    }

    /// The pages of a folio.
    pub(crate) fn pages_of(&self, f: FolioId) -> Range<u32> {
        f.0..f.0 + self.folios.st(f).nr_pages() as u32
    }

    /// The pages of the aligned range of an order around a page, if all of them exist.
    pub(crate) fn aligned_range(&self, page: PageId, order: u8) -> Option<Range<u32>> {
        let (index, nr) = (self.page_index(page), 1u32 << order);
        let first = page.0.checked_sub((index & u64::from(nr - 1)) as u32)?;
        let all = self.space.table_pages(self.table_of(page) as u32);
        let aligned = index & !u64::from(nr - 1);
        // Indices ascend: with both ends in place, so is what is between them.
        let whole = first >= all.start
            && first + nr <= all.end
            && self.page_index(PageId(first)) == aligned
            && self.page_index(PageId(first + nr - 1)) == aligned + u64::from(nr) - 1;
        whole.then_some(first..first + nr)
    }

    /// Counts an event of a folio size; for 2 MiB also under its older name (`thp_*`).
    pub(crate) fn count_size(&mut self, memcg: MemcgId, order: u8, c: SizeCounter) {
        self.size_stats.add(order, c);
        if order != MAX_ORDER {
            return;
        }
        let counter = match c {
            SizeCounter::AnonFaultAlloc => Counter::ThpFaultAlloc,
            SizeCounter::AnonFaultFallback => Counter::ThpFaultFallback,
            SizeCounter::AnonFaultFallbackCharge => Counter::ThpFaultFallbackCharge,
            SizeCounter::Swpout => Counter::ThpSwpout,
            SizeCounter::SwpoutFallback => Counter::ThpSwpoutFallback,
            SizeCounter::Split => Counter::ThpSplitPage,
            SizeCounter::Swpin => return,
        };
        self.count_memcg(memcg, counter, 1);
    }
}
