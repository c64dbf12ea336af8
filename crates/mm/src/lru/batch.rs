//! Per-CPU batches: folios on their way to a list, so that lists are not touched for each folio.
//!
//! A folio in the add batch is on no list yet, so an activation finds it only there. A folio in any
//! other batch has its `lru` flag cleared, so reclaim cannot take it.
//!
//! Mechanism: `docs/mechanisms.md#per-cpu-batches`.

use crate::folio::flags::FolioFlags;
use crate::folio::list::Target;
use crate::ids::{FolioId, LruvecId};
use crate::lru::lru_list::{ACTIVE_FILE, INACTIVE_FILE, list_index};
use crate::lru::pages::ResidentPages;
use crate::lru::policy::LruPolicy;
use crate::stat::Counter;

/// Operation of a batch on its folios.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub(crate) enum Batch {
    /// Put new folios on a list.
    Add,
    /// Moves folios whose writeback ended to the tail.
    MoveTail,
    /// Moves folios dropped by `fadvise` to the end of the inactive list.
    DeactivateFile,
    /// Moves folios advised cold to the inactive list.
    Deactivate,
    /// Makes folios advised free count as clean file pages from now on.
    LazyFree,
    /// Moves folios to the active list.
    Activate,
}

/// Order in which a drain goes through the batches.
const DRAIN: [Batch; 6] =
    [Batch::Add, Batch::MoveTail, Batch::DeactivateFile, Batch::Deactivate, Batch::LazyFree, Batch::Activate];

/// The batches of one CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuBatches([Vec<FolioId>; 6]);

impl CpuBatches {
    /// All folios that wait.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = FolioId> + '_ {
        self.0.iter().flatten().copied()
    }
}

impl ResidentPages {
    /// Puts a folio on the active list, or into the youngest generation, by way of a batch.
    pub(crate) fn activate_touched(&mut self, f: FolioId) {
        if self.cfg.one_list {
            return;
        }
        if self.folios.st(f).has(FolioFlags::ADDING) {
            self.folios.set(f, FolioFlags::ACTIVE);
        } else {
            self.batch_add(Batch::Activate, f);
        }
    }

    /// Queues a folio that is on a list. It is claimed by its `lru` flag; nothing happens if
    /// someone else has.
    #[inline]
    pub(crate) fn batch_add(&mut self, kind: Batch, f: FolioId) {
        let st = self.folios.st(f);
        if st.has(FolioFlags::LRU) {
            self.folios.clear(f, FolioFlags::LRU);
            self.batch_push(kind, f, st);
        }
    }

    /// Queues a claimed folio, or a new one. A large folio does not wait.
    #[inline(always)]
    pub(crate) fn batch_push(&mut self, kind: Batch, f: FolioId, st: FolioFlags) {
        let waiting = &mut self.batches[self.cpu].0[kind as usize];
        waiting.push(f);
        if st.order() > 0 || waiting.len() >= self.cfg.batch_folios {
            self.flush_batch(self.cpu, kind);
        }
    }

    /// Flushes all batches of the current CPU. False: there was nothing in them.
    pub(crate) fn drain_batches(&mut self) -> bool {
        self.drain_cpu(self.cpu)
    }

    /// Flushes all batches of every CPU.
    pub(crate) fn drain_all(&mut self) {
        (0..self.batches.len()).for_each(|cpu| _ = self.drain_cpu(cpu));
    }

    #[inline]
    fn drain_cpu(&mut self, cpu: usize) -> bool {
        let any = self.batches[cpu].0.iter().any(|waiting| !waiting.is_empty());
        if any {
            self.drain_waiting(cpu);
        }
        any
    }

    #[inline(never)]
    fn drain_waiting(&mut self, cpu: usize) {
        for kind in DRAIN {
            if !self.batches[cpu].0[kind as usize].is_empty() {
                self.flush_batch(cpu, kind);
            }
        }
    }

