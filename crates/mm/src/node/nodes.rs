//! The memory nodes of a machine: which one an allocation falls back to, which CPU belongs to
//! which, where a frame is.
//!
//! Most machines here have one node; then a folio's node is not kept anywhere, and no lookup is
//! made for it.

use crate::config::Config;
use crate::config::node::{MachineMarks, NumaConfig};
use crate::ids::{NodeId, ZoneId};
use crate::node::page_blocks::MigrateType;
use crate::node::pcp::DECAY_INTERVAL_NS;
use crate::node::zones::{AllocWatermark, Node};

/// Pages of reclaimable slabs, such as inodes and directory entries, after boot.
const BOOT_SLAB_PAGES: u64 = 311;

/// All nodes.
#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    /// One at least.
    pub(crate) all: Vec<Node>,
    /// By node: all nodes, the nearest first.
    zonelists: Vec<Vec<NodeId>>,
    /// By CPU: its node.
    of_cpu: Vec<NodeId>,
    /// Pages that the driver took.
    external: u64,
    /// By node: the nodes to which reclaim demotes pages, if demotion is on.
    demotion: Vec<Demotion>,
    random: u64,
    /// The CPU on which things happen.
    pub(crate) cpu: usize,
    /// Time of the next look at the per-CPU lists; never if there are no lists.
    pub(crate) next_decay_ns: u64,
}

/// Where the cold pages of a node go.
#[derive(Clone, Debug, Default)]
struct Demotion {
    targets: Vec<NodeId>,
    /// All slower nodes.
    allowed: Vec<NodeId>,
}

impl Demotion {
    /// Targets of a node; nowhere if demotion is off.
    fn new(numa: Option<&NumaConfig>, nid: NodeId) -> Demotion {
        let Some(numa) = numa.filter(|n| n.tiering.demotion_enabled) else { return Demotion::default() };
        let of = |lists: &[Vec<NodeId>]| lists.get(nid.index()).cloned().unwrap_or_default();
        Demotion { targets: of(&numa.demotion_targets), allowed: of(&numa.demotion_allowed) }
    }
}

impl Nodes {
    pub(crate) fn new(cfg: &Config) -> Nodes {
        let (configs, numa) = match (&cfg.numa, &cfg.node) {
            (Some(numa), _) => (&numa.nodes[..], Some(numa)),
            (None, Some(node)) => (std::slice::from_ref(node), None),
            (None, None) => (&[][..], None),
        };
        let marks = MachineMarks::new(configs);
        let promo = numa.is_some_and(|n| n.tiering.promotes());
        let mut all: Vec<Node> = configs.iter().map(|n| Node::new(n, &marks, promo, cfg.cpus)).collect();
        all.resize(all.len().max(1), Node::default());
        let of_cpu = |cpu: usize| numa.and_then(|n| n.cpu_nodes.get(cpu)).copied().unwrap_or_default();
        Nodes {
            zonelists: (0..all.len()).map(|n| zonelist(numa, NodeId(n as u8), all.len())).collect(),
            of_cpu: (0..cfg.cpus).map(of_cpu).collect(),
            external: 0,
            demotion: (0..all.len()).map(|n| Demotion::new(numa, NodeId(n as u8))).collect(),
            random: cfg.seed,
            cpu: 0,
            next_decay_ns: if configs.iter().any(|n| n.per_cpu_lists) { DECAY_INTERVAL_NS } else { u64::MAX },
            all,
        }
    }

    /// Whether there is more than one.
    #[inline(always)]
    pub(crate) fn are_several(&self) -> bool {
        self.all.len() > 1
    }

