//! The seam for policies, as far as lists go: what becomes of a folio that is touched, added, or
//! found young.
//!
//! A policy is a type without a value. It says in three rooms what it does, each time in a trait
//! that contains the one below: here, in `workingset` (what an evicted page leaves and gets back),
//! and in `reclaim` (what a run does). [`by_policy!`] goes from the configuration to the type: one
//! comparison, and then calls that the compiler sees through.

use crate::config::lru::{CacheProtection, FaultedPages, Generations, LruConfig};
use crate::folio::flags::FolioFlags;
use crate::folio::list::{List, Target};
use crate::folio::table::FolioTable;
use crate::ids::{FolioId, PageId};
use crate::lru::lru_list::{ANON, FILE, INACTIVE_ANON, list_index};
use crate::lru::lruvec::Lruvec;
use crate::lru::multi_gen::{MAX_NR_GENS, MIN_NR_GENS, MultiGen, gen_index};
use crate::lru::pages::ResidentPages;
use crate::world::World;

/// An inactive and an active list per type.
pub(crate) struct TwoList;

/// Up to four generations per type.
pub(crate) struct MultiGenLru;

/// Place for a folio: the index of the list in the sizes of its lruvec, and the list.
pub(crate) type Place = (usize, List);

/// Rules by which a policy keeps its lists.
pub(crate) trait LruPolicy {
    /// A page that a fault brings in starts as active.
    const FAULTED_IS_ACTIVE: bool;
    /// A folio that is not active may still be too young to be deactivated for nothing.
    const INACTIVE_CAN_BE_DEACTIVATED: bool;
    /// Folios that are activated may be moved as a batch, from one list of their type to the other.
    const ACTIVATES_BY_LIST: bool;
    /// A run compares refaults with the refaults at the end of the last run.
    const COMPARES_REFAULTS: bool;

    /// Flags of a resident page after a read by descriptor; none: the read changes more than flags.
    fn read_hit(st: FolioFlags, cfg: &LruConfig) -> Option<FolioFlags>;

    /// An access by descriptor.
    fn mark_accessed(pages: &mut ResidentPages, f: FolioId);

    /// The list for a folio whose flags are to be `st`: at its tail if `reclaiming`. The folio may
    /// lose some of the flags.
    fn place(
        v: &mut Lruvec,
        folios: &FolioTable,
        f: FolioId,
        st: &mut FolioFlags,
        reclaiming: bool,
        cfg: &LruConfig,
    ) -> Place;

    /// File folios that are added go to one of two lists, by whether they are active.
    fn adds_by_list(cfg: &LruConfig) -> bool;

    /// Anonymous folios are added by list only if all are active.
    const ADDS_ACTIVE_ANON_BY_LIST: bool;

    /// Puts folios of one page each, all anonymous or all of files, on their lists. Result: lists
    /// that grow, and by how many folios: first the one of inactive folios, then of active ones.
    fn add_bulk(
        v: &mut Lruvec,
        folios: &mut FolioTable,
        new: (&[FolioId], usize),
        cfg: &LruConfig,
    ) -> [(usize, u64); 2];

    /// Notes that reclaim found a mapped page young; the accessed bit is cleared.
    fn found_young<W: World>(pages: &mut ResidentPages, w: &mut W, page: PageId);

    /// The list from which reclaim takes anonymous folios next, in a zone; and a test whether a
    /// folio on it is really of the oldest.
    fn oldest_anon(v: &Lruvec, zone: usize) -> (List, fn(&Lruvec, FolioFlags) -> bool);
    /// Whether a type has a list for each zone, rather than one for all zones.
    const LISTS_BY_ZONE: bool;

    /// Checks what the policy keeps beside the lists of an lruvec. `swap_in`: large folios are read
    /// back whole.
    fn validate(
        pages: &ResidentPages,
        swap_in: bool,
        v: usize,
        on_list: &mut [u8],
        size: &mut [u64; 5],
    ) -> Result<(), String>;
}

impl LruPolicy for TwoList {
    const FAULTED_IS_ACTIVE: bool = false;
    const INACTIVE_CAN_BE_DEACTIVATED: bool = false;
    const ACTIVATES_BY_LIST: bool = true;
    const COMPARES_REFAULTS: bool = true;
    const LISTS_BY_ZONE: bool = false;
    const ADDS_ACTIVE_ANON_BY_LIST: bool = false;

    fn read_hit(mut st: FolioFlags, cfg: &LruConfig) -> Option<FolioFlags> {
        if !st.has(FolioFlags::REFERENCED) {
            st.set(FolioFlags::REFERENCED);
        } else if !st.has(FolioFlags::ACTIVE | FolioFlags::UNEVICTABLE) && !cfg.one_list {
            // An activation.
            return None;
        }
        Some(st)
    }

