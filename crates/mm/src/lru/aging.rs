//! Multi-gen aging: new generations, and page-table walks for them.
//!
//! Mechanism: `docs/mechanisms.md#multi-gen-aging`.

use crate::config::lru::Generations;
use crate::folio::flags::FolioFlags;
use crate::folio::mapping::MappingKind;
use crate::ids::{FolioId, LruvecId, PageId};
use crate::lru::lru_list::{ANON, FILE, list_index};
use crate::lru::multi_gen::{MAX_NR_GENS, MIN_NR_GENS, gen_index};
use crate::lru::pages::ResidentPages;
use crate::lru::recency::is_used;
use crate::lru::tier::note_use;
use crate::stat::Counter;
use crate::world::World;

/// Result of the aging test.
pub(crate) struct Aging {
    pub(crate) wanted: bool,
    /// Pages of the types that may be evicted.
    pub(crate) total: u64,
}

/// Page-table entries in a 64-byte cache line: a table is dense with one young entry a line.
const PTES_PER_CACHE_LINE: u64 = 8;

pub(crate) fn is_dense(total: u64, young: u64) -> bool {
    young * PTES_PER_CACHE_LINE >= total
}

impl ResidentPages {
    /// Walks the page tables for `seq` and opens a new generation. False: someone already did.
    pub(crate) fn try_to_inc_max_seq<W: World>(
        &mut self,
        now_ns: u64,
        w: &mut W,
        v: LruvecId,
        seq: u64,
        can_swap: bool,
        force: bool,
    ) -> bool {
        let g = &mut self.lruvecs[v.index()].r#gen;
        if seq <= g.walked_seq {
            return false;
        }
        if self.cfg.lru_gen.leaf_walk {
            g.start_walk();
            self.walk_context = true;
            w.before_walk();
            self.walk_page_tables(w, v, can_swap, force);
        }
        let g = &mut self.lruvecs[v.index()].r#gen;
        g.walked_seq += 1;
        self.inc_max_seq(now_ns, v, seq, can_swap)
    }

    /// Visits the tables that the Bloom filter names and moves young pages to the youngest
    /// generation.
    fn walk_page_tables<W: World>(&mut self, w: &mut W, v: LruvecId, can_swap: bool, force: bool) {
        let memcg = self.lruvecs[v.index()].memcg;
        let seq = self.lruvecs[v.index()].r#gen.max_seq;
        for m in 0..self.space.mappings.len() {
            let mapping = &self.space.mappings[m];
            let used = is_used(self.cfg.advice_recency, mapping.advice);
            let skipped = mapping.kind == MappingKind::Anon && !can_swap || !used;
            if mapping.memcg != memcg || skipped {
                continue;
            }
            for t in mapping.tables.clone() {
                let table = &self.space.tables[t as usize];
                if table.mapped == 0 || !(force || self.lruvecs[v.index()].r#gen.filter(seq).test(t)) {
                    continue;
                }
                self.walk_table(w, v, t);
            }
        }
    }

    fn walk_table<W: World>(&mut self, w: &mut W, v: LruvecId, t: u32) {
        let span = u64::from(self.space.tables[t as usize].span);
        let seq = self.lruvecs[v.index()].r#gen.max_seq;
        let mut young = 0;
        let pages = self.space.table_pages(t);
        for start in pages.clone().step_by(64) {
            let mapped = self.space.mapped_bits(start..pages.end.min(start + 64));
            let mut near_young = w.young_among(PageId(start), mapped);
            while near_young != 0 {
                let page = PageId(start + near_young.trailing_zeros());
                near_young &= near_young - 1;
                let Some(f) = self.folios.slot(page).folio() else { continue };
                if self.are_several_nodes() && self.folios.lruvec(f) != v {
                    // The walk for its own node will see it.
                    continue;
                }
                if w.test_and_clear_young(page) {
                    young += 1;
                    self.promote(v, f, gen_index(seq));
                }
            }
        }
        let g = &mut self.lruvecs[v.index()].r#gen;
        let dense = is_dense(span, young);
        if dense {
            g.filter(seq + 1).insert(t);
        }
        let seen = [span, young, 1, u64::from(dense)];
        (0..4).for_each(|i| g.walk_stats[i] += seen[i]);
        self.work.ptes += span;
        let counters = [Counter::MmLeafTotal, Counter::MmLeafYoung, Counter::MmNonleafFound, Counter::MmNonleafAdded];
        (0..4).for_each(|i| self.count_lruvec(v, counters[i], seen[i]));
    }