    #[inline(never)]
    fn flush_batch(&mut self, cpu: usize, kind: Batch) {
        let mut waiting = std::mem::take(&mut self.batches[cpu].0[kind as usize]);
        match kind {
            Batch::Add => self.flush_added(&waiting),
            Batch::Activate if by_policy!(self.cfg.kind, P => P::ACTIVATES_BY_LIST) => self.flush_activated(&waiting),
            Batch::Activate => self.flush_promoted(&waiting),
            _ => {
                for &f in &waiting {
                    self.apply_batch(kind, f);
                    self.folios.set(f, FolioFlags::LRU);
                }
            }
        }
        waiting.clear();
        self.batches[cpu].0[kind as usize] = waiting;
    }

    fn flush_added(&mut self, waiting: &[FolioId]) {
        if let Some(alike) = self.adds_by_list(waiting) {
            self.add_bulk(alike, waiting);
            return;
        }
        for &f in waiting {
            let mut st = self.folios.st(f);
            st.clear(FolioFlags::ADDING);
            st.set(FolioFlags::LRU);
            self.lruvec_add_as(f, st, false);
        }
    }

    /// Two lists: moves folios from the inactive to the active list of their type.
    fn flush_activated(&mut self, waiting: &[FolioId]) {
        std::hint::black_box(self.folios.links.prefetch_places(waiting));
        const ODD: u32 = FolioFlags::UNEVICTABLE | FolioFlags::ACTIVE | FolioFlags::SWAPBACKED | FolioFlags::LARGE;
        if let Some(own) = self.folios.plain_lruvec(waiting, ODD) {
            return self.activate_files(own, waiting);
        }
        for &f in waiting {
            let mut st = self.folios.st(f);
            if st.has(FolioFlags::UNEVICTABLE | FolioFlags::ACTIVE) {
                self.folios.set(f, FolioFlags::LRU);
                continue;
            }
            let own = self.folios.lruvec(f);
            let v = &mut self.lruvecs[own.index()];
            let (nr, t) = (st.nr_pages(), st.type_index());
            let active = list_index(t, true);
            v.size[list_index(t, false)] -= nr;
            v.size[active] += nr;
            self.node_sizes[v.nid.index()][list_index(t, false)] -= nr;
            self.node_sizes[v.nid.index()][active] += nr;
            let list = v.lists[active];
            self.folios.links.del(f);
            st.set(FolioFlags::ACTIVE | FolioFlags::LRU);
            self.folios.put_on(list, f, st, false);
            self.count_lruvec(own, Counter::Pgactivate, nr);
        }
    }

