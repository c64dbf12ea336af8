//! Pages with the groups that are charged for them and the frames that they take: what changes when
//! a page comes or goes.
//!
//! | file | what is in it |
//! |---|---|
//! | `free` | giving back |
//! | `offline` | groups that are made and removed |
//! | `reparent` | what a removed group leaves to its parent |
//!
//! It may call: `lru`, `memcg`, `node`. It is called by: `workingset`, `swap_cache`, `reclaim` and
//! all above.

use crate::config::Config;
use crate::lru::pages::ResidentPages;
use crate::memcg::groups::Groups;
use crate::node::frames::Frames;

pub(crate) mod free;
pub(crate) mod offline;
pub(crate) mod reparent;

/// Pages, the groups that are charged for them, and their frames: the state that may change when a
/// page comes or goes.
pub(crate) struct Memcontrol<'a> {
    pub(crate) cfg: &'a Config,
    pub(crate) pages: &'a mut ResidentPages,
    pub(crate) groups: &'a mut Groups,
    pub(crate) frames: &'a mut Frames,
}
