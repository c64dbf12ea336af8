//! Checks of the lists, for tests.

use crate::config::lru::{Generations, RefaultTest};
use crate::folio::flags::FolioFlags;
use crate::folio::list::List;
use crate::ids::FolioId;
use crate::lru::lru_list::{ANON, FILE, list_index};
use crate::lru::multi_gen::gen_index;
use crate::lru::pages::ResidentPages;

impl ResidentPages {
    /// Walks one list: flags of its folios, and their pages in total.
    pub(crate) fn walk_list(
        &self,
        list: List,
        on_list: &mut [u8],
        mut check: impl FnMut(FolioId, FolioFlags) -> Result<(), String>,
    ) -> Result<(), String> {
        self.folios.links.validate(list)?;
        for f in self.folios.links.oldest_first(list) {
            on_list[f.index()] += 1;
            check(f, self.folios.st(f)).map_err(|e| format!("{f:?} ({:?}): {e}", self.folios.st(f)))?;
        }
        Ok(())
    }

    /// Generations: sizes are what their lists hold, and folios stand where they may.
    pub(crate) fn validate_generations(
        &self,
        swap_in: bool,
        v: usize,
        on_list: &mut [u8],
        size: &mut [u64; 5],
    ) -> Result<(), String> {
        let g = &self.lruvecs[v].r#gen;
        g.validate(self.cfg.generations)?;
        let over = |t: usize| (0..4).any(|k| g.refaulted[t][k] > g.evicted[t][k]);
        // With few bits a generation that is long gone looks like the oldest one.
        let exact = self.layout.eviction_bits >= 32 && self.cfg.refault == RefaultTest::Mainline;
        // Since 6.14 a refault counts in the generation that is the oldest when it comes back.
        let exact = exact && self.cfg.generations == Generations::Linked;
        // A large folio that comes back as a whole has the shadow of one of its pages, though the
        // others may have gone with others.
        let exact = exact && !swap_in && self.space.mappings.iter().all(|m| m.max_order == 0);
        if exact && (over(ANON) || over(FILE)) {
            return Err(format!("lruvec {v}: refaulted {:?} of {:?} evicted (I4.4)", g.refaulted, g.evicted));
        }
        let mut nr_pages = [[0u64; 2]; 4];
        for (at, lists) in g.lists.iter().enumerate() {
            for (t, zone, &list) in
                lists.iter().enumerate().flat_map(|(t, l)| l.iter().enumerate().map(move |(z, l)| (t, z, l)))
            {
                self.walk_list(list, on_list, |f, st| {
                    let i = st.generation().ok_or("no generation")?;
                    nr_pages[i][t] += st.nr_pages();
                    size[list_index(t, g.is_active(i))] += st.nr_pages();
                    // A promoted folio stays on its old list until eviction meets it, but never on
                    // a younger one.
                    let seq = |i: usize| (g.min_seq[t]..=g.max_seq).find(|&s| gen_index(s) == i);
                    let order = t == ANON || seq(at) <= seq(i);
                    let here = self.folios.zone_list(f) == zone;
                    let ok = here && st.type_index() == t && order && self.folios.lruvec(f).index() == v;
                    ok.then_some(()).ok_or(format!("on the list of generation {at} type {t}"))
                })?;
            }
        }
        if nr_pages != g.nr_pages {
            return Err(format!("lruvec {v}: generations {:?}, lists hold {nr_pages:?}", g.nr_pages));
        }
        for t in [ANON, FILE] {
            let live: Vec<_> = (g.min_seq[t]..=g.max_seq).map(gen_index).collect();
            let gone = (0..4).filter(|i| !live.contains(i)).map(|i| nr_pages[i][t]).sum::<u64>();
            // Anon that could not be swapped may be left behind and reappears when its slot is
            // reused.
            if gone > 0 && t == FILE {
                return Err(format!("lruvec {v}: {gone} pages in generations that are gone"));
            }
        }
        Ok(())
    }
}
