//! Working-set detection: the standing of an evicted page when it comes back. Its shadow is made in
//! `evict_clean`.
//!
//! Mechanism: `docs/mechanisms.md#working-sets`, `docs/mechanisms.md#multi-gen-refaults`,
//! `docs/mechanisms.md#multi-gen-lru-with-rfc-v3`.

use crate::config::lru::{Bound, CacheProtection, Clock, FaultedPages, Recency, RefaultCounting, RefaultTest};
use crate::folio::flags::FolioFlags;
use crate::folio::shadow::{GEN_BITS, Layout, REFS_BITS, mask};
use crate::ids::{LruvecId, MemcgId};
use crate::lru::lru_list::{ACTIVE_ANON, ACTIVE_FILE, FILE, INACTIVE_ANON, INACTIVE_FILE};
use crate::lru::multi_gen::{MAX_NR_GENS, MAX_NR_TIERS};
use crate::lru::pages::ResidentPages;
use crate::lru::tier::tier_of;
use crate::memcg::group::MemcgState;
use crate::memcg::groups::Groups;
use crate::stat::Counter;
use crate::workingset::policy::{Refault, WorkingsetPolicy};

/// All that the type competes with, but its own inactive list.
#[inline(always)]
fn mainline_bound(size: &[u64; 5], t: usize) -> u64 {
    size[ACTIVE_FILE] + size[ACTIVE_ANON] + if t == FILE { size[INACTIVE_ANON] } else { size[INACTIVE_FILE] }
}

/// RFC v3: the active part, or the inactive one once active is the larger.
#[inline(always)]
fn shadow_position_bound(size: &[u64; 5], t: usize) -> u64 {
    let (active, inactive_file) = (size[ACTIVE_FILE] + size[ACTIVE_ANON], size[INACTIVE_FILE]);
    let inactive_anon = size[INACTIVE_ANON];
    if active >= inactive_anon + inactive_file {
        inactive_anon + inactive_file
    } else {
        active + if t == FILE { inactive_anon } else { inactive_file }
    }
}

impl ResidentPages {
    /// A folio of `own` with a shadow is coming back in state `st`: returns the state that decides
    /// where it will be put.
    #[inline(always)]
    pub(crate) fn workingset_refault(
        &mut self,
        groups: &Groups,
        free_swap: u64,
        own: LruvecId,
        st: FolioFlags,
        shadow: u64,
        in_fault: bool,
    ) -> FolioFlags {
        let back = Refault { own, st, shadow, in_fault, free_swap };
        by_policy!(self.cfg.kind, P => P::refault(self, groups, &back))
    }

    #[inline(never)]
    pub(crate) fn refault_two_list(
        &mut self,
        groups: &Groups,
        free_swap: u64,
        own: LruvecId,
        mut st: FolioFlags,
        shadow: u64,
    ) -> FolioFlags {
        let shadow = self.layout.unpack(shadow);
        let (t, nr) = (st.type_index(), st.nr_pages());
        let v = self.lruvec_of(shadow.memcg, shadow.nid);
        let age = self.lruvecs[v.index()].nonresident_age;
        let distance = self.layout.list_distance(age, shadow.eviction);
        // A group that is gone has nothing to compare with.
        let recent = groups.memcgs.get(shadow.memcg).state != MemcgState::Gone
            && self.is_recent(groups, free_swap, v, t, distance);
        let lruvec = &mut self.lruvecs[own.index()];
        lruvec.stat.add(Counter::refault(t), nr);
        if !recent {
            return st;
        }
        lruvec.stat.add(Counter::activate(t), nr);
        lruvec.activated[t] += nr;
        self.node_activations[lruvec.nid.index()][t] += nr;
        st.set(FolioFlags::ACTIVE);
        if shadow.workingset {
            lruvec.stat.add(Counter::restore(t), nr);
            st.set(FolioFlags::WORKINGSET);
            self.note_cost(groups, own, t, nr, 0);
        }
        if self.cfg.clock == Clock::EvictionsAndActivations {
            self.age_nonresident(own, nr);
        }
        st
    }

