//! Multi-gen aging (4.5): new generations, page-table walks, look-around.

use crate::engine::Engine;
use crate::folio::mapping::MappingKind;
use crate::folio::table::State;
use crate::ids::{FolioId, LruvecId, PageId};
use crate::lru::lruvec::{ANON, FILE, list_index};
use crate::lru::multi_gen::{MAX_NR_GENS, MIN_LRU_BATCH, MIN_NR_GENS, gen_index};
use crate::stat::Counter;
use crate::world::World;

/// Page-table entries in a 64-byte cache line: a table is dense with one young entry a line.
const PTES_PER_CACHE_LINE: u64 = 8;

fn is_dense(total: u64, young: u64) -> bool {
    young * PTES_PER_CACHE_LINE >= total
}

impl Engine {
    /// Walks the page tables for `seq` and opens a new generation. False: someone already did.
    pub(crate) fn try_to_inc_max_seq<W: World>(
        &mut self,
        w: &mut W,
        v: LruvecId,
        seq: u64,
        can_swap: bool,
        force: bool,
    ) -> bool {
        let g = &mut self.pages.lruvecs[v.index()].r#gen;
        if seq <= g.walked_seq {
            return false;
        }
        if self.cfg.lru_gen.leaf_walk {
            g.start_walk();
            self.pages.walk_context = true;
            w.before_walk();
            self.walk_page_tables(w, v, can_swap, force);
        }
        let g = &mut self.pages.lruvecs[v.index()].r#gen;
        g.walked_seq += 1;
        self.inc_max_seq(v, seq, can_swap)
    }

    /// Visits the tables that the Bloom filter names and moves young pages to the youngest generation.
    fn walk_page_tables<W: World>(&mut self, w: &mut W, v: LruvecId, can_swap: bool, force: bool) {
        let memcg = self.pages.lruvecs[v.index()].memcg;
        let seq = self.pages.lruvecs[v.index()].r#gen.max_seq;
        for m in 0..self.pages.space.mappings.len() {
            let mapping = &self.pages.space.mappings[m];
            let skipped = mapping.kind == MappingKind::Anon && !can_swap;
            if mapping.memcg != memcg || skipped {
                continue;
            }
            for t in mapping.tables.clone() {
                let table = &self.pages.space.tables[t as usize];
                if table.mapped == 0 || !(force || self.pages.lruvecs[v.index()].r#gen.filter(seq).test(t)) {
                    continue;
                }
                self.walk_table(w, v, t);
            }
        }
    }

    fn walk_table<W: World>(&mut self, w: &mut W, v: LruvecId, t: u32) {
        let span = u64::from(self.pages.space.tables[t as usize].span);
        let seq = self.pages.lruvecs[v.index()].r#gen.max_seq;
        let mut young = 0;
        for page in self.pages.space.mapped_in(self.pages.space.table_pages(t)) {
            if !w.may_be_young(page) {
                continue;
            }
            let Some(f) = self.pages.folios.slot(page).folio() else { continue };
            if self.frames.nodes.are_several() && self.pages.folios.lruvec(f) != v {
                // The walk for its own node will see it.
                continue;
            }
            if w.test_and_clear_young(page) {
                young += 1;
                self.promote(v, f, gen_index(seq));
            }
        }
        let g = &mut self.pages.lruvecs[v.index()].r#gen;
        let dense = is_dense(span, young);
        if dense {
            g.filter(seq + 1).insert(t);
        }
        let seen = [span, young, 1, u64::from(dense)];
        (0..4).for_each(|i| g.walk_stats[i] += seen[i]);
        self.pages.work.ptes += span;
        let counters = [Counter::MmLeafTotal, Counter::MmLeafYoung, Counter::MmNonleafFound, Counter::MmNonleafAdded];
        (0..4).for_each(|i| self.count_lruvec(v, counters[i], seen[i]));
    }

    /// A young page: its folio belongs to the youngest generation. It moves there when eviction meets it.
    fn promote(&mut self, v: LruvecId, f: FolioId, youngest: usize) {
        let mut st = self.pages.folios.st(f);
        let Some(old) = st.generation() else {
            // Isolated: reclaim will see the flag.
            return self.pages.folios.set(f, State::REFERENCED);
        };
        st.clear(State::REFS_MASK | State::REFERENCED | State::WORKINGSET);
        st.set_generation(youngest);
        self.pages.folios.put(f, st);
        let (t, nr) = (st.type_index(), st.nr_pages());
        if old != youngest {
            self.gen_update_size(v, t, old, youngest, nr);
        }
    }

    /// Reclaim found the page young: up to 64 entries around it are looked at, too.
    pub(crate) fn look_around<W: World>(&mut self, w: &mut W, page: PageId) {
        let t = self.table_of(page);
        let (from, to) = self.look_around_window(page);
        let Some(v) = self.pages.folios.slot(page).folio().map(|f| self.pages.folios.lruvec(f)) else { return };
        let seq = self.pages.lruvecs[v.index()].r#gen.max_seq;
        let mut young = 1;
        for near in self.pages.space.mapped_in(self.pages.space.around(
            page,
            self.pages.folios.node_of(page),
            MIN_LRU_BATCH as u32,
        )) {
            if !w.may_be_young(near) {
                continue;
            }
            let inside = (from..to).contains(&self.page_index(near));
            let Some(f) = self.pages.folios.slot(near).folio().filter(|&f| inside && self.pages.folios.lruvec(f) == v)
            else {
                continue;
            };
            if !w.test_and_clear_young(near) {
                continue;
            }
            young += 1;
            if self.pages.walk_context {
                self.promote(v, f, gen_index(seq));
            } else {
                self.activate_around(f, gen_index(seq));
            }
        }
        if is_dense(to - from, young) {
            self.pages.lruvecs[v.index()].r#gen.filter(seq).insert(t as u32);
        }
    }