    /// Their names.
    pub(crate) fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.all.len() as u8).map(NodeId)
    }

    #[inline(always)]
    pub(crate) fn get(&self, nid: NodeId) -> &Node {
        &self.all[nid.index()]
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, nid: NodeId) -> &mut Node {
        &mut self.all[nid.index()]
    }

    /// The node of a CPU.
    pub(crate) fn of_cpu(&self, cpu: usize) -> NodeId {
        self.of_cpu.get(cpu).copied().unwrap_or_default()
    }

    /// The nodes in the order in which an allocation on `nid` tries them.
    pub(crate) fn zonelist(&self, nid: NodeId) -> &[NodeId] {
        &self.zonelists[nid.index()]
    }

    /// Whether nodes have sizes.
    #[inline(always)]
    pub(crate) fn is_limited(&self) -> bool {
        self.all[0].is_limited()
    }

    /// Lists that a generation has for each type: as many as the node with most zones has zones.
    pub(crate) fn zone_lists(&self) -> usize {
        self.all.iter().map(Node::zone_lists).max().unwrap_or(1)
    }

    /// Takes `nr` frames from the nearest node with a zone above the mark. Returns the zone.
    #[inline]
    pub(crate) fn take(&mut self, from: NodeId, nr: u64, mark: AllocWatermark) -> Option<ZoneId> {
        self.take_for(from, nr, mark, MigrateType::Movable)
    }

    /// The same for pages of a kind.
    #[inline]
    pub(crate) fn take_for(
        &mut self,
        from: NodeId,
        nr: u64,
        mark: AllocWatermark,
        kind: MigrateType,
    ) -> Option<ZoneId> {
        let Nodes { all, zonelists, cpu, .. } = self;
        let take = |&n: &NodeId| all[n.index()].take(nr, mark, *cpu, kind).map(|zone| ZoneId::new(n, zone));
        zonelists[from.index()].iter().find_map(take)
    }

    /// Frames of this node alone.
    pub(crate) fn take_on(&mut self, nid: NodeId, nr: u64, mark: AllocWatermark) -> Option<ZoneId> {
        let cpu = self.cpu;
        self.get_mut(nid).take(nr, mark, cpu, MigrateType::Movable).map(|zone| ZoneId::new(nid, zone))
    }

    /// Gives the free pages that CPUs keep for themselves back to the zones, for an allocation that
    /// finds none.
    pub(crate) fn drain_pcp(&mut self) {
        self.all.iter_mut().for_each(Node::drain_pcp);
    }

    /// Time went on: every second lists of CPUs that are larger than they must be shrink.
    #[cold]
    pub(crate) fn decay_pcp(&mut self, now_ns: u64) {
        self.next_decay_ns = now_ns.saturating_add(DECAY_INTERVAL_NS);
        self.all.iter_mut().for_each(Node::decay_pcp);
    }

    /// Whether reclaim may move pages of a node to a slower one.
    pub(crate) fn demotes(&self, nid: NodeId) -> bool {
        !self.demotion[nid.index()].targets.is_empty()
    }

    /// Where to, of several by chance.
    pub(crate) fn demotion_target(&mut self, nid: NodeId) -> Option<NodeId> {
        let targets = &self.demotion[nid.index()].targets;
        let nr = targets.len() as u64;
        if nr <= 1 {
            return targets.first().copied();
        }
        // Knuth's linear congruential generator; its high bits are the random ones.
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some(targets[((self.random >> 33) % nr) as usize])
    }

    /// The other slower nodes, the nearest to the target first.
    pub(crate) fn demotion_fallbacks(&self, from: NodeId, target: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let allowed = &self.demotion[from.index()].allowed;
        self.zonelist(target).iter().copied().filter(move |n| *n != target && allowed.contains(n))
    }

    /// Frames are free again, or given back unused.
    #[inline]
    pub(crate) fn give_back(&mut self, zone: ZoneId, nr: u64) {
        self.give_back_for(zone, nr, MigrateType::Movable);
    }

    /// The same of pages of a kind.
    #[inline]
    pub(crate) fn give_back_for(&mut self, zone: ZoneId, nr: u64, kind: MigrateType) {
        let cpu = self.cpu;
        self.get_mut(zone.nid()).give_back(zone.zone(), nr, cpu, kind);
    }

    /// These frames hold no folio.
    pub(crate) fn note_kernel(&mut self, zone: ZoneId, nr: u64, kind: MigrateType) {
        self.get_mut(zone.nid()).note_kernel(zone.zone(), nr, kind);
    }

    /// Frees `nr` kernel pages, which are on no list, from the first nodes that hold any: their
    /// node is not tracked.
    pub(crate) fn free_kernel_pages(&mut self, nr: u64, kind: MigrateType) {
        self.all.iter_mut().fold(nr, |left, n| n.free_kernel_pages(left, kind));
    }

    /// Frees pages of reclaimable slabs.
    pub(crate) fn free_slab(&mut self, pages: u64) {
        self.free_kernel_pages(pages, MigrateType::Reclaimable);
    }

    /// This frame holds buffer heads.
    pub(crate) fn note_buffer_slab(&mut self, zone: ZoneId) {
        self.get_mut(zone.nid()).note_buffer_slab(zone.zone());
    }

    /// A slab of buffer heads is free, by way of the list of the CPU.
    pub(crate) fn free_buffer_slab(&mut self, zone: ZoneId) {
        self.get_mut(zone.nid()).forget_buffer_slab(zone.zone());
        self.give_back_for(zone, 1, MigrateType::Reclaimable);
    }

    /// Sets the pages that the driver holds, of the first node first; refuses more than are free.
    pub(crate) fn set_driver_pages(&mut self, pages: u64) -> bool {
        if pages < self.external {
            self.free_kernel_pages(self.external - pages, MigrateType::Movable);
        }
        if self.is_limited() {
            for n in &mut self.all {
                let want = pages.saturating_sub(self.external);
                self.external += n.take_kernel(want, MigrateType::Movable);
            }
            if self.external < pages {
                return false;
            }
        }
        self.external = pages;
        true
    }

    /// Takes frames for the kernel itself, for good: they cannot be moved. False: there are not so
    /// many, and none is taken.
    pub(crate) fn reserve_kernel(&mut self, pages: u64) -> bool {
        if !self.is_limited() {
            return true;
        }
        if pages > self.free_pages() {
            return false;
        }
        let pools: u64 = self.all.iter_mut().map(|n| n.take_dma_pool(pages)).sum();
        // As /proc/pagetypeinfo of a guest that has booted shows it.
        let slabs = BOOT_SLAB_PAGES.min((pages - pools) / 16);
        for (want, kind) in [(slabs, MigrateType::Reclaimable), (pages - pools - slabs, MigrateType::Unmovable)] {
            self.all.iter_mut().fold(want, |left, n| left - n.take_kernel(left, kind));
        }
        true
    }

    /// Free pages of all nodes.
    pub(crate) fn free_pages(&self) -> u64 {
        self.all.iter().map(Node::free_pages).sum()
    }

    /// Free pages that no cache may count on (`totalreserve_pages`).
    pub(crate) fn totalreserve_pages(&self) -> u64 {
        self.all.iter().map(Node::totalreserve_pages).sum()
    }

    /// All frames.
    pub(crate) fn managed_pages(&self) -> u64 {
        self.all.iter().map(Node::managed_pages).sum()
    }

    /// Every frame of every node is free, a folio's (or about to be), or the kernel's.
    /// `folio_pages`: by node.
    pub(crate) fn validate(&self, folio_pages: &[u64]) -> Result<(), String> {
        self.all.iter().zip(folio_pages).enumerate().try_for_each(|(i, (n, &pages))| {
            n.validate(pages).map_err(|e| if self.are_several() { format!("node {i}: {e}") } else { e })
        })
    }
}