    /// The three tests, by distance (refault distance, shadow position).
    #[inline(always)]
    fn is_recent(&self, groups: &Groups, free_swap: u64, v: LruvecId, t: usize, distance: u64) -> bool {
        let size = match self.cfg.refault {
            RefaultTest::None => return false,
            RefaultTest::Distance2013 => self.lruvecs[v.index()].size[ACTIVE_FILE],
            RefaultTest::Mainline => self.bound_by(groups, free_swap, v, t, mainline_bound),
            RefaultTest::ShadowPosition => self.bound_by(groups, free_swap, v, t, shadow_position_bound),
        };
        match self.cfg.bound {
            Bound::Inclusive => distance <= size,
            Bound::Strict => distance < size,
        }
    }

    fn has_free_swap(&self, groups: &Groups, free_swap: u64, v: LruvecId) -> bool {
        groups.memcgs.swap_room(self.lruvecs[v.index()].memcg, free_swap) > 0
    }

    /// List sizes, in pages, that a refault distance is compared with: of the group and its
    /// descendants. Anon lists count as empty where nothing can be swapped.
    #[inline(never)]
    fn competing_sizes(&self, groups: &Groups, free_swap: u64, v: LruvecId) -> [u64; 5] {
        let own = &self.lruvecs[v.index()];
        let mut size = self.known_sizes(groups, own.memcg, own.nid);
        if size[ACTIVE_ANON] + size[INACTIVE_ANON] > 0 && !self.has_free_swap(groups, free_swap, v) {
            (size[ACTIVE_ANON], size[INACTIVE_ANON]) = (0, 0);
        }
        size
    }

    /// A bound of `competing_sizes`. Mostly these are the sizes of the lruvec itself: a
    /// group without children or anon.
    #[inline(always)]
    fn bound_by(
        &self,
        groups: &Groups,
        free_swap: u64,
        v: LruvecId,
        t: usize,
        bound: impl Fn(&[u64; 5], usize) -> u64,
    ) -> u64 {
        let own = &self.lruvecs[v.index()];
        let alone = own.memcg != MemcgId::ROOT && !groups.memcgs.has_children(own.memcg);
        let exact = self.cfg.stat_flush_interval_ns == 0;
        let plain = exact && alone && own.size[ACTIVE_ANON] + own.size[INACTIVE_ANON] == 0;
        if plain { bound(&own.size, t) } else { bound(&self.competing_sizes(groups, free_swap, v), t) }
    }

    /// Mainline multi-gen: only the generation is compared, and an fd refault is not activated.
    #[inline(never)]
    pub(crate) fn refault_gen(&mut self, id: LruvecId, mut st: FolioFlags, shadow: u64, in_fault: bool) -> FolioFlags {
        let shadow = self.layout.unpack(shadow);
        let (t, nr) = (st.type_index(), st.nr_pages());
        if self.lruvec_of(shadow.memcg, shadow.nid) != id {
            return st;
        }
        let g = &mut self.lruvecs[id.index()].r#gen;
        let recent = shadow.eviction >> REFS_BITS == g.min_seq[t] & self.layout.seq_mask();
        let refs = (shadow.eviction & mask(REFS_BITS)) as u32 + u32::from(shadow.workingset);
        if recent {
            g.refaulted[t][tier_of(refs + 1)] += nr;
        }
        let all = self.cfg.refault_counting == RefaultCounting::All;
        if recent || all {
            self.count_lruvec(id, Counter::refault(t), nr);
        }
        if !recent {
            return st;
        }
        if all {
            self.count_lruvec(id, Counter::activate(t), nr);
        }
        // Mapped: hotter pages pushed it out. By descriptor: its tier would have been protected,
        // had it been known.
        if in_fault || refs >= self.cfg.restore_refs {
            st.set(match self.cfg.cache_protection {
                CacheProtection::SecondOldest => FolioFlags::REFS_MASK | FolioFlags::WORKINGSET,
                CacheProtection::None => FolioFlags::WORKINGSET,
            });
            self.count_lruvec(id, Counter::restore(t), nr);
        }
        st
    }