    /// Generations: moves folios into the generation for active ones.
    fn flush_promoted(&mut self, waiting: &[FolioId]) {
        std::hint::black_box(self.folios.links.prefetch_places(waiting));
        for &f in waiting {
            let mut st = self.folios.st(f);
            let from = st.generation().filter(|_| !st.has(FolioFlags::UNEVICTABLE | FolioFlags::ACTIVE));
            let Some(from) = from else {
                self.apply_batch(Batch::Activate, f);
                self.folios.set(f, FolioFlags::LRU);
                continue;
            };
            let own = self.folios.lruvec(f);
            let v = &mut self.lruvecs[own.index()];
            let (nr, t) = (st.nr_pages(), st.type_index());
            let was = list_index(t, v.r#gen.is_active(from));
            v.r#gen.nr_pages[from][t] -= nr;
            self.folios.links.del(f);
            st.clear(FolioFlags::GEN_MASK);
            st.set(FolioFlags::ACTIVE);
            let (is, list) = by_policy!(self.cfg.kind, P => P::place(v, &self.folios, f, &mut st, false, &self.cfg));
            if is != was {
                v.size[was] -= nr;
                v.size[is] += nr;
                self.node_sizes[v.nid.index()][was] -= nr;
                self.node_sizes[v.nid.index()][is] += nr;
            }
            v.stat.add(Counter::Pgactivate, nr);
            st.set(FolioFlags::LRU);
            self.folios.put_on(list, f, st, false);
        }
    }

    /// Moves file folios of one page each, all of one lruvec, from the inactive to the active list.
    fn activate_files(&mut self, own: LruvecId, folios: &[FolioId]) {
        let v = &mut self.lruvecs[own.index()];
        let nr = folios.len() as u64;
        v.size[INACTIVE_FILE] -= nr;
        v.size[ACTIVE_FILE] += nr;
        self.node_sizes[v.nid.index()][INACTIVE_FILE] -= nr;
        self.node_sizes[v.nid.index()][ACTIVE_FILE] += nr;
        let (from, list) = (v.lists[INACTIVE_FILE], v.lists[ACTIVE_FILE]);
        self.folios.links.del_each(from, folios);
        self.folios.add_each(folios, &[Target::new(list, u32::MAX, FolioFlags::ACTIVE | FolioFlags::LRU)]);
        self.count_lruvec(own, Counter::Pgactivate, nr);
    }

    #[inline]
    fn apply_batch(&mut self, kind: Batch, f: FolioId) {
        let st = self.folios.st(f);
        if st.has(FolioFlags::UNEVICTABLE) {
            return;
        }
        match kind {
            Batch::Add => {}
            Batch::MoveTail => self.rotate(f),
            Batch::Activate if st.has(FolioFlags::ACTIVE) => {}
            Batch::Activate => {
                self.lruvec_del(f, false);
                self.folios.set(f, FolioFlags::ACTIVE);
                self.lruvec_add(f, false);
                self.count(f, Counter::Pgactivate, st.nr_pages());
            }
            Batch::Deactivate => self.deactivate(f),
            Batch::DeactivateFile => self.deactivate_file(f),
            Batch::LazyFree => self.lazy_free(f),
        }
    }

    pub(crate) fn rotate(&mut self, f: FolioId) {
        self.lruvec_del(f, false);
        self.folios.clear(f, FolioFlags::ACTIVE);
        self.lruvec_add(f, true);
        self.count(f, Counter::Pgrotated, self.folios.st(f).nr_pages());
    }

    fn deactivate(&mut self, f: FolioId) {
        if !self.folios.st(f).has(FolioFlags::ACTIVE) && !by_policy!(self.cfg.kind, P => P::INACTIVE_CAN_BE_DEACTIVATED)
        {
            return;
        }
        self.lruvec_del(f, false);
        self.folios.clear(f, FolioFlags::ACTIVE | FolioFlags::REFERENCED);
        self.lruvec_add(f, false);
        self.count(f, Counter::Pgdeactivate, self.folios.st(f).nr_pages());
    }

    fn deactivate_file(&mut self, f: FolioId) {
        let st = self.folios.st(f);
        if st.has(FolioFlags::MAPPED) {
            return;
        }
        self.lruvec_del(f, false);
        self.folios.clear(f, FolioFlags::ACTIVE | FolioFlags::REFERENCED);
        if st.has(FolioFlags::WRITEBACK | FolioFlags::DIRTY) {
            self.lruvec_add(f, false);
            self.folios.set(f, FolioFlags::RECLAIM);
        } else {
            self.lruvec_add(f, true);
            self.count(f, Counter::Pgrotated, st.nr_pages());
        }
        if st.has(FolioFlags::ACTIVE) || by_policy!(self.cfg.kind, P => P::INACTIVE_CAN_BE_DEACTIVATED) {
            self.count(f, Counter::Pgdeactivate, st.nr_pages());
        }
    }

    fn lazy_free(&mut self, f: FolioId) {
        let st = self.folios.st(f);
        if !st.has(FolioFlags::ANON) || !st.has(FolioFlags::SWAPBACKED) || st.has(FolioFlags::SWAPCACHE) {
            return;
        }
        self.lruvec_del(f, false);
        // The content of the folio counts as clean from here on: only a later write keeps it.
        self.folios.clear(f, FolioFlags::ACTIVE | FolioFlags::REFERENCED | FolioFlags::SWAPBACKED | FolioFlags::DIRTY);
        self.lruvec_add(f, false);
        self.count(f, Counter::Pglazyfree, st.nr_pages());
    }
}
