//! The seam for policies, as far as reclaim goes: the steps of a run on a node, a group and a
//! folio.

use crate::config::lru::{Generations, LruConfig};
use crate::config::memcg::MemcgSelection;
use crate::folio::flags::FolioFlags;
use crate::ids::LruvecId;
use crate::lru::policy::{MultiGenLru, TwoList};
use crate::memcg::memcg_lru::Rotation;
use crate::reclaim::Reclaim;
use crate::workingset::policy::WorkingsetPolicy;
use crate::world::World;

/// Steps of reclaim that a policy decides.
pub(crate) trait ReclaimPolicy: WorkingsetPolicy {
    /// Before a pass over a node.
    fn prepare<W: World>(run: &mut Reclaim<'_, W>);

    /// Whether kswapd counts reclaimed pages anew in each pass.
    fn measures_passes(selection: MemcgSelection) -> bool;

    /// Walks the groups in the order of the policy. False: the policy has none, so the caller
    /// visits one group after the other.
    fn shrink_memcgs<W: World>(run: &mut Reclaim<'_, W>) -> bool;

    /// Shrinks the lists of one group.
    fn shrink_lruvec<W: World>(run: &mut Reclaim<'_, W>, v: LruvecId);

    /// Ages groups before each pass of kswapd.
    fn age<W: World>(run: &mut Reclaim<'_, W>);

    /// Whether an isolated folio was promoted meanwhile, and so stays.
    fn was_promoted(st: FolioFlags, cfg: &LruConfig) -> bool;
}

impl ReclaimPolicy for TwoList {
    fn prepare<W: World>(run: &mut Reclaim<'_, W>) {
        run.prepare_scan_control();
    }

    fn measures_passes(_: MemcgSelection) -> bool {
        false
    }

    fn shrink_memcgs<W: World>(_: &mut Reclaim<'_, W>) -> bool {
        false
    }

    fn shrink_lruvec<W: World>(run: &mut Reclaim<'_, W>, v: LruvecId) {
        run.shrink_lruvec_two_list(v);
    }

    /// A slice of active anon, if inactive anon runs low.
    fn age<W: World>(run: &mut Reclaim<'_, W>) {
        run.age_active_anon();
    }

    #[inline(always)]
    fn was_promoted(_: FolioFlags, _: &LruConfig) -> bool {
        false
    }
}

impl ReclaimPolicy for MultiGenLru {
    fn prepare<W: World>(run: &mut Reclaim<'_, W>) {
        if run.mem.cfg.memcg.selection == MemcgSelection::MemcgLru {
            run.set_initial_priority();
        }
    }

    fn measures_passes(selection: MemcgSelection) -> bool {
        selection == MemcgSelection::MemcgLru
    }

    fn shrink_memcgs<W: World>(run: &mut Reclaim<'_, W>) -> bool {
        if run.mem.cfg.memcg.selection != MemcgSelection::MemcgLru {
            run.shrink_proportionally();
        } else if !run.sc.is_cgroup_reclaim() {
            run.shrink_many();
        } else {
            return false;
        }
        true
    }

    fn shrink_lruvec<W: World>(run: &mut Reclaim<'_, W>, v: LruvecId) {
        if run.shrink_lruvec_gen(v) {
            // Aged: the machine has less to gain from it.
            let (nid, memcg) = (run.sc.nid.index(), run.mem.pages.lruvecs[v.index()].memcg);
            run.mem.groups.memcg_lru[nid].rotate(memcg, Rotation::Young);
        }
    }

    /// `min_ttl_ms`, and before the memcg LRU all groups that need it.
    fn age<W: World>(run: &mut Reclaim<'_, W>) {
        run.age_node_on(run.sc.nid);
        if run.mem.cfg.memcg.selection != MemcgSelection::MemcgLru {
            run.age_memcgs();
        }
    }

    #[inline(always)]
    fn was_promoted(st: FolioFlags, cfg: &LruConfig) -> bool {
        cfg.generations == Generations::Linked && st.has(FolioFlags::MAPPED) && st.has(FolioFlags::REFERENCED)
    }
}
