//! Accesses that a trace has, of those that were made: the rest cannot be replayed.

use serde::{Deserialize, Serialize};

/// Accesses that a trace has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seen {
    /// Requests to a block device: what the page cache let through.
    BlockRequests,
    /// Pages that the kernel added to the page cache: misses, and what readahead brought.
    Additions,
    /// Page faults: touches of pages that are mapped make none.
    Faults,
    /// Reads and writes by system calls, hits as well; touches of mapped memory are not.
    SystemCalls,
    /// Hits and additions of the page cache, as a tracer of the kernel's functions saw them.
    PageCache,
    /// Requests to a cache of objects, each of which is a page, whatever its size.
    Objects,
}

impl Seen {
    /// A sentence for people, behind the name of the trace.
    pub fn note(self) -> &'static str {
        match self {
            Seen::BlockRequests => {
                "requests to a block device are what a page cache let through: its hits are not here, so that results \
                 are of a cache below it, as a storage array has one"
            }
            Seen::Additions => {
                "pages that the kernel added to its page cache are misses and readahead: hits are not here, so that \
                 results are not those of the page cache"
            }
            Seen::Faults => {
                "page faults are first touches, and touches of pages that were evicted: those of mapped pages are not \
                 here, so that results are not those of the program"
            }
            Seen::SystemCalls => "system calls are here, hits as well; touches of mapped memory are not",
            Seen::PageCache => {
                "hits and additions of the page cache are here; a read that misses is a MISS and then a HIT, and a \
                 MISS is a page of readahead, too"
            }
            Seen::Objects => "requests to a cache of objects: each object is one page, whatever its size",
        }
    }

    /// Whether hits are missing, so that no size of a page cache follows from it.
    pub fn lacks_hits(self) -> bool {
        matches!(self, Seen::BlockRequests | Seen::Additions | Seen::Faults)
    }
}
