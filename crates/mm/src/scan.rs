//! The state of one reclaim run.

use crate::ids::{ANY_ZONE, LruvecId, MemcgId, NodeId};

/// Rounds without progress before a charge, an allocation or a request is given up.
pub(crate) const MAX_RECLAIM_RETRIES: u32 = 16;

/// Priority at which reclaim starts: lists are scanned by size >> priority.
pub(crate) const DEF_PRIORITY: u32 = 12;

/// A pass over a whole subtree that found nothing.
#[derive(Clone, Debug)]
pub(crate) struct FruitlessWalk {
    /// The time since something changed last, as groups number it.
    pub(crate) since: u64,
    pub(crate) nid: NodeId,
    /// Lowest priority at which nothing is found, nor at any higher one.
    pub(crate) lowest: u32,
    pub(crate) memcgs: u64,
}

/// Totals of a run when a pass began; taken anew for each pass.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PassStart {
    /// Pages that earlier passes reclaimed, set aside if this pass counts for itself.
    pub(crate) carried: u64,
    pub(crate) nr_reclaimed: u64,
    pub(crate) nr_scanned: u64,
}

/// Where a pass was interrupted, so that it goes on from there.
#[derive(Clone, Debug, Default)]
pub(crate) struct InterruptedPass {
    /// Pages that the run had gained before the pass.
    pub(crate) gained: u64,
    pub(crate) start: PassStart,
    /// The group that was being scanned.
    pub(crate) memcg: MemcgId,
    /// How far the group's lists are, with two lists of each type.
    pub(crate) slices: Option<ShrinkProgress>,
    /// How far the group's generations are: pages that were scanned, or that are left of the
    /// budget.
    pub(crate) scanned: Option<u64>,
    /// In the memcg LRU: the generation of groups, the bin that came first, and bins done.
    pub(crate) bins: Option<(usize, usize, usize)>,
}

/// How far a pass is with two lists of each type.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShrinkProgress {
    pub(crate) targets: [u64; 4],
    pub(crate) left: [u64; 4],
    /// Index of the list that comes next in the round under way.
    pub(crate) next: usize,
    pub(crate) reclaimed: u64,
}

/// Target, limits and totals of one run of reclaim.
#[derive(Clone, Debug)]
pub(crate) struct ScanControl {
    /// The memcg over its limit; the root for the whole machine.
    pub(crate) target: MemcgId,
    /// The node that the pass under way is for.
    pub(crate) nid: NodeId,
    pub(crate) nr_to_reclaim: u64,
    pub(crate) nr_reclaimed: u64,
    /// Pages of `nr_reclaimed` that nobody freed: counted so that the caller stops.
    pub(crate) credited: u64,
    pub(crate) nr_scanned: u64,
    pub(crate) priority: u32,
    pub(crate) may_swap: bool,
    pub(crate) may_unmap: bool,
    pub(crate) may_writepage: bool,
    /// Reclaim whatever the accessed bits say: the program asked for it.
    pub(crate) ignore_references: bool,
    pub(crate) kswapd: bool,
    /// Only pages of zones up to this are of use (`reclaim_idx`).
    pub(crate) reclaim_idx: usize,
    /// Pages of boosts that kswapd is still to make up for.
    pub(crate) boost_left: u64,
    /// No folio is demoted: the program wants its pages out.
    pub(crate) no_demotion: bool,
    pub(crate) force_deactivate: bool,
    pub(crate) skipped_deactivate: bool,
    /// Anon and file.
    pub(crate) may_deactivate: [bool; 2],
    pub(crate) cache_trim_mode: bool,
    pub(crate) file_is_tiny: bool,
    pub(crate) cost: [u64; 2],
    pub(crate) memcg_full_walk: bool,
    /// Swappiness for all groups; none: each group has its own.
    pub(crate) swappiness: Option<u32>,
    /// The run was requested (`memory.reclaim`); no limit was hit.
    pub(crate) proactive: bool,
    /// A proactive run that waits for a swap device that takes no more writes.
    pub(crate) waits_for_queue: bool,
    /// `memory.low` does not hold any more.
    pub(crate) low_reclaim: bool,
    /// `memory.low` kept reclaim off some pages.
    pub(crate) low_skipped: bool,
    /// Groups are aged before the next pass: the last one found nothing easy.
    pub(crate) need_aging: bool,
    /// Under [`crate::Backoff::AvoidSwapping`]: no group of the pass had anything but anon to give.
    pub(crate) need_swapping: bool,
    /// Under [`crate::Backoff::AvoidSwapping`]: a group is left when only swapping is left to do.
    pub(crate) avoid_swapping: bool,
    /// `nr_reclaimed` before the pass under way.
    pub(crate) last_reclaimed: u64,
    /// A batch of anon was taken from the group under way.
    pub(crate) took_anon: bool,
    /// Trimming the cache alone is not allowed: it failed.
    pub(crate) cache_trim_mode_failed: bool,
    /// A pass that only trimmed the cache reclaimed nothing.
    pub(crate) trim_pass_failed: bool,
    /// Swap can take no more writes for now, as the last batch began.
    pub(crate) queue_full: bool,
    /// The run is over: it came to a page that had to wait for swap to take writes.
    pub(crate) blocked: bool,
    /// Epoch since which this run has found groups with nothing to give; 0: it has found none.
    pub(crate) empty_since: u64,
    /// The last pass that found nothing at all.
    pub(crate) empty_pass: Option<FruitlessWalk>,
    /// An lruvec, all of whose pages that this run met are held by batches of other CPUs, and the
    /// work done by then: until more is done, the lruvec has nothing to give.
    pub(crate) held: Option<(LruvecId, u64)>,
    /// Totals of the pass under way, in pages.
    pub(crate) seen: ShrinkStat,
    /// A task's run that may pause, so that time goes on ([`crate::World::reclaim_pauses`]).
    pub(crate) may_pause: bool,
    /// The pass under way gave up the processor, and goes on later: of kswapd, or of a task that
    /// pauses.
    pub(crate) interrupted: bool,
    /// Place at which the interrupted pass goes on.
    pub(crate) at: Option<Box<InterruptedPass>>,
}

