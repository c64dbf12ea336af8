//! Putting folios on lists and taking them off, and what an access does to a folio.

use crate::config::lru::{Clock, Lru};
use crate::folio::list::Target;
use crate::folio::table::State;
use crate::ids::{FolioId, LruvecId, PageId};
use crate::lru::batch::Batch;
use crate::lru::lruvec::{ACTIVE_FILE, ANON, FILE, INACTIVE_FILE, UNEVICTABLE, list_index};
use crate::lru::multi_gen::{MIN_NR_GENS, MultiGen, gen_index};
use crate::lru::pages::Pages;

/// What a folio loses that enters the youngest generation.
const LOST_BY_BIRTH: u32 = State::REFS_MASK | State::REFERENCED | State::ACTIVE;

/// 4.2: the index of the generation that a folio is born into, first match wins.
#[inline]
fn birth_generation(g: &MultiGen, st: State, reclaiming: bool) -> usize {
    let t = st.type_index();
    let fresh_anon = t == ANON && !st.has(State::SWAPCACHE);
    let pending = st.has(State::RECLAIM) && st.has(State::DIRTY | State::WRITEBACK);
    let seq = if st.has(State::ACTIVE) {
        g.max_seq
    } else if fresh_anon || pending {
        g.max_seq - 1
    } else if reclaiming || g.min_seq[t] + MIN_NR_GENS >= g.max_seq {
        g.min_seq[t]
    } else {
        g.min_seq[t] + 1
    };
    gen_index(seq)
}

impl Pages {
    /// A new folio, whose frames were noted, waits in the add batch; under multi-gen LRU a faulted one starts in the youngest generation.
    #[inline(always)]
    pub(crate) fn add_folio(&mut self, page: PageId, st: State, in_fault: bool) -> FolioId {
        let st = self.state_of_new(st, in_fault);
        let f = self.folios.alloc(page, st);
        self.batch_push(Batch::Add, f, st);
        f
    }

    #[inline]
    pub(crate) fn state_of_new(&self, mut st: State, in_fault: bool) -> State {
        if in_fault && self.is_multi_gen() {
            st.set(State::ACTIVE);
        }
        st.set(State::ADDING);
        st
    }

    #[inline(always)]
    pub(crate) fn is_multi_gen(&self) -> bool {
        self.cfg.kind == Lru::MultiGen
    }

    /// Puts a folio on the list that its flags ask for: at the tail if `reclaiming` (rotated after writeback).
    #[inline]
    pub(crate) fn lruvec_add(&mut self, f: FolioId, reclaiming: bool) {
        self.lruvec_add_as(f, self.folios.st(f), reclaiming);
    }

