//! Pages that reclaim looks at next: for drivers that ask about accessed bits by system calls, and
//! would rather make these beforehand.

use crate::folio::flags::FolioFlags;
use crate::ids::ANY_ZONE;
use crate::ids::{MemcgId, NodeId, PageId};
use crate::lru::pages::ResidentPages;
use crate::lru::policy::LruPolicy;
use crate::node::frames::Frames;

/// Most folios that are looked at for each one found: folios that a walk promoted still lie between
/// the others.
const LOOKS_EACH: usize = 4;

impl ResidentPages {
    /// Adds mapped anonymous pages of a memcg that the next pass of kswapd asks about.
    pub(crate) fn peek_reclaim_candidates(
        &self,
        frames: &Frames,
        memcg: MemcgId,
        most: usize,
        pages: &mut Vec<PageId>,
    ) {
        let node = NodeId::default();
        if frames.nodes.get(node).is_balanced(ANY_ZONE) {
            return;
        }
        let v = &self.lruvecs[self.lruvec_of(memcg, node).index()];
        let by_zone = by_policy!(self.cfg.kind, P => P::LISTS_BY_ZONE);
        let zones = if by_zone { frames.nodes.get(node).zone_lists() } else { 1 };
        let oldest = |zone: usize| by_policy!(self.cfg.kind, P => P::oldest_anon(v, zone));
        let folios = (0..zones).rev().flat_map(|zone| {
            let (list, is_oldest) = oldest(zone);
            self.folios.links.oldest_first(list).map(move |f| (f, is_oldest))
        });
        let asked = folios.take(most.saturating_mul(LOOKS_EACH)).filter(|&(f, is_oldest)| {
            let st = self.folios.st(f);
            st.has(FolioFlags::MAPPED) && is_oldest(v, st)
        });
        for (f, _) in asked.take(most) {
            pages.extend(self.pages_of(f).map(PageId));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Ack, Config, Effect, Engine, KswapdStep, MappingKind, MemcgId, NodeConfig, PageId, Policy, Touch, World,
    };

    #[derive(Default)]
    struct Asked {
        pages: Vec<PageId>,
        awake: bool,
    }

    impl World for Asked {
        fn effect(&mut self, effect: Effect) -> Ack {
            if let Effect::WakeKswapd { .. } = effect {
                self.awake = true;
                return Ack::Pending;
            }
            Ack::Done
        }

        fn test_and_clear_young(&mut self, _: PageId) -> bool {
            false
        }

        fn test_and_clear_young_count(&mut self, page: PageId) -> u32 {
            self.pages.push(page);
            0
        }

        fn test_and_clear_dirty(&mut self, _: PageId) -> bool {
            true
        }
    }

    #[test]
    fn what_is_foreseen_is_asked_about_in_that_order() {
        for policy in [Policy::Mglru, Policy::Lru] {
            let mut cfg = Config::new(policy);
            cfg.node = Some(NodeConfig { low_zones: [0, 0], ..NodeConfig::new(4096) });
            (cfg.total_pages, cfg.swap.pages) = (4096, 8192);
            let mut engine = Engine::new(cfg).unwrap();
            let group = engine.add_memcg(MemcgId::ROOT, "/a", u64::MAX, u64::MAX).unwrap();
            let (_, first) = engine.add_mapping(MappingKind::Anon, group, 0..8192).unwrap();
            let mut w = Asked::default();
            let (mut steps, mut right) = (0, 0);
            for page in (0..8192).map(|p| PageId(first.0 + p)) {
                engine.access(&mut w, page, Touch::MapWrite);
                while w.awake {
                    let mut foreseen = Vec::new();
                    engine.peek_reclaim_candidates(group, 16, &mut foreseen);
                    w.pages.clear();
                    w.awake = engine.kswapd_step(&mut w) == KswapdStep::Again;
                    let n = foreseen.len().min(w.pages.len());
                    steps += usize::from(n == 16);
                    right += usize::from(n == 16 && foreseen[..] == w.pages[..n]);
                }
            }
            // Now and then a generation ends, or another list is aged first.
            assert!(steps > 8 && right * 10 >= steps * 9, "{policy:?}: {right} of {steps}");
        }
    }
}
