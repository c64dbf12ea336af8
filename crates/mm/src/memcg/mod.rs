//! Memory cgroups: their tree, their charges and limits, and whose turn it is. [`groups::Groups`]
//! owns all of it.
//!
//! | file | what is in it |
//! |---|---|
//! | `group` | a group, and its counters of charges |
//! | `zswap_charge` | what groups are charged for compressed pages |
//! | `groups` | `Groups`, the part of the engine that holds them |
//! | `tree` | links, and the order of walks |
//! | `protection` | `min` and `low` |
//! | `high` | `high`: how long a task sleeps |
//! | `memcg_lru` | generations of groups |
//! | `empty_memcg_cache` | groups that are known to have nothing to give |
//! | `vmpressure` | the worker that is woken for what was scanned |
//! | `stocks` | pages that are charged ahead |
//! | `stat_flush` | sums that are added up now and then |
//!
//! It may call: nothing that reclaims. It is called by: `lru` for the tree, all above for charges.

pub(crate) mod empty_memcg_cache;
pub(crate) mod group;
pub(crate) mod groups;
pub(crate) mod high;
pub(crate) mod memcg_lru;
pub(crate) mod protection;
pub(crate) mod stat_flush;
pub(crate) mod stocks;
pub(crate) mod tree;
pub(crate) mod vmpressure;
pub(crate) mod zswap_charge;
