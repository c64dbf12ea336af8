//! Nodes of memory as servers: the cost of an access, and how it grows with the load that all CPUs
//! and migrations together put on a node.
//!
//! A node with latency L and bandwidth B has at most c = B L / (bytes of an access) accesses under
//! way (Little's law), so it is a queue with c servers. How long an access waits at a load is
//! Sakasegawa's approximation for such queues (1977), the load that of the last slice of time.
//! Where more is asked for than the node can do, waiting grows until it is not: by the share of the
//! excess in each slice.

use refault_mm::NodeId;
use refault_mm::tiering::{NodePerf, NodePreset};

use crate::device::PAGE_BYTES;

/// Lines of a copy that are under way at once: the ten line fill buffers of Intel's cores since
/// Nehalem.
const COPY_LINES_AT_ONCE: u64 = 10;
/// Bytes of a cache line.
const LINE_BYTES: u64 = 64;
/// Highest load that counts: above it the formula is too steep for the slices of time.
const MAX_LOAD: f64 = 0.99;

/// Counters of a node, from the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct NodeUse {
    /// Accesses of tasks: reads, then writes.
    pub(crate) accesses: [u64; 2],
    /// Nanoseconds that they took together.
    pub(crate) access_ns: u64,
    /// Pages that were copied from other nodes, and to other nodes.
    pub(crate) pages_in: u64,
    pub(crate) pages_out: u64,
    /// Time that the node was busy.
    pub(crate) busy_ns: f64,
}

/// One node.
#[derive(Clone, Debug)]
struct Node {
    perf: NodePerf,
    /// Accesses that the node serves at once.
    servers: f64,
    /// Nanoseconds of the node's time that a line takes: read, written.
    line_ns: [f64; 2],
    /// Nanoseconds that a line costs the asking CPU at the present load: read, written.
    cost_ns: [u64; 2],
    wait_ns: f64,
    /// Busy time of this slice.
    busy_ns: f64,
    done: NodeUse,
}

/// All nodes; none: an access costs nothing beside what the machine charges anyway.
#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    nodes: Vec<Node>,
    /// By node: whether it is of the top tier.
    top: Vec<bool>,
    /// Nanoseconds of moving a page, beside unmapping and copying.
    migrate_page_ns: u64,
    /// CPU time of copying since it was last taken: promotions, then demotions.
    copied_ns: [u64; 2],
    /// Pages that were promoted, and pages that were demoted.
    pub(crate) moved: [u64; 2],
    slice_ns: u64,
    slice_start_ns: u64,
    slice_end_ns: u64,
}

impl Nodes {
    /// Nodes whose load is measured over slices of `slice_ns`.
    pub(crate) fn new(
        nodes: impl IntoIterator<Item = NodePerf>,
        top: Vec<bool>,
        migrate_page_ns: u64,
        slice_ns: u64,
    ) -> Nodes {
        let slice_ns = slice_ns.max(1);
        let nodes = nodes.into_iter().map(Node::new).collect();
        let (copied_ns, moved) = ([0; 2], [0; 2]);
        Nodes { nodes, top, migrate_page_ns, copied_ns, moved, slice_ns, slice_start_ns: 0, slice_end_ns: slice_ns }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Nanoseconds that a task takes to bring `lines` cache lines of a page from this node.
    #[inline]
    pub(crate) fn access(&mut self, node: usize, write: bool, lines: u32, at_ns: u64) -> u64 {
        if at_ns >= self.slice_end_ns {
            self.next_slice(at_ns);
        }
        let node = &mut self.nodes[node];
        let kind = usize::from(write);
        let ns = node.cost_ns[kind] * u64::from(lines);
        node.busy_ns += node.line_ns[kind] * f64::from(lines);
        node.done.accesses[kind] += 1;
        node.done.access_ns += ns;
        ns
    }

    /// Nanoseconds that a read or write of a whole page by descriptor takes longer on this node
    /// than with idle DRAM.
    pub(crate) fn stream(&mut self, node: usize, write: bool, at_ns: u64) -> u64 {
        let lines = PAGE_BYTES / LINE_BYTES;
        let ns = self.access(node, write, lines as u32, at_ns) / COPY_LINES_AT_ONCE;
        // The lines are copied side by side: only a share of their time counts.
        self.nodes[node].done.access_ns -= ns * COPY_LINES_AT_ONCE - ns;
        let dram = NodePreset::Dram.perf();
        let measured = [dram.read_latency_ns, dram.write_latency_ns][usize::from(write)] * lines / COPY_LINES_AT_ONCE;
        ns.saturating_sub(measured)
    }

    /// Nanoseconds that a CPU takes to copy pages from one node to another.
    fn copy(&mut self, from: usize, to: usize, pages: u64, at_ns: u64) -> u64 {
        if at_ns >= self.slice_end_ns {
            self.next_slice(at_ns);
        }
        let bytes = (pages * PAGE_BYTES) as f64;
        let source = &mut self.nodes[from];
        source.busy_ns += bytes * 1e9 / source.perf.read_bytes_per_s as f64;
        source.done.pages_out += pages;
        let read_ns = source.cost_ns[0];
        let target = &mut self.nodes[to];
        target.busy_ns += bytes * 1e9 / target.perf.write_bytes_per_s as f64;
        target.done.pages_in += pages;
        pages * (PAGE_BYTES / LINE_BYTES) * (read_ns + target.cost_ns[1]) / COPY_LINES_AT_ONCE
    }

    /// Moves a folio to another node, as the engine has decided.
    pub(super) fn migrate(&mut self, pages: u64, from: NodeId, to: NodeId, at_ns: u64) {
        if self.is_empty() {
            return;
        }
        let ns = self.copy(from.index(), to.index(), pages, at_ns) + pages * self.migrate_page_ns;
        let down = usize::from(self.top[from.index()] || !self.top[to.index()]);
        self.copied_ns[down] += ns;
        self.moved[down] += pages;
    }

    /// CPU time of copies upwards and downwards since the last call.
    pub(crate) fn take_copied(&mut self) -> [u64; 2] {
        std::mem::take(&mut self.copied_ns)
    }

    /// Counters of a node up to now.
    pub(crate) fn used(&self, node: usize) -> NodeUse {
        let n = &self.nodes[node];
        NodeUse { busy_ns: n.done.busy_ns + n.busy_ns, ..n.done }
    }

    fn next_slice(&mut self, at_ns: u64) {
        let start = at_ns - at_ns % self.slice_ns;
        let length = (start - self.slice_start_ns) as f64;
        self.nodes.iter_mut().for_each(|n| n.end_slice(length));
        (self.slice_start_ns, self.slice_end_ns) = (start, start + self.slice_ns);
    }
}

impl Node {
    fn new(perf: NodePerf) -> Node {
        let line_ns =
            [perf.read_bytes_per_s, perf.write_bytes_per_s].map(|b| perf.access_bytes as f64 * 1e9 / b as f64);
        let servers = (perf.read_latency_ns as f64 / line_ns[0]).max(1.0);
        let cost_ns = [perf.read_latency_ns, perf.write_latency_ns];
        Node { perf, servers, line_ns, cost_ns, wait_ns: 0.0, busy_ns: 0.0, done: NodeUse::default() }
    }

