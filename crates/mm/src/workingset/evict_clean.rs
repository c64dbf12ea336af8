//! Shadows of evicted folios, and dropping clean, unmapped file folios. These are most of the
//! folios that reclaim frees, so work that is the same for a batch is done once a batch.
//!
//! All folios of a batch were isolated from one lruvec. Nothing else happens between
//! `start_evict_batch` and `finish_evict_batch`, so the clock and the controller may learn of the
//! whole batch at its end. Other frees in between advance the clock as well: `resume_evict_batch`.

use crate::config::lru::{LruConfig, RefaultTest};
use crate::folio::flags::FolioFlags;
use crate::folio::shadow::Layout;
use crate::folio::slot::Slot;
use crate::ids::{FolioId, LruvecId, MemcgId, PageId};
use crate::lru::lru_list::FILE;
use crate::lru::multi_gen::MAX_NR_TIERS;
use crate::lru::pages::ResidentPages;
use crate::memcontrol::Memcontrol;
use crate::scan::ShrinkStat;
use crate::stat::Counter;
use crate::workingset::policy::WorkingsetPolicy;
use crate::world::{Effect, World};

/// State that the folios of a batch have in common, and their sums.
#[derive(Clone, Copy)]
pub(crate) struct EvictBatch {
    /// Lruvec of the folios.
    pub(crate) own: LruvecId,
    /// Type of the folios: anon or file.
    pub(crate) t: usize,
    /// Lruvec whose clock stamps the shadows.
    pub(crate) clock: LruvecId,
    /// Owner of the folios, as their shadows name it.
    pub(crate) owner: u64,
    pub(crate) age: u64,
    /// Number of the oldest generation, under multi-gen LRU.
    pub(crate) min_seq: u64,
    pub(crate) evicted: [u64; MAX_NR_TIERS],
    pub(crate) dropped: u64,
}

impl EvictBatch {
    /// The shadow of one folio of the batch, of `nr` pages.
    #[inline(always)]
    fn shadow_of<P: WorkingsetPolicy>(&mut self, cfg: &LruConfig, l: &Layout, st: FolioFlags, nr: u64) -> Slot {
        if cfg.refault == RefaultTest::None {
            return Slot::EMPTY;
        }
        let Some((workingset, eviction)) = P::eviction(self, cfg, l, st, nr) else { return Slot::EMPTY };
        Slot::value(l.pack_with(self.owner, eviction, workingset))
    }
}

impl ResidentPages {
    /// Prepares for a batch that was isolated from the lruvec of `first`, and is of its type.
    pub(crate) fn start_evict_batch(&self, first: Option<FolioId>, target: MemcgId) -> EvictBatch {
        let own = first.map_or(LruvecId(0), |f| self.folios.lruvec(f));
        let t = first.map_or(FILE, |f| self.folios.st(f).type_index());
        by_policy!(self.cfg.kind, P => self.evict_batch::<P>(own, t, target))
    }

    /// The shadow of one folio of a batch, of one page.
    #[inline(always)]
    pub(crate) fn shadow_in(&self, d: &mut EvictBatch, st: FolioFlags) -> Slot {
        by_policy!(self.cfg.kind, P => d.shadow_of::<P>(&self.cfg, &self.layout, st, 1))
    }

    /// Goes on with a batch whose counts were all added, after another folio may have advanced the
    /// clock.
    pub(crate) fn resume_evict_batch(&self, d: &mut EvictBatch) {
        debug_assert_eq!(d.dropped, 0);
        d.age = self.lruvecs[d.clock.index()].nonresident_age;
    }

    /// The shadow of one folio that reclaim on behalf of `target` evicts; advances the clock.
    pub(crate) fn workingset_eviction(&mut self, f: FolioId, target: MemcgId) -> Slot {
        by_policy!(self.cfg.kind, P => self.workingset_eviction_by::<P>(f, target))
    }

    #[inline(always)]
    fn workingset_eviction_by<P: WorkingsetPolicy>(&mut self, f: FolioId, target: MemcgId) -> Slot {
        let st = self.folios.st(f);
        let mut d = self.evict_batch::<P>(self.folios.lruvec(f), st.type_index(), target);
        let shadow = d.shadow_of::<P>(&self.cfg, &self.layout, st, st.nr_pages());
        self.note_evictions::<P>(&mut d, st.nr_pages());
        shadow
    }

    #[inline(always)]
    fn evict_batch<P: WorkingsetPolicy>(&self, own: LruvecId, t: usize, target: MemcgId) -> EvictBatch {
        // Under two lists the group whose pressure evicts stamps the shadow; the other models know
        // only the folio's own.
        let by_target = P::stamps_by_target(self.cfg.refault);
        let clock = if by_target { self.lruvec_of(target, self.lruvecs[own.index()].nid) } else { own };
        let v = &self.lruvecs[clock.index()];
        EvictBatch {
            own,
            t,
            clock,
            owner: self.layout.pack_owner(v.nid, v.memcg),
            age: v.nonresident_age,
            min_seq: self.lruvecs[own.index()].r#gen.min_seq[t],
            evicted: [0; MAX_NR_TIERS],
            dropped: 0,
        }
    }

