//! Performance of a node of memory, and the distance that follows from it.
//!
//! Mechanism: `docs/mechanisms.md#tiers-and-demotion-targets`.

use std::fmt;
use std::str::FromStr;

/// Abstract distance of DRAM: in the middle of a tier.
const DRAM_DISTANCE: u64 = 4 * TIER_SPAN + TIER_SPAN / 2;
/// Abstract distances that make up one tier.
const TIER_SPAN: u64 = 128;

/// Latency and bandwidth of a node, as CPUs near it see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodePerf {
    /// Latency of a read that misses all caches.
    pub read_latency_ns: u64,
    /// Latency of a write that misses all caches.
    pub write_latency_ns: u64,
    /// Read bandwidth, all CPUs together.
    pub read_bytes_per_s: u64,
    /// Write bandwidth, all CPUs together.
    pub write_bytes_per_s: u64,
    /// Bytes that the medium moves for an access of a cache line.
    pub access_bytes: u64,
}

/// Nodes of which figures are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodePreset {
    /// Six channels of DDR4-2666 beside the CPU.
    Dram,
    /// DRAM behind eight lanes of CXL.
    Cxl,
    /// Six modules of Optane DC persistent memory.
    Pmem,
    /// DRAM of the other socket.
    RemoteNuma,
}

impl NodePreset {
    /// All presets.
    pub const ALL: [NodePreset; 4] = [NodePreset::Dram, NodePreset::Cxl, NodePreset::Pmem, NodePreset::RemoteNuma];

    /// The name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            NodePreset::Dram => "dram",
            NodePreset::Cxl => "cxl",
            NodePreset::Pmem => "pmem",
            NodePreset::RemoteNuma => "remote-numa",
        }
    }

    /// Its figures.
    ///
    /// - `dram`: reads at random places take 101 ns, non-temporal writes 86 ns (Izraelevitz and
    ///   others, "Basic performance measurements of the Intel Optane DC persistent memory module",
    ///   2019). Bandwidth is nominal: 6 channels of 21.3 GB/s, which reads and writes share; half
    ///   is counted for writes.
    /// - `pmem`: 305 ns at random places, writes 90 ns (into the controller's queue); six modules
    ///   39.4 GB/s of reads and 13.9 GB/s of writes; a line of 64 bytes moves 256 bytes in the
    ///   medium, so random access gets a quarter of that (the same source).
    /// - `cxl`: 70 to 90 ns more than local DRAM (Li and others, "Pond", ASPLOS 2023), so 80 ns
    ///   more, writes too; bandwidth is nominal: eight lanes of PCIe 5.0, 31.5 GB/s each way.
    /// - `remote-numa`: 1.82 times the latency of local DRAM, 142 to 78 ns, and 30 GB/s over the
    ///   link ("Pond", its emulation of CXL on two sockets).
    pub fn perf(self) -> NodePerf {
        let perf = |[read_latency_ns, write_latency_ns]: [u64; 2], [read, write]: [u64; 2], access_bytes| NodePerf {
            read_latency_ns,
            write_latency_ns,
            read_bytes_per_s: read * 1_000_000,
            write_bytes_per_s: write * 1_000_000,
            access_bytes,
        };
        match self {
            NodePreset::Dram => perf([101, 86], [127_800, 63_900], 64),
            NodePreset::Cxl => perf([181, 166], [31_500, 31_500], 64),
            NodePreset::Pmem => perf([305, 90], [39_400, 13_900], 256),
            NodePreset::RemoteNuma => perf([184, 157], [30_000, 30_000], 64),
        }
    }
}

impl fmt::Display for NodePreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for NodePreset {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        NodePreset::ALL.into_iter().find(|p| p.name() == s).ok_or_else(|| {
            let names: Vec<_> = NodePreset::ALL.iter().map(|p| p.name()).collect();
            format!("unknown kind of memory {s:?}; known are {}", names.join(", "))
        })
    }
}

impl NodePerf {
    /// Whether the figures are possible: a latency and a bandwidth of nothing are not.
    pub fn check(&self) -> Result<(), String> {
        let least = [
            self.read_latency_ns,
            self.write_latency_ns,
            self.read_bytes_per_s,
            self.write_bytes_per_s,
            self.access_bytes,
        ];
        match least.contains(&0) {
            true => Err("latency, bandwidth and bytes of an access are at least 1".into()),
            false => Ok(()),
        }
    }

    /// Abstract distance, where `dram` is what counts as DRAM: proportional to latency, inversely
    /// to bandwidth, reads and writes added up. Lower is faster.
    pub fn abstract_distance(&self, dram: &NodePerf) -> u64 {
        let latency = |p: &NodePerf| u128::from(p.read_latency_ns) + u128::from(p.write_latency_ns);
        let bandwidth = |p: &NodePerf| u128::from(p.read_bytes_per_s) + u128::from(p.write_bytes_per_s);
        let by_latency = u128::from(DRAM_DISTANCE) * latency(self) / latency(dram).max(1);
        let distance = by_latency * bandwidth(dram) / bandwidth(self).max(1);
        u64::try_from(distance).unwrap_or(u64::MAX)
    }

    /// The tier of an abstract distance.
    pub fn tier_of(distance: u64) -> u64 {
        distance / TIER_SPAN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dram_is_in_the_middle_of_tier_4() {
        let dram = NodePreset::Dram.perf();
        assert_eq!(dram.abstract_distance(&dram), 576);
        assert_eq!(NodePerf::tier_of(576), 4);
        assert_eq!((NodePerf::tier_of(639), NodePerf::tier_of(640), NodePerf::tier_of(511)), (4, 5, 3));
    }

    #[test]
    fn distance_grows_with_latency_and_falls_with_bandwidth() {
        let dram = NodePreset::Dram.perf();
        let slow = NodePerf { read_latency_ns: 202, write_latency_ns: 172, ..dram };
        assert_eq!(slow.abstract_distance(&dram), 1152);
        let narrow = NodePerf { read_bytes_per_s: 63_900_000_000, write_bytes_per_s: 31_950_000_000, ..dram };
        assert_eq!(narrow.abstract_distance(&dram), 1152);
        let fast = NodePerf { read_latency_ns: 50, write_latency_ns: 43, ..dram };
        assert!(fast.abstract_distance(&dram) < 576 / 2 + 1);
    }

    #[test]
    fn every_preset_is_slower_than_dram_and_has_a_name() {
        let dram = NodePreset::Dram.perf();
        for preset in NodePreset::ALL {
            preset.perf().check().unwrap();
            assert_eq!(preset.name().parse::<NodePreset>().unwrap(), preset);
            let distance = preset.perf().abstract_distance(&dram);
            assert_eq!(preset == NodePreset::Dram, NodePerf::tier_of(distance) == 4, "{preset}: {distance}");
        }
        assert!("hbm".parse::<NodePreset>().unwrap_err().contains("remote-numa"));
        assert!(NodePerf { access_bytes: 0, ..dram }.check().is_err());
    }
}