    /// Promotes the folio of a young page to the youngest generation. The folio is moved there when
    /// eviction meets it.
    pub(crate) fn promote(&mut self, v: LruvecId, f: FolioId, youngest: usize) {
        let mut st = self.folios.st(f);
        if self.cfg.generations == Generations::Independent {
            return self.promote_again(v, f, youngest);
        }
        let Some(old) = st.generation() else {
            // Isolated: reclaim will see the flag.
            return self.folios.set(f, FolioFlags::REFERENCED);
        };
        st.clear(FolioFlags::REFS_MASK | FolioFlags::REFERENCED | FolioFlags::WORKINGSET);
        st.set_generation(youngest);
        self.folios.put(f, st);
        let (t, nr) = (st.type_index(), st.nr_pages());
        if old != youngest {
            self.gen_update_size(v, t, old, youngest, nr);
        }
    }

    /// `promote` since 6.14: the first use is noted, the next one promotes.
    fn promote_again(&mut self, v: LruvecId, f: FolioId, youngest: usize) {
        let st = self.folios.st(f);
        let mut now = st;
        let again = note_use(&mut now);
        match st.generation() {
            Some(old) if again => {
                now.set_generation(youngest);
                self.folios.put(f, now);
                if old != youngest {
                    self.gen_update_size(v, st.type_index(), old, youngest, st.nr_pages());
                }
            }
            // Isolated: it stays as it is.
            None if again => {}
            _ => self.folios.put(f, now),
        }
    }

