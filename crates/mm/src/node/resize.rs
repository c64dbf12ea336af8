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
        // All is computed anew.
        top.init = 0;
        let machine = NodeConfig { pages: self.managed_pages(), init_pages: 0, ..cfg.clone() };
        self.set_marks(&MachineMarks::new(std::slice::from_ref(&machine)));
        left
    }

    /// Its marks and reserves anew: all that boot gave back late is counted by now.
    pub(crate) fn set_marks(&mut self, machine: &MachineMarks) {
        self.zones.iter_mut().for_each(|zone| zone.init = 0);
        self.min_free_pages = machine.min_pages;
        crate::node::zones::set_watermarks(&mut self.zones, machine);
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

    /// As `/proc/zoneinfo` shows a guest of 256 MiB with 6.12, and one of 512 MiB: of memory some
    /// came after that was computed.
    #[test]
    fn what_boot_gives_back_late_is_in_no_mark_and_no_reserve() {
        let low_zones = [3840, NodeConfig::PC_ZONES[1]];
        let of = |pages, init_pages, kbytes| {
            let cfg = NodeConfig { init_pages, low_zones, min_free_kbytes: kbytes, ..NodeConfig::new(pages) };
            Node::new(&cfg, &MachineMarks::new(std::slice::from_ref(&cfg)), false, 1)
        };
        let marks = |n: &Node| n.zones.iter().map(|z| (z.marks.min, z.marks.low, z.marks.high)).collect::<Vec<_>>();
        let mut small = of(54_584, 2201, Some(1831));
        assert_eq!((marks(&small), small.zones[0].reserve), (vec![(33, 41, 49), (423, 528, 633)], 189));
        let of_512 = of(119_000, 2207, None);
        assert_eq!((marks(&of_512), of_512.zones[0].reserve), (vec![(22, 27, 32), (660, 825, 990)], 441));
        let cfg = NodeConfig { low_zones, init_pages: 2201, min_free_kbytes: Some(1831), ..NodeConfig::new(54_584) };
        small.resize(54_584, &cfg);
        assert_eq!((marks(&small), small.zones[0].reserve), (vec![(32, 40, 48), (424, 530, 636)], 198));
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
