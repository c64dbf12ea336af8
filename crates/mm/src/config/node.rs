//! The memory nodes of a machine as they are configured.

use crate::ids::{MAX_NUMNODES, NodeId};
use crate::tiering::{TieringConfig, Tiers};

/// Least and largest `min_free_kbytes` that the formula gives, in kB.
const MIN_FREE_KBYTES: (u64, u64) = (128, 262_144);

/// A memory node with a size (zones and watermarks).
#[derive(Clone, Debug, PartialEq)]
pub struct NodeConfig {
    /// Pages that can be allocated.
    pub pages: u64,
    /// `min_free_kbytes`; none: by the formula, and with `khugepaged` at least what khugepaged
    /// needs.
    pub min_free_kbytes: Option<u64>,
    /// Huge pages of 2 MiB are made, so that khugepaged runs: when it starts it raises
    /// `min_free_kbytes`, to keep whole page blocks free.
    pub khugepaged: bool,
    /// `watermark_scale_factor`, in ten-thousandths of a zone; 10 in Linux.
    pub watermark_scale_factor: u32,
    /// Pages of the zones DMA and DMA32, as far as the node has them; the rest is Normal.
    pub low_zones: [u64; 2],
    /// Pages of `pages` that boot gave back after it had computed the watermarks and
    /// `lowmem_reserve`, which lower zones keep for themselves: the initrd, and memory that only
    /// init needs. 0 where the kernel computes both again later, as Linux 6.18 does.
    pub init_pages: u64,
    /// Whether CPUs keep free pages for themselves, and move many at a time to and from the zones.
    pub per_cpu_lists: bool,
    /// Whether free pages have a migratetype, by the page block in which they lie.
    pub page_blocks: bool,
    /// `watermark_boost_factor`, in ten-thousandths of the high mark: how far the marks are raised
    /// when a page block changes its kind. 15,000 in Linux; 0 is not at all. Needs `page_blocks`.
    pub watermark_boost_factor: u32,
    /// File systems keep a buffer head of each page of a file that is written (ext4).
    pub buffer_heads: bool,
}

impl NodeConfig {
    /// Pages of DMA and DMA32 on a 64-bit PC: 16 MiB less the first, which is left to firmware
    /// since Linux 5.13; and the rest of the 3 GiB below the addresses that devices have.
    pub const PC_ZONES: [u64; 2] = [15 << 8, (3 << 18) - (16 << 8)];

    /// A node of `pages` pages as a PC has it.
    pub fn new(pages: u64) -> NodeConfig {
        NodeConfig {
            pages,
            min_free_kbytes: None,
            khugepaged: false,
            watermark_scale_factor: 10,
            low_zones: NodeConfig::PC_ZONES,
            init_pages: 0,
            per_cpu_lists: false,
            page_blocks: false,
            watermark_boost_factor: 15_000,
            buffer_heads: false,
        }
    }

    /// The min mark of a machine that has this node and no other, in pages: no ordinary allocation
    /// takes what is below it.
    pub fn min_mark_pages(&self) -> u64 {
        MachineMarks::new(std::slice::from_ref(self)).min_pages()
    }

    /// The zones DMA, DMA32 and Normal, in pages; 0: there is none.
    pub(crate) fn zone_pages(&self) -> [u64; 3] {
        let [dma, dma32] = self.low_zones;
        let dma = dma.min(self.pages / 8);
        let dma32 = (self.pages - dma).min(dma32);
        [dma, dma32, self.pages - dma - dma32]
    }

    /// Names the first setting that is impossible on a machine of `machine_pages` pages.
    pub(crate) fn check(&self, machine_pages: u64) -> Result<(), String> {
        let limits = [
            ((64..1 << 30).contains(&self.pages), "a node has 64 to 2^30 pages"),
            (self.init_pages < self.pages / 2, "init_pages are less than half of a node"),
            (self.watermark_scale_factor <= 3000, "watermark_scale_factor is at most 3000"),
            (
                self.min_free_kbytes.is_none_or(|k| k / 4 < machine_pages / 2),
                "min_free_kbytes is below half of the node",
            ),
        ];
        limits.iter().find(|(ok, _)| !ok).map_or(Ok(()), |(_, what)| Err((*what).into()))
    }
}

