//! The lists of a removed memcg go to its parent, list by list and generation by generation.
//!
//! Mechanism: `docs/mechanisms.md#removing-a-memcg`.

use crate::folio::list::List;
use crate::ids::{FolioId, LruvecId};
use crate::lru::lru_list::{ANON, FILE, list_index};
use crate::lru::multi_gen::MAX_NR_GENS;
use crate::lru::pages::ResidentPages;

impl ResidentPages {
    /// Opens generations, without a walk of the page tables, until both types have all of them:
    /// then every generation of a child has one of the same index here.
    pub(crate) fn open_all_generations(&mut self, now_ns: u64, v: LruvecId, can_swap: bool) {
        for t in [ANON, FILE] {
            while self.lruvecs[v.index()].r#gen.nr_gens(t) < MAX_NR_GENS {
                let g = &mut self.lruvecs[v.index()].r#gen;
                let seq = g.max_seq;
                // As after a walk, for the next one to be due at the new generation.
                g.walked_seq = g.walked_seq.max(seq);
                self.inc_max_seq(now_ns, v, seq, can_swap);
            }
        }
    }

    /// Takes all folios off the lists of `child` and moves its sizes to `parent`, an lruvec of the
    /// same node. Returns the parent's list for each folio. Put at the tails in this order, folios
    /// of the child are reclaimed before folios of the parent, in their old order.
    pub(crate) fn take_for_parent(&mut self, child: LruvecId, parent: LruvecId) -> Vec<(List, FolioId)> {
        let mut moves = Vec::new();
        let [from, to] = [child, parent].map(|v| &self.lruvecs[v.index()]);
        for (&from, &to) in from.lists.iter().zip(&to.lists) {
            let folios: Vec<_> = self.folios.links.oldest_first(from).collect();
            moves.extend(folios.into_iter().rev().map(|f| (to, f)));
        }
        let generations = from.r#gen.lists.iter().flat_map(|types| types.iter().enumerate());
        for (t, zones) in generations {
            for (zone, &list) in zones.iter().enumerate() {
                let folios: Vec<_> = self.folios.links.oldest_first(list).collect();
                moves.extend(folios.into_iter().rev().filter_map(|f| {
                    // A folio that was promoted and not moved yet goes to the list of its
                    // generation: on the list of another index it could end up behind that.
                    let own = self.folios.st(f).generation()?;
                    Some((to.r#gen.lists[own][t][zone], f))
                }));
            }
        }
        moves.iter().for_each(|&(_, f)| self.folios.links.del(f));
        self.move_sizes(child, parent);
        moves
    }

    /// Moves sizes, by list and by generation. An index may be active in one lruvec and inactive in
    /// the other.
    fn move_sizes(&mut self, child: LruvecId, parent: LruvecId) {
        let own = &mut self.lruvecs[child.index()];
        let (nid, left, cost) = (own.nid, std::mem::take(&mut own.size), std::mem::take(&mut own.cost));
        let nr_pages = std::mem::take(&mut own.r#gen.nr_pages);
        let was_active: [bool; MAX_NR_GENS as usize] = std::array::from_fn(|i| own.r#gen.is_active(i));
        let above = &mut self.lruvecs[parent.index()];
        let mut come = left;
        for (i, of_types) in nr_pages.into_iter().enumerate() {
            for (t, nr) in of_types.into_iter().enumerate() {
                above.r#gen.nr_pages[i][t] += nr;
                come[list_index(t, was_active[i])] -= nr;
                come[list_index(t, above.r#gen.is_active(i))] += nr;
            }
        }
        for l in 0..come.len() {
            above.size[l] += come[l];
            let on_node = &mut self.node_sizes[nid.index()][l];
            *on_node = *on_node + come[l] - left[l];
        }
        (0..2).for_each(|t| above.cost[t] += cost[t]);
    }
}