/// All nodes by their distance from node `from`; nodes at equal distance by number.
fn zonelist(numa: Option<&NumaConfig>, from: NodeId, nr: usize) -> Vec<NodeId> {
    let mut list: Vec<NodeId> = (0..nr as u8).map(NodeId).collect();
    // Stable: the order of numbers stays where the distance is the same.
    list.sort_by_key(|&to| numa.map_or(0, |n| n.distance(from, to)));
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Policy;
    use crate::config::node::NodeConfig;

    fn machine(sizes: &[u64], cpu_nodes: &[u8]) -> Nodes {
        let nodes = sizes.iter().map(|&pages| NodeConfig { low_zones: [0, 0], ..NodeConfig::new(pages) }).collect();
        let numa = NumaConfig { cpu_nodes: cpu_nodes.iter().map(|&n| NodeId(n)).collect(), ..NumaConfig::new(nodes) };
        let cfg = Config { cpus: cpu_nodes.len().max(1), numa: Some(numa), ..Config::new(Policy::Lru) };
        cfg.check().unwrap();
        Nodes::new(&cfg)
    }

    #[test]
    fn an_allocation_goes_from_node_to_node_by_distance() {
        let nodes = [400, 400, 400].map(|pages| NodeConfig { low_zones: [0, 0], ..NodeConfig::new(pages) }).to_vec();
        let distances = vec![vec![10, 30, 20], vec![30, 10, 20], vec![20, 20, 10]];
        let numa = NumaConfig { distances, ..NumaConfig::new(nodes) };
        let mut n = Nodes::new(&Config { numa: Some(numa), ..Config::new(Policy::Lru) });
        let mut order = Vec::new();
        while let Some(zone) = n.take(NodeId(0), 1, AllocWatermark::Low) {
            if order.last() != Some(&zone.nid()) {
                order.push(zone.nid());
            }
        }
        assert_eq!(order, [NodeId(0), NodeId(2), NodeId(1)]);
        assert_eq!(n.zonelist(NodeId(2)), [NodeId(2), NodeId(0), NodeId(1)], "as far away: by number");
    }

    #[test]
    fn marks_are_shares_of_those_of_the_machine() {
        // 2 GiB together: isqrt(16 · 2097152 kB) = 5792 kB = 1448 pages, three quarters of them on
        // the larger node.
        let n = machine(&[393_216, 131_072], &[0]);
        let min = |i: usize| n.all[i].zones[0].marks.min;
        assert_eq!((min(0), min(1)), (1086, 362));
    }

    #[test]
    fn cpus_without_a_node_of_their_own_are_on_the_first() {
        let n = machine(&[400, 400], &[1, 0, 1]);
        assert_eq!([0, 1, 2, 7].map(|cpu| n.of_cpu(cpu).0), [1, 0, 1, 0]);
    }

    #[test]
    fn what_the_driver_takes_is_bounded_by_what_is_free() {
        let mut n = machine(&[1 << 14], &[]);
        assert!(n.set_driver_pages(1000));
        assert_eq!(n.free_pages(), (1 << 14) - 1000);
        assert!(n.set_driver_pages(10));
        assert_eq!(n.free_pages(), (1 << 14) - 10);
        assert!(!n.set_driver_pages(1 << 20));
        let mut n = machine(&[400, 400], &[]);
        assert!(n.set_driver_pages(500), "from one node and the next");
        assert_eq!([n.all[0].free_pages(), n.all[1].free_pages()], [0, 300]);
        n.validate(&[0, 0]).unwrap();
    }

    #[test]
    fn a_zone_knows_its_node() {
        for (node, zone) in [(0, 0), (0, 2), (5, 1), (15, 2)] {
            let z = ZoneId::new(NodeId(node), zone);
            assert_eq!((z.nid(), z.zone()), (NodeId(node), zone));
        }
    }
}