    /// As [`Engine::lruvec_add`], for a folio whose flags are to be `st`.
    #[inline(always)]
    pub(crate) fn lruvec_add_as(&mut self, f: FolioId, mut st: State, reclaiming: bool) {
        let v = &mut self.lruvecs[self.folios.lruvec(f).index()];
        let nr = st.nr_pages();
        let (l, list) = if st.has(State::UNEVICTABLE) {
            (UNEVICTABLE, v.lists[UNEVICTABLE])
        } else if self.cfg.kind == Lru::MultiGen {
            let t = st.type_index();
            let i = birth_generation(&v.r#gen, st, reclaiming);
            if st.has(State::ACTIVE) {
                // `workingset` stays: pressure accounting needs it.
                st.clear(LOST_BY_BIRTH);
            }
            st.set_generation(i);
            v.r#gen.nr_pages[i][t] += nr;
            (list_index(t, v.r#gen.is_active(i)), v.r#gen.lists[i][t][self.folios.zone_list(f)])
        } else {
            if self.cfg.one_list {
                st.clear(State::ACTIVE);
            }
            let l = list_index(st.type_index(), st.has(State::ACTIVE));
            (l, v.lists[l])
        };
        v.size[l] += nr;
        self.node_sizes[v.nid.index()][l] += nr;
        self.folios.put_on(list, f, st, reclaiming);
    }

    /// Puts new file folios of one page each, all of one lruvec, on their lists: [`Engine::lruvec_add_as`] for many at once.
    pub(crate) fn add_new_files(&mut self, own: LruvecId, folios: &[FolioId]) {
        let all = folios.len() as u64;
        let v = &mut self.lruvecs[own.index()];
        let mut sizes = [(INACTIVE_FILE, all), (ACTIVE_FILE, 0)];
        if self.cfg.kind == Lru::MultiGen {
            let births = [0, State::ACTIVE].map(|active| {
                let i = birth_generation(&v.r#gen, State(active), false);
                let mut born = State(State::LRU);
                born.set_generation(i);
                let lost = if active == 0 { 0 } else { LOST_BY_BIRTH };
                (i, Target::new(v.r#gen.lists[i][FILE][0], !(State::ADDING | lost), born.0))
            });
            let active = self.folios.add_each(folios, &births.map(|b| b.1));
            for (n, (i, nr)) in [(births[0].0, all - active), (births[1].0, active)].into_iter().enumerate() {
                v.r#gen.nr_pages[i][FILE] += nr;
                sizes[n] = (list_index(FILE, v.r#gen.is_active(i)), nr);
            }
        } else if self.cfg.one_list {
            let to = Target::new(v.lists[INACTIVE_FILE], !(State::ADDING | State::ACTIVE), State::LRU);
            self.folios.add_each(folios, &[to]);
        } else {
            let to = [INACTIVE_FILE, ACTIVE_FILE].map(|l| Target::new(v.lists[l], !State::ADDING, State::LRU));
            let active = self.folios.add_each(folios, &to);
            sizes = [(INACTIVE_FILE, all - active), (ACTIVE_FILE, active)];
        }
        for (l, nr) in sizes {
            v.size[l] += nr;
            self.node_sizes[v.nid.index()][l] += nr;
        }
    }

    /// So many pages more, or fewer, are on a list.
    pub(crate) fn resize_list(&mut self, v: LruvecId, l: usize, nr: i64) {
        let v = &mut self.lruvecs[v.index()];
        for size in [&mut v.size[l], &mut self.node_sizes[v.nid.index()][l]] {
            *size = size.checked_add_signed(nr).expect("a list never holds less than nothing");
        }
    }

    /// Takes a folio off its list. Under multi-gen LRU a folio that does not leave for reclaim stays known as active
    /// if its generation was one of the two youngest.
    #[inline]
    pub(crate) fn lruvec_del(&mut self, f: FolioId, reclaiming: bool) {
        let st = self.folios.st(f);
        let v = &mut self.lruvecs[self.folios.lruvec(f).index()];
        let nr = st.nr_pages();
        self.folios.links.del(f);
        if st.has(State::UNEVICTABLE) {
            v.size[UNEVICTABLE] -= nr;
            self.node_sizes[v.nid.index()][UNEVICTABLE] -= nr;
            return;
        }
        let t = st.type_index();
        match st.generation() {
            None => {
                let l = list_index(t, st.has(State::ACTIVE));
                v.size[l] -= nr;
                self.node_sizes[v.nid.index()][l] -= nr;
            }
            Some(i) => {
                let active = v.r#gen.is_active(i);
                v.r#gen.nr_pages[i][t] -= nr;
                v.size[list_index(t, active)] -= nr;
                self.node_sizes[v.nid.index()][list_index(t, active)] -= nr;
                let mut new = st;
                new.clear(State::GEN_MASK);
                if active && !reclaiming {
                    new.set(State::ACTIVE);
                }
                self.folios.put(f, new);
            }
        }
    }

    /// Moves the accounting (not the folio) from one generation to another.
    pub(crate) fn gen_update_size(&mut self, v: LruvecId, t: usize, from: usize, to: usize, nr: u64) {
        let v = &mut self.lruvecs[v.index()];
        v.r#gen.nr_pages[from][t] -= nr;
        v.r#gen.nr_pages[to][t] += nr;
        let (was, is) = (v.r#gen.is_active(from), v.r#gen.is_active(to));
        if was != is {
            v.size[list_index(t, was)] -= nr;
            v.size[list_index(t, is)] += nr;
            self.node_sizes[v.nid.index()][list_index(t, was)] -= nr;
            self.node_sizes[v.nid.index()][list_index(t, is)] += nr;
        }
    }

    /// An access by file descriptor (2.2, 4.3).
    #[inline]
    pub(crate) fn mark_accessed(&mut self, f: FolioId) {
        match self.cfg.kind {
            Lru::MultiGen => self.inc_refs(f),
            Lru::TwoList => self.mark_accessed_two_list(f),
        }
    }

    pub(crate) fn inc_refs(&mut self, f: FolioId) {
        let mut st = self.folios.st(f);
        st.inc_refs();
        self.folios.put(f, st);
    }

    #[inline]
    fn mark_accessed_two_list(&mut self, f: FolioId) {
        let st = self.folios.st(f);
        if !st.has(State::REFERENCED) {
            self.folios.set(f, State::REFERENCED);
        } else if !st.has(State::ACTIVE | State::UNEVICTABLE) && !self.cfg.one_list {
            self.activate_accessed(f);
        }
    }

    /// Second access to an inactive folio.
    fn activate_accessed(&mut self, f: FolioId) {
        let st = self.folios.st(f);
        let mut now = st;
        now.clear(State::LRU | State::REFERENCED);
        if st.has(State::ADDING) {
            // It will be moved to the active list when its batch is drained.
            now.set(State::ACTIVE);
        }
        self.folios.put(f, now);
        if self.cfg.clock == Clock::EvictionsAndActivations {
            self.age_nonresident(self.folios.lruvec(f), st.nr_pages());
        }
        if st.has(State::LRU) {
            self.batch_push(Batch::Activate, f, st);
        }
    }

    /// Advances the clock of non-resident pages, here and in all ancestors.
    #[inline]
    pub(crate) fn age_nonresident(&mut self, v: LruvecId, nr: u64) {
        let mut at = Some(v);
        while let Some(v) = at {
            let v = &mut self.lruvecs[v.index()];
            v.nonresident_age += nr;
            at = v.parent;
        }
    }
}