    #[inline]
    fn mark_accessed(pages: &mut ResidentPages, f: FolioId) {
        let st = pages.folios.st(f);
        if !st.has(FolioFlags::REFERENCED) {
            pages.folios.set(f, FolioFlags::REFERENCED);
        } else if !st.has(FolioFlags::ACTIVE | FolioFlags::UNEVICTABLE) && !pages.cfg.one_list {
            pages.activate_accessed(f);
        }
    }

    #[inline(always)]
    fn place(v: &mut Lruvec, _: &FolioTable, _: FolioId, st: &mut FolioFlags, _: bool, cfg: &LruConfig) -> Place {
        if cfg.one_list {
            st.clear(FolioFlags::ACTIVE);
        }
        let l = list_index(st.type_index(), st.has(FolioFlags::ACTIVE));
        (l, v.lists[l])
    }

    fn adds_by_list(_: &LruConfig) -> bool {
        true
    }

    fn add_bulk(
        v: &mut Lruvec,
        folios: &mut FolioTable,
        (new, t): (&[FolioId], usize),
        cfg: &LruConfig,
    ) -> [(usize, u64); 2] {
        let (all, lists) = (new.len() as u64, [false, true].map(|active| list_index(t, active)));
        if cfg.one_list {
            let to = Target::new(v.lists[lists[0]], !(FolioFlags::ADDING | FolioFlags::ACTIVE), FolioFlags::LRU);
            folios.add_each(new, &[to]);
            return [(lists[0], all), (lists[1], 0)];
        }
        let to = lists.map(|l| Target::new(v.lists[l], !FolioFlags::ADDING, FolioFlags::LRU));
        let active = folios.add_each(new, &to);
        [(lists[0], all - active), (lists[1], active)]
    }

    #[inline(always)]
    fn found_young<W: World>(_: &mut ResidentPages, _: &mut W, _: PageId) {}

    fn oldest_anon(v: &Lruvec, _: usize) -> (List, fn(&Lruvec, FolioFlags) -> bool) {
        (v.lists[INACTIVE_ANON], |_, _| true)
    }

    fn validate(_: &ResidentPages, _: bool, _: usize, _: &mut [u8], _: &mut [u64; 5]) -> Result<(), String> {
        Ok(())
    }
}

impl LruPolicy for MultiGenLru {
    const FAULTED_IS_ACTIVE: bool = true;
    const INACTIVE_CAN_BE_DEACTIVATED: bool = true;
    const ACTIVATES_BY_LIST: bool = false;
    const COMPARES_REFAULTS: bool = false;
    const LISTS_BY_ZONE: bool = true;
    // Births of other anonymous folios depend on where the folios come from.
    const ADDS_ACTIVE_ANON_BY_LIST: bool = true;

    fn read_hit(mut st: FolioFlags, cfg: &LruConfig) -> Option<FolioFlags> {
        cfg.generations.count_access(&mut st);
        Some(st)
    }

    fn mark_accessed(pages: &mut ResidentPages, f: FolioId) {
        let mut st = pages.folios.st(f);
        pages.cfg.generations.count_access(&mut st);
        pages.folios.put(f, st);
    }