    /// Mainline multi-gen since 6.14: a page that is back before four generations have come is in
    /// the working set again if it was. Its refs come back as well, but the read that brings the
    /// page starts them over, so they are left out.
    #[inline(never)]
    pub(crate) fn refault_gen_independent(
        &mut self,
        id: LruvecId,
        mut st: FolioFlags,
        shadow: u64,
        in_fault: bool,
    ) -> FolioFlags {
        let shadow = self.layout.unpack(shadow);
        let (t, nr) = (st.type_index(), st.nr_pages());
        if self.lruvec_of(shadow.memcg, shadow.nid) != id {
            return st;
        }
        self.count_lruvec(id, Counter::refault(t), nr);
        let g = &mut self.lruvecs[id.index()].r#gen;
        let seqs = self.layout.seq_mask();
        if (shadow.eviction >> REFS_BITS).abs_diff(g.max_seq & seqs) >= MAX_NR_GENS {
            return st;
        }
        let refs = (shadow.eviction & mask(REFS_BITS)) as u32 + 1;
        let tier = if shadow.workingset { MAX_NR_TIERS - 1 } else { tier_of(refs) };
        g.refaulted[t][tier] += nr;
        let activates = shadow.workingset || self.cfg.faulted_pages == FaultedPages::Active;
        if in_fault && activates {
            self.count_lruvec(id, Counter::activate(t), nr);
        }
        if shadow.workingset {
            st.set(FolioFlags::WORKINGSET);
            self.count_lruvec(id, Counter::restore(t), nr);
        }
        st
    }

    /// RFC v3 on multi-gen LRU: the shadow position re-activates, and counts for the controller.
    #[inline(never)]
    pub(crate) fn refault_gen_shadow(
        &mut self,
        groups: &Groups,
        free_swap: u64,
        id: LruvecId,
        mut st: FolioFlags,
        shadow: u64,
        in_fault: bool,
    ) -> FolioFlags {
        let shadow = self.layout.unpack(shadow);
        let (t, nr) = (st.type_index(), st.nr_pages());
        if self.lruvec_of(shadow.memcg, shadow.nid) != id {
            return st;
        }
        self.count_lruvec(id, Counter::refault(t), nr);
        let Layout { gen_eviction_bits: bits, gen_bucket_order, .. } = self.layout;
        let age = self.lruvecs[id.index()].nonresident_age;
        let qualified =
            self.is_recent(groups, free_swap, id, t, Layout::distance(age, shadow.eviction, bits, gen_bucket_order));
        let token = shadow.eviction >> bits;
        let recent = self.is_recent_generation(token >> REFS_BITS, self.lruvecs[id.index()].r#gen.min_seq[t]);
        if !qualified && !recent {
            return st;
        }
        let refs = (token & mask(REFS_BITS)) as u32 + u32::from(shadow.workingset);
        let mut tier = tier_of(refs + 1);
        if qualified {
            if refs > 0 {
                st.set(FolioFlags::ACTIVE);
            }
            if refs != 1 << REFS_BITS {
                tier = tier_of(refs + 2);
            }
            self.count_lruvec(id, Counter::activate(t), nr);
        }
        if qualified || in_fault || refs >= self.cfg.restore_refs {
            st.set(FolioFlags::WORKINGSET);
            self.count_lruvec(id, Counter::restore(t), nr);
        }
        let g = &mut self.lruvecs[id.index()].r#gen;
        if recent {
            g.refaulted[t][tier] += nr;
        } else {
            // The generation that evicted it is gone: straight into the averages.
            g.avg_total[t][tier] += nr;
            g.avg_refaulted[t][tier] += nr;
        }
        st
    }

    fn is_recent_generation(&self, token_seq: u64, min_seq: u64) -> bool {
        match self.cfg.recency {
            Recency::ThreeBit => token_seq & mask(GEN_BITS) == min_seq & mask(GEN_BITS),
            Recency::Literal => token_seq == min_seq & self.layout.seq_mask(),
        }
    }
}
