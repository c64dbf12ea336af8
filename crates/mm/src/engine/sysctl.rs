//! The machine as an administrator changes it while it runs: `vm.swappiness`,
//! `vm.min_free_kbytes`, `vm.watermark_scale_factor`, `vm.drop_caches`.

use crate::config::node::{MachineMarks, NodeConfig};
use crate::engine::Engine;
use crate::folio::mapping::MappingKind;
use crate::ids::{MappingId, NodeId, PageId};
use crate::world::World;

impl Engine {
    /// `vm.swappiness` from now on, of groups that have none of their own.
    pub fn set_swappiness(&mut self, swappiness: u32) -> Result<(), String> {
        match swappiness <= 200 {
            true => self.mem.cfg.swappiness = swappiness,
            false => return Err("swappiness is 0 to 200".into()),
        }
        Ok(())
    }

    /// `vm.min_free_kbytes` and `vm.watermark_scale_factor` from now on; none: as before. The marks
    /// of all zones are computed anew. An engine without a size has none.
    pub fn set_watermarks(&mut self, min_free_kbytes: Option<u64>, scale_factor: Option<u32>) -> Result<(), String> {
        let cfg = &mut self.mem.cfg;
        let nodes: Vec<&mut NodeConfig> = match (&mut cfg.numa, &mut cfg.node) {
            (Some(numa), _) => numa.nodes.iter_mut().collect(),
            (None, Some(node)) => vec![node],
            (None, None) => return Err("a machine without a size has no watermarks".into()),
        };
        let mut machine = Vec::new();
        for (n, node) in nodes.into_iter().enumerate() {
            node.min_free_kbytes = min_free_kbytes.or(node.min_free_kbytes);
            node.watermark_scale_factor = scale_factor.unwrap_or(node.watermark_scale_factor);
            let pages = self.mem.frames.nodes.get(NodeId(n as u8)).managed_pages();
            machine.push(NodeConfig { pages, init_pages: 0, ..node.clone() });
        }
        let marks = MachineMarks::new(&machine);
        for n in 0..machine.len() {
            self.mem.frames.nodes.get_mut(NodeId(n as u8)).set_marks(&marks);
        }
        Ok(())
    }

    /// `vm.min_free_kbytes` in force: as it was given, or as boot and khugepaged set it. An engine
    /// without a size has 0.
    pub fn min_free_kbytes(&self) -> u64 {
        self.mem.frames.nodes.get(NodeId::default()).min_free_pages * 4
    }

    /// `vm.drop_caches` with 1: drops clean pages of files that are in no page table, and shadows
    /// of pages that left memory before. Returns how many pages left.
    pub fn drop_caches<W: World>(&mut self, w: &mut W) -> u64 {
        let all = 0..self.mem.pages.space.mappings.len();
        let files = all.filter(|&m| self.mem.pages.space.mappings[m].kind == MappingKind::File);
        let ranges: Vec<_> = files.map(|m| self.mem.pages.mapping_pages(MappingId(m as u32))).collect();
        let ranges = ranges.into_iter().filter(|range| !range.is_empty());
        ranges.map(|range| self.invalidate_range(w, PageId(range.start), range.end - range.start)).sum()
    }

    /// `POSIX_FADV_DONTNEED` for `nr` pages of a file from `first` on: clean pages that are in no
    /// page table leave memory, without a shadow; other pages are next for reclaim. Returns how
    /// many pages left.
    pub fn invalidate_range<W: World>(&mut self, w: &mut W, first: PageId, nr: u32) -> u64 {
        self.fault(w).invalidate_range(first, nr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Policy};

    fn marks(node: NodeConfig) -> (Engine, Vec<crate::Watermarks>) {
        let config = Config { total_pages: node.pages, node: Some(node), ..Config::new(Policy::Lru) };
        let engine = Engine::new(config).expect("an engine");
        let marks = engine.zones().map(|zone| zone.3).collect();
        (engine, marks)
    }

    #[test]
    fn marks_that_are_set_later_are_as_if_they_had_been_from_the_start() {
        let plain = NodeConfig::new(1 << 20);
        let (mut engine, before) = marks(plain.clone());
        let set = NodeConfig { min_free_kbytes: Some(65_536), watermark_scale_factor: 200, ..plain };
        let (_, want) = marks(set);
        assert_ne!(before, want);
        engine.set_watermarks(Some(65_536), Some(200)).expect("possible");
        assert_eq!(engine.zones().map(|zone| zone.3).collect::<Vec<_>>(), want);
        engine.set_watermarks(None, Some(10)).expect("possible");
        let kept: Vec<_> = engine.zones().map(|zone| zone.3.min).collect();
        assert_eq!(kept, want.iter().map(|marks| marks.min).collect::<Vec<_>>(), "what is not given stays");
        assert!(engine.set_swappiness(201).is_err());
    }
}
