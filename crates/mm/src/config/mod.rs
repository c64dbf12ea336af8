//! Configuration: the policy, its variants, the sizes that tests shrink.

pub(crate) mod dirty;
pub(crate) mod kernel;
pub(crate) mod lru;
pub(crate) mod memcg;
pub(crate) mod node;
pub(crate) mod readahead;
pub(crate) mod recency;
pub(crate) mod sample;
pub(crate) mod settings;
pub(crate) mod shadow;
pub(crate) mod swap;
pub(crate) mod thp;
pub(crate) mod zswap;

use std::fmt;
use std::str::FromStr;

use crate::cache_ext::builtin::CacheExtPolicy;
use crate::config::dirty::DirtyConfig;
use crate::config::lru::{Lru, LruConfig, RefaultTest};
use crate::config::memcg::MemcgConfig;
use crate::config::node::{NodeConfig, NumaConfig};
use crate::config::readahead::{FaultAroundConfig, ReadaheadConfig};
use crate::config::shadow::ShadowConfig;
use crate::config::swap::SwapConfig;
use crate::config::thp::ThpConfig;
use crate::config::zswap::ZswapConfig;

/// The named policies of the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Two lists with today's refault test.
    Lru,
    /// Two lists with the test of 2013.
    Lru2013,
    /// Two lists without working-set detection.
    LruNone,
    /// Two lists with the shadow-position test.
    LruShadow,
    /// Multi-gen LRU.
    Mglru,
    /// Multi-gen LRU with the RFC v3 re-activation.
    MglruShadow,
    /// Two lists, and beside them a policy in the form of cache_ext for pages of files.
    Ext(CacheExtPolicy),
}

impl Policy {
    /// The policies of Linux.
    pub const ALL: [Policy; 6] =
        [Policy::Lru, Policy::Lru2013, Policy::LruNone, Policy::LruShadow, Policy::Mglru, Policy::MglruShadow];

    /// All policies: those of Linux, then those in the form of cache_ext.
    pub fn every() -> impl Iterator<Item = Policy> {
        Policy::ALL.into_iter().chain(CacheExtPolicy::ALL.map(Policy::Ext))
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Lru => "lru",
            Policy::Lru2013 => "lru-2013",
            Policy::LruNone => "lru-none",
            Policy::LruShadow => "lru-shadow",
            Policy::Mglru => "mglru",
            Policy::MglruShadow => "mglru-shadow",
            Policy::Ext(policy) => policy.name(),
        }
    }

    fn parts(self) -> (Lru, RefaultTest) {
        match self {
            Policy::Lru | Policy::Ext(_) => (Lru::TwoList, RefaultTest::Mainline),
            Policy::Lru2013 => (Lru::TwoList, RefaultTest::Distance2013),
            Policy::LruNone => (Lru::TwoList, RefaultTest::None),
            Policy::LruShadow => (Lru::TwoList, RefaultTest::ShadowPosition),
            Policy::Mglru => (Lru::MultiGen, RefaultTest::Mainline),
            Policy::MglruShadow => (Lru::MultiGen, RefaultTest::ShadowPosition),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        Policy::every().find(|p| p.name() == s).ok_or_else(|| {
            let names: Vec<_> = Policy::every().map(Policy::name).collect();
            format!("unknown policy {s:?}; known are {}", names.join(", "))
        })
    }
}

/// Everything that can be chosen, subsystem by subsystem. [`Config::new`] gives what a kernel would
/// do.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Lists and refaults.
    pub lru: LruConfig,
    /// A policy for pages of files beside the two lists, which it requires; none: the lists alone.
    pub cache_ext: Option<CacheExtPolicy>,
    /// How a shadow entry is packed.
    pub shadow: ShadowConfig,
    /// Memory cgroups.
    pub memcg: MemcgConfig,
    /// Swap.
    pub swap: SwapConfig,
    /// Compressed pages in memory in front of the swap device; none: off, as in Linux by default.
    pub zswap: Option<ZswapConfig>,
    /// Sizes of anonymous folios; by default single pages only.
    pub thp: ThpConfig,
    /// Reading ahead.
    pub readahead: ReadaheadConfig,
    /// Pages that a fault by mapping maps around it.
    pub fault_around: FaultAroundConfig,
    /// When dirty pages of files are written.
    pub dirty: DirtyConfig,
    /// The size of the node; none: only the limits of memcgs count.
    pub node: Option<NodeConfig>,
    /// Several nodes, in the place of `node`.
    pub numa: Option<NumaConfig>,
    /// CPUs, each with its own batches.
    pub cpus: usize,
    /// `swappiness`, 0 to 200; 60 in Linux.
    pub swappiness: u32,
    /// `vfs_cache_pressure`: share of all names and inodes that a pass of the shrinker counts, in
    /// percent; 100 in Linux, 0 = none are scanned.
    pub vfs_cache_pressure: u64,
    /// Pages of the machine: only the bucket order of the shadow clock depends on it.
    pub total_pages: u64,
    /// Salt of the Bloom filters; it stands in for the addresses of page tables, which a kernel
    /// hashes.
    pub seed: u64,
}

impl Config {
    /// A policy as the kernel has it.
    pub fn new(policy: Policy) -> Config {
        let (lru, refault) = policy.parts();
        Config {
            lru: LruConfig::new(lru, refault),
            cache_ext: match policy {
                Policy::Ext(policy) => Some(policy),
                _ => None,
            },
            shadow: ShadowConfig::default(),
            memcg: MemcgConfig::default(),
            swap: SwapConfig::default(),
            zswap: None,
            thp: ThpConfig::default(),
            readahead: ReadaheadConfig::default(),
            fault_around: FaultAroundConfig::default(),
            dirty: DirtyConfig::default(),
            node: None,
            numa: None,
            cpus: 1,
            swappiness: 60,
            vfs_cache_pressure: 100,
            total_pages: 1 << 22,
            seed: 0,
        }
    }

    /// Names the first setting that is impossible, if any.
    pub fn check(&self) -> Result<(), String> {
        self.check_parts().map_err(|e| format!("configuration: {e}"))
    }

    fn check_parts(&self) -> Result<(), String> {
        one_of(&[
            (self.swappiness <= 200, "swappiness is 0 to 200"),
            (self.vfs_cache_pressure <= 10_000, "vfs_cache_pressure is 0 to 10000"),
            (
                self.cache_ext.is_none() || self.lru.kind == Lru::TwoList,
                "cache_ext is beside two lists, not generations",
            ),
            (self.cpus >= 1, "there is at least one CPU"),
            (
                self.numa.as_ref().is_none_or(|n| n.nodes.len() <= 1 << self.shadow.nodes_shift.min(10)),
                "nodes_shift has room for all nodes",
            ),
        ])?;
        self.lru.check()?;
        self.shadow.check()?;
        self.memcg.check()?;
        self.fault_around.check()?;
        self.readahead.check()?;
        self.dirty.check()?;
        self.zswap.as_ref().map_or(Ok(()), ZswapConfig::check)?;
        self.swap.check()?;
        self.thp.check()?;
        self.node.as_ref().map_or(Ok(()), |n| n.check(n.pages))?;
        self.numa.as_ref().map_or(Ok(()), NumaConfig::check)
    }
}

/// Fails with the text of the first condition that does not hold.
fn one_of(limits: &[(bool, &str)]) -> Result<(), String> {
    limits.iter().find(|(ok, _)| !ok).map_or(Ok(()), |(_, what)| Err((*what).into()))
}
