//! Nodes of memory with latency and bandwidth, in the phases that count.

use crate::device::PAGE_BYTES;

/// A node of memory in the phases that count.
#[derive(Clone, Debug)]
pub struct TierResult {
    /// Its name.
    pub name: String,
    /// Pages of the node.
    pub pages: u64,
    /// Number of the node's tier; lower is faster.
    pub tier: u64,
    /// Abstract distance, as Linux has it.
    pub abstract_distance: u64,
    /// Whether the node is in the top tier.
    pub top: bool,
    /// Accesses of tasks: reads, then writes.
    pub accesses: [u64; 2],
    /// Mean nanoseconds of an access, waiting for the node included.
    pub mean_access_ns: f64,
    /// Share of the accesses of all nodes, 0 to 1.
    pub share: f64,
    /// Pages migrated here from other nodes.
    pub pages_in: u64,
    /// Pages migrated from here to other nodes.
    pub pages_out: u64,
    /// Share of the node's bandwidth that was used, 0 to 1.
    pub utilization: f64,
    /// Free pages at the end.
    pub free_pages: u64,
}

/// Tiers in the phases that count.
#[derive(Clone, Debug)]
pub struct TiersResult {
    /// Nodes, in the order of the scenario.
    pub nodes: Vec<TierResult>,
    /// Virtual seconds of the phases that count.
    pub seconds: f64,
    /// Pages promoted to a faster tier.
    pub promoted: u64,
    /// Pages demoted to a slower tier.
    pub demoted: u64,
    /// Hot threshold at the end, of the first node of the top tier.
    pub hot_threshold_ms: u64,
    /// The share of accesses that the top tier would have served if it held the hottest pages of
    /// the last phases.
    pub best_share: Option<f64>,
    /// Page-table entries that marking looked at, in the whole run.
    pub scanned_ptes: u64,
    /// Pages that marking marked, in the whole run.
    pub marked_pages: u64,
}

impl TiersResult {
    /// Mean nanoseconds of an access, over all nodes.
    pub fn mean_access_ns(&self) -> f64 {
        let sum = |of: fn(&TierResult) -> f64| self.nodes.iter().map(of).sum::<f64>();
        let accesses = sum(TierResult::accesses);
        if accesses > 0.0 { sum(|n| n.accesses() * n.mean_access_ns) / accesses } else { 0.0 }
    }

    fn per_s(&self, pages: u64) -> f64 {
        if self.seconds > 0.0 { (pages * PAGE_BYTES) as f64 / self.seconds } else { 0.0 }
    }

    /// Promoted bytes a second.
    pub fn promoted_bytes_per_s(&self) -> f64 {
        self.per_s(self.promoted)
    }

    /// Demoted bytes a second.
    pub fn demoted_bytes_per_s(&self) -> f64 {
        self.per_s(self.demoted)
    }

    /// A number of a node: `NAME.share`.
    pub(super) fn metric(&self, name: &str) -> Option<f64> {
        let (node, what) = name.rsplit_once('.')?;
        let node = self.nodes.iter().find(|n| n.name == node)?;
        Some(match what {
            "accesses" => node.accesses(),
            "share" => node.share,
            "mean_access_ns" => node.mean_access_ns,
            "promoted_bytes_per_s" => self.per_s(if node.top { node.pages_in } else { node.pages_out }),
            "demoted_bytes_per_s" => self.per_s(if node.top { node.pages_out } else { node.pages_in }),
            "utilization" => node.utilization,
            _ => return None,
        })
    }

    /// Value of a metric over all nodes, by name; none: no such metric.
    pub(super) fn total(&self, name: &str) -> Option<f64> {
        Some(match name {
            "promoted_bytes_per_s" => self.promoted_bytes_per_s(),
            "demoted_bytes_per_s" => self.demoted_bytes_per_s(),
            "mean_access_ns" => self.mean_access_ns(),
            _ => return None,
        })
    }
}

impl TierResult {
    /// Reads and writes.
    pub fn accesses(&self) -> f64 {
        (self.accesses[0] + self.accesses[1]) as f64
    }
}
