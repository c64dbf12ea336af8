//! Memory nodes: zones and their free frames, tasks that wait for them, and knowledge of fast and
//! slow ones. [`frames::Frames`] owns all of it.
//!
//! | file | what is in it |
//! |---|---|
//! | `frames` | `Frames`, the part of the engine that holds them |
//! | `zones`, `nodes` | zones with watermarks; the nodes of a machine |
//! | `balance` | when kswapd is content with zones |
//! | `vm_stat_diff` | free pages as marks are compared with them |
//! | `pcp` | free pages that a CPU keeps for itself |
//! | `page_blocks`, `boost` | free pages by kind; marks that are raised for blocks that change it |
//! | `buffer_heads` | slabs of what a file system keeps of written pages |
//! | `kswapd` | whether a kswapd is awake, and its run |
//! | `throttle` | tasks that wait for reclaim, and until when |
//! | `migration` | folios on their way to another node |
//! | `hint` | what hint faults need |
//! | `resize` | memory that comes and goes |
//!
//! It may call: `folio`, and `lru` to count. It is called by: `memcontrol`, `writeback`, `reclaim`
//! and all above.

mod balance;
pub(crate) mod boost;
pub(crate) mod buffer_heads;
pub(crate) mod frames;
pub(crate) mod hint;
pub(crate) mod kswapd;
pub(crate) mod migration;
pub(crate) mod nodes;
pub(crate) mod page_blocks;
pub(crate) mod pcp;
pub(crate) mod resize;
pub(crate) mod throttle;
mod vm_stat_diff;
pub(crate) mod zones;