impl ScanControl {
    /// A run for a memcg that met its limit. `swappiness`: of all groups, instead of their own.
    pub(crate) fn for_memcg(target: MemcgId, nr_to_reclaim: u64, swappiness: Option<u32>) -> ScanControl {
        ScanControl {
            target,
            nid: NodeId::default(),
            nr_to_reclaim,
            nr_reclaimed: 0,
            credited: 0,
            nr_scanned: 0,
            priority: DEF_PRIORITY,
            may_swap: true,
            may_unmap: true,
            may_writepage: true,
            ignore_references: false,
            kswapd: false,
            reclaim_idx: ANY_ZONE,
            boost_left: 0,
            no_demotion: false,
            force_deactivate: false,
            skipped_deactivate: false,
            may_deactivate: [false; 2],
            cache_trim_mode: false,
            file_is_tiny: false,
            cost: [0; 2],
            memcg_full_walk: false,
            swappiness,
            proactive: false,
            waits_for_queue: false,
            low_reclaim: false,
            low_skipped: false,
            need_aging: false,
            need_swapping: false,
            avoid_swapping: false,
            last_reclaimed: 0,
            took_anon: false,
            cache_trim_mode_failed: false,
            trim_pass_failed: false,
            queue_full: false,
            blocked: false,
            empty_since: 0,
            empty_pass: None,
            held: None,
            seen: ShrinkStat::default(),
            may_pause: false,
            interrupted: false,
            at: None,
        }
    }

    /// Takes the two lists of the group that the interrupted pass was at, for the pass that goes
    /// on.
    #[inline]
    pub(crate) fn resumed_shrink(&mut self) -> Option<ShrinkProgress> {
        self.at.as_mut().and_then(|at| at.slices.take())
    }

    /// The same for generations.
    #[inline]
    pub(crate) fn resumed_scan(&mut self) -> Option<u64> {
        self.at.as_mut().and_then(|at| at.scanned.take())
    }

    /// Marks the pass under way as interrupted. Returns the place in which to note how far it is.
    pub(crate) fn interrupt(&mut self) -> &mut InterruptedPass {
        self.interrupted = true;
        self.at.get_or_insert_default()
    }

    /// Whether a memcg's limit, not the machine, asks.
    pub(crate) fn is_cgroup_reclaim(&self) -> bool {
        self.target != MemcgId::ROOT
    }
}

/// Fate of a batch of isolated folios, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShrinkStat {
    pub(crate) reclaimed: u64,
    pub(crate) pageout: u64,
    pub(crate) dirty: u64,
    pub(crate) unqueued_dirty: u64,
    pub(crate) congested: u64,
    pub(crate) writeback: u64,
    pub(crate) immediate: u64,
    pub(crate) activated: u64,
    /// Pages taken off the lists, and the file pages among them.
    pub(crate) taken: u64,
    pub(crate) file_taken: u64,
}

impl ShrinkStat {
    /// Adds what another pass over folios of the same batch met.
    pub(crate) fn merge(&mut self, pass: &ShrinkStat) {
        self.reclaimed += pass.reclaimed;
        self.pageout += pass.pageout;
        self.activated += pass.activated;
        self.add(pass, 0, false);
    }

    /// Adds what one batch of a type met to what the whole pass met.
    pub(crate) fn add(&mut self, batch: &ShrinkStat, taken: u64, file: bool) {
        self.dirty += batch.dirty;
        self.unqueued_dirty += batch.unqueued_dirty;
        self.congested += batch.congested;
        self.writeback += batch.writeback;
        self.immediate += batch.immediate;
        self.taken += taken;
        self.file_taken += if file { taken } else { 0 };
    }
}
