//! Policies as plug-ins: the page cache of a group by a policy of its own, in the form of
//! cache_ext.
//!
//! | file | what is in it |
//! |---|---|
//! | `ops` | the trait of a policy: its hooks, and what they may use |
//! | `list` | lists of folios: add, add_tail, del, move, iterate, sample |
//! | `builtin` | the policies that come with the engine, by name |
//! | `policies/` | each policy in a file of its own, with its check |
//! | `attached` | the policy of each group, and the hooks as the engine calls them |
//!
//! It may call: ids. It is called by: `lru` for accesses, `fault` for what is added, `memcontrol`
//! and `workingset` for what is gone, and `reclaim`, which asks for victims.
//!
//! Mechanism: `docs/mechanisms.md#policies-as-plug-ins`.

pub(crate) mod attached;
pub(crate) mod builtin;
pub(crate) mod list;
pub(crate) mod ops;
mod policies;
