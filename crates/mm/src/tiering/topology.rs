//! Tiers: which nodes are equally fast, and where pages go that leave a node.
//!
//! Mechanism: `docs/mechanisms.md#tiers-and-demotion-targets`.

use super::perf::{NodePerf, NodePreset};

/// A node, as far as its tier depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeTier {
    /// Performance of its memory.
    pub perf: NodePerf,
    /// The node has CPUs.
    pub cpus: bool,
}

/// The tiers of a machine. Nodes are named by their place in the list that it was made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiers {
    /// By node: number of its tier.
    tier: Vec<u64>,
    distance: Vec<u64>,
    /// Number of the slowest tier that counts as top tier.
    top: u64,
    /// By node: the nodes to which it demotes pages, the nearest of the next tier.
    targets: Vec<Vec<usize>>,
}

impl Tiers {
    /// The tiers of these nodes. `numa_distance`: the distance of two nodes, as the firmware gives
    /// it (10 from a node to itself).
    ///
    /// # Errors
    /// There is no node, or none of them has CPUs, or a figure is impossible.
    pub fn new(nodes: &[NodeTier], numa_distance: impl Fn(usize, usize) -> u32) -> Result<Tiers, String> {
        let dram = NodePreset::Dram.perf();
        for (n, node) in nodes.iter().enumerate() {
            node.perf.check().map_err(|what| format!("node {n}: {what}"))?;
        }
        let distance: Vec<u64> = nodes.iter().map(|n| n.perf.abstract_distance(&dram)).collect();
        let tier: Vec<u64> = distance.iter().map(|&d| NodePerf::tier_of(d)).collect();
        let with_cpus = tier.iter().zip(nodes).filter(|(_, n)| n.cpus).map(|(&t, _)| t);
        let top = with_cpus.max().ok_or("no node has CPUs; one at least must")?;
        let targets = (0..nodes.len()).map(|n| nearest(n, &tier, &numa_distance)).collect();
        Ok(Tiers { tier, distance, top, targets })
    }

    /// Nodes.
    pub fn len(&self) -> usize {
        self.tier.len()
    }

    /// Whether there is no node; never.
    pub fn is_empty(&self) -> bool {
        self.tier.is_empty()
    }

    /// The tier of a node; lower is faster.
    pub fn tier(&self, node: usize) -> u64 {
        self.tier[node]
    }

    /// The abstract distance of a node.
    pub fn abstract_distance(&self, node: usize) -> u64 {
        self.distance[node]
    }

    /// Whether a node is in the top tier: as fast as the slowest node with CPUs, or faster.
    pub fn is_toptier(&self, node: usize) -> bool {
        self.tier[node] <= self.top
    }

    /// Where pages of a node are demoted to, as they say on `/sys/.../demotion`: of the next slower
    /// tier the nodes that are nearest. Empty: there is no slower tier.
    pub fn demotion_targets(&self, node: usize) -> &[usize] {
        &self.targets[node]
    }

    /// One of the demotion targets, by a random number.
    pub fn demotion_target(&self, node: usize, random: u64) -> Option<usize> {
        let targets = self.demotion_targets(node);
        if targets.is_empty() { None } else { Some(targets[(random % targets.len() as u64) as usize]) }
    }

    /// Where else an allocation for demotion may fall back to: every node of slower tiers, fastest
    /// first, then by number.
    pub fn demotion_fallbacks(&self, node: usize) -> Vec<usize> {
        let mut slower: Vec<usize> = (0..self.len()).filter(|&n| self.tier[n] > self.tier[node]).collect();
        slower.sort_by_key(|&n| (self.tier[n], n));
        slower
    }
}

/// The nodes of the next slower tier that has any, at the smallest NUMA distance.
fn nearest(node: usize, tier: &[u64], numa_distance: &impl Fn(usize, usize) -> u32) -> Vec<usize> {
    let Some(next) = tier.iter().copied().filter(|&t| t > tier[node]).min() else { return Vec::new() };
    let there: Vec<usize> = (0..tier.len()).filter(|&n| tier[n] == next).collect();
    let least = there.iter().map(|&n| numa_distance(node, n)).min();
    there.into_iter().filter(|&n| Some(numa_distance(node, n)) == least).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(preset: NodePreset, cpus: bool) -> NodeTier {
        NodeTier { perf: preset.perf(), cpus }
    }

    #[test]
    fn dram_demotes_to_the_nearest_node_of_the_next_tier_and_pmem_nowhere() {
        // Two sockets, each with DRAM and persistent memory.
        let nodes = [
            node(NodePreset::Dram, true),
            node(NodePreset::Dram, true),
            node(NodePreset::Pmem, false),
            node(NodePreset::Pmem, false),
        ];
        let distance = |a: usize, b: usize| if a % 2 == b % 2 { 17 } else { 28 };
        let tiers = Tiers::new(&nodes, distance).unwrap();
        assert!(tiers.is_toptier(0) && tiers.is_toptier(1) && !tiers.is_toptier(2) && !tiers.is_toptier(3));
        assert_eq!((tiers.demotion_targets(0), tiers.demotion_targets(1)), (&[2][..], &[3][..]));
        assert!(tiers.demotion_targets(2).is_empty());
        assert_eq!(tiers.demotion_fallbacks(0), [2, 3]);
        assert_eq!(tiers.demotion_target(2, 7), None);
    }

    #[test]
    fn a_tier_in_between_is_not_skipped_and_equals_are_chosen_by_the_random_number() {
        let nodes = [
            node(NodePreset::Dram, true),
            node(NodePreset::Pmem, false),
            node(NodePreset::Cxl, false),
            node(NodePreset::Cxl, false),
        ];
        let tiers = Tiers::new(&nodes, |_, _| 20).unwrap();
        assert_eq!(tiers.demotion_targets(0), [2, 3]);
        assert_eq!((tiers.demotion_target(0, 4), tiers.demotion_target(0, 5)), (Some(2), Some(3)));
        assert_eq!(tiers.demotion_targets(2), [1]);
        assert_eq!(tiers.demotion_fallbacks(0), [2, 3, 1]);
        assert!(tiers.tier(0) < tiers.tier(2) && tiers.tier(2) < tiers.tier(1));
    }

    #[test]
    fn the_slowest_node_with_cpus_ends_the_top_tier() {
        let nodes = [node(NodePreset::Dram, true), node(NodePreset::RemoteNuma, true), node(NodePreset::Pmem, false)];
        let tiers = Tiers::new(&nodes, |_, _| 20).unwrap();
        assert!(tiers.is_toptier(1) && !tiers.is_toptier(2));
        assert!(Tiers::new(&[node(NodePreset::Pmem, false)], |_, _| 10).unwrap_err().contains("CPUs"));
        assert!(Tiers::new(&[], |_, _| 10).is_err());
    }
}