    /// Nanoseconds that an access waits at a load below 1.
    fn wait_at(&self, load: f64) -> f64 {
        let load = load.min(MAX_LOAD);
        let exponent = (2.0 * (self.servers + 1.0)).sqrt() - 1.0;
        self.line_ns[0] * load.powf(exponent) / (1.0 - load)
    }

    fn end_slice(&mut self, length_ns: f64) {
        let load = self.busy_ns / length_ns;
        self.done.busy_ns += self.busy_ns;
        self.busy_ns = 0.0;
        let latency = self.perf.read_latency_ns as f64;
        self.wait_ns = match load > 1.0 {
            true => (latency + self.wait_ns) * load - latency,
            // A queue that has built up goes as the load allows.
            false => self.wait_at(load).max(self.wait_ns * load),
        };
        self.cost_ns = [self.perf.read_latency_ns, self.perf.write_latency_ns].map(|l| l + self.wait_ns.round() as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(presets: &[NodePreset]) -> Nodes {
        Nodes::new(presets.iter().map(|p| p.perf()), vec![false; presets.len()], 0, 50_000)
    }

    /// Threads that do nothing but read, for a millisecond at a time; reads of the last one.
    fn saturate(m: &mut Nodes, threads: u64, ms: u64) -> u64 {
        let mut clocks = vec![0u64; threads as usize];
        let mut last = 0;
        for end in (50_000..=ms * 1_000_000).step_by(50_000) {
            for clock in &mut clocks {
                while *clock < end {
                    *clock += m.access(0, false, 1, *clock);
                    last += u64::from(end > (ms - 1) * 1_000_000);
                }
            }
        }
        last
    }

    #[test]
    fn an_access_costs_the_latency_of_its_node() {
        let mut m = memory(&[NodePreset::Dram, NodePreset::Pmem]);
        assert_eq!((m.access(0, false, 1, 0), m.access(1, false, 1, 0), m.access(1, true, 3, 0)), (101, 305, 270));
        assert_eq!((m.used(1).accesses, m.used(1).access_ns), ([1, 1], 575));
    }

    #[test]
    fn few_threads_are_bound_by_latency_and_many_by_bandwidth() {
        // 39.4 GB/s in pieces of 256 bytes are 154,000 a millisecond; a thread alone does 3,279.
        let alone = saturate(&mut memory(&[NodePreset::Pmem]), 1, 5);
        assert!((3_270..=3_280).contains(&alone), "{alone}");
        let many = saturate(&mut memory(&[NodePreset::Pmem]), 200, 20);
        assert!((145_000..=158_000).contains(&many), "{many}");
    }

    #[test]
    fn migrations_take_bandwidth_of_both_ends_and_make_accesses_wait() {
        let mut m = memory(&[NodePreset::Dram, NodePreset::Pmem]);
        let ns = m.copy(1, 0, 1, 0);
        assert_eq!(ns, 64 * (305 + 86) / 10);
        let (dram, pmem) = (m.used(0), m.used(1));
        assert_eq!((dram.pages_in, dram.pages_out, pmem.pages_in, pmem.pages_out), (1, 0, 0, 1));
        assert!((pmem.busy_ns - 4096.0 / 39.4).abs() < 1e-6 && (dram.busy_ns - 4096.0 / 63.9).abs() < 1e-6);
        // 13.9 GB/s are 170 pages of demotion in 50 us; 160 of them fill the node.
        m.copy(0, 1, 160, 0);
        let busy = m.access(1, false, 1, 50_000);
        assert!(busy > 305, "{busy}");
        let calm = m.access(1, false, 1, 500_000);
        assert_eq!(calm, 305);
    }
}
