//! The pages of the machine: what is resident, where it stands, and the lists it is on.

use std::collections::BTreeSet;

use crate::config::{Config, Lru};
use crate::folio::mapping::PageSpace;
use crate::folio::shadow::Layout;
use crate::folio::table::{FolioTable, State};
use crate::folio::thp::SizeStats;
use crate::ids::{FolioId, MemcgId, PageId};
use crate::lru::batch::CpuBatches;
use crate::lru::lruvec::Lruvec;
use crate::node::nodes::Nodes;
use crate::stat::Work;

/// All pages, with the lists of all groups on all nodes.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    pub(crate) folios: FolioTable,
    pub(crate) space: PageSpace,
    pub(crate) lruvecs: Vec<Lruvec>,
    /// By CPU.
    pub(crate) batches: Vec<CpuBatches>,
    /// The CPU on which things happen.
    pub(crate) cpu: usize,
    /// How a shadow is packed.
    pub(crate) layout: Layout,
    /// No node has more than one zone.
    pub(crate) one_zone: bool,
    /// What a read by descriptor makes of the byte of a page; 0: look closer.
    pub(crate) hit_transition: [u8; 256],
    /// An aging walk ran in this reclaim: look-around promotes at once instead of by batch.
    pub(crate) walk_context: bool,
    /// Reads that the driver has not ended.
    pub(crate) reads_pending: u64,
    /// Anonymous pages that were dropped, but for I/O on them.
    pub(crate) dropping: BTreeSet<PageId>,
    pub(crate) size_stats: SizeStats,
    pub(crate) work: Work,
    pub(crate) scratch: Vec<Vec<FolioId>>,
}

impl Pages {
    /// No page yet, and the lists of the root on every node.
    pub(crate) fn new(cfg: &Config, nodes: &Nodes) -> Pages {
        let mut folios = FolioTable::default();
        if nodes.are_several() || nodes.zone_lists() > 1 {
            folios.links.keep_frames(nodes.are_several());
        }
        let lruvecs = nodes.ids().map(|nid| Lruvec::new(&mut folios, MemcgId::ROOT, nid, cfg.seed)).collect();
        Pages {
            folios,
            space: PageSpace::default(),
            lruvecs,
            batches: vec![CpuBatches::default(); cfg.cpus],
            cpu: 0,
            layout: Layout::new(cfg),
            one_zone: nodes.zone_lists() == 1,
            hit_transition: hit_transition(cfg),
            walk_context: false,
            reads_pending: 0,
            dropping: BTreeSet::new(),
            size_stats: SizeStats::default(),
            work: Work::default(),
            scratch: Vec::new(),
        }
    }
}

/// The effect of a read by descriptor on the byte of a page, for all bytes.
fn hit_transition(cfg: &Config) -> [u8; 256] {
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