    #[inline(always)]
    fn place(
        v: &mut Lruvec,
        folios: &FolioTable,
        f: FolioId,
        st: &mut FolioFlags,
        reclaiming: bool,
        cfg: &LruConfig,
    ) -> Place {
        let t = st.type_index();
        let i = lru_gen_folio_index(&v.r#gen, *st, reclaiming, cfg);
        if st.has(FolioFlags::ACTIVE) {
            // `workingset` stays: pressure accounting needs it.
            st.clear(flags_lost_on_add(cfg));
        }
        st.set_generation(i);
        v.r#gen.nr_pages[i][t] += st.nr_pages();
        (list_index(t, v.r#gen.is_active(i)), v.r#gen.lists[i][t][folios.zone_list(f)])
    }

    /// Since 6.14 there are more than two births: the working set is told apart as well.
    fn adds_by_list(cfg: &LruConfig) -> bool {
        cfg.generations == Generations::Linked
    }

    fn add_bulk(
        v: &mut Lruvec,
        folios: &mut FolioTable,
        (new, t): (&[FolioId], usize),
        cfg: &LruConfig,
    ) -> [(usize, u64); 2] {
        let births = [0, FolioFlags::ACTIVE].map(|active| {
            let i = lru_gen_folio_index(&v.r#gen, FolioFlags(active), false, cfg);
            let mut born = FolioFlags(FolioFlags::LRU);
            born.set_generation(i);
            let lost = if active == 0 { 0 } else { flags_lost_on_add(cfg) };
            (i, Target::new(v.r#gen.lists[i][t][0], !(FolioFlags::ADDING | lost), born.0))
        });
        let active = match t {
            FILE => folios.add_each(new, &births.map(|b| b.1)),
            // All anonymous folios here are active.
            _ => {
                folios.add_each(new, &[births[1].1]);
                new.len() as u64
            }
        };
        [(births[0].0, new.len() as u64 - active), (births[1].0, active)].map(|(i, nr)| {
            v.r#gen.nr_pages[i][t] += nr;
            (list_index(t, v.r#gen.is_active(i)), nr)
        })
    }

    #[inline(always)]
    fn found_young<W: World>(pages: &mut ResidentPages, w: &mut W, page: PageId) {
        pages.look_around(w, page);
    }

    fn oldest_anon(v: &Lruvec, zone: usize) -> (List, fn(&Lruvec, FolioFlags) -> bool) {
        let oldest = gen_index(v.r#gen.min_seq[ANON]);
        let is_oldest = |v: &Lruvec, st: FolioFlags| st.generation() == Some(gen_index(v.r#gen.min_seq[ANON]));
        (v.r#gen.lists[oldest][ANON][zone], is_oldest)
    }

    fn validate(
        pages: &ResidentPages,
        swap_in: bool,
        v: usize,
        on_list: &mut [u8],
        size: &mut [u64; 5],
    ) -> Result<(), String> {
        pages.validate_generations(swap_in, v, on_list, size)
    }
}

/// Flags that an active folio loses on its list.
fn flags_lost_on_add(cfg: &LruConfig) -> u32 {
    match cfg.generations {
        Generations::Linked if cfg.activation_resets_refs => {
            FolioFlags::REFS_MASK | FolioFlags::REFERENCED | FolioFlags::ACTIVE
        }
        Generations::Linked | Generations::Independent => FolioFlags::ACTIVE,
    }
}

/// Birth generation: the index of the generation that a folio is born into.
#[inline]
fn lru_gen_folio_index(g: &MultiGen, st: FolioFlags, reclaiming: bool, cfg: &LruConfig) -> usize {
    gen_index(match cfg.generations {
        Generations::Linked => lru_gen_folio_seq_linked(g, st, reclaiming, cfg.cache_protection),
        Generations::Independent => lru_gen_folio_seq(g, st, reclaiming, cfg.faulted_pages),
    })
}

/// Before 6.14: the first match wins.
#[inline]
fn lru_gen_folio_seq_linked(g: &MultiGen, st: FolioFlags, reclaiming: bool, protection: CacheProtection) -> u64 {
    let t = st.type_index();
    let late = is_fresh_anon(st) || is_pending(st);
    if st.has(FolioFlags::ACTIVE) {
        g.max_seq
    } else if protection == CacheProtection::None {
        g.min_seq[t] + u64::from(late)
    } else if late {
        g.max_seq - 1
    } else if reclaiming || g.min_seq[t] + MIN_NR_GENS >= g.max_seq {
        g.min_seq[t]
    } else {
        g.min_seq[t] + 1
    }
}

/// Seq of the birth generation since 6.14, counted back from the youngest one: one less far for the
/// working set, and since 7.2 for an accessed folio.
#[inline]
pub(crate) fn lru_gen_folio_seq(g: &MultiGen, st: FolioFlags, reclaiming: bool, faulted: FaultedPages) -> u64 {
    let workingset = u64::from(st.has(FolioFlags::WORKINGSET));
    let back = if st.has(FolioFlags::ACTIVE) {
        MIN_NR_GENS - workingset
    } else if reclaiming {
        MAX_NR_GENS
    } else if is_fresh_anon(st) || is_pending(st) {
        MIN_NR_GENS
    } else {
        let accessed = faulted == FaultedPages::Accessed && st.has(FolioFlags::REFERENCED);
        MAX_NR_GENS - workingset.max(u64::from(accessed))
    };
    (g.max_seq + 1).saturating_sub(back).max(g.min_seq[st.type_index()])
}

/// Anonymous memory that is not read from swap.
fn is_fresh_anon(st: FolioFlags) -> bool {
    st.type_index() == ANON && !st.has(FolioFlags::SWAPCACHE)
}

/// Whether reclaim waits for the write of a folio.
fn is_pending(st: FolioFlags) -> bool {
    st.has(FolioFlags::RECLAIM) && st.has(FolioFlags::DIRTY | FolioFlags::WRITEBACK)
}
