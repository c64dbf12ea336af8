//! Hint faults and promotion: what the engine knows of a page that is to be marked, and what
//! becomes of one that was touched.
//!
//! The driver owns the marks, as it owns the accessed bits: it asks for each page whether to mark
//! it, and says when a marked page was touched. Whether such a page moves is decided in `tiering`.
//!
//! Mechanism: `docs/mechanisms.md#hint-faults`, `docs/mechanisms.md#promotion`.

use crate::config::node::NumaConfig;
use crate::folio::table::FolioTable;
use crate::ids::{FolioId, NodeId};
use crate::tiering::{Promoter, Stamp, StampClock, TieringConfig};

/// Outcome of a hint fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HintOutcome {
    /// The page stays. The driver makes it accessible, young.
    Stay,
    /// The page was moved, and is mapped again.
    Promoted,
    /// The page is being moved: accesses wait until [`crate::Engine::migrate_done`].
    Migrating,
}

/// State of a machine with tiers for hint faults.
#[derive(Clone, Debug)]
pub(crate) struct HintFaults {
    pub(crate) cfg: TieringConfig,
    /// By node of the top tier: the rules that decide on promotions to this node. None for other
    /// nodes.
    pub(crate) promoters: Vec<Option<Promoter>>,
    pub(crate) clock: StampClock,
}

impl HintFaults {
    /// None where nothing is promoted.
    pub(crate) fn new(numa: Option<&NumaConfig>) -> Result<Option<HintFaults>, String> {
        let Some(numa) = numa.filter(|n| n.tiering.promotes()) else { return Ok(None) };
        let any = Promoter::new(&numa.tiering)?;
        let is_top = |n: usize| numa.top_tier.get(n).copied().unwrap_or(true);
        let promoters = (0..numa.nodes.len()).map(|n| is_top(n).then(|| any.clone())).collect();
        Ok(Some(HintFaults { cfg: numa.tiering.clone(), promoters, clock: any.clock() }))
    }

    pub(crate) fn is_toptier(&self, nid: NodeId) -> bool {
        self.promoters[nid.index()].is_some()
    }

    /// I9.2, I9.3, I9.4: folios in fast memory have no time stamp.
    pub(crate) fn validate(&self, folios: &FolioTable) -> Result<(), String> {
        self.promoters.iter().flatten().try_for_each(Promoter::validate)?;
        let wrong = |&f: &FolioId| self.is_toptier(folios.nid(f)) && folios.links.stamp(f) != Stamp::NONE;
        folios.in_use().find(wrong).map_or(Ok(()), |f| Err(format!("I9.4: {f:?} was marked on fast memory")))
    }
}