    /// Without a walk context promotion goes through the activate batch.
    fn activate_around(&mut self, f: FolioId, youngest: usize) {
        let st = self.pages.folios.st(f);
        match st.generation() {
            None => self.pages.folios.set(f, State::REFERENCED),
            Some(g) if g == youngest => {}
            Some(_) => {
                self.pages.folios.clear(f, State::REFS_MASK | State::REFERENCED | State::WORKINGSET);
                if !st.has(State::ACTIVE) {
                    self.batch_add(crate::lru::batch::Batch::Activate, f);
                }
            }
        }
    }

    /// 64 entries around the page, inside its table and mapping: centred, or shifted at the edges.
    fn look_around_window(&self, page: PageId) -> (u64, u64) {
        let index = self.page_index(page);
        let m = &self.pages.space.mappings[self.pages.space.mapping_of(page).index()];
        let start = (index & !511).max(m.min_index);
        let end = ((index & !511) + 512).min(m.max_index + 1);
        let half = MIN_LRU_BATCH / 2;
        if end - start <= MIN_LRU_BATCH {
            (start, end)
        } else if index - start < half {
            (start, start + MIN_LRU_BATCH)
        } else if end - index < half {
            (end - MIN_LRU_BATCH, end)
        } else {
            (index - half, index + half)
        }
    }

    /// Opens generation `seq` + 1, if `seq` is still the youngest.
    fn inc_max_seq(&mut self, v: LruvecId, seq: u64, can_swap: bool) -> bool {
        if self.pages.lruvecs[v.index()].r#gen.max_seq != seq {
            return false;
        }
        for t in [FILE, ANON] {
            if self.pages.lruvecs[v.index()].r#gen.nr_gens(t) == MAX_NR_GENS {
                self.inc_min_seq(v, t, can_swap);
            }
        }
        let now_ns = self.clock.now_ns;
        let lruvec = &mut self.pages.lruvecs[v.index()];
        let g = &mut lruvec.r#gen;
        let (prev, next) = (gen_index(seq - 1), gen_index(seq + 1));
        for t in [ANON, FILE] {
            // What was the second youngest becomes inactive; the slot of the new one may hold lagging anon, which becomes active.
            let (leaves, enters) = (g.nr_pages[prev][t], g.nr_pages[next][t]);
            let (inactive, active) = (list_index(t, false), list_index(t, true));
            lruvec.size[inactive] = lruvec.size[inactive] + leaves - enters;
            lruvec.size[active] = lruvec.size[active] + enters - leaves;
            self.frames.nodes.size(lruvec.nid)[inactive] =
                self.frames.nodes.size(lruvec.nid)[inactive] + leaves - enters;
            self.frames.nodes.size(lruvec.nid)[active] = self.frames.nodes.size(lruvec.nid)[active] + enters - leaves;
        }
        g.birth_ns[next] = now_ns;
        g.max_seq = seq + 1;
        true
    }

    /// Forces the oldest generation of a type into the next one. Anon that cannot be swapped stays where it is, which
    /// makes it look young when its slot is reused.
    fn inc_min_seq(&mut self, v: LruvecId, t: usize, can_swap: bool) {
        if t == FILE || can_swap {
            let g = &self.pages.lruvecs[v.index()].r#gen;
            let from = gen_index(g.min_seq[t]);
            for (zone, list) in g.lists[from][t].into_iter().enumerate() {
                while let Some(f) = self.pages.folios.links.tail(list) {
                    match self.pages.folios.st(f).generation().filter(|&g| g != from) {
                        None => self.move_to_next_generation(v, f, t, true),
                        Some(promoted) => {
                            let to = self.pages.lruvecs[v.index()].r#gen.lists[promoted][t][zone];
                            self.pages.folios.links.del(f);
                            self.pages.folios.links.add_tail(to, f);
                        }
                    }
                }
            }
        }
        let g = &mut self.pages.lruvecs[v.index()].r#gen;
        g.carry_over(t);
        g.min_seq[t] += 1;
    }

    /// Gives up oldest generations that are empty. With swap, anon may not pass file, and file does not stay behind anon.
    pub(crate) fn try_to_inc_min_seq(&mut self, v: LruvecId, can_swap: bool) -> bool {
        let first = if can_swap { ANON } else { FILE };
        let g = &self.pages.lruvecs[v.index()].r#gen;
        let mut min_seq = g.min_seq;
        for (t, seq) in min_seq.iter_mut().enumerate().skip(first) {
            let is_empty = |seq: u64| g.lists[gen_index(seq)][t].iter().all(|&l| self.pages.folios.links.is_empty(l));
            while *seq + MIN_NR_GENS <= g.max_seq && is_empty(*seq) {
                *seq += 1;
            }
        }
        if can_swap {
            min_seq[ANON] = min_seq[ANON].min(min_seq[FILE]);
            min_seq[FILE] = min_seq[ANON].max(g.min_seq[FILE]);
        }
        let g = &mut self.pages.lruvecs[v.index()].r#gen;
        let mut advanced = false;
        for (t, &seq) in min_seq.iter().enumerate().skip(first) {
            if seq != g.min_seq[t] {
                g.carry_over(t);
                g.min_seq[t] = seq;
                advanced = true;
            }
        }
        advanced
    }
}
