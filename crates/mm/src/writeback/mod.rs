//! Dirty pages and writes: which folios are dirty, when they are written, and the end of a write.
//!
//! | file | what is in it |
//! |---|---|
//! | `dirty` | dirty pages of files, and the flusher |
//! | `expired` | files that are written for their age |
//! | `files` | which files have some, and whose turn it is |
//! | `io` | writes as they start and end |
//!
//! It may call: `lru`, `memcg`, `node`. It is called by: `migrate`, `swap_cache`, `reclaim`,
//! `fault`.

use crate::config::Config;
use crate::ids::MemcgId;
use crate::lru::pages::ResidentPages;
use crate::memcg::groups::Groups;
use crate::node::frames::Frames;

pub(crate) mod dirty;
pub(crate) mod expired;
pub(crate) mod files;
pub(crate) mod io;

/// Dirty pages, and the requests to the flusher.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writeback {
    pub(crate) dirty: dirty::DirtyPages,
    pub(crate) flush_all: bool,
    pub(crate) flush_due: bool,
    pub(crate) flushing: bool,
    /// Pages whose write has failed since the last write that went well.
    pub(crate) writes_failed: u64,
}

/// Pages whose writes failed in a row, from which on writes under way are not waited for.
const HOPELESS_WRITES: u64 = 4096;

impl Writeback {
    /// Whether pages of a memcg or its descendants are being written, and there is hope that they
    /// will be.
    pub(crate) fn is_write_pending(&self, groups: &Groups, over: MemcgId) -> bool {
        let writes = groups.memcgs.subtree(over).any(|m| groups.memcgs.get(m).writeback > 0);
        writes && self.is_hopeful()
    }

    /// Whether writes succeed now and then.
    pub(crate) fn is_hopeful(&self) -> bool {
        self.writes_failed < HOPELESS_WRITES
    }
}

/// Writing back: the parts that it may change, and the world that writes go to.
pub(crate) struct Writeout<'a, W> {
    pub(crate) cfg: &'a Config,
    pub(crate) pages: &'a mut ResidentPages,
    pub(crate) groups: &'a mut Groups,
    pub(crate) frames: &'a mut Frames,
    pub(crate) writeback: &'a mut Writeback,
    pub(crate) now_ns: u64,
    pub(crate) world: &'a mut W,
}
