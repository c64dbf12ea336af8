//! The policies that come with the engine, by name.

use super::ops::CacheExtOps;
use super::policies;
use std::fmt;

/// A policy in the form of cache_ext.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CacheExtPolicy {
    /// First in, first out.
    Fifo,
    /// Second chance: a folio that was accessed goes round once more.
    Clock,
    /// Least recently used, exactly.
    LruExact,
    /// Most recently used.
    Mru,
    /// Least frequently used of a sample.
    Lfu,
    /// SIEVE (NSDI 2024).
    Sieve,
    /// S3-FIFO (SOSP 2023).
    S3Fifo,
    /// ARC (FAST 2003).
    Arc,
    /// 2Q (VLDB 1994).
    TwoQ,
    /// LIRS (SIGMETRICS 2002).
    Lirs,
    /// W-TinyLFU (TOS 2017).
    WTinyLfu,
    /// Multi-gen LRU, as a plug-in.
    Mglru,
    /// Pages that scans bring in go first.
    GetScan,
}

impl CacheExtPolicy {
    /// All policies that come with the engine.
    pub const ALL: [CacheExtPolicy; 13] = [
        CacheExtPolicy::Fifo,
        CacheExtPolicy::Clock,
        CacheExtPolicy::LruExact,
        CacheExtPolicy::Mru,
        CacheExtPolicy::Lfu,
        CacheExtPolicy::Sieve,
        CacheExtPolicy::S3Fifo,
        CacheExtPolicy::Arc,
        CacheExtPolicy::TwoQ,
        CacheExtPolicy::Lirs,
        CacheExtPolicy::WTinyLfu,
        CacheExtPolicy::Mglru,
        CacheExtPolicy::GetScan,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            CacheExtPolicy::Fifo => "fifo",
            CacheExtPolicy::Clock => "clock",
            CacheExtPolicy::LruExact => "lru-exact",
            CacheExtPolicy::Mru => "mru",
            CacheExtPolicy::Lfu => "lfu",
            CacheExtPolicy::Sieve => "sieve",
            CacheExtPolicy::S3Fifo => "s3fifo",
            CacheExtPolicy::Arc => "arc",
            CacheExtPolicy::TwoQ => "2q",
            CacheExtPolicy::Lirs => "lirs",
            CacheExtPolicy::WTinyLfu => "w-tinylfu",
            CacheExtPolicy::Mglru => "mglru-ext",
            CacheExtPolicy::GetScan => "get-scan",
        }
    }

    /// Whether the policy looks at the hints of tasks ([`crate::Engine::set_cache_ext_hint`]).
    pub fn reads_hints(self) -> bool {
        self == CacheExtPolicy::GetScan
    }

    /// The policy itself, for one group ([`crate::Engine::attach_cache_ext`]).
    pub fn ops(self) -> Box<dyn CacheExtOps> {
        match self {
            CacheExtPolicy::Fifo => Box::new(policies::fifo::Fifo::default()),
            CacheExtPolicy::Clock => Box::new(policies::clock::ClockPolicy::default()),
            CacheExtPolicy::LruExact => Box::new(policies::exact_lru::ExactLru::lru()),
            CacheExtPolicy::Mru => Box::new(policies::exact_lru::ExactLru::mru()),
            CacheExtPolicy::Lfu => Box::new(policies::lfu::Lfu::default()),
            CacheExtPolicy::Sieve => Box::new(policies::sieve::Sieve::default()),
            CacheExtPolicy::S3Fifo => Box::new(policies::s3fifo::S3Fifo::default()),
            CacheExtPolicy::Arc => Box::new(policies::arc::Arc::default()),
            CacheExtPolicy::TwoQ => Box::new(policies::twoq::TwoQ::default()),
            CacheExtPolicy::Lirs => Box::new(policies::lirs::Lirs::default()),
            CacheExtPolicy::WTinyLfu => Box::new(policies::wtinylfu::WTinyLfu::default()),
            CacheExtPolicy::Mglru => Box::new(policies::mglru::Mglru::default()),
            CacheExtPolicy::GetScan => Box::new(policies::get_scan::GetScan::default()),
        }
    }
}

impl fmt::Display for CacheExtPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