/// A machine of several nodes, with their distances and tiers.
#[derive(Clone, Debug, PartialEq)]
pub struct NumaConfig {
    /// The nodes, 1 to 16. `min_free_kbytes` and `watermark_scale_factor` of the first one hold for
    /// all: Linux has each setting once.
    pub nodes: Vec<NodeConfig>,
    /// By CPU: the node that it is on. CPUs beyond the list are on node 0.
    pub cpu_nodes: Vec<NodeId>,
    /// By node: the distance to each, as firmware says it (SLIT). Empty: 10 to itself, 20 to
    /// others.
    pub distances: Vec<Vec<u32>>,
    /// Hint faults, promotion and demotion; by default, as in Linux, there are none.
    pub tiering: TieringConfig,
    /// By node: the nodes to which its cold pages go; one of several is taken at random. Empty:
    /// none.
    pub demotion_targets: Vec<Vec<NodeId>>,
    /// By node: all nodes of slower tiers, for when the targets are full.
    pub demotion_allowed: Vec<Vec<NodeId>>,
    /// By node: whether it is of the top tier. Empty: all are.
    pub top_tier: Vec<bool>,
}

impl NumaConfig {
    /// Nodes at equal distances, with all CPUs on the first node and without tiers.
    pub fn new(nodes: Vec<NodeConfig>) -> NumaConfig {
        NumaConfig {
            nodes,
            cpu_nodes: Vec::new(),
            distances: Vec::new(),
            tiering: TieringConfig::default(),
            demotion_targets: Vec::new(),
            demotion_allowed: Vec::new(),
            top_tier: Vec::new(),
        }
    }

    /// Takes over the tiers of these nodes: whether each is of the top tier, and where it demotes
    /// to.
    #[must_use]
    pub fn with_tiers(self, tiers: &Tiers) -> NumaConfig {
        let ids = |nodes: &[usize]| nodes.iter().map(|&n| NodeId(n as u8)).collect();
        let all = 0..self.nodes.len().min(tiers.len());
        NumaConfig {
            top_tier: all.clone().map(|n| tiers.is_toptier(n)).collect(),
            demotion_targets: all.clone().map(|n| ids(tiers.demotion_targets(n))).collect(),
            demotion_allowed: all.map(|n| ids(&tiers.demotion_fallbacks(n))).collect(),
            ..self
        }
    }

    /// The distance from one node to another.
    pub fn distance(&self, from: NodeId, to: NodeId) -> u32 {
        let known = self.distances.get(from.index()).and_then(|row| row.get(to.index())).copied();
        known.unwrap_or(if from == to { 10 } else { 20 })
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let nr = self.nodes.len();
        let lists = [&self.demotion_targets, &self.demotion_allowed];
        let of_nodes = |rows: &[Vec<NodeId>]| rows.iter().flatten().all(|n| n.index() < nr);
        let limits = [
            ((1..=MAX_NUMNODES).contains(&nr), "there are 1 to 16 nodes"),
            (self.cpu_nodes.iter().all(|n| n.index() < nr), "a CPU is on a node that exists"),
            (self.distances.is_empty() || self.distances.len() == nr, "distances has a row for each node, or none"),
            (self.distances.iter().all(|row| row.len() == nr), "a row of distances has a distance to each node"),
            (lists.iter().all(|l| l.len() <= nr && of_nodes(l)), "demotion is from and to nodes that exist"),
            (
                lists.iter().all(|l| l.iter().enumerate().all(|(i, to)| to.iter().all(|n| n.index() != i))),
                "no node demotes to itself",
            ),
            (self.top_tier.is_empty() || self.top_tier.len() == nr, "top_tier says it of each node, or of none"),
        ];
        if let Some((_, what)) = limits.iter().find(|(ok, _)| !ok) {
            return Err(format!("nodes: {what}"));
        }
        let total: u64 = self.nodes.iter().map(|n| n.pages).sum();
        if total >= 1 << 30 {
            return Err("nodes: they have less than 2^30 pages together".into());
        }
        self.nodes.iter().try_for_each(|n| n.check(total))?;
        self.tiering.check()
    }
}