    /// Opens generation `seq` + 1, if `seq` is still the youngest.
    pub(crate) fn inc_max_seq(&mut self, now_ns: u64, v: LruvecId, seq: u64, can_swap: bool) -> bool {
        if self.lruvecs[v.index()].r#gen.max_seq != seq {
            return false;
        }
        for t in [FILE, ANON] {
            if self.lruvecs[v.index()].r#gen.nr_gens(t) == MAX_NR_GENS {
                self.inc_min_seq(v, t, can_swap);
            }
        }
        let lruvec = &mut self.lruvecs[v.index()];
        let g = &mut lruvec.r#gen;
        let (prev, next) = (gen_index(seq - 1), gen_index(seq + 1));
        for t in [ANON, FILE] {
            // The second youngest generation becomes inactive; the slot of the new one may hold
            // lagging anon, which becomes active.
            let (leaves, enters) = (g.nr_pages[prev][t], g.nr_pages[next][t]);
            let (inactive, active) = (list_index(t, false), list_index(t, true));
            lruvec.size[inactive] = lruvec.size[inactive] + leaves - enters;
            lruvec.size[active] = lruvec.size[active] + enters - leaves;
            self.node_sizes[lruvec.nid.index()][inactive] =
                self.node_sizes[lruvec.nid.index()][inactive] + leaves - enters;
            self.node_sizes[lruvec.nid.index()][active] = self.node_sizes[lruvec.nid.index()][active] + enters - leaves;
        }
        g.birth_ns[next] = now_ns;
        g.max_seq = seq + 1;
        true
    }

    /// Forces the oldest generation of a type into the next one. Anon that cannot be swapped stays
    /// where it is, which makes it look young when its slot is reused.
    fn inc_min_seq(&mut self, v: LruvecId, t: usize, can_swap: bool) {
        if t == FILE || can_swap {
            let g = &self.lruvecs[v.index()].r#gen;
            let from = gen_index(g.min_seq[t]);
            for (zone, list) in g.lists[from][t].into_iter().enumerate() {
                while let Some(f) = self.folios.links.tail(list) {
                    match self.folios.st(f).generation().filter(|&g| g != from) {
                        None => {
                            if self.cfg.generations == Generations::Independent {
                                let st = self.folios.st(f);
                                self.lruvecs[v.index()].r#gen.note_protected(t, st, self.cfg.generations);
                            }
                            self.move_to_next_generation(v, f, t, true);
                        }
                        Some(promoted) => {
                            let to = self.lruvecs[v.index()].r#gen.lists[promoted][t][zone];
                            self.folios.links.del(f);
                            self.folios.links.add_tail(to, f);
                        }
                    }
                }
            }
        }
        let g = &mut self.lruvecs[v.index()].r#gen;
        g.carry_over(t, self.cfg.generations);
        g.min_seq[t] += 1;
    }

    /// Gives up oldest generations that are empty. With swap, anon may not pass file, and file does
    /// not stay behind anon; since 6.14 neither comes to its last two while the other is further
    /// behind.
    pub(crate) fn try_to_inc_min_seq(&mut self, v: LruvecId, can_swap: bool) -> bool {
        let first = if can_swap { ANON } else { FILE };
        let g = &self.lruvecs[v.index()].r#gen;
        let mut min_seq = g.min_seq;
        for (t, seq) in min_seq.iter_mut().enumerate().skip(first) {
            let is_empty = |seq: u64| g.lists[gen_index(seq)][t].iter().all(|&l| self.folios.links.is_empty(l));
            while *seq + MIN_NR_GENS <= g.max_seq && is_empty(*seq) {
                *seq += 1;
            }
        }
        match self.cfg.generations {
            Generations::Linked if can_swap => {
                min_seq[ANON] = min_seq[ANON].min(min_seq[FILE]);
                min_seq[FILE] = min_seq[ANON].max(g.min_seq[FILE]);
            }
            Generations::Independent if can_swap => {
                let last = g.max_seq - MIN_NR_GENS;
                for (t, other) in [(ANON, FILE), (FILE, ANON)] {
                    if min_seq[t] > last && min_seq[other] < last {
                        min_seq[t] = last.max(g.min_seq[t]);
                    }
                }
            }
            _ => {}
        }
        let g = &mut self.lruvecs[v.index()].r#gen;
        let mut advanced = false;
        for (t, &seq) in min_seq.iter().enumerate().skip(first) {
            if seq != g.min_seq[t] {
                g.carry_over(t, self.cfg.generations);
                g.min_seq[t] = seq;
                advanced = true;
            }
        }
        advanced
    }

    /// Pages of the types that may be evicted, in all generations.
    pub(crate) fn evictable_size(&self, v: LruvecId, swappiness: u32) -> u64 {
        let g = &self.lruvecs[v.index()].r#gen;
        let first = if swappiness > 0 { ANON } else { FILE };
        let of = |t: usize| (g.min_seq[t]..=g.max_seq).map(|seq| g.nr_pages[gen_index(seq)][t]).sum::<u64>();
        (first..=FILE).map(of).sum()
    }

    /// Whether aging is wanted, and how many pages there are to evict.
    pub(crate) fn should_run_aging(&self, v: LruvecId, swappiness: u32) -> Aging {
        let g = &self.lruvecs[v.index()].r#gen;
        let first = if swappiness > 0 { ANON } else { FILE };
        let oldest = g.evictable_min_seq(swappiness > 0);
        if oldest + MIN_NR_GENS > g.max_seq {
            return Aging { wanted: true, total: 0 };
        }
        let (mut young, mut old, mut total) = (0, 0, 0);
        for t in first..=FILE {
            for seq in g.min_seq[t]..=g.max_seq {
                let size = g.nr_pages[gen_index(seq)][t];
                total += size;
                young += size * u64::from(seq == g.max_seq);
                old += size * u64::from(seq + MIN_NR_GENS == g.max_seq);
            }
        }
        let spread = young * MIN_NR_GENS > total || old * (MIN_NR_GENS + 2) < total;
        let asks = spread || self.cfg.generations == Generations::Independent;
        Aging { wanted: oldest + MIN_NR_GENS == g.max_seq && asks, total }
    }
}
