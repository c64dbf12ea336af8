//! Memory that comes and goes while the machine runs, and memory of a group that the engine does
//! not see.

use crate::config::node::{MachineMarks, NodeConfig};
use crate::node::zones::Node;

/// The smallest machine.
pub(crate) const MIN_PAGES: u64 = 64;

impl Node {
    /// Makes its highest zone larger or smaller, the latter as far as frames are free, and sets its
    /// marks anew (zones and watermarks). Returns how many frames are still to go.
    pub(crate) fn resize(&mut self, pages: u64, cfg: &NodeConfig) -> u64 {
        self.drain_pcp();
        let below = self.managed_pages();
        let Some(top) = self.zones.last_mut() else { return 0 };
        let want = pages.saturating_sub(below - top.managed);
        if want > top.managed {
            top.free += want - top.managed;
            top.resize_blocks(want - top.managed, 0);
            top.managed = want;
        }
        let taken = (top.managed - want).min(top.free);
        top.managed -= taken;
        top.free -= taken;
        top.resize_blocks(0, taken);
        let left = top.managed - want;
        let machine = NodeConfig { pages: self.managed_pages(), ..cfg.clone() };
        crate::node::zones::set_watermarks(&mut self.zones, &MachineMarks::new(std::slice::from_ref(&machine)));
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Engine;
    use crate::config::{Config, Policy};
    use crate::ids::MemcgId;

    fn machine(pages: u64, low_zones: [u64; 2]) -> Engine {
        let node = NodeConfig { low_zones, ..NodeConfig::new(pages) };
        Engine::new(Config { node: Some(node), total_pages: pages, ..Config::new(Policy::Lru) }).unwrap()
    }

    #[test]
    fn a_node_that_is_resized_is_as_one_made_so_large() {
        for (from, to) in [(4096, 1024), (1024, 4096), (4096, 4096)] {
            let mut e = machine(from, [0, 0]);
            assert_eq!(e.resize_node(to), Ok(0));
            let zones = |e: &Engine| e.zones().collect::<Vec<_>>();
            assert_eq!(zones(&e), zones(&machine(to, [0, 0])), "{from} to {to}");
            e.validate().unwrap();
        }
    }

    #[test]
    fn what_is_in_use_is_still_to_go() {
        let mut e = machine(4096, [0, 0]);
        assert!(e.set_external_pages(3000));
        assert_eq!((e.resize_node(1000), e.managed_pages(), e.free_pages()), (Ok(2000), 3000, 0));
        assert!(e.set_external_pages(500));
        assert_eq!((e.resize_node(1000), e.managed_pages(), e.free_pages()), (Ok(0), 1000, 500));
        e.validate().unwrap();
    }

    #[test]
    fn machines_that_cannot_be_resized_say_so() {
        assert!(Engine::new(Config::new(Policy::Lru)).unwrap().resize_node(1000).is_err());
        assert!(machine(4096, [0, 0]).resize_node(3).is_err());
    }

    #[test]
    fn external_pages_of_a_group_count_as_its_own() {
        let mut e = machine(4096, [0, 0]);
        let g = e.add_memcg(MemcgId::ROOT, "/g", 100, 0).unwrap();
        for pages in [70, 120, 30, 0] {
            e.set_memcg_external_pages(g, pages).unwrap();
            assert_eq!(e.memcg_usage_pages(g), pages);
            e.validate().unwrap();
        }
        assert!(e.set_memcg_external_pages(MemcgId(9), 1).is_err());
    }
}