/// Pages of a page block.
const PAGE_BLOCK: u64 = 512;
/// Migratetypes for which page blocks are kept apart.
const MOBILITIES: u64 = 3;

/// Pages below the min mark where khugepaged runs. For each zone two page blocks, and for each
/// migratetype as many blocks as there are migratetypes, so that none has to fall back to blocks of
/// another; at most a twentieth of the pages above the high marks.
fn recommended_min_pages(nodes: &[NodeConfig], min_pages: u64, scale_factor: u64) -> u64 {
    let pages: u64 = nodes.iter().map(|n| n.pages).sum();
    let zones = nodes.iter().flat_map(NodeConfig::zone_pages).filter(|&pages| pages > 0).count() as u64;
    let high = min_pages + 2 * (min_pages / 4).max(pages * scale_factor / 10_000);
    (PAGE_BLOCK * zones * (2 + MOBILITIES * MOBILITIES)).min(pages.saturating_sub(high) / 20)
}

/// Sums from which the watermarks of all zones of a machine follow (zones and watermarks).
pub(crate) struct MachineMarks {
    /// Pages of all nodes, less `init_pages`.
    pub(crate) total: u64,
    pub(crate) min_pages: u64,
    pub(crate) scale_factor: u64,
}

impl MachineMarks {
    /// Adds up the nodes of a machine. Settings are taken from the first node: Linux has each once.
    pub(crate) fn new(nodes: &[NodeConfig]) -> MachineMarks {
        let total: u64 = nodes.iter().map(|n| n.pages - n.init_pages.min(n.pages)).sum();
        let by_formula = (16 * total * 4).isqrt().clamp(MIN_FREE_KBYTES.0, MIN_FREE_KBYTES.1);
        let first = nodes.first();
        let scale_factor = first.map_or(0, |n| u64::from(n.watermark_scale_factor));
        let min_pages = match first.and_then(|n| n.min_free_kbytes) {
            Some(kb) => kb / 4,
            None if first.is_some_and(|n| n.khugepaged) => {
                recommended_min_pages(nodes, by_formula / 4, scale_factor).max(by_formula / 4)
            }
            None => by_formula / 4,
        };
        MachineMarks { total, min_pages, scale_factor }
    }

    /// The min marks of all zones together.
    pub(crate) fn min_pages(&self) -> u64 {
        self.min_pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kbytes(gib: u64, khugepaged: bool) -> u64 {
        NodeConfig { khugepaged, ..NodeConfig::new(gib << 18) }.min_mark_pages() * 4
    }

    /// A node of 8 GiB has 67,584 kB where huge pages are on, by the report and by the formula.
    #[test]
    fn regression_khugepaged_raises_the_marks() {
        assert_eq!([kbytes(8, true), kbytes(8, false)], [67_584, 11_584]);
        assert_eq!(kbytes(2, true), 45_056, "there is no zone Normal");
        assert_eq!(kbytes(1024, true), 131_072, "the formula says more");
        let small = NodeConfig { khugepaged: true, ..NodeConfig::new(1 << 17) };
        assert_eq!(small.min_mark_pages(), (131_072 - 724 - 2 * 181) / 20, "a twentieth of 512 MiB is less");
        let given = NodeConfig { min_free_kbytes: Some(16_384), ..small };
        assert_eq!(given.min_mark_pages(), 4096, "what is set stays");
    }
}