    /// Advances the clock, and tells the controller which tiers were evicted.
    #[inline]
    fn note_evictions<P: WorkingsetPolicy>(&mut self, d: &mut EvictBatch, nr: u64) {
        let refault = self.cfg.refault;
        if refault != RefaultTest::None && P::clock_advances(refault, d.t) {
            self.age_nonresident(d.clock, nr);
        }
        d.age = self.lruvecs[d.clock.index()].nonresident_age;
        let own = &mut self.lruvecs[d.own.index()];
        for (total, evicted) in own.r#gen.evicted[d.t].iter_mut().zip(std::mem::take(&mut d.evicted)) {
            *total += evicted;
        }
    }
}

impl Memcontrol<'_> {
    /// Drops one folio of the batch.
    #[inline(always)]
    pub(crate) fn evict_clean<W: World>(&mut self, w: &mut W, f: FolioId, st: FolioFlags, d: &mut EvictBatch) {
        debug_assert_eq!((self.pages.folios.lruvec(f), d.t), (d.own, FILE));
        let shadow = by_policy!(self.pages.cfg.kind, P => d.shadow_of::<P>(&self.pages.cfg, &self.pages.layout, st, st.nr_pages()));
        self.evict_leaving(w, f, st, shadow, d);
    }

    /// Drops one folio of the batch, which leaves `shadow`.
    #[inline(always)]
    fn evict_leaving<W: World>(&mut self, w: &mut W, f: FolioId, st: FolioFlags, shadow: Slot, d: &mut EvictBatch) {
        let (page, nr) = (self.pages.folios.page(f), st.nr_pages());
        if self.pages.ext.is_some() {
            self.pages.cache_ext_removed(f, true);
        }
        (page.0 + 1..page.0 + nr as u32).for_each(|p| self.replace_slot(PageId(p), shadow));
        self.note_evicted(page, shadow);
        self.release_evicted(w, f, st, shadow, d);
    }

    /// Gives back the frames of a folio of the batch, which leaves this in its first page's slot.
    #[inline(always)]
    pub(crate) fn release_evicted<W: World>(
        &mut self,
        w: &mut W,
        f: FolioId,
        st: FolioFlags,
        left: Slot,
        d: &mut EvictBatch,
    ) {
        let (page, nr) = (self.pages.folios.page(f), st.nr_pages());
        d.dropped += nr;
        w.effect(Effect::Free { page, order: st.order() });
        if self.frames.nodes.is_limited() {
            self.frames.nodes.give_back(self.pages.folios.zone_of(f), nr);
            self.frames.drop_buffers(page, nr);
        }
        self.pages.folios.evict(f, left);
    }

    /// Drops a whole batch of clean, unmapped file folios of one page each that are on no list.
    pub(crate) fn evict_bulk<W: World>(&mut self, w: &mut W, list: &[FolioId], target: MemcgId) -> ShrinkStat {
        let mut d = self.pages.start_evict_batch(list.first().copied(), target);
        let mut stat = ShrinkStat::default();
        if self.cfg.lru.refault == RefaultTest::None {
            for &f in list {
                let st = self.pages.folios.st(f);
                self.evict_leaving(w, f, st, Slot::EMPTY, &mut d);
            }
        } else {
            if self.pages.ext.is_some() {
                list.iter().for_each(|&f| self.pages.cache_ext_removed(f, true));
            }
            by_policy!(self.pages.cfg.kind, P => self.leave_shadows::<P, W>(w, list, &mut d));
        }
        self.finish_evict_batch(&mut d, &mut stat);
        stat
    }

    /// `evict_clean` for a whole batch of `evict_bulk` that leaves shadows: then
    /// no node goes, and nodes that hold nothing but shadows from now on may be noted at the end.
    #[inline]
    fn leave_shadows<P: WorkingsetPolicy, W: World>(&mut self, w: &mut W, list: &[FolioId], d: &mut EvictBatch) {
        let mut shadows_only = Vec::new();
        let ResidentPages { cfg, layout, folios, space, .. } = &mut *self.pages;
        let fill = &mut space.fill[..];
        // Copies: writes on the way do not change them.
        let (cfg, layout, mut batch) = (*cfg, *layout, *d);
        folios.evict_each(list, |page, st, node| {
            let shadow = batch.shadow_of::<P>(&cfg, &layout, st, 1);
            batch.dropped += 1;
            let fill = &mut fill[node.index()];
            fill.nr_values += 1;
            if fill.is_shadows_only() {
                shadows_only.push(node);
            }
            w.effect(Effect::Free { page, order: 0 });
            shadow
        });
        *d = batch;
        shadows_only.into_iter().for_each(|n| self.pages.relist_node(n, true));
        if self.frames.nodes.is_limited() {
            for &f in list {
                self.frames.nodes.give_back(self.pages.folios.zone_of(f), 1);
                self.frames.drop_buffers(self.pages.folios.page(f), 1);
            }
        }
    }

    /// Accounts for what was dropped since the start or the last call.
    #[inline]
    pub(crate) fn finish_evict_batch(&mut self, d: &mut EvictBatch, stat: &mut ShrinkStat) {
        if d.dropped > 0 {
            self.account_evict_batch(d, stat);
        }
    }

    fn account_evict_batch(&mut self, d: &mut EvictBatch, stat: &mut ShrinkStat) {
        let dropped = std::mem::take(&mut d.dropped);
        stat.reclaimed += dropped;
        by_policy!(self.pages.cfg.kind, P => self.pages.note_evictions::<P>(d, dropped));
        let memcg = self.pages.lruvecs[d.own.index()].memcg;
        self.groups.memcgs.uncharge(memcg, dropped);
        self.pages.count_lruvec(d.own, Counter::Pgfree, dropped);
    }
}
