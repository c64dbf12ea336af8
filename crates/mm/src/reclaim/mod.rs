//! Reclaim: a run is a value, [`Reclaim`], that holds what it may change and what it aims at.
//!
//! | file | what is in it |
//! |---|---|
//! | `vmscan` | priorities, nodes, the walk over groups |
//! | `policy` | the seam for policies, as far as reclaim goes |
//! | `two_list`, `multi_gen` | shrinking an lruvec with two lists, and with generations |
//! | `cache_ext` | the same by a policy beside two lists |
//! | `shrink`, `swap_out`, `unmap` | what becomes of an isolated folio |
//! | `memcg_lru`, `memcg_iter_reclaim`, `empty_memcgs` | whose turn it is, under multi-gen LRU |
//! | `kswapd` | one step of background reclaim |
//! | `lru_gen_debugfs` | the debugfs files |
//! | `peek` | what comes next, for drivers that want to know |
//!
//! It may call: `lru`, `workingset`, `swap_cache`, `writeback`, `migrate`, `memcontrol`. It is
//! called by: `alloc`, `cgroupfs`, `fault`, and the driver for kswapd.

use crate::memory::Memory;
use crate::page_io::PageIo;
use crate::scan::ScanControl;

pub(crate) mod cache_ext;
pub(crate) mod empty_memcgs;
pub(crate) mod kswapd;
pub(crate) mod lru_gen_debugfs;
pub(crate) mod memcg_iter_reclaim;
pub(crate) mod memcg_lru;
#[cfg(test)]
mod memcg_props;
pub(crate) mod multi_gen;
pub(crate) mod peek;
pub(crate) mod policy;
pub(crate) mod scan_budget;
pub(crate) mod shrink;
pub(crate) mod swap_out;
pub(crate) mod two_list;
pub(crate) mod unmap;
pub(crate) mod vmscan;

/// A reclaim under way: the memory, and its target.
pub(crate) struct Reclaim<'a, W> {
    pub(crate) mem: &'a mut Memory,
    pub(crate) world: &'a mut W,
    pub(crate) sc: ScanControl,
}

impl<W> Reclaim<'_, W> {
    /// See [`PageIo`].
    #[inline(always)]
    pub(crate) fn page_io(&mut self) -> PageIo<'_, W> {
        PageIo { mem: self.mem, world: self.world }
    }
}
